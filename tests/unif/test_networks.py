"""Every encoder: against arithmetic by hand, against finite differences, against numpy, which serves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest

from ncs.learn.heads import Head, tokens_of_words
from ncs.learn.tokenization import BpeTokenizer, WordTokenizer
from ncs.text.vocabulary import Vocabulary
from tests.words import table
from unif.config import Encoder, Pooling, TrainConfig
from unif.data import Inputs

if TYPE_CHECKING:
    from torch import Tensor

    from ncs.types import Matrix

torch = pytest.importorskip("torch", reason="needs the extra unif")


from unif.networks import BODIES, GROUP, Bag, Towers, create, export  # noqa: E402
from unif.networks import Sequence as SequenceTower  # noqa: E402
from unif.training import Learner  # noqa: E402

WORDS = ("close", "file", "open", "read", "socket", "write")
TEXTS = ["open file file", "socket", "", "write read open close socket file open", "zzz", "read " * 40 + "file open"]
LONG = ["close " * 199 + "file open open", *TEXTS[:3]]
OTHERS = [
    TrainConfig(encoder=name, pooling=pooling, dropout=0.2)
    for name in get_args(Encoder)
    if name != "unif"
    for pooling in get_args(Pooling)
]


def over(*configs: TrainConfig) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("config", configs, ids=lambda config: f"{config.encoder}-{config.pooling}")


every = over(TrainConfig(), *OTHERS)
every_encoder = over(TrainConfig(), *(OTHERS[3 * i + i % 3] for i in range(len(OTHERS) // 3)))
"""With every pooling in one encoder at least."""


def numbers(*shape: int) -> Matrix:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def inputs(config: TrainConfig, vectors: Matrix | None = None) -> Inputs:
    """Over six words, each one token; queries of the encoders with byte pairs can say single letters too."""
    words = WordTokenizer(Vocabulary.of(WORDS))
    if config.encoder == "unif":
        return Inputs(words, words, "fields", numbers(6, 7) if vectors is None else vectors)
    pieces = sorted({letter + end for word in WORDS for letter in word for end in ("", "</w>")})
    return Inputs(BpeTokenizer([*pieces, "ea"], [("e", "a")]), words, "source", np.zeros((0, 128), np.float32))


def moved(config: TrainConfig, seed: int = 0) -> Towers:
    """A network with every parameter away from its start; only the row of padding stays zero."""
    towers = create(config, inputs(config)).eval()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for parameter in towers.parameters():
            parameter.data += torch.randn_like(parameter) * (1 if config.encoder == "unif" else 0.1)
    for tower in (towers.query, towers.code):
        tower.table.weight.data[0] = 0
    return towers


def ids(*rows: Sequence[int]) -> Tensor:
    longest = max(map(len, rows))
    padded: Tensor = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], dtype=torch.int64)
    return padded


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@every
def test_a_gpu_in_half_precision_learns_what_the_cpu_does(config: TrainConfig) -> None:
    config = replace(config, dropout=0.0)
    texts = ids([1, 2, 3], [4, 5], [6, 1, 6, 2], [2])
    losses = []
    for device in ("cpu", "cuda"):
        learner = Learner(moved(config).to(device).train(), config)  # CUDA's GRU has no backward in evaluation
        random = torch.Generator(device).manual_seed(0)
        losses.append([float(learner.learn(texts.to(device), texts.to(device), random)) for _ in range(5)])
    assert losses[1] == pytest.approx(losses[0], rel=0.1, abs=0.05)


def test_unif_is_the_published_formula() -> None:
    start = numbers(6, 4)
    towers = create(TrainConfig(), inputs(TrainConfig(), start))
    assert isinstance(towers.code, Bag)
    a = towers.code.attention.detach().numpy()
    assert np.all(np.abs(a) <= 4**-0.5)
    words = start[[2, 0, 2]]  # the ids 3 1 3
    document = np.exp(words @ a) @ words
    vectors = towers.code(ids([3, 1, 3], [5])).detach().numpy()
    np.testing.assert_allclose(vectors[0], document / np.linalg.norm(document), atol=1e-6)
    np.testing.assert_allclose(vectors[1], start[4] / np.linalg.norm(start[4]), atol=1e-6)
    mean = start[[2, 0]].mean(axis=0)
    np.testing.assert_allclose(towers.query(ids([3, 1])).detach().numpy()[0], mean / np.linalg.norm(mean), atol=1e-6)


@every_encoder
def test_padding_changes_nothing_and_rows_without_words_are_zeros_with_finite_gradients(config: TrainConfig) -> None:
    towers = moved(config)
    for tower in (towers.query, towers.code):
        torch.testing.assert_close(tower(ids([1, 0, 4, 0, 0], [2, 3, 4, 5, 6]))[:1], tower(ids([1, 4])))
        tower.train()
        vectors = tower(ids([0, 0, 0], [], [2, 1]))
        assert not vectors[:2].any()
        assert vectors[2].norm().item() == pytest.approx(1, abs=1e-6)
        vectors.sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in tower.parameters() if p.grad is not None)
        assert tower(torch.zeros(3, 0, dtype=torch.int64)).tolist() == [[0.0] * vectors.shape[1]] * 3
        assert tower(torch.zeros(0, 5, dtype=torch.int64)).shape == (0, vectors.shape[1])


@every
def test_what_numpy_serves_is_what_torch_computes(config: TrainConfig, tmp_path: Path) -> None:
    towers, given = moved(config, 1), inputs(config)
    export(towers, given, {}).save(tmp_path)
    head = Head.load(tmp_path)
    query, code = ([tokens.ids(text.split()) for text in TEXTS] for tokens in (given.query, given.code))
    with torch.no_grad():
        np.testing.assert_allclose(head.encode_queries(TEXTS), towers.query(ids(*query)).numpy(), atol=1e-5)
        right = towers.code(ids(*code)).numpy()
        long = [given.code.ids(text.split()) for text in LONG]
        np.testing.assert_allclose(head.code.vectors(long), towers.code(ids(*long)).numpy(), atol=1e-5)
    np.testing.assert_allclose(head.code.vectors(code), right, atol=1e-5)
    if head.reads == "source":
        np.testing.assert_allclose(head.encode_sources([(text, "java") for text in TEXTS]), right, atol=1e-5)
    else:
        words = table(*TEXTS)
        tokens_of = tokens_of_words(head.code, words.vocabulary)
        np.testing.assert_allclose(head.encode_documents(words, 0, len(TEXTS), tokens_of), right, atol=1e-5)
    assert right[0].any()
    assert not right[2].any()


@pytest.mark.parametrize("kind", sorted(BODIES))
def test_a_batch_encoded_by_length_gives_each_text_the_vector_it_has_alone(kind: str) -> None:
    torch.manual_seed(1)
    tower = SequenceTower(torch.randn(9, 16), kind, 20, pooling="weighted", dropout=0.0).eval()
    draw = np.random.default_rng(1)
    rows = [draw.integers(1, 10, draw.integers(0, 24)).tolist() for _ in range(70)]
    assert len(rows) > 2 * GROUP
    torch.testing.assert_close(tower(ids(*rows)), torch.cat([tower(ids(row)) for row in rows]), rtol=0, atol=1e-6)
