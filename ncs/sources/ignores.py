""".gitignore and .ncsignore: which paths the owner of a tree wants left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

NCSIGNORE = ".ncsignore"
GITIGNORE = ".gitignore"


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one ignore file, whose folder is `base` ("" or "a/b/", relative to the root)."""

    base: str
    patterns: tuple[tuple[re.Pattern[str], bool], ...]
    any: re.Pattern[str]

    def decide(self, path: str) -> bool | None:
        """True: ignored, False: explicitly kept, None: not mentioned. Folders end in a slash."""
        below = path[len(self.base) :]
        if self.any.search(below) is None:
            return None
        for pattern, ignored in reversed(self.patterns):
            if pattern.search(below):
                return ignored
        return None


@dataclass(frozen=True, slots=True)
class Ignores:
    """The ignore files that hold in a folder, outermost first.

    As in git, the deepest file decides, and in it the last pattern that matches; as in ripgrep,
    the tool's own .ncsignore goes before every .gitignore. .gitignore ends where a repository
    ends, .ncsignore does not.
    """

    git: tuple[IgnoreFile, ...] = ()
    ncs: tuple[IgnoreFile, ...] = ()

    def chosen(self, path: str) -> bool | None:
        """What .ncsignore says: True leaves out, False keeps whatever other rules say, None says nothing."""
        return _decide(self.ncs, path)

    def by_git(self, path: str) -> bool:
        """Does .gitignore leave this path out?"""
        return bool(_decide(self.git, path))

    def with_git(self, file: IgnoreFile | None) -> Ignores:
        """With one more .gitignore, deeper than all before."""
        return self if file is None else replace(self, git=(*self.git, file))

    def with_ncs(self, file: IgnoreFile | None) -> Ignores:
        """With one more .ncsignore, deeper than all before."""
        return self if file is None else replace(self, ncs=(*self.ncs, file))

    def without_git(self) -> Ignores:
        """What still holds inside a repository that lies here."""
        return replace(self, git=())


def parse(data: bytes, base: str) -> IgnoreFile | None:
    """The patterns of an ignore file; None where it has none."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return _compile(text.split("\n"), base)


def _compile(lines: Iterable[str], base: str) -> IgnoreFile | None:
    sources: list[tuple[str, bool]] = []
    for line in lines:
        try:
            regex, ignored = GitIgnoreSpecPattern.pattern_to_regex(line)
        except ValueError:  # git passes over what it cannot read, too
            continue
        if regex is not None and ignored is not None:
            sources.append((_this_path_only(regex), ignored))
    if not sources:
        return None
    every = re.compile("|".join(f"(?:{source})" for source, _ in sources), re.DOTALL)
    return IgnoreFile(base, tuple((re.compile(s, re.DOTALL), ignored) for s, ignored in sources), every)


def _this_path_only(regex: str) -> str:
    """pathspec's expression matches all that lies below a folder as well; a walk asks for each folder by itself.

    That is what makes negation exact: `foo` then `!foo/` keeps foo/, and so all in it.
    """
    for below, here in ((r"(?:(?P<ps_d>/)|$)", r"/?\Z"), (r"(?P<ps_d>/)", r"/\Z"), ("/", "/.")):
        if regex.endswith(below):
            return regex.removesuffix(below) + here
    return regex


def _decide(files: tuple[IgnoreFile, ...], path: str) -> bool | None:
    for file in reversed(files):
        if (decision := file.decide(path)) is not None:
            return decision
    return None
