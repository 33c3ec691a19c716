"""The folder of a training run: its settings, its pairs, its checkpoint, its curve, the head it gave.

RUN/config.json     settings and a digest of the index; the same run goes on, another one is refused
RUN/pairs/          word ids of the pairs, memory-mapped
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
from unif.beginning import reads
from unif.data import READING, Pair, Pairs, Reading, Writer, prepare
from unif.reading import functions, own_pairs, own_sources, pairs_of_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from ncs.store import Store
    from ncs.types import Matrix
    from ncs.vocabulary import WordTable
    from unif.beginning import Beginning, Reads
    from unif.settings import Encoder

CHECKPOINT = "checkpoint.pt"
POOL = "pool"


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


@dataclass(frozen=True, slots=True)
class PairFile:
    """A file of pairs, and how often an epoch draws each of its questions."""

    path: Path
    weight: float = 1.0

    @classmethod
    def parse(cls, text: str | Path) -> PairFile:
        """FILE or FILE:WEIGHT; raises BadInput for a weight below 0.

        >>> PairFile.parse("so.jsonl.gz:2.5").weight, PairFile.parse("a:b.jsonl").weight
        (2.5, 1.0)
        """
        head, colon, tail = str(text).rpartition(":")
        try:
            weight = float(tail) if colon else 1.0
        except ValueError:
            head, weight = "", 1.0
        if not 0 <= weight < float("inf"):
            raise BadInput(f"the weight of {head} is {tail}; give a number from 0")
        return cls(Path(head or text), weight)

    @property
    def name(self) -> str:
        """What a stage calls it: the file's name up to its first dot."""
        return self.path.name.partition(".")[0]


OWN = "own"
"""What a stage calls the index's own functions."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where pairs come from: files of JSON lines, the index's own functions, or both.

    own: their weight, 0 or False for none. leave_out: a file of JSON lines; pairs that ask one of its questions are not
    learnt from.
    """

    files: Sequence[Path | PairFile] = ()
    own: float = 0.0
    leave_out: Path | None = None

    @property
    def weighted(self) -> list[PairFile]:
        """The files with their weights."""
        return [each if isinstance(each, PairFile) else PairFile(each) for each in self.files]

    @property
    def names(self) -> list[str]:
        """As stages call them; a pair's `source` is a place in this list."""
        return [*(file.name for file in self.weighted), *([OWN] if self.own else [])]

    def weights(self, chosen: Sequence[str] = ()) -> list[float]:
        """Of every source, 0 for those that are not chosen (none chosen: all). Raises BadInput for an unknown name."""
        if unknown := sorted(set(chosen) - set(self.names)):
            raise BadInput(f"a stage names {unknown[0]!r}; the sources are {', '.join(self.names)}")
        weights = [*(file.weight for file in self.weighted), *([float(self.own)] if self.own else [])]
        if not any(
            found := [w if not chosen or n in chosen else 0.0 for n, w in zip(self.names, weights, strict=True)]
        ):
            raise BadInput("every source of a stage has the weight 0; give one of them another")
        return found

    def read(self, start: Start, how: Reads, reading: Reading, *, track: Track = silent) -> Iterator[Pair]:
        """All pairs, files first."""
        unwanted = frozenset(map(normalised, read_questions(self.leave_out))) if self.leave_out else frozenset()
        for source, file in enumerate(self.weighted):
            options = {"reads": how, "source": source, "left_out": unwanted, "track": track}
            yield from pairs_of_file(file.path, reading, **options)  # type: ignore[arg-type]
        if self.own and how == "source":
            yield from own_sources(start.store, source=len(self.files), track=track)
        elif self.own:
            yield from own_pairs(start.words, start.store, source=len(self.files), track=track)

    def words(self, start: Start, encoder: Encoder) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        """(words of the question, words of the code) of every pair, as often as asked for."""
        return ((pair.query, pair.code) for pair in self.read(start, reads(encoder), Reading()))

    def about(self) -> dict[str, object]:
        """For the record."""
        out = str(self.leave_out) if self.leave_out else None
        files = {str(file.path): file.weight for file in self.weighted}
        return {"pairs": files, "own": float(self.own), "leave_out": out}


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
    folder: Path, sources: Sources, start: Start, beginning: Beginning, *, pool: bool = False, track: Track = silent
) -> Pairs:
    """The pairs of a run: read now, or as they were read before; pool: the index's functions too, as texts `pool`."""
    if (folder / READING).is_file():
        return Pairs.load(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if pool:
        with Writer(folder, POOL) as codes:
            for words in functions(start.words, start.store, beginning.reads):
                codes.add(beginning.code.ids(words))
    reading = Reading()
    pairs = sources.read(start, beginning.reads, reading, track=track)
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
