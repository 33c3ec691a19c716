"""Stack Exchange's Posts.xml, tens of gigabytes of it, as a stream of rows: plain, or straight from its .7z."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from queue import Full, Queue
from types import ModuleType
from typing import Any
from xml.parsers import expat

from ncs.errors import BadInput, MissingExtra

_BLOCK = 1 << 18
_WAITING = 32  # unpacked blocks that may wait to be parsed: that, one row and one decoder are all that is in memory
MEMBER = "Posts.xml"


def read_posts(path: Path) -> Iterator[Mapping[str, str]]:
    """The attributes of every `<row>`, in the file's order; no tree is built, so memory does not grow.

    Raises BadInput where the file is missing, is no Posts.xml or is damaged, MissingExtra for a .7z without py7zr.
    """
    found: list[Mapping[str, str]] = []
    depth: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if not depth and name != "posts":
            raise BadInput(f"{path}: its root is <{name}>, not <posts>; name the Posts.xml of a Stack Exchange dump")
        depth.append(name)
        if name == "row":
            found.append(attributes)

    def declared(*_: object) -> None:
        raise BadInput(f"{path} declares entities, which no dump does; get the file again")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: depth.pop()
    parser.EntityDeclHandler = declared
    try:
        with closing(_blocks(path)) as blocks:
            for block in blocks:
                parser.Parse(block, False)
                yield from found
                found.clear()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise BadInput(f"{path}:{error.lineno}: {expat.ErrorString(error.code)}; get the file again") from None
    yield from found


def _blocks(path: Path) -> Generator[bytes, None, None]:
    if path.suffix == ".7z":
        yield from _unpacked(path, _library())
        return
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
    except OSError as error:
        raise BadInput(f"cannot read {path} ({error.strerror}); name a Posts.xml, plain or .7z") from None


class _Pipe:
    """Where py7zr writes what it unpacks: a queue of few blocks, so that it works no faster than we read."""

    def __init__(self) -> None:
        self.blocks: Queue[bytes | BaseException | None] = Queue(_WAITING)
        self.closed = threading.Event()
        self._written = 0

    def create(self, filename: str) -> _Pipe:
        return self

    def put(self, block: bytes | BaseException | None) -> None:
        while not self.closed.is_set():
            with suppress(Full):
                return self.blocks.put(block, timeout=0.2)
        raise BrokenPipeError  # nobody reads on

    def write(self, data: bytes | bytearray) -> int:
        for start in range(0, len(data), _BLOCK):
            self.put(bytes(data[start : start + _BLOCK]))
        self._written += len(data)
        return len(data)

    def read(self, size: int | None = None) -> bytes:
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        """Blocks are passed on as they come."""

    def size(self) -> int:
        return self._written

    def close(self) -> None:
        """The end is told by the thread that unpacks, which also knows of errors."""


def _unpacked(path: Path, library: ModuleType) -> Iterator[bytes]:
    """The member Posts.xml, unpacked in a thread of its own while it is read."""
    pipe = _Pipe()
    thread = threading.Thread(target=_unpack, args=(path, library, pipe), daemon=True)
    thread.start()
    try:
        while (block := pipe.blocks.get()) is not None:  # the thread always tells its end
            if isinstance(block, BaseException):
                raise block
            yield block
    finally:
        pipe.closed.set()
        thread.join()


def _unpack(path: Path, library: Any, pipe: _Pipe) -> None:
    ended: BaseException | None = None
    try:
        with library.SevenZipFile(path, "r") as archive:
            names = [name for name in archive.getnames() if name.rpartition("/")[2] == MEMBER]
            if names:
                archive.extract(targets=names[:1], factory=pipe)
            else:
                ended = BadInput(f"{path} holds no {MEMBER}; name the archive with the posts")
    except FileNotFoundError:
        ended = BadInput(f"there is no {path}; name a Posts.xml, plain or .7z")
    except BrokenPipeError:
        return
    except Exception as error:  # what py7zr raises on damaged data is anything; the reader tells it
        ended = BadInput(f"{path} is damaged or no .7z ({error!r}); get the file again")
    with suppress(BrokenPipeError):
        pipe.put(ended)


def _library() -> ModuleType:
    try:
        import py7zr
    except ImportError:
        raise MissingExtra(
            "reading .7z needs py7zr; install it with: pip install 'neural-code-search[corpora]', or unpack the file"
        ) from None
    return py7zr
