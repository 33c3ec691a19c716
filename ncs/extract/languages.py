"""The languages that are parsed: one row each, with its ignored words; beside this file one query each (*.scm)."""

from __future__ import annotations

import keyword
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec

from ncs.errors import MissingExtra
from ncs.extract.source_bytes import Span

Mask = Callable[[bytes], Sequence[Span]]
"""A source -> the ranges to blank, in order."""
INSTALL = "pip install 'neural-code-search[languages]'"


@dataclass(frozen=True, slots=True)
class Language:
    """A row of LANGUAGES. The queries `<name>.scm` name their captures by the fields of a Document."""

    name: str
    extensions: tuple[str, ...]
    grammar: str
    """The module of the tree-sitter grammar; after a colon its function, where that is not `language`."""
    kinds: tuple[str, ...]
    """Captures that become documents; `<kind>.name` captures the name, a kind without it is its own name."""
    doc_comment: tuple[str, ...]
    """Prefixes of comments that document the function below them."""
    queries: tuple[str, ...] = ()
    """The files `<query>.scm`, read as one query; empty: the one named like the language."""
    layout: bool = False
    """Line ends and indentation are syntax, as in Python."""
    bracket_calls: bool = False
    """A name before a round bracket is a call, unless the query says otherwise."""
    equations: bool = False
    """A function may consist of several equations, one below the other."""
    mask: Mask | None = None
    """Finds what the grammar cannot parse and would lose the code around; blanked where the parser finds errors."""

    def load(self) -> object:
        """The grammar, for tree_sitter.Language; grammars are imported only here.

        Raises MissingExtra where the package is not installed.
        """
        module, _, function = self.grammar.partition(":")
        if not is_installed(self.name):
            raise MissingExtra(f"{self.name} cannot be read without {module}: {INSTALL}")
        return getattr(import_module(module), function or "language")()

    @property
    def query(self) -> str:
        """The text of its query."""
        names = self.queries or (self.name,)
        return "\n".join(files("ncs.extract").joinpath(f"{name}.scm").read_text("utf-8") for name in names)

    @property
    def ignored(self) -> frozenset[str]:
        """Words that are never names (keywords, primitive types), and names without meaning (`self`).

        >>> sorted(LANGUAGES["python"].ignored & {"self", "while", "print"})
        ['self', 'while']
        """
        if self.name == "python":
            return frozenset(keyword.kwlist) | {"self", "cls", "_", "__"}
        names = (self.name, *_INHERITED.get(self.name, ()))
        words = frozenset(word for name in names for word in _IGNORED.get(name, "").split())
        return words | {word.upper() for word in words} if self.name == "sql" else words


_IGNORED = {
    "java": """
        abstract assert boolean break byte case catch char class const continue default do double else enum extends
        false final finally float for goto if implements import instanceof int interface long native new null
        package private protected public return short static strictfp super switch synchronized this throw throws
        transient true try var void volatile while yield
        """,
    "go": """
        break case chan const continue default defer else fallthrough for func go goto if import interface map package
        range return select struct switch type var nil true false iota bool byte complex64 complex128 error float32
        float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr any _
        """,
    "javascript": """
        abstract any arguments as asserts async await bigint boolean break case catch class const constructor continue
        debugger declare default delete do else enum export extends false finally for from function get if implements
        import in infer instanceof interface is keyof let module namespace never new null number object of out override
        package private protected public readonly require return satisfies set static string super switch symbol this
        throw true try type typeof undefined unique unknown var void while with yield
        """,
    "php": """
        abstract and array as bool break callable case catch class clone const continue declare default do echo else
        elseif empty enddeclare endfor endforeach endif endswitch endwhile enum extends false final finally float fn for
        foreach function global goto if implements include include_once instanceof insteadof int interface isset
        iterable list match mixed namespace never new null object or parent print private protected public readonly
        require require_once return self static string switch this throw trait true try unset use var void while xor
        yield $this php
        """,
    "ruby": """
        BEGIN END __FILE__ __LINE__ __method__ alias and begin break case class def defined do else elsif end ensure
        false for if in module next nil not or redo rescue retry return self super then true undef unless until when
        while yield require require_relative attr_reader attr_accessor attr_writer private protected public _
        """,
    "kotlin": """
        abstract actual annotation as break by catch class companion const constructor continue crossinline data do
        dynamic else enum expect external false field final finally for fun get if import in infix init inline inner
        interface internal is it lateinit noinline null object open operator out override package private protected
        public reified return sealed set super suspend tailrec this throw true try typealias val value var vararg when
        where while _
        """,
    "c": """
        alignas alignof auto bool break case char const constexpr continue default define defined do double elif else
        endif enum extern false float for goto if ifdef ifndef include inline int long nullptr register restrict return
        short signed sizeof static static_assert struct switch thread_local true typedef typeof undef union unsigned
        void volatile while error pragma once NULL size_t ssize_t int8_t int16_t int32_t int64_t uint8_t uint16_t
        uint32_t uint64_t uintptr_t intptr_t
        """,
    "cpp": """
        and and_eq asm bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl concept
        const_cast consteval constinit decltype delete dynamic_cast explicit export final friend import module mutable
        namespace new noexcept not not_eq operator or or_eq override private protected public reinterpret_cast requires
        static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq
        """,
    "csharp": """
        abstract add alias and as ascending async await base bool break by byte case catch char checked class const
        continue decimal default delegate descending do double dynamic else enum event explicit extern false file
        finally fixed float for foreach from get global goto group if implicit in init int interface internal into is
        join let lock long nameof namespace new not null object on operator or orderby out override params partial
        private protected public readonly record ref remove required return sbyte scoped sealed select set short sizeof
        stackalloc static string struct switch this throw true try typeof uint ulong unchecked unsafe ushort using value
        var virtual void volatile when where while with yield _
        """,
    "rust": """
        as async await bool box break char const continue crate default do dyn else enum extern f32 f64 false fn for i8
        i16 i32 i64 i128 if impl in isize let loop macro_rules match mod move mut pub raw ref return self Self static
        str struct super trait true try type u8 u16 u32 u64 u128 union unsafe use usize where while yield _
        """,
    "swift": """
        Any Self actor any as associatedtype async await break case catch class continue convenience default defer
        deinit didSet do dynamic else enum extension fallthrough false fileprivate final for func get guard if import in
        indirect infix init inout internal is lazy let mutating nil nonisolated nonmutating open operator optional
        override package postfix precedencegroup prefix private protocol public repeat required rethrows return self
        set some static struct subscript super switch throw throws true try typealias unowned var weak where while
        willSet _
        """,
    "scala": """
        abstract case catch class def derives do else enum export extends extension false final finally for forSome
        given if implicit import infix inline lazy macro match new null object opaque open override package private
        protected return sealed super then this throw trait transparent true try type using val var while with yield _
        """,
    "lua": """
        and break do else elseif end false for function global goto if in local nil not or repeat require return self
        then true until while _
        """,
    "bash": """
        case coproc declare do done elif else esac eval exec exit export fi for function if in let local readonly return
        select set shift source then time trap typeset unset until while
        """,
    "elixir": """
        after alias and case catch cond def defdelegate defguard defguardp defimpl defmacro defmacrop defmodule defp
        defprotocol defstruct do else end false fn for if import in nil not or quote raise receive require rescue super
        true try unless unquote use when with doc spec impl moduledoc __MODULE__ _
        """,
    "haskell": """
        as case class data default deriving do else family forall foreign hiding if import in infix infixl infixr
        instance let mdo module newtype of pattern proc qualified rec then type where _
        """,
    "zig": """
        addrspace align allowzero and anyerror anyframe anyopaque anytype asm async await bool break callconv catch
        comptime comptime_float comptime_int const continue defer else enum errdefer error export extern f16 f32 f64
        f128 false fn for i8 i16 i32 i64 i128 if inline isize linksection noalias noinline noreturn nosuspend null
        opaque or orelse packed pub resume return struct suspend switch test threadlocal true try type u8 u16 u32 u64
        u128 undefined union unreachable usingnamespace usize var void volatile while _
        """,
    "sql": """
        add all alter and any as asc begin between bigint boolean by cascade case check column commit constraint create
        cross database declare default delete desc distinct drop each else end except exists foreign for from full
        function grant group having if in index inner insert int integer intersect into is join key language left like
        limit not null numeric of offset on or order outer primary procedure references replace return returns revoke
        right rollback row schema select serial set table temp temporary text then timestamp to trigger truncate union
        unique update using values varchar view when where with date char decimal float real smallint
        """,
}
_INHERITED = {"cpp": ("c",), "typescript": ("javascript",), "tsx": ("javascript",)}
"""Languages that also ignore the words of another one."""

_NAME = rb"[A-Z][A-Z0-9]*_[A-Z0-9_]*"  # of a macro: it has an underscore
_MACRO = _NAME + rb"(?:\([^()]{0,200}\))?"
_BEFORE = rb"(?:template[ \t]*<[^;{}\n]*>[ \t]*)?"
_BEFORE += rb"(?:(?:static|inline|explicit|virtual|constexpr|extern|friend|template)[ \t]+)*"
_MACROS = (  # each starts with bytes that are found quickly; of two that overlap the first counts
    re.compile(rb"\)(?:\s+(?:const|override|final|noexcept))*(\s+" + _MACRO + rb")(?=\s*[{:;])"),  # after parameters
    re.compile(rb"class(?<!\wclass)\s+(" + _MACRO + rb")(?=\s+\w)"),  # before the name of a class
    re.compile(rb"struct(?<!\wstruct)\s+(" + _MACRO + rb")(?=\s+\w)"),
    re.compile(rb"\n[ \t]*" + _BEFORE + rb"(" + _MACRO + rb"(?:[ \t]+" + _MACRO + rb")*)(?=\s+[A-Za-z_~:#])"),
    re.compile(rb"if(?<!\wif)[ \t]+([A-Z][A-Z0-9_]*)(?=[ \t]*\()"),  # if CONSTEXPR (...)
    re.compile(rb"\n(" + _NAME + rb"\([^;{}]{0,300}\);)"),  # a call at the top level
    re.compile(rb"\n[ \t]*(" + _NAME + rb"\([^(){};]{0,200}\))(?=\s*\};)"),  # the last member of a class
)


def mask_macros(source: bytes) -> Sequence[Span]:
    """Macros of C++ where its grammar allows none."""
    matches = (match for pattern in _MACROS for match in pattern.finditer(b"\n" + source))
    spans: list[Span] = []
    end = 0
    for match in sorted(matches, key=lambda match: match.start()):
        if match.start() >= end:
            end = match.end()
            spans.append((match.start(1) - 1, match.end(1) - 1))
    return spans


_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(?:(if)|(elif|else)|endif)\b[^\n]*", re.MULTILINE)


def mask_directives(source: bytes) -> Sequence[Span]:
    """Conditions of C#'s preprocessor, and all alternatives but the first: inside a declaration the grammar loses the
    class around them.

    >>> code = b"a;#if X;b;#else;c;#endif;d".replace(b";", bytes([10]))
    >>> [code[start:end].splitlines() for start, end in mask_directives(code)]
    [[b'#if X'], [b'#else', b'c', b'#endif']]
    """
    spans: list[Span] = []
    alternatives: list[int | None] = []  # of each open condition, where its second one begins
    for match in _DIRECTIVE.finditer(source):
        start, end = match.span()
        if match[1]:
            alternatives.append(None)
            spans.append((start, end))
        elif alternatives and match[2]:
            alternatives[-1] = start if alternatives[-1] is None else alternatives[-1]
        elif alternatives:
            begin = alternatives.pop()
            begin = start if begin is None else begin
            while spans and spans[-1][0] >= begin:  # conditions inside an alternative
                spans.pop()
            spans.append((begin, end))
    return spans


_CONSTRUCTOR = re.compile(  # of Kotlin: with a comment before it the grammar loses the whole class
    rb"class(?<!\wclass)\s+\w+(?:<[^<>{}()]*>)?(\s(?:(?!\bclass\b)[^{}()=])*?\bconstructor\b)(?=\s*\()"
)
_SQL_TAG = re.compile(rb"(?=(\$\w*\$))")


def mask_constructors(source: bytes) -> Sequence[Span]:
    """Constructors in the heads of Kotlin's classes."""
    return [match.span(1) for match in _CONSTRUCTOR.finditer(source)]


def mask_bodies(source: bytes) -> Sequence[Span]:
    """Bodies of SQL functions, in PL/pgSQL and the like."""
    tags = [(match.start(), match[1]) for match in _SQL_TAG.finditer(source)]
    places: dict[bytes, list[int]] = {}
    for start, tag in tags:
        places.setdefault(tag, []).append(start)
    spans: list[Span] = []
    end = 0
    for start, tag in tags:
        if start >= end and (number := bisect_left(places[tag], start + len(tag))) < len(places[tag]):
            closing = places[tag][number]
            spans.append((start + len(tag), closing))
            end = closing + len(tag)
    return spans


_JAVADOC = ("/**",)
_DOXYGEN = ("/**", "/*!", "///", "//!")
_ECMASCRIPT = ("function", "method", "constructor")
_CPP_FILES = (".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h", ".ipp", ".inl", ".tpp", ".cu", ".cuh")
_SQL_KINDS = ("table", "view", "function", "procedure", "trigger", "type", "index", "query")
_ROWS = (
    Language(
        "java", (".java",), "tree_sitter_java", ("method", "constructor", "initializer"), _JAVADOC, bracket_calls=True
    ),
    Language(
        "python", (".py", ".pyi", ".pyw"), "tree_sitter_python", ("function",), ("#",), layout=True, bracket_calls=True
    ),
    Language("go", (".go",), "tree_sitter_go", ("function", "method"), ("//", "/*")),
    Language(
        "javascript",
        (".js", ".jsx", ".mjs", ".cjs"),
        "tree_sitter_javascript",
        _ECMASCRIPT,
        _JAVADOC,
        ("ecmascript", "javascript", "jsx"),
    ),
    Language(
        "typescript",
        (".ts", ".mts", ".cts"),
        "tree_sitter_typescript:language_typescript",
        _ECMASCRIPT,
        _JAVADOC,
        ("ecmascript", "typescript"),
    ),
    Language(
        "tsx",
        (".tsx",),
        "tree_sitter_typescript:language_tsx",
        _ECMASCRIPT,
        _JAVADOC,
        ("ecmascript", "typescript", "jsx"),
    ),
    Language("php", (".php", ".phtml", ".php5"), "tree_sitter_php:language_php", _ECMASCRIPT, _JAVADOC),
    Language("c", (".c",), "tree_sitter_c", ("function",), _DOXYGEN, ("c_family", "c")),
    Language(
        "cpp", _CPP_FILES, "tree_sitter_cpp", ("function", "method"), _DOXYGEN, ("c_family", "cpp"), mask=mask_macros
    ),
    Language(
        "csharp",
        (".cs",),
        "tree_sitter_c_sharp",
        ("method", "constructor", "function", "property"),
        ("///", "/**"),
        mask=mask_directives,
    ),
    Language("rust", (".rs",), "tree_sitter_rust", ("function", "macro"), ("///", "/**")),
    Language(
        "kotlin",
        (".kt", ".kts"),
        "tree_sitter_kotlin",
        ("function", "constructor", "initializer", "property"),
        _JAVADOC,
        mask=mask_constructors,
    ),
    Language("swift", (".swift",), "tree_sitter_swift", ("function", "constructor", "property"), ("///", "/**")),
    Language("scala", (".scala", ".sc", ".sbt"), "tree_sitter_scala", ("method", "function"), _JAVADOC),
    Language("lua", (".lua",), "tree_sitter_lua", ("function", "method"), ("--",)),
    Language("bash", (".sh", ".bash", ".bats", ".ksh"), "tree_sitter_bash", ("function",), ("#",)),
    Language("elixir", (".ex", ".exs"), "tree_sitter_elixir", ("function", "test"), ("@doc", "#"), equations=True),
    Language("haskell", (".hs",), "tree_sitter_haskell", ("function",), ("--", "{-"), equations=True),
    Language("zig", (".zig",), "tree_sitter_zig", ("function", "test"), ("///",)),
    Language("sql", (".sql",), "tree_sitter_sql", _SQL_KINDS, ("--", "/*"), mask=mask_bodies),
    Language("ruby", (".rb", ".rake", ".gemspec", ".ru"), "tree_sitter_ruby", ("method", "function"), ("#", "=begin")),
)
LANGUAGES: Mapping[str, Language] = {row.name: row for row in _ROWS}
_BY_EXTENSION = {extension: row.name for row in LANGUAGES.values() for extension in row.extensions}


def language_of(path: str) -> str | None:
    """The language of a file by its extension; None where there is none.

    >>> language_of("app/src/Main.java"), language_of("README.md")
    ('java', None)
    """
    dot = path.rfind(".")
    return _BY_EXTENSION.get(path[dot:].lower()) if dot >= 0 else None


@cache
def is_installed(language: str) -> bool:
    """Whether a language has a grammar that is installed; it is not imported.

    >>> is_installed("java"), is_installed("cobol")
    (True, False)
    """
    return language in LANGUAGES and find_spec(LANGUAGES[language].grammar.partition(":")[0]) is not None
