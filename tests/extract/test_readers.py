"""What reads a file: its extension, its name, or the first line of a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncs.errors import SourceError
from ncs.extract import LANGUAGES, treesitter
from ncs.extract.readers import LANGUAGE_OF, count_text_files, read, readable, readable_code, reader_of, script_language
from ncs.extract.text_files import TEXT_KINDS
from ncs.sources import Skipped, walk
from tests.fuzz.extract import repeated
from tests.gitrepo import write

# the first line, and the rest, of which a function is read
SCRIPTS = [
    ("bash", b"#!/bin/sh", b"hide() {\n  g\n}"),
    ("bash", b"#! /usr/bin/env bash", b"hide() {\n  g\n}"),
    ("python", b"#!/usr/bin/python3.11 -u", b"def hide():\n    g()"),
    ("python", b"#!/usr/bin/env -S uv run --script", b"def hide():\n    g()"),
    ("javascript", b"#!/usr/bin/env NODE_ENV=test node --no-warnings", b"function hide() {\n  g();\n}"),
    ("typescript", b"#!/usr/bin/env -S deno run", b"function hide(n: number) {\n  g();\n}"),
    ("php", b"#!/usr/bin/php8.2", b"<?php\nfunction hide() {\n  g();\n}"),
    ("haskell", b"#!/usr/bin/env runhaskell", b"hide n = g n"),
    ("perl", b"#!/usr/bin/perl -w", b"sub hide {\n  g();\n}"),
    ("r", b"#!/usr/bin/env Rscript", b"hide <- function(n) {\n  g(n)\n}"),
]


@pytest.mark.parametrize(("language", "first", "rest"), SCRIPTS, ids=[first.decode() for _, first, _ in SCRIPTS])
def test_the_first_line_says_the_language(language: str, first: bytes, rest: bytes) -> None:
    for end in (b"\n", b"\r\n"):
        ((hide,), broken) = read(first + end + rest, "r", "bin/tool")
        assert (hide.language, hide.name, hide.start_line) == (language, "hide", 2 + rest.startswith(b"<?php"))
        assert not broken


def test_a_file_without_a_program_in_its_first_line_is_no_script_and_every_program_has_a_language() -> None:
    for first in (b"", b"MIT License", b"#!", b"#!/bin/sed -f", b"#!/usr/bin/env", b" #!/bin/sh"):
        assert script_language(first + b"\nhide() { g; }\n") is None
        assert read(first + b"\nhide() { g; }\n", "r", "tool") == ([], False)
    assert set(LANGUAGE_OF.values()) <= set(LANGUAGES) | set(TEXT_KINDS)


@pytest.mark.parametrize(
    ("names", "reader"),
    [
        ("Makefile GNUmakefile", "make"),
        ("Dockerfile Containerfile", "dockerfile"),
        ("Rakefile Gemfile Vagrantfile Dangerfile", "ruby"),
        ("SConstruct Snakefile", "python"),
        ("Jenkinsfile", "jenkinsfile"),
        ("justfile", "just"),
        ("PKGBUILD .bashrc", "bash"),
        ("deploy a.b/deploy", "script"),
        ("README.md notes.markdown a.mdx", "markdown"),
        ("notes.rst CHANGES.rst", "restructuredtext"),
        ("a.adoc", "asciidoc"),
        ("LICENSE.md docs/license.rst CODE_OF_CONDUCT.md .github/ISSUE_TEMPLATE/bug.md", None),
        (".hidden deploy.txt data.csv data.json a.log a.svg strings.xml .env", None),
        ("package-lock.json pnpm-lock.yaml yarn.lock locales/de.yml i18n/fr.properties", None),
        ("messages_de.properties tests/fixtures/a.yaml", None),
    ],
)
def test_the_name_says_what_reads_a_file_and_licenses_data_lock_files_and_secrets_are_not_read(
    names: str, reader: str | None
) -> None:
    for name in names.split():
        assert reader_of(f"x/{name}") == reader, name
        assert bool(readable(f"x/{name}")) == (reader is not None)
        assert bool(count_text_files([name])) == (reader in TEXT_KINDS and reader not in LANGUAGES)


def test_of_files_without_an_extension_a_walk_gives_scripts_and_counts_the_others(tmp_path: Path) -> None:
    scripts = {"bin/deploy": "#!/bin/bash\nhide() { g; }\n", "bin/report": "#!/usr/bin/perl\nsub hide { g(); }\n"}
    others = {"bin/program": "\x7fELF\0\0", "gradlew": "#!/bin/sh\nwarn() { g; }\n", "LICENSE": "MIT License\n"}
    write(tmp_path, {**scripts, **others, "Makefile": "all:\n\tg\n", "src/a.py": "def f(): pass\n"})
    skipped = Skipped()
    paths = [file.path for file in walk([tmp_path], readable=readable, skipped=skipped)]
    assert paths == ["Makefile", "bin/deploy", "bin/report", "src/a.py"]
    assert skipped.counts == {"other language": 2, "generated": 1}
    assert [file.path for file in walk([tmp_path], readable=readable_code)] == ["bin/deploy", "src/a.py"]


def test_code_nested_deeper_than_people_write_is_refused_before_captures_take_minutes() -> None:
    function = "object A { def f() = { val x = %sa } }"
    assert read((function % ("a+\n" * 5_000)).encode(), "r", "a.scala")[0]
    with pytest.raises(SourceError, match="nested too deep"):
        read((function % ("a+\n" * 50_000)).encode(), "r", "a.scala")


def test_parsing_ends_with_its_cpu_time_where_what_is_counted_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    path, code = repeated("scala", "0a,", 10_000, inside=True)
    assert read(code, "r", path)[1]
    monkeypatch.setattr(treesitter, "CPU_SECONDS", 0.01)
    with pytest.raises(SourceError, match="too long to parse"):
        read(code, "r", path)
