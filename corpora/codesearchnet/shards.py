"""A language of the corpus from the work files: duplicates left out, lines copied into shards by partition."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from corpora.codesearchnet.duplicates import EXACT, KEPT, Part, blocks, duplicates

LINES = 30_000
"""Functions a file, as in the published corpus."""
EXACT_COPY, NEAR_COPY = "exact duplicate", "near duplicate"


def finish(language: str, parts: Sequence[tuple[Path, str]], out: Path, scratch: Path) -> dict[str, int]:
    """Write `out`/<language>, which is there when all of it is written; counts of what it holds and lost.

    parts: folders of repositories in their order, each with its partition. Counts: kept, pairs, duplicates by kind,
    and of each the partition's (`pairs train`).
    """
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    folder, ready = scratch / "out", out / language
    stems = [path / language for path, _ in parts]
    fates = duplicates([Part(stem.with_suffix(".rows"), stem.with_suffix(".names")) for stem in stems], scratch)
    counts: Counter[str] = Counter()
    at = 0
    with _Shards(folder, language) as shards:
        for stem, (_, partition) in zip(stems, parts, strict=True):
            pairs = (flag for rows in blocks(stem.with_suffix(".rows")) for flag in rows["documented"].tolist())
            with gzip.open(stem.with_suffix(".jsonl.gz"), "rb") as lines:
                for line, documented in zip(lines, pairs, strict=True):
                    fate = fates[at]
                    at += 1
                    if fate == KEPT:
                        shards.write(line, partition if documented else "")
                    name = _counted(fate, documented)
                    counts.update((name, f"{name} {partition}"))
    if ready.exists():
        shutil.rmtree(ready)
    folder.replace(ready)
    shutil.rmtree(scratch)
    return dict(sorted(counts.items()))


def _counted(fate: int, documented: int) -> str:
    if fate != KEPT:
        return EXACT_COPY if fate == EXACT else NEAR_COPY
    return "pairs" if documented else "undocumented"


class _Shards:
    """Files of LINES functions each, numbered by partition, the same bytes for the same lines."""

    def __init__(self, folder: Path, language: str) -> None:
        self._folder, self._language = folder, language
        self._open: dict[str, _GzipFile] = {}
        self._written: Counter[str] = Counter()

    def __enter__(self) -> _Shards:
        self._folder.mkdir()
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._open.values():
            file.close()

    def write(self, line: bytes, partition: str) -> None:
        """Append a pair to its partition's file, a function without documentation ("") to theirs."""
        number, place = divmod(self._written[partition], LINES)
        if place == 0:
            self._next(partition, number)
        self._written[partition] += 1
        self._open[partition].write(line)

    def _next(self, partition: str, number: int) -> None:
        if partition in self._open:
            self._open[partition].close()
        below = f"final/jsonl/{partition}" if partition else "undocumented"
        path = self._folder / below / f"{self._language}_{partition or 'undocumented'}_{number}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._open[partition] = _GzipFile(path)


class _GzipFile(gzip.GzipFile):
    """A gzip file without name and time in its header, which closes the file below it too."""

    def __init__(self, path: Path) -> None:
        self._raw = path.open("wb")
        super().__init__("", "wb", compresslevel=6, fileobj=self._raw, mtime=0)

    def close(self) -> None:
        super().close()
        self._raw.close()
