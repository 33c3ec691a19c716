"""Word vectors by fastText's skip-gram: the text it reads, its first vectors, and the process it runs in.

The module `fasttext` may come from any distribution: fasttext, fasttext-community, fasttext-wheel ...
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, NcsError
from ncs.learn import fasttext_worker
from ncs.progress import Track, silent
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.config import FastTextConfig
    from ncs.storage.words import WordTable
    from ncs.text.vocabulary import Vocabulary
    from ncs.types import Matrix

CHUNK = 1 << 14  # documents whose words are spelled out at a time
MOST_EPOCHS = 100  # of a small corpus
WORDS_A_COUNT = 20_000  # so many words a corpus has for each place that a word must stand in
SLOWER = (1, 0.2, 0.04)  # learning rates to try after "Encountered NaN", as shares of the one asked for


class TrainingFailedError(NcsError):
    """fastText gave no usable vectors; the message says why in a few words."""


def train(
    words: WordTable, config: FastTextConfig, *, track: Track = silent, folder: Path | None = None
) -> tuple[Matrix, tuple[str, ...]]:
    """Vectors [len(vocabulary), dim], zero rows for words without one, and notes for people.

    folder: where temporary files go. Raises TrainingFailedError where fastText cannot learn, BadInput for a pretrained
    file that does not fit.
    """
    import tempfile

    counts = _count(words, ~_numbers(words))
    min_count = min(config.min_count, max(1, int(counts.sum()) // WORDS_A_COUNT))
    pretrained = read_pretrained(config.pretrained, words.vocabulary, config.dim) if config.pretrained else {}
    frequent = counts >= min_count
    frequent[[id for id in pretrained if counts[id]]] = True
    if np.count_nonzero(frequent) < 2:
        raise TrainingFailedError("there are fewer than two words to learn")
    epochs = max(config.epochs, min(MOST_EPOCHS, math.ceil(config.least_words / int(counts[frequent].sum()))))
    wanted = np.flatnonzero((counts > 0) if config.max_n else frequent)
    with tempfile.TemporaryDirectory(prefix="fasttext-", dir=folder) as name:
        room = Path(name)
        _write_text(room / fasttext_worker.TEXT, words, frequent)
        _write_first_vectors(room / fasttext_worker.FIRST, words, frequent, pretrained, config)
        (room / fasttext_worker.WORDS).write_bytes(b"".join(_spell(words, wanted, b"\n")))
        trained, notes = _run(room, replace(config, epochs=epochs), track)
    vectors = np.zeros((len(words.vocabulary), config.dim), np.float32)
    vectors[wanted] = trained
    return vectors, (*notes, *_notes(config, epochs, min_count))


def distribution() -> tuple[str, str] | None:
    """Name and version of the installed package that provides the module `fasttext`; None where none does."""
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    try:
        return "fasttext", version("fasttext")
    except PackageNotFoundError:  # of the others the name must be searched for, which takes a while
        name = next(iter(packages_distributions().get("fasttext", ())), None)
        return (name, version(name)) if name else None


def _notes(config: FastTextConfig, epochs: int, min_count: int) -> Iterator[str]:
    if epochs > config.epochs:
        yield f"The corpus is small: fastText read it {epochs} times, not {config.epochs}."
    if min_count < config.min_count:
        yield f"The corpus is small: words in {min_count} or more places were learned, not {config.min_count}."
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
        chosen = keep[ids]
        ids, rows = ids[chosen], rows[chosen]
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
    path: Path, words: WordTable, frequent: NDArray[np.bool_], pretrained: dict[int, Matrix], config: FastTextConfig
) -> None:
    """A random first vector, uniform in -1/dim .. 1/dim, for each word that has no pretrained one.

    fastText 0.9.3 fills only a tenth of its own first matrix per thread and leaves the rest to whatever the
    memory held: that is where NaN and runs that differ came from. Given a file, it starts from that instead.
    """
    draw = np.random.default_rng(config.seed)
    steps = [b"%.6g" % ((2 * i + 1 - 1024) / (1024 * config.dim)) for i in range(1024)]
    ids = np.flatnonzero(frequent).tolist()
    with path.open("wb") as file:
        file.write(b"%d %d\n" % (len(ids) + 1, config.dim))
        for id, word in zip([*ids, -1], [*_spell(words, np.array(ids), b""), b"</s>"], strict=True):
            drawn = draw.integers(1024, size=config.dim)  # for every word: pretrained ones do not move the others
            first = [b"%.9g" % x for x in pretrained[id].tolist()] if id in pretrained else None
            row = first or [steps[i] for i in drawn.tolist()]
            file.write(word + b" " + b" ".join(row) + b"\n")


def _run(room: Path, config: FastTextConfig, track: Track) -> tuple[Matrix, tuple[str, ...]]:
    """Vectors of the words in room/WORDS, learned from room/TEXT, and notes; slower where fastText diverged.

    Raises TrainingFailedError where it crashed or diverged at every rate.
    """
    for share in SLOWER:
        rate = config.learning_rate * share
        if (vectors := _run_once(room, config, rate, track)) is not None:
            slower = (f"fastText diverged; it learned with the rate {rate:g} instead.",) if share < 1 else ()
            return vectors, slower
    raise TrainingFailedError("fastText diverged at every learning rate")


def _run_once(room: Path, config: FastTextConfig, rate: float, track: Track) -> Matrix | None:
    """One training in a process of its own; None where it diverged. The process ends with this call, always."""
    job = {
        "dim": config.dim,
        "ws": config.window,
        "epoch": config.epochs,
        "minn": config.min_n,
        "maxn": config.max_n,
        "bucket": config.buckets,
        "neg": config.negatives,
        "t": config.sample,
        "lr": rate,
        "thread": config.threads,
    }
    (room / fasttext_worker.JOB).write_text(json.dumps(job))
    with (room / "stderr.txt").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "ncs.learn.fasttext_worker"],
            cwd=room,  # not the user's folder: a random.py there would be imported
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        if process.stdout:
            for _ in track(_percents(process.stdout), "training embeddings", total=100, unit="%"):
                pass
        code = process.wait()
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
    if code == fasttext_worker.DIVERGED:
        return None
    if code:
        raise TrainingFailedError(_why(code, (room / "stderr.txt").read_text(errors="replace")))
    vectors: Matrix = np.load(room / fasttext_worker.VECTORS, allow_pickle=False)
    return vectors


def _environment() -> dict[str, str]:
    """The worker imports what this process would; glibc gives it zeroed memory, so that sub-words start at zero."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**os.environ, "PYTHONPATH": path, "MALLOC_PERTURB_": "255"}


def _percents(lines: IO[str]) -> Iterator[int]:
    """1 .. 100, each once, when the worker has come that far."""
    done = 0
    for line in lines:
        while line.strip().isdigit() and done < int(line):
            done += 1
            yield done


def _why(code: int, errors: str) -> str:
    last = re.sub(r"\s+", " ", errors.strip().rsplit("\n", 1)[-1])[:200]
    return f"fastText ended with {'signal' if code < 0 else 'status'} {abs(code)}{': ' + last if last else ''}"


def read_pretrained(name: str, vocabulary: Vocabulary, dim: int) -> dict[int, Matrix]:
    """Word id -> vector [dim] for the known words, from a .vec (word2vec text) or a .bin (fastText) file.

    A .bin model gives every word a vector where it has sub-words. Raises BadInput for a file that is
    missing, unreadable, or of another dimension.
    """
    path = Path(name)
    if not path.is_file():
        raise BadInput(f"no pretrained vectors at {path}; name a .vec or .bin file")
    return (_from_bin if path.suffix == ".bin" else _from_text)(path, vocabulary, dim)


def _from_text(path: Path, vocabulary: Vocabulary, dim: int) -> dict[int, Matrix]:
    vectors: dict[int, Matrix] = {}
    with path.open("rb") as file:
        head = file.readline().split()
        if len(head) != 2 or not (head[0].isdigit() and head[1].isdigit()):
            raise BadInput(f"{path} does not begin with '<words> <dimension>'; give vectors in word2vec's text format")
        _check_dim(path, int(head[1]), dim)
        for number, line in enumerate(file, 2):
            word, _, rest = line.rstrip().partition(b" ")
            id = vocabulary.id(word.decode(errors="replace"))
            if id is None:
                continue
            try:
                vector = np.array(rest.split(), np.float32)
            except ValueError:
                vector = np.zeros(0, np.float32)
            if len(vector) != dim or not np.isfinite(vector).all():
                raise BadInput(f"{path}:{number} is not a word and {dim} numbers; is the file whole?")
            vectors[id] = vector
    return vectors


def _from_bin(path: Path, vocabulary: Vocabulary, dim: int) -> dict[int, Matrix]:
    import fasttext

    try:
        model = fasttext.load_model(str(path))
    except ValueError as error:
        raise BadInput(f"{path} is no fastText model ({error}); name a .vec or .bin file") from error
    _check_dim(path, model.get_dimension(), dim)
    vectors = {id: np.array(model.get_word_vector(word), np.float32) for id, word in enumerate(vocabulary)}
    return {id: vector for id, vector in vectors.items() if vector.any()}


def _check_dim(path: Path, given: int, dim: int) -> None:
    if given != dim:
        raise BadInput(f"{path} has vectors of {given} dimensions, not {dim}; build with --dim {given}")
