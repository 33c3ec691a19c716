"""Learns word vectors with fastText's skip-gram: the text it reads, its first vectors, and the process it runs in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.learn import fasttext_worker
from ncs.progress import Track, silent
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.types import Matrix

CHUNK = 1 << 14  # documents whose words are spelled out at a time
MOST_EPOCHS = 100  # of a small corpus
WORDS_A_COUNT = 20_000  # so many words a corpus has for each place that a word must stand in


@dataclass(frozen=True, slots=True)
class FastTextConfig:
    """How fastText learns; raises BadInput for values it cannot run with.

    epochs, least_words: a corpus is read `epochs` times, a small one until `least_words` words were read, at most
    100 times. min_count: words in fewer places have no vector, unless sub-words are on (max_n > 0); a corpus under
    min_count * 20,000 words lowers it, down to 1. sample: words more frequent than this share are passed over at
    random, the more the more frequent. threads: more than one does not repeat exactly. seed: of the first vectors.
    pretrained: a .vec (word2vec text) or .bin (fastText) file to start from.
    """

    dim: int = 100
    window: int = 5
    epochs: int = 5
    least_words: int = 3_000_000
    min_count: int = 5
    min_n: int = 0
    max_n: int = 0
    buckets: int = 200_000
    negatives: int = 5
    sample: float = 1e-4
    learning_rate: float = 0.05
    threads: int = 1
    seed: int = 0
    pretrained: str | None = None

    def __post_init__(self) -> None:
        for name in ("dim", "window", "epochs", "min_count", "buckets", "negatives", "threads"):
            if getattr(self, name) < 1:
                raise BadInput(f"fastText needs {name} >= 1, not {getattr(self, name)}")
        if not 0 <= self.min_n <= self.max_n:
            raise BadInput(f"sub-words need 0 <= min_n <= max_n, not {self.min_n} and {self.max_n}")
        for name in ("learning_rate", "sample"):
            if not 0 < getattr(self, name) < float("inf"):
                raise BadInput(f"fastText needs {name} > 0, not {getattr(self, name)}")


Trainer = Callable[[Path, FastTextConfig, Track], "tuple[Matrix, tuple[str, ...]]"]
"""`ncs.learn.fasttext_process.learn`, or the same elsewhere (ncs.scale.dask.training)."""


def train(
    words: WordTable,
    config: FastTextConfig,
    *,
    track: Track = silent,
    folder: Path | None = None,
    trainer: Trainer | None = None,
) -> tuple[Matrix, tuple[str, ...]]:
    """Vectors [len(vocabulary), dim], zero rows for words without one, and notes on what was done.

    folder: where temporary files go. trainer: what runs fastText on them; a process here by default.
    Raises TrainingFailedError where fastText cannot learn, BadInput
    for a pretrained file that does not fit.
    """
    import tempfile

    from ncs.learn.fasttext_process import TrainingFailedError, learn
    from ncs.learn.pretrained import read_pretrained

    counts = _count(words, ~_numbers(words))
    min_count = min(config.min_count, max(1, int(counts.sum()) // WORDS_A_COUNT))
    given = read_pretrained(config.pretrained, words.vocabulary, config.dim) if config.pretrained else {}
    taught = counts >= min_count
    taught[[id for id in given if counts[id]]] = True
    if np.count_nonzero(taught) < 2:
        raise TrainingFailedError("there are fewer than two words to learn")
    epochs = max(config.epochs, min(MOST_EPOCHS, math.ceil(config.least_words / int(counts[taught].sum()))))
    wanted = np.flatnonzero((counts > 0) if config.max_n else taught)
    with tempfile.TemporaryDirectory(prefix="fasttext-", dir=folder) as name:
        room = Path(name)
        _write_text(room / fasttext_worker.TEXT, words, taught)
        _write_first_vectors(room / fasttext_worker.FIRST, words, taught, given, config)
        (room / fasttext_worker.WORDS).write_bytes(b"".join(_spell(words, wanted, b"\n")))
        learnt, notes = (trainer or learn)(room, replace(config, epochs=epochs), track)
    vectors = np.zeros((len(words.vocabulary), config.dim), np.float32)
    vectors[wanted] = learnt
    return vectors, (*notes, *_notes(config, epochs, min_count))


def _notes(config: FastTextConfig, epochs: int, min_count: int) -> Iterator[str]:
    if epochs > config.epochs:
        yield f"The corpus is small: fastText read it {epochs} times, not {config.epochs}."
    if min_count < config.min_count:
        yield f"The corpus is small: words in {min_count} or more places were learnt, not {config.min_count}."
    if config.threads > 1:
        yield f"fastText ran with {config.threads} threads: the same input need not give the same vectors again."


def _numbers(words: WordTable) -> NDArray[np.bool_]:
    return np.fromiter((word.isnumeric() for word in words.vocabulary), np.bool_, len(words.vocabulary))


def _spell(words: WordTable, ids: NDArray[np.int64], end: bytes) -> list[bytes]:
    spelled = [word.encode() + end for word in words.vocabulary]
    return [spelled[id] for id in ids.tolist()]


def cleaned(words: WordTable, keep: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """Chunks of documents as (ids, offsets): only words to keep, a word that follows itself once.

    Long runs of one word are what made fastText fail with "Encountered NaN".
    """
    for start in range(0, len(words), CHUNK):
        stop = min(start + CHUNK, len(words))
        ids, offsets = words.select(NCS_FIELDS, start, stop)
        rows = np.repeat(np.arange(stop - start), np.diff(offsets))
        kept = keep[ids]
        ids, rows = ids[kept], rows[kept]
        first = np.ones(len(ids), np.bool_)
        first[1:] = (ids[1:] != ids[:-1]) | (rows[1:] != rows[:-1])
        ids, rows = ids[first], rows[first]
        yield ids, np.searchsorted(rows, np.arange(stop - start + 1))


def _count(words: WordTable, keep: NDArray[np.bool_]) -> NDArray[np.int64]:
    counts = np.zeros(len(words.vocabulary), np.int64)
    for ids, _ in cleaned(words, keep):
        counts += np.bincount(ids, minlength=len(counts))
    return counts


def _write_text(path: Path, words: WordTable, keep: NDArray[np.bool_]) -> None:
    """A document a line, its fields in the order of NCS_FIELDS.

    fastText reads on in a line of over 1,024 words, as if it were several: nothing is lost.
    """
    spelled = [word.encode() for word in words.vocabulary]
    with path.open("wb") as file:
        for ids, offsets in cleaned(words, keep):
            tokens = [spelled[id] for id in ids.tolist()]
            bounds = offsets.tolist()
            lines = (b" ".join(tokens[a:b]) for a, b in pairwise(bounds) if a < b)
            file.write(b"".join(line + b"\n" for line in lines))


def _write_first_vectors(
    path: Path, words: WordTable, taught: NDArray[np.bool_], given: dict[int, Matrix], config: FastTextConfig
) -> None:
    """A random first vector, uniform in -1/dim .. 1/dim, for each word that has no pretrained one.

    fastText 0.9.3 fills only a tenth of its own first matrix per thread and leaves the rest to whatever the
    memory held: that is where NaN and runs that differ came from. Given a file, it starts from that instead.
    """
    draw = np.random.default_rng(config.seed)
    steps = [b"%.6g" % ((2 * i + 1 - 1024) / (1024 * config.dim)) for i in range(1024)]
    ids = np.flatnonzero(taught).tolist()
    with path.open("wb") as file:
        file.write(b"%d %d\n" % (len(ids) + 1, config.dim))
        for id, word in zip([*ids, -1], [*_spell(words, np.array(ids), b""), b"</s>"], strict=True):
            drawn = draw.integers(1024, size=config.dim)  # for every word: pretrained ones do not move the others
            row = [b"%.9g" % x for x in given[id].tolist()] if id in given else [steps[i] for i in drawn.tolist()]
            file.write(word + b" " + b" ".join(row) + b"\n")
