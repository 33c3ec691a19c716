"""What training a head costs on this device: floors, pairs a second beside plain Adam, precisions, memory, encoding.

    bin/benchmark unif [--device cpu|cuda] [--index INDEX] [--json FILE] [--small]

The pairs are made here: words as frequent as words are (Zipf), a question's words each with a partner in its code, so
that there is something to learn. All loops run in this process in turns; of ROUNDS the fastest counts, so that
neighbours on the machine do not. On CUDA the whole training of the paper's size, 451,000 pairs x 20 epochs, is run.
"""

from __future__ import annotations

import os

from ncs.mains import ending

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: on a busy machine waiting must not spin

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.machine import commit, machine, peak_memory
from evaluation.report import aligned
from ncs.errors import MissingExtra
from ncs.vocabulary import Vocabulary
from unif.beginning import Beginning
from unif.data import Pair, Pairs, Reading, prepare
from unif.drawing import batches, epoch_order
from unif.floor import dense, floor, gathered, told
from unif.settings import ModelConfig, TrainConfig
from unif.tokenization import Words

if TYPE_CHECKING:
    import torch

    from unif.batches import Batch
    from unif.model import Towers

DIM, QUERY, CODE = 100, 8, 35
"""Numbers a word, and words of a question and of a code in the mean (those of the Java pairs of Stack Overflow)."""
PUBLISHED = 451_000 * 20
"""Pairs of the published training, 20 epochs."""
ROUNDS = 5
SECTIONS = ("speed", "training", "memory", "encoding")
OURS = "ours, Adam"
MEMORY = (500_000, 2_000_000)
"""Pairs whose peak memory is measured."""


@ending("unif")
def main(argv: Sequence[str] | None = None) -> int:
    """Print everything; --json also writes it."""
    parser = argparse.ArgumentParser(prog="benchmark unif", description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--index", type=Path, help="its functions are encoded, by a head of its words")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", action="append", choices=SECTIONS, help="the others stay in the JSON as they are")
    parser.add_argument("--threads", type=int, help="of torch on a CPU (default: its own choice)")
    parser.add_argument("--small", action="store_true", help="everything in a minute, figures for nobody")
    parser.add_argument("--memory", type=int, metavar="PAIRS", help=argparse.SUPPRESS)  # a process of its own
    args = parser.parse_args(argv)
    if args.memory:
        sys.stdout.write(json.dumps(_reading(args.memory)) + "\n")
        return 0
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra("training needs torch: pip install 'neural-code-search[unif]'") from None
    if args.threads:
        torch.set_num_threads(args.threads)
    report = measure(args.device, args.index, args.only or SECTIONS, small=args.small)
    if args.json:
        known = json.loads(args.json.read_bytes()) if args.only and args.json.is_file() else {}
        args.json.write_text(json.dumps({**known, **report}, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(device: str, index: Path | None, only: Sequence[str], *, small: bool = False) -> dict[str, Any]:
    """Everything, printed as it comes."""
    import torch

    from unif.world import chosen

    place = chosen(device)
    name = torch.cuda.get_device_name(place) if place.type == "cuda" else str(machine().get("processor", "cpu"))
    peak = _peak(place)
    about = {"commit": commit(), "load": os.getloadavg()[0], "threads": torch.get_num_threads(), **peak}
    _say(f"{name}, {about['threads']} threads, load {about['load']:.1f}: copies {peak['gb_s']:.1f} GB/s, "
         f"multiplies {peak['gflop_s']:.0f} GFLOP/s")  # fmt: skip
    settings = [(2_000, 64)] if small else [(18_000, 256), (73_000, 256), (73_000, 1024)]
    if place.type == "cuda" and not small:
        settings += [(73_000, 4096), (500_000, 4096)]
    sections: dict[str, Callable[[], object]] = {
        "speed": lambda: [_speed(place, words, batch, peak, small=small) for words, batch in settings],
        "training": lambda: _trainings(place, small=small),
        "memory": lambda: _memory(MEMORY if not small else (2_000, 8_000)),
        "encoding": lambda: _encoding(index) if index else None,
    }
    found = {section: {**about, "found": sections[section]()} for section in only}
    return {"machine": machine(), "torch": torch.__version__, "device": {"kind": place.type, "name": name}, **found}


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _peak(device: torch.device) -> dict[str, float]:
    """What this device reaches now: bytes copied (read and written) and float32 operations multiplied, a second."""
    import torch

    wide = torch.empty(2**26 if device.type == "cuda" else 2**24, device=device).fill_(1)
    other, square = torch.empty_like(wide), torch.rand(2048, 2048, device=device)
    copied = _fastest(lambda: other.copy_(wide), device)
    multiplied = _fastest(lambda: torch.mm(square, square), device)
    return {"gb_s": 2 * wide.nbytes / copied / 1e9, "gflop_s": 2 * 2048**3 / multiplied / 1e9}


def _fastest(work: Callable[[], object], device: torch.device) -> float:
    import torch

    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - began)
    return best


def made(pairs: int, words: int, folder: Path, seed: int = 0) -> Pairs:
    """Pairs of words by Zipf; half of a question's words have their partner in its code."""
    vocabulary = [f"w{i:07}" for i in range(words)]
    tokens = Words(Vocabulary.of(vocabulary))
    return prepare(_spoken(pairs, vocabulary, seed), folder, Reading(), tokens.ids, tokens.ids)


def _spoken(pairs: int, vocabulary: list[str], seed: int) -> Iterator[Pair]:
    draw, half = np.random.default_rng(seed), len(vocabulary) // 2
    shares = np.cumsum(1 / np.arange(1, half + 1))
    for start in range(0, pairs, 10_000):
        n = min(10_000, pairs - start)
        lengths = np.minimum(draw.lognormal(np.log(CODE) - 0.25, 0.7, n).astype(int) + 2, 200)
        for at in range(n):
            said = np.searchsorted(shares, draw.random(QUERY) * shares[-1])
            noise = np.searchsorted(shares, draw.random(max(1, lengths[at] - QUERY // 2)) * shares[-1])
            code = [*(half + said[: QUERY // 2]).tolist(), *noise.tolist()]
            yield Pair([vocabulary[i] for i in said.tolist()], [vocabulary[i] for i in code], [str(start + at)])


def _network(words: int, device: torch.device) -> Towers:
    from unif.model import create

    tokens = Words(Vocabulary.of(f"w{i:07}" for i in range(words)))
    vectors = np.random.default_rng(0).normal(scale=0.1, size=(words, DIM)).astype(np.float32)
    return create(ModelConfig(), Beginning(tokens, tokens, "fields", vectors, np.zeros(words, np.float32))).to(device)


def _speed(device: torch.device, words: int, size: int, peak: dict[str, Any], *, small: bool) -> dict[str, Any]:
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
            learner, random = Learner(_network(words, device), replace(config, **options), World()), seeded(device, 0)

            def run() -> None:
                for rows in drawn:
                    learner.learn(source.batch(rows), random)

            return run

        loops = {
            "plain Adam, word vectors [n, l, d]": _plain(_network(words, device), source.batch, drawn, _textbook),
            "plain Adam, our bags": _plain(_network(words, device), source.batch, drawn, _direct),
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
    _say(f"\n{words:,} words x {DIM}, batches of {size:,}; floor of a step:\n{told(parts)}")
    _say(f"without a cache {row['gathered_bytes']:,} B more; dense Adam over both tables {row['dense_adam_bytes']:,} B")
    lines = [
        [name, f"{speed:,.0f}", f"{best / speed:.2f}", f"{spent[OURS] / spent[name]:.2f}",
         f"{speed * seconds / size:.1%}", f"{speed / row['memory_floor_pairs_per_s']:.1%}"]
        for name, speed in speeds.items()
    ]  # fmt: skip
    _say(aligned(["loop", "pairs/s", "ours to it", "by processor time", "of the floor", "of memory's"], lines))
    _say(f"451,000 pairs x 20 epochs at that speed: {PUBLISHED / best:,.0f} s")
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


def _plain(
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


def _direct(tower: Any, ids: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = tower(ids)
    return found


def _textbook(tower: Any, ids: torch.Tensor) -> torch.Tensor:
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


def _trainings(device: torch.device, *, small: bool) -> list[dict[str, Any]]:
    """float32 against half precision: validation MRR by epoch, seconds, peak memory. On CUDA the published size."""
    import torch

    from unif.batches import Source
    from unif.step import Learner, seeded
    from unif.validation import validation_mrr
    from unif.world import World

    large = device.type == "cuda" and not small
    n, epochs, words, size = (451_000, 20, 73_000, 4_096) if large else (4_000, 4, 2_000, 256)
    rows = []
    _say(f"\n{n:,} pairs x {epochs} epochs, batches of {size:,}, {words:,} words")
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as folder:
        pairs = made(n, words, Path(folder))
        learning, valid = pairs.split(0.05, 0)
        for kind in ("float32", "bfloat16"):
            config = TrainConfig(batch=size, precision=kind, rate=3e-3)
            network = _network(words, device)
            source, learner = Source(pairs, config, device), Learner(network, config, World())
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(device)
            began, curve = time.perf_counter(), []
            for epoch in range(1, epochs + 1):
                draw, random = np.random.default_rng(epoch), seeded(device, epoch)
                order = epoch_order(pairs.question, pairs.source, learning, [1], draw)
                network.train()
                for some in batches(pairs.question, order, size):
                    learner.learn(source.batch(some), random)
                network.eval()
                curve.append(validation_mrr(network, source, pairs, valid))
            seconds = time.perf_counter() - began
            peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else peak_memory()
            rows.append({"precision": kind, "pairs": n, "epochs": epochs, "words": words, "batch": size,
                         "seconds": seconds, "peak_bytes": peak, "mrr": curve})  # fmt: skip
            _say(f"{kind}: {seconds:.1f} s with validation, MRR {curve[-1]:.4f}, peak memory {peak / 2**20:,.0f} MiB")
    return rows


def _memory(sizes: Sequence[int]) -> dict[str, Any]:
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
        _say(f"\n{row['pairs']:,} pairs, {row['disk_bytes'] / 2**20:,.0f} MiB on disk: peak memory "
             f"{row['peak_bytes'] / 2**20:,.0f} MiB in {row['seconds']:.0f} s")  # fmt: skip
    _say(f"{each:.0f} bytes for every further pair: 10,000,000 would take {ten / 2**30:.2f} GiB (extrapolated)")
    return {"measured": found, "bytes_a_pair": each, "ten_million_extrapolated": ten}


def _reading(count: int) -> dict[str, Any]:
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


def _encoding(folder: Path) -> dict[str, object]:
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
    _say(f"\nencoding: {found.functions:,} functions, {found.per_minute:,.0f} a minute on {found.cores} cores")
    return reported(found)


if __name__ == "__main__":
    sys.exit(main())
