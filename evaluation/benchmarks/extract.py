"""Extraction to finished documents against bare tree-sitter parsing of the same files, by language.

One process, files in memory. Both sides read the same groups of files in turn; of every group the least CPU time of a
side counts, since whatever else runs on the machine only adds to it.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from evaluation.benchmarks.common import Report, files_by_language
from evaluation.reports import markdown_table
from ncs.extract import LANGUAGES, extract_files, language_of
from ncs.extract.treesitter import parser_of
from ncs.sources import SourceFile

GROUPS = 20
"""Parts that the files of a language are divided into: a disturbance spoils one of them."""
LIMIT = 1_000_000
"""Bytes of a language that are read, drawn at random."""
SUMS = ("files", "bytes", "documents", "parse", "extract", "broken", "failed")
"""Figures of a language; parse and extract: CPU seconds."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--language", choices=sorted(LANGUAGES))
    parser.add_argument("--rounds", type=int, default=5, help="(default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """The figures of every language."""
    files = files_by_language(options.paths, options.language)
    languages = {language: measure(sample(each), options.rounds) for language, each in files.items()}
    return {"languages": {name: {**each, "ratio": each["extract"] / each["parse"]} for name, each in languages.items()}}


def sample(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Files drawn with a fixed seed up to LIMIT bytes, at least one."""
    selection: list[SourceFile] = []
    left = LIMIT
    for file in random.Random(0).sample(files, len(files)):  # noqa: S311
        if not selection or len(file.data) <= left:
            left -= len(file.data)
            selection.append(file)
    return selection


def measure(files: Sequence[SourceFile], rounds: int) -> dict[str, float]:
    """SUMS of files in one language."""
    figures = dict.fromkeys(SUMS, 0.0) | {"files": len(files), "bytes": sum(len(file.data) for file in files)}
    _extract(files[:1])  # compiles the query
    for group in filter(None, (files[number::GROUPS] for number in range(GROUPS))):
        times = [(_cpu_seconds(parse, group), _cpu_seconds(_extract, group)) for _ in range(rounds)]
        parse_times, extract_times = zip(*times, strict=True)
        documents, broken, failed = _extract(group)
        added = {"parse": min(parse_times), "extract": min(extract_times)}
        added |= {"documents": documents, "broken": broken, "failed": failed}
        figures |= {name: figures[name] + value for name, value in added.items()}
    return figures | {"parse": max(figures["parse"], 1e-9)}


def _cpu_seconds(work: Callable[[Sequence[SourceFile]], object], files: Sequence[SourceFile]) -> float:
    gc.collect()
    gc.disable()
    start = time.process_time()
    work(files)
    seconds = time.process_time() - start
    gc.enable()
    return seconds


def _extract(files: Sequence[SourceFile]) -> tuple[int, int, int]:
    """Documents, files with syntax errors, unreadable files."""
    chunks = list(extract_files(files, workers=1, finish=len))
    counts = [(chunk.result, len(chunk.broken), len(chunk.failed)) for chunk in chunks]
    documents, broken, failed = (sum(column) for column in zip(*counts, strict=True))
    return documents, broken, failed


def parse(files: Iterable[SourceFile]) -> int:
    """Parse every file and drop the tree: the floor under extraction. Returns the files with syntax errors."""
    return sum(parser_of(language_of(file.path) or "").parse(file.data).root_node.has_error for file in files)


def table(report: Report) -> str:
    languages: Mapping[str, Mapping[str, float]] = report["languages"]
    total = {name: sum(each[name] for each in languages.values()) for name in SUMS}
    head = ["language", "files", "documents", "MB", "MB/s parsed", "MB/s extracted", "ratio", "broken", "failed"]
    rows = []
    for name, each in {**languages, "all": total}.items():
        megabytes = each["bytes"] / 1e6
        speeds = [f"{megabytes / each['parse']:.1f}", f"{megabytes / max(each['extract'], 1e-9):.1f}"]
        row = [name, f"{each['files']:,}", f"{each['documents']:,.0f}", f"{megabytes:.1f}", *speeds]
        rows.append([*row, f"{each['extract'] / each['parse']:.2f}", f"{each['broken']:.0f}", f"{each['failed']:.0f}"])
    return markdown_table(head, rows)
