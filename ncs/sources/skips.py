"""What is left out of a source tree and why: nothing is skipped without being counted."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ncs.sources.content import GENERATED_NAME, MINIFIED_NAME, NOTEBOOK, as_utf8, reason_to_skip
from ncs.sources.ignores import Ignores
from ncs.sources.origins import Origin
from ncs.sources.seen import Seen

VENDORED = frozenset(
    {
        *("node_modules", "bower_components", "jspm_packages", "web_modules"),
        *("vendor", "vendors", "vendored", "_vendor", "third_party", "third-party", "thirdparty", "3rdparty"),
        *("site-packages", "dist-packages", "__pypackages__", "Pods", "Carthage", "Godeps"),
    }
)
"""Folders of other people's code."""
CACHES = frozenset(
    {
        *(
            "__pycache__",
            ".tox",
            ".nox",
            ".eggs",
            ".mypy_cache",
            ".pytest_cache",
            ".ruff_cache",
            ".hypothesis",
            ".ipynb_checkpoints",
        ),
        *(".gradle", ".idea", ".vs", ".bundle", ".next", ".nuxt", ".svelte-kit", ".terraform", ".dart_tool"),
    }
)
"""Folders that tools fill."""
_GENERATED = ("/build/generated/", "/target/generated-sources/")  # of Gradle and Maven
NEVER = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", "CVS", ".ncs"})
"""Folders that hold no source code by their nature; they alone are not counted."""
_KEPT = 100
Wanted = bool | Callable[[bytes], bool]
"""Whether a file is wanted: yes, no, or a question to its content."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read; what is beyond is counted as "too large"."""

    file_bytes: int = 1 << 20
    notebook_bytes: int = 32 << 20
    """Of a notebook, which holds what its cells drew."""
    archive_bytes: int = 4 << 30
    """All that an archive unpacks to."""
    archive_ratio: int = 200
    """Unpacked bytes a packed byte, past the first 64 MiB: source code packs 3 to 10 times."""
    archive_members: int = 500_000

    def of(self, path: str) -> int:
        """Bytes that a file may have."""
        return self.notebook_bytes if path.endswith(NOTEBOOK) else self.file_bytes


@dataclass(slots=True)
class Skipped:
    """What a walk left out, by reason; counts are of files unless the reason names something else."""

    counts: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)
    """Where something could not be read, the first hundred."""
    notes: list[str] = field(default_factory=list)
    """A line each, the first hundred: an empty repository, a broken archive."""
    unwanted: Callable[[str], str] = lambda path: "other language"
    """Why a file is not wanted, by its path."""

    def add(self, reason: str, n: int = 1) -> None:
        """Count something that was left out."""
        self.counts[reason] += n

    def add_unreadable(self, path: str) -> None:
        """Count something that could not be read, and keep where it is."""
        self.counts["unreadable"] += 1
        if len(self.unreadable) < _KEPT:
            self.unreadable.append(path)

    def note(self, line: str) -> None:
        """Keep a line for a person."""
        if len(self.notes) < _KEPT:
            self.notes.append(line)


@dataclass(frozen=True, slots=True)
class Sieve:
    """Decides about folders, files and contents, and counts what falls through.

    Paths are relative to the root, those of folders end in a slash. What .ncsignore keeps with a
    `!pattern` is not looked at for being vendored, generated or minified.
    """

    wanted: Callable[[str], Wanted]
    skipped: Skipped
    limits: Limits = Limits()
    unchanged: Callable[[Origin], bool] = lambda origin: False
    """Is this content known already? Then it is not read."""
    seen: Seen | None = None
    """Where to note what else is met."""
    enter: Callable[[str], bool] | None = None
    """Which folders are walked over, by their path on disk; None: all."""

    def folder(self, path: str, ignores: Ignores) -> bool:
        """May this folder be entered?"""
        name = path[:-1].rpartition("/")[2]
        if name in NEVER:
            return False
        chosen = ignores.chosen(path)
        if chosen is None and (reason := _kind_of_folder(path, name)):
            self.skipped.add(reason)
            return False
        return self._kept(path, ignores, chosen, "ignored folders")

    def file(self, path: str, ignores: Ignores) -> bool:
        """May this file be read, judged by its path?"""
        if not self.wanted(path):
            self.skipped.add(self.skipped.unwanted(path))
            return False
        chosen = ignores.chosen(path)
        if not self._kept(path, ignores, chosen, "ignored"):
            return False
        if chosen is None and GENERATED_NAME.search(path):
            self.skipped.add("generated")
            return False
        if chosen is None and MINIFIED_NAME.search(path):
            self.skipped.add("minified")
            return False
        return True

    def archive(self, path: str, ignores: Ignores) -> bool:
        """May this archive be opened?"""
        return self._kept(path, ignores, ignores.chosen(path), "ignored")

    def size(self, size: int, path: str) -> bool:
        """May a file of so many bytes be read?"""
        if size > self.limits.of(path):
            self.skipped.add("too large")
            return False
        return True

    def content(self, path: str, data: bytes, ignores: Ignores) -> bytes | None:
        """What is handed on of this content, as UTF-8 where its encoding is marked; None: nothing."""
        if not self.size(len(data), path):
            return None
        data = as_utf8(data)
        if callable(fits := self.wanted(path)) and not fits(data):
            self.skipped.add(self.skipped.unwanted(path))
            return None
        reason = reason_to_skip(path, data)
        if reason is None or (reason != "binary" and ignores.chosen(path) is False):
            return data
        self.skipped.add(reason)
        return None

    def unreadable(self, path: str) -> None:
        """Count a file or folder that could not be read."""
        self.skipped.add_unreadable(shown(path))

    def _kept(self, path: str, ignores: Ignores, chosen: bool | None, reason: str) -> bool:
        ignored = ignores.by_git(path) if chosen is None else chosen
        if ignored:
            self.skipped.add(reason)
        return not ignored


class Folders:
    """Asks a sieve once for each folder on the way to files that come in path order."""

    def __init__(self, where: str, ignores: Ignores, sieve: Sieve) -> None:
        self._where, self._ignores, self._sieve = where, ignores, sieve
        self._entered = [""]
        self._shut: str | None = None

    def enter(self, path: str) -> bool:
        """Are all folders above this file entered?"""
        if self._shut is not None and path.startswith(self._shut):
            return False
        while not path.startswith(self._entered[-1]):
            self._entered.pop()
        at = len(self._entered[-1])
        while (at := path.find("/", at) + 1) > 0:
            folder = path[:at]
            if not self._sieve.folder(self._where + folder, self._ignores):
                self._shut = folder
                return False
            self._entered.append(folder)
        return True


def shown(path: str) -> str:
    """A path as text that every encoder takes: bytes that are no UTF-8 become \\xNN."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


def _kind_of_folder(path: str, name: str) -> str | None:
    if name in CACHES:
        return "cache folders"
    if f"/{path}".endswith(_GENERATED):
        return "generated folders"
    # com/acme/vendor is a package about vendors
    if name not in VENDORED or (name == "vendor" and ("/java/" in path or "/kotlin/" in path)):
        return None
    return "vendored folders"
