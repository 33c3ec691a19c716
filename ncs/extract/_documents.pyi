from collections.abc import Callable

from ncs.extract.documents import Function
from ncs.types import Document, Field, Tokens

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
