"""Questions without answers, for a teacher: those of a file, or what an index's functions say of themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.progress import Track, silent
from ncs.rankers.pairs import normalised, read_questions
from ncs.stopwords import content_words
from ncs.tokens import tokenize

if TYPE_CHECKING:
    from ncs.index import Index

OWN = Path("own")
"""In place of a file: the index's own functions."""
LEAST, LONGEST = 2, 25
"""Words of a question that are not grammar, at least; words of a comment's sentence, at most."""
NAME = range(2, 7)
"""Words of a name that is a question."""
MOST = 8_000
"""Own questions of each kind: comments, names."""
BLOCK = 1_000


def asked(
    files: Iterable[Path], index: Index, left_out: frozenset[str], *, seed: int = 0, track: Track = silent
) -> Iterator[tuple[int, str]]:
    """(place of the file, question), every wording once, none of `left_out`, which holds normalised ones."""
    seen = set(left_out)
    for place, file in enumerate(files):
        for text in own(index, seed=seed, track=track) if file == OWN else read_questions(file):
            key = normalised(text)
            if key not in seen and len(set(content_words(tokenize(text)))) >= LEAST:
                seen.add(key)
                yield place, text


def own(index: Index, *, most: int = MOST, seed: int = 0, track: Track = silent) -> Iterator[str]:
    """Of functions that the seed draws: first sentences of comments, and names in words; `most` of each at most."""
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(index.functions()))
    sentences, names, seen = most, most, set[str]()
    for start in track(range(0, len(rows), BLOCK), "own questions", total=-(-len(rows) // BLOCK), unit="parts"):
        for document in index.store.documents(rows[start : start + BLOCK].tolist()):
            said, name = sentence(" ".join(document.words.get("doc", ()))), tokenize(document.name)
            if said and said not in seen and sentences:
                sentences -= 1
                seen.add(said)
                yield said
            if len(name) in NAME and (spelled := " ".join(name)) not in seen and names:
                names -= 1
                seen.add(spelled)
                yield spelled
        if not sentences and not names:
            return


def sentence(comment: str) -> str:
    """The first sentence of a comment, cut at LONGEST words.

    >>> sentence("Hides the keyboard. Call it from the UI thread.")
    'Hides the keyboard.'
    """
    return " ".join(re.split(r"(?<=[.!?:])\s|\n\s*\n", comment.strip())[0].split()[:LONGEST])
