"""Where the functions of javalang's tree stand: their bytes, by its tokens and the brackets among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ncs.extract.bytewise import Span

_OPEN, _CLOSE = {")": "(", "]": "[", "}": "{"}, {"(": ")", "{": "}"}


class Places:
    """Where tokens stand: javalang gives lines and columns, documents need byte offsets."""

    def __init__(self, text: str, tokens: Sequence[Any]) -> None:
        self._values = [token.value for token in tokens]
        self._numbers = {tuple(token.position): number for number, token in enumerate(tokens)}
        self._starts = []
        lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        end = 0
        for token in tokens:
            start = lines[min(token.position[0], len(lines)) - 1] + token.position[1] - 1
            if not text.startswith(token.value, start):  # escapes like \u0041 shift what follows them
                start = max(end, text.find(token.value, end))
            self._starts.append(start)
            end = start + len(token.value)
        self._bytes = None if text.isascii() else [0, *accumulate(len(c.encode("utf-8", "replace")) for c in text)]

    def of(self, position: Any) -> int | None:
        """The number of the token at a (line, column); None for a position that is none's."""
        return self._numbers.get(tuple(position)) if position else None

    def function(self, at: int, name: str) -> Span | None:
        """Byte range of the method or constructor whose type or name is token `at`: modifiers to closing brace."""
        values = self._values
        while at < len(values) and not (values[at] == name and values[at + 1 : at + 2] == ["("]):
            at += 1
        if at == len(values):
            return None
        brace = self._matching(at + 1)
        while brace < len(values) and values[brace] != "{":
            brace += 1
        return self._span(self._first(at), self._matching(brace))

    def initializer(self, at: int) -> Span | None:
        """Byte range of the static block whose first statement is token `at`; None where it is not one."""
        if self._values[max(at - 2, 0) : at] != ["static", "{"]:
            return None
        return self._span(at - 2, self._matching(at - 1))

    def _span(self, first: int, last: int) -> Span:
        start, end = self._starts[first], self._starts[last] + len(self._values[last])
        return (
            (start, end) if self._bytes is None else (self._bytes[start], self._bytes[min(end, len(self._bytes) - 1)])
        )

    def _matching(self, at: int) -> int:
        opening, closing = self._values[at], _CLOSE[self._values[at]]
        depth = 0
        for number in range(at, len(self._values)):
            depth += (self._values[number] == opening) - (self._values[number] == closing)
            if not depth:
                return number
        return len(self._values) - 1

    def _first(self, at: int) -> int:
        """Back over the type, modifiers and annotations to where the declaration starts."""
        values = self._values
        while at and values[at - 1] not in (";", "{", "}"):
            at -= 1
            if values[at] in (")", "]"):
                opening, depth = _OPEN[values[at]], 1
                closing = values[at]
                while at and depth:
                    at -= 1
                    depth += (values[at] == closing) - (values[at] == opening)
        return at
