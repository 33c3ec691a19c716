"""Benchmarks: each runs on a small corpus and writes true counts."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corpora.jsonl import write_rows
from evaluation.benchmarks import scale, tokens
from evaluation.benchmarks.__main__ import NAMES, main
from evaluation.benchmarks.ctags import COUNTERS
from evaluation.benchmarks.serve import Load, ask
from evaluation.benchmarks.tokens import Span
from evaluation.experiments import all_documents
from ncs.extract import LANGUAGES
from ncs.index import Index
from ncs.serve.mcp import pages
from ncs.serve.mcp.projects import Projects, Settings
from ncs.serve.mcp.tools import answer
from tests import corpus
from tests.corpus import QUICK
from tests.gitrepo import git, repository, write
from tests.webserver import serving

FOLDER = Path(__file__).parents[2] / "evaluation/benchmarks"
JAVA = "class A {\n  A() { }\n  int one() { return 1; }\n  void two() { one(); }\n}\n"


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.txt"
    path.write_text("hide soft keyboard\n\nread text file\n")
    return path


def report_of(out: Path, *arguments: object) -> Any:
    """The figures of a benchmark that ends well."""
    assert main([*map(str, arguments), "--json", str(out / "report.json")]) == 0
    return json.loads((out / "report.json").read_text())


def test_every_benchmark_is_listed_and_an_unknown_one_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(NAMES) == {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "__main__", "common"}
    assert main([]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == list(NAMES)
    assert main(["extrac"]) == 2
    assert capsys.readouterr().err.startswith("benchmark: no benchmark 'extrac'; choose one of: build, cold")


def test_extraction_is_counted_by_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = "class B { void three() { int x = ; } void four() { } }\n"
    python = "def f():\n    return 1\n\n\nclass C:\n    def g(self):\n        return f()\n"
    folder = write(tmp_path / "sources", {"A.java": JAVA, "B.java": broken, "c.py": python})
    languages = report_of(tmp_path, "extract", folder, "--rounds", 1)["languages"]
    names = ("files", "documents", "broken", "failed", "bytes")
    assert {language: tuple(each[name] for name in names) for language, each in languages.items()} == {
        "java": (2, 5, 1, 0, len(JAVA) + len(broken)), "python": (1, 2, 0, 0, len(python)),
    }  # fmt: skip
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert rows[2:] == ["java", "python", "all"]
    assert main(["extract", str(tmp_path / "none")]) == 2


def contents(root: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "part", "names"),
    [
        ("cold .ncs --rounds 1 --queries", "cold", "import numpy, faiss, ncs query"),
        ("query .ncs --queries", "milliseconds", "FAISS, exact, hybrid, bm25, ncs_centred, bm25s"),
        ("build repos --workers 1 --rounds 1", "seconds", "read and parse, ncs build"),
        ("update .ncs repos --files 1 --rounds 1", "seconds", "1 changed, nothing changed"),
    ],
)
def test_a_benchmark_times_every_part_and_leaves_its_corpus_as_it_was(
    queries: Path, tmp_path: Path, command: str, part: str, names: str
) -> None:
    own = tmp_path / "demo"  # a file that is changed and restored keeps its mtime, but not its ctime
    Index.build(corpus.write(own / "repos"), own / ".ncs", config=QUICK).close()
    before = contents(own)
    arguments = [own / word if word in (".ncs", "repos") else word for word in command.split()]
    report = report_of(tmp_path, *arguments, *[queries] * command.endswith("--queries"))
    peers = ("rg --count", "ctags", "rg", "semble")  # where they are installed
    assert ", ".join(name for name in report[part] if name not in peers) == names
    assert all(report[part].values())
    assert contents(own) == before


@pytest.mark.slow
def test_kinds_of_vectors_are_measured_against_exact_search(demo: Path, queries: Path, tmp_path: Path) -> None:
    report = report_of(tmp_path, "vectors", demo / ".ncs", "--queries", queries, "--rows", 3000)
    assert (report["vectors"], report["queries"]) == (3_000, 2)
    assert report["kinds"]["exact"]["at_10"]["recall"] == 1.0
    assert report["kinds"]["pq"]["at_10"]["recall"] >= 0.5
    assert report["kinds"]["pq"]["bytes_per_vector"] < report["kinds"]["exact"]["bytes_per_vector"]


def java(folder: Path) -> Path:
    """Two repositories of 60 functions each."""
    for name, noun in (("one", "File"), ("two", "Socket")):
        functions = "\n".join(
            f"  int {verb}{noun}{n}({noun} it) {{\n    int total = {n};\n    it.{verb}();\n    check(total);\n"
            f"    return total;\n  }}"
            for verb in ("open", "close", "read", "write", "send", "find")
            for n in range(10)
        )
        write(folder, {f"{name}/{noun}s.java": f"class {noun}s {{\n{functions}\n}}\n"})
    return folder


@pytest.mark.slow
def test_synthetic_functions_keep_parsing_and_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    real, files = java(tmp_path / "real"), {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        scale.write_sources(real, tmp_path / name, 300, seed)
        files[name] = {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.java")}
    assert files["a"] == files["b"] != files["c"]
    with Index.build(tmp_path / "a", tmp_path / "index") as index:
        methods = [document for document in all_documents(index) if document.kind == "method"]
        assert index.description.counts["broken"] == 0
    copies = sum(len(method.copies) for method in methods)
    assert (len(methods) + copies, copies > 20) == (300, True)


@pytest.mark.slow
def test_an_index_of_any_size_is_built_and_queried(queries: Path, tmp_path: Path) -> None:
    command = ["scale", java(tmp_path / "real"), "--functions", 250, "--queries", queries]
    command += ["--build", "--embeddings lsa", "--out", tmp_path / "out"]
    first, again = report_of(tmp_path, *command), report_of(tmp_path, *command)
    assert first["build_s"] == again["build_s"]  # the index that is there is queried again
    assert 0 < again["open_s"] <= again["first_s"]
    assert again["build_peak_bytes"] > 2**20


@pytest.mark.skipif(shutil.which("ctags") is None, reason="apt-get install universal-ctags")
def test_functions_of_ctags_are_found_or_missed_or_have_no_body(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "a.java": "abstract class A {\n  void one() { }\n  A() { }\n  abstract void two();\n}\n",
        "b.rs": "fn one() {}\nmod m {\n    pub fn two() {}\n}\n",
        "d.lua": "M = {}\nfunction M:go() return 1 end\n",  # ctags names it M:go
        "c.scala": 'val text = """\ndef written = 1\n"""\ndef one = 2\n',
    }
    assert set(COUNTERS) == set(LANGUAGES)
    report = report_of(tmp_path, "ctags", write(tmp_path / "r", files), "--examples", 3)
    assert report["languages"]["scala"]["missed"] == ["r/c.scala:2 written (function)"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1::2] for line in lines[2:6]] == [
        ["java", "1", "2", "2", "2", "100.0%", "1"],
        ["lua", "1", "1", "1", "1", "100.0%", "0"],
        ["rust", "1", "2", "2", "2", "100.0%", "0"],
        ["scala", "1", "1", "2", "1", "50.0%", "0"],
    ]
    assert lines[6] == "r/c.scala:2 written (function)"


@pytest.mark.skipif(shutil.which("ctags") is None, reason="apt-get install universal-ctags")
def test_names_of_ctags_are_found_where_they_are_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "limits.py": "MAX_SIZE = 3\nSCALE = 4\n",
        "use.py": "from limits import MAX_SIZE\n\n\ndef use():\n    return MAX_SIZE\n",
        "twice.py": "SCALE = 5\nlow = 1\n",
        "other.h": "#define OTHER_MACRO(a) a\n",
    }
    revision = git(repository(tmp_path / "mirror/o+r/repo", files), "rev-parse", "HEAD").strip()
    row = {"id": "1", "repo": "o/r", "root": ".", "category": "symbol", "query": "use", "relevant": ["use.py::use"]}
    write_rows(tmp_path / "questions.jsonl", [{**row, "revision": revision}])
    report = report_of(tmp_path, "names", "--data", tmp_path, "--mirror", tmp_path / "mirror")
    once = {"names": 1, "first": 1, "file": 1, "five": 1, "def": 1}
    assert report["kinds"] == {"macro": once, "variable": once}
    assert capsys.readouterr().out.splitlines()[-3].split()[1::2] == ["all", "2", "1.000", "1.000", "1.000", "1.000"]


def test_every_answer_is_counted_and_a_refusal_is_an_error() -> None:
    with serving() as site:
        site.put("/good", b"12345")
        summary = ask(site.url, ["/good", "/none"], Load(4, 0.01, 1.5)).summary()
    paths = Counter(path for path, _ in site.asked)
    assert (summary["errors"], summary["requests"]) == ({"404": paths["/none"]}, paths.total())
    assert paths.total() > 4


@pytest.mark.slow
def test_an_index_is_served_and_searched_without_errors(demo: Path, queries: Path, tmp_path: Path) -> None:
    options = ["--clients", 3, "--think", 0.05, "--seconds", 2, "--workers", 1]
    report = report_of(tmp_path, "serve", demo / ".ncs", "--queries", queries, *options)
    assert len(report["phases"]) == 4
    assert all(phase["requests"] > 0 for phase in report["phases"].values())


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
def test_each_side_costs_the_tokens_before_the_first_right_function(tmp_path: Path) -> None:
    files = {
        "often.py": "# keyboard keyboard\n# Keyboard\n",  # 3 matches
        "right.py": "import os\n\n\ndef hide_keyboard():\n    pass\n",  # 1 match of keyboard, 1 of hide
        "never.py": "def other():\n    pass\n",
    }
    Index.build(write(tmp_path, files), tmp_path / ".ncs").close()
    projects = Projects(Settings(roots=(tmp_path,)))
    question = "how to hide the keyboard"
    right, never = ({Span("right.py", 4, 5)}, {Span("never.py", 1, 2)})
    page = answer(projects, None, "search_code", {"query": question}).text
    hit = page.partition("\n2. ")[0]
    assert hit.startswith("1. right.py:4-5 hide_keyboard (function, ")
    assert "def hide_keyboard():\n" in hit
    cost = {
        name: [side(question, frozenset(spans)) for spans in (right, never)]
        for name, side in tokens.sides(tmp_path, projects).items()
    }
    lines = ["often.py:1:# keyboard keyboard\n", "often.py:2:# Keyboard\n", "right.py:4:def hide_keyboard():\n"]
    none = float("inf")
    read = pages.tokens(files["often.py"]) + pages.tokens("import os\n\n\ndef hide_keyboard():")
    assert cost == {
        "search": [pages.tokens(hit), none],
        "answers": [1_000, none],
        "lines": [sum(map(pages.tokens, lines)), none],
        "read": [read, none],
    }
    assert [tokens.rank(projects, question, frozenset(spans)) for spans in (right, never)] == [1, None]


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
def test_questions_whose_functions_are_named_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"a.py": "def hide_keyboard():\n    pass\n", "copy.py": "def hide_keyboard():\n    pass\n"}
    revision = git(repository(tmp_path / "repositories" / "o+r", files), "rev-parse", "HEAD").strip()
    row = {"id": "1", "repo": "o/r", "root": ".", "revision": revision, "query": "hide the keyboard"}
    (tmp_path / "questions.jsonl").write_text(json.dumps({**row, "relevant": ["copy.py::hide_keyboard"]}) + "\n")
    figures = report_of(tmp_path, "tokens", "--data", tmp_path)["sets"][tmp_path.name]
    assert (figures["questions"], figures["found"], figures["with_code"]) == (1, 1, 1.0)
    assert figures["recall"]["answers"] == {"1000": 1.0, "2000": 1.0, "8000": 1.0}
    assert "1.000 (1.000)" in capsys.readouterr().out
