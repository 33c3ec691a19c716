"""Pairs of two functions of one name: what the documentation of one says, against all of the other, with its own.

A pair of `reading.pairs` asks for a function whose documentation is hidden, as that is the question. People search
functions that have theirs, in other words than they ask: two functions that bear one name and were documented by two
people are such a question and its answer, and need no labels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from corpora.codesearchnet.functions import CodeFunction
from corpora.codesearchnet.reading import SOURCE, functions, question
from corpora.pairs import Pair
from ncs.search.pairs import normalised
from ncs.text.tokens import tokenize

LEAST, MOST = 2, 200
"""Words of a name that says what a function does, and functions of a name that still does."""

Name = tuple[str, tuple[str, ...]]


def name_of(function: CodeFunction) -> Name | None:
    """The language and the words of the bare name in alphabetical order; None for a name of fewer than LEAST."""
    words = sorted(set(tokenize(function.func_name.rpartition(".")[2])))
    return (function.language, tuple(words)) if len(words) >= LEAST else None


def namesakes(folders: Sequence[Path], languages: Sequence[str] = (), *, seed: int = 0) -> Iterator[Pair]:
    """Of every name that several functions of these corpora bear: each asks once and answers once, in drawn order.

    Two that say the same are no pair. Memory holds the functions that have namesakes. Raises BadInput as `functions`.
    """
    often = Counter(name_of(function) for folder in folders for function in functions(folder, languages))
    shared = {name for name, count in often.items() if name is not None and 1 < count <= MOST}
    found: defaultdict[Name, dict[str, CodeFunction]] = defaultdict(dict)
    for folder in folders:
        for function in functions(folder, languages):
            if (name := name_of(function)) is not None and name in shared:
                found[name].setdefault(function.url, function)
    draw = np.random.default_rng(seed)
    for name in sorted(found):
        alike = list(found[name].values())
        yield from _ring([alike[at] for at in draw.permutation(len(alike))])


def _ring(alike: list[CodeFunction]) -> Iterator[Pair]:
    """Every function asks for the next one, the last for the first."""
    for asking, answer in pairwise([*alike, alike[0]]):
        said, code = question(asking), answer.original_string
        if said and code.strip() and normalised(said) != normalised(question(answer)):
            yield Pair(said, code, answer.language, SOURCE, answer.url, split=answer.partition, license=answer.license)
