"""A cold `ncs query`, process start to printed hits, against Python importing numpy and faiss alone.

    bin/benchmark cold -i INDEX [--rounds 10] [--ranker R] [--json FILE] [QUESTION]

The two run in turn, in processes of their own, output thrown away; ratios are of medians. CPU seconds are the
child's user and system time: on a busy machine they say more than the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ncs.exit_status import ending

BASELINE = [sys.executable, "-c", "import numpy, faiss"]


@ending("cold")
def main(argv: Sequence[str] | None = None) -> int:
    """Print both medians and their ratio; --json also writes every round."""
    parser = argparse.ArgumentParser(prog="benchmark cold", description=__doc__.split("\n")[0])
    parser.add_argument("question", nargs="?", default="hide soft keyboard")
    parser.add_argument("-i", "--index", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--ranker", default="hybrid")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    query = [sys.executable, "-m", "ncs.cli", "query", args.question, "-i", str(args.index), "--ranker", args.ranker]
    rounds = [{"query": run(query), "baseline": run(BASELINE)} for _ in range(args.rounds + 1)][1:]  # one to warm up
    for number, unit in enumerate(("wall", "CPU")):
        ours, base = (statistics.median(r[name][number] for r in rounds) for name in ("query", "baseline"))
        print(  # noqa: T201
            f"{unit:4} seconds: ncs query {ours:.3f}, import numpy, faiss {base:.3f}, ratio {ours / base:.2f}"
        )
    if args.json:
        args.json.write_text(json.dumps({"question": args.question, "rounds": rounds}, indent=1) + "\n")
    return 0


def run(command: Sequence[str]) -> tuple[float, float]:
    """(wall, CPU) seconds of a command."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


if __name__ == "__main__":
    sys.exit(main())
