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
import os
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from ncs import __version__
from ncs.errors import BadInput, MissingExtra
from ncs.progress import Track, silent
from unif.answers import judged_lists, read_answers
from unif.checkpoint import copy_of, damaged, load, save
from unif.curves import draw as draw_curve
from unif.data import READING, Reading
from unif.fielded import Fielded, write
from unif.fielded_reading import read_rows
from unif.head import NAME
from unif.residual import Material, learn
from unif.run import CHECKPOINT, open_run, write_curve
from unif.train import Trained
from unif.translating_draw import code_of, dropped, epoch_batches, namesakes
from unif.translating_model import Vectors, WordByWord, beginning, exported
from unif.validation import AMONG
from unif.world import chosen

if TYPE_CHECKING:
    from ncs.index import Index
    from unif.data import Ids
    from unif.settings import TranslationConfig
    from unif.sources import Sources

UNDOCUMENTED = 0.5
"""Share of the pairs without a doc comment that the second part learns from: people search functions that have one."""
VALID = 5_000
"""Pairs at most that are validated on."""


def train(
    out: Path,
    sources: Sources,
    config: TranslationConfig,
    *,
    index: Index | None = None,
    device: str = "auto",
    track: Track = silent,
) -> Trained:
    """Train into the folder of a run; the same call goes on where a killed one was, bit by bit on one machine.

    index: whose lists are judged by the answers of `sources`, where it names any (unif.answers). The curve has an
    epoch a row, epoch 0 being the vectors before training. Raises BadInput for pairs that are none, and for a folder
    that holds something else.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise BadInput("a head that translates is trained by one process; start it without torchrun")
    about = {"version": __version__, "encoder": "translation", **sources.about(), **asdict(config)}
    open_run(out, about)
    pairs = pairs_of(out / "pairs", sources, track)
    training = Training(out, pairs, config, "cpu" if device == "mps" else device)  # mps knows no sparse gradients
    state = training.run(track)
    if index is not None and sources.answered and not state["lists"]:
        lists = judged_lists(index, read_answers(sources.answered, sources.unwanted), track=track)
        training.answered(state, Material.of(lists, index.words(), pairs.stems, np.flatnonzero(index.functions())))
    training.draw(state)
    told = json.loads(json.dumps(about)) | {"epoch": state["best_epoch"]}
    head = exported(training.vectors, training.words, pairs, config, told)
    head.save(out / NAME)
    return Trained(head, state["curve"], state["best_epoch"], state["best_mrr"], pairs.reading)


def pairs_of(folder: Path, sources: Sources, track: Track = silent) -> Fielded:
    """The pairs of a run: read now, or as they were read before."""
    if (folder / READING).is_file():
        return Fielded.load(folder)
    reading = Reading()
    return write(read_rows(sources.weighted, sources.unwanted, reading, track), folder, reading)


class Training:
    """Two parts of some epochs. What one of them draws depends on the seed and its number alone."""

    def __init__(self, out: Path, pairs: Fielded, config: TranslationConfig, device: str = "cpu") -> None:
        self.out, self.pairs, self.config, self.device = out, pairs, config, chosen(device)
        self.learning, valid = pairs.split(config.valid, config.seed)
        self.valid = np.random.default_rng((config.seed, 1)).permutation(valid)[:VALID]
        torch.manual_seed(config.seed)
        weights = torch.from_numpy(np.log(np.maximum(pairs.idf, 0.05))).float()
        self.vectors = Vectors(*beginning(pairs, self.learning, config), weights).to(self.device)
        self.words = WordByWord(self.vectors, config).to(self.device)
        self._optimise(0)

    def run(self, track: Track = silent) -> dict[str, Any]:
        """All epochs that are still to come; leaves both networks as good as they were."""
        state = self._resume() or self._first()
        while state["epoch"] < self.config.epochs + self.config.passes:
            second = state["epoch"] >= self.config.epochs
            if second and state["part"] == 0:
                self._second(state)
            state["epoch"] += 1
            row = self._epoch(state["epoch"], track) | {"stage": state["part"] + 1, "mrr": self._judged(state["part"])}
            if row["mrr"] >= state["best_mrr"]:
                state |= {"best_epoch": state["epoch"], "best_mrr": row["mrr"], "best": copy_of(self._network(state))}
            state["curve"] = [*state["curve"], row]
            self._save(state)
        if not state["lists"]:
            self._network(state).load_state_dict(state["best"])
        return state

    def answered(self, state: dict[str, Any], material: Material) -> None:
        """The rounds over judged lists, on the CPU; killed among them, a training goes on before the first."""
        self.vectors, self.words, self.device = self.vectors.cpu(), self.words.cpu(), torch.device("cpu")
        draw = np.random.default_rng((self.config.seed, state["epoch"], 1))
        for row in learn((self.vectors, self.words), material, self.config.rounds, draw):
            state["epoch"] += 1
            row |= {"epoch": state["epoch"], "stage": 3, "mrr": self._judged(1)}
            state |= {"curve": [*state["curve"], row], "best_epoch": state["epoch"], "best_mrr": row["mrr"]}
        state["lists"] = self.config.rounds
        self._save(state)

    def draw(self, state: dict[str, Any]) -> None:
        """The curve, as lines and as a picture."""
        write_curve(self.out, state["curve"])
        with suppress(MissingExtra):
            draw_curve(state["curve"], state["best_epoch"], self.out / "curve.svg")

    def _network(self, state: dict[str, Any]) -> nn.Module:
        return self.words if state["part"] else self.vectors

    def _first(self) -> dict[str, Any]:
        mrr = self._judged(0)
        state = {"part": 0, "epoch": 0, "lists": 0, "curve": [{"epoch": 0, "mrr": mrr}]}
        return {**state, "best_epoch": 0, "best_mrr": mrr, "best": copy_of(self.vectors)}

    def _second(self, state: dict[str, Any]) -> None:
        """The best vectors stay as they are; the words go on from them, and have both added to beat."""
        self.vectors.load_state_dict(state["best"])
        self.words = WordByWord(self.vectors, self.config).to(self.device)
        self._optimise(1)
        state |= {"part": 1, "best_mrr": self._judged(1), "best_epoch": state["epoch"], "best": copy_of(self.words)}

    def _optimise(self, part: int) -> None:
        """Sparse rows of the tables, and the few numbers beside them."""
        network = self.words if part else self.vectors
        tables = [each.weight for each in network.modules() if isinstance(each, nn.Embedding)]
        others = [each for each in network.parameters() if not any(each is table for table in tables)]
        rate = self.config.rate / 3 if part else self.config.rate
        self.optimisers = [torch.optim.SparseAdam(tables, lr=rate), torch.optim.Adam(others, lr=0.01)]

    def _epoch(self, epoch: int, track: Track) -> dict[str, float]:
        """Over the pairs, each as often as its file weighs; the mean loss and how fast."""
        pairs, config, second = self.pairs, self.config, epoch > self.config.epochs
        network: nn.Module = self.words if second else self.vectors
        size, share = (config.batch // 2, UNDOCUMENTED) if second else (config.batch, 1.0)
        draw = np.random.default_rng((config.seed, epoch))
        began, total, steps = time.perf_counter(), torch.zeros((), device=self.device), 0
        drawn = epoch_batches(pairs, self.learning, size, config.alike, share, draw)
        for rows in track(drawn, f"epoch {epoch}", unit="batches"):
            query = dropped(pairs.query[rows], config.query_dropout, draw)
            code = dropped(code_of(pairs, rows, draw), config.word_dropout, draw)
            same = torch.from_numpy(namesakes(pairs.name[rows])).to(self.device)
            loss = F.cross_entropy(
                network(query, code).masked_fill(same, -1e9), torch.arange(len(rows), device=self.device)
            )
            for optimiser in self.optimisers:
                optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            for optimiser in self.optimisers:
                optimiser.step()
            total, steps = total + loss.detach(), steps + 1
        mean, seconds = float(total) / max(1, steps), time.perf_counter() - began
        return {"epoch": epoch, "loss": mean, "seconds": round(seconds, 3), "pairs_per_s": steps * size / seconds}

    @torch.no_grad()
    def _judged(self, part: int) -> float:
        """Mean reciprocal rank of a question's function among AMONG, without its doc comment's name where it has one.

        In the second part both standings are added, as they are served (ncs.search.signals.head).
        """
        pairs, ranks = self.pairs, []
        for rows in np.array_split(self.valid, max(1, round(len(self.valid) / AMONG))):
            query, code = pairs.query[rows], code_of(pairs, rows, np.random.default_rng((self.config.seed, 2)))
            scores = _standing(self.vectors(query, code))
            scores = scores + _standing(self.words(query, code)) if part else scores
            same = namesakes(pairs.name[rows]) | _one_question(pairs, rows)
            above = (scores >= scores.diagonal()[:, None]) & ~torch.from_numpy(same).to(self.device)
            ranks.append(1 / above.sum(dim=1).clamp(min=1).double())
        return float(torch.cat(ranks).mean())

    def _save(self, state: dict[str, Any]) -> None:
        networks = {"vectors": self.vectors.state_dict(), "words": self.words.state_dict()}
        optimisers = [each.state_dict() for each in self.optimisers]
        save(self.out / CHECKPOINT, {**state, **networks, "optimisers": optimisers})
        write_curve(self.out, state["curve"])

    def _resume(self) -> dict[str, Any] | None:
        """Put all where the checkpoint was; None where there is none. Raises BadInput for a damaged one."""
        state = load(self.out / CHECKPOINT, self.device)
        if state is None:
            return None
        try:
            self.vectors.load_state_dict(state.pop("vectors"))
            self.words.load_state_dict(state.pop("words"))
            self._optimise(state["part"])
            for optimiser, told in zip(self.optimisers, state.pop("optimisers"), strict=True):
                optimiser.load_state_dict(told)
        except (KeyError, ValueError, RuntimeError) as error:
            raise damaged(self.out / CHECKPOINT, error) from error
        return state


def _standing(scores: Tensor) -> Tensor:
    """Scores [a, b] of each question in standard deviations of all."""
    return (scores - scores.mean(dim=1, keepdim=True)) / scores.std(dim=1, correction=0, keepdim=True).clamp(min=1e-9)


def _one_question(pairs: Fielded, rows: Ids) -> Any:
    """Which of these pairs ask the same, [n, n], a pair and itself apart."""
    question = np.asarray(pairs.question[rows])
    same = question[:, None] == question
    np.fill_diagonal(same, False)
    return same
