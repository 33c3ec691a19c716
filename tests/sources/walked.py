"""A walk over Java files, with all that it yields and skips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ncs.sources import Limits, Skipped, SourceFile, walk


def is_java(path: str) -> bool:
    return path.endswith(".java")


@dataclass(frozen=True)
class Walked:
    files: list[SourceFile]
    skipped: Skipped

    @property
    def names(self) -> list[str]:
        return [f"{file.repository}:{file.path}" for file in self.files]

    @property
    def data(self) -> dict[str, bytes]:
        return {f"{file.repository}:{file.path}": file.data for file in self.files}

    @property
    def counts(self) -> dict[str, int]:
        return dict(self.skipped.counts)


def walked(
    *roots: Path,
    readable: Callable[[str], bool] = is_java,
    revision: str | None = None,
    force: bool = False,
    **limits: int,
) -> Walked:
    """limits: as in Limits."""
    skipped = Skipped()
    files = walk(roots, readable=readable, revision=revision, force=force, skipped=skipped, limits=Limits(**limits))
    return Walked(list(files), skipped)
