"""NCS's post-ranking (Sachdev et al. 2018): a ranker's first 500 documents sorted by what they are and contain."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput, IndexDamaged
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, create_part, save_part, statistics_of
from ncs.storage.words import Words
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordReader, WordTable
    from ncs.types import Document, Mask

DEPTH = 500
"""How many documents of a ranking are sorted, as published."""
LEAST_LINES, LEAST_TOKENS = 3, 10
HIGHEST = 63
"""The grade that meets all six keys."""
BATCH = 1000  # documents read at a time
_TYPED = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the six keys ask of some documents, one number a document, in the order of the ranking."""

    lines: NDArray[np.int64]
    tokens: NDArray[np.int64]
    words: NDArray[np.int64]
    """How many of the question's words it contains."""
    spellings: NDArray[np.int64]
    """How many of the question's tokens it contains as they were typed, not split."""


def grades(facts: Facts, n: int, m: int) -> NDArray[np.int64]:
    """The six keys of each document as one number from 0 to 63; a more important key is a higher bit.

    From the least important one: at least 3 lines; at least 10 tokens; n-1 of the question's n words; all n; m-1 of
    its m tokens as typed; all m (Sachdev et al. 2018, post-ranking). A question without words or tokens tells no
    document from another by them.
    """
    keys = (
        facts.lines >= LEAST_LINES,
        facts.tokens >= LEAST_TOKENS,
        facts.words >= n - 1,
        facts.words >= n,
        facts.spellings >= m - 1,
        facts.spellings >= m,
    )
    weights = 1 << np.arange(len(keys))
    graded: NDArray[np.int64] = np.stack(keys, axis=1).astype(np.int64) @ weights
    return graded


def postrank(rows: NDArray[np.int64], grade: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows by grade, highest first; rows of one grade keep the order of the ranking.

    >>> postrank(np.array([7, 2, 9, 4]), np.array([1, 63, 1, 63])).tolist()
    [2, 4, 7, 9]
    """
    return rows[np.argsort(-grade, kind="stable")]


def added(scores: NDArray[np.float64], grade: NDArray[np.int64], weight: float) -> NDArray[np.float64]:
    """The keys as features instead of a sort: scores over the best of them, and weight times the share of the grade.

    scores: of a ranking, best first, so a far better match stays above one that meets more keys.

    >>> added(np.array([4.0, 2.0]), np.array([0, 63]), 0.25).tolist()
    [1.0, 0.75]
    """
    best = max(float(scores[0]), 1e-9) if len(scores) else 1.0
    return scores / best + weight * grade / HIGHEST


class PostrankRanker(Ranker):
    """The first `depth` documents of `part`, sorted by the six keys of `grades`; the others follow.

    The words of a question and of a document are those NCS reads; a document's tokens as typed are what stands in the
    same fields between white space and punctuation, case aside. With stop_words=False a question's grammar counts for
    neither: few functions contain `how` and `do`. A score is the grade (0 to 63) plus 1 / (1 + rank before).
    An index without code knows no spellings; the last two keys then tell nothing.
    soft: above 0 the keys do not sort, they add: the part's score over its best, and soft times grade / 63.
    Its folder holds `lines.npy`, the spellings and `config.json`; the part's own files are in the data folder.
    """

    def __init__(
        self,
        name: str = "ncs_postrank",
        *,
        part: str = "ncs",
        depth: int = DEPTH,
        stop_words: bool = False,
        soft: float = 0.0,
    ) -> None:
        self.name = name
        self._configure(part, depth, stop_words, soft)
        self._words: WordReader | None = None
        self._lines: NDArray[np.int32] = np.zeros(0, np.int32)
        self._spellings = _Spellings.of([])

    def _configure(self, part: str, depth: int, stop_words: bool, soft: float) -> None:
        if depth < 1:
            raise BadInput(f"depth is {depth}; it must be at least 1")
        if not 0 <= soft < float("inf"):
            raise BadInput(f"soft is {soft}; it must be 0, which sorts, or more")
        self.part, self.depth, self.stop_words, self.soft = create_part(part), depth, stop_words, soft
        self.config: Mapping[str, object] = {"part": part, "depth": depth, "stop_words": stop_words, "soft": soft}

    def fit(self, words: WordTable, embeddings: Embeddings, *, track: Track = silent) -> None:
        """Fit the part."""
        self.part.fit(words, embeddings, track=track)
        self._words = words

    def fit_documents(self, documents: DocumentTable, *, track: Track = silent) -> None:
        """Note the lines and spellings of every document."""
        lines, batches = array("i"), range(0, len(documents), BATCH)

        def spelled() -> Iterator[set[str]]:
            for start in track(batches, self.name, total=len(batches), unit="batches"):
                for document in documents.documents(range(start, min(start + BATCH, len(documents)))):
                    lines.append(document.end_line - document.start_line + 1)
                    yield _spellings(document)

        self._spellings = _Spellings.of(spelled())
        self._lines = np.array(lines, np.int32)

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows by (-score, row); raises BadInput for k < 1."""
        if k < 1:
            raise BadInput(f"asked for {k} hits; ask for 1 or more")
        if self._words is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit and fit_documents, or load first")
        ranking = self.part.search(text, max(k, self.depth), allowed=allowed)
        rows = np.array([row for row, _ in ranking], np.int64)
        grade = np.zeros(len(rows), np.int64)
        grade[: self.depth] = self._grades(self._words, text, rows[: self.depth])
        if self.soft:
            score = added(np.array([score for _, score in ranking]), grade, self.soft)
            order = np.lexsort((rows, -score))
        else:
            score = grade + 1 / (2 + np.arange(len(rows)))
            order = postrank(np.arange(len(rows)), grade)
        return [(int(rows[at]), float(score[at])) for at in order[:k].tolist()]

    def _grades(self, words: WordReader, text: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        asked, typed = tokenize(text), _TYPED.findall(text.lower())
        if not self.stop_words:
            asked, typed = content_words(asked), content_words(typed)
        ids, offsets = words.select_rows(NCS_FIELDS, rows)
        facts = Facts(
            lines=self._lines[rows].astype(np.int64),
            tokens=np.diff(offsets),
            words=_contained(set(asked), words.vocabulary, ids, offsets),
            spellings=_contained(set(typed), self._spellings.vocabulary, *self._spellings.select(rows)),
        )
        return grades(facts, len(set(asked)), len(set(typed)))

    def save(self, statistics: Path, segment: Path) -> None:
        """The configuration; lines and spellings of documents; and the part where it is not there yet."""
        for folder in (statistics / self.name, segment / self.name):
            folder.mkdir(parents=True, exist_ok=True)
        save_part(self.part, statistics, segment)
        np.save(segment / self.name / "lines.npy", self._lines)
        self._spellings.save(segment / self.name)
        path = statistics / self.name / "config.json"
        path.write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    def load(self, snapshot: Snapshot) -> None:
        """Raises BadInput where it was not built, IndexDamaged where files are missing or do not fit each other."""
        folder, own = statistics_of(snapshot, self.name), snapshot.segments[0].path / self.name
        try:
            config = json.loads((folder / "config.json").read_bytes())
            lines = np.asarray(np.load(own / "lines.npy", mmap_mode="r", allow_pickle=False))
            spellings = _Spellings.load(own)
            self._configure(config["part"], int(config["depth"]), bool(config["stop_words"]), float(config["soft"]))
        except (OSError, EOFError, ValueError, TypeError, KeyError, BadInput) as error:
            raise IndexDamaged(f"cannot read {folder} ({error}); build the index again") from error
        if not len(snapshot) == len(lines) == len(spellings.offsets) - 1:
            raise IndexDamaged(f"the files in {own} do not fit the documents; build the index again")
        self.part.load(snapshot)
        self._words, self._lines, self._spellings = Words(snapshot), lines, spellings


def _spellings(document: Document) -> set[str]:
    """What stands in the fields that NCS reads, between white space and punctuation, in lower case."""
    texts = (text for name in NCS_FIELDS for text in document.words.get(name, ()))
    return set(_TYPED.findall(" ".join(texts).lower()))


@dataclass(frozen=True, slots=True)
class _Spellings:
    """Which spellings stand in which document: those of row r are ids[offsets[r] : offsets[r + 1]]."""

    vocabulary: Vocabulary
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, documents: Iterable[set[str]]) -> _Spellings:
        """From the spellings of each document, taken one after the other."""
        met: dict[str, int] = {}
        ids, offsets = array("i"), array("q", [0])
        for spellings in documents:
            ids.extend(met.setdefault(each, len(met)) for each in sorted(spellings))
            offsets.append(len(ids))
        vocabulary, number = Vocabulary.of(met), np.zeros(len(met), np.int32)
        number[[met[each] for each in vocabulary]] = np.arange(len(met))
        return cls(vocabulary, number[np.frombuffer(ids, np.intc)], np.array(offsets, np.int64))

    def select(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of some rows, joined, and where each row's begin."""
        found = [self.ids[self.offsets[row] : self.offsets[row + 1]] for row in rows.tolist()]
        offsets = np.cumsum([0, *map(len, found)])
        return np.concatenate([np.zeros(0, np.int32), *found]), offsets

    def save(self, room: Path) -> None:
        self.vocabulary.save(room)
        np.save(room / "ids.npy", self.ids)
        np.save(room / "offsets.npy", self.offsets)

    @classmethod
    def load(cls, room: Path) -> _Spellings:
        ids, offsets = (np.load(room / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ("ids", "offsets"))
        return cls(Vocabulary.load(room), np.asarray(ids), np.asarray(offsets))


def _contained(
    words: set[str], vocabulary: Vocabulary, ids: NDArray[np.int32], offsets: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many of the words each document contains."""
    count = np.zeros(len(offsets) - 1, np.int64)
    owner = np.repeat(np.arange(len(count)), np.diff(offsets))
    for id in map(vocabulary.id, words):
        if id is not None:
            there = np.zeros(len(count), np.bool_)
            there[owner[ids == id]] = True
            count += there
    return count
