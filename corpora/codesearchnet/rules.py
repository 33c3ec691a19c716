"""What decides a corpus's content beside the repositories: languages, licences, the seed of the split."""

from __future__ import annotations

from dataclasses import dataclass

from corpora.codesearchnet.licences import UNKNOWN, permits
from ncs.extract.languages import installed, language_of

NO_LICENCE, UNKNOWN_LICENCE, NOT_ALLOWED = "no licence file", "licence not recognised", "licence not allowed"


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides a corpus's content. languages: all that are read where it is empty. licences: SPDX ids."""

    languages: tuple[str, ...] = ()
    licences: tuple[str, ...] = ()
    any_licence: bool = False
    seed: int = 0

    def refusal(self, expression: str) -> str | None:
        """Why a repository under this licence is left out."""
        if self.any_licence:
            return None
        if expression in ("", UNKNOWN):
            return UNKNOWN_LICENCE if expression else NO_LICENCE
        return None if permits(expression, frozenset(self.licences)) else NOT_ALLOWED

    def wanted(self, path: str) -> bool:
        """Whether a file is read, by its name."""
        language = language_of(path)
        return language is not None and (not self.languages or language in self.languages) and installed(language)
