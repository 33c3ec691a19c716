"""The folder of a training run: its settings, its pairs, its checkpoint, its curve, the head it gave.

RUN/config.json     settings and a digest of the index; the same run goes on, another one is refused
RUN/teacher/        what a teacher answered, memory-mapped (unif.teacher)
RUN/pairs/          word ids of the pairs, memory-mapped; of the index's functions, where these are learnt from
RUN/checkpoint.pt   replaced after every epoch
RUN/curve.jsonl     an epoch a line; RUN/curve.svg shows it, where matplotlib is installed
RUN/mined-N.npy     hard negatives that epoch N found
RUN/head/           plain arrays, when the training is over
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.learn.embeddings import Embeddings
from ncs.learn.tfidf import inverse_document_frequency
from ncs.progress import Track, silent
from ncs.text.vocabulary import Vocabulary
from ncs.types import NCS_FIELDS
from unif.data import READING, Pairs, Reading, Writer, prepare
from unif.reading import CODE, functions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from ncs.storage.documents import Store
    from ncs.storage.words import WordTable
    from ncs.types import Matrix
    from unif.beginning import Beginning
    from unif.sources import Sources
    from unif.teacher import Lists

CHECKPOINT = "checkpoint.pt"
POOL, SERVED = "pool", "functions"


@dataclass(frozen=True, slots=True)
class Start:
    """What training starts from: the words of an index that have a vector, these vectors, and the words' idf."""

    words: WordTable
    store: Store
    vocabulary: Vocabulary
    vectors: Matrix
    idf: NDArray[np.float32]

    @classmethod
    def of(cls, index: Index, *, rare_words: bool = False, seed: int = 0) -> Start:
        """rare_words: those without a vector get a random one as long as the others' root mean square.

        Raises BadInput for an index whose words have no vectors.
        """
        words, vectors = index.words(), np.array(Embeddings.load(index.data).vectors)
        has = np.asarray(vectors.any(axis=1))
        if not has.any():
            raise BadInput(f"no word of the index {index.folder} has a vector; build it from more code")
        if rare_words:
            draw, size = np.random.default_rng(seed), float(np.sqrt(np.square(vectors[has]).mean()))
            vectors[~has] = draw.normal(scale=size, size=(np.count_nonzero(~has), vectors.shape[1]))
            has[:] = True
        vocabulary = Vocabulary.of(word for at, word in enumerate(words.vocabulary) if has[at])
        return cls(words, index.store, vocabulary, vectors[has], inverse_document_frequency(words)[has])

    def digest(self) -> str:
        """Of the words and their vectors."""
        state = hashlib.blake2b("\n".join(self.vocabulary).encode(), digest_size=16)
        state.update(self.vectors.tobytes())
        return state.hexdigest()


def open_run(folder: Path, settings: Mapping[str, object]) -> None:
    """Make the folder of a run, or go on with it; BadInput where it holds a run with other settings."""
    path = folder / "config.json"
    text = json.dumps(settings, indent=1) + "\n"
    if path.is_file():
        if path.read_text(encoding="utf-8") == text:
            return
        if (folder / CHECKPOINT).exists():
            raise BadInput(f"{folder} holds a training with other settings, pairs or index; name another folder")
        shutil.rmtree(folder / "pairs", ignore_errors=True)  # nothing was learnt yet: its pairs were no good
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there and holds no training; name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())


def run_pairs(
    folder: Path,
    sources: Sources,
    start: Start,
    beginning: Beginning,
    *,
    pool: bool = False,
    lists: Lists | None = None,
    track: Track = silent,
) -> Pairs:
    """The pairs of a run: read now, or as they were read before; `lists` are a teacher's answers.

    The index's functions go beside them, as texts POOL without doc comments, as texts SERVED as they are searched.
    """
    if (folder / READING).is_file():
        return Pairs.load(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, fields, wanted in ((POOL, CODE, pool), (SERVED, NCS_FIELDS, lists is not None)):
        if wanted:
            with Writer(folder, name) as codes:
                for words in functions(start.words, start.store, beginning.reads, fields):
                    codes.add(beginning.code.ids(words))
    reading = Reading()
    pairs = sources.read(start, beginning.reads, reading, lists=lists, track=track)
    return prepare(pairs, folder, reading, beginning.query.ids, beginning.code.ids)


def write_curve(folder: Path, curve: Iterable[Mapping[str, float]]) -> None:
    """An epoch a line."""
    write_whole(folder / "curve.jsonl", "".join(json.dumps(row) + "\n" for row in curve).encode())


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file by one that is all there, whatever happens meanwhile."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def write_array(path: Path, array: NDArray[np.int32]) -> None:
    """A .npy file that is whole or not there."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    write_whole(path, buffer.getvalue())
