"""Source files that nobody wrote, as many functions as wanted, with the names, repositories and copies of a real index.

A function is a real one of Java of which identifiers were exchanged for those of another function of its repository,
outside of what the language itself says, so that it parses as before; its own name is one of those, or made of two. New
words come as in evaluation/synthetic.py. Files of ON_AVERAGE functions lie in a folder a repository. Parts of PART
functions are made from the seed and their number alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from evaluation.synthetic import KEPT_NAME, PART, RATES, USES, Source, drawn_from, invented
from ncs.storage.documents import open_store

if TYPE_CHECKING:
    from ncs.types import Document

ON_AVERAGE = 20
"""Functions a file."""
LEAST_LINES = 5
"""Lines a function has at least: getters and setters alone are a third of all."""
IDENTIFIER = re.compile(r"\b[^\W\d]\w{2,}\b")
RESERVED = frozenset(
    re.findall(
        r"\w+",
        "abstract assert boolean break byte case catch char class const continue default do double else enum extends"
        " final finally float for goto if implements import instanceof int interface long native new package private"
        " protected public return short static strictfp super switch synchronized this throw throws transient try void"
        " volatile while true false null var record yield Override",
    )
)


def write_part(source: Source, folder: Path, number: int, size: int, seed: int) -> int:
    """Write `size` functions, copies among them, below `folder`; the bytes written. The same for the same numbers."""
    rng = Random(f"{seed}/{number}/files")  # noqa: S311 - nothing here is secret
    written, owner, size_bytes = 0, 0, 0
    made: list[str] = []
    with open_store(source.data) as store:
        while written < size:
            real = [each for each in drawn_from(source, store, rng, size - written) if _fits(each)]
            if not real:
                continue
            room = folder / f"made-{number:05}-{owner:03}"
            room.mkdir(parents=True, exist_ok=True)
            maker = _Maker(real, source.new_words(number * PART + 1), rng)
            functions = [
                rng.choice(made) if made and rng.random() < source.copies else maker.made(each) for each in real
            ]
            made += functions
            size_bytes += _write(room, functions, real, rng)
            written, owner = written + len(real), owner + 1
    return size_bytes


def _fits(document: Document) -> bool:
    return document.language == "java" and document.kind == "method" and document.code.count("\n") + 1 >= LEAST_LINES


def _write(room: Path, functions: Sequence[str], real: Sequence[Document], rng: Random) -> int:
    """Classes of functions that follow each other; bytes written."""
    at = total = 0
    while at < len(functions):
        size = rng.randint(1, 2 * ON_AVERAGE - 1)
        scope = re.sub(r"\W", "", real[at].qualified_name.rpartition(".")[0].rpartition(".")[2]) or "Made"
        body = "\n\n".join(functions[at : at + size])
        data = f"package made.of.functions;\n\npublic class {scope} {{\n\n{body}\n}}\n".encode("utf-8", "replace")
        (room / f"{scope}{at}.java").write_bytes(data)
        at, total = at + size, total + len(data)
    return total


class _Maker:
    """Makes the functions of one repository."""

    def __init__(self, real: Sequence[Document], new_words: float, rng: Random) -> None:
        self._real, self._rng = real, rng
        self._names = [_names(each.code) for each in real]
        expected = new_words * len(real)
        self._new = [invented(rng) for _ in range(int(expected) + (rng.random() < expected % 1))]
        self._use = min(1.0, USES * new_words)

    def made(self, real: Document) -> str:
        """The code of a function like this one."""
        rng = self._rng
        donor, rate = rng.choice(self._names), rng.uniform(*RATES)
        if not donor:
            return real.code
        exchanged: dict[str, str] = {}
        for name in _names(real.code):
            if rng.random() < rate:
                exchanged[name] = rng.choice(donor)
        if self._new and exchanged and rng.random() < self._use:
            exchanged[rng.choice(list(exchanged))] = rng.choice(self._new)
        if rng.random() >= KEPT_NAME:
            other = rng.choice(donor)
            exchanged[real.name] = real.name + other[:1].upper() + other[1:]
        return IDENTIFIER.sub(lambda found: exchanged.get(found.group(), found.group()), real.code)


def _names(code: str) -> list[str]:
    """Distinct identifiers and words of comments, in their order."""
    return [name for name in dict.fromkeys(IDENTIFIER.findall(code)) if name not in RESERVED]
