"""CodeSearchNet's encoders trained on its corpus for the same time each, and what each makes of the held-out pairs.

An encoder learns from the partition train, as long as it is told: in minutes of its own processor time, so that a busy
machine shortens nobody's lesson, or in epochs, whichever is over first. Every PARTS-th of that its MRR on a twentieth
of train's repositories is looked at, and the best network is the one that is kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ncs.errors import BadInput
from ncs.learn.heads import NAME, Head
from ncs.learn.tokenization import load_tokenizer
from unif.config import Encoder, TrainConfig
from unif.data import STATS, Pair, Pairs, ReadStats, batches, one_per_question, write_pairs
from unif.networks import Towers, create, export
from unif.sources import pairs_of_file
from unif.step import Batches, Learner, World, seeded
from unif.tokenization import DIM, Inputs, learn_bpe, learn_words
from unif.training import validation_mrr

if TYPE_CHECKING:
    from unif.data import Ids

PARTS = 6
"""How often a network is judged in its time."""
LESSON = "lesson.json"


@dataclass(frozen=True, slots=True)
class Lesson:
    """What an encoder got and what came of it; `curve`: [minutes, pairs, validation MRR], the best of it kept."""

    settings: dict[str, Any]
    pairs: int
    seen: int
    minutes: float
    epochs: float
    best: float
    curve: tuple[tuple[float, int, float], ...]

    @classmethod
    def load(cls, folder: Path) -> Lesson | None:
        """Of an encoder that was trained into this folder before; None where none was to its end."""
        if not (folder / LESSON).is_file():
            return None
        told = json.loads((folder / LESSON).read_bytes())
        return cls(**{**told, "curve": tuple(map(tuple, told["curve"]))})


def partition(corpus: Path, language: str, name: str) -> list[Path]:
    """The files of a partition; raises BadInput where there are none."""
    files = sorted((corpus / language / "final" / "jsonl" / name).glob("*.jsonl.gz"))
    if not files:
        raise BadInput(f"{corpus} has no pairs of {language} to {name} on; make it by: ncs corpus codesearchnet")
    return files


def read(files: Sequence[Path], out: Path) -> tuple[Inputs, Pairs]:
    """Byte pairs and sub-tokens learnt from the files, and their pairs in these, in `out`; what is there is kept."""
    told = [[path.name, path.stat().st_size] for path in files]
    marks = out / "files.json"
    if marks.is_file() and json.loads(marks.read_bytes()) != told:
        raise BadInput(f"{out} was made of other files; name another folder")
    if not (out / STATS).is_file():
        out.mkdir(parents=True, exist_ok=True)
        marks.write_text(json.dumps(told) + "\n", encoding="utf-8")
        kept = list(_pairs(files))
        learn_bpe(pair.query for pair in kept).save(_made(out / "query"))
        learn_words(pair.code for pair in kept).save(_made(out / "code"))
        query, code = load_tokenizer(out / "query"), load_tokenizer(out / "code")
        write_pairs(kept, out, ReadStats(), query.ids, code.ids)
    query, code = load_tokenizer(out / "query"), load_tokenizer(out / "code")
    empty = np.zeros((0, DIM), np.float32)
    return Inputs(query, code, "source", empty), Pairs.load(out)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _pairs(files: Sequence[Path]) -> Iterator[Pair]:
    for path in files:
        yield from pairs_of_file(path, ReadStats(), reads="source")


def config_of(encoder: Encoder, **numbers: Any) -> TrainConfig:
    """Of an encoder with CodeSearchNet's pooling; numbers: epochs, batch, rate, code_words ..."""
    return TrainConfig(split="repository", encoder=encoder, **numbers)


def taught(config: TrainConfig, beginning: Inputs, pairs: Pairs, minutes: float, out: Path) -> Lesson:
    """Train one encoder and write its head and lesson into `out`; one that is there is not trained again."""
    settings = {**asdict(config), "stages": [], "asked_minutes": minutes}
    if (known := Lesson.load(out)) is not None:
        if known.settings != settings:
            raise BadInput(f"{out} was trained otherwise; name another folder for --out")
        return known
    learning, valid = pairs.split(config.valid, config.seed, config.split)
    towers = create(config, beginning)
    towers.query.longest, towers.code.longest = config.query_words, config.code_words  # served as it was learnt
    cpu = torch.device("cpu")
    source, learner = Batches(pairs, config, cpu), Learner(towers, config, World())
    curve, best, seen, used = [(0.0, 0, judged(towers, source, pairs, valid))], copied(towers), 0, 0.0
    drawn, random = endless(pairs, learning, config), seeded(cpu, config.seed)
    epoch = len(one_per_question(pairs.question, learning, np.random.default_rng(0)))
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        for part in range(1, PARTS + 1):
            towers.train()
            while max(used / 60 / minutes, seen / epoch / config.epochs) < part / PARTS:
                began = time.process_time()
                rows, draw = next(drawn)
                learner.learn(source.batch(rows, draw), random)
                used, seen = used + time.process_time() - began, seen + len(rows)
            curve.append((round(used / 60, 3), seen, judged(towers, source, pairs, valid)))
            if curve[-1][2] > max(mrr for _, _, mrr in curve[:-1]):
                best = copied(towers)
    towers.load_state_dict(best)
    _head(towers, beginning, config).save(out / NAME)
    top = max(mrr for _, _, mrr in curve)
    lesson = Lesson(settings, len(learning), seen, round(used / 60, 3), round(seen / epoch, 3), top, tuple(curve))
    (out / LESSON).write_text(json.dumps(asdict(lesson)) + "\n", encoding="utf-8")
    return lesson


def endless(pairs: Pairs, learning: Ids, config: TrainConfig) -> Iterator[tuple[Ids, np.random.Generator]]:
    """Batches of an epoch after the other, each in an order of its own, with what draws in it."""
    epoch = 0
    while True:
        epoch += 1
        draw = np.random.default_rng((config.seed, epoch))
        for rows in batches(pairs.question, one_per_question(pairs.question, learning, draw), config.batch):
            yield rows, draw


def judged(towers: Towers, source: Batches, pairs: Pairs, valid: Ids) -> float:
    """The validation MRR, on at most a thousand questions."""
    towers.eval()
    return validation_mrr(towers, source, pairs, np.random.default_rng(0).permutation(valid)[:1_000])


def copied(towers: Towers) -> dict[str, torch.Tensor]:
    """All that was learnt so far."""
    return {name: tensor.detach().clone() for name, tensor in towers.state_dict().items()}


def _head(towers: Towers, beginning: Inputs, config: TrainConfig) -> Head:
    return export(towers, beginning, asdict(config))
