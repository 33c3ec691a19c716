"""Whole source trees read as a build reads them: files, documents, failures and seconds of every language.

    bin/benchmark trees PATH... [--json FILE]

One process reads a file after the other, by a grammar, as a notebook, as a page with scripts or as text. Broken files
have syntax errors (what parsed is counted), failed ones gave nothing.
Seconds are of the CPU; reading from disk is left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evaluation.machine import commit, machine
from ncs.errors import SourceError
from ncs.exit_status import ending
from ncs.extract import LANGUAGES
from ncs.extract.readers import NOTEBOOK, PAGE, SCRIPT, read, readable, reader_of, why_unread
from ncs.sources import Skipped, SourceFile, walk
from ncs.storage.file_roles import OUTLINES


@dataclass(slots=True)
class Tally:
    """What came of the files that one thing reads."""

    files: int = 0
    bytes: int = 0
    functions: int = 0
    """Definitions of files without a grammar count."""
    outlines: int = 0
    """Classes, top-level code, blocks of text."""
    empty: int = 0
    """Files that gave no document."""
    broken: int = 0
    failed: int = 0
    seconds: float = 0.0


@ending("trees")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; --json also writes it, with what was skipped."""
    parser = argparse.ArgumentParser(prog="benchmark trees", description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    skipped = Skipped(unwanted=why_unread)
    tallies = tally(walk(args.paths, wanted=readable, force=True, skipped=skipped))
    print(report(tallies, skipped.counts))  # noqa: T201
    if args.json:
        about = {"commit": commit(), "machine": machine(), "paths": [path.name for path in args.paths]}
        readers = {name: asdict(one) for name, one in tallies.items()}
        whole = {**about, "readers": readers, "skipped": dict(sorted(skipped.counts.items()))}
        args.json.write_text(json.dumps(whole, indent=1) + "\n")
    return 0


def tally(files: Iterable[SourceFile]) -> dict[str, Tally]:
    """Reader -> what it read: languages with a grammar, then notebooks, pages and scripts, then text, each by name."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for file in files:
        one = tallies[reader_of(file.path) or ""]
        one.files += 1
        one.bytes += len(file.data)
        start = time.process_time()
        try:
            documents, errors = read(file.data, file.repository, file.path, outside=True)
        except SourceError:
            one.failed += 1
            continue
        finally:
            one.seconds += time.process_time() - start
        one.broken += errors
        one.empty += not documents
        outlines = sum(document.kind in OUTLINES for document in documents)
        one.outlines += outlines
        one.functions += len(documents) - outlines
    return dict(sorted(tallies.items(), key=lambda pair: (_room(pair[0]), pair[0])))


def _room(reader: str) -> int:
    return 1 if reader in (NOTEBOOK, PAGE, SCRIPT) else 0 if reader in LANGUAGES else 2


def report(tallies: Mapping[str, Tally], skipped: Mapping[str, int]) -> str:
    """The table, and what was left out."""
    lines = [
        "| read as | files | MB | functions | classes, blocks | no document | broken | failed | seconds | MB/s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, t in tallies.items():
        speed = f"{t.bytes / 1e6 / t.seconds:.1f}" if t.seconds else ""
        numbers = (t.files, f"{t.bytes / 1e6:.1f}", t.functions, t.outlines, t.empty, t.broken, t.failed)
        lines.append(f"| {name} | " + " | ".join(map(str, numbers)) + f" | {t.seconds:.1f} | {speed} |")
    left = Counter(skipped).most_common()
    lines.append("skipped: " + (", ".join(f"{n:,} {reason}" for reason, n in left) or "nothing"))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
