"""Words in double quotes: which documents have them as they stand, in their code, comments or literals.

Case and white space do not count, nor where a comment or a literal is broken over lines; a phrase begins and ends with
whole words. Only candidates are read, and the documents that have most of its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.arrays import both, top_rows
from ncs.storage.documents import Documents
from ncs.text.stems import stem_all
from ncs.text.tokens import literal_tokens
from ncs.types import Field

if TYPE_CHECKING:
    from ncs.storage.postings import Postings
    from ncs.storage.snapshot import Snapshot
    from ncs.types import Document, Mask, Rows, Scores

MOST_READ = 400
"""Documents with words of the phrases that are read beside the candidates: 400 take 30 ms."""
_TEXTS: tuple[Field, ...] = ("doc", "comments", "literals")
"""Fields of which parts may stand outside of a document's code, or not as they read."""
_GAP = r"""(?:[ \t"'`+.\\]*\n[\s#/*;!+-]*(?:[a-zA-Z]{0,2}["'`])?|\s+)"""
"""What may stand between two words: white space, or a line break with what ends and begins a literal or a comment."""


def pattern(phrase: str) -> re.Pattern[str]:
    """The pattern of a phrase in texts in lower case.

    >>> [bool(pattern("No such").search(text)) for text in ("say('no '\\n  f'such {a}')", "no suchlike")]
    [True, False]
    """
    words = phrase.lower().split()
    begin = r"(?<![^\W_])" if words[0][0].isalnum() else ""
    end = r"(?![^\W_])" if words[-1][-1].isalnum() else ""
    return re.compile(begin + _GAP.join(map(re.escape, words)) + end)


def lines_with(code: str, phrases: Sequence[str]) -> list[int]:
    """The 0-based lines of the code in which phrases begin, in their order."""
    lower = code.lower()
    return [lower.count("\n", 0, match.start()) for each in phrases for match in pattern(each).finditer(lower)]


def has(document: Document, phrase: re.Pattern[str]) -> bool:
    """Whether a document has the phrase in its name, code, comments or literals."""
    texts = (text for field in _TEXTS for text in document.words.get(field, ()))
    return any(phrase.search(text.lower()) for text in (document.qualified_name, document.code, *texts))


class PhraseSearch:
    """The phrases of one query in the documents of an index, each of which is read once."""

    def __init__(self, phrases: Sequence[str], snapshot: Snapshot) -> None:
        self._patterns, self._snapshot = [pattern(phrase) for phrase in phrases], snapshot
        self._words = [word for phrase in phrases for word in literal_tokens(phrase)]
        self._shares: dict[int, float] = {}

    def shares(self, rows: Rows) -> Scores:
        """The share of the phrases that each row has, [len(rows)]."""
        if not self._patterns:
            return np.zeros(len(rows))
        if unread := [row for row in rows.tolist() if row not in self._shares]:
            with closing(Documents(self._snapshot)) as documents:
                for row, document in zip(unread, documents.documents(unread), strict=True):
                    self._shares[row] = sum(has(document, each) for each in self._patterns) / len(self._patterns)
        return np.array([self._shares[row] for row in rows.tolist()], np.float64)

    def rows(self, postings: Postings, allowed: Mask | None) -> Rows:
        """The allowed rows with a phrase, ascending, of the MOST_READ that have most of the words, by BM25."""
        if not self._words:
            return np.zeros(0, np.int64)
        stems, held = dict.fromkeys(stem_all(self._words), 1.0), np.zeros(len(postings))
        for stem in stems:
            held[postings.rows_with(stem)] += 1
        live = both(allowed, postings.live)
        rows = np.flatnonzero(held if live is None else held * live)
        scores = postings.scores(stems, rows)
        best, _ = top_rows(rows, held[rows] + scores / (1 + scores.max(initial=0)), MOST_READ)
        return np.sort(best[self.shares(best) > 0])
