"""Word vectors by fastText's skip-gram, learned in child processes, as it may crash.

Two models learn in parallel, each half of the dimensions of every word: on two cores in two thirds of the time of one
model, as good, and independent of the number of cores.

The module `fasttext` may come from any distribution: fasttext-community, fasttext, fasttext-wheel ...
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, NcsError
from ncs.learn.tfidf import CHUNK
from ncs.progress import Track, silent
from ncs.storage.arrays import starts_of_runs
from ncs.types import NCS_FIELDS
from ncs.workers import TaskKilled, Workers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.config import FastTextConfig
    from ncs.storage.words import WordTable
    from ncs.text.vocabulary import Vocabulary
    from ncs.types import Matrix

MAX_EPOCHS = 100  # over a small corpus
WORDS_PER_COUNT = 20_000  # the least count is the number of words / WORDS_PER_COUNT, at most `min_count`
RATE_SHARES = (1, 0.2, 0.04)  # of the configured learning rate, to try after "Encountered NaN"
MODELS = 2
TEXT, WORDS = "../text.txt", "../words.txt"
FIRST, JOB, ERRORS, VECTORS = "first.vec", "job.json", "stderr.txt", "vectors.npy"
"""Files of a model, in a folder of its own."""
LOAD_SECONDS = 1200.0  # until a model is given up; the largest published ones take minutes
DIVERGED = 3  # exit status of the process after NaN


class TrainingFailedError(NcsError):
    """fastText gave no usable vectors; the message says why in a few words."""


def train(
    words: WordTable, config: FastTextConfig, *, track: Track = silent, folder: Path | None = None
) -> tuple[Matrix, tuple[str, ...]]:
    """Vectors [len(vocabulary), dim], zero rows for words without one, and notes for people. folder: for temporary
    files. Raises TrainingFailedError, and BadInput for a wrong pretrained file."""
    if find_spec("fasttext") is None:
        raise TrainingFailedError("fastText is not installed: pip install fasttext-community")
    vocabulary = list(words.vocabulary)
    no_number = np.fromiter((not word.isnumeric() for word in vocabulary), np.bool_, len(vocabulary))
    counts = np.zeros(len(vocabulary), np.int64)
    for ids, _ in _sentences(words, no_number):
        counts += np.bincount(ids, minlength=len(counts))
    min_count = min(config.min_count, max(1, int(counts.sum()) // WORDS_PER_COUNT))
    pretrained = read_pretrained(config.pretrained, words.vocabulary, config.dim) if config.pretrained else {}
    frequent = counts >= min_count
    frequent[[id for id in pretrained if counts[id]]] = True
    if np.count_nonzero(frequent) < 2:
        raise TrainingFailedError("there are fewer than two words to learn")
    epochs = max(config.epochs, min(MAX_EPOCHS, math.ceil(config.least_words / int(counts[frequent].sum()))))
    learned = np.flatnonzero((counts > 0) if config.max_n else frequent)
    with TemporaryDirectory(prefix="fasttext-", dir=folder) as name:
        room = Path(name)
        spelling = [word.encode() for word in vocabulary]
        models, parts = {}, np.array_split(np.arange(config.dim), 1 if pretrained else min(MODELS, config.dim))
        for number, dim in enumerate(map(len, parts)):
            models[own := room / str(number)] = part = replace(config, dim=dim, seed=config.seed + number)
            own.mkdir()
            _write_first_vectors(own / FIRST, np.flatnonzero(frequent).tolist(), spelling, pretrained, part)
        _write_text(own / TEXT, words, frequent, spelling)
        (own / WORDS).write_bytes(b"".join(spelling[id] + b"\n" for id in learned.tolist()))
        learned_vectors, notes = _run(models, epochs, track)
    if epochs > config.epochs:
        notes.append(f"The corpus is small: fastText read it {epochs} times, not {config.epochs}.")
    if min_count < config.min_count:
        notes.append(f"The corpus is small: words in {min_count} or more places were learned, not {config.min_count}.")
    if config.threads > 1:
        notes.append(
            f"fastText ran with {config.threads} threads: the same input need not give the same vectors again."
        )
    vectors = np.zeros((len(vocabulary), config.dim), np.float32)
    vectors[learned] = learned_vectors
    return vectors, tuple(notes)


def _sentences(words: WordTable, keep: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """(ids, offsets) of chunks of documents, of words to keep and without immediate repetitions, which make fastText
    fail with "Encountered NaN"."""
    for start in range(0, len(words), CHUNK):
        learned = words.learned(start, min(start + CHUNK, len(words)))
        ids, offsets = words.select_rows(NCS_FIELDS, learned)
        rows = np.repeat(np.arange(len(learned)), np.diff(offsets))[keep[ids]]
        ids = ids[keep[ids]]
        first = starts_of_runs(rows * len(keep) + ids)
        yield ids[first], np.searchsorted(rows[first], np.arange(len(learned) + 1))


def _write_text(path: Path, words: WordTable, keep: NDArray[np.bool_], spelling: list[bytes]) -> None:
    """One document per line, its fields in the order of NCS_FIELDS; fastText splits lines of over 1,024 words."""
    with path.open("wb") as file:
        for ids, offsets in _sentences(words, keep):
            tokens = [spelling[id] for id in ids.tolist()]
            lines = (b" ".join(tokens[start:end]) for start, end in pairwise(offsets.tolist()) if start < end)
            file.write(b"".join(line + b"\n" for line in lines))


def _write_first_vectors(
    path: Path, ids: list[int], spelling: list[bytes], pretrained: dict[int, Matrix], config: FastTextConfig
) -> None:
    """A random first vector, uniform in -1/dim .. 1/dim, for each word without a pretrained one: fastText 0.9.3 fills
    only a part of its own first matrix, which gives NaN and differing runs."""
    rng = np.random.default_rng(config.seed)
    steps = [b"%.6g" % ((2 * i + 1 - 1024) / (1024 * config.dim)) for i in range(1024)]
    with path.open("wb") as file:
        file.write(b"%d %d\n" % (len(ids) + 1, config.dim))
        for id in [*ids, None]:
            row = [steps[i] for i in rng.integers(1024, size=config.dim).tolist()]  # for pretrained words too, so that
            if id in pretrained:  # they do not change the vectors of others
                row = [b"%.9g" % x for x in pretrained[id].tolist()]
            file.write((b"</s>" if id is None else spelling[id]) + b" " + b" ".join(row) + b"\n")


def _run(models: Mapping[Path, FastTextConfig], epochs: int, track: Track) -> tuple[Matrix, list[str]]:
    """Vectors of WORDS learned from TEXT, with a lower learning rate after divergence, and notes. models: folders and
    settings. Raises TrainingFailedError if one crashed or diverged at every rate."""
    for share in RATE_SHARES:
        for folder, config in models.items():
            job = {
                "dim": config.dim,
                "ws": config.window,
                "epoch": epochs,
                "minn": config.min_n,
                "maxn": config.max_n,
                "bucket": config.buckets,
                "neg": config.negatives,
                "t": config.sample,
                "thread": config.threads,
                "lr": config.learning_rate * share,
            }
            (folder / JOB).write_text(json.dumps(job))
        statuses = _run_processes(list(models), track)
        if not any(statuses):
            vectors = [np.load(folder / VECTORS, allow_pickle=False) for folder in models]
            note = f"fastText diverged; it learned with the rate {job['lr']:g} instead."
            return np.hstack(vectors), [note] if share < 1 else []
        for folder, status in zip(models, statuses, strict=True):
            if status not in (0, DIVERGED):
                errors = (folder / ERRORS).read_text(errors="replace")
                last = re.sub(r"\s+", " ", errors.strip().rsplit("\n", 1)[-1])[:200]
                end = f"{'signal' if status < 0 else 'status'} {abs(status)}"
                raise TrainingFailedError(f"fastText ended with {end}{': ' + last if last else ''}")
    raise TrainingFailedError("fastText diverged at every learning rate")


def _run_processes(folders: Sequence[Path], track: Track) -> list[int]:
    """Exit statuses of the models' processes, which never outlive this call; progress is that of the first. Their
    memory is zeroed (MALLOC_PERTURB_), so that sub-words start at zero."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    with ExitStack() as stack:
        processes = []
        for folder in folders:
            errors = stack.enter_context((folder / ERRORS).open("wb"))
            process = subprocess.Popen(
                [sys.executable, "-m", "ncs.learn.fasttext"],
                cwd=folder,  # not the user's folder: a random.py there would be imported
                env={**os.environ, "PYTHONPATH": path, "MALLOC_PERTURB_": "255"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            processes.append(stack.enter_context(process))
            stack.callback(process.wait)  # Popen itself waits a quarter of a second only after an interrupt
            stack.callback(process.kill)
        for _ in track(_percents(processes[0].stdout or []), "training embeddings", total=100, unit="%"):
            pass
        for process in processes:
            process.communicate()
    return [process.returncode for process in processes]


def _percents(lines: Iterable[str]) -> Iterator[int]:
    """1 .. 100, each once, when the process has come that far."""
    done = 0
    for line in lines:
        while line.strip().isdigit() and done < int(line):
            done += 1
            yield done


def read_pretrained(name: str, vocabulary: Vocabulary, dim: int) -> dict[int, Matrix]:
    """Word id -> vector [dim] for words of the vocabulary, from a .vec (word2vec text) or a .bin (fastText) file;
    raises BadInput for one that is missing, unreadable, or of another dimension."""
    path = Path(name)
    if not path.is_file():
        raise BadInput(f"no pretrained vectors at {path}; name a .vec or .bin file")
    return (_from_bin if path.suffix == ".bin" else _from_text)(path, vocabulary, dim)


def _from_text(path: Path, vocabulary: Vocabulary, dim: int) -> dict[int, Matrix]:
    vectors: dict[int, Matrix] = {}
    with path.open("rb") as file:
        head = file.readline().split()
        if len(head) != 2 or not (head[0].isdigit() and re.fullmatch(rb"[0-9]{1,6}", head[1])):
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
    with Workers(1, memory=path.stat().st_size + (4 << 30)) as workers:  # fastText crashes on a damaged file
        try:
            file_dim, vectors = workers.submit(
                _vectors_of_bin, str(path), list(vocabulary), dim, seconds=LOAD_SECONDS
            ).result()
        except (ValueError, RuntimeError, TaskKilled) as error:
            raise BadInput(f"{path} is no fastText model ({error}); name a .vec or .bin file") from error
    _check_dim(path, file_dim, dim)
    if not np.isfinite(vectors).all():
        raise BadInput(f"{path} has vectors that are not numbers; is the file whole?")
    return {id: vector for id, vector in enumerate(vectors) if vector.any()}


def _vectors_of_bin(path: str, words: Sequence[str], dim: int) -> tuple[int, Matrix]:
    """The model's dimension, and if it is `dim` a vector per word."""
    import fasttext

    model = fasttext.load_model(path)
    vectors = np.zeros((len(words), dim), np.float32)
    if (file_dim := model.get_dimension()) == dim:
        for row, word in enumerate(words):
            vectors[row] = _word_vector(model, word)
    return file_dim, vectors


def _word_vector(model: Any, word: str) -> Matrix | float:
    """The mean of its own vector and its sub-words'; fasttext-community's get_word_vector gives it unit length."""
    vectors = [model.get_input_vector(id) for id in model.get_subwords(word)[1]]
    return np.mean(vectors, axis=0, dtype=np.float32) if vectors else 0.0


def _check_dim(path: Path, file_dim: int, dim: int) -> None:
    if file_dim != dim:
        raise BadInput(f"{path} has vectors of {file_dim} dimensions, not {dim}; build with --dim {file_dim}")


def main() -> int:
    """The process: reads TEXT, FIRST, WORDS and JOB in its folder, prints percents, writes VECTORS; its exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # fastText would not let Python's handler run
    import fasttext

    job = json.loads(Path(JOB).read_text())
    threading.Thread(target=_report, args=(job["epoch"] / job["thread"],), daemon=True).start()
    try:
        model = fasttext.train_unsupervised(
            TEXT, model="skipgram", minCount=1, verbose=0, pretrainedVectors=FIRST, **job
        )
    except RuntimeError as error:
        if "NaN" in str(error):
            return DIVERGED
        raise
    words = Path(WORDS).read_text(encoding="utf-8").split("\n")[:-1]
    vectors = np.zeros((len(words), job["dim"]), np.float32)
    for row, word in enumerate(words):
        vectors[row] = _word_vector(model, word)
    if not np.isfinite(vectors).all():
        return DIVERGED
    np.save(VECTORS, vectors)
    print(100, flush=True)  # noqa: T201
    return 0


def _report(epochs: float) -> None:
    """Print percents by the position in fastText's open file, as it reports no progress with one thread; end the
    process with its parent. The first pass, for the dictionary, does not count."""
    parent, text = os.getppid(), Path(TEXT).stat()
    passes, last, printed = 0, 0, 0
    while os.getppid() == parent:
        time.sleep(0.05)
        position = _position(text)
        if position is None:
            continue
        passes, last = passes + (position < last), position
        percent = min(99, int(100 * (passes - 1 + position / max(1, text.st_size)) / epochs))
        if percent > printed:
            printed = percent
            print(printed, flush=True)  # noqa: T201
    os._exit(1)


def _position(text: os.stat_result) -> int | None:
    """The position in the open file; None while it is not open."""
    for descriptor in range(3, 64):
        with suppress(OSError):
            file = os.fstat(descriptor)
            if (file.st_dev, file.st_ino) == (text.st_dev, text.st_ino):
                return os.lseek(descriptor, 0, os.SEEK_CUR)
    return None


if __name__ == "__main__":
    sys.exit(main())
