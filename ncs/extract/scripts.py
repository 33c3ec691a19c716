"""Scripts without an extension: the language named by their first line (`#!`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FIRST = re.compile(rb"#![ \t]*(\S+)[ \t]*([^\n]*)")
_VERSION = re.compile(r"[-.\d]+$")
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


def may_be_script(path: str) -> bool:
    """Whether a file has neither an extension nor a hidden name.

    >>> may_be_script("bin/deploy"), may_be_script("deploy.sh"), may_be_script(".profile")
    (True, False, False)
    """
    return "." not in path[path.rfind("/") + 1 :]


def script_language(data: bytes) -> str | None:
    """The language of a script by its first line; None where it names no known program.

    >>> script_language(b"#!/usr/bin/env -S python3.11 -u\\nimport os"), script_language(b"#! /bin/sh -e")
    ('python', 'bash')
    >>> script_language(b"MIT License"), script_language(b"#!/usr/bin/env ENV=1 node")
    (None, 'javascript')
    """
    match = _FIRST.match(data)
    if match is None:
        return None
    words = [match[1], *match[2].split()]
    names = [word.decode("ascii", "replace").rpartition("/")[2] for word in words]
    if names[0] == "env":
        names = [name for name in names[1:] if name[:1] != "-" and "=" not in name]
    name = names[0] if names else ""
    return LANGUAGE_OF.get(name) or LANGUAGE_OF.get(_VERSION.sub("", name))
