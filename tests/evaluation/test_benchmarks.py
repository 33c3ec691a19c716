"""Benchmarks: bin/benchmark lists them, and each runs on a small corpus and writes true counts."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.benchmarks import build, extract, query, scale, serve, update, vectors
from evaluation.benchmarks import ctags as bench_ctags
from evaluation.benchmarks.ctags import KNOWN
from evaluation.benchmarks.random_edits import KINDS, edited
from evaluation.benchmarks.serve import Answers, Load, ask
from evaluation.experiments import all_documents
from ncs.extract import LANGUAGES
from ncs.index import Index
from tests import corpus
from tests.gitrepo import write
from tests.webserver import serving

ROOT = Path(__file__).parents[2]
BENCHMARK = ROOT / "bin/benchmark"
HELPERS = {"__init__", "common", "random_edits"}
JAVA = """class A {
  A() { }
  int one() { return 1; }
  void two() { one(); }
}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources, an index of them, and queries."""
    home = tmp_path_factory.mktemp("benchmarks")
    Index.build(corpus.write(home / "repos"), home / "index").close()
    (home / "queries.txt").write_text("hide soft keyboard\n\nread text file\n")
    return home


def report_of(path: Path) -> Any:
    return json.loads(path.read_text())


def test_the_script_lists_every_benchmark_with_its_first_line() -> None:
    done = subprocess.run(["bash", BENCHMARK], capture_output=True, text=True, check=True)
    lines = [line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()]
    files = sorted((ROOT / "evaluation/benchmarks").glob("*.py"))
    expected = [
        [file.stem, str(ast.get_docstring(ast.parse(file.read_text()))).split("\n")[0]]
        for file in files
        if file.stem not in HELPERS
    ]
    assert lines == expected


def test_the_script_refuses_an_unknown_name_in_one_line_before_it_installs_anything() -> None:
    done = subprocess.run(["bash", BENCHMARK, "extrac"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("bin/benchmark: no benchmark 'extrac'; choose one of: build ctags extract")


def test_extraction_is_counted_by_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "A.java").write_text(JAVA)
    (folder / "B.java").write_text("class B { void three() { int x = ; } void four() { } }\n")
    (folder / "c.py").write_text("def f():\n    return 1\n\n\nclass C:\n    def g(self):\n        return f()\n")
    assert extract.main([str(folder), "--rounds", "1", "--json", str(tmp_path / "out.json")]) == 0
    found = report_of(tmp_path / "out.json")["languages"]
    assert {
        name: (each["files"], each["documents"], each["broken"], each["failed"]) for name, each in found.items()
    } == {"java": (2, 5, 1, 0), "python": (1, 2, 0, 0)}
    assert found["java"]["bytes"] == sum(path.stat().st_size for path in folder.glob("*.java"))
    assert found["java"]["ratio"] == pytest.approx(found["java"]["extract"] / max(found["java"]["parse"], 1e-9))
    assert [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines()][2:] == [
        "java",
        "python",
        "all",
    ]
    assert extract.main([str(tmp_path / "none")]) == 2


@pytest.mark.slow
def test_a_query_is_timed_cold_and_warm(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [str(home / "index"), "--queries", str(home / "queries.txt"), "--json", str(tmp_path / "out.json")]
    assert query.main([*command, "--rounds", "1"]) == 0
    found = report_of(tmp_path / "out.json")
    assert set(found["milliseconds"]) == {"hybrid", "bm25", "ncs_centred", "FAISS, brute force", "bm25s"}
    assert all(len(times) == 2 and min(times) > 0 for times in found["milliseconds"].values())
    assert found["cold"]["ncs query"]["cpu"] > 0
    assert "| hybrid" in capsys.readouterr().out


@pytest.mark.slow
def test_a_build_is_measured_beside_its_floors(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [str(home / "repos"), "--workers", "1", "--json", str(tmp_path / "out.json")]
    assert build.main(command) == 0
    found = report_of(tmp_path / "out.json")
    assert list(found["seconds"]) == ["ncs", "parse", "fasttext", "faiss", "bm25s"]
    with Index.load(home / "index") as index:
        assert found["documents"] == len(index)
    assert "| floors" in capsys.readouterr().out


@pytest.mark.slow
def test_an_update_after_edits_holds_the_documents_of_a_build(home: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in (home / "repos").rglob("*") if path.is_file()}
    options = ["--files", "1", "--rounds", "1", "--edits", "3", "--json", str(tmp_path / "out.json")]
    assert update.main([str(home / "index"), str(home / "repos"), *options]) == 0
    found = report_of(tmp_path / "out.json")
    assert found["same_documents"] is True
    assert sum(found["edits"].values()) == 3
    assert list(found["seconds"]) == ["1 changed", "nothing changed", "3 edits", "build"]
    assert {path: path.read_bytes() for path in (home / "repos").rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_kinds_of_vectors_are_measured_against_exact_search(home: Path, tmp_path: Path) -> None:
    command = [str(home / "index"), "--queries", str(home / "queries.txt"), "--rows", "3000"]
    assert vectors.main([*command, "--json", str(tmp_path / "out.json")]) == 0
    found = report_of(tmp_path / "out.json")
    assert (found["vectors"], found["queries"]) == (3_000, 2)
    assert found["kinds"]["exact"]["at_10"]["recall"] == 1.0
    assert found["kinds"]["pq"]["at_10"]["recall"] >= 0.5
    assert found["kinds"]["pq"]["bytes_per_vector"] < found["kinds"]["exact"]["bytes_per_vector"]


def java(folder: Path) -> Path:
    """Two repositories of 60 functions each."""
    for repository, noun in (("one", "File"), ("two", "Socket")):
        functions = "\n".join(
            f"  int {verb}{noun}{n}({noun} it) {{\n    int total = {n};\n    it.{verb}();\n    check(total);\n"
            f"    return total;\n  }}"
            for verb in ("open", "close", "read", "write", "send", "find")
            for n in range(10)
        )
        (folder / repository).mkdir(parents=True)
        (folder / repository / f"{noun}s.java").write_text(f"class {noun}s {{\n{functions}\n}}\n")
    return folder


def test_synthetic_functions_keep_parsing_and_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    real = java(tmp_path / "real")
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        scale.write_sources(real, tmp_path / name, 300, seed)
    files = {name: {p.name: p.read_bytes() for p in (tmp_path / name).rglob("*.java")} for name in "abc"}
    assert files["a"] == files["b"] != files["c"]
    with Index.build(tmp_path / "a", tmp_path / "index") as index:
        kinds = [document.kind for document in all_documents(index)]
        copies = sum(len(document.copies) for document in all_documents(index) if document.kind == "method")
        assert index.description.counts["broken"] == 0
    assert kinds.count("method") + copies == 300
    assert copies > 20


@pytest.mark.slow
def test_an_index_of_any_size_is_built_and_queried(home: Path, tmp_path: Path) -> None:
    command = [str(java(tmp_path / "real")), "--functions", "250", "--queries", str(home / "queries.txt")]
    command += ["--build", "--embeddings lsa", "--out", str(tmp_path / "out"), "--json", str(tmp_path / "out.json")]
    for _ in range(2):  # what is there is queried again
        assert scale.main(command) == 0
    (run,) = report_of(tmp_path / "out.json")["runs"]
    assert run["functions"] == 250
    assert 0 < run["open_s"] <= run["first_s"]
    assert run["build_peak_bytes"] > 2**20
    (tmp_path / "empty").mkdir()
    command[0:3] = [str(tmp_path / "empty")]
    assert scale.main([*command, "--out", str(tmp_path / "other")]) == 2


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


def test_every_answer_is_counted_and_a_refusal_is_an_error() -> None:
    with serving() as site:
        site.put("/good", b"12345")
        answers = ask(site.url, ["/good", "/none"], Load(4, 0.01, 1.0))
    paths = Counter(path for path, _ in site.asked)
    assert answers.errors == {"404": paths["/none"]}
    assert len(answers.milliseconds) == paths.total() > 4


def test_percentiles_are_those_of_the_answers() -> None:
    values = [0.5, 1.0, 1.1, 2.0, 3.0, 40.0]
    summary = Answers(values, Counter({"503": 1}), 2.0).summary()
    assert (summary["requests"], summary["requests_per_second"], summary["errors"]) == (6, 3.0, {"503": 1})
    assert summary["ms"]["p95"] == pytest.approx(np.percentile(values, 95), abs=0.01)
    assert summary["ms"]["p100"] == 40


@pytest.mark.slow
def test_an_index_is_served_and_asked_without_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Index.build(corpus.write(tmp_path / "repos"), tmp_path / "index").close()
    queries, report = tmp_path / "queries.txt", tmp_path / "report.json"
    queries.write_text("hide soft keyboard\nread text file\n")
    options = ["--queries", str(queries), "--clients", "3", "--think", "0.05", "--seconds", "3", "--workers", "1"]
    assert serve.main([str(tmp_path / "index"), *options, "--json", str(report)]) == 0
    phases = json.loads(report.read_text())["phases"]
    assert len(phases) == 5
    assert all(phase["requests"] > 0 for phase in phases.values())
    assert "| search " in capsys.readouterr().out


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("fails", [False, True])
def test_files_are_edited_in_every_way_and_come_back_as_they_were(tmp_path: Path, fails: bool) -> None:
    root = write(tmp_path, {f"a{n}.py": f"def f{n}():\n    return get({n})\n" for n in range(60)} | {"empty.py": ""})
    before = contents(root)
    try:
        with edited(sorted(root.iterdir())) as made:
            assert sum(made.values()) == 61
            assert all(made[kind] for kind in KINDS)
            during = contents(root)
            assert len(during) == 61 + made["copy"] - made["delete"]
            assert sum(during.get(name) == kept for name, kept in before.items()) <= made["copy"] + 1
            if fails:
                raise InterruptedError
    except InterruptedError:
        assert fails
    assert contents(root) == before
