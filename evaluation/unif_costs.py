"""What a whole training takes: seconds and validation by precision, memory by pairs; what encoding takes after it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.machine import peak_memory
from evaluation.unif_made import ROUNDS, made, network, say
from unif.drawing import batches, epoch_order
from unif.settings import ModelConfig, TrainConfig

if TYPE_CHECKING:
    import torch


def trainings(device: torch.device, *, small: bool) -> list[dict[str, Any]]:
    """float32 against half precision: validation MRR by epoch, seconds, peak memory. On CUDA the published size."""
    import torch

    from unif.batches import Source
    from unif.step import Learner, seeded
    from unif.validation import validation_mrr
    from unif.world import World

    large = device.type == "cuda" and not small
    n, epochs, words, size = (451_000, 20, 73_000, 4_096) if large else (4_000, 4, 2_000, 256)
    rows = []
    say(f"\n{n:,} pairs x {epochs} epochs, batches of {size:,}, {words:,} words")
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as folder:
        pairs = made(n, words, Path(folder))
        learning, valid = pairs.split(0.05, 0)
        for kind in ("float32", "bfloat16"):
            config = TrainConfig(batch=size, precision=kind, rate=3e-3)
            towers = network(words, device)
            source, learner = Source(pairs, config, device), Learner(towers, config, World())
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(device)
            began, curve = time.perf_counter(), []
            for epoch in range(1, epochs + 1):
                draw, random = np.random.default_rng(epoch), seeded(device, epoch)
                order = epoch_order(pairs.question, pairs.source, learning, [1], draw)
                towers.train()
                for some in batches(pairs.question, order, size):
                    learner.learn(source.batch(some), random)
                towers.eval()
                curve.append(validation_mrr(towers, source, pairs, valid))
            seconds = time.perf_counter() - began
            peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else peak_memory()
            rows.append({"precision": kind, "pairs": n, "epochs": epochs, "words": words, "batch": size,
                         "seconds": seconds, "peak_bytes": peak, "mrr": curve})  # fmt: skip
            say(f"{kind}: {seconds:.1f} s with validation, MRR {curve[-1]:.4f}, peak memory {peak / 2**20:,.0f} MiB")
    return rows


def memory(sizes: Sequence[int]) -> dict[str, Any]:
    """Peak memory of reading, splitting and an epoch's drawing, a process each; what a further pair takes of it."""
    found = []
    for pairs in sizes:
        command = [sys.executable, "-m", "evaluation.bench_unif", "--memory", str(pairs)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    (small, large) = found[0], found[-1]
    each = (large["peak_bytes"] - small["peak_bytes"]) / (large["pairs"] - small["pairs"])
    ten = large["peak_bytes"] + each * (10_000_000 - large["pairs"])
    for row in found:
        say(f"\n{row['pairs']:,} pairs, {row['disk_bytes'] / 2**20:,.0f} MiB on disk: peak memory "
             f"{row['peak_bytes'] / 2**20:,.0f} MiB in {row['seconds']:.0f} s")  # fmt: skip
    say(f"{each:.0f} bytes for every further pair: 10,000,000 would take {ten / 2**30:.2f} GiB (extrapolated)")
    return {"measured": found, "bytes_a_pair": each, "ten_million_extrapolated": ten}


def reading(count: int) -> dict[str, Any]:
    """In a process of its own: prepare pairs, split them, draw an epoch, pad its first and last batches."""
    from unif.data import Texts

    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as folder:
        began = time.perf_counter()
        pairs = made(count, 50_000, Path(folder))
        learning, _ = pairs.split(0.05, 0)
        order = epoch_order(pairs.question, pairs.source, learning, [1], np.random.default_rng(1))
        texts: Texts = pairs.code
        for at, rows in enumerate(batches(pairs.question, order, 1024)):
            if at % 10 == 0:
                texts.cut(rows, 200)
        disk = sum(path.stat().st_size for path in Path(folder).iterdir())
    seconds = time.perf_counter() - began
    return {"pairs": count, "peak_bytes": peak_memory(), "disk_bytes": disk, "seconds": seconds}


def encoding(folder: Path) -> dict[str, object]:
    """Functions of an index a minute, from the exported arrays of a head over its words."""
    from ncs.index import Index
    from unif.beginning import begin
    from unif.encoding_speed import measure as encode
    from unif.encoding_speed import report as reported
    from unif.model import create, export
    from unif.run import Start

    with Index.load(folder) as index:
        beginning = begin(ModelConfig(), Start.of(index), lambda: ())
        found = max((encode(index, export(create(ModelConfig(), beginning), beginning, {})) for _ in range(ROUNDS)),
                    key=lambda speed: speed.per_minute)  # fmt: skip
    say(f"\nencoding: {found.functions:,} functions, {found.per_minute:,.0f} a minute on {found.cores} cores")
    return reported(found)
