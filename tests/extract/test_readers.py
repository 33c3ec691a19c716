"""What reads a file: its extension, its name, or the first line of a script; scripts in PHP pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncs.extract import LANGUAGES
from ncs.extract.readers import read, readable, readable_code, reader_of, text_kind_of
from ncs.extract.scripts import LANGUAGE_OF, script_language
from ncs.extract.text_kinds import TEXT_KINDS
from ncs.sources import Skipped, walk

# the first line, and the rest, of which a function is read
SCRIPTS = [
    ("bash", b"#!/bin/sh", b"hide() {\n  g\n}"),
    ("bash", b"#! /usr/bin/env bash", b"hide() {\n  g\n}"),
    ("python", b"#!/usr/bin/python3.11 -u", b"def hide():\n    g()"),
    ("python", b"#!/usr/bin/env -S uv run --script", b"def hide():\n    g()"),
    ("ruby", b"#!/usr/bin/env ruby", b"def hide\n  g\nend"),
    ("javascript", b"#!/usr/bin/env NODE_ENV=test node --no-warnings", b"function hide() {\n  g();\n}"),
    ("typescript", b"#!/usr/bin/env -S deno run", b"function hide(n: number) {\n  g();\n}"),
    ("php", b"#!/usr/bin/php8.2", b"<?php\nfunction hide() {\n  g();\n}"),
    ("lua", b"#!/usr/bin/lua5.4", b"function hide()\n  g()\nend"),
    ("elixir", b"#!/usr/bin/env elixir", b"defmodule A do\n  def hide(), do: g()\nend"),
    ("haskell", b"#!/usr/bin/env runhaskell", b"hide n = g n"),
    ("perl", b"#!/usr/bin/perl -w", b"sub hide {\n  g();\n}"),
    ("tcl", b"#!/usr/bin/tclsh", b"proc hide {} {\n  g\n}"),
    ("r", b"#!/usr/bin/env Rscript", b"hide <- function(n) {\n  g(n)\n}"),
]


@pytest.mark.parametrize(("language", "first", "rest"), SCRIPTS, ids=[first.decode() for _, first, _ in SCRIPTS])
def test_the_first_line_says_the_language(language: str, first: bytes, rest: bytes) -> None:
    for end in (b"\n", b"\r\n"):
        found, broken = read(first + end + rest, "r", "bin/tool")
        assert [(document.language, document.name) for document in found] == [(language, "hide")]
        assert found[0].start_line == 2 + rest.startswith(b"<?php") + rest.startswith(b"defmodule")
        assert not broken


@pytest.mark.parametrize(
    "first", [b"", b"MIT License", b"#!", b"#!/bin/sed -f", b"#!/usr/bin/env", b" #!/bin/sh", b"#!\xff"]
)
def test_a_file_without_a_known_first_line_is_no_script(first: bytes) -> None:
    assert script_language(first + b"\nhide() { g; }\n") is None
    assert read(first + b"\nhide() { g; }\n", "r", "tool") == ([], False)


def test_every_language_of_a_first_line_is_read() -> None:
    assert set(LANGUAGE_OF.values()) <= set(LANGUAGES) | set(TEXT_KINDS)


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("Makefile", "make"),
        ("GNUmakefile", "make"),
        ("Dockerfile", "dockerfile"),
        ("Containerfile", "dockerfile"),
        ("Rakefile", "ruby"),
        ("Gemfile", "ruby"),
        ("Vagrantfile", "ruby"),
        ("Dangerfile", "ruby"),
        ("SConstruct", "python"),
        ("Snakefile", "python"),
        ("Jenkinsfile", "jenkinsfile"),
        ("justfile", "just"),
        ("PKGBUILD", "bash"),
        (".bashrc", "bash"),
        ("deploy", "script"),
        ("a.b/deploy", "script"),
        (".hidden", None),
        ("deploy.txt", None),
    ],
)
def test_what_reads_a_file_without_an_extension(name: str, reader: str | None) -> None:
    assert reader_of(f"x/{name}") == reader
    assert bool(readable(f"x/{name}")) == (reader is not None)
    assert text_kind_of(f"x/{name}") == (reader if reader in TEXT_KINDS and reader not in LANGUAGES else None)


def test_of_files_without_an_extension_a_walk_gives_scripts_and_counts_the_others(tmp_path: Path) -> None:
    files = {
        "bin/deploy": b"#!/bin/bash\nhide() { g; }\n",
        "bin/report": b"#!/usr/bin/perl\nsub hide { g(); }\n",
        "bin/program": b"\x7fELF\0\0",
        "gradlew": b"#!/bin/sh\nwarn() { g; }\n",
        "LICENSE": b"MIT License\n",
        "Makefile": b"all:\n\tg\n",
        "src/a.py": b"def f(): pass\n",
    }
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    skipped = Skipped()
    assert [file.path for file in walk([tmp_path], wanted=readable, skipped=skipped)] == [
        "Makefile",
        "bin/deploy",
        "bin/report",
        "src/a.py",
    ]
    assert skipped.counts == {"other language": 2, "generated": 1}
    assert [file.path for file in walk([tmp_path], wanted=readable_code)] == ["bin/deploy", "src/a.py"]


PAGE = b"""<?php
function hide($view) { return '?><script>'; }
?>
<html><script type="text/template"><b></b></script>
<script>
  // <?php echo "no end here"; ?>
  const url = <?= $url ?>;
  function show(view) { open(view, "<?= $x ?>"); }
</script>
<?php foreach ($a as $b): /* ?> <script> */ ?>
<script lang="ts">const draw = (n: number) => n;</script>
<?php endforeach ?>
"""


def test_scripts_in_the_html_around_php_are_read() -> None:
    found, broken = read(PAGE, "r", "page.php")
    assert [(d.language, d.name, d.start_line, d.end_line) for d in found] == [
        ("php", "hide", 2, 2),
        ("javascript", "show", 8, 8),
        ("typescript", "draw", 11, 11),
    ]
    assert not broken
    assert found[1].words["calls"] == ("open",)
    whole, _ = read(PAGE, "r", "page.php", outside=True)
    assert len({document.id for document in whole}) == len(whole)
    assert any("url" in d.words.get("identifiers", ()) for d in whole if d.language == "javascript")
