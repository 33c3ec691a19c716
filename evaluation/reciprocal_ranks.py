"""Reciprocal ranks of a ranker's first hits, by questions with answers or by a corpus's qrels, query by query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from corpora import load_corpus
from corpora.ncs287 import read_questions
from evaluation.judged import THRESHOLDS
from evaluation.judges.aroma import judge
from ncs.index import Index
from ncs.search.rankers import Ranker

Ranks = dict[str, dict[str, float]]
"""Column -> query id -> reciprocal rank."""
Judge = Callable[[Ranker], Ranks]
DEPTH = 10
CORPUS_DEPTH = 100


def by_similarity(index: Index, questions: Path) -> Judge:
    """Reciprocal ranks at ten at each threshold, functions only; what was judged once is not judged again."""
    asked, allowed = read_questions(questions), index.functions()
    known: dict[tuple[str, int], float] = {}

    def judged(ranker: Ranker) -> Ranks:
        found: Ranks = {f"at {threshold}": {} for threshold in THRESHOLDS}
        for question in asked:
            rows = [row for row, _ in ranker.search(question.query.text, DEPTH, allowed=allowed)]
            fresh = [row for row in rows if (question.query.id, row) not in known]
            similar = judge(question.answer)
            for row, document in zip(fresh, index.store.documents(fresh), strict=True):
                known[question.query.id, row] = similar(document.code, document.language)
            for threshold in THRESHOLDS:
                right = (at for at, row in enumerate(rows, 1) if known[question.query.id, row] >= threshold)
                found[f"at {threshold}"][question.query.id] = 1 / next(right, np.inf)
        return found

    return judged


def by_qrels(index: Index, name: str, data: Path | None) -> Judge:
    """Reciprocal ranks of the first relevant document among the first CORPUS_DEPTH."""
    corpus = load_corpus(name, data)
    ids = [document.id for document in index.store.documents(range(len(index)))]

    def judged(ranker: Ranker) -> Ranks:
        found: dict[str, float] = {}
        for query in corpus.queries:
            if (grades := corpus.qrels.get(query.id)) is not None:
                hits = enumerate(ranker.search(query.text, CORPUS_DEPTH), 1)
                found[query.id] = 1 / next((at for at, (row, _) in hits if grades.get(ids[row], 0) > 0), np.inf)
        return {"mrr": found}

    return judged
