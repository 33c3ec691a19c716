"""The extraction benchmark and its script: rows, and counts that can be counted otherwise."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from pathlib import Path

import pytest

from evaluation import bench_extract, extract_languages
from evaluation.parse_floor import parse_files, start_processes
from ncs.extract import extract_files
from ncs.extract.pool import SMALL
from ncs.sources import SourceFile

ROOT = Path(__file__).parent.parent
BENCHMARK = ROOT / "bin/benchmark"
JAVA = """class A {
  A() { }
  int one() { return 1; }
  void two() { one(); }
}
"""
PYTHON = "def f():\n    return 1\n\n\nclass C:\n    def g(self):\n        return f()\n"
NOT_JAVA = "class B { void three() { int x = ; } void four() { } }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three Java files, one with a syntax error, and one of Python."""
    folder = tmp_path / "sources"
    folder.mkdir()
    texts = {"A.java": JAVA, "A2.java": JAVA.replace("class A", "class A2").replace("  A()", "  A2()"), "c.py": PYTHON}
    for name, text in {**texts, "B.java": NOT_JAVA}.items():
        (folder / name).write_text(text)
    return folder


def cells(table: str) -> dict[str, list[str]]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return {row[0]: row[1:] for row in rows[2:]}


def test_table_has_a_row_for_everything_measured_with_the_true_counts(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    assert bench_extract.main([str(folder), "--workers", "2", "--rounds", "1", "--json", str(report)]) == 0
    rows = cells(capsys.readouterr().out)
    assert list(rows) == [
        "bare parsing, 1", "documents, 1", "bare parsing, 2", "documents, 2", "start-up, 2",
        "tree-sitter, sample", "javalang, sample",
    ]  # fmt: skip
    functions = sum(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(PYTHON)))
    for name in ("bare parsing, 1", "documents, 1", "bare parsing, 2", "documents, 2"):
        files, methods, *_, broken, failed = rows[name]
        assert (files, int(methods), broken, failed) == ("4", functions + 3 + 3 + 2, "25.00", "0.00"), name
    tree_sitter, javalang = (rows[f"{name}, sample"] for name in ("tree-sitter", "javalang"))
    assert [*tree_sitter[:2], *tree_sitter[-2:]] == ["3", "8", "33.33", "0.00"]
    assert [*javalang[:2], *javalang[-2:]] == ["3", "6", "0.00", "33.33"]
    figures = json.loads(report.read_text())
    assert figures["bytes"] == sum(path.stat().st_size for path in folder.iterdir())
    runs = figures["rounds"][0]
    assert figures["ratios"]["1 process"]["wall"] == runs["documents, 1"]["wall"] / runs["bare parsing, 1"]["wall"]


def test_language_and_no_javalang_leave_out_what_they_say(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--language", "python", "--workers", "1", "--rounds", "1"]
    assert bench_extract.main([str(folder), *options]) == 0
    assert {name: row[:2] for name, row in cells(capsys.readouterr().out).items()} == {
        "bare parsing, 1": ["1", "2"], "documents, 1": ["1", "2"],
    }  # fmt: skip
    bench_extract.main([str(folder), "--workers", "1", "--rounds", "1", "--no-javalang"])
    assert list(cells(capsys.readouterr().out)) == ["bare parsing, 1", "documents, 1"]


def test_stream_counts_the_methods_and_shows_the_peak_twice(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_extract.main([str(folder), "--workers", "1", "--stream"]) == 0
    words = capsys.readouterr().out.split()
    assert words[:2] == ["10", "methods"]
    assert " ".join(words).count("MB") == 4


def test_folder_without_source_files_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench_extract.main([str(tmp_path)])
    assert "no source files in" in capsys.readouterr().err


def test_sample_is_java_within_the_limit_in_order_and_the_same_again() -> None:
    files = [SourceFile("r", f"{n:03}.{'py' if n % 5 == 0 else 'java'}", b"x" * 100) for n in range(200)]
    drawn = bench_extract.sample(files, 2_050)
    assert len(drawn) == 20
    assert all(file.path.endswith(".java") for file in drawn)
    assert [file.path for file in drawn] == sorted(file.path for file in drawn)
    assert drawn == bench_extract.sample(files, 2_050)
    assert len(bench_extract.sample(files, 1)) == 1


@pytest.mark.slow
def test_floor_in_processes_parses_every_file_that_extraction_reads() -> None:
    padding = b"/*" + b"x" * 20_000 + b"*/"
    files = [SourceFile("r", f"{n}.java", (JAVA if n % 7 else NOT_JAVA).encode() + padding) for n in range(300)]
    assert sum(len(file.data) for file in files) > SMALL
    extracted = list(extract_files(files, workers=2, finish=len))
    assert sum(len(chunk.broken) for chunk in extracted) == len(range(0, len(files), 7))
    assert parse_files(files, 2) == parse_files(files, 1) == len(range(0, len(files), 7))
    start_processes(2)


@pytest.mark.parametrize("asked", [[], ["--help"], ["-h"]], ids=str)
def test_script_without_a_name_lists_every_benchmark_and_its_first_line(asked: list[str]) -> None:
    done = subprocess.run(["bash", BENCHMARK, *asked], capture_output=True, text=True, check=True)
    lines = [line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()]
    files = sorted((ROOT / "evaluation").glob("bench_*.py"))
    assert lines == [[f.stem[6:], str(ast.get_docstring(ast.parse(f.read_text()))).split("\n")[0]] for f in files]
    assert {"extract", "lexical", "cold"} <= {name for name, _ in lines}


def test_script_refuses_an_unknown_name_in_one_line_before_it_installs_anything() -> None:
    done = subprocess.run(["bash", BENCHMARK, "extrac"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    there_are = " ".join(sorted(file.stem[6:] for file in (ROOT / "evaluation").glob("bench_*.py")))
    assert done.stderr.startswith(f"bin/benchmark: there is no benchmark 'extrac'; there are: {there_are}")


def test_script_is_executable_and_parses() -> None:
    assert os.access(BENCHMARK, os.X_OK)
    subprocess.run(["bash", "-n", BENCHMARK], check=True)


def test_table_by_language_counts_files_functions_and_bytes_and_is_added_to_the_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "figures.json"
    record.write_text('{"files": 7}')
    bench_extract.main([str(folder), "--by-language", "--rounds", "1", "--json", str(record)])
    rows = [line.split("|")[1:4] for line in capsys.readouterr().out.splitlines() if line.startswith("|")][2:]
    assert [[cell.strip() for cell in row] for row in rows] == [["java", "3", "8"], ["python", "1", "2"]]
    written = json.loads(record.read_text())
    assert written["files"] == 7
    java = written["languages"]["speeds"]["java"]
    assert java["bytes"] == sum(len(path.read_bytes()) for path in folder.glob("*.java"))
    assert java["broken"] == 1
    assert java["ratio"] == pytest.approx(java["documents"] / java["bare"])


def test_languages_are_drawn_up_to_the_limit_and_the_same_again() -> None:
    files = [SourceFile("r", f"{n}.py", b"x" * 100) for n in range(50)]
    drawn = extract_languages.speeds(files, 1, 1_050)["python"]
    assert (drawn.files, drawn.bytes) == (10, 1_000)
    assert extract_languages.speeds(files[:1], 1, 5)["python"].files == 1
