"""What training a head costs on this device: floors, pairs a second beside plain Adam, precisions, memory, encoding.

    bin/benchmark unif [--device cpu|cuda] [--index INDEX] [--json FILE] [--small]

The pairs are made here: words as frequent as words are (Zipf), a question's words each with a partner in its code, so
that there is something to learn. All loops run in this process in turns; of ROUNDS the fastest counts, so that
neighbours on the machine do not. On CUDA the whole training of the paper's size, 451,000 pairs x 20 epochs, is run.
"""

from __future__ import annotations

import os

from ncs.exit_status import ending

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: on a busy machine waiting must not spin

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.machine import commit, machine
from evaluation.unif_costs import encoding, memory, reading, trainings
from evaluation.unif_made import ROUNDS, say
from evaluation.unif_speed import speed
from ncs.errors import MissingExtra

if TYPE_CHECKING:
    import torch

SECTIONS = ("speed", "training", "memory", "encoding")
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
        sys.stdout.write(json.dumps(reading(args.memory)) + "\n")
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
    say(f"{name}, {about['threads']} threads, load {about['load']:.1f}: copies {peak['gb_s']:.1f} GB/s, "
         f"multiplies {peak['gflop_s']:.0f} GFLOP/s")  # fmt: skip
    settings = [(2_000, 64)] if small else [(18_000, 256), (73_000, 256), (73_000, 1024)]
    if place.type == "cuda" and not small:
        settings += [(73_000, 4096), (500_000, 4096)]
    sections: dict[str, Callable[[], object]] = {
        "speed": lambda: [speed(place, words, batch, peak, small=small) for words, batch in settings],
        "training": lambda: trainings(place, small=small),
        "memory": lambda: memory(MEMORY if not small else (2_000, 8_000)),
        "encoding": lambda: encoding(index) if index else None,
    }
    found = {section: {**about, "found": sections[section]()} for section in only}
    return {"machine": machine(), "torch": torch.__version__, "device": {"kind": place.type, "name": name}, **found}


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


if __name__ == "__main__":
    sys.exit(main())
