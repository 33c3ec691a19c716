"""The parts of CodeSearchNet's pipeline one by one: licenses, documentation, code, names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from corpora.codesearchnet.filters import CONSTRUCTOR, METHOD, TEST, first_paragraph, read_code, reason_to_drop
from corpora.codesearchnet.licenses import identify_license, license_expression
from corpora.codesearchnet.pipeline import Rules, collect
from corpora.codesearchnet.repositories import Repository
from ncs.extract import extract
from tests.gitrepo import write

MIT = """The MIT License (MIT)

Copyright (c) 2020 Somebody Else

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction
"""
BSD = (
    "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided that "
    "the following conditions are met:\n1. Source keeps the notice.\n"
)
NOTICE = 'Copyright 2020 X\n\nLicensed under the Apache License, Version 2.0 (the "License"); you may not use'


@pytest.mark.parametrize(
    ("text", "license"),
    [
        (MIT, "MIT"),
        (MIT + "\n\nParts are by others:\n" + BSD + "Neither the name of X nor of Y\n" * 40, "MIT"),
        (NOTICE, "Apache-2.0"),
        (BSD + "Neither the name of the author may be used", "BSD-3-Clause"),
        (BSD, "BSD-2-Clause"),
        ("Boost Software License - Version 1.0 - August 17th, 2003\n\nPermission is hereby granted", "BSL-1.0"),
        ("is hereby granted, free of charge, to any person obtaining a copy of the Font Software", ""),
        ("PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n1. This LICENSE AGREEMENT is", "PSF-2.0"),
        (
            " GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007\n ... GNU General Public License version 3",
            "GPL-3.0",
        ),
        ("it under the terms of the GNU General Public License as published by the FSF, either version 2", "GPL-2.0"),
        ("All rights reserved. Ask us.", ""),
        ("This work is licensed under CC BY-NC 4.0", ""),
    ],
)
def test_a_license_is_known_by_its_text_or_by_its_first_sentence(text: str, license: str) -> None:
    assert identify_license(text) == license


def test_several_licence_files_are_joined_and_unknown_ones_do_not_count_beside_known_ones() -> None:
    assert license_expression([]) == ""
    assert license_expression(["Ask us."]) == "unknown"
    assert license_expression([MIT, "third parties: see there"]) == "MIT"
    assert license_expression([NOTICE, MIT]) == "Apache-2.0 AND MIT"


@pytest.mark.parametrize(
    ("documentation", "paragraph"),
    [
        ("Hides <b>it</b>.<p>More.", "Hides it."),
        ("Hides it.\n<p>\nMore.", "Hides it."),
        ("Hides it.\n@param view the view", "Hides it."),
        ("Hides it.\n\\param view the view", "Hides it."),
        ("Hides it.\nArgs:\n  view: the view", "Hides it."),
        ("Hides it.\nParameters\n----------\nview", "Hides it."),
        ("Hides it.\n>>> hide()", "Hides it."),
        ("Returns the view of it", "Returns the view of it"),
        ('<summary>\nHides <see cref="View" />.\n</summary>\n<param name="a">b</param>', "Hides View."),
        ("", ""),
        ("größe &amp; Länge", "größe & Länge"),
    ],
)
def test_documentation_is_cut_at_its_first_paragraph(documentation: str, paragraph: str) -> None:
    assert first_paragraph(documentation) == paragraph


@pytest.mark.parametrize(
    ("language", "kind", "source", "tokens", "docstring"),
    [
        ("java", "method", 'int f() { // a\n return "a b" + 1; }',
         ["int", "f", "(", ")", "{", "return", '"a b"', "+", "1", ";", "}"], ""),
        ("python", "function", '@x\ndef f(a):\n    """Says.\n\n    More.\n    """\n    return \'"""\'',
         ["@", "x", "def", "f", "(", "a", ")", ":", "return", "'\"\"\"'"], "Says.\n\nMore."),
        ("python", "function", "def f():\n    # one\n    def g():\n        'inner'\n    return g",
         ["def", "f", "(", ")", ":", "def", "g", "(", ")", ":", "'inner'", "return", "g"], ""),
        ("python", "function", "def f():\n    # one\n    # two\n    'Says.'\n    return 1",
         ["def", "f", "(", ")", ":", "return", "1"], "Says."),
        ("python", "function", "def f():\n    # to do", ["def", "f", "(", ")", ":"], ""),
        ("go", "function", "func f() int {\n\treturn 1 /* b */\n}",
         ["func", "f", "(", ")", "int", "{", "return", "1", "}"], ""),
        ("javascript", "function", "function f(a) { return `x ${a}`; }",
         ["function", "f", "(", "a", ")", "{", "return", "`x ${a}`", ";", "}"], ""),
        ("php", "method", "public function f() { return $this->a; }",
         ["public", "function", "f", "(", ")", "{", "return", "$", "this", "->", "a", ";", "}"], ""),
        ("ruby", "method", "def f\n  1 # b\nend", ["def", "f", "1", "end"], ""),
    ],
)  # fmt: skip
def test_tokens_are_tree_sitters_leaves_without_comments_strings_as_one(
    language: str, kind: str, source: str, tokens: list[str], docstring: str
) -> None:
    code = read_code(source, language, kind)
    assert [*code.tokens] == tokens
    assert code.docstring == docstring


@pytest.mark.parametrize(
    ("language", "source", "reasons"),
    [
        ("java", "class A { A() {} public String toString() {} void load() {} void latestOne() {} static { } }",
         {"A": CONSTRUCTOR, "toString": METHOD, "load": None, "latestOne": TEST, "initializer": CONSTRUCTOR}),
        ("python", "class A:\n def __init__(self): pass\n def __str__(self): pass\n def load(self): pass\n",
         {"__init__": CONSTRUCTOR, "__str__": METHOD, "load": None}),
        ("javascript", "class A { constructor() {} toString() {} load() {} }",
         {"constructor": CONSTRUCTOR, "toString": METHOD, "load": None}),
        ("php", "<?php class A { function __construct() {} function __toString() {} function load() {} }",
         {"__construct": CONSTRUCTOR, "__toString": METHOD, "load": None}),
        ("ruby", "class A\n def initialize; end\n def to_s; end\n def ==(o); end\n def load; end\nend",
         {"initialize": METHOD, "to_s": METHOD, "==": METHOD, "load": None}),
        ("go", "package a\nfunc (a A) String() string { return x }\nfunc Load() {}\nfunc TestLoad(t T) {}",
         {"String": METHOD, "Load": None, "TestLoad": TEST}),
    ],
)  # fmt: skip
def test_constructors_standard_methods_and_tests_of_the_six_languages_are_left_out(
    language: str, source: str, reasons: dict[str, str | None]
) -> None:
    removed = {
        document.name or document.kind: reason_to_drop(language, document.kind, document.name, document.qualified_name)
        for document in extract(source.encode(), language)
    }
    assert removed == reasons


DOCUMENTED = Path(__file__).parents[1] / "data" / "documented"
"""A documented function of every language, in its own convention, its documentation of more than a paragraph."""


@pytest.mark.parametrize("path", sorted(path.name for path in DOCUMENTED.iterdir()))
def test_the_first_paragraph_is_found_by_every_languages_own_convention(tmp_path: Path, path: str) -> None:
    write(tmp_path / "code", {path: (DOCUMENTED / path).read_bytes()})
    collect(Repository("code", tmp_path / "code"), tmp_path / "work", Rules(any_license=True))
    [lines] = (tmp_path / "work").glob("*.jsonl.gz")
    rows = [json.loads(line.partition(b" ")[2]) for line in gzip.decompress(lines.read_bytes()).splitlines()]
    documented = [(row["func_name"].rpartition(".")[2].lower(), row["docstring"]) for row in rows]
    first = {"load.go": "Load reads the file.", "load.zig": "Reads the file. More."}.get(path, "Reads the file.")
    more = [("save", "Saves the file."), ("show", "Shows the file.")] if path == "load.js" else []
    assert documented == [("load", first), *more]
