from typing import final

@final
class Reader:
    def __init__(
        self,
        grammar: object,
        symbols: int,
        fields: int,
        captures: tuple[str, ...],
        patterns: tuple[tuple[object, object], ...],
        /,
    ) -> None: ...
    def __call__(
        self, source: bytes, id: int, start: int, end: int, descendants: int, /
    ) -> dict[str, list[tuple[int, int]]] | None: ...
