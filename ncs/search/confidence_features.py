"""What of each hit tells how probable it is that it is right: `ncs.learn.confidence.TRAITS`, for the default ranker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from ncs.errors import BadInput
from ncs.learn.confidence import TRAITS, lead
from ncs.search.bm25 import Bm25Ranker
from ncs.search.ncs import NcsRanker
from ncs.search.signals import naming
from ncs.storage.document_facts import Structure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.hybrid import HybridRanker
    from ncs.search.ranking import Hidden, Ranking
    from ncs.types import Mask

    Scores = NDArray[np.float64]


def sure_ranking(
    ranker: HybridRanker, text: str, k: int, *, allowed: Mask | None = None, fold: bool = False
) -> tuple[Ranking, list[float]]:
    """`HybridRanker.rank`, and how probable it is that each hit is right.

    One hit more is ranked and cut off: how far the last one is ahead must not hang on k. Raises BadInput for k < 1.
    """
    if k < 1:
        raise BadInput(f"asked for {k} hits; ask for 1 or more")
    longer = ranker.rank(text, k + 1, allowed=allowed, fold=fold)
    signals, factors = ({name: each[:k] for name, each in of.items()} for of in (longer.signals, longer.factors))
    ranking = replace(longer, rows=longer.rows[:k], scores=longer.scores[:k], signals=signals, factors=factors)
    return ranking, probabilities(ranker, longer)[:k].tolist()


def probabilities(ranker: HybridRanker, ranking: Ranking) -> Scores:
    """How probable it is that each hit of a ranking is right, by what the index has learnt, [hits]."""
    return ranker.learnt.model.probabilities(traits(ranker, ranking))


def traits(ranker: HybridRanker, ranking: Ranking, *, hidden: Hidden | None = None) -> Scores:
    """[hits, len(TRAITS)] of a ranking of this ranker, in its order."""
    if not ranking.rows:
        return np.zeros((0, len(TRAITS)))
    rows, words = np.array(ranking.rows, np.int64), list(ranking.intent.words)
    postings = cast(Bm25Ranker, ranker.rankers[0]).postings
    dense = cast(NcsRanker, ranker.rankers[1])
    idf = postings.idf(words)
    total = max(sum(idf.values()), 1e-9)
    mass = total / float(np.log1p(2 * len(postings)))
    coverage, strength = np.zeros(len(rows)), np.zeros(len(rows))
    for stem, id in {term.stem: term.id for term in postings.terms(words) if term.id is not None}.items():
        impacts = postings.scores([id], rows)
        coverage += (impacts > 0) * idf[stem] / total
        strength += impacts / total
    query = dense.encoder.query(" ".join(words))
    meaning = np.maximum(dense.index.similarities(query, rows), 0).astype(np.float64)
    structure = cast(Structure, ranker.structure)
    name = naming.agreement(structure.words, rows, idf, structure.stems)
    if hidden:
        here = rows == hidden.row
        coverage[here], meaning[here] = hidden.coverage, max(hidden.meaning, 0.0)
        strength[here] = min(hidden.plain / total, hidden.coverage)
        name[here] = name[here] if hidden.name is None else hidden.name
    weight = ranker.weights.definition
    definition = ranking.signals["definition"] / weight if weight else np.zeros(len(rows))
    scores = np.array(ranking.scores)
    held, evidence = coverage**3 * (1 - np.exp(-mass / 3)), 1 - np.exp(-strength * mass / 2)
    share = scores / scores[0]
    return np.column_stack([held, evidence, strength, meaning, name, definition, share, lead(ranking.scores)])
