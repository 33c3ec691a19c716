"""Stack traces as queries: their frames, innermost first, and the message.

One pattern reads the frames of all languages:

    File "/usr/lib/python3/click/core.py", line 12, in main      at okio.GzipSource.read(GzipSource.kt:92)
    at next (/home/a/node_modules/express/lib/router.js:3:5)     /go/pkg/mod/cobra/command.go:12 +0x1d
    in C:\\src\\Serilog\\Core\\Logger.cs:line 12                    #0 /app/vendor/slim/Slim/App.php(12): run()
    bin/deploy.sh: line 12: jq: command not found                in /app/vendor/slim/Slim/App.php on line 12

Folders above a project differ, so a file of the index is the frame's if the last two parts of their paths are equal, or
all of the shorter one; of several, the one with most equal parts is. A frame without file leads to the definition of
its name (without a class or namespace, only if there is a single one):

    at Serilog.Core.Logger.Write(LogEvent e)                     #2 0x00007ffff7ca90a1 in leveldb::DBImpl::Write ()
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.documents import Documents
from ncs.storage.names import EXACT, QUALIFIED, Symbol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ncs.storage.names import Definitions
    from ncs.storage.snapshot import Snapshot
    from ncs.types import Location, Rows

MAX_FRAMES, PER_LINE = 100, 3
"""Most frames read of a trace, innermost first, and of a line: a recursion has thousands."""
MAX_PLACES = 5
"""Most words of a question that are looked up as paths."""
_NO_PATH = r"""\s"'(),;=<>|"""
_LINE = r"""(?:"?,?(?: on)? line |: ?line |:|\()"""
_FRAME = re.compile(rf"(?<![^{_NO_PATH}])([^{_NO_PATH}]{{1,300}}\.\w{{1,10}}){_LINE}(\d{{1,7}})\b")
_NAMED = re.compile(r"\s*(?:at |#\d{1,4} +(?:0x[0-9a-f]{1,16} in )?)([\w.:+$`~<>]{3,300})(?:\[[\w, ]{1,100}\])? ?\(")
_MENTION = re.compile(
    r"[`\"'(\[@]?(?:path:|file:|filename:)?(?=[\w-]{0,100}[./\\])([\w./\\-]{2,300})(?<!\.)[`\"')\].,;:#?]*(.*)"
)
"""A word that may be a path: it has a dot or a slash."""
_BEFORE_PATH = frozenset({"at", "file", "in", "of", "the", "under", "within"})
"""What tells a file by name alone from a thing that has one: `retry in core.py`, but not `generate main.go`."""
_PACKAGE = re.compile(r"(?:^|[\s/])((?:\w{1,100}\.){1,30})[\w$]{1,200}\.[\w$<>]{1,200}\($")
"""Package, class and method before the file of a frame in Java; the package names the folders of the file."""
_NAME = re.compile(r"\b[^\W\d]\w*")
_PYTEST = re.compile(r"^E {3,}", re.MULTILINE)
_INNERMOST_LAST = re.compile(rf"most recent call last|{_PYTEST.pattern}", re.MULTILINE)
_CAUSE = re.compile(r"\s*(?:Caused by: |\[cause\]: |The above exception was the direct cause)")
"""Between an exception and its cause; the cause ended further inside."""
_NO_MESSAGE = re.compile(r"\s|#\d|Traceback|goroutine \d|stack (?:back)?trace|Thread |from |at ", re.IGNORECASE)
"""The beginnings of lines that are no message."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a file, or the name of a function. path: its parts; text: the line before, which in Go names the
    function, and that of the frame; name: qualified, of a frame without file."""

    path: tuple[str, ...]
    line: int
    text: str
    name: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """The frames of a query, innermost first, and the rest of it."""

    frames: tuple[Frame, ...]
    message: str


def read_trace(text: str) -> Trace:
    r"""The frames of a text, none for most.

    >>> trace = read_trace("panic: no flag\n\nmain.run()\n\t/src/app/main.go:12 +0x1d")
    >>> trace.message, trace.frames[0].path, trace.frames[0].line
    ('panic: no flag', ('src', 'app', 'main.go'), 12)
    >>> read_trace("how to read a file").frames
    ()
    """
    lines, frames, outside = text.splitlines(), list[Frame](), list[Frame]()
    rest: list[str] = []
    for at, line in enumerate(lines):
        if _CAUSE.match(line):
            frames, outside = [], [*frames, *outside]
        matches = list(islice(_FRAME.finditer(line), PER_LINE))
        message = _FRAME.sub("", line)
        if message.strip() and not _NO_MESSAGE.match(line) and not (matches and rest):  # in Lua the first frame has it
            rest.append(message)
        for match in matches:
            parts = re.split(r"[/\\]", match[1].removeprefix("file://"))
            path = tuple(part for part in parts if part not in ("", ".", ".."))
            if len(path) == 1 and path[0].endswith(".java") and (package := _PACKAGE.search(line[: match.start()])):
                path = (*package[1].split(".")[:-1], *path)
            around = "\n".join((lines[at - 1] if at else "", line.replace(match[1], "")))
            frames.append(Frame(path, int(match[2]), around))
        named = None if matches else _NAMED.match(line)
        if named and (name := tuple(filter(None, re.split(r"[.:+$]|`\d+", named[1])))):
            frames.append(Frame((), 0, line, name))
    frames += outside
    if _INNERMOST_LAST.search(text):
        frames.reverse()
    rest = [line for line in rest if _PYTEST.match(line)] or rest
    before = {frame.text.partition("\n")[0] for frame in frames}  # in Go the names of functions
    message = "\n".join(_PYTEST.sub("", line) for line in rest if line not in before or line == rest[0])
    return Trace(tuple(frames[:MAX_FRAMES]), message if frames else text)


class Files:
    """The files of an index. numbers: of each row's file; places: (repository, path) of each number; by_name: file name
    -> numbers."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        with closing(Documents(snapshot)) as documents:
            self.numbers, self.places = documents.files()
        self.by_name: dict[str, list[int]] = defaultdict(list)
        for number, (_, path) in enumerate(self.places):
            self.by_name[path.rpartition("/")[2]].append(number)

    def mentioned(self, text: str) -> tuple[Rows, str]:
        """The rows of the files and folders that a question names, and the rest of it: `retry` of
        `retry in src/http/`. A question for more than a word keeps a file's name, which often says what is in it."""
        kept, names_file, files, places = list[str](), False, list[int](), 0
        for word in text.split():
            match = _MENTION.fullmatch(word) if places < MAX_PLACES else None
            is_place = match and (re.search(r"[/\\:`'\"(\[@]", word) or {*kept[-1:]} & _BEFORE_PATH)
            here = self._named(match[1]) if match and is_place else []
            places += match is not None
            while here and kept and kept[-1].lower() in _BEFORE_PATH:
                kept.pop()
            files += here
            names_file |= bool(here) and "." in word
            kept += filter(None, [match[2] if match and here else word])
        return np.flatnonzero(np.isin(self.numbers, files)), text if names_file and len(kept) > 1 else " ".join(kept)

    def _named(self, path: str) -> list[int]:
        """The numbers of the files that a path names, or of all in the folder that it names."""
        parts = [part for part in re.split(r"[/\\]", path) if part not in ("", ".", "..")]
        if not parts:
            return []
        alike = {number: _alike(parts, *self.places[number]) for number in self.by_name.get(parts[-1], ())}
        if most := max(alike.values(), default=0):
            return [number for number, equal in alike.items() if equal == most]
        folder = f"/{'/'.join(parts)}/"
        return [number for number, (_, place) in enumerate(self.places) if "/" in path[1:] and folder in f"/{place}"]

    def rows_of(self, trace: Trace, definitions: Definitions) -> Rows:
        """The distinct functions of a trace's frames (`_function_of`), innermost first."""
        rows: dict[int, None] = {}
        with closing(Documents(self._snapshot)) as documents:
            for frame in trace.frames:
                if frame.name:
                    rows |= dict.fromkeys(_defining_rows(frame.name, definitions))
                    continue
                named = self.by_name.get(frame.path[-1], ())
                alike = {number: _alike(frame.path, *self.places[number]) for number in named}
                most = max(alike.values(), default=0)
                files = [number for number, parts in alike.items() if parts == most > 0]
                here = np.flatnonzero(np.isin(self.numbers, files))
                if len(here):
                    best = _function_of(frame, documents.locations(here.tolist()))
                    rows |= {} if best is None else {int(here[best]): None}
        return np.array(list(rows), np.int64)


def _defining_rows(name: Sequence[str], definitions: Definitions) -> list[int]:
    """The definitions of a qualified name, all overloads; of a bare name only a single one."""
    *scopes, own = name
    if scopes and own.strip("<>") in ("ctor", "init"):
        own = scopes[-1]
    rows, weights = definitions.match(Symbol(own, tuple(scopes)))
    exact: list[int] = rows[weights >= (EXACT + QUALIFIED if scopes else EXACT)].tolist()
    return exact if scopes or len(exact) == 1 else []


def lines_of(trace: Trace, location: Location) -> list[int]:
    """The lines of frames in a function, innermost first; frames that name the function before others."""
    name = re.compile(rf"(?<!\w){re.escape(location.qualified_name.rpartition('.')[2])}(?!\w)")
    frames = sorted(trace.frames, key=lambda frame: not name.search(frame.text))
    lines = (frame.line for frame in frames if _alike(frame.path, location.repository, location.path))
    return [line for line in lines if location.start_line <= line <= location.end_line]


def _alike(frame: Sequence[str], repository: str, path: str) -> int:
    """How many parts at their ends are equal; 0 for too few."""
    parts = f"{repository}/{path}".split("/")
    pairs = zip(reversed(frame), reversed(parts), strict=False)
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return equal if equal >= min(2, len(frame), path.count("/") + 1) else 0


def _function_of(frame: Frame, locations: Sequence[Location]) -> int | None:
    """The position of the frame's function; None if no location has its name or its line.

    Lines move from release to release, names seldom do: what the frame's own line names, or the one before where that
    names nothing, is preferred to what has its line, a function to its class.
    """
    before, line = frame.text.split("\n")
    own, words = set(_NAME.findall(line)) - {"at", "File", "line", "in"}, set(_NAME.findall(frame.text))
    own = own or (set() if _FRAME.search(before) else words)

    def fit(at: int) -> tuple[int, bool, bool, int, int]:
        location = locations[at]
        inside = location.start_line <= frame.line <= location.end_line
        name = re.split(r"\W+", location.qualified_name.rstrip("!?="))
        named, shared = name[-1] in words, sum(part in own for part in set(name)) if name[-1] in own else 0
        length = location.end_line - location.start_line
        near = -length if inside else -abs(location.start_line - frame.line)
        folders = sum(part in words for part in location.path.split("/"))
        return shared, inside and named, inside or named, folders, near

    best = max(range(len(locations)), key=fit)
    return best if fit(best)[2] else None
