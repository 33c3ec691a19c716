"""Words looked for in the files of a project that has no index yet: rough, but at once."""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ncs.errors import NcsError
from ncs.extract.readers import read, readable
from ncs.search.highlight import query_stems
from ncs.sources import SourceFile, walk
from ncs.types import Document, Hit

SECONDS = 3.0
FILES = 30
"""Files that hold most of the words; their functions are read."""


def scan(root: Path, text: str, k: int, *, seconds: float = SECONDS) -> list[Hit]:
    """Functions that hold most of a question's words, rare ones counting more; of the files seen in so many seconds.

    Raises SourceError for a root that must not be read.
    """
    words = list(query_stems(text))
    end = time.monotonic() + seconds
    best: list[tuple[int, int, SourceFile]] = []
    seen: Counter[str] = Counter()
    for number, file in enumerate(walk([root], wanted=readable)):
        if time.monotonic() > end:
            break
        held = _held(file.data.decode("utf-8", "replace"), words)
        seen.update(held)
        if held:
            heapq.heappush(best, (len(held), -number, file))
            if len(best) > FILES:
                heapq.heappop(best)
    weights = {word: 1 / math.log(2 + seen[word]) for word in words}
    found: list[tuple[float, int, Document]] = []
    for document in _documents(best):
        held = _held(f"{document.path} {document.qualified_name} {document.code}", words)
        name = _held(document.qualified_name, words)
        score = sum(weights[word] * (1 + (word in name)) for word in held) / math.log(20 + document.code.count("\n"))
        found.append((-score, len(found), document))
    found = heapq.nsmallest(k, found, key=lambda each: each[:2])
    return [Hit(rank, -score, document) for rank, (score, _, document) in enumerate(found, 1) if score]


def _documents(files: list[tuple[int, int, SourceFile]]) -> Iterator[Document]:
    for _, _, file in sorted(files, key=lambda each: (-each[0], -each[1])):
        try:
            documents, _ = read(file.data, file.repository, file.path)
        except NcsError:
            continue
        yield from documents


def _held(text: str, words: list[str]) -> set[str]:
    """Which of the words, by their stems, stand anywhere in a text."""
    lower = text.lower()
    return {word for word in words if word in lower}
