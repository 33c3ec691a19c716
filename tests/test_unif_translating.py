"""Training of heads that translate: what is read, torch against numpy, seeds, and what it finds afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from unif.data import Reading
from unif.fielded import Fielded, read_fielded
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


@pytest.fixture(scope="module")
def pairs(file: Path) -> Fielded:
    return read_fielded([PairFile(file)], frozenset(), Reading())


CONFIG = TranslationConfig(dim=8, batch=64, epochs=4, passes=2, rate=0.01)


def test_a_question_is_its_first_sentence_and_names_are_numbered(file: Path) -> None:
    reading = Reading()
    found = read_fielded([PairFile(file)], frozenset({"how to open the file more of it"}), reading)
    assert (reading.rows, reading.left_out, reading.bad, reading.wordless) == (6 * 47, 6, 1, 1)
    spelled = list(found.stems)
    row = [spelled[id] for id in found.query[0].indices]
    assert sorted(row) == ["open", "socket"]  # `More of it` is another sentence
    assert len(np.unique(found.name)) == 47
    assert found.documented.sum() == 2 * 47
    name = spelled.index("load")
    assert found.code[0, name] > found.nameless[0, name] > 0


def test_torch_and_numpy_give_one_score(pairs: Fielded) -> None:
    from unif.translating import Vectors, WordByWord, beginning, exported

    torch.manual_seed(0)
    vectors = Vectors(*beginning(pairs, CONFIG), torch.from_numpy(np.log(pairs.idf)).float())
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

    heads = [train(tmp_path / name, Sources((PairFile(file),)), CONFIG)[0] for name in "ab"]
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
    assert len(curve) == CONFIG.epochs + CONFIG.passes
    assert curve[CONFIG.epochs - 1]["loss"] < curve[0]["loss"]


def test_no_row_of_a_batch_comes_twice_and_weights_are_how_often(pairs: Fielded) -> None:
    from unif.fielded import dropped
    from unif.translating import epoch_batches

    draw = np.random.default_rng(0)
    drawn = np.concatenate(list(epoch_batches(pairs, 16, 0.5, 1.0, draw)))
    assert len(drawn) == len(np.unique(drawn)) == len(pairs) // 16 * 16
    fewer = np.concatenate(list(epoch_batches(pairs, 16, 0.5, 0.0, draw)))
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
