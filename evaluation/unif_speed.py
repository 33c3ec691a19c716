"""Pairs a second of training loops over the same batches, in turns, beside the floors of a step."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.report import aligned
from evaluation.unif_made import DIM, ROUNDS, made, network, say
from unif.floor import dense, floor, gathered, told
from unif.settings import TrainConfig

if TYPE_CHECKING:
    import torch

    from unif.batches import Batch
    from unif.model import Towers

PUBLISHED = 451_000 * 20
"""Pairs of the published training, 20 epochs."""
OURS = "ours, Adam"


def speed(device: torch.device, words: int, size: int, peak: dict[str, Any], *, small: bool) -> dict[str, Any]:
    """Pairs a second of plain Adam and of our loops over the same batches, from their ids on; and the floors."""
    from unif.batches import Source
    from unif.step import Learner, seeded
    from unif.world import World

    count = 4 if small else max(8, 6_000 // size) if device.type == "cpu" else 50
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as folder:
        pairs = made(count * size, words, Path(folder))
        config = TrainConfig(batch=size, precision="float32")
        source = Source(pairs, config, device)
        drawn = [np.arange(i * size, (i + 1) * size) for i in range(count)]
        given = [source.batch(rows) for rows in drawn]

        def ours(**options: Any) -> Callable[[], None]:
            learner, random = Learner(network(words, device), replace(config, **options), World()), seeded(device, 0)

            def run() -> None:
                for rows in drawn:
                    learner.learn(source.batch(rows), random)

            return run

        loops = {
            "plain Adam, word vectors [n, l, d]": plain(network(words, device), source.batch, drawn, textbook),
            "plain Adam, our bags": plain(network(words, device), source.batch, drawn, direct),
            OURS: ours(),
            "ours, Adagrad a row": ours(optimiser="adagrad"),
            "ours, bfloat16": ours(precision="bfloat16"),
            "ours, in 4 parts": ours(accumulate=4),
        }
        if device.type == "cuda" and not small:  # on CPU it takes a minute and gains nothing (DESIGN.md)
            loops["ours, compiled"] = ours(compile=True)
        speeds, spent = _in_turns(loops, device, count * size)
    parts = _floor(given, size)
    whole = sum(part.bytes for part in parts), sum(part.operations for part in parts)
    seconds = max(whole[0] / peak["gb_s"], whole[1] / peak["gflop_s"]) / 1e9
    best = speeds[OURS]
    row = {
        "words": words, "batch": size, "dim": DIM, "pairs_per_s": speeds,
        "pairs_per_processor_s": spent, "floor_bytes": whole[0],
        "floor_operations": whole[1], "dense_adam_bytes": dense(DIM, (words + 1, words + 1)),
        "gathered_bytes": gathered(DIM, _counts(given)[0]), "floor_pairs_per_s": size / seconds,
        "memory_floor_pairs_per_s": size * peak["gb_s"] * 1e9 / whole[0],
        "ours_to_plain": {name: best / speeds[name] for name in loops if name.startswith("plain")},
        "ours_to_plain_processor": {name: spent[OURS] / spent[name] for name in loops if name.startswith("plain")},
        "published_training_s": PUBLISHED / best,
    }  # fmt: skip
    say(f"\n{words:,} words x {DIM}, batches of {size:,}; floor of a step:\n{told(parts)}")
    say(f"without a cache {row['gathered_bytes']:,} B more; dense Adam over both tables {row['dense_adam_bytes']:,} B")
    lines = [
        [name, f"{speed:,.0f}", f"{best / speed:.2f}", f"{spent[OURS] / spent[name]:.2f}",
         f"{speed * seconds / size:.1%}", f"{speed / row['memory_floor_pairs_per_s']:.1%}"]
        for name, speed in speeds.items()
    ]  # fmt: skip
    say(aligned(["loop", "pairs/s", "ours to it", "by processor time", "of the floor", "of memory's"], lines))
    say(f"451,000 pairs x 20 epochs at that speed: {PUBLISHED / best:,.0f} s")
    return row


def _in_turns(
    loops: dict[str, Callable[[], None]], device: torch.device, pairs: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Pairs a second, of the clock and of processors, of each loop's fastest round but the first; they take turns."""
    import torch

    best = {name: (float("inf"), float("inf")) for name in loops}
    for turn in range(ROUNDS + 1):
        for name, run in loops.items():
            began, spent = time.perf_counter(), time.process_time()
            run()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            took = time.perf_counter() - began, time.process_time() - spent
            if turn:
                best[name] = min(best[name][0], took[0]), min(best[name][1], took[1])
    clock, processor = ({name: pairs / seconds[at] for name, seconds in best.items()} for at in (0, 1))
    return clock, processor


def plain(
    network: Towers, batch: Callable[[Any], Batch], drawn: list[Any], encode: Callable[..., torch.Tensor]
) -> Callable[[], None]:
    """The loop that everybody writes first: all parameters, dense gradients, Adam."""
    import torch
    from torch.nn import functional as F  # noqa: N812

    adam = torch.optim.Adam(network.parameters(), lr=1e-3)

    def run() -> None:
        for rows in drawn:
            given = batch(rows)
            scores = network.scale * encode(network.query, given.query) @ encode(network.code, given.code).T
            loss = F.cross_entropy(scores, torch.arange(len(rows), device=scores.device))
            adam.zero_grad()
            torch.autograd.backward(loss)
            adam.step()

    return run


def direct(tower: Any, ids: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = tower(ids)
    return found


def textbook(tower: Any, ids: torch.Tensor) -> torch.Tensor:
    """The same side as the paper writes it: every word's vector, its weight, their sum."""
    from torch.nn import functional as F  # noqa: N812

    vectors = tower.table(ids)  # [n, l, d]
    weights = tower.weights(ids, tower.table.weight).unsqueeze(-1)  # [n, l, 1]
    return F.normalize((weights * vectors).sum(dim=1), dim=1)


def _counts(given: list[Batch]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Words of a batch's questions and codes, and distinct ones, in the mean."""
    import torch

    sides = [[batch.query for batch in given], [batch.code for batch in given]]
    words = [int(np.mean([int((ids > 0).sum()) for ids in side])) for side in sides]
    rows = [int(np.mean([len(torch.unique(ids[ids > 0])) for ids in side])) for side in sides]
    return (words[0], words[1]), (rows[0], rows[1])


def _floor(given: list[Batch], size: int) -> Any:
    return floor(size, DIM, *_counts(given))
