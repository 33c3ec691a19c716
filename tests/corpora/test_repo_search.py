"""Questions answered by files: repositories at their revisions, functions folded into files."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.corpus import write_beir
from corpora.jsonl import read_rows, write_rows
from corpora.repo_search import OWN_ROWS, ROWS, corpora, read
from evaluation.measures import evaluate
from ncs.errors import BadInput
from tests.gitrepo import bare, commit, git, repository

CORE = "def run():\n    start()\n\n\nclass A:\n    def stop(self):\n        halt()\n"
FILES = {"lib/core.py": CORE, "lib/sub/core.py": "def other():\n    pass\n", "setup.py": "def outside():\n    pass\n"}
IDS = ["core.py:1", "core.py:6", "core.py:5.A", "sub/core.py:1"]


def row(
    repo: str, number: int, revision: str, relevant: list[str], count: int = 1, root: str = "lib"
) -> dict[str, object]:
    return {
        "id": f"{repo.partition('/')[2]}-{number}", "repo": repo, "root": root, "revision": revision,
        "category": "semantic", "query": f"question {number}", "relevant": relevant, "relevant_count": count,
        "complete": True, "license": "MIT",
    }  # fmt: skip


def write(data: Path, *rows: dict[str, object]) -> Path:
    data.mkdir(exist_ok=True)
    write_rows(data / ROWS, rows)
    return data


def test_functions_below_the_root_are_read_at_the_pinned_revision(tmp_path: Path) -> None:
    work_tree = repository(tmp_path / "mirror/o+r", FILES)
    revision = git(work_tree, "rev-parse", "HEAD").strip()
    commit(work_tree, {"lib/core.py": "def newer():\n    pass\n"})
    data = write(tmp_path / "data", row("o/r", 0, revision, ["core.py"]), row("o/r", 1, revision, ["sub/core.py"]))
    (task,) = read(data, tmp_path / "mirror")
    assert (task.repository, task.revision, task.root, task.note) == ("o/r", revision, "lib", "")
    documents = list(task.corpus.documents())
    assert [document.id for document in documents] == IDS
    assert [document.path for document in documents] == ["core.py"] * 3 + ["sub/core.py"]
    assert {document.repository for document in documents} == {"o/r"}
    assert task.corpus.qrels == {"r-0": {"core.py": 1}, "r-1": {"sub/core.py": 1}}
    assert [query.text for query in task.corpus.queries] == ["question 0", "question 1"]


def test_a_bare_repository_without_the_revision_is_read_at_head_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "o+r").mkdir()
    bare(tmp_path / "o+r/repo", FILES)
    (task,) = read(write(tmp_path / "data", row("o/r", 0, "0" * 40, ["core.py"])), tmp_path)
    assert task.note == "o/r has no revision 000000000000; read at its HEAD."
    assert len(list(task.corpus.documents())) == 4


def test_a_repository_in_no_language_that_is_read_says_so_and_is_no_corpus(tmp_path: Path) -> None:
    repository(tmp_path / "repositories/o+plain", {"notes.nolanguage": "x"})
    repository(tmp_path / "repositories/o+code", FILES)
    plain = row("o/plain", 0, "main", ["notes.nolanguage"], root=".")
    first, second = read(write(tmp_path, plain, row("o/code", 0, "main", ["core.py"])))
    assert (first.note, second.note) == ("o/plain holds nothing in a language that is read", "")
    assert list(first.corpus.documents()) == []
    assert [corpus.name for corpus in corpora(tmp_path)] == ["repo_search-code"]


def test_a_file_has_the_rank_of_its_best_function_and_unlisted_relevant_files_count(tmp_path: Path) -> None:
    repository(tmp_path / "o+r", FILES)
    data = write(tmp_path / "data", row("o/r", 0, "main", ["sub/core.py"], 4))
    (corpus,) = (task.corpus for task in read(data, tmp_path))
    run = {"r-0": {"core.py:1": 3.0, "core.py:6": 2.0, "sub/core.py:1": 1.0}}
    assert evaluate(corpus.qrels, corpus.judged_run(run), "mrr") == {"r-0": 0.5}  # the second file, the third function
    assert evaluate(corpus.qrels, corpus.judged_run(run), "recall@10") == {"r-0": 0.25}
    with pytest.raises(BadInput, match="its qrels judge files"):
        write_beir(corpus, tmp_path / "beir")


def test_functions_may_be_the_answers_overloads_and_exact_copies_by_their_names(tmp_path: Path) -> None:
    repository(tmp_path / "o+r", {**FILES, "lib/copy.py": CORE.partition("class")[0]})
    row_of_functions = row("o/r", 0, "main", ["core.py::A.stop", "copy.py::run"])
    (corpus,) = (task.corpus for task in read(write(tmp_path / "data", row_of_functions), tmp_path))
    run = {"r-0": {"sub/core.py:1": 4.0, "core.py:1": 3.0, "core.py:5.A": 2.0}}
    assert evaluate(corpus.qrels, corpus.judged_run(run), "mrr") == {"r-0": 1 / 2}  # run of copy.py is a copy


def test_an_answer_that_is_no_function_of_the_repository_is_named(tmp_path: Path) -> None:
    repository(tmp_path / "o+r", FILES)
    data = write(tmp_path / "data", row("o/r", 0, "main", ["core.py::gone"]))
    (corpus,) = (task.corpus for task in read(data, tmp_path))
    with pytest.raises(BadInput, match=r"o/r has no function core\.py::gone; correct the question that it answers"):
        corpus.judged_run({"r-0": {"core.py:1": 1.0}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"repo": "../x"}, r":2: '\.\./x' is no owner/name"),
        ({"relevant": "core.py"}, ":2: 'relevant' is not a list of strings"),
        ({"relevant_count": 0}, ":2: nothing is relevant"),
        ({"repo": "o/gone"}, r"there is no .*o\+gone; fetch it with: python -m corpora fetch repo_search DATA"),
        ({"revision": "dev"}, r":2: another revision of o/r than in .*:1"),
        ({"id": "r-0"}, "two queries have the id 'r-0'"),
    ],
)
def test_wrong_rows_are_an_error_of_one_line(tmp_path: Path, change: dict[str, object], message: str) -> None:
    repository(tmp_path / "o+r", FILES)
    rows = row("o/r", 0, "main", ["core.py"]), {**row("o/r", 1, "main", ["core.py"]), **change}
    with pytest.raises(BadInput, match=message):
        read(write(tmp_path / "data", *rows), tmp_path)


def test_the_held_out_questions_name_each_file_once_below_a_pinned_root() -> None:
    rows = list(read_rows(Path(__file__).parents[2] / "evaluation" / "held_out" / OWN_ROWS))
    assert len({row.text("id") for row in rows}) == len(rows) == 174
    assert len({(row.text("repo"), row.text("revision"), row.text("root")) for row in rows}) == 12
    for row in rows:
        relevant = row.values["relevant"]
        assert isinstance(relevant, list)
        assert len(set(relevant)) == len(relevant) == row.values["relevant_count"]
        assert row.text("query").strip()


def test_the_written_questions_have_one_function_and_two_forms_each() -> None:
    rows = list(read_rows(Path(__file__).parents[2] / "evaluation" / "written" / OWN_ROWS))
    assert len({row.text("id") for row in rows}) == len(rows) == 2558
    pins = {(row.text("repo"), row.text("revision")) for row in rows}
    assert len({repository for repository, _ in pins}) == len(pins) == 64
    for how_to, short in zip(rows[::2], rows[1::2], strict=True):
        assert [row.text("category") for row in (how_to, short)] == ["how-to", "short"]
        assert how_to.values["relevant"] == short.values["relevant"] != []


def test_the_questions_to_learn_from_are_about_no_project_that_is_evaluated() -> None:
    evaluation = Path(__file__).parents[2] / "evaluation"
    learned = {row.text("repo") for row in read_rows(evaluation / "written" / "training.jsonl.gz")}
    judged = {row.text("repo") for file in evaluation.rglob(OWN_ROWS) for row in read_rows(file)}
    assert len(learned) == 382
    assert not learned & judged
