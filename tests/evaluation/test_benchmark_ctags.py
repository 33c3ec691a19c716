"""The comparison with Universal Ctags: what counts as found, missed, and no function."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evaluation.benchmarks import ctags as bench_ctags
from evaluation.benchmarks.ctags import KNOWN
from ncs.extract import LANGUAGES

needs_ctags = pytest.mark.skipif(shutil.which("ctags") is None, reason="apt-get install universal-ctags")


def test_every_language_has_its_name_in_ctags() -> None:
    assert set(KNOWN) == set(LANGUAGES)


@needs_ctags
def test_a_table_and_a_file_say_what_was_found_and_what_has_no_body(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "a.java").write_text("abstract class A {\n  void one() { }\n  A() { }\n  abstract void two();\n}\n")
    (sources / "b.rs").write_text("fn one() {}\nmod m {\n    pub fn two() {}\n}\n")
    assert bench_ctags.main([str(sources), "--json", str(tmp_path / "out.json")]) == 0
    assert [line.split()[1::2] for line in capsys.readouterr().out.splitlines()[2:]] == [
        ["java", "1", "2", "2", "2", "100.0%", "1"],
        ["rust", "1", "2", "2", "2", "100.0%", "0"],
    ]


@needs_ctags
def test_a_function_that_no_document_holds_is_missed_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / "a.scala").write_text('val text = """\ndef written = 1\n"""\ndef one = 2\n')
    assert bench_ctags.main([str(folder), "--examples", "3"]) == 0
    row, missed = capsys.readouterr().out.splitlines()[2:]
    assert row.split()[1::2] == ["scala", "1", "1", "2", "1", "50.0%", "0"]
    assert missed == "r/a.scala:2 written (function)"
