"""Questions judged by similarity to their answers, from the JSON file to table, spreadsheet and score sheet."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from evaluation import experiments
from evaluation.judges.aroma import features, similarity
from evaluation.measures import compare
from evaluation.stackoverflow import Journal, main
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from tests import corpus

QUESTIONS: list[dict[str, Any]] = [
    {
        "stackoverflow_id": "1",
        "question": "How to hide the soft keyboard?",
        "answer": "InputMethodManager imm = (InputMethodManager) getSystemService(Activity.INPUT_METHOD_SERVICE);\n"
        "imm.hideSoftInputFromWindow(view.getWindowToken(), 0);",
        "examples_url": ["x"],
    },
    {"stackoverflow_id": 2, "question": "keyboard", "answer": "byte[] b = MessageDigest.getInstance(s).digest();"},
    {"stackoverflow_id": "3", "question": "zzzz", "answer": "int x = 1;"},
]
HIDE = QUESTIONS[0]["answer"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("so")
    repositories = corpus.write(folder / "repos")
    Index.build(repositories, folder / "idx").close()
    Index.build(repositories / "tools", folder / "tools").close()
    Index.build(repositories, folder / "codeless", config=BuildConfig(store_code=False)).close()
    (folder / "questions.json").write_text(json.dumps(QUESTIONS))
    return folder


def test_the_values_are_those_of_hits_judged_by_hand(folder: Path) -> None:
    out = folder / "hand.json"
    assert main([str(folder / "questions.json"), str(folder / "idx"), "-q", "--json", str(out)]) == 0
    with Index.load(folder / "idx") as index:
        for system in experiments.read(out).builds[0].systems:
            for threshold in (0.6, 0.25):
                for row, value in zip(QUESTIONS, system.values[f"mrr@10 at {threshold}"], strict=True):
                    wanted = features(str(row["answer"]).encode(), "java")
                    hits = index.search(str(row["question"]), 10, ranker=system.system)
                    passed = [
                        similarity(features(hit.document.code.encode(), "java"), wanted) >= threshold for hit in hits
                    ]
                    assert value == (1 / (passed.index(True) + 1) if any(passed) else 0)


def test_two_indexes_are_two_groups_of_rows_and_each_is_compared_with_its_own_bm25(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "two.csv"
    indexes = [str(folder / name) for name in ("idx", "tools")]
    arguments = [str(folder / "questions.json"), *indexes, "--ranker", "ncs", "-q"]
    assert main([*arguments, "--csv", str(out), "--json", str(folder / "two.json")]) == 0
    table = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [[cell.strip() for cell in row] for row in table[1:]] == [
        ["idx", "bm25"], ["idx", "ncs"], ["tools", "bm25"], ["tools", "ncs"],
    ]  # fmt: skip
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["index"], row["ranker"], row["threshold"]) for row in rows[:3]] == [
        ("idx", "bm25", "0.6"), ("idx", "bm25", "0.25"), ("idx", "ncs", "0.6"),
    ]  # fmt: skip
    found = experiments.read(folder / "two.json")
    bm25, ncs = (found.values(system, "mrr@10 at 0.6") for system in found.builds[0].systems)
    expected = compare(ncs, bm25)
    assert [float(rows[2][name]) for name in ("difference to bm25", "difference low", "difference high", "p")] == (
        pytest.approx([expected.difference, expected.low, expected.high, expected.p], abs=1e-6)
    )
    assert (rows[0]["answered@10"], rows[0]["answered@10 count"], rows[0]["questions"]) == ("0.333333", "1", "3")
    assert [build.documents for build in found.builds] == [len(Index.load(path)) for path in indexes]


def test_the_score_sheet_has_the_published_form(folder: Path) -> None:
    sheet = folder / "sheet.csv"
    arguments = [str(folder / "questions.json"), str(folder / "idx"), "--ranker", "bm25", "-q", "--sheet", str(sheet)]
    assert main(arguments) == 0
    assert sheet.read_bytes().startswith(b"No.,StackOverflow ID,bm25 FRank\r\n1,1,1\r\n2,2,")
    assert (folder / "sheet.strict.csv").read_bytes() == (
        b"No.,StackOverflow ID,bm25 FRank\r\n1,1,1\r\n2,2,NF\r\n3,3,NF\r\n"
    )


def many(folder: Path, n: int = 40) -> Path:
    """Questions enough to be killed between."""
    texts = ["hide keyboard", "network connected", "read a file", "write lines", "show input", "zip"]
    rows = [
        {"stackoverflow_id": str(i), "question": f"{texts[i % 6]} {texts[i * 7 % 5]}", "answer": HIDE} for i in range(n)
    ]
    path = folder / f"many{n}.json"
    path.write_text(json.dumps(rows))
    return path


def without_time(path: Path) -> Mapping[str, Any]:
    """The result without what a clock said and without the state of the working tree."""
    found = asdict(experiments.read(path))
    found.pop("commit")
    for build in found["builds"]:
        for ranked in build["systems"]:
            for name in list(ranked):
                if "ms" in name.split("_"):
                    ranked.pop(name)
    return found


KILLED = """
import os, signal, sys
from evaluation import stackoverflow

add, left = stackoverflow.Journal.add, int(sys.argv.pop(1))

def add_and_die(self, key, answer):
    global left
    add(self, key, answer)
    left -= 1
    if not left:
        self._file.write(b'{"index": "torn in the mid')
        self._file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

stackoverflow.Journal.add = add_and_die
stackoverflow.main()
"""


@pytest.mark.slow
def test_killed_in_the_middle_and_started_again_it_gives_the_identical_result(folder: Path, tmp_path: Path) -> None:
    """Killed twice, each time within the writing of a line: after 1 answer, and after 70 more."""
    arguments = [str(many(folder)), str(folder / "idx"), "-q"]
    whole, stopped, state = (tmp_path / name for name in ("whole.json", "stopped.json", "stopped.json.state.jsonl"))
    assert main([*arguments, "--json", str(whole), "--sheet", str(tmp_path / "a.csv")]) == 0
    arguments += ["--json", str(stopped), "--sheet", str(tmp_path / "b.csv")]
    for left, done in ((1, 1), (70, 71)):
        killed = subprocess.run([sys.executable, "-c", KILLED, str(left), *arguments], capture_output=True)
        assert killed.returncode == -signal.SIGKILL
        assert state.read_bytes().count(b"\n") == 1 + done
        assert not stopped.exists()
    again = subprocess.run(
        [sys.executable, "-m", "evaluation.stackoverflow", *arguments], check=True, capture_output=True, text=True
    )
    assert f"resuming: 71 answers are in {state}" in again.stderr
    assert without_time(stopped) == without_time(whole)
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    assert not state.exists()


def answers(state: Path) -> int:
    return len(state.read_text().splitlines()) - 1


def test_a_state_with_a_wrong_line_is_refused_by_its_number_and_left_as_it_is(folder: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    command = [str(folder / "questions.json"), str(folder / "idx"), "--ranker", "bm25", "-q", "--state", str(state)]
    assert main(command) == 0
    lines = state.read_bytes().splitlines(keepends=True)
    for wrong in (b"{}\n", b"[1]\n", lines[1].replace(b'"k": 10', b'"k": "x"')):
        state.write_bytes(lines[0] + lines[1] + wrong + lines[2])
        with pytest.raises(BadInput, match=r"state\.jsonl:3 is not a line of a state file"), Journal(state):
            pass
        assert state.read_bytes() == lines[0] + lines[1] + wrong + lines[2]


def test_answers_of_another_index_or_question_or_depth_are_not_taken_from_the_state(
    folder: Path, tmp_path: Path
) -> None:
    """A state that no output follows is kept; each change must ask again."""
    state = tmp_path / "state.jsonl"
    base = [str(many(folder)), str(folder / "idx"), "--ranker", "bm25", "-q", "--state", str(state)]
    assert main(base) == 0
    assert answers(state) == 40
    assert main(base) == 0
    assert answers(state) == 40
    assert main([*base, "-k", "3"]) == 0
    assert answers(state) == 80
    assert main([base[0], str(folder / "tools"), *base[2:]]) == 0
    assert answers(state) == 120
    changed = folder / "changed.json"
    changed.write_text(many(folder).read_text().replace("read a file", "read the file"))
    assert main([str(changed), *base[1:]]) == 0
    assert 120 < answers(state) < 160


def test_ncs_evaluate_gives_the_values_of_the_command_of_evaluation(folder: Path, tmp_path: Path) -> None:
    both = [str(folder / "questions.json"), "-i", str(folder / "idx"), "--ranker", "ncs"]
    command = [sys.executable, "-m", "ncs.cli", "evaluate", *both, "--csv", str(tmp_path / "x.csv"), "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.csv").read_text().startswith("corpus,index,ranker,")
    assert main([both[0], *both[2:], "-q", "--json", str(tmp_path / "x.json")]) == 0
    here = asdict(experiments.read(tmp_path / "x.json"))["builds"][0]["systems"]
    there = json.loads(done.stdout)["builds"][0]["systems"]
    assert [system["values"] for system in there] == [system["values"] for system in here]


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
def test_wrong_input_is_one_line_and_exit_status_2(
    folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(folder / part) if (folder / part).exists() or "no" in part else part for part in arguments]
    assert main([*paths, "-q"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("evaluate-stackoverflow: ")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert json.loads((folder / "questions.json").read_text()) == QUESTIONS
