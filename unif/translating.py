"""Training of a head that translates, read from top to bottom: vectors of questions and functions, then word by word.

First UNIF's form with `unif.impacts`: T_q and T_c, a learnt weight of every word on both sides, cosine of the weighted
sums; they start from the singular vectors of how much more often a word of questions meets a word of functions than
by chance. Then, from these, the tables of `unif.translation`. Trained apart and added they find more than either, and
more than both trained as one (evaluation/README.md). Both by in-batch softmax; half of a batch are questions that
share a word, so that its negatives are hard. Where an index and questions with answers are at hand, both then learn
together what the default ranker's lists lack (unif.residual).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from ncs import __version__
from ncs.errors import BadInput
from ncs.progress import Track, silent
from unif.answers import judged_lists, read_answers
from unif.data import Reading
from unif.fielded import Fielded, dropped, read_fielded
from unif.head import NAME, Head, Side
from unif.residual import Material, learn
from unif.run import open_run, write_curve
from unif.tokenization import Stems
from unif.translation import Translation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from unif.settings import TranslationConfig
    from unif.sources import Sources

    Rows = NDArray[np.int64]

LEAST_MET, SHIFT = 2, float(np.log(2))
"""How often two words meet to be told of each other; what is taken off the logarithm of how much more than chance."""
LEAST_LENGTH = 0.3
"""A vector as short as this at the start stays short: little is known of its word."""
LIGHT, HEAVY = -6.0, 4.0
"""Bounds of the logarithm of a word's weight."""
UNDOCUMENTED = 0.5
"""Share of the pairs without a doc comment that the second part learns from: people search functions that have one."""


def train(
    out: Path, sources: Sources, config: TranslationConfig, *, index: Index | None = None, track: Track = silent
) -> tuple[Head, Reading]:
    """Train into the folder of a run; the curve has an epoch a row. Raises BadInput for pairs that are none.

    index: whose lists are judged by the answers of `sources`, where it names any (unif.answers).
    """
    about = {"version": __version__, "encoder": "translation", **sources.about(), **asdict(config)}
    open_run(out, about)
    torch.manual_seed(config.seed)
    reading = Reading()
    pairs = read_fielded(sources.weighted, sources.unwanted, reading, track=track)
    draw = np.random.default_rng(config.seed)
    vectors = Vectors(*beginning(pairs, config), torch.from_numpy(np.log(np.maximum(pairs.idf, 0.05))).float())
    curve = list(_learn(vectors, pairs, config, config.epochs, config.batch, config.rate, 1.0, draw))
    words = WordByWord(vectors, config)
    curve += _learn(words, pairs, config, config.passes, config.batch // 2, config.rate / 3, UNDOCUMENTED, draw)
    if index is not None and sources.answered:
        lists = judged_lists(index, read_answers(sources.answered, sources.unwanted), track=track)
        material = Material.of(lists, index.words(), pairs.stems, np.flatnonzero(index.functions()))
        curve += learn((vectors, words), material, config.rounds, draw)
    write_curve(out, [{"epoch": at, **row} for at, row in enumerate(curve, 1)])
    head = exported(vectors, words, pairs, config, json.loads(json.dumps(about)))
    head.save(out / NAME)
    return head, reading


def beginning(pairs: Fielded, config: TranslationConfig) -> tuple[Tensor, Tensor]:
    """T_q and T_c [V, d]: singular vectors of the positive logarithms of how much more than chance words meet."""
    from scipy.sparse import csr_matrix
    from sklearn.utils.extmath import randomized_svd

    code = pairs.code[~pairs.documented]
    met = (pairs.query[~pairs.documented].T @ (code > 0).astype(np.float32)).tocoo()
    if met.shape[0] <= config.dim or not met.nnz:
        raise BadInput(f"the pairs have {met.shape[0]} words; more than {config.dim}, of undocumented code, are needed")
    asked, said = (np.bincount(ids, met.data, met.shape[0]) for ids in (met.row, met.col))
    more = np.log(met.data * met.data.sum() / (asked[met.row] * said[met.col])) - SHIFT
    kept = (more > 0) & (met.data >= LEAST_MET)
    table = csr_matrix((more[kept].astype(np.float32), (met.row[kept], met.col[kept])), met.shape)
    left, values, right = randomized_svd(table, config.dim, n_iter=2, random_state=config.seed)
    draw = np.random.default_rng(config.seed)
    found = []
    for each in (left * np.sqrt(values), right.T * np.sqrt(values)):
        each = each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), LEAST_LENGTH)
        found.append(torch.from_numpy(each + draw.normal(size=each.shape, scale=0.02 * config.dim**-0.5)).float())
    return found[0], found[1]


def _table(start: Tensor) -> nn.Embedding:
    """Rows that start from these, of which a step moves those of its words."""
    return nn.Embedding(len(start), start.shape[1], sparse=True, _weight=start)


class Vectors(nn.Module):
    """Questions and functions as unit vectors: sums of word vectors, by impact and a learnt weight of the word."""

    def __init__(self, query: Tensor, code: Tensor, weights: Tensor) -> None:
        super().__init__()
        self.query, self.code = _table(query), _table(code)
        self.asked, self.counted = (_table(weights[:, None].clone()) for _ in range(2))
        self.log_scale = nn.Parameter(torch.tensor(2.7))

    def forward(self, query: Any, code: Any) -> Tensor:
        """Scores [a, b] of functions, CSR [b, V], to questions, CSR [a, V]."""
        near = _bag(query, self.query, self.asked) @ _bag(code, self.code, self.counted).T
        return near * self.log_scale.clamp(max=float(np.log(100))).exp()


def _bag(rows: Any, table: nn.Embedding, weight: nn.Embedding) -> Tensor:
    """Unit vectors [n, d]; zeros for an empty row."""
    ids, starts = (torch.from_numpy(each.astype(np.int64)) for each in (rows.indices, rows.indptr[:-1]))
    weights = torch.from_numpy(rows.data) * weight(ids)[:, 0].clamp(LIGHT, HEAVY).exp()
    summed = F.embedding_bag(ids, table.weight, starts, mode="sum", per_sample_weights=weights, sparse=True)
    return F.normalize(summed, dim=1)


class WordByWord(nn.Module):
    """The translation of `unif.translation`, from where the vectors of words have come to."""

    def __init__(self, start: Vectors, config: TranslationConfig) -> None:
        super().__init__()
        self.query, self.code = (_table(F.normalize(each.weight.detach(), dim=1)) for each in (start.query, start.code))
        self.asked = _table(start.asked.weight.detach().clone())
        self.counted = _table(torch.zeros_like(start.asked.weight))
        self.limit, self.same = (nn.Parameter(torch.tensor(float(np.log(each)))) for each in (config.half, config.same))
        self.log_scale, self.power = nn.Parameter(torch.tensor(3.0)), config.power

    def forward(self, query: Any, code: Any) -> Tensor:
        """Scores [a, b]; made once for every word of the batch, not for every place where it stands."""
        asked, at = np.unique(query.indices, return_inverse=True)
        there, places = np.unique(code.indices, return_inverse=True)
        t, u = torch.from_numpy(asked.astype(np.int64)), torch.from_numpy(there.astype(np.int64))
        table = F.relu(self.query(t) @ self.code(u).T) ** self.power  # [t, u]
        table = table + self.same.exp() * (t[:, None] == u[None])
        rows = torch.from_numpy(np.repeat(np.arange(code.shape[0]), np.diff(code.indptr)))
        weights = (
            torch.from_numpy(code.data) * self.counted(torch.from_numpy(code.indices.astype(np.int64)))[:, 0].exp()
        )
        shape = (code.shape[0], len(u))
        sparse = torch.sparse_coo_tensor(
            torch.stack([rows, torch.from_numpy(places)]), weights, shape, check_invariants=False
        )
        found = torch.sparse.mm(sparse, table.T)  # [b, t]
        shares = torch.zeros(query.shape[0], len(t)).index_put(
            (torch.from_numpy(np.repeat(np.arange(query.shape[0]), np.diff(query.indptr))), torch.from_numpy(at)),
            self.asked(t)[:, 0].clamp(LIGHT, HEAVY).exp()[torch.from_numpy(at)],
        )  # [a, t]
        shares = shares / shares.sum(dim=1, keepdim=True).clamp(min=1e-6)
        scores: Tensor = shares @ (found / (found + self.limit.exp())).T * self.log_scale.exp()
        return scores


def _learn(
    network: nn.Module, pairs: Fielded, config: TranslationConfig, epochs: int, size: int, rate: float, share: float,
    draw: np.random.Generator,
) -> Iterator[dict[str, float]]:  # fmt: skip
    """Epochs over the pairs; of each its loss and pace. share: of the pairs without a doc comment."""
    tables = [each.weight for each in network.modules() if isinstance(each, nn.Embedding)]
    others = [each for each in network.parameters() if not any(each is table for table in tables)]
    optimisers = [torch.optim.SparseAdam(tables, lr=rate), torch.optim.Adam(others, lr=0.01)]
    for _ in range(epochs):
        start, total, steps, learnt = time.perf_counter(), 0.0, 0, 0
        for rows in epoch_batches(pairs, size, config.alike, share, draw):
            query = dropped(pairs.query[rows], config.query_dropout, draw)
            code = dropped(_code(pairs, rows, draw), config.word_dropout, draw)
            scores = network(query, code).masked_fill(_namesakes(pairs.name[rows]), -1e9)
            loss = F.cross_entropy(scores, torch.arange(len(rows)))
            for optimiser in optimisers:
                optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            for optimiser in optimisers:
                optimiser.step()
            total, steps, learnt = total + float(loss.detach()), steps + 1, learnt + len(rows)
        yield {"loss": total / max(1, steps), "pairs_per_s": learnt / (time.perf_counter() - start)}


def epoch_batches(pairs: Fielded, size: int, alike: float, share: float, draw: np.random.Generator) -> Iterator[Rows]:
    """Rows [size] of each batch, batches in drawn order; `alike` of the rows stand with those that share a word."""
    times = pairs.times * np.where(pairs.documented, 1.0, share)
    rows = np.repeat(np.arange(len(pairs)), np.floor(times + draw.random(len(pairs))).astype(np.int64))
    lengths = np.diff(pairs.query.indptr)[rows]
    word = pairs.query.indices[pairs.query.indptr[rows] + (draw.random(len(rows)) * lengths).astype(np.int64)]
    together = draw.random(len(rows)) < alike
    ordered = rows[together][np.argsort(draw.permutation(len(pairs.stems))[word[together]], kind="stable")]
    mixed = np.concatenate([draw.permutation(rows[~together]), ordered])
    for at in draw.permutation(len(mixed) // size):
        yield mixed[at * size : (at + 1) * size]


def _code(pairs: Fielded, rows: Rows, draw: np.random.Generator) -> Any:
    """Of half of the functions that have a doc comment, without the name."""
    from scipy.sparse import vstack

    bare = pairs.documented[rows] & (draw.random(len(rows)) < 0.5)
    back = np.argsort(np.concatenate([np.flatnonzero(~bare), np.flatnonzero(bare)]))
    return vstack([pairs.code[rows[~bare]], pairs.nameless[rows[bare]]], format="csr")[back]


def _namesakes(names: NDArray[np.int64]) -> Tensor:
    """Which functions of a batch bear one name, [n, n], a function and itself apart: they are no wrong answers."""
    same = (names[:, None] == names) & (names >= 0)[:, None]
    np.fill_diagonal(same, False)
    return torch.from_numpy(same)


def exported(
    vectors: Vectors, words: WordByWord, pairs: Fielded, config: TranslationConfig, about: Mapping[str, object]
) -> Head:
    """Plain arrays, the row of no token first."""
    tokens = Stems(pairs.stems)
    settings = {"pooling": "scores", "longest": None}

    def array(table: nn.Embedding, change: Callable[[Tensor], Tensor] = lambda each: each) -> NDArray[np.float32]:
        return np.asarray(F.pad(change(table.weight.detach()), (0, 0, 1, 0)).numpy(), np.float32)

    def weights(table: nn.Embedding) -> NDArray[np.float32]:
        return array(table, lambda each: each.clamp(LIGHT, HEAVY))

    query, code = (
        Side("bag", tokens, {"table": array(table), "scores": weights(weight)}, settings)
        for table, weight in ((vectors.query, vectors.asked), (vectors.code, vectors.counted))
    )
    unit = [array(table, lambda each: F.normalize(each, dim=1)) for table in (words.query, words.code)]
    numbers = [float(each.detach().exp()) for each in (words.limit, words.same)]
    flat = weights(words.asked)[:, 0], array(words.counted)[:, 0]
    return Head(query, code, "fields", about, Translation(unit[0], unit[1], *flat, config.power, *numbers))
