"""The training of the encoder that reads words in context: the same vectors as numpy's, and it learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.learn.context_encoder import LONGEST_FUNCTION, LONGEST_QUERY, READ_IN_CONTEXT
from ncs.text.vocabulary import Vocabulary
from ncs.types import Field

pytest.importorskip("torch", reason="needs the extra unif")

import torch

from unif.context import NAME, ContextModel, ContextPairs, ContextTraining, train
from unif.data import ReadStats
from unif.general import frequent_stems
from unif.translation_data import Row, SparsePairs, Wordings, write_rows

VERBS = ("open", "close", "read", "write", "send", "drop")
OTHERS = ("unlock", "shut", "load", "store", "emit", "forget")
"""What questions say for the verbs."""
THINGS = ("file", "socket", "window", "user", "image", "record", "color", "timer", "packet", "folder", "key", "page")


def rows() -> list[Row]:
    """A function calls a verb on a thing, and mentions another; questions ask for the first."""
    made = []
    for verb, other in zip(VERBS, OTHERS, strict=True):
        for at, thing in enumerate(THINGS):
            for beside in (THINGS[(at + 3) % 12], THINGS[(at + 5) % 12]):
                fields: dict[Field, list[str]] = {
                    "name": [verb, thing], "calls": [verb, thing], "identifiers": [beside, "self", "value", "config"]
                }  # fmt: skip
                made.append(Row([other, thing], fields, keys=[f"{other} {thing}"]))
    return made


Read = tuple[SparsePairs, Wordings, Vocabulary]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Read:
    folder = tmp_path_factory.mktemp("context") / "pairs"
    sparse = write_rows(rows(), folder, ReadStats())
    return sparse, Wordings.load(folder), frequent_stems(sparse)


def training_of(pairs: Read, folder: Path) -> ContextTraining:
    return ContextTraining(folder, ContextPairs.of(*pairs), pairs[0].split(0.1, 0), len(pairs[2]), "cpu")


def test_numpy_gives_the_vectors_of_torch(pairs: Read, tmp_path: Path) -> None:
    own, training = ContextPairs.of(*pairs), training_of(pairs, tmp_path)
    training.run(2)
    training.model.eval()
    encoder = training.export()
    code, fields, query = (torch.from_numpy(each[:30].astype(np.int64)) for each in (own.code, own.fields, own.query))
    with torch.no_grad():
        functions, queries = training.model.functions(code, fields).numpy(), training.model.query(query).numpy()
    present = own.code[:30] > 0
    offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    served = encoder.encode_functions(own.code[:30][present].astype(np.int64) - 1, own.fields[:30][present], offsets)
    np.testing.assert_allclose(served, functions, atol=0.02)  # 8 bits
    for row in range(30):
        ids = own.query[row][own.query[row] > 0].astype(np.int64) - 1
        np.testing.assert_allclose(encoder.encode_query(ids), queries[row], atol=0.02)


def test_it_learns_resumes_and_gives_the_same_again(pairs: Read, tmp_path: Path) -> None:
    first = train(tmp_path / "a", *pairs, 0.1, epochs=4, device="cpu")
    for folder in ("a", "b"):  # from the last checkpoint, and from the start
        again = train(tmp_path / folder, *pairs, 0.1, epochs=4, device="cpu")
        np.testing.assert_array_equal(first.words, again.words)
    with pytest.raises(BadInput, match="other settings"):
        train(tmp_path / "a", *pairs, 0.1, epochs=5, device="cpu")
    (tmp_path / "c").mkdir()
    training = training_of(pairs, tmp_path / "c")
    before = training._validate()
    curve = training.run(30)
    assert curve[-1]["mrr"] > before + 0.2
    assert [row["epoch"] for row in curve] == list(range(1, 31))


def test_what_is_read_of_pairs(pairs: Read) -> None:
    sparse, wordings, stems = pairs
    own = ContextPairs.of(*pairs)
    assert own.query.shape == (len(sparse), LONGEST_QUERY)
    assert own.code.shape == own.fields.shape == (len(sparse), LONGEST_FUNCTION)
    word = [stems.word(int(id) - 1) for id in own.query[0] if id]
    assert word == ["unlock", "file"]
    cells = zip(own.code[0], own.fields[0], strict=True)
    read = [(stems.word(int(id) - 1), READ_IN_CONTEXT[field]) for id, field in cells if id]
    assert read[:4] == [("open", "name"), ("file", "name"), ("open", "calls"), ("file", "calls")]
    fewer = ContextPairs.of(sparse, wordings, frequent_stems(sparse, 5))
    assert fewer.code.max() == 5


def test_functions_asked_for_by_their_names_have_none(pairs: Read) -> None:
    own = ContextPairs.of(*pairs)
    both, every = own.with_name_queries(np.arange(10)), np.arange(len(own.name))
    assert len(both.name) == 20
    for row in range(10, 20):
        names = own.code[row - 10][(own.fields[row - 10] == NAME) & (own.code[row - 10] > 0)]
        assert both.query[row][both.query[row] > 0].tolist() == names.tolist()
        assert not ((both.fields[row] == NAME) & (both.code[row] > 0)).any()
    assert not set(both.question[10:]) & set(both.question[:10])
    draw = np.random.default_rng(0)
    assert sorted(set(own.order(draw).tolist())) == every.tolist()
    same = own.not_negatives(every)
    assert same[0, 1]  # of one question
    assert not same[0, 2]
    assert not same.diagonal().any()


def test_a_row_without_words_is_zeros() -> None:
    model = ContextModel(8).eval()
    empty = torch.zeros((2, 4), dtype=torch.int64)
    assert not model.functions(empty, empty).detach().numpy().any()
