"""Decides which files are read, and how: with a grammar, as a notebook, a page with scripts, a script, or as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from ncs.errors import unknown
from ncs.extract import embedded, sections, text_files, treesitter
from ncs.extract.documents import with_distinct_ids
from ncs.extract.languages import INSTALL, LANGUAGES, is_installed, language_of
from ncs.extract.sections import prose_language
from ncs.extract.text_files import TEXT_KINDS, text_kind
from ncs.sources.filters import PROSE, Readable
from ncs.types import Document

FRONTENDS = ("tree-sitter", "javalang")
"""What parses Java; other languages are always read with tree-sitter."""
NOTEBOOK, PAGE, SCRIPT = "notebook", "page", "script"
_PROSE = frozenset(PROSE.values())
_PAGES = frozenset({".vue", ".svelte", ".html", ".htm", ".xhtml", ".astro"})
_NAMED = {
    **dict.fromkeys("Rakefile Gemfile Vagrantfile Podfile Fastfile Guardfile Capfile Brewfile".split(), "ruby"),  # noqa: SIM905
    **dict.fromkeys("Berksfile Thorfile Dangerfile Appraisals Puppetfile Appfile Matchfile".split(), "ruby"),  # noqa: SIM905
    **dict.fromkeys("SConstruct SConscript wscript Snakefile".split(), "python"),  # noqa: SIM905
    **dict.fromkeys("PKGBUILD APKBUILD .bashrc .bash_profile .bash_aliases .profile".split(), "bash"),  # noqa: SIM905
    **dict.fromkeys("BUILD WORKSPACE".split(), "bazel"),  # noqa: SIM905
}
_FIRST_LINE = re.compile(rb"#![ \t]*(\S+)[ \t]*([^\n]*)")
_RUN_BY = """\
bash: bash sh dash ash ksh mksh
zsh: zsh
fish: fish
python: python pypy uv sage
ruby: ruby jruby rbx
javascript: node nodejs bun gjs qjs
typescript: ts-node tsx deno
php: php
lua: lua luajit texlua
perl: perl
elixir: elixir iex
haskell: runhaskell runghc stack cabal
scala: scala scala-cli amm
kotlin: kotlin kotlinc
swift: swift
rust: rust-script cargo
java: java jbang
groovy: groovy
erlang: escript
r: Rscript littler
julia: julia
tcl: tclsh wish expect
awk: awk gawk mawk nawk
raku: raku perl6
powershell: pwsh powershell
applescript: osascript
make: make gmake
clojure: bb clojure clj
racket: racket guile
lisp: sbcl clisp
ocaml: ocaml
crystal: crystal
dart: dart
"""
LANGUAGE_OF: Mapping[str, str] = {
    program: language
    for language, _, programs in (line.partition(": ") for line in _RUN_BY.splitlines())
    for program in programs.split()
}
"""Program, without its version -> language."""
_OBJECTIVE_C = re.compile(rb"^@(?:interface|protocol|class|import)\b", re.MULTILINE)
"""In a header: no grammar of C parses it."""
_WITHOUT = " without a grammar"


def reader_of(path: str) -> str | None:
    """The reader for a file name: a language, also of prose, NOTEBOOK, PAGE, a key of TEXT_KINDS, or SCRIPT; None where
    there is none.

    SCRIPT: the first line of the file names its language, if it is a script at all.

    >>> reader_of("a/Main.java"), reader_of("a.ipynb"), reader_of("a.vue"), reader_of("a.pl"), reader_of("README.md")
    ('java', 'notebook', 'page', 'perl', 'markdown')
    """
    if (language := language_of(path)) is not None:
        return language
    name = path[path.rfind("/") + 1 :]
    extension = name[name.rfind(".") :].lower()
    if extension == ".ipynb":
        return NOTEBOOK
    if extension in _PAGES:
        return PAGE
    return _NAMED.get(name) or text_kind(path) or prose_language(path) or (None if "." in name else SCRIPT)


def script_language(data: bytes) -> str | None:
    """The language of a script by its first line; None where it names no known program.

    >>> script_language(b"#!/usr/bin/env -S python3.11 -u\\nimport os"), script_language(b"#! /bin/sh -e")
    ('python', 'bash')
    >>> script_language(b"MIT License"), script_language(b"#!/usr/bin/env ENV=1 node")
    (None, 'javascript')
    """
    match = _FIRST_LINE.match(data)
    if match is None:
        return None
    words = [match[1], *match[2].split()]
    names = [word.decode("ascii", "replace").rpartition("/")[2] for word in words]
    if names[0] == "env":
        names = [name for name in names[1:] if name[:1] != "-" and "=" not in name]
    name = names[0] if names else ""
    return LANGUAGE_OF.get(name) or LANGUAGE_OF.get(name.rstrip("-.0123456789"))


def readable(path: str, *, texts: bool = True) -> Readable:
    """Whether a file is read; a function of its content where the name does not tell. texts=False: except as text or
    prose.
    """
    reader = reader_of(path)
    if reader == SCRIPT:
        return partial(_is_script, texts)
    if reader in TEXT_KINDS or reader in _PROSE:
        return texts or is_installed(str(reader))
    return reader is not None and (reader in (NOTEBOOK, PAGE) or is_installed(reader))


readable_code = partial(readable, texts=False)
"""`readable`, except as text or prose."""


def readable_functions(path: str) -> Readable:
    """`readable`, except prose."""
    return readable(path) if reader_of(path) not in _PROSE else False


def _is_script(texts: bool, data: bytes) -> bool:
    language = script_language(data)
    return language is not None and (is_installed(language) or (texts and language in TEXT_KINDS))


def skip_reason(path: str) -> str:
    """Why a file is not read, for statistics.

    >>> skip_reason("LICENSE.md"), skip_reason("Makefile")
    ('other language', 'make without a grammar')
    """
    reader = reader_of(path)
    return f"{reader}{_WITHOUT}" if reader not in (None, SCRIPT) else "other language"


def read_code(
    source: bytes, language: str, repository: str, path: str, frontend: str = "tree-sitter", *, outside: bool = False
) -> tuple[list[Document], bool]:
    """Documents of a file in a language, in source order, and whether it has syntax errors.

    Raises SourceError where the front end cannot read the file at all, BadInput for an unknown language or front end.
    """
    if frontend not in FRONTENDS:
        raise unknown("front end", frontend, FRONTENDS)
    if language not in LANGUAGES:
        raise unknown("language", language, LANGUAGES)
    if frontend == "javalang" and language == "java":
        from ncs.extract import javalang_frontend

        return javalang_frontend.read(source, LANGUAGES[language], repository, path)
    return treesitter.read(source, LANGUAGES[language], repository, path, outside=outside)


def read(
    source: bytes, repository: str, path: str, frontend: str = "tree-sitter", *, outside: bool = False
) -> tuple[list[Document], bool]:
    """Documents of a file, in source order if one reader reads all of it; and whether it has syntax errors.

    outside: classes, the top level and sections of prose too; javalang gives functions only. A file without a
    reader has none.
    Raises what `read_code` raises, and SourceError for a notebook that cannot be read.
    """
    reader = reader_of(path)
    if reader == SCRIPT:
        reader = script_language(source)
    if reader is None:
        return [], False
    if reader == "cpp" and path.endswith(".h") and _OBJECTIVE_C.search(source):
        reader = "objective-c"
    if is_installed(reader):
        documents, broken = read_code(source, reader, repository, path, frontend, outside=outside)
        if reader == "php" and b"<script" in source:
            scripts = embedded.read_scripts_in_php(source, repository, path, outside=outside)
            documents = with_distinct_ids([*documents, *scripts])
        return documents, broken
    if reader in _PROSE:
        return sections.read(source, reader, repository, path) if outside else ([], False)
    if reader == NOTEBOOK:
        return embedded.read_notebook(source, repository, path, outside=outside)
    if reader == PAGE:
        return embedded.read_page(source, repository, path, outside=outside)
    return text_files.read(source, reader, repository, path, outside=outside)


def count_text_files(paths: Iterable[str]) -> dict[str, int]:
    """The numbers of files that are read as text by kind, most frequent first.

    >>> count_text_files(["Makefile", "a.pl", "b.pl", "Main.java", "bin/deploy"])
    {'perl': 2, 'make': 1}
    """
    readers = filter(None, map(reader_of, paths))
    kinds = sorted(reader for reader in readers if reader in TEXT_KINDS and not is_installed(reader))
    return dict(Counter(kinds).most_common())


def grammar_notes(texts: Mapping[str, int], skipped: Mapping[str, int]) -> Iterator[str]:
    """A sentence with the remedy, where grammars that are not installed would read more.

    texts: what `count_text_files` gives. skipped: files left out, by reason.

    >>> list(grammar_notes({}, {"minified": 2}))
    []
    """
    unread = {name: n for name in sorted(LANGUAGES) if (n := skipped.get(f"{name}{_WITHOUT}", 0))}
    as_plain_text = {name: n for name, n in texts.items() if name in LANGUAGES}
    for what, files in (
        ("were read as plain text; to read their functions", as_plain_text),
        ("were left out; to read them", unread),
    ):
        if files:
            counts = ", ".join(f"{n:,} of {name}" for name, n in Counter(files).most_common())
            yield f"files ({counts}) {what}, {INSTALL}"
