"""The memory budget of a build: how much all of its processes may use together, and how much each stage needs.

Only anonymous memory counts, not pages of files, which the system can reclaim. What grows with the corpus lies in files
during a build, a piece of it at a time in memory (ncs.storage.external_sort); the rest is estimated here, from measured
builds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.storage.vectors import choose_kind

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux states the memory limit of a container."""
BASE, WORKER, FASTTEXT = 200 * 2**20, 180 * 2**20, 260 * 2**20
"""Bytes of the building process itself, of each further process that reads files, and of fastText without words."""
PQ_ROW = 110
"""Bytes a document vector while an IVF-PQ index grows: its lists are doubled. An exact index: twice its vectors."""
DOCUMENT_BYTES = 800
"""Bytes of source a document, roughly: 600 to 2,000."""


def size_of(text: str) -> int:
    """Bytes of `2GiB`, `1500M`, `2 gb` (units of 1024); raises BadInput for what is none.

    >>> size_of("2GiB"), size_of("1.5 g"), size_of("512MB"), size_of("100")
    (2147483648, 1610612736, 536870912, 100)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if not match or float(match[1]) <= 0:
        raise BadInput(f"{text!r} is not an amount of memory; write it as 2GiB or 800MiB")
    return int(float(match[1]) * UNITS[match[2]])


def format_size(size: float) -> str:
    """A size as text.

    >>> format_size(2**31), format_size(700 * 2**20)
    ('2.0 GiB', '700 MiB')
    """
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The sizes that memory depends on. rows: documents; dim: of word vectors; buckets: of fastText's sub-words."""

    rows: int
    words: int
    dim: int = 100
    buckets: int = 0
    lsa: bool = False
    vectors: str = "pq"

    @classmethod
    def of(cls, config: BuildConfig, rows: int, words: int) -> Corpus:
        """The corpus of a build with this many documents and words."""
        lsa = config.embeddings == "lsa"
        dim, buckets = (config.lsa.dim, 0) if lsa else (config.fasttext.dim, config.fasttext.buckets)
        return cls(rows, words, dim, buckets if config.fasttext.max_n else 0, lsa, choose_kind(config.vectors, rows))

    def needed(self) -> Mapping[str, int]:
        """Bytes by stage, at most, of all processes together, with one reader process."""
        table = 4 * self.dim * self.words
        base = BASE + 250 * self.rows  # heap fragmentation after reading
        if self.lsa:
            training = self.rows * (2_000 + 24 * self.dim) + 24 * self.dim * self.words
        else:
            training = FASTTEXT + 3 * table + 4 * self.dim * self.buckets + 200 * self.words
        return {
            "reading": base + WORKER + 300 * self.words,
            "facts": base + 150 * self.rows + 300 * self.words,
            "training": base + training,
            "vectors": base + 3 * table + self.rows * (PQ_ROW if self.vectors == "pq" else 8 * self.dim),
        }


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes that a build may use. explicit: whether the user set them; else they are half of the machine's."""

    size: int
    explicit: bool = True

    @classmethod
    def of(cls, size: int | None) -> Budget:
        """As set, or half of what the machine or the container has."""
        return cls(available() // 2, False) if size is None else cls(size)

    def workers(self, wanted: int | None, rows: int = 0) -> int:
        """Reader processes: `wanted` (None: one per core), or as many as fit into the budget; at least one.

        >>> Budget(2 * 2**30).workers(64), Budget(2**29).workers(2), Budget(10).workers(None)
        (10, 1, 1)
        """
        beside = (self.size - BASE - 250 * rows) // WORKER
        return max(1, min(wanted or os.cpu_count() or 1, beside))

    def check(self, corpus: Corpus) -> None:
        """Raise BadInput where a limit that the user set is too low, naming the stage that needs most."""
        needed = corpus.needed()
        stage = max(needed, key=needed.__getitem__)
        if self.explicit and needed[stage] > self.size:
            least = -(-needed[stage] // (10 * 2**20)) * 10
            raise BadInput(
                f"{format_size(self.size)} of memory is not enough for {corpus.rows:,} documents"
                f" and {corpus.words:,} words: {stage} needs {format_size(needed[stage])};"
                f" build with --memory {least}MiB or more"
            )


def expected(source_bytes: int) -> tuple[int, int]:
    """Documents and distinct words to expect of so much source.

    >>> expected(800_000_000)
    (1000000, 198844)
    """
    rows = source_bytes // DOCUMENT_BYTES
    return rows, int(33 * max(1, rows) ** 0.63)


def available() -> int:
    """Bytes of the machine, or of the container where that has fewer; 4 GiB where the system does not say."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30
    for path in LIMITS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) > 0:
            size = min(size, int(text))
    return size
