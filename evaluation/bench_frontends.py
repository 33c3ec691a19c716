"""The two Java front ends compared field by field on the files of some folders.

    bin/benchmark frontends PATH... [--most 2000] [--show 3] [--json FILE]

Of the files that both read: functions that both find (by qualified name and lines), and of these the share
whose words agree, field by field, as multisets (the order within a field differs by design) and in order.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ncs.errors import SourceError
from ncs.exit_status import ending
from ncs.extract import FRONTENDS, extract
from ncs.sources import SourceFile, walk
from ncs.types import FIELDS, Document, Field


@dataclass(slots=True)
class Comparison:
    """Counts over files and functions; `examples` are (field, id, tree-sitter's words, javalang's words)."""

    files: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    both: int = 0
    same: Counter[Field] = field(default_factory=Counter)
    in_order: Counter[Field] = field(default_factory=Counter)
    examples: list[tuple[Field, str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)


def compare(files: Iterable[SourceFile], *, examples: int = 3) -> Comparison:
    """Read every file with both front ends; of each field the first few differences are kept."""
    found = Comparison()
    for file in files:
        found.files += 1
        read = {name: _read(file, name) for name in FRONTENDS}
        found.failed.update(name for name, documents in read.items() if documents is None)
        first, second = read.values()
        if first is None or second is None:
            continue
        found.functions.update({name: len(documents or {}) for name, documents in read.items()})
        for key in first.keys() & second.keys():
            found.both += 1
            _compare(first[key], second[key], found, examples)
    return found


def _read(file: SourceFile, frontend: str) -> dict[tuple[str, int, int, str], Document] | None:
    """Documents by name and lines; None where the front end refuses the file."""
    try:
        documents = extract(file.data, "java", repository=file.repository, path=file.path, frontend=frontend)
        return {(d.qualified_name, d.start_line, d.end_line, d.kind): d for d in documents}
    except SourceError:
        return None


def _compare(first: Document, second: Document, found: Comparison, examples: int) -> None:
    for name in FIELDS:
        ours, theirs = first.words.get(name, ()), second.words.get(name, ())
        found.in_order[name] += ours == theirs
        if Counter(ours) == Counter(theirs):
            found.same[name] += 1
        elif sum(example[0] == name for example in found.examples) < examples:
            found.examples.append((name, first.id, ours, theirs))


@ending("frontends")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; --json also writes it."""
    parser = argparse.ArgumentParser(prog="benchmark frontends", description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=2000, help="files (default %(default)s, evenly drawn)")
    parser.add_argument("--show", type=int, default=0, help="differences shown a field")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    files = list(walk(args.paths, wanted=lambda path: path.endswith(".java")))
    found = compare(files[:: max(1, len(files) // args.most)], examples=args.show)
    refused = ", ".join(f"{name} refuses {found.failed[name]:,}" for name in FRONTENDS)
    functions = ", ".join(f"{name} {found.functions[name]:,}" for name in FRONTENDS)
    lines = [f"{found.files:,} files: {refused}", f"functions in files both read: {functions}; both {found.both:,}", ""]
    lines += ["| field | same words | same order |", "|---|---:|---:|"]
    total = max(1, found.both)
    lines += [f"| {f} | {found.same[f] / total:.2%} | {found.in_order[f] / total:.2%} |" for f in FIELDS]
    lines += [f"{name} {id}\n  tree-sitter {ours}\n  javalang    {theirs}" for name, id, ours, theirs in found.examples]
    print("\n".join(lines))  # noqa: T201
    if args.json:
        same = {name: found.same[name] for name in FIELDS}
        report = {"files": found.files, "failed": dict(found.failed), "functions": dict(found.functions)}
        args.json.write_text(json.dumps({**report, "both": found.both, "same": same}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
