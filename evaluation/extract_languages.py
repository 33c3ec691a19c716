"""The table of extraction by language: finished documents against bare parsing of the same files, in one process.

Both read the same groups of files in turn, several times over, and of each group the least CPU time of a side counts:
what else the machine does adds to a time and never takes from it. The time to free the documents counts as theirs.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaluation.parse_floor import parse_chunk
from ncs.extract import extract_files, language_of
from ncs.extract.languages import installed
from ncs.sources import SourceFile

GROUPS = 20
"""Into so many parts the files of a language are divided: a disturbance then spoils one of them."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What reading the files of a language took, in seconds of CPU time."""

    files: int
    bytes: int
    functions: int
    bare: float
    documents: float
    broken: int
    failed: int

    @property
    def ratio(self) -> float:
        """Finished documents over bare parsing."""
        return self.documents / self.bare


def speeds(files: Iterable[SourceFile], rounds: int, limit: int) -> dict[str, Speed]:
    """Language -> speed, over at most about `limit` bytes of each, drawn at random."""
    by_language: dict[str, list[SourceFile]] = {}
    for file in files:
        language = language_of(file.path)
        if language is not None and installed(language):
            by_language.setdefault(language, []).append(file)
    return {language: _speed(_drawn(some, limit), rounds) for language, some in sorted(by_language.items())}


def _drawn(files: Sequence[SourceFile], limit: int) -> list[SourceFile]:
    shuffled = random.Random(0).sample(files, len(files))  # noqa: S311
    drawn: list[SourceFile] = []
    for file in shuffled:
        if drawn and limit < len(file.data):
            continue
        limit -= len(file.data)
        drawn.append(file)
    return drawn


def _speed(files: Sequence[SourceFile], rounds: int) -> Speed:
    groups = [group for number in range(GROUPS) if (group := files[number::GROUPS])]
    bare = documents = 0.0
    functions = broken = failed = 0
    _documents(files[:1])  # compiles the query
    for group in groups:
        times = [(_seconds(parse_chunk, group), _seconds(_documents, group)) for _ in range(rounds)]
        bare += min(one for one, _ in times)
        documents += min(other for _, other in times)
        found = _documents(group)
        functions, broken, failed = functions + found[0], broken + found[1], failed + found[2]
    return Speed(len(files), sum(len(file.data) for file in files), functions, bare, documents, broken, failed)


def _seconds(work: Callable[[list[SourceFile]], object], files: Sequence[SourceFile]) -> float:
    gc.collect()
    gc.disable()  # as it is while files are read
    start = time.process_time()
    work(list(files))
    taken = time.process_time() - start
    gc.enable()
    return taken


def _documents(files: Sequence[SourceFile]) -> tuple[int, int, int]:
    """Functions, broken files, failed files."""
    chunks = list(extract_files(files, workers=1, finish=len))
    return (
        sum(chunk.result for chunk in chunks),
        sum(len(chunk.broken) for chunk in chunks),
        sum(len(chunk.failed) for chunk in chunks),
    )


def table(found: Mapping[str, Speed], goal: float = 1.8) -> str:
    """A row a language, in Markdown; a star where documents take longer than the goal."""
    lines = [
        "| language   | files | functions |   MB | MB/s bare | MB/s documents | times bare | broken % | failed |",
        "|------------|------:|----------:|-----:|----------:|---------------:|-----------:|---------:|-------:|",
    ]
    for language, one in found.items():
        megabytes = one.bytes / 1e6
        mark = "*" if one.ratio > goal else " "
        lines.append(
            f"| {language:10} | {one.files:5} | {one.functions:9} | {megabytes:4.1f} | {megabytes / one.bare:9.1f} |"
            f" {megabytes / one.documents:14.1f} | {one.ratio:9.2f}{mark} | {100 * one.broken / one.files:8.1f} |"
            f" {one.failed:6} |"
        )
    return "\n".join([*lines, "", f"CPU time in one process; * over {goal} times bare parsing"])
