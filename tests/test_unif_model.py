"""Every encoder: against arithmetic by hand, against finite differences, against what serves it without torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.text.vocabulary import Vocabulary
from tests.words import table
from unif import forward
from unif.beginning import Beginning, begin, reads
from unif.head import Head, tokens_of
from unif.settings import Encoder, ModelConfig, Pooling, TrainConfig
from unif.tokenization import Bpe, Words

if TYPE_CHECKING:
    from torch import Tensor

    from ncs.types import Matrix

torch = pytest.importorskip("torch", reason="needs the extra unif")

from unif.bags import Bag  # noqa: E402
from unif.model import ENCODERS, Towers, create, export  # noqa: E402
from unif.sequences import BODIES, TOGETHER  # noqa: E402
from unif.sequences import Sequence as Reader  # noqa: E402

WORDS = ("close", "file", "open", "read", "socket", "write")
TEXTS = ["open file file", "socket", "", "write read open close socket file open", "zzz", "read " * 40 + "file open"]
LONG = ["close " * 199 + "file open open", *TEXTS[:3]]
UNIF = [
    ModelConfig(),
    ModelConfig(query_weights="words", heads=3),
    ModelConfig(query_weights="idf", prior="idf", buckets=30),
    ModelConfig(shared=True, buckets=30),
]
OTHERS = [
    ModelConfig(encoder=name, pooling=pooling, dropout=0.2)
    for name in get_args(Encoder)
    if name != "unif"
    for pooling in get_args(Pooling)
]
CONFIGS = [*UNIF, *OTHERS]


def numbers(*shape: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def beginning(config: ModelConfig, vectors: Matrix | None = None) -> Beginning:
    """Over six words, each one token; questions of the encoders with byte pairs can say single letters too."""
    words = Words(Vocabulary.of(WORDS), config.buckets)
    if reads(config.encoder) == "fields":
        size = len(words)
        start = numbers(size, 7) if vectors is None else vectors
        return Beginning(words, words, "fields", start, np.log(np.abs(numbers(size, seed=1)) + 0.1))
    pieces = sorted({letter + end for word in WORDS for letter in word for end in ("", "</w>")})
    empty = np.zeros((0, 128), np.float32)
    return Beginning(Bpe([*pieces, "ea"], [("e", "a")]), words, "source", empty, np.zeros(0, np.float32))


def moved(config: ModelConfig, seed: int = 0) -> Towers:
    """A network with every parameter somewhere else than at its start, not learning; no word's row stays zero."""
    towers = create(config, beginning(config), seed=seed).eval()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for parameter in towers.parameters():
            parameter.data += torch.randn_like(parameter) * (1 if config.encoder == "unif" else 0.1)
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


def test_every_encoder_that_can_be_asked_for_is_there_and_every_body_has_its_twin_in_numpy() -> None:
    assert set(ENCODERS) == set(get_args(Encoder))
    assert set(BODIES) == set(forward.BODIES)
    kinds = {tower.kind for config in CONFIGS for tower in (moved(config).query, moved(config).code)}
    assert kinds == {"bag", *BODIES}


def test_unif_is_the_published_formula() -> None:
    start = numbers(6, 4)
    towers = create(ModelConfig(), beginning(ModelConfig(), start))
    assert isinstance(towers.code, Bag)
    a = towers.code.attention.detach().numpy()[0]
    assert np.all(np.abs(a) <= 4**-0.5)
    words = start[[2, 0, 2]]  # the ids 3 1 3
    weights = np.exp(words @ a) / np.exp(words @ a).sum()
    document = weights @ words
    found = towers.code(ids([3, 1, 3], [5])).detach().numpy()
    np.testing.assert_allclose(found[0], document / np.linalg.norm(document), atol=1e-6)
    np.testing.assert_allclose(found[1], start[4] / np.linalg.norm(start[4]), atol=1e-6)
    mean = start[[2, 0]].mean(axis=0)
    np.testing.assert_allclose(towers.query(ids([3, 1])).detach().numpy()[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_several_heads_are_the_mean_of_their_weighted_means() -> None:
    bag = Bag(torch.from_numpy(numbers(6, 4)), "attention", heads=2)
    words = numbers(6, 4)[[0, 3]]
    parts = []
    for a in bag.attention.detach().numpy():
        weights = np.exp(words @ a)
        parts.append(weights @ words / weights.sum())
    mean = (parts[0] + parts[1]) / 2
    np.testing.assert_allclose(bag(ids([1, 4])).detach().numpy()[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_the_gradient_of_attention_is_the_one_found_by_hand() -> None:
    """Words e1 = (1, 0), e2 = (0, 1), a = 0: weights 1/2 each, pooled = (w, 1 - w), w = sigmoid(a1 - a2).

    The cosine with (1, 0) is w / sqrt(w^2 + (1 - w)^2); its derivative by w at 1/2 is sqrt(2), and dw/da = (1/4, -1/4).
    """
    bag = Bag(torch.eye(2), "attention")
    bag.attention.data.zero_()
    bag(ids([1, 2]))[0, 0].backward()
    np.testing.assert_allclose(gradient(bag.attention).numpy(), [[math.sqrt(2) / 4, -math.sqrt(2) / 4]], atol=1e-6)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_gradients_are_those_of_finite_differences(config: ModelConfig) -> None:
    towers = moved(config).double()
    query, code = ids([1, 2], [3, 0]), ids([4, 2, 2], [6, 5, 0])

    def loss() -> Tensor:
        product: Tensor = towers.query(query) * towers.code(code)
        return product.sum()

    torch.autograd.backward(loss())
    tables = {id(parameter) for parameter in towers.sparse_parameters()}
    draw = torch.Generator().manual_seed(1)
    for parameter in (each for each in towers.parameters() if each is not towers.log_scale):
        slope, start = gradient(parameter), parameter.data.clone()
        way = torch.randn(parameter.shape, generator=draw, dtype=torch.float64)
        if id(parameter) in tables:
            assert not slope[0].any()  # no word learns nothing
            way[0] = 0
        values = []
        for step in (1e-6, -1e-6):
            parameter.data = start + step * way
            values.append(loss().item())
        parameter.data = start
        assert (slope * way).sum().item() == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-5, rel=1e-4)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_rows_without_words_are_zeros_and_learn_nothing(config: ModelConfig) -> None:
    towers = moved(config).train()
    for side in (towers.query, towers.code):
        towers.zero_grad()
        alone = side(ids([0, 0, 0], [0, 0, 0]))
        assert alone.tolist() == [[0.0] * alone.shape[1]] * 2
        if alone.requires_grad:
            alone.sum().backward()
            assert not any(gradient(p).any() for p in side.parameters() if p.grad is not None)
        found = side(ids([0, 0, 0], [], [2, 1]))
        assert not found[:2].any()
        assert found[2].norm().item() == pytest.approx(1, abs=1e-6)
        found.sum().backward()
        assert all(torch.isfinite(gradient(p)).all() for p in side.parameters())
        assert side(torch.zeros(3, 0, dtype=torch.int64)).tolist() == [[0.0] * found.shape[1]] * 3
        assert side(torch.zeros(0, 5, dtype=torch.int64)).shape == (0, found.shape[1])


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_padding_changes_nothing_wherever_it_stands(config: ModelConfig) -> None:
    towers = moved(config)
    for side in (towers.query, towers.code):
        torch.testing.assert_close(side(ids([1, 0, 4, 0, 0], [2, 3, 4, 5, 6]))[:1], side(ids([1, 4])))


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_what_numpy_serves_is_what_torch_computes(config: ModelConfig, seed: int, tmp_path: Path) -> None:
    towers = moved(config, seed)
    begun = beginning(config)
    export(towers, begun, {}).save(tmp_path)
    head = Head.load(tmp_path)
    query, code = ([each.ids(text.split()) for text in TEXTS] for each in (begun.query, begun.code))
    with torch.no_grad():
        np.testing.assert_allclose(head.questions(TEXTS), towers.query(ids(*query)).numpy(), atol=1e-5)
        right = towers.code(ids(*code)).numpy()
    np.testing.assert_allclose(head.code.vectors(code), right, atol=1e-5)
    if head.reads == "source":
        np.testing.assert_allclose(head.sources([(text, "java") for text in TEXTS]), right, atol=1e-5)
    else:
        words = table(*TEXTS)
        found = head.documents(words, 0, len(TEXTS), tokens_of(head.code, words.vocabulary))
        np.testing.assert_allclose(found, right, atol=1e-5)
    assert right[0].any()
    assert not right[2].any()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_padded_ids_and_texts_that_are_too_long_are_served_as_well(config: ModelConfig) -> None:
    """Bags are served by sparse products; `forward.encode` says the same of them."""
    towers, begun = moved(config), beginning(config)
    head = export(towers, begun, {})
    rows = [[1, 0, 2, 2], [0, 0, 0, 0], [3, 4, 5, 6]]
    with torch.no_grad():
        long = [begun.code.ids(text.split()) for text in LONG]
        np.testing.assert_allclose(head.code.vectors(long), towers.code(ids(*long)).numpy(), atol=1e-5)
    for side in (head.query, head.code):
        found = forward.encode(side.kind, side.arrays, side.settings, np.array(rows))
        right = side.vectors([[id for id in row if id] for row in rows])
        np.testing.assert_allclose(found, right, atol=1e-6)


@pytest.mark.parametrize("kind", sorted(BODIES))
def test_a_batch_encoded_by_length_gives_each_text_the_vector_it_has_alone(kind: str) -> None:
    torch.manual_seed(1)
    tower = Reader(torch.randn(9, 16), kind, 20, pooling="weighted", dropout=0.0).eval()
    draw = np.random.default_rng(1)
    rows = [draw.integers(1, 10, draw.integers(0, 24)).tolist() for _ in range(70)]
    assert len(rows) > 2 * TOGETHER
    alone = torch.cat([tower(ids(row)) for row in rows])
    torch.testing.assert_close(tower(ids(*rows)), alone, rtol=0, atol=1e-6)


def test_the_recurrent_body_is_torchs_own_gru_over_packed_rows() -> None:
    torch.manual_seed(2)
    body = BODIES["birnn"](16, 20, 0.0).eval()
    lengths = torch.tensor([7, 1, 12, 3])
    x, there = torch.randn(4, 12, 16), torch.arange(12) < lengths[:, None]
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    assert isinstance(body.gru, torch.nn.GRU)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(body.gru(packed)[0], batch_first=True)
    torch.testing.assert_close(body(x, there)[there], expected[there], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", BODIES)
def test_an_encoder_with_an_order_reads_it_and_no_more_than_its_longest_text(kind: str) -> None:
    reader = Reader(torch.from_numpy(numbers(6, 128)), kind, 4, pooling="mean", dropout=0.0)
    one, other, longer = (reader(ids(row)) for row in ([1, 2, 3, 4], [4, 3, 2, 1], [1, 2, 3, 4, 5]))
    assert (one - other).norm().item() > 1e-3
    torch.testing.assert_close(one, longer)


@pytest.mark.parametrize("config", OTHERS[::3], ids=str)
def test_dropout_is_for_learning_only(config: ModelConfig) -> None:
    towers, text = moved(config), ids([1, 2, 3])
    torch.testing.assert_close(towers.code(text), towers.code(text))
    towers.train()
    assert not torch.equal(towers.code(text), towers.code(text))


def test_tables_by_word_and_nothing_else_are_sparse_parameters() -> None:
    for config in CONFIGS:
        towers, begun = create(config, beginning(config)), beginning(config)
        lengths = {len(begun.query) + 1, len(begun.code) + 1}
        assert {len(parameter) for parameter in towers.sparse_parameters()} <= lengths
        assert len(towers.sparse_parameters()) + len(towers.dense_parameters()) == len(list(towers.parameters()))


def test_a_shared_table_is_one_and_the_seed_decides_what_is_random() -> None:
    shared = create(ModelConfig(shared=True), beginning(ModelConfig()))
    assert shared.query.table.weight is shared.code.table.weight
    assert len(shared.sparse_parameters()) == 1
    for config in (ModelConfig(), *OTHERS[::3]):
        same, again, other = (create(config, beginning(config), seed=seed) for seed in (0, 0, 1))
        text = ids([1, 2, 3])
        torch.testing.assert_close(same.eval().code(text), again.eval().code(text))
        assert not torch.equal(same.code(text), other.eval().code(text))


def test_n_grams_start_where_their_words_are_and_weigh_together_as_much_as_one() -> None:
    vocabulary, vectors = Vocabulary.of(["open", "opened"]), numbers(2, 4)
    start = SimpleNamespace(vocabulary=vocabulary, vectors=vectors, idf=np.array([1.0, 2.0], np.float32))
    config = ModelConfig(buckets=1_000)
    begun = begin(config, start, lambda: ())  # type: ignore[arg-type]
    first = begun.code.ids(["opx"])[0]  # <op, which is of both words
    np.testing.assert_allclose(begun.vectors[first - 1], vectors.mean(axis=0), atol=1e-6)
    towers = create(config, begun)
    grams = ((4 + 3 + 2 + 1) + (6 + 5 + 4 + 3)) / 2  # of lengths 3, 4, 5, 6 in <open> and <opened>
    assert isinstance(towers.code, Bag)
    prior = towers.code.prior
    assert prior is not None
    np.testing.assert_allclose(prior.numpy()[[1, 2, 3, 1002]], [0, 0, -math.log(grams), -math.log(grams)], atol=1e-6)


def test_settings_that_there_are_not_are_refused() -> None:
    with pytest.raises(BadInput, match="encoder is 'lstm'; it is one of unif, nbow, cnn, birnn, selfatt, mixed"):
        ModelConfig(encoder="lstm")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="heads 0"):
        ModelConfig(heads=0)
    with pytest.raises(BadInput, match="batch is 1; it must be at least 2"):
        TrainConfig(batch=1)
    with pytest.raises(BadInput, match=r"word_dropout is 1\.0"):
        replace(TrainConfig(), word_dropout=1.0)
