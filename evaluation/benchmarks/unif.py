"""Training a learned head: pairs per second and validation MRR by variant of the training, then encoding all functions.

    bin/benchmark unif INDEX [--device cpu] [--epochs 3] [--batch 256] [--json FILE]

Every variant is a run of `ncs train unif` on the comments and names of INDEX; of its epochs the fastest counts. The
head of the first one then encodes all functions of INDEX, from plain arrays, without torch.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.benchmarks.common import about, run_command, write_json
from evaluation.reports import markdown_table
from ncs.exit_status import main_program
from ncs.index import Index

VARIANTS: Mapping[str, Sequence[str]] = {
    "softmax": (),
    "softmax, bfloat16": ("--precision", "bfloat16"),
    "margin": ("--loss", "margin"),
}
"""Name -> options of `ncs train unif`."""


@main_program("unif")
def main(argv: Sequence[str] | None = None) -> int:
    """Print a row per variant; --json also writes them."""
    parser = argparse.ArgumentParser(prog="benchmark unif", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="repeatable (default: all)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    options = ["--device", args.device, "--epochs", str(args.epochs), "--batch", str(args.batch)]
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as room:
        names = args.variant or list(VARIANTS)
        runs = {name: train(args.index, Path(room) / _folder(name), [*options, *VARIANTS[name]]) for name in names}
        report = {**about(), "options": options, "variants": runs}
        report |= encode(args.index, Path(room) / _folder(names[0]))
    sys.stdout.write(table(report) + "\n")
    write_json(args.json, report)
    return 0


def _folder(name: str) -> str:
    return name.replace(", ", "-")


def train(index: Path, run: Path, options: Sequence[str]) -> dict[str, Any]:
    """Seconds of a whole run, pairs per second of its fastest epoch, and its best validation MRR."""
    command = [sys.executable, "-m", "unif", "train", "unif", "-q", "-i", str(index), "--own", "--out", str(run)]
    seconds = run_command([*command, *options])
    epochs = [json.loads(line) for line in (run / "curve.jsonl").read_text().splitlines()]
    speed = max(epoch.get("pairs_per_s", 0.0) for epoch in epochs)
    mrr = max(epoch["mrr"] for epoch in epochs)
    return {**seconds._asdict(), "pairs_per_s": round(speed, 1), "mrr": round(mrr, 4)}


def encode(index: Path, run: Path) -> dict[str, Any]:
    """Functions of an index per minute, from a head's arrays to searchable vectors."""
    with Index.load(index) as opened:
        start = time.perf_counter()
        opened.fitted("unif", head=str(run))
        seconds = time.perf_counter() - start
        return {"documents": len(opened), "encoded_per_minute": round(60 * len(opened) / seconds)}


def table(report: Mapping[str, Any]) -> str:
    """A row per variant, and the speed of encoding."""
    rows = [
        [name, f"{run['pairs_per_s']:,.0f}", f"{run['wall']:.0f}", f"{run['cpu']:.0f}", f"{run['mrr']:.3f}"]
        for name, run in report["variants"].items()
    ]
    head = ["training", "pairs/s", "s", "CPU s", "validation MRR"]
    encoded = f"{report['documents']:,} documents, {report['encoded_per_minute']:,} encoded per minute"
    return f"{markdown_table(head, rows)}\n\n{encoded}, load {report['load']:.1f}"


if __name__ == "__main__":
    sys.exit(main())
