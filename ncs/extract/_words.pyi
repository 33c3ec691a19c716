from collections.abc import Callable
from typing import final

from ncs.extract.documents import Function
from ncs.types import Document, Field, Tokens

@final
class Names:
    def __init__(self, place: Callable[[bytes], tuple[int, str]], ignored: frozenset[str] = ...) -> None: ...
    def __call__(self, code: bytes, start: int, end: int, /) -> dict[Field, Tokens]: ...

def tagged(code: bytes | bytearray, letters: bytes, marks: list[tuple[int, list[tuple[int, int]]]], /) -> bytes: ...
def cut(source: bytes, without: bytes | bytearray, start: int, end: int, /) -> tuple[str, bytes, int]: ...
def documents(
    kind_of_document: type[Document],
    functions: list[Function],
    describe: Callable[[int, int, int, dict[Field, Tokens]], None] | None,
    digest: Callable[[bytes], bytes],
    repository: str,
    path: str,
    language: str,
    source: bytes,
    without: bytes | bytearray,
    /,
) -> list[Document]: ...
def marked(code: bytes, /) -> bytes: ...
