"""Which languages can be read: one row a language, and beside this file one query a row."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """A row of LANGUAGES. The query `<name>.scm` names its captures by the fields of a Document."""

    name: str
    extensions: tuple[str, ...]
    grammar: str
    """The module with the tree-sitter grammar: its `language()` is called."""
    kinds: tuple[str, ...]
    """Captures that make documents; `<kind>.name` names them, a kind without is named by itself."""
    doc_comment: str
    """How a comment starts that documents the function below it."""
    ignored: frozenset[str]
    """What looks like a name and is none (keywords, primitive types), and names that say nothing (`self`)."""
    layout: bool = False
    """Line ends and indentation are syntax, by the rules of Python."""


JAVA_KEYWORDS = frozenset(
    """
    abstract assert boolean break byte case catch char class const continue default do double else enum extends
    false final finally float for goto if implements import instanceof int interface long native new null
    package private protected public return short static strictfp super switch synchronized this throw throws
    transient true try var void volatile while yield
    """.split()  # noqa: SIM905
)

LANGUAGES: Mapping[str, Language] = {
    row.name: row
    for row in (
        Language(
            "java",
            (".java",),
            "tree_sitter_java",
            kinds=("method", "constructor", "initializer"),
            doc_comment="/**",
            ignored=JAVA_KEYWORDS,
        ),
        Language(
            "python",
            (".py", ".pyi", ".pyw"),
            "tree_sitter_python",
            kinds=("function",),
            doc_comment="#",
            ignored=frozenset(keyword.kwlist) | {"self", "cls", "_", "__"},
            layout=True,
        ),
    )
}

_BY_EXTENSION = {extension: row.name for row in LANGUAGES.values() for extension in row.extensions}


def language_of(path: str) -> str | None:
    """The language of a file by its extension; None where no row reads it.

    >>> language_of("app/src/Main.java"), language_of("README.md")
    ('java', None)
    """
    dot = path.rfind(".")
    return _BY_EXTENSION.get(path[dot:].lower()) if dot >= 0 else None
