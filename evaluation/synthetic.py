"""Functions that nobody wrote, as many as wanted, with the words, repositories and copies of a real index.

A function is a real one of which some words were exchanged for those that another function of its repository has in the
same field, so that words keep their frequencies (Zipf), fields their lengths and repositories their subjects; its name
is made anew in the same way. New words come as they do in the real index (Heaps: distinct words = a * documents^b) and
stay in their repository. Of exact copies there are as many; one in ten is a near copy. Parts of PART documents are made
from the seed and their number alone: any order, any number of processes, and never all in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.storage.documents import Store, open_store
from ncs.storage.file_roles import Places
from ncs.storage.words import WordTable
from ncs.text.tokens import tokenize
from ncs.types import FIELDS, Document, Field, Tokens

if TYPE_CHECKING:
    from ncs.index import Index

PART = 10_000
"""Documents made at a time, copies not counted."""
MEDIAN, SPREAD = 150, 1.3
"""Functions a repository, log-normal: 350 on average; the published corpus of 4.7 million has 190."""
NEAR, NEAR_RATE, RATES = 0.1, 0.04, (0.25, 0.75)
"""The share of near copies, the share of their words that is exchanged, and of others' words."""
KEPT_NAME = 0.2
"""The share of names that are not made anew: there is many an `onCreate`."""
USES = 3
"""How many functions of its repository a new word comes to stand in, on average."""
PROSE: frozenset[Field] = frozenset(("doc", "comments", "literals"))
KEPT: frozenset[Field] = frozenset(("name", "path"))
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True, slots=True)
class Source:
    """A real index to draw from.

    data: the folder of its files. repositories: first row and end of each. copies: the share of all functions that
    are exact copies. growth: a and b of Heaps' law; words: how many it has.
    """

    data: Path
    repositories: tuple[tuple[int, int], ...]
    copies: float
    growth: tuple[float, float]
    words: int

    @classmethod
    def of(cls, index: Index) -> Source:
        """Measured on it; raises BadInput where it keeps no code, or is too small to measure anything."""
        places, words, total = Places.load(index.data), WordTable.load(index.data), len(index)
        if total < 100 or not index.store.document(0).words:
            raise BadInput(f"{index.folder} keeps no code or fewer than 100 functions; build another one to draw from")
        owners = places.repository[places.file]
        edges = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), total]
        half, whole = (_distinct(words, n) for n in (total // 2, total))
        power = min(1.0, max(0.1, math.log2(whole / half)))
        copies = int(index.store.counts.get("copies", 0))
        growth = (whole / total**power, power)
        return cls(index.data, tuple(pairwise(edges)), copies / (copies + total), growth, whole)

    def new_words(self, documents: int) -> float:
        """New words a document, when there are so many; none before what is drawn from is used up."""
        a, b = self.growth
        return a * b * documents ** (b - 1) if a * documents**b >= self.words else 0.0


def _distinct(words: WordTable, documents: int) -> int:
    return len(np.unique(words.ids[: words.offsets[documents * len(FIELDS)]]))


def parts(functions: int) -> list[tuple[int, int]]:
    """Number and size of the parts of a corpus.

    >>> parts(25_000)
    [(0, 10000), (1, 10000), (2, 5000)]
    """
    return [(n, min(PART, functions - n * PART)) for n in range(-(-functions // PART))]


def make(source: Source, number: int, size: int, seed: int) -> list[Document]:
    """One part: `size` documents and copies of some; the same for the same numbers."""
    rng = Random(f"{seed}/{number}")  # noqa: S311 - nothing here is secret
    made: list[Document] = []
    distinct, owner = 0, 0
    with open_store(source.data) as store:
        while distinct < size:
            real = drawn_from(source, store, rng, size - distinct)
            repository = _Repository(f"synth-{number:05}-{owner:03}", real, source.new_words(number * PART + 1), rng)
            owner += 1
            for document in real:
                if made and rng.random() < source.copies:
                    made.append(repository.copied(document, made[rng.randrange(len(made))]))
                else:
                    made.append(repository.made(document))
                    distinct += 1
    return made


def drawn_from(source: Source, store: Store, rng: Random, most: int) -> list[Document]:
    """Functions of one real repository that stand side by side; large ones are drawn from more often."""
    at = rng.randrange(source.repositories[-1][1])
    start, end = next(each for each in source.repositories if at < each[1])
    size = max(1, min(most, end - start, int(rng.lognormvariate(math.log(MEDIAN), SPREAD))))
    first = min(at, end - size)
    return store.documents(range(first, first + size))


class _Repository:
    """Makes the functions of one repository."""

    def __init__(self, name: str, real: Sequence[Document], new_words: float, rng: Random) -> None:
        self.name, self._real, self._rng = name, real, rng
        expected = new_words * len(real)
        count = int(expected) + (rng.random() < expected % 1)
        self._new = [invented(rng) for _ in range(count)]
        self._use = min(1.0, USES * new_words)
        self._folder = invented(rng) if rng.random() < new_words else rng.choice(real).name[:20] or "main"

    def copied(self, place: Document, other: Document) -> Document:
        """An exact copy of another one, where this one would stand."""
        id, path = self._placed(place)
        return replace(other, id=id, repository=self.name, path=path)

    def made(self, real: Document) -> Document:
        """A function like this one."""
        rng = self._rng
        donor = self._real[rng.randrange(len(self._real))]
        rate = NEAR_RATE if rng.random() < NEAR else rng.uniform(*RATES)
        id, path = self._placed(real)
        name = real.name if rate == NEAR_RATE or rng.random() < KEPT_NAME else self._renamed(real, donor, rate)
        words = {
            field: spellings if field in KEPT else self._mixed(field, spellings, donor.words.get(field, ()), rate)
            for field, spellings in real.words.items()
        }
        words |= {field: value for field, value in (("name", (name,)), ("path", (path,))) if field in words}
        if self._new and rng.random() < self._use:
            words["identifiers"] = (*words.get("identifiers", ()), rng.choice(self._new))
        code = self._code(real, donor, name, rate)
        digest = blake2b(repr((name, words)).encode("utf-8", "replace"), digest_size=16).digest()
        scope = real.qualified_name[: len(real.qualified_name) - len(real.name)]
        return replace(
            real, id=id, repository=self.name, path=path, name=name, qualified_name=scope + name, words=words,
            code=code, digest=digest, copies=(),
        )  # fmt: skip

    def _placed(self, real: Document) -> tuple[str, str]:
        """The id and the path of what stands here in its place."""
        path = f"{self._folder}/{real.path}"
        suffix = real.id[len(real.repository) + 1 + len(real.path) :]
        return f"{self.name}/{path}{suffix}", path

    def _mixed(self, field: Field, ours: Tokens, theirs: Tokens, rate: float) -> Tokens:
        """Every spelling, or in prose every word, stays or gives way to one of the other function's."""
        if not theirs:
            return ours
        if field in PROSE:
            others = " ".join(theirs).split()
            return tuple(" ".join(self._exchanged(text.split(" "), others, rate)) for text in ours)
        return tuple(self._exchanged(ours, theirs, rate))

    def _exchanged(self, ours: Sequence[str], theirs: Sequence[str], rate: float) -> list[str]:
        random, n = self._rng.random, len(theirs)
        return [theirs[int(random() * n)] if n and random() < rate else each for each in ours]

    def _renamed(self, real: Document, donor: Document, rate: float) -> str:
        """Of words of both names; with one of the other's more where that is no other name."""
        ours, theirs = tokenize(real.name), tokenize(donor.name)
        if not ours:
            return real.name
        if self._new and self._rng.random() < self._use:
            theirs = [self._rng.choice(self._new)]
        mixed = self._exchanged(ours, theirs, rate)
        if mixed == ours and theirs:
            mixed.append(self._rng.choice(theirs))
        if "_" in real.name:
            return "_".join(mixed)
        first = mixed[0].capitalize() if real.name[:1].isupper() else mixed[0]
        return first + "".join(word.capitalize() for word in mixed[1:])

    def _code(self, real: Document, donor: Document, name: str, rate: float) -> str:
        """Its lines, half as many of them exchanged as words are."""
        lines = self._exchanged(real.code.split("\n"), donor.code.split("\n"), rate / 2)
        return "\n".join(lines).replace(real.name, name) if real.name else "\n".join(lines)


def invented(rng: Random) -> str:
    """A word of three to five syllables: 343,000 and more."""
    return "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.randint(3, 5)))


def stream(source: Source, functions: int, seed: int = 0) -> Iterator[Document]:
    """The whole corpus, one part at a time in memory."""
    for number, size in parts(functions):
        yield from make(source, number, size, seed)
