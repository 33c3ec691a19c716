"""The comments and docstrings of a file, and which of them speak about which function, class or top level."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncs.extract.bytewise import Span, after_space, blanked
from ncs.extract.comments import clean_comment, clean_docstring

if TYPE_CHECKING:
    from ncs.extract.languages import Language
    from ncs.types import Field, Tokens

_LICENCE = re.compile(rb"copyright|licen[cs]e|all rights reserved", re.IGNORECASE)


class Comments:
    """The comments and docstrings of a file, and which of them speak about which function."""

    def __init__(self, source: bytes, comments: list[Span], docstrings: list[Span], row: Language) -> None:
        """comments and docstrings: sorted."""
        self._source, self._marks = source, tuple(mark.encode() for mark in row.doc_comment)
        self._docstrings = {start for start, _ in docstrings}
        self.spans = sorted(comments + docstrings) if docstrings else comments
        self.without = blanked(source, self.spans)
        self._starts = [start for start, _ in self.spans]
        self._texts: dict[int, str] = {}

    def describe(self, start: int, end: int, docstring: int, words: dict[Field, Tokens]) -> None:
        """Add `doc`, what documents a function, and `comments`, what stands inside it or plainly above."""
        starts = self._starts
        i = bisect_left(starts, start)
        above = self._is_above(i - 1, start)
        if not above and (i == len(starts) or starts[i] >= end):
            return
        doc: list[str] = []
        comments: list[str] = []
        if above:
            self._look_up(start, i - 1, doc, comments)
        while i < len(starts) and starts[i] < end:
            (doc if starts[i] == docstring else comments).append(self._text(i))
            i += 1
        if doc and (kept := tuple(filter(None, doc))):
            words["doc"] = kept
        if comments and (kept := tuple(filter(None, comments))):
            words["comments"] = kept

    def outline(
        self, start: int, free: Sequence[Span], inner: set[int], docs: Sequence[str], words: dict[Field, Tokens]
    ) -> None:
        """Add `doc` and `comments` of what stands outside functions: a class that starts at `start`, or the top level.

        free: its own ranges; a comment above something else (`inner`: where that starts) is that one's.
        """
        doc: list[str] = []
        comments: list[str] = []
        above = bisect_left(self._starts, start) - 1
        if self._is_above(above, start):
            self._look_up(start, above, doc, comments)
        for a, b in free:
            first = bisect_left(self._starts, a)
            for i in range(first, bisect_left(self._starts, b, first)):
                span = self.spans[i]
                ours = after_space(self._source, span[1]) not in inner and span[0] not in self._docstrings
                if ours and not _LICENCE.search(self._source, *span):
                    comments.append(self._text(i))
        if doc or docs:
            words["doc"] = (*filter(None, doc), *docs)
        if kept := tuple(filter(None, comments)):
            words["comments"] = kept

    def _is_above(self, i: int, start: int) -> bool:
        """Does nothing but space part a comment, the last before it, from what starts there?"""
        return i >= 0 and after_space(self._source, self.spans[i][1]) == start

    def _look_up(self, start: int, i: int, doc: list[str], comments: list[str]) -> None:
        """Comments directly above a function, from the nearest, `i`, upwards."""
        source = self._source
        while True:
            a, b = self.spans[i]
            line_start = source.rfind(b"\n", 0, a) + 1
            if a in self._docstrings or source[line_start:a].strip():
                return  # at the end of a line it is about that line
            block = source.endswith(b"*/", a, b)
            documents = source.startswith(self._marks, a)
            if not (documents and block) and source.count(b"\n", b, start) > 1:
                return  # below an empty line a comment is a heading or old code
            (doc if documents else comments).insert(0, self._text(i))
            if documents and block:
                return
            start = a
            i -= 1
            if not self._is_above(i, start):
                return

    def _text(self, i: int) -> str:
        text = self._texts.get(i)
        if text is None:
            start, end = self.spans[i]
            tidy = clean_docstring if start in self._docstrings else clean_comment
            text = self._texts[i] = tidy(self._source[start:end].decode("utf-8", "replace"))
        return text
