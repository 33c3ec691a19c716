"""Functions, classes and what else makes a scope, put together from what a query captured."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncs.extract.bytewise import Span, after_space

if TYPE_CHECKING:
    from ncs.extract.captures import Found
    from ncs.extract.documents import Function
    from ncs.extract.languages import Language

Container = tuple[int, int, str, str]
"""Start, end, kind (CLASS, or empty for what is no document) and name."""

CLASS = "class"


def containers_of(source: bytes, found: Found, row: Language) -> list[Container]:
    """Functions, classes and what else makes a scope (with an empty kind), the enclosing before the enclosed."""
    decorated: dict[int, int] = {}
    if "decorated" in found:
        starts = ([start for start, _ in found[what]] for what in ("decorated.definition", "decorated"))
        decorated = dict(zip(*starts, strict=False))
    preambles = {after_space(source, end): start for start, end in found.get("preamble", ())}
    containers = []
    for kind in (*row.kinds, "class", "scope"):
        if kind not in found:
            continue
        nodes, names = found[kind], found.get(f"{kind}.name", [])
        if len(names) != len(nodes):  # a node in error may have two, a kind may have none
            names = _paired(nodes, names)
        for (start, end), (a, b) in zip(nodes, names, strict=True):
            name = source[a:b].decode("utf-8", "replace") or kind
            if not name[0].isalpha():
                name = _bare(name) or kind
            while preambles and start in preambles:
                start = preambles[start]
            if kind in ("class", "scope"):
                containers.append(
                    (start, -end, CLASS if kind == CLASS else "", name.partition("<")[0].rpartition(".")[2].strip())
                )
            else:
                containers.append((decorated.get(start, start) if decorated else start, -end, kind, name))
    containers.sort()
    found_in_order = [(start, -minus_end, kind, name) for start, minus_end, kind, name in containers]
    return _joined(source, found_in_order) if row.equations else found_in_order


def _bare(name: str) -> str:
    """A name without the quotes that it may stand in, or the colon of a Ruby symbol."""
    if name[:1] in ("'", '"', "`") and name[-1] == name[0]:
        return name[1:-1]
    return name[1:] if name[:1] == ":" and name[1:2].isalpha() else name


def _joined(source: bytes, containers: list[Container]) -> list[Container]:
    """Functions that are written as several equations, one below the other, made one each."""
    joined: list[Container] = []
    open_ends: dict[int, int] = {}
    for start, end, kind, name in containers:
        number = open_ends.pop(start, -1)
        if number >= 0 and kind and joined[number][2:] == (kind, name):
            joined[number] = (joined[number][0], end, kind, name)
        else:
            number = len(joined)
            joined.append((start, end, kind, name))
        open_ends[after_space(source, end)] = number
    return joined


def _paired(nodes: list[Span], names: list[Span]) -> list[Span]:
    """For every node the first name that starts in it and is not taken."""
    left = iter(names)
    return [next((name for name in left if name[0] >= start), (start, start)) for start, _ in nodes]


def docstrings_of(functions: Sequence[Function], docs: Sequence[Span]) -> dict[int, int]:
    """Function number -> where its docstring starts: it is the innermost function's that holds it."""
    found: dict[int, int] = {}
    starts = [function.start for function in functions] if docs else []
    for start, _ in docs:
        number = bisect_left(starts, start) - 1
        while number >= 0 and functions[number].end <= start:
            number -= 1
        if number >= 0:
            found.setdefault(number, start)
    return found
