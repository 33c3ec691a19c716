"""How many functions a minute a head makes vectors of, from the exported arrays, without torch."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ncs.learn.tfidf import CHUNK
from ncs.types import NCS_FIELDS
from unif.head import tokens_of
from unif.source_words import source_words

if TYPE_CHECKING:
    from ncs.index import Index
    from unif.head import Head


@dataclass(frozen=True, slots=True)
class EncodingSpeed:
    """functions and tokens: how many were encoded. Seconds are the clock's, and this process's of processors.

    reading: tokens made of the source, 0 where the index has them already. encoding: vectors made of tokens.
    """

    kind: str
    reads: str
    functions: int
    tokens: int
    reading_s: float
    reading_cpu_s: float
    encoding_s: float
    encoding_cpu_s: float
    cores: int

    @property
    def per_minute(self) -> float:
        """Functions a minute of the clock, from tokens to vectors."""
        return 60 * self.functions / self.encoding_s if self.encoding_s else 0.0


def measure(index: Index, head: Head, *, functions: int = 200_000) -> EncodingSpeed:
    """Encode the first `functions` documents of an index, CHUNK at a time, as a build does."""
    return _fields(index, head, functions) if head.reads == "fields" else _sources(index, head, functions)


def report(speed: EncodingSpeed) -> dict[str, object]:
    """For a result file."""
    return {**asdict(speed), "functions_per_minute": round(speed.per_minute)}


def _fields(index: Index, head: Head, functions: int) -> EncodingSpeed:
    words = index.words()
    n = min(functions, len(words))
    began, cpu = time.perf_counter(), time.process_time()
    mapped = tokens_of(head.code, words.vocabulary)
    for start in range(0, n, CHUNK):
        head.documents(words, start, min(start + CHUNK, n), mapped)
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    tokens = int(words.select(NCS_FIELDS, 0, n)[0].size)
    return EncodingSpeed(head.code.kind, head.reads, n, tokens, 0.0, 0.0, seconds, spent, _cores())


def _sources(index: Index, head: Head, functions: int) -> EncodingSpeed:
    n, tokens = min(functions, len(index)), 0
    reading = read = encoding = spent = 0.0
    for start in range(0, n, CHUNK):
        documents = index.store.documents(range(start, min(start + CHUNK, n)))
        began, cpu = time.perf_counter(), time.process_time()
        rows = [head.code.tokens.ids(source_words(document.code, document.language)) for document in documents]
        reading, read = reading + time.perf_counter() - began, read + time.process_time() - cpu
        began, cpu = time.perf_counter(), time.process_time()
        head.code.vectors(rows)
        encoding, spent = encoding + time.perf_counter() - began, spent + time.process_time() - cpu
        tokens += sum(map(len, rows))
    return EncodingSpeed(head.code.kind, head.reads, n, tokens, reading, read, encoding, spent, _cores())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
