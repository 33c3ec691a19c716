from collections.abc import Callable
from typing import final

from tree_sitter import Node

from ncs.types import Field, Tokens

@final
class Names:
    def __init__(self, place: Callable[[bytes], tuple[int, str]]) -> None: ...
    def __call__(self, code: bytes, start: int, end: int, /) -> dict[Field, Tokens]: ...

def tagged(code: bytes | bytearray, letters: bytes, marks: list[tuple[int, list[Node]]], /) -> bytes: ...
def cut(source: bytes, without: bytes | bytearray, start: int, end: int, /) -> tuple[str, bytes, int]: ...
