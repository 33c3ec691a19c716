"""The default ranker's lists judged by known answers: which functions of an index hold what an answer's code holds.

Who has questions with answers (a Stack Exchange dump) has labels for the functions of any index without asking anybody:
a function answers as far as it holds the structural features of the answer (ncs.search.aroma; Cambronero et al. 2019).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpora.jsonl import parse_row, read_lines
from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.search.aroma import Feature, Features, features, readable
from ncs.search.hybrid import HybridRanker
from ncs.search.pairs import normalised

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from ncs.types import Mask

    Ids = NDArray[np.int32]

DEPTH = 200
"""Functions of a question that are judged: as many as consensus is found among."""
FEWEST = 20
"""Functions below which a list teaches nothing."""
LEAST = 25
"""Features of an answer: what has fewer, as `finish();`, stands in functions of all kinds."""
MOST = 3
"""Answers of a question that are compared, the first of the file; a function counts by the nearest."""
SHARE = 0.25
"""What a function that answers holds of an answer (evaluation.judges.aroma). A list has one, and one that does not."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the code of its answers, each with its language."""

    text: str
    answers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class JudgedList:
    """Of a question the rows of an index, best first, what the default ranker scores them before saturation, and the
    share of an answer that each holds, all [n]."""

    text: str
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    held: NDArray[np.float64]


def read_answers(files: Iterable[Path], left_out: frozenset[str] = frozenset()) -> list[Asked]:
    """The questions of JSON lines with query, code and language, in the order of the files, answers of LEAST features
    only. left_out: normalised questions. Raises BadInput for a file that cannot be read, and for a bad line."""
    texts: dict[str, str] = {}
    answers: dict[str, dict[tuple[str, str], None]] = {}
    for path in files:
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            row = parse_row(line, f"{path}:{number}")
            text, code, language = row.text("query"), row.text("code"), row.text("language", "")
            key = normalised(text)
            if not key or key in left_out or not readable(language):
                continue
            if len(found := answers.setdefault(key, {})) < MOST:
                texts.setdefault(key, text)
                if sum(features(code, language).values()) >= LEAST:
                    found[code, language] = None
    return [Asked(texts[key], tuple(found)) for key, found in answers.items() if found]


def judged_lists(index: Index, questions: Sequence[Asked], *, track: Track = silent) -> list[JudgedList]:
    """What the default ranker finds without a head, judged; lists that teach nothing are left out. About 20
    milliseconds a question. Raises BadInput for an index without code, and where nothing is left."""
    if not index.manifest.config.get("store_code", True):
        raise BadInput(f"{index.folder} keeps no code to judge; build it without --no-store-code")
    ranker, allowed = index.fitted("hybrid", head=0.0, fold=False), index.functions()
    assert isinstance(ranker, HybridRanker)
    judge = _Judge(index, questions)
    found = (_judged(ranker, judge, each, allowed) for each in track(questions, "judging", unit="questions"))
    kept = [each for each in found if each is not None]
    if not kept:
        raise BadInput(f"no list of {len(questions)} questions holds both what answers and what does not; give others")
    return kept


def _judged(ranker: HybridRanker, judge: _Judge, question: Asked, allowed: Mask) -> JudgedList | None:
    ranking = ranker.rank(question.text, DEPTH, allowed=allowed)
    if len(ranking.rows) < FEWEST:
        return None
    held = judge.held(ranking.rows, question)
    if (held >= SHARE).all() or not (held >= SHARE).any():
        return None
    scores = np.array(ranking.scores) / np.maximum(ranking.factors["saturation"], 1e-9)
    return JudgedList(question.text, np.array(ranking.rows, np.int64), scores, held)


class _Judge:
    """Functions are read once; of each the features that any answer has are kept, by number, some 300 bytes."""

    def __init__(self, index: Index, questions: Sequence[Asked]) -> None:
        self._store = index.store
        self._rows: dict[int, tuple[Ids, Ids]] = {}
        self._numbers: dict[Feature, int] = {}
        for question in questions:
            for code, language in question.answers:
                for feature in features(code, language):
                    self._numbers.setdefault(feature, len(self._numbers))

    def held(self, rows: Sequence[int], question: Asked) -> NDArray[np.float64]:
        """The share of the nearest answer that each row's function holds (ncs.search.aroma.similarity), [len(rows)]."""
        fresh = [row for row in rows if row not in self._rows]
        for row, document in zip(fresh, self._store.documents(fresh), strict=True):
            own = features(document.code, document.language) if readable(document.language) else {}
            self._rows[row] = self._known(own)
        best = np.zeros(len(rows))
        wanted = np.zeros(len(self._numbers), np.int32)
        for code, language in question.answers:
            ids, counts = self._known(features(code, language))
            wanted[ids] = counts
            shared = [np.minimum(wanted[own], times).sum() for own, times in map(self._rows.__getitem__, rows)]
            best = np.maximum(best, np.array(shared) / max(1, int(counts.sum())))
            wanted[ids] = 0
        return best

    def _known(self, own: Features) -> tuple[Ids, Ids]:
        """Numbers and counts of those features that an answer has."""
        known = [(number, count) for each, count in own.items() if (number := self._numbers.get(each)) is not None]
        ids, counts = np.array(known, np.int32).reshape(-1, 2).T
        return ids, counts
