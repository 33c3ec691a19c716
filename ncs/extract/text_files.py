"""Files without a grammar into Documents: which they are, and how a text is cut and its words found by patterns.

A document is a definition (of code whose row in TEXT_KINDS says what one looks like) or a block: what stands between,
and everything in a configuration file, which ranks lower (ncs.storage.file_roles). Prose, data, lock files and logs are
no kinds; sections of prose are read by ncs.extract.sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from ncs.extract.comments import clean_comment
from ncs.extract.documents import digest_of
from ncs.extract.languages import LANGUAGES, language_of
from ncs.extract.source_bytes import as_utf8
from ncs.sources.filters import PROSE
from ncs.text.quotes import blank_quotes
from ncs.types import Document, Field, Tokens

DEFINITION, BLOCK = "definition", "block"
MIN_DEFINITION = 2
"""Lines of a definition: shorter ones are joined, such as a signature with its equation."""
MIN_BLOCK, MAX_BLOCK = 5, 60
"""Lines of a block: a shorter one is joined with the next, a longer one is cut where the indentation is least."""
MAX_DEFINITION = 300
"""Characters of a line that are searched for a definition."""
MAX_LINE = 20_000
"""Characters of a line; a file with a longer one is data."""

_NAME = re.compile(r"[^\W\d]\w*(?P<call>[ \t]?\()?")
_COMMENT_SIGN = re.compile(
    r"^\s*(?:\(\*+|\{-?|<#|<!--|#[=|]|[%;!]+|['\"]|@?rem\b|::|dnl\b|=\w+)"
    r"|(?:(?<!\*)\*+\)|-?\}|#>|[=|]#|-->|\n=cut)\s*$",
    re.IGNORECASE,
)  # those that clean_comment does not know
_ANNOTATION = re.compile(r"[ \t]*@\w[\w.]*(?:\(.*\))?[ \t]*$")
"""A line between a definition and the comment above it."""
_NOT_LINE_END = re.compile(r"[^\n]")
_STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_OBJECTIVE_C = re.compile(
    rb"^(?:@(?:interface|implementation|import|protocol|class)\b|[-+] *\(|# *(?:import|include)\b)", re.M
)
_WORDS = (
    "if else elif elsif elseif for foreach while do done then fi end begin return let in of function fn func sub def my"
    " var val const class struct enum type module package import use using include require public private protected"
    " static final new this self true false null nil none not and or case switch when match with try catch throw void"
    " int string bool double float char local export set unless until loop break continue default is as"
)
_KEYWORDS = frozenset(_WORDS.split())


@dataclass(frozen=True, slots=True)
class TextKind:
    """A row of TEXT_KINDS."""

    name: str
    files: tuple[str, ...]
    """Extensions with their dot, and whole names, in lower case."""
    comments: str
    """Keys of COMMENT_PATTERNS, separated by spaces."""
    definition: str
    """A regular expression for the line of a definition; its matching groups, joined by dots, are the name."""
    configuration: bool = False
    """Settings, builds and markup rather than a program."""
    equations: bool = False
    """A function may consist of several clauses, one below the other."""


COMMENT_PATTERNS: Mapping[str, str] = {
    "#": r"(?<!\S)#[^\n]*",
    "//": r"(?<!:)//[^\n]*",
    "/*": r"/\*(?:.*?\*/|.*\Z)",
    "--": r"(?<![^\s;(])--[^\n]*",
    ";": r"(?<!\S);[^\n]*",
    "%": r"(?<!\S)%[^\n]*",
    "!": r"(?<!\S)![^\n]*",
    "'": r"(?<!\S)'[^\n]*",
    '"': r"(?m:^[ \t]*)\"[^\n]*",
    "(*": r"\(\*(?:.*?\*\)|.*\Z)",
    "{": r"\{(?:.*?\}|.*\Z)",
    "{-": r"\{-(?:.*?-\}|.*\Z)",
    "<#": r"<#(?:.*?#>|.*\Z)",
    "#=": r"#=(?:.*?=#|.*\Z)",
    "#|": r"#\|(?:.*?\|#|.*\Z)",
    "=pod": r"(?m:^)=[a-z]\w*(?:.*?\n=cut\b|.*\Z)",
    "<!": r"<!--(?:.*?-->|.*\Z)",
    "rem": r"(?im:^[ \t]*@?rem\b[^\n]*)|(?m:^)[ \t]*::[^\n]*",
    "dnl": r"\bdnl\b[^\n]*",
}
"""Comments by their sign; a block without an end goes to the end of the file."""

_EQUATIONS = frozenset(("elixir", "elm", "erlang", "haskell", "prolog", "purescript"))

_C = "/* //"
_CLIKE = (
    r"^[ \t]*(?:(?:abstract|base|sealed|final|public|private|protected|export|static)\s+)*"
    r"(?:class|enum|mixin|interface|struct|union|trait|extension|contract|library|object)\s+(\w+)"
    r"|^[ \t]*(?!(?:return|else|new|throw|await|if|for|while|switch|case)\b)(?:[\w<>\[\],.?:*&]+[ \t]+)+(?:get[ \t]+)?"
    r"(?:\w+(?:::|\.))*(~?\w+)(?:<[^()\n]*>)?[ \t]*\([^;\n]*(?:$|\{|=>)"
)
_DART = (
    r"^typedef[ \t]+(\w+)(?:<.*>)?[ \t]*=|^[ \t]*(?:[\w<>\[\],.?]+[ \t]+)*?[gs]et[ \t]+(\w+)[^;\n]*(?:$|\{|=>)"
    r"|^(?:(?:abstract|base|final|interface|mixin|sealed)[ \t]+)*"
    r"(?:class|enum|mixin|extension(?:[ \t]+type)?(?:[ \t]+const)?)[ \t]+(?!class\b)(\w+)|"
) + _CLIKE
_LISP = r"^\((?:\w+/)?def[\w*!-]*\s+\(?(?:\^\S+\s+)*([^\s()\[\]]+)"
_KEY = r"^[ \t-]*[\"']?([A-Za-z_][\w./ -]*?)[\"']?\s*[:=]"
_SECTION = r"^[ \t]*\[+([^\]\n]+)\]"

_CODE = (
    ("ada", ".adb .ads", "--", r"^\s*(?i:procedure|function|package body|package|task body)\s+([\w.]+)"),
    ("apex", ".apex .trigger", _C, _CLIKE),
    ("applescript", ".applescript", "-- (*", r"^\s*(?:on|to)\s+(\w+)"),
    ("assembly", ".s .asm .nasm", "; # // /*", r"^([A-Za-z_.$][\w.$]*):"),
    ("awk", ".awk", "#", r"^\s*func(?:tion)?\s+(\w+)"),
    ("batch", ".bat .cmd", "rem", r"^:(\w[\w-]*)"),
    ("clojure", ".clj .cljs .cljc .bb", ";", _LISP),
    ("cobol", ".cob .cbl .cpy", "",
     r"(?i:^.{0,11}\b([A-Z0-9][A-Z0-9-]*)\s+SECTION\.)|^.{0,7}(?i:PROGRAM-ID)\.\s*([\w-]+)"),
    ("coffeescript", ".coffee", "#", r"^\s*(?:class\s+(\w+)|@?([\w.]+)\s*[:=]\s*(?:\([^()\n]*\)\s*)?[-=]>)"),
    ("crystal", ".cr", "#", r"^\s*(?:private\s+|abstract\s+)*(?:def|class|module|struct|macro|enum)\s+([\w.:?!=]+)"),
    ("cython", ".pyx .pxd .pxi", "#", r"^\s*(?:class|(?:cp?def|def)(?:\s+\w[\w.\[\]*]*)*?)\s+(\w+)\s*[(:]"),
    ("d", ".d", _C, _CLIKE),
    ("dart", ".dart", _C, _DART),
    ("elisp", ".el", ";", _LISP),
    ("elm", ".elm", "-- {-", r"^(?:type(?: alias)?\s+)?([a-zA-Z]\w*)\s*(?::|=|(?:[a-z_]\w* )+=)"),
    ("erlang", ".erl .hrl .escript", "%", r"^([a-z]\w*)\("),
    ("fish", ".fish", "#", r"^\s*function\s+(\S+)"),
    (
        "fortran", ".f .for .ftn .f77 .f90 .f95 .f03 .f08", "!",
        r"^\s*(?i:(?!end)(?:[\w()*=, ]+\s)?(?:subroutine|function|program|module)\s+(?!procedure\b)(\w+))",
    ),
    (
        "fsharp", ".fs .fsx .fsi", "// (*",
        r"^\s*(?:let|and)\s+(?:(?:rec|inline|private|mutable)\s+)*(\w+)|^\s*(?:type|module)\s+([\w.]+)"
        r"|^\s*(?:(?:static|abstract|override|default)\s+)*member\s+(?:\w+\.)?(\w+)",
    ),
    ("gdscript", ".gd", "#", r"^\s*(?:static\s+)?(?:func|class|class_name|signal)\s+(\w+)"),
    ("gleam", ".gleam", "//", r"^\s*(?:pub\s+)?(?:fn|type|const)\s+(\w+)"),
    ("graphql", ".graphql .gql .graphqls", "#", r"^(?:extend\s+)?(?:type|interface|union|enum|input|scalar|query|mutation|subscription|fragment|directive)\s+@?(\w+)"),  # noqa: E501
    ("groovy", ".groovy .gvy", _C, _CLIKE),
    ("haxe", ".hx", _C, r"^\s*(?:(?:public|private|static|inline|override|final|extern)\s+)*(?:function|class|enum|interface|typedef|abstract)\s+(\w+)"),  # noqa: E501
    ("idl", ".thrift .avdl .capnp .fbs .idl", _C + " #", r"^\s*(?:struct|service|enum|interface|exception|union|table|protocol|record)\s+(\w+)"),  # noqa: E501
    (
        "julia", ".jl", "#= #",
        r"^\s*(?:@\w+\s+)*(?:function|macro|(?:mutable\s+)?struct|abstract type|module)\s+([\w.!]+)"
        r"|^([\w.!]+)\([^=\n]*\)(?:::\S+)?\s*=[^=]",
    ),
    ("lisp", ".lisp .lsp .cl .asd", "; #|", _LISP),
    ("matlab", ".mlx .octave", "%", r"^\s*(?:function|classdef)\s+(?:[^=\n]*=\s*)?(\w+)"),
    ("nim", ".nim .nims", "#", r"^\s*(?:proc|func|method|iterator|template|macro|converter)\s+`?([^\s`(*\[]+)"),
    ("nix", ".nix", "# /*", r"^\s*([\w.-]+)\s*="),
    (
        "objective-c", ".m .mm", _C,
        r"^@(?:interface|implementation|protocol)\s+(\w+)|^[-+]\s*\([^)\n]*\)\s*(\w+)"
        r"|^(?:static\s+|extern\s+)?[\w*]+[ \t]+\**(\w+)\([^;\n]*(?:$|\{)",
    ),
    ("ocaml", ".ml .mli .mll .mly .re .rei .res", "(* //", r"^\s*(?:let|and|val|external)\s+(?:rec\s+|inline\s+)*(\w+)|^\s*(?:module|type|class)\s+(?:type\s+|rec\s+)?([\w']+)"),  # noqa: E501
    ("odin", ".odin", _C, r"^(\w+)\s*::"),
    (
        "pascal", ".pas .dpr .lpr .dpk", "// { (*",
        r"^\s*(?i:(?:class\s+)?(?:procedure|function|constructor|destructor|operator|program|unit)\s+([\w.]+))",
    ),
    ("perl", ".pl .pm .t .psgi .cgi", "# =pod", r"^\s*(?:my\s+)?sub\s+(\w+)|^\s*package\s+([\w:]+)"),
    ("plsql", ".pls .pks .pkb .plsql .psql", "-- /*", r"^\s*(?i:(?:create\s+(?:or\s+replace\s+)?)?(?:procedure|function|package(?:\s+body)?|trigger|view|table)\s+([\w.\"]+))"),  # noqa: E501
    ("powershell", ".ps1 .psm1", "# <#", r"^\s*(?i:function|filter|class|workflow)\s+([\w:-]+)"),
    ("prolog", ".prolog .plt", "% /*", r"^([a-z]\w*)(?:\([^\n]*\))?\s*(?::-|-->|\.)"),
    ("proto", ".proto", _C, r"^\s*(?:message|service|enum|rpc|extend)\s+(\w+)"),
    ("purescript", ".purs", "-- {-", r"^(?:(?:data|newtype|type|class)\s+)?(\w+)\s*(?:::|=)"),
    ("qml", ".qml", _C, r"^\s*function\s+(\w+)|^(\w+)\s*\{"),
    ("r", ".r", "#", r"^\s*[`\"]?([\w.<-]*?[\w.])[`\"]?\s*(?:<<?-|=)\s*function\b|^\s*set(?:Method|Generic|Class|RefClass)\(\s*\"([^\"]+)"),  # noqa: E501
    ("racket", ".rkt .scm .ss .sld", "; #|", _LISP),
    ("raku", ".raku .rakumod .p6 .pm6", "#", r"^\s*(?:our\s+|my\s+|multi\s+|proto\s+)*(?:sub|method|class|role|grammar|module)\s+([\w:-]+)"),  # noqa: E501
    ("sas", ".sas", "/*", r"^\s*(?i:%macro|proc|data)\s+([\w.]+)"),
    ("shader", ".glsl .vert .frag .comp .geom .hlsl .wgsl .metal .shader .cginc", _C, r"^\s*(?:struct|cbuffer)\s+(\w+)|^\s*(?:fn\s+|[\w<>]+[ \t]+)(\w+)\([^;\n]*(?:$|\{)"),  # noqa: E501
    ("smalltalk", ".st", '"', r"^\s*!?\s*(?:\w+(?: class)?\s*>>\s*(\w+)|(\w+(?: class)?)\s+(?:methodsFor:|subclass:))"),
    ("solidity", ".sol", _C, r"^\s*(?:abstract\s+)?(?:contract|library|interface|struct|enum|event|error|modifier|function)\s+(\w+)"),  # noqa: E501
    ("stata", ".do .ado", "// /*", r"^\s*program\s+(?:define\s+)?(\w+)"),
    ("tcl", ".tcl .tk", "#", r"^\s*(?:proc|method|oo::class create)\s+(\S+)"),
    ("terraform", ".tf .hcl .tofu", "# // /*", r"^\w+(?:\s+\"([^\"\n]+)\")?\s+\"([^\"\n]+)\"\s*\{|^(\w+)\s*\{"),
    ("verilog", ".v .sv .svh .vh", _C, r"^\s*(?:virtual\s+|automatic\s+)*(?:module|interface|package|class|task|function(?:\s+[\w\[\]:]+)*?)\s+(\w+)\s*[(;#]"),  # noqa: E501
    ("vhdl", ".vhd .vhdl", "--",
     r"^\s*(?i:entity|architecture|package(?:\s+body)?|procedure|function|component)\s+(\w+)"),
    ("vim", ".vim .vimrc", '"', r"^\s*(?:fu(?:nction)?|def)!?\s+([\w:#.<>]+)|^\s*com(?:mand)?!?\s+(?:-\S+\s+)*(\w+)"),
    ("visualbasic", ".vb .bas .vbs .frm", "'", r"^\s*(?i:(?:(?:public|private|friend|protected|shared|static|overrides|overridable)\s+)*(?:sub|function|property(?:\s+(?:get|let|set))?|class|module|type|enum)\s+(\w+))"),  # noqa: E501
    ("zsh", ".zsh .zsh-theme", "#", r"^\s*(?:function\s+([\w:.-]+)|([\w:.-]+)\s*\(\))"),
)  # fmt: skip
_WITHOUT_GRAMMAR = (
    ("bash", "", "#", r"^\s*(?:function\s+([\w:.-]+)|([\w:.-]+)\s*\(\))"),
    ("c", "", _C, _CLIKE),
    ("cpp", "", _C, _CLIKE),
    ("csharp", "", _C, _CLIKE),
    ("elixir", "", "#", r"^\s*(?:defp?|defmacrop?|defmodule|test)\s+\"?([\w.?!]+)"),
    ("haskell", "", "-- {-", r"^(?:(?:data|newtype|type|class|instance)\s+)?(\w+)\s*(?:::|=)"),
    (
        "kotlin", "", _C,
        r"^[ \t]*(?:@\w+[ \t]+)*(?:[a-z]+[ \t]+)*?(?:fun|class|interface|object)[ \t]+"
        r"(?:<[^>\n]*>[ \t]*)?(?:[\w<>?]+\.)?(\w+)",
    ),
    ("lua", "", "--", r"^\s*(?:local\s+)?function\s+([\w.:]+)|^\s*(?:local\s+)?([\w.:]+)\s*=\s*function\b"),
    (
        "rust", "", _C,
        r"^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:(?:async|const|unsafe|extern|\"\w+\")[ \t]+)*"
        r"(?:fn|struct|enum|trait|mod|macro_rules!)[ \t]+(\w+)",
    ),
    ("scala", "", _C, r"^[ \t]*(?:[a-z]+[ \t]+)*?(?:def|class|object|trait)[ \t]+(\w+)"),
    ("sql", "", "-- /*", r"^\s*(?i:create\s+(?:or\s+replace\s+)?(?:\w+\s+)?(?:table|view|function|procedure|trigger|index|type)\s+(?:if\s+not\s+exists\s+)?([\w.\"`]+))"),  # noqa: E501
    ("swift", "", _C, r"^[ \t]*(?:@?[a-z]+[ \t]+)*?(?:func|class|struct|enum|protocol|extension)[ \t]+(\w+)"),
    ("zig", "", "//", r"^\s*(?:(?:pub|export|inline)\s+)*(?:fn|test)\s+\"?(\w+)"),
)  # fmt: skip
"""Languages of the extra `languages`, for installations without it."""
_CONFIGURATION = (
    ("bazel", ".bzl .bazel .star", "#", r"^(?:def\s+(\w+)|\s*name\s*=\s*\"([^\"]+)\")"),
    ("cmake", ".cmake cmakelists.txt", "#", r"^\s*(?i:function|macro|project|add_\w+|set)\s*\(\s*(\S+)"),
    ("css", ".css .scss .sass .less .styl .pcss", "/* //", r"^\s*@(?:mixin|function|keyframes|layer)\s+([\w-]+)|^\s*([.#]?[\w-]+)[^{};\n]*\{"),  # noqa: E501
    ("dockerfile", ".dockerfile dockerfile containerfile", "#", r"^(?i:FROM)\s+\S+\s+(?i:AS)\s+(\S+)"),
    ("gradle", ".gradle", _C, r"^\s*(?:tasks?\.(?:register|create|named)\(\s*['\"]|task\s+|def\s+)(\w+)|^(\w+)\s*\{"),
    ("ini", ".ini .cfg .conf .properties .service .desktop", "# ;", _SECTION + "|" + _KEY),
    ("jenkinsfile", ".jenkinsfile jenkinsfile", _C, r"^\s*(?:stage\s*\(\s*['\"]([^'\"]+)|def\s+(\w+)\s*\()"),
    ("json", "package.json composer.json tsconfig.json deno.json", "", r"^\s*\"([\w-]+)\"\s*:\s*\{"),
    ("just", ".just justfile", "#", r"^([\w-]+)(?:\s[^:=\n]*)?:(?!=)"),
    ("m4", ".m4 .ac configure.ac", "dnl #", r"^\s*(?:AC_DEFUN|AC_INIT|define)\(\s*\[?([\w.-]+)"),
    ("make", ".mk .mak .make makefile gnumakefile makefile.am makefile.in", "#", r"^(?:define\s+)?([\w./%$()-]+)\s*(?:::?(?!=)|$)"),  # noqa: E501
    ("meson", "meson.build meson_options.txt", "#", r"^(?:\w+\s*=\s*)?\w+\(\s*'([^']+)'"),
    ("proguard", ".pro", "#", r"^-(?:keep\w*|assumenosideeffects)\b[^\n{]*?([\w.$*]+)\s*(?:\{|$)"),
    ("template", ".erb .ejs .hbs .mustache .jinja .jinja2 .j2 .twig .liquid .haml .slim .pug .jsp .jspf .aspx .ascx .cshtml .razor .vm .ftl .tmpl", "<!", r"<(?:form|table|section|nav|header|main|template)\b[^>\n]*\b(?:id|name)=\"([^\"]+)\""),  # noqa: E501
    ("toml", ".toml", "#", _SECTION + "|" + _KEY),
    ("xml", ".csproj .fsproj .vbproj .vcxproj .props .targets pom.xml build.xml androidmanifest.xml", "<!", r"<(\w[\w.:-]*)[^>\n]*>"),  # noqa: E501
    ("yaml", ".yaml .yml", "#", _KEY),
)  # fmt: skip

TEXT_KINDS: Mapping[str, TextKind] = {
    name: TextKind(name, tuple(files.split()), comments, definition, rows is _CONFIGURATION, name in _EQUATIONS)
    for rows in (_CODE, _WITHOUT_GRAMMAR, _CONFIGURATION)
    for name, files, comments, definition in rows
}
_BY_FILE = {file: kind.name for kind in TEXT_KINDS.values() for file in kind.files}
_DATA = re.compile(
    r"(?:^|/)(?:locales?|i18n|l10n|translations?|lang|cassettes|fixtures|testdata|(?:__)?snapshots(?:__)?)/"
    r"|(?:^|[/._-])lock(?:file)?\.(?:ya?ml|toml)$|_[a-z]{2}(?:_[A-Z]{2})?\.properties$|(?:^|/)messages[^/]*\.properties$",
    re.IGNORECASE,
)
"""Configuration by its extension, but data by its place or name: translations, recordings, lock files."""


def text_kind(path: str) -> str | None:
    """The key of TEXT_KINDS for a file, by its name; None where there is none.

    >>> text_kind("src/hide.pl"), text_kind("Dockerfile"), text_kind("docker/Dockerfile.dev"), text_kind("README.md")
    ('perl', 'dockerfile', 'dockerfile', None)
    >>> text_kind("ci.yml"), text_kind("pnpm-lock.yaml"), text_kind("config/locales/de.yml")
    ('yaml', None, None)
    """
    name = path[path.rfind("/") + 1 :].lower()
    dot = name.rfind(".")
    kind = _BY_FILE.get(name) or (_BY_FILE.get(name[dot:]) if dot >= 0 else None)
    if kind is None and name.startswith(("dockerfile.", "makefile.")):
        kind = name.partition(".")[0].replace("makefile", "make")
    if kind is not None and TEXT_KINDS[kind].configuration and _DATA.search(path):
        return None
    return kind


_ALIASES = {
    **{"python2": "python", "python3": "python", "ipython": "python", "ipython3": "python", "xpython": "python"},
    **{"pyspark": "python", "sagemath": "python", "ir": "r", "c#": "csharp", "f#": "fsharp", "golang": "go"},
    **{"node": "javascript", "node.js": "javascript", "shell": "bash", "deno": "typescript", "spark": "scala"},
    **{"pwsh": "powershell", "octave": "matlab", "gophernotes": "go", "ihaskell": "haskell", "evcxr": "rust"},
    **{"emacs-lisp": "elisp", "common-lisp": "lisp", "tslab": "typescript", "jslab": "javascript"},
}


def language_called(name: str) -> str | None:
    """The key of LANGUAGES or TEXT_KINDS, or value of PROSE, that people or kernels call so, by a name or extension.

    >>> language_called("Python3"), language_called("rs"), language_called("c++"), language_called("english")
    ('python', 'rust', 'cpp', None)
    """
    name = name.lower().strip()
    name = _ALIASES.get(name, name)
    if name in LANGUAGES or name in TEXT_KINDS:
        return name
    return language_of(f".{name}") or _BY_FILE.get(f".{name}") or PROSE.get(f".{name}")


def is_configuration(path: str) -> bool:
    """Whether a file is read as text that configures rather than computes.

    >>> is_configuration("Makefile"), is_configuration("hide.pl"), is_configuration("Main.java")
    (True, False, False)
    """
    kind = text_kind(path)
    return kind is not None and TEXT_KINDS[kind].configuration


def read(source: bytes, kind: str, repository: str, path: str, *, outside: bool = True) -> tuple[list[Document], bool]:
    """Documents of a text in source order, and whether it was skipped for a line over MAX_LINE.

    kind: a key of TEXT_KINDS. outside=False: definitions only, no blocks.
    """
    source = as_utf8(source)
    if kind == "objective-c" and path.endswith(".m") and not _OBJECTIVE_C.search(source):
        kind = "matlab"  # both are `.m`
    text = source.decode("utf-8", "replace").replace("\r", "\n").replace("\0", " ")
    if max(map(len, text.split("\n"))) > MAX_LINE:
        return [], True
    file = _File(text, TEXT_KINDS[kind], repository, path)
    documents = filter(None, (_document(part, file) for part in _parts(file)))
    return [document for document in documents if outside or document.kind == DEFINITION], False


class _File:
    """The lines of a text, also without comments and strings (`bare`), and these by the line they start on."""

    def __init__(self, text: str, kind: TextKind, repository: str, path: str) -> None:
        self.kind, self.repository, self.path = kind, repository, path
        self._definition = re.compile(kind.definition)
        self.comments: dict[int, list[str]] = {}
        self.literals: dict[int, list[str]] = {}
        self.comment_lines: set[int] = set()
        """Lines that are nothing but comment."""
        pieces = []
        at = line = 0
        for match in _comments_and_strings(kind).finditer(blank_quotes(text)):
            start, end = match.span()
            line_end = text.rfind("\n", at, start)
            line += text.count("\n", at, start)
            by_line = self.literals if match.lastgroup == "string" else self.comments
            by_line.setdefault(line, []).append(text[start:end])
            pieces += [text[at:start], _NOT_LINE_END.sub(" ", text[start:end])]
            begins_line = (line_end >= 0 or not at) and not text[line_end + 1 : start].strip()
            first, at = line, end
            line += text.count("\n", start, end)
            if by_line is self.comments and begins_line:
                # an empty line may separate a comment of several lines from what it is about
                self.comment_lines.update(range(first, line + 1 + (line > first and text[end : end + 2] == "\n\n")))
        self.lines, self.bare = text.split("\n"), "".join([*pieces, text[at:]]).split("\n")

    @cached_property
    def names(self) -> list[str | None]:
        """The name that each line defines; None for one that defines none, or is no code."""
        return list(map(self._name, self.lines, self.bare))

    def _name(self, line: str, bare: str) -> str | None:
        match = self._definition.match(line, 0, MAX_DEFINITION) if bare.strip() else None
        return ".".join(group.strip() for group in match.groups() if group) or None if match else None


@lru_cache
def _comments_and_strings(kind: TextKind) -> re.Pattern[str]:
    signs = [COMMENT_PATTERNS[sign] for sign in kind.comments.split()]
    string = f"(?P<string>{_STRING})"
    comment = f"(?P<comment>{'|'.join(signs)})" if signs else ""
    first, second = (comment, string) if kind.comments in ("'", '"') else (string, comment)
    return re.compile("|".join(filter(None, (first, second))), re.DOTALL)


class _Part(NamedTuple):
    """Lines first..last, 0-based and inclusive, and the line of its definition; -1 without."""

    first: int
    last: int
    definition: int


def _parts(file: _File) -> Iterator[_Part]:
    """The line ranges of documents, in order."""
    starts: dict[int, int] = {}  # first line -> line of the definition
    before, last, start = -MIN_DEFINITION, None, 0
    for number in () if file.kind.configuration else range(len(file.lines)):
        if number - 1 not in file.comment_lines and not _ANNOTATION.match(file.bare[number - 1]):
            start = number
        name = file.names[number]
        if name is not None and name != last and number - before >= MIN_DEFINITION:
            before = number
            last = name if file.kind.equations else None
            starts[start] = number
    bounds = [0, *(start for start in starts if start), len(file.lines)]
    for first, end in pairwise(bounds):
        definition = starts.get(first, -1)
        for number, (a, b) in enumerate(split_lines(file.lines, first, end, definition >= 0)):
            yield _Part(a, b, definition if not number else -1)


def split_lines(lines: Sequence[str], first: int, end: int, whole: bool) -> Iterator[tuple[int, int]]:
    """Lines first..end in pieces of MIN_BLOCK to MAX_BLOCK lines, without empty lines around; `whole`: in few pieces.

    A piece ends at an empty line, or, where too long, at the line of least indentation in its second half.
    """
    while end > first and not lines[end - 1].strip():
        end -= 1
    while first < end:
        if not lines[first].strip():
            first += 1
            continue
        stop = _piece_end(lines, first, end, whole)
        last = stop - 1
        while not lines[last].strip():
            last -= 1
        yield first, last
        first = stop


def _piece_end(lines: Sequence[str], first: int, end: int, whole: bool) -> int:
    """The end (exclusive) of the piece that starts at a line."""
    if whole and end - first <= MAX_BLOCK:
        return end
    limit = min(end, first + MAX_BLOCK)
    if not whole:
        for number in range(first + MIN_BLOCK, limit):
            if not lines[number].strip() and end - number > MIN_BLOCK:
                return number
    if limit == end:
        return end
    half = range(limit, first + MAX_BLOCK // 2, -1)
    return min(half, key=lambda n: (bool(lines[n - 1].strip()), len(lines[n]) - len(lines[n].lstrip())))


def _document(part: _Part, file: _File) -> Document | None:
    """None where the lines hold no word."""
    first, last, definition = part
    words = _words(part, file)
    if not words:
        return None
    stem = file.path.rpartition("/")[2].partition(".")[0] or file.path
    scope, name, kind = list[str](), stem, BLOCK
    if file.kind.configuration:
        name = next(filter(None, file.names[first : last + 1]), stem)
    elif definition >= 0:
        *scope, name = ((file.names[definition] or "").replace("::", ".").strip(".") or stem).split(".")
        kind, first = DEFINITION, definition  # the comment above is its documentation, as of every function
    if scope:
        words["scope"] = tuple(filter(None, scope))
    words["name"], words["path"] = (name,), (file.path,)
    hashed = "\n".join(line.rstrip() for line in file.bare[first : last + 1] if line.strip())
    hashed += "\0".join(words.get("literals", ()))
    return Document(
        id=f"{file.repository}/{file.path}:{first + 1}",
        repository=file.repository,
        path=file.path,
        start_line=first + 1,
        end_line=last + 1,
        language=file.kind.name,
        kind=kind,
        name=name,
        qualified_name=".".join((*scope, name)),
        words=words,
        code="\n".join(file.lines[first : last + 1]),
        digest=digest_of(hashed.encode("utf-8", "replace")),
    )


def _words(part: _Part, file: _File) -> dict[Field, Tokens]:
    """The words in some lines, by field; a comment above the definition is its documentation."""
    words: dict[Field, list[str]] = {}
    for number in range(part.first, part.last + 1):
        if number > part.definition >= 0 and (name := file.names[number]) not in (None, file.names[part.definition]):
            words.setdefault("declared", []).append(name)  # a short definition below it
        for comment in file.comments.get(number, ()):
            field: Field = "doc" if number < part.definition else "comments"
            words.setdefault(field, []).append(clean_comment(_COMMENT_SIGN.sub("", comment) or " "))
        words.setdefault("literals", []).extend(literal[1:-1] for literal in file.literals.get(number, ()))
        for match in _NAME.finditer(file.bare[number]):
            is_call = match["call"] is not None and not file.kind.configuration
            name = match.group().rstrip("( \t")
            if name.lower() not in _KEYWORDS or file.bare[number].endswith(".", 0, match.start()):  # aws_vpc.this
                words.setdefault(_field(name, is_call), []).append(name)
    return {field: some for field, every in words.items() if (some := tuple(filter(None, every)))}


def _field(name: str, is_call: bool) -> Field:
    if is_call:
        return "calls"
    if len(name) > 1 and name.isupper():
        return "enums"
    return "types" if name[0].isupper() else "identifiers"
