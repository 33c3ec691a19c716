"""Which share of listed, random and found functions passes each threshold of the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corpora.ncs287 import Question
from evaluation.examples import Example, listed_qrels
from evaluation.judges.aroma import PAPER_THRESHOLD, STRICT_THRESHOLD, judge, passing
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.storage.file_roles import OUTLINES
from ncs.types import Document

THRESHOLDS = (0.1, 0.2, PAPER_THRESHOLD, 0.3, 0.4, 0.5, STRICT_THRESHOLD, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Similarities:
    """How similar functions of each kind are to the answers."""

    listed: Sequence[float]
    """Listed functions as they were listed, one value each."""
    current: Sequence[float]
    """Those that are still there, as they stand at HEAD."""
    random: Sequence[float]
    """Functions drawn from the index, one value for each question."""
    around: Sequence[float]
    """Documents drawn that are no functions (`ncs.storage.file_roles.OUTLINES`); there may be none."""
    bm25: Sequence[float]
    """Functions among the first hits of bm25 for the question, without its listed ones."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Which share of each kind passes a threshold."""

    threshold: float
    listed: float
    current: float
    random: float
    around: float | None
    bm25: float


def measure(
    questions: Sequence[Question],
    examples: Sequence[Example],
    index: Index,
    *,
    draw: int = 3_000,
    seed: int = 0,
    k: int = 10,
    track: Track = silent,
) -> Similarities:
    """Judge listed functions, `draw` documents of the index by every question, and k hits of bm25 a question."""
    answers = {question.query.id: question.answer for question in questions}
    rows = np.random.default_rng(seed).choice(len(index), min(draw, len(index)), replace=False)
    drawn = index.store.documents(np.sort(rows).tolist())
    functions = [document for document in drawn if document.kind not in OUTLINES]
    others = [document for document in drawn if document.kind in OUTLINES]
    found: list[float] = []
    around: list[float] = []
    for question in track(questions, "judging random functions", total=len(questions), unit="questions"):
        found += _similarities(question.answer, functions)
        around += _similarities(question.answer, others)
    listed = listed_qrels(index, examples)
    hits: list[float] = []
    for question in track(questions, "judging hits of bm25", total=len(questions), unit="questions"):
        known = listed.get(question.query.id, {})
        documents = [hit.document for hit in index.search(question.query.text, k, ranker="bm25")]
        others = [document for document in documents if document.kind not in OUTLINES and document.id not in known]
        hits += _similarities(question.answer, others)
    return Similarities(
        [_similarities(answers[example.question], [example.document])[0] for example in examples],
        [_similarities(answers[example.question], [now])[0] for example in examples if (now := example.current)],
        found,
        around,
        hits,
    )


def rates(similarities: Similarities, thresholds: Sequence[float] = THRESHOLDS) -> list[Rates]:
    """The shares that pass; BadInput where there is nothing of one kind."""
    of = similarities
    return [
        Rates(
            threshold,
            passing(of.listed, threshold),
            passing(of.current, threshold),
            passing(of.random, threshold),
            passing(of.around, threshold) if of.around else None,
            passing(of.bm25, threshold),
        )
        for threshold in thresholds
    ]


def _similarities(answer: str, documents: Sequence[Document]) -> list[float]:
    judged = judge(answer)
    return [judged(document.code, document.language) for document in documents]
