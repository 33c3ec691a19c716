"""The default ranker `hybrid`: lexical and dense scores, and signals computed from the best candidates.

The score of a document is the sum of its signals, times its factors, times a saturation factor for further hits of the
same file:

    lexical     BM25, divided by the best document's; words that are never in code count less (ncs.search.question)
    spelling    BM25 of other spellings of the query's words
    meaning     cosine to the query, if positive
    general     score by the general head (ncs.learn.general) above MIN_GENERAL, times the share of the query's idf that
                the best document by words lacks, times the share that the head knows, times 1 - gate of consensus / 2,
                times (3 - inside) / 2: over many projects half as much again as inside one
    context     cosine of query and function in context (ncs.learn.context_encoder) above the lowest one, times the
                weight of `general`; of the best CONTEXT_CANDIDATES only, and 0 where a literal has the query
    learnt      z-score by the index's own learned head, if positive (ncs.search.unif)
    name        overlap of its name and the query
    definition  it defines a symbol of the query
    consensus   it uses names that many good candidates of many repositories use, times the gate of consensus
    file        its file is named like the query, and has other good candidates, times `inside` (ncs.search.signals)
    verbatim    share of a message in its literals, word order kept, or PHRASE times the share of quoted phrases it has
    frame       n for the n-th frame of the stack trace from the outermost, 2n - 1 for the innermost: they lead

Sections of prose have candidates of their own, and do not count as evidence for code. Their `lexical` is BM25 divided
by that of the best code, at most 1. The factor `section` ranks them behind code unless the query asks for documents; a
section that answers the question is raised to SECTION_RANK.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from ncs.errors import check_k, reading
from ncs.files import read_json
from ncs.learn.confidence import FEATURES, MODEL, WEAK, load_weights
from ncs.learn.general import GeneralScorer, general_head
from ncs.search import signals
from ncs.search.phrases import PhraseSearch
from ncs.search.question import (
    MAX_NAME,
    PROSE,
    SPELLING,
    Intent,
    Kind,
    asks_where,
    complains,
    correct,
    expand,
    message_values,
    names_alone,
    read_intent,
    without_filters,
    without_kind,
    without_request,
)
from ncs.search.rankers import HEAD, Ranker, nearest
from ncs.search.ranking import Internals, QueryAnalysis, Ranking
from ncs.search.traces import Files, read_trace
from ncs.storage.arrays import are_in, both, distinct, top_rows
from ncs.storage.document_facts import DocumentFacts
from ncs.storage.documents import Documents
from ncs.storage.file_roles import SETTINGS, SOURCE, TEST
from ncs.storage.names import FOLDED, QUALIFIED, Symbol, folded, query_symbols
from ncs.text.spelling import WordList
from ncs.text.stems import stem_all
from ncs.text.tokens import tokenize

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ncs.search.bm25 import Bm25Ranker
    from ncs.search.ncs import NcsRanker
    from ncs.search.unif import UnifRanker
    from ncs.storage.snapshot import Snapshot
    from ncs.types import Mask, Rows, Scores

DEPTH, CANDIDATES, SECTIONS = 500, 200, 50
"""Documents that each part retrieves; candidates of code, and sections of prose, whose signals are computed."""
SECTION_RANK = 3
"""The rank of a section that answers the question (`_answer`)."""
MIN_COVERAGE, MIN_LEXICAL, MAX_PROJECTS = 0.5, 0.6, 5
"""A section answers the question if it has at least these shares of the query's idf and of the best BM25 of code, and
the candidates come from at most MAX_PROJECTS projects: among more, some README has the words of any question."""
NEIGHBOR_SIGNALS = ("consensus", "file")
"""Signals that other candidates give, except for the title in `file`; a document with nothing else is not a hit."""
CODE_MEANING = 0.5
"""Factor of `meaning` for queries that are code: half of their words are variables, which vectors ignore."""
UNIT_Z_SCORE = 6.0
"""The z-score by a learned head that counts as 1: that of the best documents of a large corpus."""
MIN_GENERAL = 0.3
"""The third quartile of the general head's scores of random functions; right ones have .6 at the median."""
CONTEXT_CANDIDATES = 20
"""Candidates that the general head reads in context; 30 are no better."""
PHRASE = 8.0
"""Value of `verbatim` for a document with all phrases: more than any message, also for a test or a section."""
PLACE = 0.25
"""The factor of what is outside of the files that the query names."""
_AT_PLACE = re.compile(r"[\w/.-]{1,300}\.\w{1,10}: ")
"""The beginning of `src/http.py: retry`, which is no message."""
WEIGHT_FILE = "weight.json"
"""The weight of a head (ncs.build.head_weight), among its statistics."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the signals, relative to 1 for the lexical one; 0 turns a signal off. `ncs tune` fits them to an
    index.
    """

    meaning: float = 0.75
    naming: float = 0.8
    definition: float = 1.0
    consensus: float = 2.5
    title: float = 0.8
    neighbours: float = 0.5
    general: float = 2.0
    head: float = 0.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Parameters of the ranking that are not tuned.

    spelling, prose: of ncs.search.question; 0 and 1 turn them off. context, verbatim, frame: weights; 0 turns
    each off. role to saturation: factors of ncs.search.signals; 1 turns each off. fold: whether near duplicates
    are folded. calibrated: whether tuned weights are used.
    """

    spelling: float = SPELLING
    prose: float = PROSE
    context: float = 1.0
    verbatim: float = 3.0
    frame: float = 12.0
    role: float = signals.ROLE
    section: float = signals.SECTION
    unfinished: float = signals.UNFINISHED
    saturation: float = signals.SATURATION
    fold: bool = True
    calibrated: bool = True


@dataclass(frozen=True, slots=True)
class Parts:
    """The open parts of the default ranker. general, head: None where they have no weight."""

    lexical: Bm25Ranker
    dense: NcsRanker
    facts: DocumentFacts
    general: GeneralScorer | None = None
    head: UnifRanker | None = None


class Candidates(NamedTuple):
    """Rows and their scores, [n] each: lexical, its part `spelling` from other spellings, cosine, learned head."""

    rows: Rows
    lexical: Scores
    spelling: Scores
    meaning: Scores
    head: Scores

    def at(self, positions: NDArray[np.int64]) -> Candidates:
        """Some of them, in this order."""
        return Candidates(self.rows[positions], *(column[positions] for column in self[1:]))

    def ordered(self, meaning: float) -> Candidates:
        """By words and vectors, without the head, whose top documents are too alike to vote."""
        return self.at(np.argsort(-self.base(meaning), kind="stable"))

    def base(self, meaning: float, head: float = 0.0) -> Scores:
        """Weighted sum of words, vectors and head, [n]; lexical scores are divided by the best one."""
        best = max(float(self.lexical.max(initial=0)), 1e-9)
        return self.lexical / best + meaning * np.maximum(self.meaning, 0.0) + head * self.head


class HybridRanker(Ranker):
    """Combines a Bm25Ranker, a NcsRanker, and a UnifRanker if a learned head has a weight.

    options: fields of Weights and Settings; a weight that is missing or None is that of the index.
    """

    OPTIONS: ClassVar = {each.name: each.default for each in (*fields(Weights), *fields(Settings))}
    open_parts: Parts
    _snapshot: Snapshot
    _facts: DocumentFacts

    def __init__(self, name: str = "hybrid", **options: Any) -> None:
        self.name, self.parts = name, ("bm25", "ncs_centred")
        weights = {each.name: options.pop(each.name, None) for each in fields(Weights)}
        self._given = {weight: value for weight, value in weights.items() if value is not None}
        self.weights, self.settings = Weights(**self._given), Settings(**options)
        self.config = {**asdict(self.weights), **asdict(self.settings)}

    @cached_property
    def _files(self) -> Files:
        return Files(self._snapshot)

    @cached_property
    def _names(self) -> WordList:
        return WordList(dict.fromkeys(self._facts.definitions.names()))

    def load(self, snapshot: Snapshot) -> None:
        """Open the facts and choose the weights that were not given: `meaning` depends on the size of the index."""
        self._snapshot, self._facts = snapshot, DocumentFacts.open(snapshot)
        built = {
            "meaning": meaning_weight(self._facts.file_roles.count_code()),
            "head": head_weight(snapshot.statistics),
        }
        tuned = load_weights(snapshot.folder) if self.settings.calibrated else {}
        own = {**built, **tuned, **self._given}
        if snapshot.distrust or not (snapshot.statistics / HEAD).is_dir():
            own["head"] = 0.0
        if not snapshot.description.config.get("general", True):
            own["general"] = 0.0
        self.weights = Weights(**{name: own.get(name, default) for name, default in asdict(Weights()).items()})
        self.config = {**asdict(self.weights), **asdict(self.settings)}
        self.parts = ("bm25", "ncs_centred", *([HEAD] if self.weights.head else []))

    def compose(self, rankers: Sequence[Ranker]) -> None:
        lexical, dense, *heads = rankers
        lexical, dense, facts = cast("Bm25Ranker", lexical), cast("NcsRanker", dense), self._facts
        general = None
        if self.weights.general:
            general = GeneralScorer(general_head(), facts.words, lexical.postings.statistics.mean_length)
        self.open_parts = Parts(lexical, dense, facts, general, cast("UnifRanker", heads[0]) if heads else None)

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        return self.rank(text, k, allowed=allowed, fold=True).hits

    def rank(
        self, text: str, k: int, *, allowed: Mask | None = None, fold: bool = False, confidences: bool = False
    ) -> Ranking:
        """`search`, with the signals of every hit."""
        check_k(k)
        n = k + 1 if confidences else k  # one more hit, so that the lead of the last one does not depend on k
        parts, facts = self.open_parts, self.open_parts.facts
        analysis, frames = self._analyze(text, allowed)
        intent, postings = analysis.intent, parts.lexical.postings
        sections = facts.file_roles.sections
        code = allowed if sections is None else both(allowed, ~sections)
        phrases = PhraseSearch(intent.phrases, self._snapshot)
        named = np.concatenate([frames, phrases.rows(postings, code)])
        prose, counts = None if sections is None else both(allowed, sections), analysis.expansion.counts
        by_words = postings.top_rows(counts, max(n, DEPTH), [code] if prose is None else [code, prose])
        pools = [self.find_candidates(analysis, max(n, CANDIDATES), by_words[0][0], named, code)]
        if prose is not None and prose.any():
            named, dense = phrases.rows(postings, prose), not len(pools[0].rows)
            pools.append(self.find_candidates(analysis, max(n, SECTIONS), by_words[1][0], named, prose, dense=dense))
        pools = [pool for pool in pools if len(pool.rows)]
        ranking = self._score_signals(analysis, pools, frames, phrases) if pools else Ranking([], [])
        answer = -1 if prose is None or asks_where(analysis.text) else self._answer(ranking, analysis, prose)
        if parts.general and not (ranking.rows or counts):
            analysis = replace(analysis, linked=True)
            ((rows, _),) = postings.top_rows(parts.general.linked(intent.words), max(n, CANDIDATES), [code])
            rows = np.sort(rows)
            if len(rows):
                pool = Candidates(rows, *[np.zeros(len(rows))] * 4)
                ranking = self._score_signals(analysis, [pool], frames, phrases)
        if ranking.rows:
            _, settings = of_kind(self.weights, self.settings, intent.kind)
            ranking = replace(ranking, folded=fold and settings.fold)
            ranking = _best(ranking, facts, n, factor=settings.saturation, answer=answer)
        rows = np.array(ranking.rows, np.int64)
        impacts = {stem: postings.scores({stem: 1.0}, rows) for stem in analysis.idf}
        added = analysis.expansion.words
        ranking = replace(ranking, analysis=analysis, words=intent.words, added=added, impacts=impacts)
        if not confidences:
            return ranking
        probabilities = MODEL.probabilities(confidence_features(ranking))
        if analysis.linked and ranking.rows:
            probabilities = WEAK * np.array(ranking.scores) / ranking.scores[0]
        return replace(ranking, confidences=probabilities.tolist()).at(range(min(k, len(rows))))

    def _analyze(self, text: str, allowed: Mask | None) -> tuple[QueryAnalysis, Rows]:
        """The analysis of a query, and the allowed rows of the functions that its stack trace runs through."""
        parts, facts = self.open_parts, self.open_parts.facts
        title = self._title(text)
        text = title or text
        trace, frames = read_trace(text), np.zeros(0, np.int64)
        if trace.frames:
            frames = self._files.rows_of(trace, facts.definitions)
            frames = frames if allowed is None else frames[allowed[frames]]
            text = trace.message if len(frames) and trace.message else text
        text, place = self._place(without_filters(text)) if not len(frames) else (text, frames[:0])
        intent = read_intent(text, facts.languages)
        if intent.kind in ("how-to", "keywords", "message"):
            rest = self._asked_name(text) or without_request(text, facts.languages)
            text, intent = rest, read_intent(rest, facts.languages) if rest != text else intent
        if intent.kind == "symbol" and intent.symbols and not intent.phrases and (name := self._correct_name(intent)):
            text = text.replace(intent.symbols[0].name, name)
            intent = read_intent(text, facts.languages)
        intent = replace(intent, kind="message", phrases=()) if len(frames) else intent
        _, settings = of_kind(self.weights, self.settings, intent.kind)
        postings = parts.lexical.postings
        head = parts.general.head if parts.general else None
        expansion = expand(
            intent.words, postings, lambda: facts.words.by_spelling, prose=settings.prose, spelling=settings.spelling,
            known=head.stems.__contains__ if head else None, unlike=head.unlike if head else None,
            longer=facts.words.vocabulary.longer,
        )  # fmt: skip
        intent = intent.corrected(expansion.corrections)
        idf = postings.idf(list(intent.words))
        documents = facts.file_roles.count_code()
        return QueryAnalysis(text, intent, expansion, idf, documents, place, title), frames

    def _title(self, text: str) -> str:
        """The title of a bug report, in an index of few projects; else "". Files ranked by whole reports have .44 MRR,
        by titles .64 (evaluation/NOTES.md)."""
        if "\n" not in text or not 0 < self.open_parts.facts.file_roles.projects <= MAX_PROJECTS:
            return ""
        from ncs.search.report import report_title  # its patterns take milliseconds

        return report_title(text)

    def _place(self, text: str) -> tuple[str, Rows]:
        """The rest of a question, and the rows of the files of code that it names; messages name any files."""
        if not re.search(r"[/\\]|\w\.[A-Za-z]", text):
            return text, np.zeros(0, np.int64)
        kind, roles = read_intent(text.replace("`", "")).kind, self._facts.file_roles
        asks = kind in ("how-to", "keywords", "symbol") or _AT_PLACE.match(text)
        if asks and (kind != "symbol" or re.search(r"[/\\]", text)):
            rows, rest = self._files.mentioned(text)
            rows = rows[roles.roles_of(rows) != SETTINGS]
            rows = rows if roles.sections is None else rows[~roles.sections[rows]]
            return (rest or text, rows) if len(rows) else (text, rows)
        return text, np.zeros(0, np.int64)

    def _asked_name(self, text: str) -> str:
        """The defined name that a question asks for: `Store.read` of "read method of class Store"; else ""."""

        def weight(name: str, *owners: str) -> float:
            return float(self._facts.definitions.match(Symbol(name, owners))[1].max(initial=0))

        names, bare = names_alone(text, self._facts.languages), without_kind(text)
        if len(names) == 1:
            symbol = query_symbols(names[0])[0]
            return names[0] if weight(symbol.name, *symbol.qualifiers) >= FOLDED else ""
        if bare != text and 1 < len(words := tokenize(bare)) <= MAX_NAME and weight("".join(words)) >= FOLDED:
            return bare
        pairs = permutations(names, 2)
        return next((f"{owner}.{name}" for owner, name in pairs if weight(name, owner) >= FOLDED + QUALIFIED), "")

    def _correct_name(self, intent: Intent) -> str:
        """The defined name of similar spelling and equal digits, if the query's name is not defined and has a word that
        is in no document; else ""."""
        name, definitions, postings = intent.symbols[0].name, self._facts.definitions, self.open_parts.lexical.postings
        if all(term.documents for term in postings.terms(intent.words)) or len(definitions.match(Symbol(name))[0]):
            return ""
        key = correct(folded(name), lambda: self._names)
        if not key or [*filter(str.isdigit, key)] != [*filter(str.isdigit, name)]:
            return ""
        row = definitions.match(Symbol(key))[0][:1].tolist()
        with closing(Documents(self._snapshot)) as documents:
            return "".join(place.qualified_name.rpartition(".")[2] for place in documents.locations(row))

    def find_candidates(
        self,
        analysis: QueryAnalysis,
        n: int,
        by_words: Rows,
        named: Rows,
        allowed: Mask | None,
        *,
        dense: bool = True,
    ) -> Candidates:
        """Candidates by ascending row: the best n by all parts together, definitions of query symbols, and the rows
        `named`: frames of a trace, documents with a phrase.

        by_words: the best rows by words. dense=False retrieves no others.
        """
        parts, intent, expansion = self.open_parts, analysis.intent, analysis.expansion
        weights, _ = of_kind(self.weights, self.settings, intent.kind)
        words, postings, vectors, head = " ".join(intent.words), parts.lexical.postings, parts.dense.vectors, parts.head
        query, counts, depth = parts.dense.encoder.query(words), expansion.counts, max(n, DEPTH)
        near_rows = [row for row, _ in nearest(vectors, query, depth, allowed=allowed)] if dense else []
        head_query = head.query_vector(words) if head else query
        if head and dense:
            near_rows += [row for row, _ in nearest(head.vectors, head_query, depth, allowed=allowed)]
        best = np.concatenate([by_words, np.array(near_rows, np.int64)])
        defining = [named, *(parts.facts.definitions.match(symbol, allowed=allowed)[0] for symbol in intent.symbols)]
        rows = distinct(np.concatenate([best, *defining]))
        candidates = Candidates(
            rows,
            postings.scores(counts, rows),
            postings.scores(expansion.other_spellings, rows),
            vectors.similarities(query, rows).astype(np.float64),
            np.maximum(0.0, head.z_scores(head_query, rows, words)) / UNIT_Z_SCORE if head else np.zeros(len(rows)),
        )
        retrieved = candidates.at(np.flatnonzero(are_in(rows, best)))
        selected = top_rows(retrieved.rows, retrieved.base(weights.meaning, weights.head), n)[0]
        return candidates.at(np.flatnonzero(are_in(rows, np.concatenate([selected, *defining]))))

    def _score_signals(
        self,
        analysis: QueryAnalysis,
        pools: Sequence[Candidates],
        frames: Rows,
        phrases: PhraseSearch,
    ) -> Ranking:
        """Signals and factors of the candidates, without scores. pools: of code, of sections, or of both; the first one
        alone is evidence."""
        parts, facts = self.open_parts, self.open_parts.facts
        weights, settings = of_kind(self.weights, self.settings, analysis.intent.kind)
        words, stems, files = facts.words, facts.words.stems, facts.file_roles
        best = next((top for pool in pools if (top := float(pool.lexical.max())) > 0), 1e-9)
        pools = [pool._replace(lexical=np.minimum(pool.lexical, best)).ordered(weights.meaning) for pool in pools]
        bases = [pool.base(weights.meaning) for pool in pools]
        evidence = signals.gather_evidence(facts, pools[0].rows, bases[0])
        beside = [*map(signals.file_support, [files.files_of(pool.rows) for pool in pools], bases)]
        pool = Candidates(*map(np.concatenate, zip(*pools, strict=True)))
        rows, intent, idf = pool.rows, analysis.intent, analysis.idf
        is_section = np.zeros(len(rows), np.bool_) if files.sections is None else files.sections[rows]
        consensus, inside = evidence.consensus, evidence.inside
        spellings = {
            stem: weight * parts.lexical.postings.idf_of(stem) / settings.spelling
            for stem, weight in analysis.expansion.other_spellings.items()
        }
        name, tokens = signals.name_overlap(words, stems, rows, idf, spellings), tokenize(analysis.text)
        name = np.maximum(name, signals.declared_overlap(facts.definitions, intent, rows, idf))
        directed = name + signals.DIRECTION * signals.name_direction(words, stems, rows, tokens)
        definition = signals.definition_scores(facts.definitions, intent, rows, inside)
        features = {
            "meaning": np.maximum(pool.meaning, 0.0),
            "name": name,
            "definition": definition,
            "constructor": signals.are_constructors(facts.definitions, intent, rows),
        }
        titles = weights.title * files.title_match(idf, rows)
        roles = files.roles_of(rows)
        on_trace = signals.frame_scores(frames, rows)
        features["phrases"] = phrases.shares(rows)
        in_literals = self._literal_scores(analysis, tokens, rows, inside) * (roles != TEST)
        verbatim = np.maximum(in_literals, PHRASE * features["phrases"])
        values = {
            "lexical": (pool.lexical - pool.spelling) / best,
            "spelling": pool.spelling / best,
            "meaning": weights.meaning * features["meaning"],
        }
        general_weight = 0.0
        if parts.general:
            general_weight = weights.general * max(0.0, 1 - best / max(sum(idf.values()), 1e-9))
            general_weight *= parts.general.known_share(idf) * (1 - consensus.gate / 2) * (3 - inside) / 2
            features["general"] = np.maximum(parts.general.scores(intent.words, rows) - MIN_GENERAL, 0.0)
            values |= {"general": general_weight * features["general"], "context": np.zeros(len(rows))}
        if parts.head:
            values["learnt"] = weights.head * pool.head
        values |= {
            "consensus": weights.consensus * consensus.gate * consensus.scores(facts.uses, rows),
            "file": inside * (titles + weights.neighbours * np.concatenate(beside)),
            "name": weights.naming * (signals.NAME_SHARE + (1 - signals.NAME_SHARE) * inside) * directed,
            "definition": weights.definition * definition,
            "verbatim": settings.verbatim * verbatim,
            "frame": settings.frame * on_trace,
        }
        own = (value for name, value in values.items() if name not in NEIGHBOR_SIGNALS)
        features["own"] = sum(own, inside * titles)
        role = 1 - (1 - settings.role) * (1 + inside) / 2
        features["certain"] = np.minimum(1.0, np.maximum.reduce([definition, verbatim, on_trace]))
        of_any_length = (on_trace > 0) | (definition >= 1) | (verbatim > 0) | (files.files_of(rows) < 0)
        in_product = (roles == SOURCE) & (definition >= FOLDED) & ~is_section
        of_any_role = is_section | (on_trace > 0) | (in_product if in_product.any() else definition >= 1)
        in_words = intent.kind in ("how-to", "keywords")  # docs/manual.pdf in a message asks for nothing
        asked = intent.words if in_words else ()
        lengths = words.lengths(rows).sum(axis=1)
        factors = {
            "length": np.where(of_any_length, 1.0, signals.length_factors(lengths, inside, name)),
            "role": np.where(of_any_role, 1.0, signals.role_factors(roles, analysis.text, intent.words, role)),
            "place": np.where(are_in(rows, analysis.place) | (len(analysis.place) == 0), 1.0, PLACE),
            "quality": signals.quality_factors(words, stems, rows, settings.unfinished),
            "section": np.where(is_section, signals.section_factors(roles, asked, settings.section), 1.0),
        }
        ranking = Ranking(rows.tolist(), [], signals=values, factors=factors, features=features, evidence=evidence)
        context, first = settings.context * general_weight, len(pools[0].rows)
        if parts.general and context > 0 and not verbatim[:first].any():
            leading = np.argsort(-_total(ranking)[:first], kind="stable")[:CONTEXT_CANDIDATES]
            contexts = parts.general.contexts(intent.words, rows[leading])
            values["context"][leading] = context * (contexts - contexts.min(initial=1))
        return ranking

    def _literal_scores(self, analysis: QueryAnalysis, tokens: list[str], rows: Rows, inside: float) -> Scores:
        """The share of a message that is in each row's literals, [len(rows)]; tokens: of the message."""
        is_message = analysis.intent.kind == "message"
        in_pairs = is_message or complains(analysis.text)
        least = signals.MIN_COMPLAINT if in_pairs else signals.MIN_UNMARKED
        if analysis.intent.kind not in ("message", "how-to", "keywords") or len(tokens) < least:
            return np.zeros(len(rows))
        idf, values = self.open_parts.lexical.postings.idf(tokens), message_values(analysis.text)
        pairs = zip(tokens, stem_all(tokens), strict=True)
        weights = [0.0 if token in values else idf[stem] for token, stem in pairs]
        most_between = signals.MAX_VALUE if is_message else 0
        shares = signals.verbatim(self._facts.words, rows, tokens, weights, most_between, in_pairs=in_pairs)
        return shares if is_message else shares * inside * (shares >= signals.MIN_LITERAL_SHARE)

    def _answer(self, ranking: Ranking, analysis: QueryAnalysis, prose: Mask) -> int:
        """The position of the best section if it answers the question (MIN_COVERAGE ...), else -1. Changelogs, and
        documents among tests, answer nothing. prose: mask of the sections."""
        rows = np.array(ranking.rows, np.int64)
        among = np.flatnonzero(prose[rows] & (self.open_parts.facts.file_roles.roles_of(rows) == SOURCE))
        few_projects = ranking.evidence is not None and ranking.evidence.inside >= 1 / MAX_PROJECTS
        if not (len(among) and few_projects and analysis.intent.kind in ("how-to", "keywords")):
            return -1
        best = int(among[np.argmax(_total(ranking)[among])])
        row, postings, idf = np.array([ranking.rows[best]]), self.open_parts.lexical.postings, analysis.idf
        has = sum(value for stem, value in idf.items() if postings.scores({stem: 1.0}, row)[0])
        near = ranking.signals["lexical"][best] + ranking.signals["spelling"][best]
        return best if has >= MIN_COVERAGE * sum(idf.values()) and near >= MIN_LEXICAL else -1

    def internals(self) -> Internals:
        parts, weights = self.open_parts, self.weights
        postings, dense = parts.lexical.postings, parts.dense
        return Internals(postings, dense.encoder, dense.vectors, parts.facts, weights.title, parts.general)


def of_kind(weights: Weights, settings: Settings, kind: Kind) -> tuple[Weights, Settings]:
    """Weights and settings for a kind of query: for pasted code only words and vectors count."""
    if kind != "code":
        return weights, settings
    half = CODE_MEANING * weights.meaning
    plain = replace(weights, meaning=half, naming=0.0, consensus=0.0, title=0.0, neighbours=0.0, general=0.0)
    return plain, replace(settings, spelling=0.0, role=1.0, unfinished=1.0, saturation=1.0)


def meaning_weight(documents: int) -> float:
    """The weight of the cosine for a corpus of this size, .1 to 1: embeddings improve with more text.

    Best of .3, .5, .75 and 1 were .3 for 310 programs, .5 for 6,267 single functions and for repositories of
    hundreds, .75 to 1 for 258,000 of Android; a line through the logarithm.

    >>> [round(meaning_weight(n), 2) for n in (310, 6_267, 258_000)]
    [0.32, 0.52, 0.76]
    """
    return min(1.0, max(0.1, 0.15 * math.log10(max(1, documents)) - 0.05))


def _best(ranking: Ranking, facts: DocumentFacts, k: int, *, factor: float, answer: int = -1) -> Ranking:
    """The best k candidates with scores, saturated per file and duplicates folded; those without a signal of their own
    are no hits. answer: the position of a section that is raised to SECTION_RANK."""
    rows = np.array(ranking.rows, np.int64)
    total = _total(ranking)
    files, outlines = facts.file_roles.files_of(rows), facts.file_roles.outlines_of(rows)
    definition, constructors = ranking.features["definition"], ranking.features["constructor"] > 0
    defining = files[(definition >= 1) & ~outlines & ~constructors]
    placed = signals.members_first(total, files, outlines, outlines & ((definition == 0) | are_in(files, defining)))
    placed = signals.members_first(placed, files, ~outlines | (definition < 1), constructors)
    changed = {**ranking.factors, "member": np.divide(placed, total, out=np.ones(len(rows)), where=total > 0)}
    ranking, total = replace(ranking, factors=changed), placed
    positive = np.flatnonzero((total > 0) & (ranking.features["own"] > 0))
    order = positive[np.lexsort((rows[positive], -total[positive]))]
    frame = ranking.signals["frame"][order] > 0  # each is a hit, in the order of the trace
    clusters = np.where(frame, -1, facts.duplicates.clusters_of(rows[order])) if ranking.folded else None
    best = signals.select_hits(total[order], np.where(frame, -1, files[order]), k, factor=factor, clusters=clusters)
    at, scores = order[[position for position, _ in best]], np.array([score for _, score in best])
    if answer >= 0 and len(at) >= SECTION_RANK and answer not in at[:SECTION_RANK]:
        score = min(np.nextafter(scores[SECTION_RANK - 1], np.inf), scores[SECTION_RANK - 2])
        at, scores = np.append(at[at != answer], answer), np.append(scores[at != answer], score)
    again = np.lexsort((rows[at], -scores))[:k]
    at, scores = at[again], scores[again]
    hits = replace(ranking, scores=total.tolist()).at(at.tolist())
    shares = np.divide(scores, total[at], out=np.zeros(len(at)), where=total[at] > 0)
    moved = {**hits.factors, "saturation": np.where(at == answer, 1.0, shares)}
    if answer >= 0:
        moved["section"] = moved["section"] * np.where(at == answer, shares, 1.0)
    return replace(hits, scores=scores.tolist(), factors=moved)


def _total(ranking: Ranking) -> Scores:
    """The sum of the signals times the factors, [n]."""
    signals_sum = sum(ranking.signals.values(), np.zeros(len(ranking.rows)))
    total: Scores = signals_sum * np.prod(list(ranking.factors.values()), axis=0)
    return total


def confidence_features(ranking: Ranking) -> Scores:
    """`ncs.learn.confidence.FEATURES` of each hit of the default ranker: [hits, len(FEATURES)]."""
    analysis = cast(QueryAnalysis, ranking.analysis)
    if not ranking.rows:
        return np.zeros((0, len(FEATURES)))
    n = len(ranking.rows)
    total, rarest = max(sum(analysis.idf.values()), 1e-9), float(np.log1p(2 * analysis.documents))
    coverage, bm25 = np.zeros(n), np.zeros(n)
    for stem, impacts in ranking.impacts.items():
        coverage += (impacts > 0) * analysis.idf[stem] / total
        bm25 += impacts / rarest
    scores, lead = np.array(ranking.scores), coverage * (n == 1)
    lead[:-1] = (scores[:-1] - scores[1:]) / np.maximum(scores[:-1], 1e-9)
    columns = [coverage**3 * (1 - np.exp(-total / rarest / 3)), 1 - np.exp(-bm25 / 2)]
    columns += [ranking.features[name] for name in ("meaning", "name", "certain")]
    columns += [np.minimum(ranking.features.get("general", np.zeros(n)), 1.0)]
    return np.column_stack([*columns, scores / scores[0], lead])


def head_weight(statistics: Path) -> float:
    """The weight of the head as determined at the build, 0 without one; raises IndexDamaged for an invalid weight."""
    path = statistics / HEAD / WEIGHT_FILE
    if not path.is_file():
        return 0.0
    with reading(path):
        weight = float(read_json(path)["weight"])
        if not math.isfinite(weight) or weight < 0:
            raise ValueError("it has no valid weight")
    return weight


def save_weight(statistics: Path, weight: float) -> None:
    """Write the weight into the statistics of the head's ranker."""
    (statistics / HEAD / WEIGHT_FILE).write_text(json.dumps({"weight": weight}) + "\n", encoding="utf-8")
