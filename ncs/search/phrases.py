"""Phrases, the words in double quotes: which documents have them verbatim, in code, comments or literals.

Case, white space and line breaks in comments and literals are ignored; a phrase begins and ends with whole words or
parts of names. Only candidates are read, and the documents that have most of its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.arrays import both, top_rows
from ncs.storage.documents import Documents
from ncs.text.stems import stem_all
from ncs.text.tokens import literal_tokens

if TYPE_CHECKING:
    from ncs.storage.postings import Postings
    from ncs.storage.snapshot import Snapshot
    from ncs.types import Mask, Rows, Scores

MAX_READ = 400
"""Documents read beside the candidates: 30 ms of CPU time."""
_GAP = r"""(?:[ \t"'`+.\\]*\n[\s#/*;!+-]*(?:[a-z]{0,2}["'`])?|\s+)"""
"""White space, or a line break inside a literal or a comment."""


def places(text: str, phrase: str) -> Iterator[int]:
    """The offsets of a phrase in a text.

    >>> texts = "say('no '\\n  f'such {a}')", "no suchlike", "NO_SUCH", "noSuch"
    >>> [list(places(text, "No such")) for text in texts], list(places("noSuchOption", "such"))
    ([[5], [], [], []], [2])
    """
    lower, pattern = text.lower(), _GAP.join(map(re.escape, phrase.lower().split()))
    for match in re.finditer(pattern, lower if len(lower) == len(text) else text):
        if _is_edge(text, match.start()) and _is_edge(text, match.end()):
            yield match.start()


def _is_edge(text: str, at: int) -> bool:
    """Whether a word or a part of a name begins or ends here."""
    before, after = text[max(at - 1, 0) : at], text[at : at + 1]
    return not (before.isalnum() and after.isalnum()) or (not before.isupper() and after.isupper())


def lines_with(code: str, phrases: Sequence[str]) -> list[int]:
    """The 0-based lines in which phrases begin, in the order of the phrases."""
    return [code.count("\n", 0, start) for phrase in phrases for start in places(code, phrase)]


class PhraseSearch:
    """The phrases of a query in the documents of an index; each document is read once."""

    def __init__(self, phrases: Sequence[str], snapshot: Snapshot) -> None:
        self._phrases, self._snapshot = phrases, snapshot
        self._words = [word for phrase in phrases for word in literal_tokens(phrase)]
        self._shares: dict[int, float] = {}

    def shares(self, rows: Rows) -> Scores:
        """The share of the phrases in each row, [len(rows)]."""
        if not self._phrases:
            return np.zeros(len(rows))
        if unread := [row for row in rows.tolist() if row not in self._shares]:
            with closing(Documents(self._snapshot)) as documents:
                for row, text in zip(unread, documents.texts(unread), strict=True):
                    found = [phrase for phrase in self._phrases if any(True for _ in places(text, phrase))]
                    self._shares[row] = len(found) / len(self._phrases)
        return np.array([self._shares[row] for row in rows.tolist()], np.float64)

    def rows(self, postings: Postings, allowed: Mask | None) -> Rows:
        """The allowed rows with a phrase, ascending, of the MAX_READ that have most of the words, by BM25."""
        if not self._words:
            return np.zeros(0, np.int64)
        stems, held = dict.fromkeys(stem_all(self._words), 1.0), np.zeros(len(postings))
        for stem in stems:
            held[postings.rows_with(stem)] += 1
        live = both(allowed, postings.live)
        rows = np.flatnonzero(held if live is None else held * live)
        scores = postings.scores(stems, rows)
        best, _ = top_rows(rows, held[rows] + scores / (1 + scores.max(initial=0)), MAX_READ)
        return np.sort(best[self.shares(best) > 0])
