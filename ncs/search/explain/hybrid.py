"""Why the default ranker puts a document where it does: the share of every signal, and what stands behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ncs.errors import BadInput
from ncs.search.bm25 import Bm25Ranker
from ncs.search.confidence_features import sure_ranking
from ncs.search.explain.explanation import Explanation, Gates, Met, Reasons, Used
from ncs.search.explain.meeting import adding_up, cosine_shares, distinct, lexical_shares, meet
from ncs.search.ncs import NcsRanker
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.hybrid import HybridRanker
    from ncs.search.question import Intent
    from ncs.search.ranking import Evidence, Ranking
    from ncs.storage.definitions import Symbol
    from ncs.storage.document_facts import Structure
    from ncs.types import Mask


class _Parts(NamedTuple):
    lexical: Bm25Ranker
    dense: NcsRanker
    structure: Structure


def explain_hybrid(
    ranker: HybridRanker, text: str, k: int, *, allowed: Mask | None = None, unfold: bool = False
) -> Explanation:
    """The hits of `ranker.rank`, each with its reasons. Raises BadInput as `rank` does."""
    ranking, sure = sure_ranking(ranker, text, k, allowed=allowed, fold=ranker.fold and not unfold)
    parts = _parts(ranker)
    intent = ranking.intent
    content = content_words(tokenize(text))
    grammar = [word for word in dict.fromkeys(tokenize(text)) if word not in content]
    reasons = [
        Reasons(row, score, _shares(ranking, at), _factors(ranking, at), sure[at])
        for at, (row, score) in enumerate(zip(ranking.rows, ranking.scores, strict=True))
    ]
    return Explanation(
        words=tuple(dict.fromkeys(intent.words)),
        grammar=tuple(grammar),
        languages=tuple(word for word in dict.fromkeys(content) if word not in intent.words),
        symbols=tuple(map(_spelled, intent.symbols)),
        added=ranking.added,
        kind=intent.kind,
        gates=_gates(ranking.evidence, parts.structure) if ranking.evidence else None,
        reasons=tuple(_with_causes(reasons, ranking, parts, ranker)),
    )


def _parts(ranker: HybridRanker) -> _Parts:
    lexical, dense = ranker.rankers
    if not isinstance(lexical, Bm25Ranker) or not isinstance(dense, NcsRanker) or ranker.structure is None:
        raise BadInput(f"ranker {ranker.name!r} is empty; call load first")
    return _Parts(lexical, dense, ranker.structure)


def _spelled(symbol: Symbol) -> str:
    return ".".join((*symbol.qualifiers, symbol.name))


def _shares(ranking: Ranking, at: int) -> dict[str, float]:
    """What every signal adds to a score."""
    factor = float(np.prod(list(_factors(ranking, at).values())))
    return {name: float(values[at]) * factor for name, values in ranking.signals.items()}


def _factors(ranking: Ranking, at: int) -> dict[str, float]:
    return {name: float(values[at]) for name, values in ranking.factors.items()}


def _gates(evidence: Evidence, structure: Structure) -> Gates:
    owners = structure.places.repository[structure.places.file[evidence.pool]]
    agreed = evidence.agreed
    counts = (len(owners), len(np.unique(owners)), 1 / evidence.inside)
    return Gates(*counts, float(agreed.support), float(agreed.gate), float(evidence.inside))


def _with_causes(reasons: Sequence[Reasons], ranking: Ranking, parts: _Parts, ranker: HybridRanker) -> list[Reasons]:
    """The reasons with words, names, file and definition filled in."""
    intent, rows = ranking.intent, np.array(ranking.rows, np.int64)
    asked = parts.lexical.postings.idf(list(intent.words))
    columns, cosines = cosine_shares(" ".join(intent.words), parts.dense.encoder, parts.dense.index, rows)
    repositories = _repositories(ranking.evidence, parts.structure)
    titles = _titles(rows, asked, ranking, ranker, parts.structure)
    counts = ranker.wording(intent.words).asked
    found = []
    for at, one in enumerate(reasons):
        title, share = titles[at]
        found.append(
            replace(
                one,
                words=tuple(_words(one, intent, parts, asked, counts, {s: cosines[at, i] for s, i in columns.items()})),
                names=tuple(_names(one, ranking.evidence, parts.structure, repositories)),
                title=title,
                title_share=share,
                defines=tuple(_defines(one, intent, parts.structure)),
            )
        )
    return found


def _words(
    one: Reasons,
    intent: Intent,
    parts: _Parts,
    asked: Mapping[str, float],
    counts: Mapping[int, float],
    cosines: Mapping[str, float],
) -> list[Met]:
    """The words that the row met, with their shares of the lexical and the meaning signal."""
    shares, stems = one.shares or {}, list(distinct(intent.words))
    lexical = lexical_shares(intent.words, parts.lexical.postings, one.row, counts)
    both = {
        "lexical": adding_up(np.array([lexical[stem] for stem in stems]), shares.get("lexical", 0.0)),
        "meaning": adding_up(np.array([cosines.get(stem, 0.0) for stem in stems]), shares.get("meaning", 0.0)),
    }
    return [
        replace(met, idf=asked[stem], shares={name: float(values[at]) for name, values in both.items()})
        for at, (stem, met) in enumerate(
            zip(stems, meet(intent.words, parts.structure.words, one.row, parts.dense.encoder), strict=True)
        )
    ]


def _repositories(evidence: Evidence | None, structure: Structure) -> NDArray[np.int64]:
    """How many repositories among the candidates use each of the leading names, [names]."""
    if evidence is None or not len(evidence.agreed.names):
        return np.zeros(0, np.int64)
    ids, lengths = structure.references.of(evidence.pool)
    owners = np.repeat(structure.places.repository[structure.places.file[evidence.pool]], lengths)
    return np.array([len(np.unique(owners[ids == name])) for name in evidence.agreed.names], np.int64)


def _names(
    one: Reasons, evidence: Evidence | None, structure: Structure, repositories: NDArray[np.int64]
) -> list[Used]:
    """The leading names that the row uses; their shares add up to the consensus signal's."""
    if evidence is None or not (total := (one.shares or {}).get("consensus", 0.0)):
        return []
    used, _ = structure.references.of(np.array([one.row], np.int64))
    at = np.flatnonzero(np.isin(evidence.agreed.names, used))
    shares = adding_up(evidence.agreed.lifts[at], total)
    name = structure.references.names.word
    return [
        Used(name(int(evidence.agreed.names[i])), int(repositories[i]), float(share))
        for i, share in zip(at.tolist(), shares, strict=True)
    ]


def _titles(
    rows: NDArray[np.int64], asked: Mapping[str, float], ranking: Ranking, ranker: HybridRanker, structure: Structure
) -> list[tuple[tuple[str, ...], float]]:
    """Of each row the words of the question that its file's name says, and what they add to the score."""
    if ranking.evidence is None:
        return [((), 0.0)] * len(rows)
    places = structure.places
    files = places.file[rows]
    words = distinct(ranking.intent.words)
    said = np.array([places.title_match({stem: 1.0}, files) > 0 for stem in words], np.bool_)
    factors = np.prod(list(ranking.factors.values()), axis=0)
    shares = ranking.evidence.inside * ranker.weights.title * places.title_match(asked, files) * factors
    return [
        (tuple(word for word, met in zip(words.values(), said[:, at], strict=True) if met), float(shares[at]))
        for at in range(len(rows))
    ]


def _defines(one: Reasons, intent: Intent, structure: Structure) -> list[str]:
    """Names spelled in the question that the row defines, where that counts."""
    if not (one.shares or {}).get("definition", 0.0):
        return []
    return [_spelled(symbol) for symbol in intent.symbols if one.row in structure.symbols.match(symbol)[0]]
