"""Comments, docstrings and literals: their text without punctuation, and which function a comment belongs to."""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Sequence

from ncs.extract.languages import Language
from ncs.extract.source_bytes import Lines, Span, after_space, blanked
from ncs.types import Field, Tokens

_LEFT, _RIGHT = " \t\r\f/*#-!|", " \t\r\f/*#-"
_INLINE_TAG = re.compile(r"\{@\w+\b[ \t]*(?![ \t])([^{}]*)\}")  # {@link Foo#bar label}
_BLOCK_TAG = re.compile(r"^[ \t/*#-]*[@\\][a-zA-Z]+", re.MULTILINE)  # @param, @return, Doxygen's \param
_BRACKETS = re.compile(
    r'^(?:=begin|--\[=*\[|\{-|@[a-z]+[ \t(]*(?:~[sS])?"{1,3})|(?:=end|\]=*\]|-\}|"{1,3}\)?)\s*$'
)  # around a comment of Ruby, Lua, Haskell, an attribute of Elixir
_OPENING, _CLOSING = ("=begin", "--[", "{-", "@"), ("=end", "]", "-}", '"', '")')
_XML_NAME = re.compile(r'<\w+ (?:cref|name|langword|href)="([^"]*)" ?/>')  # <see cref="View"/> of C#
_LONG_NUMBER = re.compile(r"&#\d{9,};?")  # of no character; int() rejects thousands of digits
_HTML = re.compile(r"</?[a-zA-Z][^<>]*>|<!--|-->")


def clean_comment(comment: str) -> str:
    """A comment's text: marks, Javadoc tags and HTML taken off, lines kept.

    >>> clean_comment("/** Hides {@link Keyboard}. <p>\\n  * @param view the <b>view</b>\\n  */")
    'Hides Keyboard.\\nview the view'
    >>> clean_comment("// TODO: later")
    'TODO: later'
    >>> clean_comment("--[[ Lua ]]"), clean_comment("{- | Haskell -}"), clean_comment("//! Rust")
    ('Lua', 'Haskell', 'Rust')
    """
    if comment[0] in "=-{@" and (comment.startswith(_OPENING) or comment.rstrip().endswith(_CLOSING)):
        comment = _BRACKETS.sub("", comment)
    comment = _BLOCK_TAG.sub("", _INLINE_TAG.sub(r"\1", comment))
    if "<" in comment:  # "-->" alone is an arrow
        comment = _HTML.sub("", _XML_NAME.sub(r"\1", comment))
    comment = html.unescape(_LONG_NUMBER.sub("", comment) if "&#" in comment else comment)
    return "\n".join([line for raw in comment.split("\n") if (line := raw.lstrip(_LEFT).rstrip(_RIGHT))])


def unquote(literal: str) -> str:
    r"""A string literal's contents as written, without quotes.

    >>> unquote('"a"'), unquote('""'), unquote('plain')
    ('a', '', 'plain')
    """
    if literal[:1] not in ("'", '"'):
        return literal
    width = 3 if len(literal) >= 6 and literal[:3] == literal[-3:] == literal[0] * 3 else 1
    return literal[width:-width]


_FIELD_LIST = re.compile(r"^[ \t]*:[a-z]+(?::[ \t]*|[ \t]+(?![ \t])(?=[^:\n]*:))", re.MULTILINE)  # :param name: text


def clean_docstring(literal: str) -> str:
    r"""A docstring's text, lines kept, without quotes and the tags of field lists.

    >>> clean_docstring('r"Opens it.\n\n    :param path: where\n    :returns: it"')
    'Opens it.\npath: where\nit'
    """
    text = unquote(literal.lstrip("rRuU"))
    if ":" in text:
        text = _FIELD_LIST.sub("", text)
    return "\n".join(filter(None, map(str.strip, text.splitlines())))


_LICENSE = re.compile(rb"copyright|licen[cs]e|all rights reserved", re.IGNORECASE)


class Comments:
    """The comments and docstrings of a file, and which of them describe which function, class or top level."""

    def __init__(self, source: bytes, comments: list[Span], docstrings: list[Span], language: Language) -> None:
        """comments and docstrings: sorted."""
        self._source, self._doc_prefixes = source, tuple(prefix.encode() for prefix in language.doc_comment)
        self._docstrings = {start for start, _ in docstrings}
        self.spans = sorted(comments + docstrings) if docstrings else comments
        self.lines = Lines(source)
        self.code = blanked(source, self.spans)
        """The source with comments and docstrings blanked out."""
        self._starts = [start for start, _ in self.spans]
        self._texts: dict[int, str] = {}  # by number: all functions around a comment ask for it

    def describe(self, start: int, end: int, inner: int, words: dict[Field, Tokens]) -> None:
        """Add `doc`, what documents a function, and `comments`, other comments inside it or directly above.

        inner: where the next function starts: a docstring behind that is not its own.
        """
        doc, comments = self._above(start)
        first = bisect_left(self._starts, start)
        for i in range(first, bisect_left(self._starts, end, first)):
            own = self._starts[i] in self._docstrings and self._starts[i] < inner
            (doc if own else comments).append(self._text(i))
        _add(words, "doc", doc)
        _add(words, "comments", comments)

    def describe_outline(
        self, start: int, free: Sequence[Span], inner: set[int], docs: Sequence[str], words: dict[Field, Tokens]
    ) -> None:
        """Add `doc` and `comments` of a class that starts at `start`, or of the top level (-1).

        free: its own ranges. inner: where functions and classes in it start; comments above these are theirs.
        docs: its docstrings.
        """
        doc, comments = self._above(start)
        for a, b in free:
            first = bisect_left(self._starts, a)
            for i in range(first, bisect_left(self._starts, b, first)):
                span = self.spans[i]
                own = after_space(self._source, span[1]) not in inner and span[0] not in self._docstrings
                if own and not _LICENSE.search(self._source, *span):
                    comments.append(self._text(i))
        _add(words, "doc", [*doc, *docs])
        _add(words, "comments", comments)

    def _above(self, start: int) -> tuple[list[str], list[str]]:
        """The comments directly above a function or class that starts here: its documentation, and others."""
        source = self._source
        doc: list[str] = []
        comments: list[str] = []
        for i in range(bisect_left(self._starts, start) - 1, -1, -1):
            a, b = self.spans[i]
            if after_space(source, b) != start or a in self._docstrings or not self.lines.begins_with(a):
                break  # a comment at the end of a line of code is about that line
            block = source.endswith(b"*/", a, b)
            documents = source.startswith(self._doc_prefixes, a)
            if not (documents and block) and source.count(b"\n", b, start) > 1:
                break  # an empty line below it: a heading, or code commented out
            (doc if documents else comments).append(self._text(i))
            if documents and block:
                break
            start = a
        return doc[::-1], comments[::-1]

    def inside(self, start: int, end: int) -> list[Span]:
        """The comments and docstrings that start in a range."""
        first = bisect_left(self._starts, start)
        return self.spans[first : bisect_left(self._starts, end, first)]

    def _text(self, i: int) -> str:
        if (text := self._texts.get(i)) is None:
            start, end = self.spans[i]
            clean = clean_docstring if start in self._docstrings else clean_comment
            text = self._texts[i] = clean(self._source[start:end].decode("utf-8", "replace"))
        return text


def _add(words: dict[Field, Tokens], field: Field, texts: Sequence[str]) -> None:
    if some := tuple(filter(None, texts)):
        words[field] = some
