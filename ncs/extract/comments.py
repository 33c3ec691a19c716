"""Comments and literals without their punctuation: what a person would read in them."""

from __future__ import annotations

import html
import re

_MARKS = re.compile(r"^[ \t]*(?:/\*+|\*+(?!/)|//+|#+[!:]?)[ \t]?|[ \t]*\**\*/[ \t]*$", re.MULTILINE)
_INLINE_TAG = re.compile(r"\{@\w+[ \t]*([^{}]*)\}")  # {@link Foo#bar label}
_BLOCK_TAG = re.compile(r"^[ \t]*@[a-zA-Z]+[ \t]*", re.MULTILINE)  # @param, @return
_HTML = re.compile(r"</?[a-zA-Z][^<>]*>|<!--|-->")
_QUOTES = re.compile(r"\"{3}|'{3}|[\"']")


def clean_comment(comment: str) -> str:
    """A comment's text: marks, Javadoc tags and HTML taken off, lines kept.

    >>> clean_comment("/** Hides {@link Keyboard}. <p>\\n  * @param view the <b>view</b>\\n  */")
    'Hides Keyboard.\\nview the view'
    >>> clean_comment("// TODO: later")
    'TODO: later'
    """
    text = _MARKS.sub("", comment)
    if "@" in text:
        text = _BLOCK_TAG.sub("", _INLINE_TAG.sub(r"\1", text))
    if "<" in text:
        text = _HTML.sub("", text)
    if "&" in text:
        text = html.unescape(text)
    return "\n".join(filter(None, map(str.strip, text.splitlines())))


def unquote(literal: str) -> str:
    r"""A string literal's contents as written, without quotes.

    >>> unquote('"a"'), unquote('""'), unquote('plain')
    ('a', '', 'plain')
    """
    match = _QUOTES.match(literal)
    if match is None:
        return literal
    quote = match.group()
    if len(literal) < 2 * len(quote):
        quote = quote[0]
    return literal[len(quote) :].removesuffix(quote)


_FIELD_LIST = re.compile(r"^[ \t]*:[a-z]+[ \t]*(?=[^:\n]*:)", re.MULTILINE)  # :param name: text


def clean_docstring(text: str) -> str:
    r"""A docstring's text, lines kept, the tags of field lists taken off.

    >>> clean_docstring("Opens it.\n\n    :param path: where")
    'Opens it.\npath: where'
    """
    if ":" in text:
        text = _FIELD_LIST.sub("", text)
    return "\n".join(filter(None, map(str.strip, text.splitlines())))
