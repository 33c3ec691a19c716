"""Questions whose hits a judge decides: Answered@k and MRR at the paper's threshold and strictly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from corpora.ncs287 import Question
from evaluation.judges.aroma import PAPER_THRESHOLD, STRICT_THRESHOLD, judge
from evaluation.metrics import evaluate
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.types import Qrels, Run

THRESHOLDS = (STRICT_THRESHOLD, PAPER_THRESHOLD)
MEASURES = ("mrr@10", "answered@1", "answered@5", "answered@10")


@dataclass(frozen=True, slots=True)
class Judged:
    """One ranker's hits on all questions, with the similarity of each to its answer."""

    ranker: str
    run: Run
    similarities: dict[str, dict[str, float]]
    """query id -> document id -> similarity."""
    seconds: list[float] = field(default_factory=list)
    """Seconds a query, without the judging."""

    def qrels(self, threshold: float) -> Qrels:
        """The judge's decisions as qrels over the hits; a question none of whose hits passes stays judged."""
        return {
            query: {document: int(value >= threshold) for document, value in values.items()}
            for query, values in self.similarities.items()
        }

    def values(self, measure: str, threshold: float) -> dict[str, float]:
        """query id -> value of a measure."""
        return dict(evaluate(self.qrels(threshold), self.run, measure))


def judge_ranker(
    index: Index, questions: Sequence[Question], ranker: str, *, k: int = 10, track: Track = silent
) -> Judged:
    """Ask every question, judge the first k hits."""
    judged = Judged(ranker, {}, {})
    run: dict[str, dict[str, float]] = {}
    index.search(questions[0].query.text, 1, ranker=ranker)  # open the files before the clock runs
    for question in track(questions, f"judging {ranker}", total=len(questions), unit="questions"):
        start = time.perf_counter()
        hits = index.search(question.query.text, k, ranker=ranker)
        judged.seconds.append(time.perf_counter() - start)
        similar = judge(question.answer)
        run[question.query.id] = {hit.document.id: hit.score for hit in hits}
        judged.similarities[question.query.id] = {hit.document.id: similar(hit.document.code) for hit in hits}
    return Judged(ranker, run, judged.similarities, judged.seconds)
