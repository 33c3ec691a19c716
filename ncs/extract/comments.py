"""Comments and literals without their punctuation: what a person would read in them."""

from __future__ import annotations

import html
import re

_LEFT, _RIGHT = " \t\r\f/*#-!|", " \t\r\f/*#-"
_INLINE_TAG = re.compile(r"\{@\w+[ \t]*([^{}]*)\}")  # {@link Foo#bar label}
_BLOCK_TAG = re.compile(r"^[ \t/*#-]*[@\\][a-zA-Z]+", re.MULTILINE)  # @param, @return, Doxygen's \param
_BRACKETS = re.compile(
    r'^(?:=begin|--\[=*\[|\{-|@[a-z]+[ \t(]*(?:~[sS])?"{1,3})|(?:=end|\]=*\]|-\}|"{1,3}\)?)\s*$'
)  # around a comment of Ruby, Lua, Haskell, an attribute of Elixir
_OPENING, _CLOSING = ("=begin", "--[", "{-", "@"), ("=end", "]", "-}", '"', '")')
_XML_NAME = re.compile(r'<\w+ (?:cref|name|langword|href)="([^"]*)" ?/>')  # <see cref="View"/> of C#
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
    if "{@" in comment:
        comment = _INLINE_TAG.sub(r"\1", comment)
    if "@" in comment or "\\" in comment:
        comment = _BLOCK_TAG.sub("", comment)
    if "<" in comment:
        if "/>" in comment:
            comment = _XML_NAME.sub(r"\1", comment)
        comment = _HTML.sub("", comment)
    if "&" in comment:
        comment = html.unescape(comment)
    if "\n" not in comment:
        return comment.lstrip(_LEFT).rstrip(_RIGHT)
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


_FIELD_LIST = re.compile(r"^[ \t]*:[a-z]+(?::[ \t]*|[ \t]+(?=[^:\n]*:))", re.MULTILINE)  # :param name: text


def clean_docstring(literal: str) -> str:
    r"""A docstring's text, lines kept, without quotes and the tags of field lists.

    >>> clean_docstring('r"Opens it.\n\n    :param path: where\n    :returns: it"')
    'Opens it.\npath: where\nit'
    """
    text = unquote(literal.lstrip("rRuU"))
    if ":" in text:
        text = _FIELD_LIST.sub("", text)
    return "\n".join(filter(None, map(str.strip, text.splitlines())))
