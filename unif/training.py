"""Training: open the run, read the pairs, repeat epochs, keep the best network, export it.

RUN/config.json     settings and a digest of the index; the same training resumes, another one is an error
RUN/pairs/          tokens, and the pairs as their ids, memory-mapped
RUN/checkpoint.pt   replaced after every epoch
RUN/curve.jsonl     one epoch per line
RUN/head/           plain arrays, when the training is over
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from ncs import __version__
from ncs.errors import BadInput
from ncs.files import open_replacement, refuse_links, replace_file
from ncs.learn.heads import NAME
from ncs.progress import Track, silent
from unif.config import TrainConfig
from unif.data import STATS, IndexSource, Inputs, Pairs, ReadStats, batches, epoch_order, one_per_question, prepare
from unif.networks import Towers, create, export

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from ncs.learn.heads import Head
    from unif.data import Ids, Sources, Texts

CHECKPOINT = "checkpoint.pt"
CANDIDATES = 1_000
"""Codes among which a validation question has to find its own, as in CodeSearchNet."""
BETAS, EPSILON = (0.9, 0.999), 1e-8
TABLE = "table.weight"


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of a training; `curve` has one row per epoch; epoch 0 is the network before training."""

    head: Head
    curve: list[dict[str, float]]
    best_epoch: int
    stats: ReadStats


def train(
    out: Path,
    sources: Sources,
    config: TrainConfig,
    *,
    index: Index | None = None,
    device: str = "auto",
    track: Track = silent,
) -> Trained:
    """Train a head into the folder `out`; the same call resumes a killed one, without reading the pairs again.

    index: whose words UNIF reads, and whose own functions are a source where `sources` says so; the other encoders need
    none. Resuming gives the same bits on one machine and device. Raises BadInput for unusable pairs, and for a folder
    that holds something else.
    """
    place = choose_device(device)
    if index is None and needs_index(config, sources):
        raise BadInput("unif reads the words of an index, own pairs are its functions; name one")
    source = IndexSource.of(index) if index else None
    words = source if config.encoder == "unif" else None
    about = {"version": __version__, **asdict(config)}
    open_run(out, {"index": source and source.digest(), **sources.about(), **about})
    if not (out / "pairs" / STATS).is_file():
        prepare(out / "pairs", sources, source, words, track)
    inputs, pairs = Inputs.load(out / "pairs", words), Pairs.load(out / "pairs")
    towers = create(config, inputs).to(place)
    state = Training(out, sources, config, pairs, towers).run(track)
    head = export(towers, inputs, {**about, "epoch": state["best_epoch"]})
    head.save(out / NAME)
    return Trained(head, state["curve"], state["best_epoch"], pairs.stats)


def needs_index(config: TrainConfig, sources: Sources) -> bool:
    """Whether a training reads the words or the functions of an index."""
    return config.encoder == "unif" or bool(sources.own)


class Training:
    """The epochs of a run; random choices depend only on the seed and the epoch."""

    def __init__(self, out: Path, sources: Sources, config: TrainConfig, pairs: Pairs, towers: Towers) -> None:
        self.out, self.config, self.pairs, self.towers = out, config, pairs, towers
        self.stages = [(stage, sources.weights(stage.sources)) for stage in config.curriculum]
        self.train, valid = pairs.split(config.valid, config.seed)
        self.valid = valid[np.isin(pairs.source[valid], np.flatnonzero(self.stages[-1][1]))]
        if not len(self.valid):
            raise BadInput("the last stage's sources have no question to validate on; give more pairs")
        self.device = towers.log_scale.device
        self.learner = Learner(towers, config)

    def run(self, track: Track) -> dict[str, Any]:
        """Run the remaining epochs and load the best network."""
        parts = {"towers": self.towers, "dense": self.learner.dense, **self.learner.rows}
        state: dict[str, Any] = load_checkpoint(self.out, self.device, lambda state: parts) or self._initial_state()
        while state["stage"] < len(self.stages):
            stage, weights = self.stages[state["stage"]]
            state["epoch"] += 1
            self.learner.rate = stage.rate or self.config.rate
            row = self._epoch(state["epoch"], weights, track)
            row |= {"stage": state["stage"] + 1, "mrr": self._validate()}
            if row["mrr"] > state["best_mrr"]:
                state |= {"best_epoch": state["epoch"], "best_mrr": row["mrr"], "best": copy_state(self.towers)}
            state["curve"] = [*state["curve"], row]
            stale = state["epoch"] - max(state["best_epoch"], state["began"])  # epochs without a better network
            if state["epoch"] - state["began"] >= stage.epochs or stale >= self.config.patience:
                state |= {"stage": state["stage"] + 1, "began": state["epoch"]}
                self.towers.load_state_dict(state["best"])  # the next stage continues from the best network
            save_checkpoint(self.out, state, parts)
        return state

    def _batch(self, rows: Ids) -> tuple[Tensor, Tensor]:
        """The word ids of questions and codes, [n, l] each."""
        query = padded(self.pairs.query, rows, self.config.query_words)
        code = padded(self.pairs.code, rows, self.config.code_words)
        return query.to(self.device), code.to(self.device)

    def _epoch(self, epoch: int, weights: list[float], track: Track) -> dict[str, float]:
        """Train one epoch; its mean loss and speed."""
        draw, random = np.random.default_rng((self.config.seed, epoch)), seeded(self.device, self.config.seed, epoch)
        order = epoch_order(self.pairs.question, self.pairs.source, self.train, weights, draw)
        self.towers.train()
        start, total, rows_seen = time.perf_counter(), torch.zeros((), device=self.device), 0
        epoch_batches = batches(self.pairs.question, order, self.config.batch)
        count = -(-len(order) // self.config.batch)
        with torch.random.fork_rng():
            torch.manual_seed(random.initial_seed())  # of the networks' own dropout
            for rows in track(epoch_batches, f"epoch {epoch}", total=count, unit="batches"):
                total += self.learner.learn(*self._batch(rows), random) * len(rows)
                rows_seen += len(rows)
        loss, seconds = float(total) / max(1, rows_seen), time.perf_counter() - start
        return {"epoch": epoch, "loss": loss, "seconds": round(seconds, 3), "pairs_per_s": rows_seen / seconds}

    @torch.no_grad()
    def _validate(self) -> float:
        """Mean reciprocal rank of a question's code among at most CANDIDATES."""
        self.towers.eval()
        ranks = []
        order = one_per_question(self.pairs.question, self.valid, np.random.default_rng(self.config.seed))
        for part in np.array_split(order, max(1, round(len(order) / CANDIDATES))):
            query, code = self._batch(part)
            codes = self.towers.code(code)
            cosines = self.towers.query(query) @ (center(codes) if self.config.centre else codes).T  # [n, n]
            ranks.append(reciprocal_ranks(cosines, find_twins(query, code)))
        return float(torch.cat(ranks).mean())

    def _initial_state(self) -> dict[str, Any]:
        """The state before the first epoch, with the untrained network's MRR."""
        mrr = self._validate()
        state = {"epoch": 0, "stage": 0, "began": 0, "curve": [{"epoch": 0, "mrr": mrr}]}
        return {**state, "best_epoch": 0, "best_mrr": mrr, "best": copy_state(self.towers)}


class Learner:
    """A network with its optimizers; `learn` is one step on a batch, over the rows of the token tables it needs."""

    def __init__(self, towers: Towers, config: TrainConfig) -> None:
        self.towers, self.config, self.rate = towers, config, config.rate
        device = towers.log_scale.device
        self.rows = {"query": RowAdam(_table(towers.query)), "code": RowAdam(_table(towers.code))}
        self.dense = torch.optim.Adam(towers.dense_parameters(), fused=device.type == "cuda")
        half = device.type == "cuda" and torch.cuda.is_bf16_supported()
        self.half = config.precision == "bfloat16" or (config.precision == "auto" and half)
        if self.half and device.type == "cuda":
            torch.set_float32_matmul_precision("high")

    def learn(self, query: Tensor, code: Tensor, random: torch.Generator) -> Tensor:
        """One step on ids [n, l]; the loss, a number on the device. random: drops words."""
        twins = find_twins(query, code)
        query, code = (drop_words(ids, self.config.word_dropout, random) for ids in (query, code))
        with torch.autocast(query.device.type, torch.bfloat16, enabled=self.half):
            queries, codes = self._encode("query", query).float(), self._encode("code", code).float()  # [n, d]
        loss = self._loss(queries, center(codes) if self.config.centre else codes, twins)
        self.dense.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for rows in self.rows.values():
            rows.step(self.rate)
        self.dense.param_groups[0]["lr"] = self.rate
        self.dense.step()
        return loss.detach()

    def _encode(self, side: str, ids: Tensor) -> Tensor:
        """Unit vectors [n, d]."""
        tower, adam = self.towers.get_submodule(side), self.rows[side]
        rows, ids = compact(len(adam.table), ids)
        table = adam.take(rows)  # trained and stored in float32
        table = table.to(torch.bfloat16) if self.half else table
        vectors: Tensor = functional_call(tower, {TABLE: table}, (ids,))
        return vectors

    def _loss(self, queries: Tensor, codes: Tensor, twins: Tensor) -> Tensor:
        """twins, bool [n, n]: codes that are no negatives of a question."""
        cosines, own = queries @ codes.T, torch.arange(len(queries), device=queries.device)  # [n, n]
        if self.config.loss == "softmax":
            return softmax_loss(self.towers.scale * cosines, twins).sum() / len(own)
        negatives = own.roll(-1)  # the next code of the batch, whose order is random
        valid = ~twins[own, negatives]
        losses = (self.config.margin - cosines.diagonal() + cosines[own, negatives]).clamp(min=0)  # UNIF's paper
        return (losses * valid).sum() / valid.sum().clamp(min=1)


def _table(tower: nn.Module) -> Tensor:
    return tower.get_parameter(TABLE).requires_grad_(False).detach()


class RowAdam:
    """Adam (Kingma and Ba 2015) over only those rows of a table that a step uses.

    A batch of 256 pairs has some 3,000 of 20,000 to 1,000,000 words; dense Adam would read and write all rows of the
    table, its gradient and both moments. The moments of a row that was not touched for k steps decay by beta^k when it
    is touched again, as in dense Adam; only the moves that momentum alone would have made meanwhile are left out.
    """

    def __init__(self, table: Tensor) -> None:
        self.table, self.steps = table, 0
        self.first, self.second = torch.zeros_like(table), torch.zeros_like(table)
        self.last = torch.zeros(len(table), dtype=torch.int64, device=table.device)
        self.rows = self.leaf = torch.empty(0)

    def take(self, rows: Tensor) -> Tensor:
        """These rows of the table, row 0 first, as a leaf to be trained."""
        self.rows, self.leaf = rows, self.table.index_select(0, rows).requires_grad_()
        return self.leaf

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update the rows in use by their gradient; row 0, the padding, stays zero."""
        self.steps += 1
        if (gradient := self.leaf.grad) is None:
            return
        gradient[0] = 0
        waited = (self.steps - self.last.index_select(0, self.rows)).unsqueeze(1)  # [rows, 1], at least 1
        first = self.first.index_select(0, self.rows).mul_(BETAS[0] ** waited).add_(gradient, alpha=1 - BETAS[0])
        second = self.second.index_select(0, self.rows).mul_(BETAS[1] ** waited)
        second.addcmul_(gradient, gradient, value=1 - BETAS[1])
        self.first.index_copy_(0, self.rows, first)
        self.second.index_copy_(0, self.rows, second)
        self.last.index_fill_(0, self.rows, self.steps)
        scale = second.div_(1 - BETAS[1] ** self.steps).sqrt_().add_(EPSILON)
        move = first.div_(1 - BETAS[0] ** self.steps).div_(scale)
        self.table.index_copy_(0, self.rows, self.leaf.detach().sub_(move, alpha=rate))

    def state_dict(self) -> dict[str, Any]:
        """Steps and moments."""
        return {"steps": self.steps, "first": self.first, "second": self.second, "last": self.last}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave."""
        self.steps = int(state["steps"])
        for name in ("first", "second", "last"):
            getattr(self, name).copy_(state[name])


def in_8_bits(rows: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Vectors [..., d] as whole numbers up to 127, each by the largest of its own, and what these are multiplied by."""
    scales = np.maximum(np.abs(rows).max(axis=-1) / 127, 1e-6).astype(np.float16)
    return np.rint(rows / scales[..., None].astype(np.float32)).clip(-127, 127).astype(np.int8), scales


def softmax_loss(scores: Tensor, twins: Tensor) -> Tensor:
    """Choosing the right code among all: the cross entropy of each question, [n], of scores [n, n]."""
    own = torch.arange(len(scores), device=scores.device)
    wrong = twins.clone().fill_diagonal_(False)
    return F.cross_entropy(scores.masked_fill(wrong, -torch.inf), own, reduction="none")


def reciprocal_ranks(scores: Tensor, twins: Tensor) -> Tensor:
    """1 / rank of each question's own code, [n], by scores [n, n]; ties count against it, its twins [n, n] not."""
    above = (scores >= scores.diagonal()[:, None]) & ~twins
    return 1 / (1 + above.fill_diagonal_(False).sum(dim=1)).double()


def find_twins(query: Tensor, code: Tensor) -> Tensor:
    """bool [n, n]: which rows have the same question or code; both are ids, [n, l]."""
    queries, codes = row_hashes(query), row_hashes(code)
    return (queries[:, None] == queries) | (codes[:, None] == codes)


def row_hashes(ids: Tensor) -> Tensor:
    """A hash of each row of ids [n, l], int64 [n], that does not depend on padding at the end.

    >>> one, other, same = row_hashes(torch.tensor([[1, 2, 0], [2, 1, 0], [1, 2, 0]])).tolist()
    >>> one == same, one == other
    (True, False)
    """
    places = torch.arange(1, ids.shape[1] + 1, device=ids.device)
    factors = _mix_bits(places * -7046029254386353131) | 1  # odd: no bit of an id is lost
    return _mix_bits((ids * factors).sum(dim=1))


def _mix_bits(numbers: Tensor) -> Tensor:
    """Multiplications modulo 2^64 and shifts."""
    numbers = (numbers ^ (numbers >> 30)) * -4658895280553007687
    return numbers ^ (numbers >> 27)


def center(vectors: Tensor) -> Tensor:
    """Unit vectors of vectors [n, d] less their mean; zeros stay zeros."""
    centered = F.normalize(vectors - vectors.mean(dim=0), dim=1)
    return centered.masked_fill(~vectors.any(dim=1, keepdim=True), 0)


def padded(texts: Texts, rows: Ids, longest: int) -> Tensor:
    """The first `longest` words of these rows, int64 [n, l], zeros behind."""
    ids, lengths = texts.cut(rows, longest)
    present = np.arange(lengths.max(initial=0)) < lengths[:, None]  # [n, l]
    out = np.zeros(present.shape, np.int64)
    out[present] = ids
    return torch.from_numpy(out)


def drop_words(ids: Tensor, share: float, random: torch.Generator) -> Tensor:
    """A share of the words replaced by padding at random."""
    if not share:
        return ids
    return ids.masked_fill(torch.rand(ids.shape, generator=random, device=ids.device) < share, 0)


def compact(size: int, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct ids, ascending with 0 first, and all ids as indices into them."""
    present = torch.zeros(size, dtype=torch.bool, device=ids.device)
    present[0] = True
    present[ids.reshape(-1)] = True
    return present.nonzero()[:, 0], (present.cumsum(0) - 1)[ids]


def seeded(device: torch.device, *seed: int) -> torch.Generator:
    """A random generator on a device, seeded by these numbers."""
    number = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1)
    return torch.Generator(device).manual_seed(number)


def choose_device(device: str) -> torch.device:
    """The device of a name; auto: cuda, else mps, else cpu. Raises BadInput if it is not available."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        return torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"cannot train on {device!r} ({reason}); use --device auto or cpu") from None


def open_run(folder: Path, settings: Mapping[str, object]) -> None:
    """Make the folder of a run, or resume it; raises BadInput where it holds a run with other settings."""
    refuse_links(folder)
    path = folder / "config.json"
    text = json.dumps(settings, indent=1) + "\n"
    if path.is_file():
        if path.read_text(encoding="utf-8") == text:
            return
        if (folder / CHECKPOINT).exists():
            raise BadInput(f"{folder} holds a training with other settings, pairs or index; name another folder")
        shutil.rmtree(folder / "pairs", ignore_errors=True)  # nothing was trained yet
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} exists and holds no training; name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, text)


def save_checkpoint(out: Path, state: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
    """Write the curve, then the state of a run with the `state_dict` of each part of it."""
    replace_file(out / "curve.jsonl", "".join(json.dumps(row) + "\n" for row in state["curve"]))
    with open_replacement(out / CHECKPOINT) as file:
        torch.save({**state, **{name: part.state_dict() for name, part in parts.items()}}, file)


def load_checkpoint(out: Path, device: torch.device, parts: Callable[[Any], Mapping[str, Any]]) -> Any:
    """The state of a run, None before its first epoch; the parts of that state are restored. BadInput if damaged."""
    path = out / CHECKPOINT
    if not path.is_file():
        return None
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        for name, part in parts(state).items():
            part.load_state_dict(state.pop(name))
    except Exception as error:
        message = f"cannot resume from {path} ({type(error).__name__}); remove its folder and start again"
        raise BadInput(message) from error
    return state


def copy_state(network: nn.Module) -> dict[str, Tensor]:
    """A copy of a network's parameters in CPU memory."""
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}
