"""Which languages can be read: one row a language, and beside this file one query a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec

from ncs.errors import MissingExtra
from ncs.extract.keywords import ignored_words
from ncs.extract.opaque import BODIES, CONSTRUCTORS, Opaque, macros

JAVADOC = ("/**",)
RUSTDOC = ("///", "/**")
DOXYGEN = ("/**", "/*!", "///", "//!")
ECMASCRIPT = "function method constructor"
HASH = ("#",)
DASHES = ("--",)


@dataclass(frozen=True, slots=True)
class Language:
    """A row of LANGUAGES. The queries `<name>.scm` name their captures by the fields of a Document."""

    name: str
    extensions: tuple[str, ...]
    grammar: str
    """The module with the tree-sitter grammar, and after a colon its function where that is not `language`."""
    kinds: tuple[str, ...]
    """Captures that make documents; `<kind>.name` names them, a kind without is named by itself."""
    doc_comment: tuple[str, ...]
    """How comments start that document the function below them."""
    ignored: frozenset[str]
    """What looks like a name and is none (keywords, primitive types), and names that say nothing (`self`)."""
    queries: tuple[str, ...]
    """The files `<query>.scm` that are read together."""
    layout: bool = False
    """Line ends and indentation are syntax, by the rules of Python."""
    bracket_calls: bool = False
    """A name before a round bracket is a call, if the query does not tell otherwise."""
    equations: bool = False
    """A function may be written as several equations, one below the other."""
    opaque: Opaque | None = None
    """What is no code of this language, and not shown to the parser where that finds errors."""

    def load(self) -> object:
        """The grammar, for tree_sitter.Language; it is imported here and nowhere else.

        Raises MissingExtra where its package is not installed.
        """
        module, _, function = self.grammar.partition(":")
        if not installed(self.name):
            raise MissingExtra(f"{self.name} cannot be read without {module}: {INSTALL}")
        return getattr(import_module(module), function or "language")()


INSTALL = "pip install 'neural-code-search[languages]'"


def _row(
    name: str,
    extensions: str,
    grammar: str,
    kinds: str,
    doc_comment: tuple[str, ...],
    queries: str = "",
    layout: bool = False,
    bracket_calls: bool = False,
    equations: bool = False,
    opaque: Opaque | None = None,
) -> Language:
    return Language(
        name,
        tuple(extensions.split()),
        grammar,
        tuple(kinds.split()),
        doc_comment,
        ignored_words(name),
        tuple(queries.split()) or (name,),
        layout,
        bracket_calls,
        equations,
        opaque,
    )


LANGUAGES: Mapping[str, Language] = {
    row.name: row
    for row in (
        _row(
            "java",
            ".java",
            "tree_sitter_java",
            "method constructor initializer",
            JAVADOC,
            bracket_calls=True,
        ),
        _row("python", ".py .pyi .pyw", "tree_sitter_python", "function", HASH, layout=True, bracket_calls=True),
        _row("go", ".go", "tree_sitter_go", "function method", ("//", "/*")),
        _row(
            "javascript",
            ".js .jsx .mjs .cjs",
            "tree_sitter_javascript",
            ECMASCRIPT,
            JAVADOC,
            "ecmascript javascript jsx",
        ),
        _row(
            "typescript",
            ".ts .mts .cts",
            "tree_sitter_typescript:language_typescript",
            ECMASCRIPT,
            JAVADOC,
            "ecmascript typescript",
        ),
        _row(
            "tsx",
            ".tsx",
            "tree_sitter_typescript:language_tsx",
            ECMASCRIPT,
            JAVADOC,
            "ecmascript typescript jsx",
        ),
        _row("php", ".php .phtml .php5", "tree_sitter_php:language_php", "function method constructor", JAVADOC),
        _row("c", ".c", "tree_sitter_c", "function", DOXYGEN, "c_family c"),
        _row(
            "cpp",
            ".cpp .cc .cxx .c++ .hpp .hh .hxx .h .ipp .inl .tpp .cu .cuh",
            "tree_sitter_cpp",
            "function method",
            DOXYGEN,
            "c_family cpp",
            opaque=macros,
        ),
        _row("csharp", ".cs", "tree_sitter_c_sharp", "method constructor function property", RUSTDOC),
        _row("rust", ".rs", "tree_sitter_rust", "function macro", RUSTDOC),
        _row(
            "kotlin",
            ".kt .kts",
            "tree_sitter_kotlin",
            "function constructor initializer property",
            JAVADOC,
            opaque=CONSTRUCTORS,
        ),
        _row("swift", ".swift", "tree_sitter_swift", "function constructor property", RUSTDOC),
        _row("scala", ".scala .sc", "tree_sitter_scala", "method function", JAVADOC),
        _row("lua", ".lua", "tree_sitter_lua", "function method", DASHES),
        _row("bash", ".sh .bash .bats .ksh", "tree_sitter_bash", "function", HASH),
        _row("elixir", ".ex .exs", "tree_sitter_elixir", "function test", ("@doc", "#"), equations=True),
        _row("haskell", ".hs", "tree_sitter_haskell", "function", ("--", "{-"), equations=True),
        _row("zig", ".zig", "tree_sitter_zig", "function test", ("///",)),
        _row(
            "sql",
            ".sql",
            "tree_sitter_sql",
            "table view function procedure trigger type index query",
            ("--", "/*"),
            opaque=BODIES,
        ),
        _row("ruby", ".rb .rake .gemspec .ru", "tree_sitter_ruby", "method function", ("#", "=begin")),
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


def is_readable(path: str) -> bool:
    """Is there a row for a file's extension, and its grammar?"""
    language = language_of(path)
    return language is not None and installed(language)


@lru_cache
def installed(language: str) -> bool:
    """Is the grammar of a language there? Nothing is imported to know it."""
    return find_spec(LANGUAGES[language].grammar.partition(":")[0]) is not None
