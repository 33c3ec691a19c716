"""The sub-tokens of a function's source, without what it says about itself: comments and docstrings."""

from __future__ import annotations

import re

from ncs.text.tokens import tokenize


def source_words(code: str, language: str) -> list[str]:
    """The sub-tokens of code in the order of the source, keywords too; comments and docstrings left out.

    >>> source_words('def openFile(path):  # opens it\\n    return open(path, "rb")', "python")
    ['def', 'open', 'file', 'path', 'return', 'open', 'path', 'rb']
    """
    return tokenize(_comments(language).sub(_without_comment, code))


_TEXT = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`'
_STAR = r"/\*.*?(?:\*/|\Z)"
_STYLES = {
    "star": (_STAR + r"|//[^\n]*", _TEXT),
    "hash": (r"#[^\n]*", _TEXT),
    "python": (r'#[^\n]*|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'', _TEXT),
    "php": (_STAR + r"|//[^\n]*|#(?!\[)[^\n]*", _TEXT),
    "dash": (r"--\[\[.*?\]\]|--[^\n]*|" + _STAR + r"|\{-.*?-\}", _TEXT),
}
_STYLE_OF = {
    "python": "python", "ruby": "hash", "bash": "hash", "elixir": "hash", "php": "php", "sql": "dash", "lua": "dash",
    "haskell": "dash",
}  # fmt: skip
"""Every other language has C's comments."""
_PATTERNS = {name: re.compile(f"(?P<comment>{comment})|{text}", re.DOTALL) for name, (comment, text) in _STYLES.items()}


def _comments(language: str) -> re.Pattern[str]:
    return _PATTERNS[_STYLE_OF.get(language, "star")]


def _without_comment(match: re.Match[str]) -> str:
    return " " if match["comment"] is not None else match[0]
