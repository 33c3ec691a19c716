"""Training: open the run, read the pairs, repeat epochs, keep the best network, export it.

RUN/config.json     settings and a digest of the index; the same training resumes, another one is an error
RUN/pairs/          word ids of the pairs, memory-mapped
RUN/checkpoint.pt   replaced after every epoch
RUN/curve.jsonl     one epoch per line; RUN/curve.svg plots it, where matplotlib is installed
RUN/mined-N.npy     hard negatives that epoch N mined
RUN/head/           plain arrays, when the training is over
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from ncs import __version__
from ncs.errors import BadInput
from ncs.learn.heads import NAME
from ncs.progress import Track, silent
from ncs.storage.minhash import ALIKE
from unif.config import Stage, TrainConfig
from unif.data import STATS, Pairs, ReadStats, batches, epoch_order, one_per_question, write_pairs
from unif.losses import find_twins
from unif.networks import Towers, create, export
from unif.sources import IndexSource
from unif.step import Batches, Learner, World, center, choose_device, join_world, seeded
from unif.tokenization import Inputs, make_inputs, reads_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from ncs.learn.heads import Head
    from unif.data import Ids, Texts
    from unif.sources import Sources

CHECKPOINT = "checkpoint.pt"
CANDIDATES = 1_000
"""Codes among which a validation question has to find its own, as in CodeSearchNet."""
MINING_POOL = 200_000
"""Most codes that are searched for hard negatives, sampled each time."""
MINING_DEPTH = 4
"""Candidates per negative: some are answers or near duplicates."""
MINING_BLOCK = 256
"""Texts encoded at once."""


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of a training; `curve` has one row per epoch; epoch 0 is the network before training."""

    head: Head
    curve: list[dict[str, float]]
    best_epoch: int
    best_mrr: float
    stats: ReadStats


def train(
    index: Index, out: Path, sources: Sources, config: TrainConfig, *, device: str = "auto", track: Track = silent
) -> Trained:
    """Train a head over the words of an index into the folder `out`; the same call resumes a killed one.

    Resuming gives the same bits on one machine and device. Under `torchrun` every process has its share of each batch;
    the first one writes. Raises BadInput for unusable pairs, and for a folder that holds something else.
    """
    place = choose_device(device)
    with join_world(place) as world:
        source = IndexSource.of(index)
        about = {"version": __version__, **asdict(config)}
        reads = reads_of(config.encoder)
        inputs = make_inputs(
            config.encoder, source, lambda: ((p.query, p.code) for p in sources.pairs(source, reads, ReadStats()))
        )
        if world.first:
            open_run(out, {"index": source.digest(), **sources.about(), **about})
            _read_pairs(out / "pairs", sources, source, inputs, track)
        world.wait()
        pairs = Pairs.load(out / "pairs")
        towers = create(config, inputs).to(place)
        state = Training(out, sources, config, pairs, towers, world).run(track)
        head = export(towers, inputs, {**about, "epoch": state["best_epoch"]})
        if world.first:
            head.save(out / NAME)
        world.wait()
    return Trained(head, state["curve"], state["best_epoch"], state["best_mrr"], pairs.stats)


def _read_pairs(folder: Path, sources: Sources, source: IndexSource, inputs: Inputs, track: Track) -> None:
    if not (folder / STATS).is_file():
        stats = ReadStats()
        pairs = sources.pairs(source, inputs.reads, stats, track)
        write_pairs(pairs, folder, stats, inputs.query.ids, inputs.code.ids)


class Training:
    """The epochs of a run; random choices depend only on the seed and the epoch."""

    def __init__(
        self, out: Path, sources: Sources, config: TrainConfig, pairs: Pairs, towers: Towers, world: World
    ) -> None:
        self.out, self.config, self.pairs, self.towers, self.world = out, config, pairs, towers, world
        self.stages = [(stage, sources.weights(stage.sources)) for stage in config.curriculum]
        self.train, valid = pairs.split(config.valid, config.seed, config.split)
        self.valid = valid[np.isin(pairs.source[valid], np.flatnonzero(self.stages[-1][1]))]
        if not len(self.valid):
            raise BadInput("the last stage's sources have no question to validate on; give more pairs")
        self.device = towers.log_scale.device
        self.batches = Batches(pairs, config, self.device)
        self.learner = Learner(towers, config, world)

    def run(self, track: Track) -> dict[str, Any]:
        """Run the remaining epochs and load the best network."""
        state = self._resume() or self._initial_state()
        while state["stage"] < len(self.stages):
            stage, weights = self.stages[state["stage"]]
            state["epoch"] += 1
            self._mine(state)
            self.learner.rate = stage.rate or self.config.rate
            row = self._epoch(state["epoch"], weights, track)
            row |= {"stage": state["stage"] + 1, "mined": state["mined"], "mrr": self._validate()}
            if row["mrr"] > state["best_mrr"]:
                state |= {"best_epoch": state["epoch"], "best_mrr": row["mrr"], "best": copy_state(self.towers)}
            state["curve"] = [*state["curve"], row]
            if self._is_over(state, stage):
                state |= {"stage": state["stage"] + 1, "began": state["epoch"]}
                self.towers.load_state_dict(state["best"])  # the next stage continues from the best network
            self._save(state)
        if self.world.first:  # again: a kill may have come between the last checkpoint and its curve
            write_curve(self.out, state["curve"], state["best_epoch"], plot=True)
        return state

    def _is_over(self, state: dict[str, Any], stage: Stage) -> bool:
        """Whether a stage has run all epochs or stopped improving."""
        since = state["epoch"] - max(state["best_epoch"], state["began"])
        return bool(state["epoch"] - state["began"] >= stage.epochs or since >= self.config.patience)

    def _epoch(self, epoch: int, weights: list[float], track: Track) -> dict[str, float]:
        """Train one epoch; its mean loss and speed."""
        draw, random = np.random.default_rng((self.config.seed, epoch)), seeded(self.device, self.config.seed, epoch)
        order = epoch_order(self.pairs.question, self.pairs.source, self.train, weights, draw)
        self.towers.train()
        start, total, rows_seen = time.perf_counter(), torch.zeros((), device=self.device), 0
        epoch_batches = batches(self.pairs.question, order, self.config.batch)
        with torch.random.fork_rng():
            torch.manual_seed(random.initial_seed())  # of the networks' own dropout
            for rows in track(
                epoch_batches, f"epoch {epoch}", total=-(-len(order) // self.config.batch), unit="batches"
            ):
                total += self.learner.learn(self.batches.batch(rows, draw), random) * len(rows)
                rows_seen += len(rows)
        self.world.sum([total])
        loss, seconds = float(total) / max(1, rows_seen), time.perf_counter() - start
        return {"epoch": epoch, "loss": loss, "seconds": round(seconds, 3), "pairs_per_s": rows_seen / seconds}

    def _validate(self) -> float:
        self.towers.eval()
        return self.world.agree(validation_mrr(self.towers, self.batches, self.pairs, self.valid))

    def _mine(self, state: dict[str, Any]) -> None:
        """Mine hard negatives every `mine_every` epochs; else use the last ones."""
        epoch, every = state["epoch"], self.config.mine_every
        if every and epoch > 1 and (epoch - 1) % every == 0:
            state["mined"] = epoch
            if self.world.first:
                self.towers.eval()
                draw = np.random.default_rng((self.config.seed, epoch, 1))
                with replacing(self._mined_file(state)) as file:
                    np.save(file, mine(self.towers, self.batches, self.pairs, self.train, draw))
            self.world.wait()
        if state["mined"]:
            self.batches.hard = np.load(self._mined_file(state), mmap_mode="r", allow_pickle=False)

    def _mined_file(self, state: dict[str, Any]) -> Path:
        return self.out / f"mined-{state['mined']}.npy"

    def _initial_state(self) -> dict[str, Any]:
        """The state before the first epoch, with the untrained network's MRR."""
        mrr = self._validate()
        state = {"epoch": 0, "stage": 0, "began": 0, "mined": 0, "curve": [{"epoch": 0, "mrr": mrr}]}
        return {**state, "best_epoch": 0, "best_mrr": mrr, "best": copy_state(self.towers)}

    def _save(self, state: dict[str, Any]) -> None:
        """Write checkpoint and curve, and remove older hard negatives."""
        if self.world.first:
            networks = {"towers": self.towers.state_dict(), "learner": self.learner.state()}
            save_checkpoint(self.out / CHECKPOINT, {**state, **networks})
            write_curve(self.out, state["curve"], state["best_epoch"])
            for path in self.out.glob("mined-*.npy"):
                if path != self._mined_file(state):
                    path.unlink()
        self.world.wait()

    def _resume(self) -> dict[str, Any] | None:
        """Load network and optimizers from the checkpoint; None without one."""
        state = load_checkpoint(self.out / CHECKPOINT, self.device)
        if state is not None:
            with checkpoint_errors(self.out / CHECKPOINT):
                self.towers.load_state_dict(state.pop("towers"))
                self.learner.load(state.pop("learner"))
        return state


@torch.no_grad()
def validation_mrr(towers: Towers, source: Batches, pairs: Pairs, rows: Ids) -> float:
    """Mean reciprocal rank of a question's code among at most CANDIDATES; ties count against it, twins are ignored."""
    ranks = []
    order = one_per_question(pairs.question, rows, np.random.default_rng(source.config.seed))
    for part in np.array_split(order, max(1, round(len(order) / CANDIDATES))):
        batch = source.batch(part)
        codes = towers.code(batch.code)
        cosines = towers.query(batch.query) @ (center(codes) if source.config.centre else codes).T  # [n, n]
        above = (cosines >= cosines.diagonal()[:, None]) & ~find_twins(batch.query, batch.code)
        ranks.append(1 / (1 + above.sum(dim=1)).double())
    return float(torch.cat(ranks).mean())


@torch.no_grad()
def mine(towers: Towers, source: Batches, pairs: Pairs, rows: Ids, draw: np.random.Generator) -> NDArray[np.int32]:
    """Hard negatives int32 [len(pairs), mined]: for `rows` the nearest wrong codes of these rows, -1 for none.

    A code with a Jaccard similarity of ALIKE or more to the answer, in sets of words, is a near duplicate and no
    negative; rows of one question answer each other.
    """
    mined, longest = source.config.mined, source.config.code_words
    pool = np.sort(draw.choice(rows, MINING_POOL, replace=False)) if len(rows) > MINING_POOL else rows
    blocks = [pool[start : start + MINING_BLOCK] for start in range(0, len(pool), MINING_BLOCK)]
    vectors: Tensor = torch.cat([towers.code(source.code(block, longest)) for block in blocks])  # [pool, d]
    vectors = center(vectors) if source.config.centre else vectors
    negatives = np.full((len(pairs), mined), -1, np.int32)
    for block in (rows[start : start + MINING_BLOCK] for start in range(0, len(rows), MINING_BLOCK)):
        queries = towers.query(source.query(block, source.config.query_words))
        nearest = (queries @ vectors.T).topk(min(len(pool), MINING_DEPTH * mined), dim=1).indices.cpu().numpy()
        nearest = pool[nearest]  # [block, depth]
        same = pairs.question[block][:, None] == pairs.question[nearest.reshape(-1)].reshape(nearest.shape)
        is_negative = ~(same | (jaccard(pairs.code, block, nearest, longest) >= ALIKE))
        order = np.argsort(~is_negative, axis=1, kind="stable")[:, :mined]
        best = np.where(np.take_along_axis(is_negative, order, 1), np.take_along_axis(nearest, order, 1), -1)
        negatives[block, : best.shape[1]] = best
    return negatives


def jaccard(texts: Texts, rows: Ids, others: Ids, longest: int) -> NDArray[np.float64]:
    """Jaccard similarities [n, k] of the word sets of rows [n] with those of rows [n, k]."""
    left, right = _word_sets(*texts.cut(rows, longest)), _word_sets(*texts.cut(others.reshape(-1), longest))
    size = max(left.shape[1], right.shape[1])
    left.resize(len(rows), size)
    right.resize(others.size, size)
    at = np.repeat(np.arange(len(rows)), others.shape[1])
    intersection = np.asarray(left[at].multiply(right).sum(axis=1)).reshape(-1)
    union = np.diff(left.indptr)[at] + np.diff(right.indptr) - intersection
    return np.asarray(intersection / np.maximum(union, 1)).reshape(others.shape)


def _word_sets(ids: Ids, lengths: Ids) -> csr_array:
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    sets = csr_array((np.ones(len(ids), np.float32), ids, bounds), shape=(len(lengths), int(ids.max(initial=0)) + 1))
    sets.sum_duplicates()
    sets.data[:] = 1
    return sets


def open_run(folder: Path, settings: Mapping[str, object]) -> None:
    """Make the folder of a run, or resume it; raises BadInput where it holds a run with other settings."""
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
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that replaces another when it is complete."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Save nested dicts and lists of tensors, numbers and strings."""
    with replacing(path) as file:
        torch.save(dict(state), file)


def load_checkpoint(path: Path, device: torch.device) -> dict[str, Any] | None:
    """Load a checkpoint; None without one. Raises BadInput for a damaged one."""
    if not path.is_file():
        return None
    with checkpoint_errors(path):
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    return state


@contextmanager
def checkpoint_errors(path: Path) -> Iterator[None]:
    """Convert any error into BadInput: the checkpoint is damaged."""
    try:
        yield
    except Exception as error:
        message = f"cannot resume from {path} ({type(error).__name__}); remove its folder and start again"
        raise BadInput(message) from error


def copy_state(network: nn.Module) -> dict[str, Tensor]:
    """A copy of a network's parameters in CPU memory."""
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}


def write_curve(out: Path, curve: Iterable[Mapping[str, float]], best_epoch: int, *, plot: bool = False) -> None:
    """Write one epoch per line; plot: also as SVG if matplotlib is installed."""
    rows = list(curve)
    with replacing(out / "curve.jsonl") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows).encode())
    if not plot:
        return
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        return
    with matplotlib.rc_context({"svg.hashsalt": "unif", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7, 5), layout="constrained")
        axes = figure.subplots(2, 1, sharex=True)
        for each, name in zip(axes, ("loss", "mrr"), strict=True):
            points = [(row["epoch"], row[name]) for row in rows if name in row]
            each.plot(*zip(*points, strict=True), marker="o")
            each.set_ylabel({"loss": "loss", "mrr": "validation MRR"}[name])
            each.grid(alpha=0.3)
            for row, following in pairwise(rows[1:]):
                if row.get("stage") != following.get("stage"):
                    each.axvline(row["epoch"] + 0.5, color="gray")
        best = next(row["mrr"] for row in rows if row["epoch"] == best_epoch)
        axes[1].plot([best_epoch], [best], "*", markersize=16, label=f"best: epoch {best_epoch}, {best:.4f}")
        axes[1].legend(loc="lower right")
        axes[1].set_xlabel("epoch")
        with replacing(out / "curve.svg") as file:
            figure.savefig(file, format="svg", metadata={"Date": None})
