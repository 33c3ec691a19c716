""".gitignore and .ncsignore: which paths the owner of a tree wants left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ncs.sources.wildmatch import Pattern, parse_line

GITIGNORE = ".gitignore"
NCSIGNORE = ".ncsignore"


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one ignore file, for paths relative to the root of a walk.

    The file lies in the root's folder `base` ("" or "a/b/"), or above the root, which then is
    its folder `above` ("" or "c/d/").
    """

    patterns: tuple[tuple[re.Pattern[str], Pattern], ...]
    any_name: re.Pattern[str]
    any_path: re.Pattern[str]
    base: str = ""
    above: str = ""

    def decide(self, path: str) -> bool | None:
        """True: ignored, False: explicitly kept, None: not mentioned. Folders end in a slash."""
        is_folder = path.endswith("/")
        path = self.above + path[len(self.base) :].removesuffix("/")
        name = path[path.rfind("/") + 1 :]
        if self.any_name.fullmatch(name) is None and self.any_path.fullmatch(path) is None:  # so for most paths
            return None
        for expression, pattern in reversed(self.patterns):
            if (is_folder or not pattern.folders_only) and expression.fullmatch(name if pattern.of_name else path):
                return pattern.ignored
        return None


@dataclass(frozen=True, slots=True)
class Ignores:
    """The ignore files that hold in a folder, outermost first.

    As in git, the deepest file decides, and in it the last pattern that matches; as in ripgrep,
    the tool's own file goes before every .gitignore. A .gitignore holds up to the border of its
    repository, an .ncsignore also in the repositories below it.
    """

    git: tuple[IgnoreFile, ...] = ()
    ncs: tuple[IgnoreFile, ...] = ()

    def chosen(self, path: str) -> bool | None:
        """What .ncsignore says: True leaves out, False keeps whatever other rules say, None says nothing."""
        return _decide(self.ncs, path) if self.ncs else None

    def by_git(self, path: str) -> bool:
        """Does .gitignore leave this path out?"""
        return _decide(self.git, path) is True

    def with_git(self, file: IgnoreFile | None) -> Ignores:
        """With one more .gitignore, which goes before the others."""
        return self if file is None else replace(self, git=(*self.git, file))

    def with_ncs(self, file: IgnoreFile | None) -> Ignores:
        """With one more .ncsignore, which goes before the others."""
        return self if file is None else replace(self, ncs=(*self.ncs, file))

    def without_git(self) -> Ignores:
        """What still holds inside another repository."""
        return replace(self, git=())


NO_IGNORES = Ignores()


def read(path: Path, *, base: str = "", above: str = "") -> IgnoreFile | None:
    """The ignore file at `path`; None where there is none that can be read. Links are not followed, as in git."""
    try:
        return None if path.is_symlink() or not path.is_file() else parse(path.read_bytes(), base=base, above=above)
    except OSError:
        return None


def parse(data: bytes, *, base: str = "", above: str = "") -> IgnoreFile | None:
    """The patterns of an ignore file; None where it has none."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    parsed = [pattern for n, line in enumerate(lines) if (pattern := parse_line(line, n)) is not None]
    if not parsed:
        return None
    return IgnoreFile(
        tuple((re.compile(pattern.source, re.DOTALL), pattern) for pattern in parsed),
        _any_of(pattern.source for pattern in parsed if pattern.of_name),
        _any_of(pattern.source for pattern in parsed if not pattern.of_name),
        base,
        above,
    )


def _any_of(sources: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{source})" for source in sources) or "(?!)", re.DOTALL)


def _decide(files: tuple[IgnoreFile, ...], path: str) -> bool | None:
    for file in reversed(files):
        if (decision := file.decide(path)) is not None:
            return decision
    return None
