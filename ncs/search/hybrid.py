"""The default ranker `hybrid`: lexical and dense scores, and signals computed from the best candidates.

The score of a document is the sum of its signals, times its factors, times a saturation factor for further hits of the
same file:

    lexical     BM25, divided by the best document's; words that are never in code count less (ncs.search.expansion)
    spelling    BM25 of other spellings of the query's words
    meaning     cosine to the query, if positive
    learnt      z-score by the learned head, in an index that has one (signals.head)
    name        overlap of its name and the query
    definition  it defines a symbol of the query
    proximity   words that are neighbors in the query are near each other in it (signals.proximity)
    consensus   it uses the names that many good candidates of many repositories use (signals.consensus)
    file        its file is named like the query, and has other good candidates

Proximity and file count by 1 / the effective number of repositories among the candidates, consensus by a gate that
opens with that number. The candidates decide, not a setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, check_k
from ncs.learn.confidence import Calibration
from ncs.search import candidates
from ncs.search.candidates import Candidates, Parts
from ncs.search.confidence_features import confidence_features
from ncs.search.expansion import PROSE, SPELLING, Expansion, expand
from ncs.search.question import Kind, read_intent
from ncs.search.rankers import Internals, Ranker, load_ranker
from ncs.search.ranking import AblatedScores, QueryAnalysis, Ranking
from ncs.search.signals import consensus, naming, priors, proximity, saturation
from ncs.search.signals.head import NAME, HeadSignal, HeadVectors, weight_of
from ncs.storage.document_facts import DocumentFacts
from ncs.text.spelling import WordList
from ncs.text.stems import stem_all
from ncs.text.tokens import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.snapshot import Snapshot
    from ncs.types import Mask

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

HEAD = 400
"""Candidates whose signals are computed."""
CODE = 0.5
"""Factor of `meaning` for queries that are code, where half of the words are variables, which vectors ignore."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the signals, relative to 1 for the lexical one; 0 turns a signal off. `ncs tune` fits them to an
    index.
    """

    meaning: float = 0.75
    naming: float = 0.1
    definition: float = 1.0
    consensus: float = 2.5
    title: float = 0.8
    neighbours: float = 0.5
    head: float = 0.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Other parameters of the ranking, which are not tuned.

    spelling, prose: of ncs.search.expansion; 0 and 1 turn them off. proximity: its weight; 0 turns it off.
    role, outline, body, unfinished, saturation: factors, of signals.priors and signals.saturation; 1 turns each off.
    fold: whether near duplicates are folded. calibrated: whether tuned weights are used.
    """

    spelling: float = SPELLING
    prose: float = PROSE
    proximity: float = 0.05
    role: float = priors.ROLE
    outline: float = priors.OUTLINE
    body: float = priors.BODY
    unfinished: float = priors.UNFINISHED
    saturation: float = saturation.SATURATION
    fold: bool = True
    calibrated: bool = True


DEFAULTS, STANDARD = Weights(), Settings()


class HybridRanker(Ranker):
    """Its parts are a Bm25Ranker and a NcsRanker, fitted and saved under their own names; it owns no data.

    options: fields of Weights and Settings. head: the weight of a learned head; None: as determined at the build.
    """

    OPTIONS = ("parts", *(each.name for each in (*fields(Weights), *fields(Settings))))

    def __init__(
        self,
        name: str = "hybrid",
        *,
        parts: Sequence[str] = ("bm25", "ncs_centred"),
        head: float | None = None,
        **options: Any,
    ) -> None:
        if name in parts or len(parts) != 2:
            raise BadInput(f"ranker {name!r} wants two parts, a lexical and a dense one, not {', '.join(parts)}")
        self.name, self.parts, self._head_option = name, tuple(parts), head
        weights = {each.name: options.pop(each.name) for each in fields(Weights) if each.name in options}
        self.weights, self.settings = Weights(**weights, head=head or 0.0), Settings(**options)
        self.config: Mapping[str, object] = self._config()
        self.calibration = Calibration()
        self._open: Parts | None = None
        self._vocabulary: list[str] = []

    @property
    def open_parts(self) -> Parts:
        """The parts; raises BadInput before `open` or `load`."""
        if self._open is None:
            raise BadInput(f"ranker {self.name!r} is empty; call load first")
        return self._open

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows, by (-score, row); raises BadInput for k < 1."""
        return self.rank(text, k, allowed=allowed, fold=True).hits

    def rank(
        self,
        text: str,
        k: int,
        *,
        allowed: Mask | None = None,
        fold: bool = False,
        confidences: bool = False,
        ablated: AblatedScores | None = None,
    ) -> Ranking:
        """`search`, with the signals of every hit. ablated: a document that is scored without one of its fields."""
        check_k(k)
        n = k + 1 if confidences else k  # one more hit, so that the lead of the last one does not depend on k
        parts, facts = self.open_parts, self.open_parts.facts
        intent = read_intent(text, facts.languages)
        weights, settings = of_kind(self.weights, self.settings, intent.kind)
        expansion = self._expand(intent.words, settings)
        postings = parts.lexical.postings
        analysis = QueryAnalysis(intent, expansion, postings.idf(list(intent.words)), len(postings))
        pool = candidates.find(
            parts, intent, expansion, max(n, HEAD),
            meaning=weights.meaning, head=weights.head, allowed=allowed, ablated=ablated,
        )  # fmt: skip
        ranking = Ranking([], [])
        if len(pool):
            signals_only = self._score_signals(analysis, pool, text, weights, settings, ablated)
            ranking = _best(replace(signals_only, folded=fold and settings.fold), facts, n, factor=settings.saturation)
        rows = np.array(ranking.rows, np.int64)
        stems = dict.fromkeys(term.stem for term in expansion.terms if term.documents)
        impacts = {stem: postings.scores({stem: 1.0}, rows) for stem in stems}
        ranking = replace(ranking, analysis=analysis, words=intent.words, added=expansion.words, impacts=impacts)
        if not confidences:
            return ranking
        probabilities = self.calibration.model.probabilities(confidence_features(ranking, ablated))
        return replace(ranking, confidences=probabilities.tolist()).at(range(min(k, len(rows))))

    def _score_signals(
        self,
        analysis: QueryAnalysis,
        pool: Candidates,
        text: str,
        weights: Weights,
        settings: Settings,
        ablated: AblatedScores | None,
    ) -> Ranking:
        """The signals and factors of all candidates, ordered by words and meaning, without scores."""
        parts, facts = self.open_parts, self.open_parts.facts
        base = pool.base(weights.meaning)  # without the head, whose top documents are too alike to vote
        order = np.argsort(-base, kind="stable")
        pool, base, best = pool.at(order), base[order], max(float(pool.lexical.max()), 1e-9)
        rows, intent, idf = pool.rows, analysis.intent, analysis.idf
        evidence = consensus.gather(facts, rows, base)
        inside = evidence.inside
        words, stems, uses = facts.words, facts.words.stems, facts.uses
        name = naming.agreement(words, rows, idf, stems)
        directed = name + naming.DIRECTION * naming.direction(words, rows, tokenize(text), stems)
        if ablated and ablated.name is not None:
            name[rows == ablated.row] = directed[rows == ablated.row] = ablated.name
        features = {
            "meaning": np.maximum(pool.meaning, 0.0),
            "name": name,
            "definition": naming.definition(facts.definitions, intent, rows, inside),
        }
        titles = {"title": weights.title, "neighbors": weights.neighbours}
        signals = {
            "lexical": (pool.lexical - pool.spelling) / best,
            "spelling": pool.spelling / best,
            "meaning": weights.meaning * features["meaning"],
            **({"learnt": weights.head * pool.head_values} if parts.head else {}),
            "consensus": consensus.consensus_signal(evidence, uses, rows, weights.consensus),
            "file": consensus.file_signal(evidence, facts.file_roles, idf, rows, base, **titles),
            "name": weights.naming * directed,
            "definition": weights.definition * features["definition"],
        }
        if settings.proximity:
            pair_score = proximity.agreement(words, stems, rows, stem_all(intent.words), idf)
            signals["proximity"] = settings.proximity * inside * pair_score
        outlines = facts.file_roles.outlines_of(rows)
        factors = {
            "role": priors.role_factors(facts.file_roles.roles_of(rows), intent.words, factor=settings.role),
            "outline": priors.outline_factors(outlines, inside, factor=settings.outline),
            "body": priors.body_factors(words, rows, outlines, inside, directed, factor=settings.body),
            "quality": priors.quality_factors(words, stems, rows, unfinished=settings.unfinished),
        }
        return Ranking(rows.tolist(), [], signals=signals, factors=factors, features=features, evidence=evidence)

    def internals(self) -> Internals:
        """All of its parts."""
        lexical, dense, facts = self.open_parts.lexical, self.open_parts.dense, self.open_parts.facts
        return Internals(lexical.postings, dense.encoder, dense.vectors, facts, self.weights.title)

    def _expand(self, words: Sequence[str], settings: Settings) -> Expansion:
        parts = self.open_parts

        def vocabulary() -> list[str]:
            self._vocabulary = self._vocabulary or WordList(sorted(parts.facts.words.vocabulary))
            return self._vocabulary

        return expand(words, parts.lexical.postings, vocabulary, prose=settings.prose, spelling=settings.spelling)

    def open(
        self,
        rankers: Sequence[Ranker],
        facts: DocumentFacts,
        calibration: Calibration | None = None,
        head: Ranker | None = None,
        head_weight: float = 0.0,
    ) -> None:
        """Use open parts and facts.

        Default weights are replaced by tuned ones, and `meaning` by one for the corpus size. head: the ranker `unif`,
        if `head_weight` is not 0.
        """
        self.calibration = calibration or Calibration()
        tuned = self.calibration.weights if self.settings.calibrated else {}
        better = {"meaning": meaning_weight(len(facts.file_roles)), **tuned}
        better.pop("head", None)  # `head_weight` has read it
        weights = asdict(self.weights)
        defaults = [name for name, value in asdict(DEFAULTS).items() if weights[name] == value and name in better]
        signal = HeadSignal.of(head) if isinstance(head, HeadVectors) and head_weight else None
        self.weights = replace(
            self.weights, **{name: better[name] for name in defaults}, head=head_weight if head else 0.0
        )
        self.config = self._config()
        self._open = Parts.of(rankers, facts, signal, self.name)

    def _config(self) -> Mapping[str, object]:
        return {"parts": self.parts, **asdict(self.weights), **asdict(self.settings)}

    def head_weight(self, snapshot: Snapshot) -> float:
        """The weight of the head: the option, else as determined at the build."""
        if self._head_option is None:
            return weight_of(snapshot, tuned=self.settings.calibrated)
        return self._head_option if (snapshot.statistics / NAME).is_dir() else 0.0

    def load(self, snapshot: Snapshot) -> None:
        """Open both parts and the facts."""
        self.assemble(snapshot, lambda part: load_ranker(part, snapshot))

    def assemble(self, snapshot: Snapshot, part: Callable[[str], Ranker]) -> None:
        """`load` with open parts."""
        head = part(NAME) if (weight := self.head_weight(snapshot)) else None
        parts = [part(name) for name in self.parts]
        self.open(parts, DocumentFacts.open(snapshot), Calibration.load(snapshot), head, weight)


def of_kind(weights: Weights, settings: Settings, kind: Kind) -> tuple[Weights, Settings]:
    """Weights and settings for a kind of query. For pasted code only words and vectors count."""
    if kind != "code":
        return weights, settings
    plain = Weights(CODE * weights.meaning, 0.0, weights.definition, 0.0, 0.0, 0.0, weights.head)
    return plain, replace(settings, spelling=0.0, role=1.0, outline=1.0, body=1.0, unfinished=1.0, saturation=1.0)


def meaning_weight(documents: int) -> float:
    """The weight of the cosine for a corpus of this size, .1 to 1: embeddings improve with more text.

    Best of .3, .5, .75 and 1 were .3 for 310 programs, .5 for 6,267 single functions and for repositories of
    hundreds, .75 to 1 for 258,000 of Android; a line through the logarithm.

    >>> [round(meaning_weight(n), 2) for n in (310, 6_267, 258_000)]
    [0.32, 0.52, 0.76]
    """
    return min(1.0, max(0.1, 0.15 * math.log10(max(1, documents)) - 0.05))


def _best(ranking: Ranking, facts: DocumentFacts, k: int, *, factor: float) -> Ranking:
    """Score the candidates and select the best k, with saturation per file and duplicates folded."""
    rows = np.array(ranking.rows, np.int64)
    total = sum(ranking.signals.values(), np.zeros(len(rows))) * np.prod(list(ranking.factors.values()), axis=0)
    positive = np.flatnonzero(total > 0)
    order = positive[np.lexsort((rows[positive], -total[positive]))]
    files = facts.file_roles.files_of(rows[order])
    clusters = facts.duplicates.clusters_of(rows[order]) if ranking.folded else None
    best = saturation.saturated(total[order], files, k, factor=factor, clusters=clusters)
    at, scores = order[[position for position, _ in best]], np.array([score for _, score in best])
    again = np.lexsort((rows[at], -scores))
    at, scores = at[again], scores[again]
    hits = replace(ranking, scores=total.tolist()).at(at.tolist())
    shares = np.divide(scores, total[at], out=np.zeros(len(at)), where=total[at] > 0)
    return replace(hits, scores=scores.tolist(), factors={**hits.factors, "saturation": shares})
