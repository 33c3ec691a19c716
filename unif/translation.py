"""Training of a head with a translation: vectors of queries and functions, then the tables of `ncs.learn.translation`.

First UNIF's form over impacts: T_q and T_c, a learned weight of every word on both sides, cosine of the weighted sums;
they start from singular vectors of the pointwise mutual information of question words and function words. Then the
translation, from these. Trained separately and added they rank better than either, and better than trained jointly.
Both by in-batch softmax; half of a batch are questions that share a word, as hard negatives. With an index and
questions with answers, both are trained last on the default ranker's judged lists (unif.judged_lists).
Rows of pairs are CSR on the CPU; the tables may be on another device.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.utils.extmath import randomized_svd
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from ncs import __version__
from ncs.errors import BadInput
from ncs.learn.heads import NAME, Head, Tower
from ncs.learn.tokenization import StemTokenizer
from ncs.learn.translation import Translation
from ncs.progress import Track, silent
from unif.judged_lists import Material, drop_entries, judge_lists, read_answers, train_on_lists
from unif.training import (
    CANDIDATES,
    Trained,
    choose_device,
    copy_state,
    load_checkpoint,
    open_run,
    reciprocal_ranks,
    save_checkpoint,
    softmax_loss,
)
from unif.translation_data import read_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from unif.config import TranslationConfig
    from unif.data import Ids, Sources
    from unif.translation_data import SparsePairs

POWER, HALF, SAME = 3.0, 0.3, 0.5
"""Of the translation; the last two are where training starts."""
QUERY_DROPOUT, GROUPED = 0.1, 0.5
"""Share of the words of questions left out of a batch; of the pairs that are batched with others that share a word."""
UNDOCUMENTED = 0.5
"""Share of the pairs without a doc comment in the second part: people search documented functions."""
VALID = 5_000
"""Most validation pairs."""
MIN_COUNT, SHIFT = 2, float(np.log(2))
"""Least co-occurrences, and the shift of the pointwise mutual information."""
MIN_LENGTH = 0.3
"""Initial vectors are divided by at least this length, so that vectors of rare words stay short."""
MIN_LOG_WEIGHT, MAX_LOG_WEIGHT = -6.0, 4.0
"""Bounds of the logarithm of a word's weight."""
MAX_COUNTED_PAIRS = 1_000_000
"""Most pairs for counting co-occurrences, evenly spaced."""


def start_vectors(pairs: SparsePairs, rows: Ids, config: TranslationConfig) -> tuple[Tensor, Tensor]:
    """T_q and T_c [V, d]: singular vectors of the positive pointwise mutual information of words of questions and words
    of code, in the undocumented ones of these rows."""
    rows = rows[~pairs.documented[rows]]
    rows = rows[np.unique(np.linspace(0, max(0, len(rows) - 1), min(MAX_COUNTED_PAIRS, len(rows))).astype(np.int64))]
    counts = (pairs.query[rows].T @ (pairs.code[rows] > 0).astype(np.float32)).tocoo()  # [V, V]
    words = counts.shape[0]
    if words <= config.dim or not counts.nnz:
        raise BadInput(f"the pairs have {words} words; more than {config.dim}, of undocumented code, are needed")
    query, code = (np.bincount(ids, counts.data, words) for ids in (counts.row, counts.col))
    information = np.log(counts.data * counts.data.sum() / (query[counts.row] * code[counts.col])) - SHIFT
    mask = (information > 0) & (counts.data >= MIN_COUNT)
    table = csr_matrix((information[mask].astype(np.float32), (counts.row[mask], counts.col[mask])), counts.shape)
    left_vectors, values, right_vectors = randomized_svd(table, config.dim, n_iter=2, random_state=config.seed)
    draw = np.random.default_rng(config.seed)
    tables = []
    for each in (left_vectors * np.sqrt(values), right_vectors.T * np.sqrt(values)):
        each = each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), MIN_LENGTH)
        tables.append(torch.from_numpy(each + draw.normal(size=each.shape, scale=0.02 * config.dim**-0.5)).float())
    return tables[0], tables[1]


def _table(start: Tensor) -> nn.Embedding:
    """A sparse embedding table with these initial rows."""
    return nn.Embedding(len(start), start.shape[1], sparse=True, _weight=start)


def _to_device(ids: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(ids.astype(np.int64)).to(device)


class VectorModel(nn.Module):
    """Queries and functions as unit vectors: sums of word vectors, by impact and a learned weight of the word."""

    def __init__(self, query: Tensor, code: Tensor, weights: Tensor) -> None:
        super().__init__()
        self.query, self.code = _table(query), _table(code)
        self.query_weights, self.code_weights = (_table(weights[:, None].clone()) for _ in range(2))
        self.log_scale = nn.Parameter(torch.tensor(2.7))

    def forward(self, query: Any, code: Any) -> Tensor:
        """Scores [a, b] of functions, CSR [b, V], to queries, CSR [a, V]."""
        cosines = _encode(query, self.query, self.query_weights) @ _encode(code, self.code, self.code_weights).T
        return cosines * self.log_scale.clamp(max=float(np.log(100))).exp()


def _encode(rows: Any, table: nn.Embedding, weight: nn.Embedding) -> Tensor:
    """Unit vectors [n, d]; zeros for an empty row."""
    device = table.weight.device
    ids, starts = _to_device(rows.indices, device), _to_device(rows.indptr[:-1], device)
    weights = torch.from_numpy(rows.data).to(device) * weight(ids)[:, 0].clamp(MIN_LOG_WEIGHT, MAX_LOG_WEIGHT).exp()
    summed = F.embedding_bag(ids, table.weight, starts, mode="sum", per_sample_weights=weights, sparse=True)
    return F.normalize(summed, dim=1)


class TranslationModel(nn.Module):
    """The translation of `ncs.learn.translation`, initialized from word vectors."""

    def __init__(self, start: VectorModel) -> None:
        super().__init__()
        self.query, self.code = (_table(F.normalize(each.weight.detach(), dim=1)) for each in (start.query, start.code))
        self.query_weights = _table(start.query_weights.weight.detach().clone())
        self.code_weights = _table(torch.zeros_like(start.query_weights.weight))
        self.limit, self.same = (nn.Parameter(torch.tensor(float(np.log(each)))) for each in (HALF, SAME))
        self.log_scale = nn.Parameter(torch.tensor(3.0))

    def forward(self, query: Any, code: Any) -> Tensor:
        """Scores [a, b]; the table is computed once per distinct word of the batch."""
        device = self.query.weight.device
        query_words, at = np.unique(query.indices, return_inverse=True)
        code_words, places = np.unique(code.indices, return_inverse=True)
        t, u, place = _to_device(query_words, device), _to_device(code_words, device), _to_device(at, device)
        table = F.relu(self.query(t) @ self.code(u).T) ** POWER  # [t, u]
        table = table + self.same.exp() * (t[:, None] == u[None])
        weights = (
            torch.from_numpy(code.data).to(device) * self.code_weights(_to_device(code.indices, device))[:, 0].exp()
        )
        cells = _to_device(np.stack([code.tocoo().row, places]), device)
        sparse = torch.sparse_coo_tensor(cells, weights, (code.shape[0], len(u)), check_invariants=False)
        match = torch.sparse.mm(sparse, table.T)  # [b, t]
        weighted = self.query_weights(t)[:, 0].clamp(MIN_LOG_WEIGHT, MAX_LOG_WEIGHT).exp()[place]
        shares = torch.zeros(query.shape[0], len(t), device=device)
        shares = shares.index_put((_to_device(query.tocoo().row, device), place), weighted)  # [a, t]
        shares = shares / shares.sum(dim=1, keepdim=True).clamp(min=1e-6)
        scores: Tensor = shares @ (match / (match + self.limit.exp())).T * self.log_scale.exp()
        return scores


def export(
    vectors: VectorModel, translation: TranslationModel, pairs: SparsePairs, about: Mapping[str, object]
) -> Head:
    """Plain arrays, the row of padding first."""
    tokens = StemTokenizer(pairs.stems)
    settings = {"pooling": "scores", "longest": None}

    def array(rows: Tensor) -> NDArray[np.float32]:
        return np.asarray(F.pad(rows.detach().cpu(), (0, 0, 1, 0)).numpy(), np.float32)

    def weights(table: nn.Embedding) -> NDArray[np.float32]:
        return array(table.weight.clamp(MIN_LOG_WEIGHT, MAX_LOG_WEIGHT))

    query, code = (
        Tower("bag", tokens, {"table": array(table.weight), "scores": weights(weight)}, settings)
        for table, weight in ((vectors.query, vectors.query_weights), (vectors.code, vectors.code_weights))
    )
    words = Translation(
        query=array(F.normalize(translation.query.weight.detach().cpu(), dim=1)),
        code=array(F.normalize(translation.code.weight.detach().cpu(), dim=1)),
        query_weights=weights(translation.query_weights)[:, 0],
        code_weights=array(translation.code_weights.weight)[:, 0],
        power=POWER,
        half=float(translation.limit.detach().exp()),
        same=float(translation.same.detach().exp()),
    )
    return Head(query, code, "fields", about, words)


def train(
    out: Path,
    sources: Sources,
    config: TranslationConfig,
    *,
    index: Index | None = None,
    device: str = "auto",
    track: Track = silent,
) -> Trained:
    """Train into the folder of a run; the same call resumes a killed one, bit by bit on one machine.

    index: whose lists are judged by the answers of `sources`, if any. The curve has one row per epoch; epoch 0
    is the vectors before training. Raises BadInput for unusable pairs and for a folder that holds something else.
    """
    if sources.files:
        sources.weights()  # raises where none is above 0
    about = {"version": __version__, "encoder": "translation", **sources.about(), **asdict(config)}
    open_run(out, about)
    pairs = read_pairs(out / "pairs", sources, track)
    place = choose_device(device)
    training = Training(out, pairs, config, torch.device("cpu") if place.type == "mps" else place)  # no sparse there
    state = training.run(track)
    if index is not None and sources.answers and not state["lists"]:
        lists = judge_lists(index, read_answers(sources.answers, sources.excluded), track=track)
        functions = np.flatnonzero(index.functions())
        training.run_lists(state, Material.of(lists, index.word_table(), pairs.stems, functions))
    record = json.loads(json.dumps(about)) | {"epoch": state["best_epoch"]}
    head = export(training.vectors, training.translation, pairs, record)
    head.save(out / NAME)
    return Trained(head, state["curve"], state["best_epoch"], pairs.stats)


class Training:
    """The epochs of both parts; random choices depend only on the seed and the epoch."""

    def __init__(self, out: Path, pairs: SparsePairs, config: TranslationConfig, device: torch.device) -> None:
        self.out, self.pairs, self.config, self.device = out, pairs, config, device
        self.train, valid = pairs.split(config.valid, config.seed)
        self.valid = np.random.default_rng((config.seed, 1)).permutation(valid)[:VALID]
        torch.manual_seed(config.seed)
        weights = torch.from_numpy(np.log(np.maximum(pairs.idf, 0.05))).float()
        self.vectors = VectorModel(*start_vectors(pairs, self.train, config), weights).to(self.device)
        self.translation = TranslationModel(self.vectors).to(self.device)
        self._make_optimizers(0)

    def run(self, track: Track = silent) -> dict[str, Any]:
        """Run the remaining epochs and load the best networks."""
        state: dict[str, Any] = load_checkpoint(self.out, self.device, self._parts_of) or self._initial_state()
        while state["epoch"] < self.config.epochs + self.config.passes:
            if state["epoch"] >= self.config.epochs and state["part"] == 0:
                self._begin_translation(state)
            state["epoch"] += 1
            row = self._epoch(state["epoch"], track)
            row |= {"stage": state["part"] + 1, "mrr": self._validate(state["part"])}
            if row["mrr"] >= state["best_mrr"]:
                state |= {
                    "best_epoch": state["epoch"],
                    "best_mrr": row["mrr"],
                    "best": copy_state(self._network(state)),
                }
            state["curve"] = [*state["curve"], row]
            save_checkpoint(self.out, state, self._parts)
        if not state["lists"]:
            self._network(state).load_state_dict(state["best"])
        return state

    def run_lists(self, state: dict[str, Any], material: Material) -> None:
        """The rounds over judged lists, on the CPU; killed among them, a training resumes before the first."""
        self.vectors, self.translation, self.device = self.vectors.cpu(), self.translation.cpu(), torch.device("cpu")
        draw = np.random.default_rng((self.config.seed, state["epoch"], 1))
        for row in train_on_lists((self.vectors, self.translation), material, self.config.rounds, draw):
            state["epoch"] += 1
            row |= {"epoch": state["epoch"], "stage": 3, "mrr": self._validate(1)}
            state |= {"curve": [*state["curve"], row], "best_epoch": state["epoch"], "best_mrr": row["mrr"]}
        state["lists"] = self.config.rounds
        save_checkpoint(self.out, state, self._parts)

    def _network(self, state: dict[str, Any]) -> nn.Module:
        return self.translation if state["part"] else self.vectors

    def _initial_state(self) -> dict[str, Any]:
        mrr = self._validate(0)
        state = {"part": 0, "epoch": 0, "lists": 0, "curve": [{"epoch": 0, "mrr": mrr}]}
        return {**state, "best_epoch": 0, "best_mrr": mrr, "best": copy_state(self.vectors)}

    def _begin_translation(self, state: dict[str, Any]) -> None:
        """Freeze the best vectors and initialize the translation from them; the MRR of their sum is the baseline."""
        self.vectors.load_state_dict(state["best"])
        self.translation = TranslationModel(self.vectors).to(self.device)
        self._make_optimizers(1)
        best = copy_state(self.translation)
        state |= {"part": 1, "best_mrr": self._validate(1), "best_epoch": state["epoch"], "best": best}

    def _make_optimizers(self, part: int) -> None:
        """SparseAdam for the tables, Adam for the scalars."""
        network = self.translation if part else self.vectors
        tables = [each.weight for each in network.modules() if isinstance(each, nn.Embedding)]
        others = [each for each in network.parameters() if not any(each is table for table in tables)]
        rate = self.config.rate / 3 if part else self.config.rate
        self.optimizers = {
            "sparse": torch.optim.SparseAdam(tables, lr=rate), "dense": torch.optim.Adam(others, lr=0.01),
        }  # fmt: skip

    def _epoch(self, epoch: int, track: Track) -> dict[str, float]:
        """Train one epoch over the weighted pairs; its mean loss and speed."""
        pairs, config, second = self.pairs, self.config, epoch > self.config.epochs
        network: nn.Module = self.translation if second else self.vectors
        size, share = (config.batch // 2, UNDOCUMENTED) if second else (config.batch, 1.0)
        draw = np.random.default_rng((config.seed, epoch))
        began, total, steps, n_pairs = time.perf_counter(), torch.zeros((), device=self.device), 0, 0
        for rows in track(pairs.batches(self.train, size, GROUPED, share, draw), f"epoch {epoch}", unit="batches"):
            query = drop_entries(pairs.query[rows], QUERY_DROPOUT, draw)
            code = drop_entries(pairs.code_of(rows, draw), config.word_dropout, draw)
            same = torch.from_numpy(pairs.not_negatives(rows)).to(self.device)
            loss = softmax_loss(network(query, code), same).mean()
            for optimizer in self.optimizers.values():
                optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            for optimizer in self.optimizers.values():
                optimizer.step()
            total, steps, n_pairs = total + loss.detach(), steps + 1, n_pairs + len(rows)
        mean, seconds = float(total) / max(1, steps), time.perf_counter() - began
        return {"epoch": epoch, "loss": mean, "seconds": round(seconds, 3), "pairs_per_s": n_pairs / seconds}

    @torch.no_grad()
    def _validate(self, part: int) -> float:
        """Mean reciprocal rank of a question's function among CANDIDATES.

        In the second part the z-scores of both are added, as in search (ncs.search.unif).
        """
        pairs, ranks = self.pairs, []
        for rows in np.array_split(self.valid, max(1, round(len(self.valid) / CANDIDATES))):
            query, code = pairs.query[rows], pairs.code_of(rows, np.random.default_rng((self.config.seed, 2)))
            scores = _z_scores(self.vectors(query, code))
            scores = scores + _z_scores(self.translation(query, code)) if part else scores
            same = torch.from_numpy(pairs.not_negatives(rows, questions=True)).to(self.device)
            ranks.append(reciprocal_ranks(scores, same))
        return float(torch.cat(ranks).mean())

    @property
    def _parts(self) -> dict[str, Any]:
        return {"vectors": self.vectors, "translation": self.translation, **self.optimizers}

    def _parts_of(self, state: dict[str, Any]) -> dict[str, Any]:
        """What a checkpoint of this state restores: the networks, and new optimizers of the part it is in."""
        self._make_optimizers(state["part"])
        return self._parts


def _z_scores(scores: Tensor) -> Tensor:
    """z-scores of the scores [a, b] of each query."""
    return (scores - scores.mean(dim=1, keepdim=True)) / scores.std(dim=1, correction=0, keepdim=True).clamp(min=1e-9)
