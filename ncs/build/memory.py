"""The memory budget of a build: the limit of all processes together, and estimates by stage from measured builds.

Only anonymous memory counts, not pages of files, which the system can reclaim.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.storage.vectors import choose_kind

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux states the memory limit of a container."""
BASE, WORKER, FASTTEXT = 200 * 2**20, 180 * 2**20, 260 * 2**20
"""Bytes of the building process, of each process that reads files, and of fastText without words."""
ROW, PQ_ROW = 250, 110
"""Bytes per document after reading (fragmentation of the heap), and per vector while an IVF-PQ index grows."""
DOCUMENT_BYTES = 800
"""Bytes of source per document, roughly: 600 to 2,000."""


def size_of(text: str) -> int:
    """Bytes of `2GiB`, `1500M`, `2 gb` (units of 1024); raises BadInput.

    >>> size_of("2GiB"), size_of("1.5 g"), size_of("512MB"), size_of("100")
    (2147483648, 1610612736, 536870912, 100)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if not match or float(match[1]) <= 0:
        raise BadInput(f"{text!r} is not an amount of memory; write it as 2GiB or 800MiB")
    return int(float(match[1]) * UNITS[match[2]])


def estimate(config: BuildConfig, rows: int, words: int) -> dict[str, int]:
    """Upper bounds of bytes by stage, of all processes with one reader. rows, words: documents and distinct words."""
    dim = config.lsa.dim if config.embeddings == "lsa" else config.fasttext.dim
    table, base = 4 * dim * words, BASE + ROW * rows
    if config.embeddings == "lsa":
        training = rows * (2_000 + 24 * dim) + 24 * dim * words
    else:
        buckets = config.fasttext.buckets if config.fasttext.max_n else 0
        training = FASTTEXT + 3 * table + 4 * dim * buckets + 200 * words
    vector = PQ_ROW if choose_kind(config.vectors, rows) == "pq" else 8 * dim
    return {
        "reading": base + WORKER + 300 * words + 200 * rows,  # digests of documents, to find copies
        "facts": base + 150 * rows + 300 * words,
        "training": base + training,
        "vectors": base + 3 * table + vector * rows,
    }


def check_memory(limit: int | None, config: BuildConfig, rows: int, words: int) -> None:
    """Raise BadInput for a limit that is too low, naming the stage that needs most."""
    bytes_by_stage = estimate(config, rows, words)
    stage = max(bytes_by_stage, key=bytes_by_stage.__getitem__)
    needed = bytes_by_stage[stage]
    if limit is not None and needed > limit:
        least = -(-needed // (10 * 2**20)) * 10
        raise BadInput(
            f"{_format(limit)} of memory is not enough for {rows:,} documents and {words:,} words:"
            f" {stage} needs {_format(needed)}; build with --memory {least}MiB or more"
        )


def _format(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def reader_processes(limit: int | None, workers: int | None, rows: int) -> int:
    """`workers` (None: one per core), at most as fit into the limit (None: half of the machine), at least one.

    >>> [reader_processes(*each, 0) for each in ((2 * 2**30, 64), (2**29, 2), (10, None))]
    [10, 1, 1]
    """
    limit = available() // 2 if limit is None else limit
    return max(1, min(workers or os.cpu_count() or 1, (limit - BASE - ROW * rows) // WORKER))


def expected_size(source_bytes: int) -> tuple[int, int]:
    """Estimated documents and distinct words.

    >>> expected_size(800_000_000)
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
