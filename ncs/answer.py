"""Answers as plain dictionaries, the same for --json, HTTP, MCP and the terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ncs import messages
from ncs.console import count
from ncs.index import Index, Results
from ncs.learn.confidence import is_confident, likelihood
from ncs.learn.embeddings import MIN_DOCUMENTS
from ncs.search.highlight import (
    excerpt,
    has_file_lines,
    marked_lines,
    matched_words,
    message_lines,
    query_stems,
    text_marks,
)  # fmt: skip
from ncs.search.locate_source import locator_of
from ncs.search.phrases import lines_with
from ncs.search.ranking import Ranking
from ncs.search.traces import Trace, lines_of, read_trace
from ncs.storage.filters import Filters
from ncs.storage.snapshot import FORMAT, PENDING
from ncs.storage.trust import untrusted
from ncs.storage.vectors import read_info
from ncs.text.tokens import STOP_WORDS, tokenize
from ncs.types import Document, Hit, Location

Answer = Mapping[str, Any]
IDENTITY = ("id", "repository", "path", "start_line", "end_line", "language", "kind", "name", "qualified_name")
"""The keys of every document."""
OTHER = ("qualified_name", "kind", "start_line", "end_line")
"""The keys of the other functions of a file."""


def ask(
    index: Index,
    text: str,
    k: int = 10,
    *,
    ranker: str,
    code: bool = True,
    explain: bool = False,
    min_confidence: float | None = None,
    unfold: bool = False,
    files: bool = False,
    **filters: Any,
) -> Answer:
    """Answer a query; options as of `Index.search` and `Index.results`, filters: those of `Filters`. With a regexp the
    text may be empty.

    Keys: query, ranker, index, unknown_words (word -> similar spellings), notes (sentences for people), hits (of the
    keys of `hit_as_dict`; a frame of a stack trace has its line); of the default ranker kind: symbol, how-to, keywords,
    code or message; with a regexp the key regexp, and in hits regexp_matches; with `explain` the key explanation of the
    answer and of each hit (ncs.search.explain.Explanation).
    """
    chosen = Filters(**filters)
    listing = bool(chosen.regexp) and not text.strip()
    results = index.results(text, k, ranker=ranker, filters=chosen, unfold=unfold, explain=explain, files=files)
    ranking, intent = results.ranking, results.ranking.intent
    title = ranking.analysis.title if ranking.analysis else ""
    kind = intent.kind if intent else ""
    query = title or (ranking.analysis.text if ranking.analysis and kind in ("symbol", "how-to", "keywords") else text)
    weights, trace = _weights(index, ranker, ranking, query), read_trace(query)
    hits, matches = [], _matches(results.hits, chosen.regexp)
    frames = ranking.signals.get("frame", np.zeros(len(results.hits)))
    for hit, stems, texts in zip(results.hits, weights, matches, strict=True):
        lines = lines_of(trace, hit.document.location)
        first = [line - hit.document.start_line for line in lines]
        if code and intent and intent.kind == "message":
            first += message_lines(hit.document.code, trace.message)
        if code and intent:
            first = [*lines_with(hit.document.code, intent.phrases), *first]
        hits.append(hit_as_dict(hit, query, code=code, weights=stems, first=first, matches=texts))
        if frames[hit.rank - 1]:
            hits[-1]["line"] = lines[0] if lines else hit.document.start_line
    if results.explanation:
        for shown, explanation in zip(hits, results.explanation.hits, strict=True):
            shown["explanation"] = explanation
    unknown = {} if intent and intent.kind == "message" else index.unknown_words(query)  # its unknown words are values
    notes = [*cautions(index), *_notes(query, unknown, results, listing=listing)]
    if title:
        notes.append(messages.REPORT)
    elif kind == "symbol" and len(text.split()) == 1 and not re.search(rf"(?<!\w){re.escape(query)}(?!\w)", text):
        notes.append(messages.RESPELLED.format(name=text, other=query))
    if listing and len(hits) == k < results.searched:
        notes.append(messages.FIRST_PLACES.format(total=results.searched))
    if min_confidence is not None and hits:
        best = max(hit["confidence"] or 0.0 for hit in hits)
        hits = [hit for hit in hits if is_confident(hit["confidence"], min_confidence)]
        if not hits:
            notes.append(messages.TOO_UNLIKELY.format(best=best))
    return {
        "query": text,
        "ranker": "regexp" if listing else ranker,
        "index": str(index.folder),
        **({"kind": intent.kind} if intent else {}),
        **({"regexp": chosen.regexp} if chosen.regexp else {}),
        "unknown_words": unknown,
        "notes": notes,
        **({"explanation": results.explanation.query} if results.explanation else {}),
        "hits": hits,
    }


LINKED = 0.1
"""Least share of a score for a word linked by public code to be highlighted."""


def _weights(index: Index, ranker: str, ranking: Ranking, text: str) -> list[dict[str, float]]:
    """For each hit the stems to highlight, with idf: the query's words, other spellings, and linked words."""
    words = [*ranking.words, *ranking.added]
    weights = index.idf(words) if words else dict.fromkeys(query_stems(text), 1.0)
    general = index.ranker(ranker).internals().general if "general" in ranking.signals else None
    rows = np.array(ranking.rows, np.int64)
    result = []
    for linked in general.explain(ranking.words, rows) if general else [[] for _ in rows]:
        others = {each.code: weights.get(each.query, 0.0) / 2 for each in linked if each.share >= LINKED}
        result.append({**others, **weights})
    return result


def ask_similar(index: Index, place: str, k: int = 10, *, code: bool = True, **filters: Any) -> Answer:
    """Functions similar to the one at FILE:LINE, as `similar_to`."""
    from ncs.search.similar import function_at, parse_place
    from ncs.workers import run_limited

    file, line = parse_place(place)
    function = run_limited(function_at, file.absolute(), line, str(file))  # its process may be in another folder
    name = locator_of(index.snapshot).name_of(file.resolve())  # its folder may have been renamed since the build
    answer = similar_to(index, replace(function, path=name or function.path), place, k, code=code, **filters)
    return {**answer, "function": {**answer["function"], "path": function.path}}


def similar_to(
    index: Index, function: Document, query: str, k: int = 10, *, code: bool = True, **filters: Any
) -> Answer:
    """Functions similar to this one, in the shape of `ask`; `ranker` is "similar". filters: those of `Index.similar`.

    More keys: function (name, path and lines of the given one), marked (its names); of a hit reverse (the share of its
    features that the given function has) and exact_copy.
    """
    from ncs.search.aroma import cached_features, similarity

    found = index.similar(function, k, **filters)
    names = " ".join(dict.fromkeys((*function.words.get("calls", ()), *function.words.get("types", ()), function.name)))
    features = cached_features(function.code, function.language)
    weights = index.idf(tokenize(names))
    hits = [
        {
            **hit_as_dict(hit, names, code=code, weights=weights, matches=texts),
            "reverse": round(similarity(features, cached_features(hit.document.code, hit.document.language)), 6),
            "exact_copy": hit.document.digest == function.digest,
        }
        for hit, texts in zip(found, _matches(found, filters.get("regexp")), strict=True)
    ]
    given = _values(function, ("qualified_name", "path", "start_line", "end_line"))
    nothing = messages.NOTHING_LIKE.format(name=function.qualified_name)
    return _answer(index, query, "similar", hits, nothing, function=given, marked=names)


def locate(index: Index, report: str, k: int = 10, *, code: bool = False, **filters: Any) -> Answer:
    """`Index.locate` in the shape of `ask`; `ranker` is "locate".

    A hit is the best function of a file, with reasons (sentences for people), signals (name -> part of the score),
    more (name and lines of the file's other functions), and line where a frame of its stack trace is in it.
    """
    from ncs.search.locate import reasons_of  # their patterns take milliseconds
    from ncs.search.report import read_report

    read = read_report(report)
    title, weights = read.title, index.idf(tokenize(read.title))
    hits = []
    for rank, file in enumerate(index.locate(read, k, **filters), 1):
        best, *others = index.documents.documents(file.rows)
        hit = hit_as_dict(Hit(rank, file.score, best), title, code=code, weights=weights)
        has = {word: None for document in (best, *others) for word in matched_words(document, title)}
        hits.append(
            {
                **hit,
                **_frame(read.trace, best),
                "matched": list(has),
                "reasons": reasons_of(file, list(has)),
                "signals": {name: round(value, 4) for name, value in file.signals.items()},
                "more": [{**_values(each, OTHER), **_frame(read.trace, each)} for each in others],
            }
        )
    return _answer(index, title, "locate", hits, messages.NOTHING_FOUND)


def _frame(trace: Trace, document: Document) -> dict[str, int]:
    """The key line of a function that has a frame of a stack trace."""
    lines = lines_of(trace, document.location)
    return {"line": lines[0]} if lines else {}


def _answer(index: Index, query: str, ranker: str, hits: Sequence[Answer], nothing: str, **more: Any) -> Answer:
    """An answer in the shape of `ask`; nothing: the note without hits."""
    notes = [*cautions(index), *([] if hits else [nothing])]
    head = {"query": query, "ranker": ranker, "index": str(index.folder), "unknown_words": {}, "notes": notes}
    return {**head, **more, "hits": hits}


def definitions_of(
    index: Index, name: str, k: int = 10, *, file: str | None = None, code: bool = True, **filters: Any
) -> Answer:
    """`Index.definitions`. Keys: name, index, notes, definitions: hits with `match` (one of
    ncs.search.references.MATCHES)."""
    result = index.definitions(name, k, file=file, **filters)
    return {
        "name": name,
        "index": str(index.folder),
        "notes": [*cautions(index), *result.notes],
        "definitions": [
            {**hit_as_dict(Hit(rank, 1.0, document), "", code=code), "match": match}
            for rank, (match, document) in enumerate(result.found, 1)
        ],
    }


def references_to(
    index: Index, name: str, k: int = 10, *, file: str | None = None, code: bool = True, **filters: Any
) -> Answer:
    """`Index.references`. Keys: name, index, spelled (the spellings searched), total (approximate), notes, references:
    hits with `lines` (numbers of lines with the name), `texts` (these lines) and `group` (one of GROUPS, TESTS,
    DOCUMENTS or USES of ncs.search.references).
    """
    result = index.references(name, k, file=file, **filters)
    return {
        "name": name,
        "index": str(index.folder),
        "spelled": result.spelled,
        "total": result.total,
        "notes": [*cautions(index), *result.notes],
        "references": [
            {
                **hit_as_dict(Hit(rank, 1.0, use.document), "", code=code),
                "lines": [number for number, _ in use.lines],
                "texts": [text for _, text in use.lines],
                "group": use.group,
            }
            for rank, use in enumerate(result.found, 1)
        ],
    }


def similar_words(index: Index, word: str, n: int = 10) -> Answer:
    """The nearest words by word vectors. For a word without a vector `words` is None, and `near` has known words of
    similar spelling; `words` is empty if too little was learned. Notes say so."""
    learned = index.neighbors(word, n)
    if learned is None:
        near = index.spelling_suggestions(word)
        return {"word": word, "words": None, "near": near, "notes": [messages.no_match(word, near)]}
    documents, neighbors = learned
    words = [{"word": each, "similarity": round(s, 4)} for each, s in neighbors]
    return {"word": word, "words": words, "near": [], "notes": [] if words else [_too_little(word, documents)]}


def describe(index: Index) -> dict[str, Any]:
    """The content of an index: counts, repositories, languages, configuration, sizes in bytes, versions."""
    description, sources = index.description, index.description.counts.get("sources")
    return {
        "index": str(index.folder),
        "format": FORMAT,
        "created": description.created,
        "documents": len(index),
        "tests": index.count_tests(),
        **{name: value for name, value in description.counts.items() if name != "documents"},
        "sources": {**sources, "roots": list(map(str, index.snapshot.roots))} if isinstance(sources, dict) else None,
        "trusted": not index.snapshot.distrust,
        "bytes": {name: entry["bytes"] for name, entry in sorted(description.files.items())},
        "config": description.config,
        "vectors": asdict(read_info(index.snapshot.segments[0].path / "ncs_centred")),
        "versions": description.versions,
        "notes": [*_distrust(index), *description.notes],
    }


def hit_as_dict(
    hit: Hit, text: str, *, code: bool = True, weights: Mapping[str, float] | None = None, first: Sequence[int] = (),
    matches: Sequence[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One hit, ready for JSON.

    Keys: rank, score, confidence (probability that it is right; None of other rankers than the default), likelihood
    (strong, likely, weak or ""), those of IDENTITY, matched (words of the text that it has), copies and near_copies
    (locations of exact, and of folded near duplicates), code (None if not stored or code=False), excerpt (ranges of
    0-based lines of the code to show, ends excluded), marked (stems to mark); with `matches` also regexp_matches and
    line, that of the first one.

    weights: of the stems that choose the excerpt, by default those of the text; first: lines preferred to theirs;
    matches: texts of a regular expression, whose lines are preferred to all others.
    """
    document = hit.document
    weights = dict.fromkeys(query_stems(text), 1.0) if weights is None else weights
    matching = marked_lines(document.code, text_marks(document.code, matches or ()))
    result = {
        "rank": hit.rank,
        "score": round(hit.score, 6),
        "confidence": None if hit.confidence is None else round(hit.confidence, 4),
        "likelihood": likelihood(hit.confidence),
        **_values(document, IDENTITY),
        "matched": matched_words(document, text),
        "copies": _places(document.copies),
        "near_copies": _places(hit.near_copies),
        **({} if matches is None else {"regexp_matches": matches}),
        **_code(document, weights, [*matching, *first], shown=code),
    }
    in_file = matching and has_file_lines({**result, "code": document.code})
    return {**result, "line": document.start_line + matching[0]} if in_file else result


def document_as_dict(document: Document, *, code: bool = True) -> dict[str, Any]:
    """A document as `hit_as_dict`, without rank, score and confidence."""
    return {**_values(document, IDENTITY), "copies": _places(document.copies), **_code(document, {}, (), shown=code)}


def _code(document: Document, weights: Mapping[str, float], first: Sequence[int], *, shown: bool) -> dict[str, Any]:
    code = document.code if shown else ""
    lines = excerpt(code, document.language, document.name, weights, first) if code else []
    return {"code": code or None, "excerpt": lines, "marked": sorted(weights)}


def cautions(index: Index) -> list[str]:
    """The notes of every answer: that the index is not complete, current or trusted."""
    return [*index.cautions, *not_ready(index), *_distrust(index)]


def _distrust(index: Index) -> list[str]:
    reason = index.snapshot.distrust
    return [messages.UNTRUSTED.format(reason=untrusted(reason))] if reason else []


def not_ready(index: Index) -> list[str]:
    """A note about the parts that a first build has not computed yet, if any."""
    pending = index.description.counts.get(PENDING)
    return [str(pending)] if pending else []


def _too_little(word: str, documents: int) -> str:
    """Why a word of this document frequency has no nearest words."""
    rare = documents < MIN_DOCUMENTS
    reason = f"it takes {MIN_DOCUMENTS} to compare words" if rare else "no word is nearer to it than by chance"
    return f"too little was learned here to say: {word!r} is in {count(documents, 'document')}; {reason}"


def _places(locations: Sequence[Location]) -> list[dict[str, Any]]:
    return [_values(location, ("repository", "path", "start_line", "end_line")) for location in locations]


def _values(thing: Document | Location, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}


def _matches(hits: Sequence[Hit], regexp: str | None) -> Sequence[Sequence[str] | None]:
    """For each hit the texts of its code that match."""
    if not regexp:
        return [None] * len(hits)
    from ncs.search.regexp import matched_texts

    return matched_texts(regexp, [hit.document.code for hit in hits])


def _notes(text: str, unknown: Mapping[str, Sequence[str]], results: Results, *, listing: bool) -> list[str]:
    """Notes on unknown words and their corrections, a query of stop words only, no hits or none that is likely."""
    ranking, notes = results.ranking, list[str]()
    corrections = ranking.analysis.expansion.corrections if ranking.analysis else {}
    for word, near in unknown.items():
        other = " ".join(corrections.get(word, ()))
        notes.append(messages.RESPELLED.format(name=word, other=other) if other else messages.no_match(word, near))
    words = tokenize(text)
    if ranking.intent and ranking.intent.phrases and ranking.rows and not ranking.features["phrases"].any():
        notes.append(messages.NO_PHRASE)
    if ranking.analysis and ranking.analysis.linked and results.hits:
        notes.append(messages.LINKED)
    if words and all(word in STOP_WORDS or word == "to" for word in words):
        notes.append(messages.COMMON_WORDS.format(words=", ".join(dict.fromkeys(words))))
    if not words and not listing:
        notes.append(messages.NO_WORDS)
    if not results.searched and not listing:
        notes.append(messages.NOTHING_PASSES)
    elif not results.hits:
        notes.append(messages.NOTHING_FOUND)
    elif (best := results.hits[0].confidence) is not None and not (likelihood(best) or unknown):
        notes.append(messages.UNLIKELY)
    return notes
