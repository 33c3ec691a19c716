"""Questions without answers, for a teacher: those of a file, or what an index's functions say of themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.progress import Track, silent
from ncs.search.pairs import normalised, read_questions
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from ncs.types import FIELDS

if TYPE_CHECKING:
    from ncs.index import Index
    from ncs.types import Document

OWN = Path("own")
"""In place of a file: the index's own functions."""
LEAST, LONGEST = 2, 25
"""Words of a question that are not grammar, at least; words of a comment's sentence, at most."""
SAID = 3
"""Words of a comment that is asked for, at least."""
NAME = range(2, 7)
"""Words of a name that is a question."""
MOST = 4_000
"""Own questions of each kind: comments, names."""
BLOCK = 1_000


def asked(
    files: Iterable[Path], index: Index, left_out: frozenset[str], *, seed: int = 0, track: Track = silent
) -> Iterator[tuple[int, str]]:
    """(place of the file, question), every wording once, none of `left_out`, which holds normalised ones."""
    seen = set(left_out)
    for place, file in enumerate(files):
        if file == OWN:
            yield from ((place, text) for text in own(index, seen, seed=seed, track=track))
        else:
            yield from ((place, text) for text in read_questions(file) if _new(text, seen))


def own(index: Index, seen: set[str], *, most: int = MOST, seed: int = 0, track: Track = silent) -> Iterator[str]:
    """First sentences of comments, then names in words, of functions that the seed draws; `most` of each at most.

    seen: normalised questions that are not asked again; these are added to it.
    """
    draw, words = np.random.default_rng(seed), index.words()
    at = FIELDS.index("doc") + len(FIELDS) * np.arange(len(words))
    said = words.offsets[at + 1] - words.offsets[at] >= SAID
    commented = draw.permutation(np.flatnonzero(said & index.functions()))
    named = draw.permutation(np.flatnonzero(index.functions()))
    for rows, question in ((commented, _sentence), (named, _name)):
        found = 0
        for start in track(range(0, len(rows), BLOCK), "own questions", total=-(-len(rows) // BLOCK), unit="parts"):
            for document in index.store.documents(rows[start : start + BLOCK].tolist()):
                if found < most and (text := question(document)) and _new(text, seen):
                    found += 1
                    yield text
            if found == most:
                break


def _new(text: str, seen: set[str]) -> bool:
    """Whether a question says enough and is not in `seen`, to which it is added."""
    key = normalised(text)
    if key in seen or len(set(content_words(tokenize(text)))) < LEAST:
        return False
    seen.add(key)
    return True


def _sentence(document: Document) -> str:
    """The first sentence of its comment, cut at LONGEST words."""
    comment = " ".join(document.words.get("doc", ())).strip()
    return " ".join(re.split(r"(?<=[.!?:])\s|\n\s*\n", comment)[0].split()[:LONGEST])


def _name(document: Document) -> str:
    """Its name in words, "" for one of too few or too many."""
    words = tokenize(document.name)
    return " ".join(words) if len(words) in NAME else ""
