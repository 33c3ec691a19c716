"""The folder of a training run: its settings, its pairs, its checkpoint, its curve, the head it gave.

RUN/config.json     settings and a digest of the index; the same run goes on, another one is refused
RUN/pairs/          word ids of the pairs, memory-mapped
RUN/checkpoint.pt   replaced after every epoch
RUN/curve.jsonl     an epoch a line
RUN/head/           plain arrays, when the training is over
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.embeddings import Embeddings
from ncs.encoder import inverse_document_frequency
from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.rankers.pairs import normalised, read_questions
from ncs.vocabulary import Vocabulary
from unif.data import Pair, Pairs, Reading, prepare
from unif.reading import own_pairs, pairs_of_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from ncs.types import Matrix
    from ncs.vocabulary import WordTable

CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True, slots=True)
class Start:
    """What training starts from: the words of an index that have a vector, these vectors, and the words' idf.

    known: [words of the index], the head's id of each plus one, 0 for a word without a vector.
    """

    words: WordTable
    vocabulary: Vocabulary
    vectors: Matrix
    idf: NDArray[np.float32]
    known: NDArray[np.int64]

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
        known = np.where(has, np.cumsum(has), 0).astype(np.int64)
        vocabulary = Vocabulary.of(word for at, word in enumerate(words.vocabulary) if has[at])
        return cls(words, vocabulary, vectors[has], inverse_document_frequency(words)[has], known)

    def digest(self) -> str:
        """Of the words and their vectors."""
        state = hashlib.blake2b("\n".join(self.vocabulary).encode(), digest_size=16)
        state.update(self.vectors.tobytes())
        return state.hexdigest()


@dataclass(frozen=True, slots=True)
class Sources:
    """Where pairs come from: files of JSON lines, the index's own functions, or both.

    leave_out: a file of JSON lines; pairs that ask one of its questions are not learnt from.
    """

    files: Sequence[Path] = ()
    own: bool = False
    leave_out: Path | None = None

    def read(self, start: Start, reading: Reading, *, track: Track = silent) -> Iterator[Pair]:
        """All pairs, files first."""
        unwanted = frozenset(map(normalised, read_questions(self.leave_out))) if self.leave_out else frozenset()
        for path in self.files:
            yield from pairs_of_file(path, start.vocabulary, reading, left_out=unwanted, track=track)
        if self.own:
            yield from own_pairs(start.words, start.known, track=track)

    def about(self) -> dict[str, object]:
        """For the record."""
        out = str(self.leave_out) if self.leave_out else None
        return {"pairs": [str(path) for path in self.files], "own": self.own, "leave_out": out}


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


def run_pairs(folder: Path, sources: Sources, start: Start, *, track: Track = silent) -> Pairs:
    """The pairs of a run: read now, or as they were read before."""
    if not (folder / "reading.json").is_file():
        reading = Reading()
        return prepare(sources.read(start, reading, track=track), folder, reading)
    return Pairs.load(folder)


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
