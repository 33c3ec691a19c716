"""Pairs from lines and from functions: what is read, counted, split and drawn."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.vocabulary import Vocabulary
from tests.words import table
from unif import questions
from unif.data import Pair, Pairs, Reading, prepare
from unif.reading import own_pairs, pairs_of_file

VOCABULARY = Vocabulary.of(["close", "file", "open", "path", "socket"])


def said(ids: object) -> str:
    """Ids of the head as words; 0 as -."""
    return " ".join(VOCABULARY.word(id - 1) if id else "-" for id in np.asarray(ids).tolist())


def written(folder: Path, *lines: object, name: str = "pairs.jsonl") -> Path:
    path = folder / name
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))
    return path


def row(query: str, code: str = "open(path)", question_id: object = None) -> dict[str, object]:
    return {"query": query, "code": code, "language": "python", "question_id": question_id}


def test_the_doctests_of_questions_pass() -> None:
    assert doctest.testmod(questions) == (0, 6)


def test_bad_lines_are_passed_over_counted_and_named(tmp_path: Path) -> None:
    path = written(tmp_path, row("open a file"), "{broken", '["no object"]', {"query": "no code"}, "", row("nothing"),
                   {"query": "file", "code": 7}, row("close socket"))  # fmt: skip
    reading = Reading()
    pairs = prepare(pairs_of_file(path, VOCABULARY, reading), tmp_path / "pairs", reading)
    assert (len(pairs.query), reading.rows, reading.questions, reading.bad, reading.wordless) == (2, 2, 2, 4, 1)
    assert pairs.reading == reading
    assert [line.split("jsonl")[1].partition(";")[0] for line in reading.bad_lines] == [
        ":2: not JSON (Expecting property name enclosed in double quotes)",
        ":3: not a JSON object",
        ":4: no 'code'",
        ":7: not a string in 'code'",
    ]
    assert said(pairs.query.padded(np.array([0, 1]), 9)[0]) == "open file"
    assert said(pairs.code.padded(np.array([0, 1]), 9)[1]) == "open"  # a variable is no word of NCS's


def test_questions_to_leave_out_are_left_out_however_they_are_spelled(tmp_path: Path) -> None:
    path = written(tmp_path, row("Open the FILE?"), row("open the files"), row("close file"))
    reading = Reading()
    found = list(pairs_of_file(path, VOCABULARY, reading, left_out=frozenset({"open the file"})))
    assert (len(found), reading.left_out) == (2, 1)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no .*nowhere\.jsonl"):
        list(pairs_of_file(tmp_path / "nowhere.jsonl", VOCABULARY, Reading()))


def test_pairs_without_a_known_word_are_told_with_the_first_bad_line(tmp_path: Path) -> None:
    path = written(tmp_path, "{", row("nothing", "none()"))
    reading = Reading()
    with pytest.raises(BadInput, match=r"no pair has known words.*pairs\.jsonl:1: not JSON"):
        prepare(pairs_of_file(path, VOCABULARY, reading), tmp_path / "pairs", reading)


def test_pairs_are_of_one_question_by_number_by_wording_or_by_both_in_turn(tmp_path: Path) -> None:
    lines = [row("open file", question_id=7), row("close file"), row("path of file", question_id="7"),
             row("Open, file!", question_id=8), row("socket", question_id=8), row("path", question_id="x")]  # fmt: skip
    other = written(tmp_path, row("socket path", question_id="x"), row("file", question_id=7), name="other.jsonl")
    reading = Reading()
    both = [*pairs_of_file(written(tmp_path, *lines), VOCABULARY, reading), *pairs_of_file(other, VOCABULARY, reading)]
    pairs = prepare(both, tmp_path / "pairs", reading)
    assert pairs.question.tolist() == [0, 1, 0, 0, 0, 2, 3, 0]
    assert reading.questions == 4


def test_a_function_teaches_by_its_comment_and_by_its_name() -> None:
    words = table(
        "doc: open the file path; name: open file; calls: open close; identifiers: unread",
        "doc: file; name: open path; calls: open socket",
        "name: close; calls: close socket",
        "doc: open file path; name: open file; calls: open",
    )
    heads = {word: id for id, word in enumerate(VOCABULARY, 1)}
    known = np.array([heads.get(word, 0) for word in words.vocabulary])
    found = [(said(pair.query), said(pair.code)) for pair in own_pairs(words, known)]
    assert found == [
        ("open - file path", "open file open close"),
        ("open file", "open close"),
        ("open path", "open socket"),
    ]
    keys = [set(pair.keys) for pair in own_pairs(words, known)]
    assert keys[0] & keys[1]
    assert not keys[0] & keys[2]


def many(folder: Path, n: int = 300) -> Pairs:
    """Rows 0 .. n - 1, of n / 3 questions in turn; row i's words are i + 1."""
    pairs = (Pair([i + 1], [i + 1, i + 2], [f"question {i % (n // 3)}"]) for i in range(n))
    return prepare(pairs, folder, Reading())


def test_a_question_is_learnt_from_or_validated_on_never_both(tmp_path: Path) -> None:
    pairs = many(tmp_path)
    learning, valid = pairs.split(0.2, seed=1)
    assert sorted([*learning, *valid]) == list(range(300))
    assert not set(pairs.question[learning]) & set(pairs.question[valid])
    assert len(set(pairs.question[valid])) == 20
    assert pairs.split(0.2, seed=1)[1].tolist() == valid.tolist() != pairs.split(0.2, seed=2)[1].tolist()


def test_an_epoch_has_one_row_of_every_question_and_another_epoch_others(tmp_path: Path) -> None:
    pairs = many(tmp_path)
    epochs = [list(pairs.batches(np.arange(300), 33, np.random.default_rng(seed))) for seed in (0, 1, 0)]
    for batches in epochs:
        assert [len(batch) for batch in batches] == [33, 33, 33]  # the hundredth has no other to be told from
        rows = np.concatenate(batches)
        assert len(set(pairs.question[rows])) == 99
    first, second, again = (np.concatenate(batches).tolist() for batches in epochs)
    assert first == again != second
    drawn = {row for seed in range(40) for row in pairs.one_a_question(np.arange(300), np.random.default_rng(seed))}
    assert drawn == set(range(300))


def test_rows_are_padded_cut_and_freed_of_repetitions(tmp_path: Path) -> None:
    pairs = prepare([Pair([1], [5, 3, 0, 5, 5, 2], ["a"]), Pair([2], [4], ["b"])], tmp_path, Reading())
    assert pairs.code.padded(np.array([1, 0]), 4).tolist() == [[4, 0, 0, 0], [5, 3, 5, 5]]
    assert pairs.code.padded(np.array([0, 1]), 9, unique=True).tolist() == [[5, 3, 0, 0, 2], [4, 0, 0, 0, 0]]


def test_word_ids_stay_on_disk(tmp_path: Path) -> None:
    pairs = many(tmp_path)
    assert isinstance(pairs.query.ids, np.memmap)
    assert isinstance(pairs.code.offsets, np.memmap)
    loaded = Pairs.load(tmp_path)
    assert loaded.reading == pairs.reading
    np.testing.assert_array_equal(loaded.code.ids, pairs.code.ids)


def test_one_question_cannot_be_split(tmp_path: Path) -> None:
    pairs = prepare([Pair([1], [2], ["a"]), Pair([1], [3], ["a"])], tmp_path, Reading())
    with pytest.raises(BadInput, match="of one question; give more"):
        pairs.split(0.5, seed=0)
