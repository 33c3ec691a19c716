"""Kinds of files that are read as text, without a grammar: their names, comment signs and what a definition looks like.

A kind of code has definitions; a document starts at each. Configuration has none: it is cut at empty lines and ranks
lower (ncs.storage.file_roles). Prose, data, lock files and logs are no kinds: queries are prose too, and would find
them before every function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

MAX_DEFINITION = 300
"""Characters of a line that are searched for a definition."""


@dataclass(frozen=True, slots=True)
class TextKind:
    """A row of TEXT_KINDS."""

    name: str
    files: tuple[str, ...]
    """Extensions with their dot, and whole names, in lower case."""
    comments: str
    """Keys of COMMENT_PATTERNS, separated by spaces."""
    definition: str
    """A regular expression for the line of a definition; its first matching group is the name."""
    configuration: bool = False
    """Settings, builds and markup rather than a program."""
    equations: bool = False
    """A function may consist of several clauses, one below the other."""

    @lru_cache  # noqa: B019  (rows live as long as the process)
    def pattern(self) -> re.Pattern[str]:
        """`definition`, compiled."""
        return re.compile(self.definition)

    def defines(self, line: str) -> str | None:
        """The name that a line defines; None without. Only its first MAX_DEFINITION characters count."""
        match = self.pattern().match(line, 0, MAX_DEFINITION)
        return next((group.strip() for group in match.groups() if group), None) if match else None


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
    r"(?:\w+(?:::|\.))*(~?\w+)[ \t]*\([^;\n]*(?:$|\{|=>)"
)
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
    ("dart", ".dart", _C, _CLIKE),
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
    ("terraform", ".tf .hcl .tofu", "# // /*", r"^(?:\w+)\s+\"[^\"]+\"\s+\"([^\"]+)\"|^(?:module|variable|output|provider)\s+\"([^\"]+)\"|^(\w+)\s*\{"),  # noqa: E501
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


def is_configuration(path: str) -> bool:
    """Whether a file is read as text that configures rather than computes.

    >>> is_configuration("Makefile"), is_configuration("hide.pl"), is_configuration("Main.java")
    (True, False, False)
    """
    kind = text_kind(path)
    return kind is not None and TEXT_KINDS[kind].configuration
