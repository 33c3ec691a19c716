"""How much memory a build may hold, all of its processes together, and how much it needs.

Counted is what is the processes' own (anonymous memory): pages of files, which the system takes back where it needs
the room, are not. What grows with the corpus lies in files while a build goes on, a piece of it at a time in memory
(ncs.storage.external_sort); what does not, is estimated here, from measured builds (DESIGN.md).
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
"""Where Linux tells what a container may hold."""
OWN, WORKER, FASTTEXT = 200 * 2**20, 180 * 2**20, 260 * 2**20
"""Bytes of the building process itself, of one more that reads files, and of fastText without its words."""
A_ROW = {"pq": 110}
"""Bytes a document vector while an index of its kind grows: lists are doubled (what pq keeps in float16 is in a file).
Exact: twice its numbers."""
A_DOCUMENT = 800
"""Bytes of source a document, about: 600 to 2,000, by comments and settings."""


def size_of(text: str) -> int:
    """Bytes of `2GiB`, `1500M`, `2 gb` (units of 1024); raises BadInput for what is none.

    >>> size_of("2GiB"), size_of("1.5 g"), size_of("512MB"), size_of("100")
    (2147483648, 1610612736, 536870912, 100)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if not found or float(found[1]) <= 0:
        raise BadInput(f"{text!r} is no amount of memory; write it as 2GiB or 800MiB")
    return int(float(found[1]) * UNITS[found[2]])


def shown(size: float) -> str:
    """As people write it.

    >>> shown(2**31), shown(700 * 2**20)
    ('2.0 GiB', '700 MiB')
    """
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


@dataclass(frozen=True, slots=True)
class Corpus:
    """What memory depends on. rows: documents; dim: numbers a word vector; buckets: of sub-words, fastText's."""

    rows: int
    words: int
    dim: int = 100
    buckets: int = 0
    lsa: bool = False
    vectors: str = "pq"

    @classmethod
    def of(cls, config: BuildConfig, rows: int, words: int) -> Corpus:
        """What a build of so many documents and words needs memory for."""
        lsa = config.embeddings == "lsa"
        dim, buckets = (config.lsa.dim, 0) if lsa else (config.fasttext.dim, config.fasttext.buckets)
        return cls(rows, words, dim, buckets if config.fasttext.max_n else 0, lsa, choose_kind(config.vectors, rows))

    def needed(self) -> Mapping[str, int]:
        """Bytes that each stage holds at most, all processes together, with one that reads."""
        table = 4 * self.dim * self.words
        held = OWN + 250 * self.rows  # reading leaves as much behind in freed pieces
        if self.lsa:
            training = self.rows * (2_000 + 24 * self.dim) + 24 * self.dim * self.words
        else:
            training = FASTTEXT + 3 * table + 4 * self.dim * self.buckets + 200 * self.words
        return {
            "reading": held + WORKER + 300 * self.words,
            "structure": held + 150 * self.rows + 300 * self.words,
            "training": held + training,
            "vectors": held + 3 * table + self.rows * A_ROW.get(self.vectors, 8 * self.dim),
        }


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes that a build may hold. asked: whether somebody said so; else it is half of the machine's."""

    size: int
    asked: bool = True

    @classmethod
    def of(cls, asked: int | None) -> Budget:
        """As asked for, or half of what the machine or the container has."""
        return cls(available() // 2, False) if asked is None else cls(asked)

    def workers(self, asked: int | None, rows: int = 0) -> int:
        """Processes that read, as many as asked for (one a core) or fit beside the build's own; one at least.

        >>> Budget(2 * 2**30).workers(64), Budget(2**29).workers(2), Budget(10).workers(None)
        (10, 1, 1)
        """
        beside = (self.size - OWN - 250 * rows) // WORKER
        return max(1, min(asked or os.cpu_count() or 1, beside))

    def check(self, corpus: Corpus) -> None:
        """Raise BadInput where a bound that was asked for cannot be kept: the stage that needs most, and how much."""
        needed = corpus.needed()
        stage = max(needed, key=needed.__getitem__)
        if self.asked and needed[stage] > self.size:
            least = -(-needed[stage] // (10 * 2**20)) * 10
            raise BadInput(
                f"{shown(self.size)} of memory are too little for {corpus.rows:,} documents and {corpus.words:,} words:"
                f" {stage} needs {shown(needed[stage])}; build with --memory {least}MiB or more"
            )


def expected(source_bytes: int) -> tuple[int, int]:
    """Documents and distinct words that so much source will hold, about.

    >>> expected(800_000_000)
    (1000000, 198844)
    """
    rows = source_bytes // A_DOCUMENT
    return rows, int(33 * max(1, rows) ** 0.63)


def available() -> int:
    """Bytes of the machine, or of the container where that has fewer; 4 GiB where the system does not tell."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30
    for path in LIMITS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) > 0:
            found = min(found, int(text))
    return found
