"""Training, read from top to bottom: open the run, read the pairs, repeat epochs, keep the best, export it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ncs import __version__
from ncs.errors import BadInput, MissingExtra
from ncs.progress import Track, silent
from unif.batches import Source
from unif.beginning import begin
from unif.checkpoint import copy_of, damaged, load, save
from unif.curves import draw as draw_curve
from unif.data import Reading, Texts
from unif.drawing import batches, epoch_order
from unif.lessons import Lessons
from unif.mining import mine, mined_file
from unif.model import Towers, create, export
from unif.run import CHECKPOINT, POOL, SERVED, Start, open_run, run_pairs, write_array, write_curve
from unif.settings import Stage, TrainConfig
from unif.step import Learner, seeded
from unif.validation import validation_mrr
from unif.world import World, chosen, joined, local

if TYPE_CHECKING:
    from ncs.index import Index
    from unif.data import Pairs
    from unif.head import Head
    from unif.sources import Sources
    from unif.teacher import Lists


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of it; `curve` has an epoch a row, epoch 0 being the network before training."""

    head: Head
    curve: list[dict[str, float]]
    best_epoch: int
    best_mrr: float
    reading: Reading


def train(
    index: Index, out: Path, sources: Sources, config: TrainConfig, *, device: str = "auto", track: Track = silent
) -> Trained:
    """Train a head over the words of an index into the folder `out`; the same call goes on where a killed one was.

    What is learnt does not depend on where it was killed, bit by bit, on one machine and device. Under `torchrun` every
    process has its share of each batch; the first one writes.
    Raises BadInput for pairs that are none, and a folder that holds something else.
    """
    place = local(chosen(device))
    with joined(place) as world:
        start = Start.of(index, rare_words=config.model.rare_words == "random", seed=config.seed)
        beginning = begin(config.model, start, lambda: sources.words(start, config.model.encoder))
        about = {"version": __version__, **asdict(config)}
        mapped = config.mine_every > 0 and config.mined_from == "index"
        if world.first:
            open_run(out, {"index": start.digest(), **sources.about(), **about})
            lists = sources.answers(index, out, config, start.digest(), track=track)
            run_pairs(out / "pairs", sources, start, beginning, pool=mapped, lists=lists, track=track)
        world.wait()
        lists = sources.answers(index, out, config, start.digest())
        pairs = run_pairs(out / "pairs", sources, start, beginning, pool=mapped, lists=lists)
        towers = create(config.model, beginning, seed=config.seed).to(place)
        training = Training(out, sources, config, pairs, towers, world, lists)
        state = training.run(track)
        head = export(towers, beginning, {**about, "teacher": sources.teacher, "epoch": state["best_epoch"]})
        if world.first:
            head.save(out / "head")
        world.wait()
    return Trained(head, state["curve"], state["best_epoch"], state["best_mrr"], pairs.reading)


class Training:
    """The epochs of a run. What one of them draws depends on the seed and its number alone."""

    def __init__(
        self,
        out: Path,
        sources: Sources,
        config: TrainConfig,
        pairs: Pairs,
        towers: Towers,
        world: World,
        lists: Lists | None = None,
    ) -> None:
        self.out, self.config, self.pairs, self.towers, self.world = out, config, pairs, towers, world
        self.stages = [(stage, sources.weights(stage.sources)) for stage in config.curriculum]
        self.learning, valid = pairs.split(config.valid, config.seed, config.split)
        last = np.flatnonzero(self.stages[-1][1])
        self.valid = valid[np.isin(pairs.source[valid], last)]
        if not len(self.valid):
            raise BadInput("the last stage's sources have no question to validate on; give more pairs")
        self.device = towers.log_scale.device
        mapped = config.mine_every and config.mined_from == "index"
        self.pool = Texts.load(out / "pairs", POOL) if mapped else None
        self.source = Source(pairs, config, self.device, self.pool)
        served = Texts.load(out / "pairs", SERVED) if lists else None
        self.lessons = Lessons(lists, served, pairs, config, self.device) if lists and served else None
        self.learner = Learner(towers, config, world)

    def run(self, track: Track) -> dict[str, Any]:
        """All epochs that are still to come; leaves the best network in place."""
        state = self._resume() or self._first()
        while state["stage"] < len(self.stages):
            stage, weights = self.stages[state["stage"]]
            state["epoch"] += 1
            self._mine(state)
            self.learner.set_rate(stage.rate or self.config.rate)
            row = self._epoch(state["epoch"], weights, track)
            row |= {"stage": state["stage"] + 1, "mined": state["mined"], "mrr": self._judged()}
            if row["mrr"] > state["best_mrr"]:
                state |= {"best_epoch": state["epoch"], "best_mrr": row["mrr"], "best": copy_of(self.towers)}
            state["curve"] = [*state["curve"], row]
            if self._over(state, stage):
                state |= {"stage": state["stage"] + 1, "began": state["epoch"]}
                self.towers.load_state_dict(state["best"])  # what follows goes on from the best so far
            self._save(state)
        if self.world.first:
            write_curve(self.out, state["curve"])  # once more: what killed the last epoch may have come before
            with suppress(MissingExtra):
                draw_curve(state["curve"], state["best_epoch"], self.out / "curve.svg")
        return state

    def _over(self, state: dict[str, Any], stage: Stage) -> bool:
        """Whether a stage has had its epochs, or is not getting better."""
        since = state["epoch"] - max(state["best_epoch"], state["began"])
        return bool(state["epoch"] - state["began"] >= stage.epochs or since >= self.config.patience)

    def _epoch(self, epoch: int, weights: list[float], track: Track) -> dict[str, float]:
        """Every question as often as its source weighs; the mean loss and how fast."""
        draw, random = np.random.default_rng((self.config.seed, epoch)), seeded(self.device, self.config.seed, epoch)
        order = epoch_order(self.pairs.question, self.pairs.source, self.learning, weights, draw)
        self.towers.train()
        began, total, seen = time.perf_counter(), torch.zeros((), device=self.device), 0
        drawn = batches(self.pairs.question, order, self.config.batch)
        with torch.random.fork_rng():
            torch.manual_seed(random.initial_seed())  # of the networks' own dropout
            for rows in track(drawn, f"epoch {epoch}", total=-(-len(order) // self.config.batch), unit="batches"):
                lesson = self.lessons.lesson(rows, draw) if self.lessons else None
                total += self.learner.learn(self.source.batch(rows, draw), random, lesson) * len(rows)
                seen += len(rows)
        self.learner.settle()
        self.world.averaged([total])
        loss, seconds = float(total) / max(1, seen), time.perf_counter() - began
        return {"epoch": epoch, "loss": loss, "seconds": round(seconds, 3), "pairs_per_s": seen / seconds}

    def _judged(self) -> float:
        self.towers.eval()
        return self.world.agreed(validation_mrr(self.towers, self.source, self.pairs, self.valid))

    def _mine(self, state: dict[str, Any]) -> None:
        """Before every `mine_every` epochs, the first ones apart, look for hard negatives; else take those at hand."""
        epoch, every = state["epoch"], self.config.mine_every
        if every and epoch > 1 and (epoch - 1) % every == 0:
            state["mined"] = epoch
            if self.world.first:
                self.towers.eval()
                draw = np.random.default_rng((self.config.seed, epoch, 1))
                found = mine(self.towers, self.source, self.pairs, self.pool, self.learning, draw)
                write_array(mined_file(self.out, epoch), found)
            self.world.wait()
        if state["mined"]:
            path = mined_file(self.out, state["mined"])
            self.source.hard = np.load(path, mmap_mode="r", allow_pickle=False)

    def _first(self) -> dict[str, Any]:
        """Before the first epoch: what the network is worth untrained is the first to beat."""
        mrr = self._judged()
        state = {"epoch": 0, "stage": 0, "began": 0, "mined": 0, "curve": [{"epoch": 0, "mrr": mrr}]}
        return {**state, "best_epoch": 0, "best_mrr": mrr, "best": copy_of(self.towers)}

    def _save(self, state: dict[str, Any]) -> None:
        """The checkpoint, then the curve, which can be made of it; older minings are needed no more."""
        if self.world.first:
            save(self.out / CHECKPOINT, {**state, "towers": self.towers.state_dict(), "learner": self.learner.state()})
            write_curve(self.out, state["curve"])
            for path in self.out.glob("mined-*.npy"):
                if path != mined_file(self.out, state["mined"]):
                    path.unlink()
        self.world.wait()

    def _resume(self) -> dict[str, Any] | None:
        """Put network and optimisers where the checkpoint was; None where there is none. BadInput for a damaged one."""
        state = load(self.out / CHECKPOINT, self.device)
        if state is None:
            return None
        try:
            self.towers.load_state_dict(state.pop("towers"))
            self.learner.load(state.pop("learner"))
        except (KeyError, ValueError, RuntimeError) as error:
            raise damaged(self.out / CHECKPOINT, error) from error
        return state
