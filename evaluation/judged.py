"""Questions whose hits a judge decides: Answered@k and MRR at the paper's threshold and strictly."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corpora.ncs287 import Question
from evaluation.asking import Asked, System, fitted
from evaluation.journal import Answer, Journal, Key
from evaluation.judges.aroma import PAPER_THRESHOLD, STRICT_THRESHOLD, VERSION, judge
from evaluation.metrics import evaluate
from ncs.errors import BadInput
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker
from ncs.types import Qrels

THRESHOLDS = (STRICT_THRESHOLD, PAPER_THRESHOLD)
MEASURES = ("mrr@10", "answered@1", "answered@5", "answered@10")


@dataclass(frozen=True, slots=True)
class Judged:
    """One system's hits on all questions, with the similarity of each to its answer."""

    system: System
    asked: Asked
    similarities: Mapping[str, Mapping[str, float]]
    """query id -> document id -> similarity."""

    def qrels(self, threshold: float) -> Qrels:
        """The judge's decisions as qrels over the hits; a question none of whose hits passes stays judged."""
        return {
            query: {document: int(value >= threshold) for document, value in values.items()}
            for query, values in self.similarities.items()
        }

    def values(self, measure: str, threshold: float) -> dict[str, float]:
        """query id -> value of a measure."""
        return dict(evaluate(self.qrels(threshold), self.asked.run, measure))


def judge_system(
    index: Index,
    system: System,
    questions: Sequence[Question],
    *,
    k: int = 10,
    journal: Journal | None = None,
    track: Track = silent,
    stage: str = "",
) -> Judged:
    """Ask every question, judge the first k hits; what the journal holds is not asked again.

    Raises BadInput for an index without code, in which nothing can be judged.
    """
    if not index.manifest.config.get("store_code", True):
        raise BadInput(f"{index.folder} holds no code to judge; build it without --no-store-code")
    journal = Journal(None) if journal is None else journal
    ranker, fit_seconds = fitted(index, system)
    ranker.search(questions[0].query.text, 1)  # open the files before the clock runs
    identity = index_identity(index)
    answers = {}
    for question in track(questions, stage or f"judging {system.name}", total=len(questions), unit="questions"):
        key = _key(identity, system, question, k)
        if (answer := journal.get(key)) is None:
            answer = _answer(index, ranker, question, k)
            journal.add(key, answer)
        answers[question.query.id] = answer
    run = {query: {id: score for id, score, _ in answer.hits} for query, answer in answers.items()}
    similarities = {query: {id: similar for id, _, similar in answer.hits} for query, answer in answers.items()}
    milliseconds = [answer.milliseconds for answer in answers.values()]
    return Judged(system, Asked(ranker, fit_seconds, run, milliseconds), similarities)


def index_identity(index: Index) -> str:
    """What tells an index from every other build: a digest of its manifest."""
    return hashlib.blake2b(index.manifest.to_json().encode(), digest_size=16).hexdigest()


def _key(identity: str, system: System, question: Question, k: int) -> Key:
    text = f"{VERSION}\0{question.query.text}\0{question.answer}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).hexdigest()
    return Key(identity, system.name, question.query.id, digest, k)


def _answer(index: Index, ranker: Ranker, question: Question, k: int) -> Answer:
    start = time.perf_counter()
    rows = ranker.search(question.query.text, k, allowed=index.functions())
    documents = index.store.documents([row for row, _ in rows])
    milliseconds = round(1000 * (time.perf_counter() - start), 3)
    similar = judge(question.answer)
    hits = tuple(
        (document.id, float(score), similar(document.code, document.language))
        for document, (_, score) in zip(documents, rows, strict=True)
    )
    return Answer(hits, milliseconds)
