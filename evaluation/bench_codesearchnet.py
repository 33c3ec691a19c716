"""Memory of CodeSearchNet's pipeline: made-up functions through duplicates and shards, the peak by their number.

    python -m evaluation.bench_codesearchnet FOLDER [--functions 100000,1000000] [--json FILE]

What reads repositories holds one file at a time; what grows with the corpus is the search for duplicates. So the work
files of repositories of 10,000 functions each are made up here (a fifth of the functions are copies of earlier ones,
half of these changed), and the last step runs over them as `ncs corpus codesearchnet` runs it, in a process of its own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.codesearchnet.shards import finish
from corpora.codesearchnet.signatures import BANDS, ROW
from evaluation.machine import commit, forget_peak_memory, machine, peak_memory
from ncs.exit_status import ending

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZE = 10_000
"""Functions a repository."""
NAMES = 30
"""Identifiers a function."""
LANGUAGE = "java"


def make_up(folder: Path, number: int, seed: int) -> tuple[Path, str]:
    """The work files of one repository."""
    draw = np.random.default_rng((seed, number))
    folder.mkdir(parents=True)
    rows: NDArray[Any] = np.zeros(SIZE, ROW)
    rows["digest"] = draw.integers(1, 1 << 63, (SIZE, 2))
    rows["keys"] = draw.integers(1, 1 << 63, (SIZE, BANDS))
    rows["identifiers"] = NAMES
    rows["documented"] = draw.random(SIZE) < 0.35
    names = draw.integers(0, 1 << 32, (SIZE, NAMES), np.uint32)
    tenth = SIZE // 10
    rows["digest"][-tenth:], rows["keys"][-tenth:] = rows["digest"][:tenth], rows["keys"][:tenth]
    rows["keys"][-2 * tenth : -tenth, :9] = rows["keys"][:tenth, :9]
    names[-tenth:] = names[-2 * tenth : -tenth] = names[:tenth]
    names[-2 * tenth : -tenth, 0] += np.uint32(1)
    (folder / f"{LANGUAGE}.rows").write_bytes(rows.tobytes())
    (folder / f"{LANGUAGE}.names").write_bytes(names.tobytes())
    with gzip.open(folder / f"{LANGUAGE}.jsonl.gz", "wb", compresslevel=1) as lines:
        lines.writelines(b'{"repo": "r%d", "code": "%d"}\n' % (number, at) for at in range(SIZE))
    return folder, "train"


def measure(folder: Path, functions: int, seed: int) -> dict[str, float]:
    """Seconds and peak bytes of the last step over that many functions."""
    work = folder / "work"
    parts = [make_up(work / f"{number:06}", number, seed) for number in range(functions // SIZE)]
    forget_peak_memory()
    before, start = peak_memory(), time.perf_counter()
    counts = finish(LANGUAGE, parts, folder, work / "scratch")
    found = {
        "functions": functions,
        "peak_bytes": peak_memory(),
        "bytes_before": before,
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time(), 1),
        "exact_duplicates": counts["exact duplicate"],
        "near_duplicates": counts["near duplicate"],
    }
    shutil.rmtree(work)
    shutil.rmtree(folder / LANGUAGE)
    return found


@ending("codesearchnet")
def main(argv: Sequence[str] | None = None) -> int:
    """Print a row a size; --json writes them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="for about 400 bytes a function; a new one")
    parser.add_argument("--functions", default="100000,1000000", help="(default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True)
    found = []
    for text in options.functions.split(","):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            each = pool.apply(measure, (options.folder, int(text), options.seed))
        found.append(each)
        sys.stdout.write(
            f"{each['functions']:>12,} functions: peak {each['peak_bytes'] / 1e6:,.0f} MB "
            f"({each['bytes_before'] / 1e6:,.0f} MB before), {each['seconds']:,.0f} s\n"
        )
        sys.stdout.flush()
    options.folder.rmdir()
    if options.json:
        options.json.write_text(
            json.dumps({"commit": commit(), "machine": machine(), "sizes": found}, indent=1) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
