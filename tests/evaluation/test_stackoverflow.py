"""Questions judged by similarity to their answers, from the JSON file to table, spreadsheet and score sheet."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from evaluation import experiments
from evaluation.measures import compare
from evaluation.stackoverflow import Journal, judge, main
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from tests import corpus
from tests.command import invoke

HIDE = """InputMethodManager imm = (InputMethodManager) getSystemService(Activity.INPUT_METHOD_SERVICE);
imm.hideSoftInputFromWindow(view.getWindowToken(), 0);"""
HALF = "InputMethodManager imm = get(); imm.hideSoftInputFromWindow(view.getWindowToken(), 0); log(imm, view);"
"""hideSoftKeyboard has .47 of it."""
QUESTIONS: list[dict[str, Any]] = [
    {"stackoverflow_id": "1", "question": "How to hide the soft keyboard?", "answer": HIDE, "examples_url": ["x"]},
    {"stackoverflow_id": 2, "question": "keyboard", "answer": HALF},
    {"stackoverflow_id": "3", "question": "zzzz", "answer": "int x = 1;"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("so")
    repositories = corpus.write(folder / "repos")
    Index.build(repositories, folder / "idx").close()
    Index.build(repositories / "tools", folder / "tools").close()
    Index.build(repositories, folder / "codeless", config=BuildConfig(store_code=False)).close()
    (folder / "questions.json").write_text(json.dumps(QUESTIONS))
    return folder


def test_table_json_csv_and_score_sheet_have_the_values_of_hits_judged_by_hand(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "csv", "sheet")}
    options = [part for kind, path in files.items() for part in (f"--{kind}", str(path))]
    indexes = [str(folder / name) for name in ("idx", "tools")]
    assert main([str(folder / "questions.json"), *indexes, "--ranker", "ncs", "-q", *options]) == 0
    table = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    systems = [("idx", "bm25"), ("idx", "ncs"), ("tools", "bm25"), ("tools", "ncs")]
    assert [tuple(cell.strip() for cell in row) for row in table[1:]] == systems
    result = experiments.read(files["json"])
    for build, path in zip(result.builds, indexes, strict=True):
        with Index.load(path) as index:
            assert build.documents == len(index)
            for system, (n, question) in product(build.systems, enumerate(QUESTIONS)):
                hits = index.search(question["question"], 10, ranker=system.system, functions_only=True)
                similarities = [judge(question["answer"], hit.document.code, hit.document.language) for hit in hits]
                for threshold in (0.6, 0.25):
                    ranks = [rank for rank, value in enumerate(similarities, 1) if value >= threshold]
                    assert system.values[f"mrr@10 at {threshold}"][n] == (1 / ranks[0] if ranks else 0)
    with files["csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["index"], row["ranker"], row["threshold"]) for row in rows] == [
        (*system, threshold) for system in systems for threshold in ("0.6", "0.25")
    ]
    bm25, ncs = (result.values(system, "mrr@10 at 0.6") for system in result.builds[0].systems)
    expected = compare(ncs, bm25)
    assert [float(rows[2][name]) for name in ("difference to bm25", "difference low", "difference high", "p")] == (
        pytest.approx([expected.difference, expected.low, expected.high, expected.p], abs=1e-6)
    )
    assert (rows[0]["answered@10"], rows[0]["answered@10 count"], rows[0]["questions"]) == ("0.333333", "1", "3")
    for sheet, places in ((files["sheet"], "11N"), (tmp_path / "out.strict.sheet", "1NN")):
        lines = sheet.read_bytes().replace(b"NF", b"N").split(b"\r\n")
        assert lines[0].startswith(b"No.,StackOverflow ID,idx/bm25 FRank,idx/ncs FRank,")
        assert [line[:5].decode() for line in lines[1:4]] == [f"{n},{n},{place}" for n, place in enumerate(places, 1)]


def many(folder: Path) -> Path:
    """40 questions: enough to be killed between."""
    texts = ["hide keyboard", "network connected", "read a file", "write lines", "show input", "zip"]
    pairs = [f"{texts[i % 6]} {texts[i * 7 % 5]}" for i in range(40)]
    rows = [{"stackoverflow_id": str(i), "question": pair, "answer": HIDE} for i, pair in enumerate(pairs)]
    (folder / "many.json").write_text(json.dumps(rows))
    return folder / "many.json"


def without_time(path: Path) -> Mapping[str, Any]:
    """The result without times and without the state of the working tree."""
    result = asdict(experiments.read(path))
    del result["commit"]
    for build in result["builds"]:
        build["systems"] = [
            {name: value for name, value in system.items() if "ms" not in name.split("_")}
            for system in build["systems"]
        ]
    return result


def test_killed_within_a_line_and_started_again_it_gives_the_identical_result(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(many(folder)), str(folder / "idx"), "-q"]
    whole, again, state = (tmp_path / name for name in ("whole.json", "again.json", "again.json.state.jsonl"))
    assert main([*arguments, "--json", str(whole), "--sheet", str(tmp_path / "a.csv")]) == 0
    assert main([*arguments, "--state", str(state)]) == 0
    lines = state.read_bytes().splitlines(keepends=True)
    state.write_bytes(b"".join(lines[:72]) + lines[72][:30])
    assert main([*arguments, "--json", str(again), "--sheet", str(tmp_path / "b.csv")]) == 0
    assert f"resuming: 71 answers are in {state}" in capsys.readouterr().err
    assert without_time(again) == without_time(whole)
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    assert not state.exists()


def test_a_state_with_a_wrong_line_is_refused_by_its_number_and_left_as_it_is(folder: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    command = [str(folder / "questions.json"), str(folder / "idx"), "--ranker", "bm25", "-q", "--state", str(state)]
    assert main(command) == 0
    header, first, *rest = state.read_bytes().splitlines(keepends=True)
    for wrong in (b"{}\n", b"[1]\n", first.replace(b'"milliseconds": ', b'"milliseconds": "x')):
        content = b"".join([header, first, wrong, *rest])
        state.write_bytes(content)
        with pytest.raises(BadInput, match=r"state\.jsonl:3 is not a line of a state file"), Journal(state):
            pass
        assert state.read_bytes() == content


def test_answers_of_another_index_question_answer_or_depth_are_not_taken_from_the_state(
    folder: Path, tmp_path: Path
) -> None:
    state, index, questions = tmp_path / "state.jsonl", folder / "idx", many(folder)
    renamed, edited = tmp_path / "renamed.json", tmp_path / "edited.json"
    renamed.write_text(questions.read_text().replace("read a file", "read the file"))
    edited.write_text(questions.read_text().replace("getWindowToken", "getToken"))  # in every answer
    n_renamed = sum("read the file" in row["question"] for row in json.loads(renamed.read_text()))
    runs: list[tuple[Path, Path, tuple[str, ...], int]] = [
        (questions, index, (), 40), (questions, index, (), 0), (questions, index, ("-k", "3"), 40),
        (questions, folder / "tools", (), 40), (renamed, index, (), n_renamed), (edited, index, (), 40),
    ]  # fmt: skip
    answers = 0
    for file, searched, options, more in runs:
        assert main([str(file), str(searched), *options, "--ranker", "bm25", "-q", "--state", str(state)]) == 0
        answers += more
        assert len(state.read_text().splitlines()) == 1 + answers


def test_ncs_evaluate_gives_the_values_of_the_command_of_evaluation(folder: Path, tmp_path: Path) -> None:
    questions, index = str(folder / "questions.json"), str(folder / "idx")
    ran = invoke("evaluate", questions, "-i", index, "--ranker", "ncs", "--json", cwd=folder)
    assert main([questions, index, "--ranker", "ncs", "-q", "--json", str(tmp_path / "x.json")]) == 0
    systems = experiments.read(tmp_path / "x.json").builds[0].systems
    assert [each["values"] for each in json.loads(ran.stdout)["builds"][0]["systems"]] == [s.values for s in systems]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["questions.json", "idx", "idx"], "is named twice"),
        (["questions.json", "codeless"], "holds no code to judge"),
        (["questions.json", "idx", "--ranker=ncs:x"], "is no setting of a ranker"),
        (["questions.json", "idx", "-k", "0"], "-k is 0"),
        (["questions.json", "idx", "--csv", "repos"], "is a folder; name a file"),
        (["questions.json", "idx", "--state", "questions.json"], "is not a state file of this program"),
    ],
)
def test_wrong_input_is_refused(
    folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(folder / part) if (folder / part).exists() or "no" in part else part for part in arguments]
    assert main([*paths, "-q"]) == 2
    assert message in capsys.readouterr().err
    assert json.loads((folder / "questions.json").read_text()) == QUESTIONS
