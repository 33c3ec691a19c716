"""The networks against arithmetic by hand and by numpy, and against what serves them without torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.vocabulary import Vocabulary
from tests.words import table
from unif.head import Head
from unif.settings import Encoder, ModelConfig, TrainConfig

if TYPE_CHECKING:
    from torch import Tensor

    from ncs.types import Matrix

torch = pytest.importorskip("torch", reason="needs the extra unif")

from unif.model import ENCODERS, Bag, Towers, create  # noqa: E402

WORDS = ("close", "file", "open", "read", "socket", "write")
CONFIGS = [
    ModelConfig(),
    ModelConfig(query_weights="words"),
    ModelConfig(query_weights="idf", prior="idf"),
    ModelConfig(shared=True),
    ModelConfig("nbow"),
]


def numbers(*shape: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def moved(config: ModelConfig, seed: int = 0) -> Towers:
    """A network with every parameter somewhere else than at its start; the row of no word stays zero."""
    towers = create(config, numbers(len(WORDS), 7), np.abs(numbers(len(WORDS), seed=1)), seed=seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for parameter in towers.parameters():
            parameter.data += torch.randn_like(parameter)
    for module in (towers.query, towers.code):
        module.table.weight.data[0] = 0
    return towers


def ids(*rows: Sequence[int]) -> Tensor:
    longest = max(map(len, rows))
    padded: Tensor = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], dtype=torch.int64)
    return padded


def gradient(parameter: Tensor) -> Tensor:
    """What it learnt, as a dense tensor."""
    found = parameter.grad
    assert found is not None
    dense: Tensor = found.to_dense()
    return dense


def test_every_encoder_that_can_be_asked_for_is_there() -> None:
    assert set(ENCODERS) == set(get_args(Encoder))


def test_unif_is_the_published_formula() -> None:
    start = numbers(6, 4)
    towers = create(ModelConfig(), start, np.ones(6, np.float32))
    a = towers.code.attention.detach().numpy()
    assert np.all(np.abs(a) <= 4**-0.5)
    words = start[[2, 0, 2]]  # the ids 3 1 3
    weights = np.exp(words @ a) / np.exp(words @ a).sum()
    document = weights @ words
    found = towers.code(ids([3, 1, 3], [5])).detach().numpy()
    np.testing.assert_allclose(found[0], document / np.linalg.norm(document), atol=1e-6)
    np.testing.assert_allclose(found[1], start[4] / np.linalg.norm(start[4]), atol=1e-6)
    mean = start[[2, 0]].mean(axis=0)
    np.testing.assert_allclose(towers.query(ids([3, 1])).detach().numpy()[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_the_gradient_of_attention_is_the_one_found_by_hand() -> None:
    """Words e1 = (1, 0), e2 = (0, 1), a = 0: weights 1/2 each, pooled = (w, 1 - w), w = sigmoid(a1 - a2).

    The cosine with (1, 0) is w / sqrt(w^2 + (1 - w)^2); its derivative by w at 1/2 is sqrt(2), and dw/da = (1/4, -1/4).
    """
    bag = Bag(torch.eye(2), "attention")
    bag.attention.data.zero_()
    bag(ids([1, 2]))[0, 0].backward()
    np.testing.assert_allclose(gradient(bag.attention).numpy(), [math.sqrt(2) / 4, -math.sqrt(2) / 4], atol=1e-6)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_gradients_are_those_of_finite_differences(config: ModelConfig) -> None:
    towers = moved(config).double()
    query, code = ids([1, 2], [3, 0]), ids([4, 2, 2], [6, 5, 0])

    def loss() -> Tensor:
        product: Tensor = towers.query(query) * towers.code(code)
        return product.sum()

    torch.autograd.backward(loss())
    for parameter in towers.parameters():
        if parameter is towers.log_scale:
            continue
        slope, flat = gradient(parameter).flatten(), parameter.data.view(-1)
        for at in range(0, flat.numel(), max(1, flat.numel() // 40)):
            if parameter.dim() == 2 and at < parameter.shape[1]:
                assert slope[at] == 0  # no word learns nothing
                continue
            before = flat[at].item()
            flat[at] = before + 1e-6
            above = loss().item()
            flat[at] = before - 1e-6
            below = loss().item()
            flat[at] = before
            assert slope[at].item() == pytest.approx((above - below) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_rows_without_words_are_zeros_and_learn_nothing(config: ModelConfig) -> None:
    towers = moved(config)
    for side in (towers.query, towers.code):
        found = side(ids([0, 0, 0], [], [2, 1]))
        assert not found[:2].any()
        assert found[2].norm().item() == pytest.approx(1, abs=1e-6)
        found.sum().backward()
        assert all(torch.isfinite(gradient(p)).all() for p in side.parameters())
        assert side(torch.zeros(3, 0, dtype=torch.int64)).tolist() == [[0.0] * found.shape[1]] * 3
        assert side.moved(ids([0])).item() == 0


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_padding_changes_nothing(config: ModelConfig) -> None:
    towers = moved(config)
    for side in (towers.query, towers.code):
        torch.testing.assert_close(side(ids([1, 0, 4, 0, 0])), side(ids([1, 4])))


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_what_numpy_serves_is_what_torch_computes(config: ModelConfig, seed: int) -> None:
    towers = moved(config, seed)
    head = Head(Vocabulary.of(WORDS), towers.query.side(), towers.code.side())
    texts = ["open file file", "socket", "", "write read open close socket file open"]
    words, rows = table(*texts), [[WORDS.index(word) + 1 for word in text.split()] for text in texts]
    code = head.code.aligned(head.vocabulary, words.vocabulary)
    with torch.no_grad():
        np.testing.assert_allclose(head.documents(words, 0, 4, code), towers.code(ids(*rows)).numpy(), atol=1e-5)
        asked = np.array([head.question(text) for text in texts])
        np.testing.assert_allclose(asked, towers.query(ids(*rows)).numpy(), atol=1e-5)


def test_distance_from_the_start_counts_every_word_once() -> None:
    bag = Bag(torch.zeros(3, 2))
    bag.table.weight.data[1:] = torch.tensor([[3.0, 4.0], [1.0, 0.0], [9.0, 9.0]])
    assert bag.moved(ids([1, 1, 2], [1, 0, 0])).item() == (25 + 1) / 2


def test_a_shared_table_is_one_and_the_seed_decides_what_is_random() -> None:
    shared = create(ModelConfig(shared=True), numbers(6, 4), np.ones(6, np.float32))
    assert shared.query.table.weight is shared.code.table.weight
    assert len(shared.sparse_parameters()) == 1
    same, other = (create(ModelConfig(), numbers(6, 4), np.ones(6, np.float32), seed=seed) for seed in (0, 1))
    again = create(ModelConfig(), numbers(6, 4), np.ones(6, np.float32))
    assert torch.equal(same.code.attention, again.code.attention)
    assert not torch.equal(same.code.attention, other.code.attention)


def test_settings_that_there_are_not_are_refused() -> None:
    with pytest.raises(BadInput, match="encoder is 'lstm'; it is one of unif, nbow"):
        ModelConfig(encoder="lstm")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="batch is 1; it must be at least 2"):
        TrainConfig(batch=1)
    with pytest.raises(BadInput, match=r"word_dropout is 1\.0"):
        TrainConfig(word_dropout=1.0)
