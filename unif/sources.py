"""Where a training's pairs come from: files, the index's own functions, and questions that a teacher answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.search.pairs import normalised, read_questions
from ncs.text.tokens import tokenize
from ncs.types import NCS_FIELDS
from unif.beginning import reads
from unif.data import Pair, Reading
from unif.reading import own_pairs, own_sources, pairs_of_file
from unif.teacher import FOLDER, ask

if TYPE_CHECKING:
    from ncs.index import Index
    from unif.beginning import Reads
    from unif.run import Start
    from unif.settings import Encoder, TrainConfig
    from unif.teacher import Lists


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
ASKED = "asked-"
"""What the name of a file of questions begins with, as a stage calls it."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where pairs come from: files of JSON lines, the index's own functions, questions that a teacher answers.

    own: their weight, 0 or False for none. leave_out: a file of JSON lines; pairs that ask one of its questions are not
    learnt from. teacher: a ranker, or the run that asked one; questions: files, and `own` for the index's own.
    answered: files of questions with answers, which judge the default ranker's lists (unif.answers).
    """

    files: Sequence[Path | PairFile] = ()
    own: float = 0.0
    leave_out: Path | None = None
    teacher: str = ""
    questions: Sequence[PairFile] = ()
    answered: Sequence[Path] = ()

    @property
    def weighted(self) -> list[PairFile]:
        """The files with their weights."""
        return [each if isinstance(each, PairFile) else PairFile(each) for each in self.files]

    @property
    def by_name(self) -> list[tuple[str, float]]:
        """Every source's name and weight, in the order of `names`."""
        files = [(file.name, file.weight) for file in self.weighted]
        asked = [(ASKED + file.name, file.weight) for file in self.questions] if self.teacher else []
        return [*files, *([(OWN, float(self.own))] if self.own else []), *asked]

    @property
    def names(self) -> list[str]:
        """As stages call them; a pair's `source` is a place in this list."""
        return [name for name, _ in self.by_name]

    def weights(self, chosen: Sequence[str] = ()) -> list[float]:
        """Of every source, 0 for those that are not chosen (none chosen: all). Raises BadInput for an unknown name."""
        if unknown := sorted(set(chosen) - set(self.names)):
            raise BadInput(f"a stage names {unknown[0]!r}; the sources are {', '.join(self.names)}")
        if not any(found := [weight if not chosen or name in chosen else 0.0 for name, weight in self.by_name]):
            raise BadInput("every source of a stage has the weight 0; give one of them another")
        return found

    @property
    def unwanted(self) -> frozenset[str]:
        """The questions to leave out, normalised."""
        return frozenset(map(normalised, read_questions(self.leave_out))) if self.leave_out else frozenset()

    def read(
        self, start: Start, how: Reads, reading: Reading, *, lists: Lists | None = None, track: Track = silent
    ) -> Iterator[Pair]:
        """All pairs, files first."""
        unwanted = self.unwanted
        for source, file in enumerate(self.weighted):
            options = {"reads": how, "source": source, "left_out": unwanted, "track": track}
            yield from pairs_of_file(file.path, reading, **options)  # type: ignore[arg-type]
        if self.own and how == "source":
            yield from own_sources(start.store, source=len(self.files), track=track)
        elif self.own:
            yield from own_pairs(start.words, start.store, source=len(self.files), track=track)
        if lists is not None:
            yield from _taught(lists, start, len(self.by_name) - len(self.questions))

    def answers(
        self, index: Index, out: Path, config: TrainConfig, digest: str, *, track: Track = silent
    ) -> Lists | None:
        """The teacher's lists for a run, asked now or before; None without one. BadInput where they teach nothing."""
        if not self.teacher:
            return None
        if not self.questions:
            raise BadInput("a teacher needs questions; give --questions own, or files of JSON lines with a query")
        if config.loss != "softmax" or reads(config.model.encoder) != "fields":
            raise BadInput("a teacher teaches the encoder unif, by the softmax loss; train without --teacher")
        files, folder = [file.path for file in self.questions], out / FOLDER
        return ask(index, self.teacher, files, self.unwanted, folder, digest=digest, seed=config.seed, track=track)

    def words(self, start: Start, encoder: Encoder) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        """(words of the question, words of the code) of every pair, as often as asked for."""
        return ((pair.query, pair.code) for pair in self.read(start, reads(encoder), Reading()))

    def about(self) -> dict[str, object]:
        """For the record."""
        out = str(self.leave_out) if self.leave_out else None
        files = {str(file.path): file.weight for file in self.weighted}
        asked = {str(file.path): file.weight for file in self.questions}
        told: dict[str, object] = {"pairs": files, "own": float(self.own), "leave_out": out}
        told |= {"answers": list(map(str, self.answered))} if self.answered else {}
        return {**told, "teacher": self.teacher, "questions": asked} if self.teacher else told


def _taught(lists: Lists, start: Start, first: int) -> Iterator[Pair]:
    """Every question against the best function of its list, as it is searched; its source is numbered from `first`."""
    spelled = list(start.words.vocabulary)
    for place, (text, source) in enumerate(zip(lists.texts, lists.source.tolist(), strict=True)):
        row = int(lists.rows[place, 0])
        code = [spelled[id] for field in NCS_FIELDS for id in start.words.ids_of(row, field)]
        yield Pair(tokenize(text), code, [normalised(text)], first + source, row=row, taught=place)
