"""Extraction to finished documents against bare tree-sitter parsing of the same files, by language.

    bin/benchmark extract PATH... [--language java] [--rounds 5] [--json FILE]

One process, files in memory. Both sides read the same groups of files in turn; of every group the least CPU time of a
side counts, since whatever else runs on the machine only adds to it.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from tree_sitter import Language, Parser

from evaluation.benchmarks.common import about, write_json
from evaluation.reports import markdown_table
from ncs.errors import BadInput
from ncs.exit_status import main_program
from ncs.extract import LANGUAGES, extract_files, language_of
from ncs.extract.languages import installed
from ncs.sources import SourceFile, walk

GROUPS = 20
"""Parts that the files of a language are divided into: a disturbance spoils one of them."""
LIMIT = 1_000_000
"""Bytes of a language that are read, drawn at random."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Reading the files of one language; parse and extract: CPU seconds."""

    files: int
    bytes: int
    documents: int
    parse: float
    extract: float
    broken: int
    failed: int

    @property
    def ratio(self) -> float:
        """Extraction over bare parsing."""
        return self.extract / max(self.parse, 1e-9)


@main_program("extract")
def main(argv: Sequence[str] | None = None) -> int:
    """Print a row per language; --json also writes them."""
    parser = argparse.ArgumentParser(prog="benchmark extract", description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--language", choices=sorted(LANGUAGES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    files = list(source_files(args.paths, args.language))
    if not files:
        raise BadInput(f"no source files in {', '.join(map(str, args.paths))}; name another folder")
    speeds = measure(files, args.rounds)
    sys.stdout.write(table(speeds) + "\n")
    write_json(args.json, {**about(), "languages": {n: {**asdict(s), "ratio": s.ratio} for n, s in speeds.items()}})
    return 0


def source_files(paths: Sequence[Path], only: str | None = None) -> Iterable[SourceFile]:
    """Files in languages with an installed grammar."""

    def wanted(path: str) -> bool:
        language = language_of(path)
        return language is not None and installed(language) and only in (None, language)

    return walk(paths, wanted=wanted)


def measure(files: Iterable[SourceFile], rounds: int, limit: int = LIMIT) -> dict[str, Speed]:
    """Language -> speed, over at most about `limit` bytes of each."""
    by_language: dict[str, list[SourceFile]] = {}
    for file in files:
        by_language.setdefault(language_of(file.path) or "", []).append(file)
    return {language: _speed(sample(some, limit), rounds) for language, some in sorted(by_language.items())}


def sample(files: Sequence[SourceFile], limit: int) -> list[SourceFile]:
    """Files drawn with a fixed seed up to `limit` bytes, at least one."""
    sampled: list[SourceFile] = []
    for file in random.Random(0).sample(files, len(files)):  # noqa: S311
        if not sampled or len(file.data) <= limit:
            limit -= len(file.data)
            sampled.append(file)
    return sampled


def _speed(files: Sequence[SourceFile], rounds: int) -> Speed:
    parse_time = extract_time = 0.0
    documents = broken = failed = 0
    _extract(files[:1])  # compiles the query
    for group in filter(None, (files[number::GROUPS] for number in range(GROUPS))):
        times = [(_cpu(parse, group), _cpu(_extract, group)) for _ in range(rounds)]
        parse_time += min(parse_seconds for parse_seconds, _ in times)
        extract_time += min(extract_seconds for _, extract_seconds in times)
        counts = _extract(group)
        documents, broken, failed = documents + counts[0], broken + counts[1], failed + counts[2]
    size = sum(len(file.data) for file in files)
    return Speed(len(files), size, documents, parse_time, extract_time, broken, failed)


def _cpu(work: Callable[[Sequence[SourceFile]], object], files: Sequence[SourceFile]) -> float:
    gc.collect()
    gc.disable()
    start = time.process_time()
    work(files)
    seconds = time.process_time() - start
    gc.enable()
    return seconds


def _extract(files: Sequence[SourceFile]) -> tuple[int, int, int]:
    """Documents, broken files, failed files."""
    chunks = list(extract_files(files, workers=1, finish=len))
    return (
        sum(chunk.result for chunk in chunks),
        sum(len(chunk.broken) for chunk in chunks),
        sum(len(chunk.failed) for chunk in chunks),
    )


def parse(files: Iterable[SourceFile]) -> int:
    """Parse every file and drop the tree: the floor under extraction. Returns the files with syntax errors."""
    return sum(_parser(language_of(file.path) or "").parse(file.data).root_node.has_error for file in files)


@lru_cache
def _parser(language: str) -> Parser:
    return Parser(Language(LANGUAGES[language].load()))


def table(speeds: Mapping[str, Speed]) -> str:
    """A row per language and one for all."""
    head = ["language", "files", "documents", "MB", "MB/s parsed", "MB/s extracted", "ratio", "broken", "failed"]
    rows = {**speeds, "all": _total(list(speeds.values()))}
    return markdown_table(
        head,
        [
            [
                name, f"{s.files:,}", f"{s.documents:,}", f"{s.bytes / 1e6:.1f}", _rate(s.bytes, s.parse),
                _rate(s.bytes, s.extract), f"{s.ratio:.2f}", str(s.broken), str(s.failed),
            ]
            for name, s in rows.items()
        ],
    )  # fmt: skip


def _rate(size: int, seconds: float) -> str:
    return f"{size / 1e6 / max(seconds, 1e-9):.1f}"


def _total(speeds: Sequence[Speed]) -> Speed:
    names = ("files", "bytes", "documents", "parse", "extract", "broken", "failed")
    return Speed(*(sum(getattr(speed, name) for speed in speeds) for name in names))


if __name__ == "__main__":
    sys.exit(main())
