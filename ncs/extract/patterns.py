"""Queries of tree-sitter compiled to steps: what a node and those below it must be, and what is captured of them.

The compiled reader of trees (_tree.c) matches them. Of the language of queries only what ours use is known: nodes,
fields and missing ones, alternatives, anchors, captures and conditions on their text; no repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

_WORD = re.compile(r';[^\n]*|\s+|("(?:[^"\\]|\\.)*"|@[\w.]+|#[\w-]+\?|!\w+|\w+:|[()\[\].]|\w+)|(.)')
_IMMEDIATE, _LAST = 1, 2
_ANY_NAMED, _ANY = -1, -2
_ONE_OF, _NONE_OF, _FOUND, _NOT_FOUND = range(4)
_ASKED = {"eq": _ONE_OF, "any-of": _ONE_OF, "not-eq": _NONE_OF, "not-any-of": _NONE_OF}
_SEARCHED = {"match": _FOUND, "not-match": _NOT_FOUND}

Condition = tuple[str, str, tuple[str, ...]]
"""What is asked, of which capture, and the strings it is compared with."""


class Grammar(Protocol):
    """What is asked of tree_sitter.Language."""

    def id_for_node_kind(self, kind: str, named: bool, /) -> int | None:
        """The symbol of a node."""

    def field_id_for_name(self, name: str, /) -> int | None:
        """The number of a field."""


@dataclass(frozen=True, slots=True)
class Step:
    """One node of a pattern; symbol: -1 any with a name, -2 any at all; without: a field that no child has."""

    symbol: int
    field: int = 0
    without: int = 0
    flags: int = 0
    depth: int = 0
    captures: tuple[str, ...] = ()


Steps = tuple[Step, ...]
"""A node, and all below it, each before those below it."""


def compiled(query: str, grammar: Grammar) -> tuple[tuple[str, ...], tuple[tuple[object, object], ...]]:
    """The names of the captures that are told, and the patterns with their conditions, as _tree.c takes them.

    Raises ValueError for what is not known here.
    """
    reading = _Query(query, grammar)
    found = [*reading.patterns()]
    names = sorted({name for steps, _ in found for step in steps for name in step.captures if name[0] != "_"})
    numbers = {name: number for number, name in enumerate(names)}
    return tuple(names), tuple(
        (tuple(_plain(step, numbers) for step in steps), tuple(_condition(one, steps) for one in conditions))
        for steps, conditions in found
    )


def _plain(step: Step, numbers: Mapping[str, int]) -> tuple[object, ...]:
    told = tuple(numbers[name] for name in step.captures if name in numbers)
    return step.symbol, step.field, step.without, step.flags, step.depth, told


def _condition(condition: Condition, steps: Steps) -> tuple[int, int, object]:
    kind, name, values = condition
    number = next(number for number, step in enumerate(steps) if name in step.captures)
    if kind in _SEARCHED:
        return _SEARCHED[kind], number, re.compile(values[0].encode()).search
    return _ASKED[kind], number, tuple(value.encode() for value in values)


class _Query:
    """A query that is being read."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self._words = [match[1] or match[2] for match in _WORD.finditer(text) if match.lastindex] + ["", ""]
        self._at = 0
        self._grammar = grammar
        self._conditions: list[Condition] = []

    def patterns(self) -> Iterable[tuple[Steps, list[Condition]]]:
        """Every pattern, one for each of its alternatives."""
        while self._words[self._at]:
            self._conditions = []
            for steps in self._node():
                yield steps, self._conditions

    def _next(self) -> str:
        self._at += 1
        return self._words[self._at - 1]

    def _is_next(self, word: str) -> bool:
        is_next = self._words[self._at] == word
        self._at += is_next
        return is_next

    def _node(self) -> list[Steps]:
        word = self._next()
        if word == "[":
            found = []
            while not self._is_next("]"):
                found += self._node()
        elif word == "(":
            found = self._round()
        elif word == "_":
            found = [(Step(_ANY),)]
        elif word[:1] == '"':
            found = [(Step(self._symbol(_text(word), named=False)),)]
        elif word[-1:] == ":":
            field = self._field(word[:-1])
            return [(replace(one[0], field=field), *one[1:]) for one in self._node()]
        else:
            raise ValueError(f"{word or 'its end'} stands in a query where nothing of it is known")
        while self._words[self._at][:1] == "@":
            name = self._next()[1:]
            found = [(replace(one[0], captures=(*one[0].captures, name)), *one[1:]) for one in found]
        return found

    def _round(self) -> list[Steps]:
        """What stands in round brackets: a node with those below it, or one node with conditions."""
        root: Steps = ()
        if self._words[self._at] not in ("(", "["):
            name = self._next()
            root = (Step(_ANY_NAMED if name == "_" else self._symbol(name, named=True)),)
        children: list[list[Steps]] = []
        flags = 0
        while not self._is_next(")"):
            if self._is_next("."):
                flags = _IMMEDIATE
            elif self._words[self._at][:1] == "!":
                root = (replace(root[0], without=self._field(self._next()[1:])),)
            elif self._words[self._at + 1][:1] == "#":
                self._conditions.append(self._asked())
            else:
                children.append(_flagged(self._node(), flags))
                flags = 0
        if flags:
            children[-1] = _flagged(children[-1], _LAST)
        if not root:
            return children[0]
        return [(*root, *_below(chosen)) for chosen in product(*children)]

    def _asked(self) -> Condition:
        self._next()
        kind, name = self._next()[1:-1], self._next()[1:]
        values = []
        while not self._is_next(")"):
            values.append(_text(self._next()))
        return kind, name, tuple(values)

    def _symbol(self, kind: str, *, named: bool) -> int:
        symbol = self._grammar.id_for_node_kind(kind, named)
        if symbol is None:
            raise ValueError(f"the grammar has no node {kind}")
        return symbol

    def _field(self, name: str) -> int:
        field = self._grammar.field_id_for_name(name)
        if field is None:
            raise ValueError(f"the grammar has no field {name}")
        return field


def _text(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1])


def _flagged(node: list[Steps], flag: int) -> list[Steps]:
    return [(replace(one[0], flags=one[0].flags | flag), *one[1:]) for one in node] if flag else node


def _below(chosen: Iterable[Steps]) -> Iterable[Step]:
    return (replace(step, depth=step.depth + 1) for one in chosen for step in one)
