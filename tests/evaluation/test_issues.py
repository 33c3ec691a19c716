"""Issue localisation end to end on a small repository of three commits; figures worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corpora.issues import Issue
from corpora.jsonl import write_rows
from evaluation import experiments, issues
from evaluation.__main__ import main
from evaluation.comparison import compare_results
from evaluation.experiments import Experiment
from evaluation.issues import Answer, right_functions, run_issues
from evaluation.reports import table
from evaluation.work_trees import WorkTree, find_objects
from ncs.index import Index
from ncs.serve.mcp.tools import DEFAULT_TOKENS
from ncs.types import Location
from tests import gitrepo

BODY = "    total = first + second\n    print(total)\n    return total\n"
ONE = (
    "class Shape:\n    def __init__(self):\n        self.sides = 4\n\n"
    f"    def area(self):\n        return self.sides\n\n\ndef one():\n{BODY}"
)
FILES = {f"lib/m{n}.py": f"def function_{n}(first, second):\n    '''Word{n} of {n}.'''\n{BODY}" for n in range(12)}


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """o/r at three commits; the second adds two files and changes one, the third removes one."""
    tree = gitrepo.repository(tmp_path / "mirror/o+r/repo", {**FILES, "lib/one.py": ONE, "lib/m0.py": "x = 1\n"})
    monkeypatch.setitem(gitrepo.ENVIRONMENT, "GIT_COMMITTER_DATE", "2020-01-02T00:00:00Z")
    gitrepo.commit(
        tree, {"lib/new.py": "def keyboard():\n    hide_soft_keyboard()\n", "lib/m1.py": "def other(): pass\n"}
    )
    monkeypatch.setitem(gitrepo.ENVIRONMENT, "GIT_COMMITTER_DATE", "2020-01-03T00:00:00Z")
    (tree / "lib/m2.py").unlink()
    gitrepo.commit(tree)
    return tmp_path / "mirror"


def revisions(mirror: Path) -> list[str]:
    """Oldest first."""
    return gitrepo.git(mirror / "o+r/repo", "rev-list", "--reverse", "HEAD").split()


def issue(id: str, revision: str, *files: str, text: str = "hide soft keyboard\n\nword11", **more: Any) -> Issue:
    return Issue(id, text, "o/r", revision, files, **more)


def run(found: list[Issue], mirror: Path, *rankers: str, **options: Any) -> Experiment:
    (experiment,) = run_issues("set", found, mirror, rankers, **options)
    return experiment


def ranking(files: Mapping[str, list[str]], functions: Mapping[str, list[list[str]]]) -> Callable[..., Answer]:
    """A ranker with these answers; functions are `path::name`, several for copies."""

    def places(names: list[str]) -> list[Location]:
        return [Location("r", path, 1, 2, name) for path, _, name in (each.partition("::") for each in names)]

    return lambda index, issue: Answer(files[issue.id], lambda: [places(each) for each in functions.get(issue.id, [])])


def test_figures_are_those_worked_out_by_hand(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = revisions(mirror)
    files = {"a": ["x", "p", "y", "q", "p"], "b": ["r"], "c": ["x"] * 3, "d": [f"x{n}" for n in range(5)] + ["p"]}
    functions = {"a": [["x::f"], ["z::h", "p::f"]], "b": [["r::K.__init__"], ["r::g"]]}
    monkeypatch.setattr(issues, "RANKERS", {**issues.RANKERS, "fixed": ranking(files, functions)})
    found = [
        issue("a", first, "p", "q", functions=("p::f",)),
        issue("b", first, "r", functions=("r::K", "r::g")),
        issue("c", first, "p"),
        issue("d", first, "p"),
    ]
    result = run(found, mirror, "fixed").builds[0].system("fixed")
    assert result.ranks == [[2, 4], [1], [0], [6]]
    assert result.values == {
        "acc@5": [1, 1, 0, 0], "acc@1": [0, 1, 0, 0], "acc@3": [0, 1, 0, 0], "acc@10": [1, 1, 0, 1],
        "mrr": [0.5, 1, 0, pytest.approx(1 / 6, abs=1e-6)],
        "functions acc@1": [0, 0, None, None], "functions acc@3": [1, 1, None, None],
        "functions acc@5": [1, 1, None, None], "functions acc@10": [1, 1, None, None],
    }  # fmt: skip
    assert (result.means["acc@10"], result.means["functions acc@1"], result.means["functions acc@3"]) == (0.75, 0, 1)


def test_issues_are_asked_at_their_commits_in_the_order_of_these(mirror: Path) -> None:
    first, second, third = revisions(mirror)
    found = [
        issue("late", third, "lib/new.py"),
        issue("early", first, "lib/new.py"),  # it is not there yet
        issue("between", second, "lib/m11.py", text="hide soft keyboard\n\nword11 of 11"),
    ]
    experiment = run(found, mirror, "hybrid", "title")
    (build,) = experiment.builds
    assert experiment.queries == ["early", "between", "late"]
    assert [each[0] for each in build.system("hybrid").ranks][::2] == [0, 1]
    assert build.system("title").values["acc@1"] == [0, 0, 1]  # of the title alone the new file is the first
    assert build.updates is not None
    assert (len(build.updates["seconds"]), build.updates["compactions"]) == (2, [0])
    assert experiment.measures == ["acc@5", "acc@1", "acc@3", "acc@10", "mrr"]  # no row knows functions


def test_tokens_are_those_that_an_agent_reads(mirror: Path) -> None:
    first, second, _ = revisions(mirror)
    files = [f"lib/m{n}.py" for n in range(2, 12)]
    long = issue("long", first, "lib/m2.py", text=f"word2 of {', '.join(files)}")
    short = issue("short", second, "lib/m2.py", text="Traceback of lib/m2.py")
    experiment = run([long, short], mirror, "hybrid", "locate")
    locate, hybrid, bm25 = (experiment.builds[0].system(name).tokens for name in ("locate", "hybrid", "bm25"))
    assert 0 < locate[1] < locate[0] <= DEFAULT_TOKENS
    assert len(hybrid) == 2
    assert not bm25  # no tool of ncs mcp asks it
    assert f"| {sum(locate) / 2:.0f}" in next(line for line in table(experiment).splitlines() if "locate" in line)


def test_limit_takes_the_first_issues_of_a_repository(mirror: Path) -> None:
    first, second, _ = revisions(mirror)
    found = [issue("b", second, "lib/new.py"), issue("a", first, "lib/one.py"), issue("c", first, "lib/one.py")]
    assert run(found, mirror, "bm25", limit=2).queries == ["a", "b"]


def test_an_update_that_loses_a_file_is_seen(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, _ = revisions(mirror)
    update = Index.update

    def losing(folder: Path) -> Any:
        (tree,) = (path for path in folder.parent.iterdir() if path.name != "index")
        return update(folder, paths=[tree / "lib/m1.py"])  # not lib/new.py

    monkeypatch.setattr(Index, "update", losing)
    updates = (
        run([issue("a", first, "x"), issue("b", second, "lib/new.py")], mirror, "title", every=1).builds[0].updates
    )
    assert updates is not None
    (check,) = updates["checks"]
    assert (check["missing"], check["extra"]) == (1, 0)
    assert check["examples"] == ["lib/new.py:1-2 keyboard"]
    title = check["rankings"]["title"]
    assert (title["updated"]["acc@1"], title["built"]["acc@1"]) == (0, 1)
    assert title["overlap"] < 1


def test_functions_are_the_innermost_ones_around_the_edited_lines(mirror: Path, tmp_path: Path) -> None:
    tree = WorkTree(find_objects("o/r", mirror), tmp_path / "tree")
    tree.check_out(revisions(mirror)[0])
    lines = {"lib/one.py": (1, 3, 6, 8, 10, 11), "lib/m3.py": (1,), "setup.cfg": (1,)}
    with Index.build(tree.folder, tmp_path / "index") as index:
        found = right_functions(issue("a", "", "lib/one.py", lines=lines), index)
        assert found == ("lib/one.py::Shape", "lib/one.py::Shape.area", "lib/one.py::one", "lib/m3.py::function_3")
        assert right_functions(issue("a", "", "lib/one.py"), index) == ()


def test_a_work_tree_is_the_commit_whatever_was_there_and_unchanged_files_are_not_written(
    mirror: Path, tmp_path: Path
) -> None:
    first, second, third = revisions(mirror)
    tree = WorkTree(find_objects("o/r", mirror), tmp_path / "tree")

    def at(revision: str) -> set[str]:
        assert tree.check_out(revision) == []
        assert gitrepo.git(tree.folder, "status", "--porcelain") == ""
        assert gitrepo.git(tree.folder, "rev-parse", "HEAD").strip() == revision
        return {path.name for path in (tree.folder / "lib").iterdir()}

    assert {"one.py", "m2.py"} == at(first) & {"one.py", "m2.py", "new.py"}
    written = (tree.folder / "lib/m3.py").stat().st_mtime_ns
    assert {"one.py", "new.py"} == at(third) & {"one.py", "m2.py", "new.py"}
    assert (tree.folder / "lib/m1.py").read_text() == "def other(): pass\n"
    assert {"one.py", "m2.py", "new.py"} == at(second) & {"one.py", "m2.py", "new.py"}
    assert (tree.folder / "lib/m3.py").stat().st_mtime_ns == written
    (tree.folder / "lib/new.py").unlink()
    (tree.folder / "lib/m4.py").write_text("changed")
    assert at(first) == set(map(str.strip, (path.removeprefix("lib/") for path in [*FILES, "lib/one.py"])))


def test_a_file_that_the_mirror_lacks_is_named_and_left_out(tmp_path: Path) -> None:
    repository = gitrepo.repository(tmp_path / "o+r", {"a.py": "x = 1\n", "b.py": "y = 1\n", "c.py": "z = 1\n"})
    blob = gitrepo.git(repository, "rev-parse", "HEAD:b.py").strip()
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    tree = WorkTree(find_objects("o/r", tmp_path), tmp_path / "tree")
    (line,) = tree.check_out(gitrepo.git(repository, "rev-parse", "HEAD").strip())
    assert "b.py" in line
    assert sorted(path.name for path in tree.folder.iterdir()) == [".git", "a.py", "c.py"]


@pytest.mark.parametrize("place", ["o+r/repo", "o+r", "o/r"])
@pytest.mark.parametrize("bare", [True, False])
def test_repositories_are_found_in_every_kind_of_mirror_and_checked_out(tmp_path: Path, place: str, bare: bool) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    make = gitrepo.bare if bare else gitrepo.repository
    repository = make(tmp_path / place, {"a.py": "x = 1\n", ".gitignore": "a.py\n"})
    tree = WorkTree(find_objects("o/r", tmp_path), tmp_path / "tree")
    head = gitrepo.git(repository, "rev-parse", "HEAD").strip()
    assert tree.date(head) == 1577836800
    (tree.folder / "left-over").mkdir()
    tree.check_out(head)
    assert sorted(path.name for path in tree.folder.iterdir()) == [".git", ".gitignore", "a.py"]
    assert gitrepo.git(tree.folder, "for-each-ref") == ""  # nothing of the future can be seen


def test_the_command_reads_three_forms_writes_a_result_and_compares_it(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, _ = revisions(mirror)
    swe_bench = {
        "instance_id": "swe", "repo": "o/r", "base_commit": first, "problem_statement": "area of a shape is wrong",
        "patch": "diff --git a/lib/one.py b/lib/one.py\n--- a/lib/one.py\n+++ b/lib/one.py\n@@ -6 +6 @@\n-a\n+b\n",
    }  # fmt: skip
    write_rows(
        tmp_path / "eval_three.jsonl.gz",
        [
            {
                "id": "ours",
                "query": "hide soft keyboard",
                "repo": "o/r",
                "revision": second,
                "relevant": ["lib/new.py"],
            },
            swe_bench,
            {
                **swe_bench,
                "instance_id": "loc",
                "edit_functions": ["lib/m5.py:function_5"],
                "problem_statement": "word5",
            },
        ],
    )
    out = tmp_path / "three.json"
    command = ["issues", str(tmp_path / "eval_three.jsonl.gz"), "--repositories", str(mirror), "--out", str(out)]
    assert main([*command, "--ranker", "hybrid"]) == 0
    printed = capsys.readouterr()
    assert "| hybrid | 1.000 [1.000, 1.000] | equal" in printed.out
    assert "1 updates, 0 of them compactions" in printed.out
    assert "ours: " in printed.err
    result = experiments.read(out)
    assert (result.corpus, result.queries[-1], result.texts) == ("three", "ours", ())
    assert set(result.queries[:2]) == {"swe", "loc"}
    hybrid = result.builds[0].system("hybrid")
    assert hybrid.ranks == [[1], [1], [1]]
    assert hybrid.values["functions acc@1"] == [1, 1, None]
    assert experiments.read(tmp_path / "three" / "three-r.json").queries == result.queries
    assert "hide soft keyboard" not in out.read_text()
    (acc, *_) = compare_results(f"{out}:hybrid", f"{out}:bm25", measures=["functions acc@5"])
    assert (acc.our_mean, acc.comparison.queries) == (1, 2)
    assert main([*command, "-q", "--work", str(tmp_path / "work"), "--ranker", "bm25"]) == 0
    assert (tmp_path / "work/o+r/r/lib/new.py").is_file()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, ["--ranker", "best"], "no ranker 'best'"),
        ({}, ["--limit", "0"], "--limit is 0; it must be at least 1"),
        ({}, ["--check", "-1"], "--check is -1; it must be at least 0"),
        ({}, ["--work", "."], "--work . exists; name a new folder"),
        ({"repo": "o/gone"}, [], "o+gone; clone o/gone to it, or leave its rows out"),
        ({"revision": "f" * 40}, [], f"r has no commit {'f' * 40}; fetch it, or leave the rows at it out"),
    ],
)
def test_wrong_input_is_one_line_with_its_remedy(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], options: list[str],
    message: str,
) -> None:  # fmt: skip
    row = {"id": "a", "query": "x", "repo": "o/r", "revision": revisions(mirror)[0], "relevant": ["a"], **change}
    write_rows(tmp_path / "rows.jsonl", [row])
    out = tmp_path / "out.json"
    assert (
        main(["issues", str(tmp_path / "rows.jsonl"), "--repositories", str(mirror), "--out", str(out), *options]) == 2
    )
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_results_of_repositories_are_pooled(mirror: Path) -> None:
    found = [issue(name, at, "lib/new.py") for name, at in zip("abc", revisions(mirror), strict=True)]
    part = run(found, mirror, "bm25", every=1)
    other = replace(part, corpus="other", queries=["d", "e", "f"])
    whole = experiments.pooled("both", [part, other])
    (build,), (half,) = whole.builds, part.builds
    assert build.updates is not None
    assert half.updates is not None
    assert len(build.updates["checks"]) == 2 * len(half.updates["checks"]) == 4
    assert build.updates["compactions"] == [0, 0]
    assert build.systems[0].ranks == [*half.systems[0].ranks] * 2
    assert json.dumps(build.updates)
