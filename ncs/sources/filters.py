"""Selects the folders, files and contents that are source code; nothing is skipped without being counted."""

from __future__ import annotations

import codecs
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ncs.sources.files import Origin, printable
from ncs.sources.ignore import GITIGNORE, NCSIGNORE, IgnoreFile, Ignores, TooLarge

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
        *("__pycache__", ".tox", ".nox", ".eggs", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"),
        *(".ipynb_checkpoints", ".gradle", ".idea", ".vs", ".bundle", ".next", ".nuxt", ".svelte-kit", ".terraform"),
        ".dart_tool",
    }
)
"""Folders that tools fill."""
NEVER = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", "CVS", ".ncs"})
"""Folders that never hold source code; they alone are not counted."""
_GENERATED_FOLDERS = ("/build/generated/", "/target/generated-sources/")  # of Gradle and Maven
GENERATED_NAME = re.compile(
    r"(?:^|/)(?:R|BR|BuildConfig|Dagger[^/]*Component|Hilt_[^/]*|[^/]+_(?:MembersInjector|ViewBinding))\.java$"
    r"|(?:^|/)(?:gradlew|mvnw)$|_pb2(?:_grpc)?\.pyi?$|\.pb\.(?:go|cc|h|swift|dart)$|\.(?:g|freezed)\.dart$|\.[Dd]esigner\.cs$"
)
"""Names that only generators give: Android's R, Dagger, protocol buffers, the wrappers of Gradle and Maven."""
MINIFIED_NAME = re.compile(r"[.-]min\.(?:js|mjs|cjs|css)$")
# Each marker is sought in lower case, in a line that begins as a comment does. They are narrow on purpose:
# "ids are automatically generated" or "do not edit the list below" stand in files that people wrote.
_MARKER = re.compile(
    rb"^[ \t]*(?://|#|/?\*|--|;+(?!;)|%+(?!%)|<!--|\(\*|'|rem |dnl )(?:"
    rb"[ \t!*#/-]*(?:(?:auto-?|automatically[ -]|machine[ -])generated\b"
    rb"|generated (?:by|from|file|code|using|via)\b)"
    rb"|.*?(?:@generated\b|\bcode generated (?:by|from)\b"
    rb"|(?<!files )\b(?:auto-?|automatically[ -])generated (?:by|from|file|code)\b"
    rb"|\b(?:this|following) (?:\w+ )?(?:file|code|class|module|source|script|header|parser|lexer|interface)"
    rb" (?:was|is|has been) (?:\w+ly )?(?:auto-?)?generated\b"
    rb"|\b(?:please )?do not (?:edit|modify)(?: (?:this|the) (?:file|class|code)\b| by hand| directly| manually"
    rb"|[ \t]*[-.!;,:*]|[ \t]*\r?$)))"
    rb"|^@(?:javax?\.annotation\.(?:processing\.)?)?generated\b",
    re.MULTILINE,
)
NOTEBOOK = ".ipynb"
"""The long lines of a notebook are the output of its cells, not code."""
PROSE: Mapping[str, str] = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), "markdown"),
    ".rst": "restructuredtext",
    **dict.fromkeys((".adoc", ".asciidoc"), "asciidoc"),
}
"""Extension -> language of prose, in which a paragraph may be one long line."""
_HEAD_LINES, _HEAD_BYTES, _BINARY_BYTES = 20, 4096, 8000
_LONG_LINE = 300
_LONG_SCRIPT_LINE = 110  # the mean at which GitHub's linguist calls a script minified
_SCRIPTS = (".js", ".mjs", ".cjs", ".css")
_MINIFIED_FROM = 2000  # bytes: one long line in a short file is no minified file
_SMALL_BYTES = 64 << 20  # nothing below this is called a bomb
MAX_NOTES = 100
Readable = bool | Callable[[bytes], bool]
"""Whether a file is read: yes, no, or a function of its content."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of what is read; files beyond are counted as "too large"."""

    file_bytes: int = 1 << 20
    notebook_bytes: int = 32 << 20
    """Of a notebook, which holds the output of its cells."""
    archive_bytes: int = 4 << 30
    """All that an archive unpacks to."""
    archive_ratio: int = 200
    """Unpacked bytes a packed byte, past the first 64 MiB: source code packs 3 to 10 times. Of blobs of git too."""
    archive_members: int = 500_000

    def unpacked(self, packed: int) -> int:
        """Bytes that so many packed bytes may unpack to."""
        return max(_SMALL_BYTES, self.archive_ratio * packed)

    def of(self, path: str) -> int:
        """Bytes that a file may have."""
        return self.notebook_bytes if path.endswith(NOTEBOOK) else self.file_bytes


@dataclass(slots=True)
class Skipped:
    """The counts of what a walk skipped, by reason; counts are of files unless the reason names something else."""

    counts: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)
    """The first hundred paths that could not be read."""
    notes: list[str] = field(default_factory=list)
    """The first hundred lines for people: an empty repository, a broken archive."""
    reason_of: Callable[[str], str] = lambda path: "other language"
    """Why a file is not read, by its path."""

    def add(self, reason: str) -> None:
        """Count something that was skipped."""
        self.counts[reason] += 1

    def add_unreadable(self, path: str) -> None:
        """Count and name a file or folder that could not be read."""
        self.add("unreadable")
        if len(self.unreadable) < MAX_NOTES:
            self.unreadable.append(printable(path))

    def note(self, line: str) -> None:
        """Add a line for people."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(line)


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a disk in which something changed: these paths and all that lies below them."""

    paths: frozenset[str]
    above: frozenset[str]
    """The folders above them."""

    @classmethod
    def of(cls, paths: Iterable[str]) -> Scope:
        """The scope of paths that were written, created or removed.

        A changed ignore file concerns all of its folder, and a change in a git directory all of its repository.
        """
        affected = {str(_affected(Path(path))) for path in paths}
        return cls(frozenset(affected), frozenset(str(above) for path in affected for above in Path(path).parents))

    def covers(self, path: str) -> bool:
        """Whether a file, by the path of its origin, lies in here; if the walk does not yield it, it is gone."""
        while path not in self.paths:  # strings: this runs for every file of an index
            if (end := path.rfind(os.sep)) <= 0:
                return os.sep in self.paths
            path = path[:end]
        return True

    def reaches(self, path: str) -> bool:
        """Whether a folder lies in here, or something in here lies in it."""
        return path in self.above or self.covers(path)


def _affected(path: Path) -> Path:
    if path.name in (GITIGNORE, NCSIGNORE, ".git"):
        return path.parent
    git_dir = next((at for at in (path, *path.parents) if (at / "HEAD").is_file() and (at / "objects").is_dir()), None)
    return path if git_dir is None else git_dir.parent if git_dir.name == ".git" else git_dir


@dataclass(frozen=True, slots=True)
class Filter:
    """Accepts folders, files and contents, and counts those that it rejects.

    Paths are relative to the root, those of folders end in a slash. What .ncsignore re-includes with a `!pattern` is
    accepted although it looks vendored, generated or minified.
    """

    readable: Callable[[str], Readable]
    skipped: Skipped
    limits: Limits = Limits()
    is_unchanged: Callable[[Origin], bool] = lambda origin: False
    """Whether the caller knows this content already; then it is not read."""
    scope: Scope | None = None
    """What to look at; None: everything."""

    def reaches(self, path: str) -> bool:
        """Whether a folder or archive, by its path on disk, is to be looked into."""
        return self.scope is None or self.scope.reaches(path)

    def covers(self, path: str) -> bool:
        """Whether a file, by its path on disk, is to be looked at."""
        return self.scope is None or self.scope.covers(path)

    def folder(self, path: str, ignores: Ignores) -> bool:
        """Whether this folder may be entered."""
        name = path[:-1].rpartition("/")[2]
        if name in NEVER:
            return False
        by_ncsignore = ignores.by_ncsignore(path)
        reason = _folder_reason(path, name) if by_ncsignore is None else None
        if reason is None and _is_ignored(path, ignores, by_ncsignore):
            reason = "ignored folders"
        return self._accept(reason)

    def file(self, path: str, ignores: Ignores) -> bool:
        """Whether this file may be read, judged by its path."""
        if not self.readable(path):
            return self._accept(self.skipped.reason_of(path))
        by_ncsignore = ignores.by_ncsignore(path)
        if _is_ignored(path, ignores, by_ncsignore):
            return self._accept("ignored")
        return by_ncsignore is not None or self._accept(_name_reason(path))

    def archive(self, path: str, ignores: Ignores) -> bool:
        """Whether this archive may be opened."""
        return self._accept("ignored" if _is_ignored(path, ignores, ignores.by_ncsignore(path)) else None)

    def size(self, size: int, path: str) -> bool:
        """Whether a file of so many bytes may be read."""
        return self._accept("too large" if size > self.limits.of(path) else None)

    def content(self, path: str, data: bytes, ignores: Ignores) -> bytes | None:
        """The content as UTF-8 where its encoding is marked; None where it is skipped."""
        if not self.size(len(data), path):
            return None
        data = as_utf8(data)
        if callable(accepts := self.readable(path)) and not accepts(data):
            reason: str | None = self.skipped.reason_of(path)
        else:
            reason = reason_to_skip(path, data)
            if reason not in (None, "binary") and ignores.by_ncsignore(path) is False:
                reason = None
        return data if self._accept(reason) else None

    def rules(
        self, read: Callable[..., IgnoreFile | None], source: Path | bytes | None, base: str
    ) -> IgnoreFile | None:
        """The ignore file that `read` gives; None, and a line for people, for one over the limits."""
        try:
            return read(source, base=base)
        except TooLarge as error:
            self.skipped.add_unreadable(base + (source.name if isinstance(source, Path) else NCSIGNORE))
            self.skipped.note(f"{error}; until then nothing is ignored by it")
            return None

    def _accept(self, reason: str | None) -> bool:
        """Whether there is no reason to skip something; a reason is counted."""
        if reason is not None:
            self.skipped.add(reason)
        return reason is None


def _is_ignored(path: str, ignores: Ignores, by_ncsignore: bool | None) -> bool:
    return ignores.by_gitignore(path) if by_ncsignore is None else by_ncsignore


def _folder_reason(path: str, name: str) -> str | None:
    if name in CACHES:
        return "cache folders"
    if f"/{path}".endswith(_GENERATED_FOLDERS):
        return "generated folders"
    # com/acme/vendor is a package about vendors
    if name not in VENDORED or (name == "vendor" and ("/java/" in path or "/kotlin/" in path)):
        return None
    return "vendored folders"


def _name_reason(path: str) -> str | None:
    return "generated" if GENERATED_NAME.search(path) else "minified" if MINIFIED_NAME.search(path) else None


class FolderFilter:
    """Asks a filter once for each folder on the way to files that come in path order."""

    def __init__(self, prefix: str, ignores: Ignores, filter: Filter) -> None:
        self._prefix, self._ignores, self._filter = prefix, ignores, filter
        self._entered = [""]
        self._rejected: str | None = None

    def enter(self, path: str) -> bool:
        """Whether all folders above this file may be entered."""
        if self._rejected is not None and path.startswith(self._rejected):
            return False
        while not path.startswith(self._entered[-1]):
            self._entered.pop()
        at = len(self._entered[-1])
        while (at := path.find("/", at) + 1) > 0:
            folder = path[:at]
            if not self._filter.folder(self._prefix + folder, self._ignores):
                self._rejected = folder
                return False
            self._entered.append(folder)
        return True


def reason_to_skip(path: str, data: bytes) -> str | None:
    """Why this content is skipped: "binary", "generated", "minified", or None.

    >>> reason_to_skip("a.go", b"// Code generated by stringer; DO NOT EDIT.")
    'generated'
    >>> reason_to_skip("a.go", b"// Print code generated: yes")
    """
    if b"\0" in data[:_BINARY_BYTES]:
        return "binary"
    if is_generated(data):
        return "generated"
    if len(data) > _MINIFIED_FROM and not path.lower().endswith((NOTEBOOK, *PROSE)):
        limit = _LONG_SCRIPT_LINE if path.endswith(_SCRIPTS) else _LONG_LINE
        if len(data) > limit * (data.count(b"\n") + 1):
            return "minified"
    return None


def is_generated(data: bytes) -> bool:
    """Whether a comment (or Java's @Generated) in the first twenty lines says that a program wrote this."""
    head = data[:_HEAD_BYTES].lower()
    if b"generated" not in head and b"do not " not in head:
        return False
    match = _MARKER.search(head)
    return match is not None and head.count(b"\n", 0, match.start()) < _HEAD_LINES


def as_utf8(data: bytes) -> bytes:
    """Without a byte order mark; UTF-16 with a mark becomes UTF-8, everything else stays as it is."""
    if data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError:  # binary that begins by chance like a mark
            return data
    return data
