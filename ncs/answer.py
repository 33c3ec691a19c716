"""A question and its answer as one plain dictionary: the same shape in --json, and wherever else hits are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ncs.index import Filters, Index
from ncs.learn.confidence import is_sure
from ncs.search.highlight import matched_words
from ncs.search.ranking import Ranking
from ncs.storage.snapshot import FORMAT
from ncs.storage.vectors import read_about
from ncs.text.stopwords import STOP_WORDS
from ncs.text.tokens import tokenize
from ncs.types import Document, Hit, Location

Answer = Mapping[str, Any]


def ask(
    index: Index,
    text: str,
    k: int = 10,
    *,
    ranker: str,
    language: str | None = None,
    repository: str | None = None,
    path: str | None = None,
    kind: str | None = None,
    functions_only: bool = False,
    code: bool = True,
    explain: bool = False,
    min_confidence: float | None = None,
    unfold: bool = False,
) -> Answer:
    """Search, and say what a reader needs to judge the hits.

    Keys: query, ranker, index, unknown_words (word -> near spellings), notes (sentences for people), hits; and of the
    default ranker kind: symbol, how-to, keywords or code.
    A hit has rank, score, confidence (of the default ranker: how probable it is that it is right; else None), id,
    repository, path, start_line, end_line, language, kind, name, qualified_name, matched (question words found in
    it), copies (where exact duplicates stand), near_copies (where near duplicates stand that were folded into it;
    with `unfold` they are hits of their own) and code (None when it is not kept or not asked for).

    With `min_confidence` less likely hits are left out; where none is left, a note says how likely the best was.

    With `explain` there is one key more, explanation: how the question was read (the fields of
    ncs.search.explain.explanation.Explanation: words, grammar, languages, added, symbols, kind, gates). So it is in
    each hit
    (the fields of Reasons): score, unrounded; shares (signal -> what it adds to the score: they add up to it; null
    where the ranker does not say); factors (multiplied into the shares already); words (each word of the question:
    word, met, similarity, fields, idf, shares); names (those that good candidates share: name, repositories, share);
    title and title_share (the file's name); defines (names asked for).
    """
    filters = Filters(language, repository, path, kind, functions_only)
    results = index.results(text, k, ranker=ranker, filters=filters, unfold=unfold, explain=explain)
    hits = [hit_as_dict(hit, text, code=code) for hit in results.hits]
    if results.explanation:
        for hit, explanation in zip(hits, results.explanation.hits, strict=True):
            hit["explanation"] = explanation
    unknown = index.unknown_words(text)
    notes = [*not_ready(index), *_notes(text, unknown, _corrections(results.ranking), bool(hits))]
    if min_confidence is not None:
        hits, unsure = _sure(hits, min_confidence)
        notes += unsure
    intent = results.ranking.intent
    return {
        "query": text,
        "ranker": ranker,
        "index": str(index.folder),
        **({"kind": intent.kind} if intent else {}),
        "unknown_words": unknown,
        "notes": notes,
        **({"explanation": results.explanation.reading} if results.explanation else {}),
        "hits": hits,
    }


def _corrections(ranking: Ranking) -> dict[str, str]:
    """Unknown word -> what the ranker took it for."""
    corrections = ranking.reading.expansion.corrections if ranking.reading else {}
    return {word: " ".join(others) for word, others in corrections.items()}


def not_ready(index: Index) -> list[str]:
    """What a first build has still to learn, as a sentence for people; nothing once it is complete."""
    pending = index.description.counts.get("pending")
    return [str(pending)] if pending else []


def _sure(shown: list[dict[str, Any]], least: float) -> tuple[list[dict[str, Any]], list[str]]:
    """The hits that are likely enough, and what to say where none is."""
    kept = [hit for hit in shown if is_sure(hit["confidence"], least)]
    if kept or not shown:
        return kept, []
    best = max(hit["confidence"] for hit in shown)
    return [], [f"nothing here answers that (best was {best:.2f}); ask with other words, or a lower --min-confidence"]


def ask_similar(
    index: Index,
    place: str,
    k: int = 10,
    *,
    language: str | None = None,
    repository: str | None = None,
    path: str | None = None,
    kind: str | None = None,
    code: bool = True,
) -> Answer:
    """Functions like the one at FILE:LINE: `similar_to` of it."""
    from ncs.search.similar import function_at, parse_place

    function = function_at(*parse_place(place))
    filters = {"language": language, "repository": repository, "path": path, "kind": kind}
    return similar_to(index, function, place, k, code=code, **filters)


def similar_to(
    index: Index,
    function: Document,
    asked: str,
    k: int = 10,
    *,
    language: str | None = None,
    repository: str | None = None,
    path: str | None = None,
    kind: str | None = None,
    code: bool = True,
) -> Answer:
    """Functions like this one, in the shape of `ask`; `query` is what was asked, `ranker` is "similar".

    More keys: function (name, path and lines of what was asked for), marked (its names, for the display); a hit has
    reverse (which share of its features the asked function has) and exact_copy.
    """
    from ncs.search.aroma import cached_features, similarity

    hits = index.similar(function, k, language=language, repository=repository, path=path, kind=kind)
    names = " ".join(dict.fromkeys((*function.words.get("calls", ()), *function.words.get("types", ()), function.name)))
    wanted = cached_features(function.code, function.language)
    return {
        "query": asked,
        "ranker": "similar",
        "index": str(index.folder),
        "unknown_words": {},
        "notes": [] if hits else [f"nothing like {function.qualified_name} found"],
        "function": {
            "qualified_name": function.qualified_name,
            "path": function.path,
            "start_line": function.start_line,
            "end_line": function.end_line,
        },
        "marked": names,
        "hits": [
            {
                **hit_as_dict(hit, names, code=code),
                "reverse": round(similarity(wanted, cached_features(hit.document.code, hit.document.language)), 6),
                "exact_copy": hit.document.digest == function.digest,
            }
            for hit in hits
        ],
    }


def _notes(text: str, unknown: Mapping[str, Sequence[str]], read_as: Mapping[str, str], found: bool) -> list[str]:
    """What to tell who asked: words the index does not know and what they were read as, a question of common words
    only, nothing found."""
    notes = []
    for word, near in unknown.items():
        near_it = f" (known words near it: {', '.join(near)})" if near else ""
        notes.append(f"unknown word: {word}" + (f", read as {read_as[word]}" if word in read_as else near_it))
    words = tokenize(text)
    if words and all(word in STOP_WORDS or word == "to" for word in words):
        notes.append(f"only common words in the question ({', '.join(words)}); add what the function does")
    if not words:
        notes.append("there is no word in the question")
    if not found:
        notes.append("nothing found; ask with other words, or see what is indexed: ncs info")
    return notes


def hit_as_dict(hit: Hit, text: str, *, code: bool = True) -> dict[str, Any]:
    """One hit, ready for JSON."""
    document = hit.document
    return {
        "rank": hit.rank,
        "score": round(hit.score, 6),
        "confidence": None if hit.confidence is None else round(hit.confidence, 4),
        **_identity(document),
        "matched": matched_words(document, text),
        "copies": list(map(_place, document.copies)),
        "near_copies": list(map(_place, hit.near_copies)),
        "code": (document.code or None) if code else None,
    }


def document_as_dict(document: Document, *, code: bool = True) -> dict[str, Any]:
    """A document by itself: what a hit says of it, without its place in a ranking."""
    copies = list(map(_place, document.copies))
    return {**_identity(document), "copies": copies, "code": (document.code or None) if code else None}


def _identity(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "repository": document.repository,
        "path": document.path,
        "start_line": document.start_line,
        "end_line": document.end_line,
        "language": document.language,
        "kind": document.kind,
        "name": document.name,
        "qualified_name": document.qualified_name,
    }


def words_like(index: Index, word: str, n: int = 10) -> Answer:
    """The words used most like this one, each with its similarity; `words` is None for a word without a vector, and
    `near` then has known words of near spelling."""
    found = index.neighbours(word, n)
    return {
        "word": word,
        "words": None if found is None else [{"word": other, "similarity": round(near, 4)} for other, near in found],
        "near": index.near_spellings(word) if found is None else [],
    }


def _place(at: Location) -> dict[str, Any]:
    return {"repository": at.repository, "path": at.path, "start_line": at.start_line, "end_line": at.end_line}


def describe(index: Index) -> dict[str, Any]:
    """What is in an index: counts, repositories, languages, configuration, sizes in bytes, versions."""
    description = index.description
    return {
        "index": str(index.folder),
        "format": FORMAT,
        "created": description.created,
        "documents": len(index),
        **{name: value for name, value in description.counts.items() if name != "documents"},
        "bytes": {name: entry["bytes"] for name, entry in sorted(description.files.items())},
        "config": description.config,
        "vectors": asdict(read_about(index.snapshot.segments[0].path / "ncs_centred")),
        "versions": description.versions,
        "notes": list(description.notes),
    }
