"""Pairs from lines and from functions: what is read, counted, split and all_batches."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.index import Index
from ncs.learn.tokenization import WordTokenizer
from ncs.text.vocabulary import Vocabulary
from ncs.types import Document, Field
from unif.config import Stage, TrainConfig
from unif.data import (
    IndexSource,
    Pair,
    PairFile,
    Pairs,
    QuestionNumbers,
    ReadStats,
    Sources,
    Texts,
    batches,
    epoch_order,
    one_per_question,
    own_pairs,
    own_sources,
    pairs_of_file,
    write_pairs,
)

VOCABULARY = Vocabulary.of(["close", "file", "open", "path", "socket"])
TOKENS = WordTokenizer(VOCABULARY)


def prepared(pairs: Iterable[Pair], folder: Path, stats: ReadStats | None = None) -> Pairs:
    return write_pairs(pairs, folder, stats or ReadStats(), TOKENS.ids, TOKENS.ids)


def text(texts: Texts, row: int) -> str:
    """The words of a row."""
    return " ".join(VOCABULARY.word(id - 1) for id in texts.cut(np.array([row]), 99)[0].tolist())


def written(folder: Path, *lines: object, name: str = "pairs.jsonl") -> Path:
    path = folder / name
    data = "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def row(query: str, code: str = "open(path)", question_id: object = None) -> dict[str, object]:
    return {"query": query, "code": code, "language": "python", "question_id": question_id}


def test_bad_lines_are_skipped_counted_and_named(tmp_path: Path) -> None:
    path = written(tmp_path, row("open a file"), "{broken", '["no object"]', {"query": "no code"}, "", row("nothing"),
                   {"query": "file", "code": 7}, row("close socket"))  # fmt: skip
    stats = ReadStats()
    pairs = prepared(pairs_of_file(path, stats), tmp_path / "pairs", stats)
    assert (len(pairs), stats.rows, stats.questions, stats.bad, stats.wordless) == (2, 2, 2, 4, 1)
    assert Pairs.load(tmp_path / "pairs").stats == stats
    assert [line.split("jsonl")[1][:2] for line in stats.bad_lines] == [":2", ":3", ":4", ":7"]
    assert text(pairs.query, 0) == "open file"
    assert text(pairs.code, 1) == "open"  # a variable is no word of NCS's
    path, stats = written(tmp_path, "{", row("nothing", "none()")), ReadStats()
    with pytest.raises(BadInput, match=r"no pair has known words.*pairs\.jsonl:1: not JSON"):
        prepared(pairs_of_file(path, stats), tmp_path / "none", stats)


def test_codesearchnets_lines_are_read_without_their_docstring_and_their_test_part(tmp_path: Path) -> None:
    def published(docstring: str, partition: str = "train") -> dict[str, str]:
        code = f'def open_file(path):\n    """{docstring}"""\n    return open(path)\n'
        return {"code": code, "language": "python", "docstring": docstring, "partition": partition}

    lines = published("Close the socket."), published("Path of it"), published("File", "test")
    path, stats = written(tmp_path, *lines, name="python_train_0.jsonl.gz"), ReadStats()
    pairs = prepared(pairs_of_file(path, stats), tmp_path / "pairs", stats)
    assert [text(pairs.query, n) for n in (0, 1)] == ["close socket", "path"]
    assert text(pairs.code, 0) == "open file open"  # the docstring would be the whole answer
    assert stats.left_out == 1
    source = [pair.code for pair in pairs_of_file(path, ReadStats(), "source")]
    assert source[0] == ["def", "open", "file", "path", "return", "open", "path"]


def test_pairs_are_of_one_question_by_id_by_wording_or_by_both_in_turn(tmp_path: Path) -> None:
    lines = [row("open file", question_id=7), row("close file"), row("path of file", question_id="7"),
             row("Open, file!", question_id=8), row("socket", question_id=8), row("path", question_id="x")]  # fmt: skip
    other = written(tmp_path, row("socket path", question_id="x"), row("file", question_id=7), name="other.jsonl")
    sources = Sources((PairFile(written(tmp_path, *lines)), PairFile(other, 2.0)))
    stats = ReadStats()
    pairs = prepared(sources.pairs(None, "fields", stats), tmp_path / "pairs", stats)
    assert pairs.question.tolist() == [0, 1, 0, 0, 0, 2, 3, 0]
    assert pairs.source.tolist() == [0] * 6 + [1] * 2
    assert stats.questions == 4


def test_question_numbers_are_the_connected_components_of_the_keys() -> None:
    draw, questions = np.random.default_rng(4), QuestionNumbers()
    keys = [{str(key) for key in draw.integers(0, 300, draw.integers(0, 4))} for _ in range(400)]
    groups: list[tuple[set[str], list[int]]] = []
    for row, own in enumerate(keys):
        questions.add(*own)
        same = [group for group in groups if group[0] & own]
        groups = [group for group in groups if group not in same]
        groups.append((own.union(*(each[0] for each in same)), sorted([row, *(r for each in same for r in each[1])])))
    numbers = questions.numbers()
    ordered = sorted(rows for _, rows in groups)
    assert [np.flatnonzero(numbers == number).tolist() for number in range(len(ordered))] == ordered


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexSource]:
    """Four functions of three repositories."""
    words: list[tuple[str, str, dict[Field, tuple[str, ...]]]] = [
        ("r1", "openFile", {"doc": ("open the file path",), "calls": ("open", "close"), "identifiers": ("unread",)}),
        ("r1", "openPath", {"doc": ("file",), "calls": ("open", "socket")}),
        ("r2", "close", {"calls": ("close", "socket")}),
        ("r3", "openFile", {"doc": ("open file path",), "calls": ("open", "path")}),
    ]
    documents = [
        Document(f"{i}", repository, "p.java", i + 1, i + 1, "java", "function", name, name,
                 {"name": (name,), **fields}, code=f"void {name}() {{ {'(); '.join(fields['calls'])}(); }}")
        for i, (repository, name, fields) in enumerate(words)
    ]  # fmt: skip
    with Index.of(documents, tmp_path_factory.mktemp("index") / "i") as built:
        yield IndexSource(built.word_table(), built.documents, built.words().vocabulary, np.zeros((0, 0), np.float32))


def test_a_function_is_a_pair_by_its_comment_and_by_its_name(index: IndexSource) -> None:
    pairs = list(own_pairs(index))
    assert [(" ".join(p.query), " ".join(p.code)) for p in pairs] == [
        ("open the file path", "open file open close"),
        ("open file", "open close"),
        ("open path", "open socket"),
        ("open file path", "open file open path"),
        ("open file", "open path"),
    ]
    keys = [set(pair.keys) for pair in pairs]
    assert keys[0] & keys[1]
    assert not keys[0] & keys[2]
    assert [(" ".join(p.query), " ".join(p.code)) for p in own_sources(index)] == [
        ("open the file path", "void open file open close"),
        ("open file path", "void open file open path"),
    ]


def many(folder: Path) -> Pairs:
    """300 rows, of 100 questions in turn, a third of them of source 1."""
    return prepared((Pair(["file"], ["open"], [f"question {i % 100}"], i % 3 // 2) for i in range(300)), folder)


def test_a_question_is_trained_on_or_validated_on_never_both(tmp_path: Path) -> None:
    pairs = many(tmp_path)
    train, valid = pairs.split(0.2, seed=1)
    assert sorted([*train, *valid]) == list(range(300))
    assert not set(pairs.question[train]) & set(pairs.question[valid])
    assert len(set(pairs.question[valid])) == 20
    assert isinstance(pairs.query.ids, np.memmap)
    assert pairs.split(0.2, seed=1)[1].tolist() == valid.tolist() != pairs.split(0.2, seed=2)[1].tolist()
    one = prepared([Pair(["open"], ["file"], ["a"]), Pair(["open"], ["path"], ["a"])], tmp_path / "one")
    with pytest.raises(BadInput, match="no question is left to train on"):
        one.split(0.5, seed=0)


def test_an_epoch_has_one_row_of_every_question_and_another_epoch_others(tmp_path: Path) -> None:
    pairs, every = many(tmp_path), np.arange(300)

    def epoch(seed: int) -> list[list[int]]:
        order = epoch_order(pairs.question, pairs.source, every, [1, 1], np.random.default_rng(seed))
        return [batch.tolist() for batch in batches(pairs.question, order, 33)]

    assert [len(batch) for batch in epoch(0)] == [33, 33, 33]  # the hundredth has no negative
    assert len(set(pairs.question[np.concatenate(epoch(0))])) == 99
    assert epoch(0) == epoch(0) != epoch(1)
    rows = {r for seed in range(40) for r in one_per_question(pairs.question, every, np.random.default_rng(seed))}
    assert rows == set(range(300))


def test_sources_are_drawn_as_often_as_they_weigh() -> None:
    rows, source = np.arange(900), np.tile(np.arange(3, dtype=np.int16), 300)
    order = epoch_order(rows.astype(np.int32), source, rows, [2.5, 0, 0.25], np.random.default_rng(0))
    times = Counter(order.tolist())
    assert {times[r] for r in range(0, 900, 3)} == {2, 3}
    assert sum(times[r] for r in range(0, 900, 3)) == pytest.approx(2.5 * 300, rel=0.1)
    assert sum(times[r] for r in range(1, 900, 3)) == 0
    assert sum(times[r] for r in range(2, 900, 3)) == pytest.approx(0.25 * 300, rel=0.25)


def test_no_batch_has_a_question_twice_and_none_is_lost() -> None:
    question = np.arange(60, dtype=np.int32) // 2
    order = epoch_order(question, np.zeros(60, np.int16), np.arange(60), [3], np.random.default_rng(0))
    all_batches = list(batches(question, order, 8))
    assert all(len(set(question[batch].tolist())) == len(batch) for batch in all_batches)
    assert [len(batch) for batch in all_batches[:10]] == [8] * 10
    assert Counter(question[np.concatenate(all_batches)].tolist()) == Counter(dict.fromkeys(range(30), 3))
    assert [batch.tolist() for batch in batches(question, np.array([0, 1, 0, 2, 1, 0]), 2)] == [[0, 2]]


def test_weights_and_stages_are_given_by_name_and_wrong_settings_are_refused() -> None:
    sources = Sources((PairFile.parse("x/so_threads.jsonl.gz:3"), PairFile(Path("docs.jsonl"))), own=0.5)
    assert sources.weights() == [3, 1, 0.5]
    assert sources.weights(("own", "so_threads")) == [3, 0, 0.5]
    with pytest.raises(BadInput, match="a stage names 'so'; the sources are so_threads, docs, own"):
        sources.weights(("so",))
    with pytest.raises(BadInput, match="every source of a stage has the weight 0"):
        Sources((PairFile(Path("a"), 0.0),)).weights()
    for wrong in ("", "0", "4@-1"):
        with pytest.raises(BadInput, match="a stage is EPOCHS"):
            Stage.parse(wrong)
    assert TrainConfig(epochs=7).curriculum == (Stage(7),)
    with pytest.raises(BadInput, match="encoder is 'lstm'; it is one of unif, nbow, cnn, birnn, selfatt, mixed"):
        TrainConfig(encoder="lstm")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"word_dropout is 1\.0"):
        replace(TrainConfig(), word_dropout=1.0)
