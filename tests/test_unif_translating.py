"""Training of heads that translate: what is read, torch against numpy, seeds, and what it finds afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.progress import Track, silent
from unif.data import Reading
from unif.fielded import Fielded, write
from unif.fielded_reading import read_rows
from unif.settings import TranslationConfig
from unif.sources import PairFile, Sources

torch = pytest.importorskip("torch")

VERBS = {"open": "load", "close": "shut", "read": "fetch", "write": "store", "sort": "order", "count": "sum"}
NOUNS = ("file", "socket", "word", "list", "mail", "string", "table", "image")


def lines() -> list[dict[str, str]]:
    """A question has another verb than the code; some functions have a doc comment."""
    found = []
    for at, (asked, said) in enumerate([(a, s) for a, s in VERBS.items() for _ in range(len(NOUNS))]):
        noun = NOUNS[at % len(NOUNS)]
        for turn in range(6):
            doc = f'    """Will {said} the {noun}."""\n' if turn % 3 == 0 else ""
            code = f"def {said}_{noun}(x{turn}):\n{doc}    return {said}{turn}({noun})\n"
            found.append({"query": f"How to {asked} the {noun}. More of it", "code": code, "language": "python"})
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    bad = ["{", json.dumps({"query": "asked", "code": "def f(): pass", "language": "python"})]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines()) + "\n".join(bad) + "\n")
    return path


def read(file: Path, folder: Path, left_out: frozenset[str] = frozenset()) -> Fielded:
    reading = Reading()
    return write(read_rows([PairFile(file)], left_out, reading, silent), folder, reading)


@pytest.fixture(scope="module")
def pairs(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Fielded:
    return read(file, tmp_path_factory.mktemp("fielded") / "pairs")


CONFIG = TranslationConfig(dim=8, batch=64, epochs=4, passes=2, rate=0.01, valid=0.1)


def test_a_question_is_its_first_sentence_and_names_are_numbered(file: Path, tmp_path: Path) -> None:
    found = read(file, tmp_path / "pairs", frozenset({"how to open the file more of it"}))
    reading = found.reading
    assert reading.questions == 47
    assert (reading.rows, reading.left_out, reading.bad, reading.wordless) == (6 * 47, 6, 1, 1)
    spelled = list(found.stems)
    row = [spelled[id] for id in found.query[0].indices]
    assert sorted(row) == ["open", "socket"]  # `More of it` is another sentence
    assert len(np.unique(found.name)) == 47
    assert found.documented.sum() == 2 * 47
    name = spelled.index("load")
    assert found.code[0, name] > found.nameless[0, name] > 0


def test_torch_and_numpy_give_one_score(pairs: Fielded) -> None:
    from unif.translating_model import Vectors, WordByWord, beginning, exported

    vectors = Vectors(*beginning(pairs, np.arange(len(pairs)), CONFIG), torch.from_numpy(np.log(pairs.idf)).float())
    words = WordByWord(vectors, CONFIG)
    words.counted.weight.data.normal_()
    head = exported(vectors, words, pairs, CONFIG, {})
    query, code = pairs.query[:5], pairs.code[100:120]
    ids = [(query[row].indices + 1).tolist() for row in range(5)]
    assert head.translation is not None
    with torch.no_grad():
        near = vectors(query, code).numpy() / float(vectors.log_scale.exp())
        by_word = words(query, code).numpy() / float(words.log_scale.exp())
    np.testing.assert_allclose(head.query.vectors(ids) @ head.code.bags(code).T, near, atol=1e-5)
    np.testing.assert_allclose([head.translation.scores(each, code) for each in ids], by_word, atol=1e-5)


def test_what_is_trained_finds_code_that_shares_one_word_of_two_and_a_seed_repeats_it(
    file: Path, tmp_path: Path
) -> None:
    from unif.translating import train

    heads = [train(tmp_path / name, Sources((PairFile(file),)), CONFIG).head for name in "ab"]
    first, second = (each.translation for each in heads)
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.query, second.query)
    np.testing.assert_array_equal(heads[0].code.arrays["table"], heads[1].code.arrays["table"])
    tokens = heads[0].query.tokens
    said = np.array([tokens.ids([word])[0] for word in VERBS.values()])
    for place, asked in enumerate(VERBS):
        near = first.table(np.array(tokens.ids([asked])), np.sort(said))[0]
        assert np.sort(said)[near.argmax()] == said[place], asked
    curve = [json.loads(line) for line in (tmp_path / "a" / "curve.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in curve] == list(range(1 + CONFIG.epochs + CONFIG.passes))
    assert curve[CONFIG.epochs]["loss"] < curve[1]["loss"]
    assert curve[-1]["mrr"] >= curve[0]["mrr"] > 0.5


@pytest.mark.parametrize("epoch", [0, 1, CONFIG.epochs, CONFIG.epochs + 1])
def test_a_training_that_was_killed_goes_on_as_if_it_had_not_been(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    from unif.translating import Training, train

    whole = train(tmp_path / "whole", Sources((PairFile(file),)), CONFIG)
    learn = Training._epoch

    def killed(self: Training, number: int, track: Track) -> dict[str, float]:
        if number == epoch + 1:
            raise KeyboardInterrupt
        return learn(self, number, track)

    with monkeypatch.context() as patched:
        patched.setattr(Training, "_epoch", killed)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run", Sources((PairFile(file),)), CONFIG)
    again = train(tmp_path / "run", Sources((PairFile(file),)), CONFIG)
    assert again.best_epoch == whole.best_epoch
    for side in ("query", "code"):
        for name, array in getattr(whole.head, side).arrays.items():
            np.testing.assert_array_equal(getattr(again.head, side).arrays[name], array)
    assert whole.head.translation is not None
    assert again.head.translation is not None
    np.testing.assert_array_equal(again.head.translation.counted, whole.head.translation.counted)
    np.testing.assert_array_equal(again.head.translation.query, whole.head.translation.query)


def test_validation_shares_no_question_and_no_name_with_what_is_learnt(pairs: Fielded) -> None:
    learning, valid = pairs.split(0.1, 0)
    assert len(valid) == 6 * 5
    assert not set(pairs.question[learning]) & set(pairs.question[valid])
    assert not set(pairs.name[learning]) & set(pairs.name[valid])
    with pytest.raises(BadInput, match="nothing is left"):
        pairs.split(1.0, 0)


def test_a_damaged_checkpoint_and_several_processes_are_told_in_a_line(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unif.translating import train

    train(tmp_path, Sources((PairFile(file),)), CONFIG)
    (tmp_path / "checkpoint.pt").write_bytes(b"no")
    with pytest.raises(BadInput, match="cannot go on"):
        train(tmp_path, Sources((PairFile(file),)), CONFIG)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(BadInput, match="one process"):
        train(tmp_path, Sources((PairFile(file),)), CONFIG)


def test_no_row_of_a_batch_comes_twice_and_weights_are_how_often(pairs: Fielded) -> None:
    from unif.translating_draw import dropped, epoch_batches

    draw, every = np.random.default_rng(0), np.arange(len(pairs))
    drawn = np.concatenate(list(epoch_batches(pairs, every, 16, 0.5, 1.0, draw)))
    assert len(drawn) == len(np.unique(drawn)) == len(pairs) // 16 * 16
    fewer = np.concatenate(list(epoch_batches(pairs, every, 16, 0.5, 0.0, draw)))
    assert pairs.documented[fewer].all()
    kept = dropped(pairs.code, 0.25, np.random.default_rng(1))
    assert 0.7 < kept.nnz / pairs.code.nnz < 0.8
    assert (kept.toarray()[kept.toarray() > 0] == pairs.code.toarray()[kept.toarray() > 0]).all()


def test_the_command_tells_in_one_line_of_too_few_words(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from unif.__main__ import main

    told = ["--pairs", str(file), "--epochs", "1", "--batch", "64", "-q", "--out", str(tmp_path / "head")]
    assert main(["train", "translation", *told]) == 2  # of fewer words than it has dimensions
    assert "more than 128" in capsys.readouterr().err
