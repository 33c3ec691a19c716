"""Explanations of scores: the shares of signals and words, and their causes, as dictionaries and as lines of text.

The signals of hybrid, bm25, ncs and rrf are explained; for other rankers, which query words are in the document.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ncs.console import columns_of, fit_columns
from ncs.learn.tfidf import unit_rows
from ncs.search.highlight import first_words
from ncs.storage.arrays import distinct
from ncs.text.stems import stem_all
from ncs.text.tokens import tokenize
from ncs.types import FIELDS, NCS_FIELDS, Field

if TYPE_CHECKING:
    from ncs.learn.general import GeneralScorer
    from ncs.learn.tfidf import TfidfEncoder
    from ncs.search.rankers import Ranker
    from ncs.search.ranking import Internals, QueryAnalysis, Ranking
    from ncs.search.signals import Evidence
    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.names import Symbol
    from ncs.storage.words import WordReader
    from ncs.types import Matrix, Rows, Scores

DIGITS = 6


class Explanation(NamedTuple):
    """query: how the query was analyzed. hits: the score of each hit, in order.

    Keys of the query: words (searched for), grammar (its stop words and what only says that code is searched for),
    languages (names of languages that nearly every document is in, left out), added (words the ranker added), symbols
    (whose definitions are searched), kind (of query) and gates: number of candidates that vote in the consensus, their
    repositories, the effective number of these; support (mean number of repositories that use a leading name), and the
    weights of the consensus and the file signal.

    Keys of a hit: score; shares (signal -> its part of the score, factors multiplied in; None without signals);
    factors; words (of the query: word, met: the document's word of its stem, else the nearest by word vectors,
    similarity, fields, idf, shares); names (shared by good candidates: name, repositories that use it, share); title
    and title_share (words of the file's name, and their share); defines (symbols of the query that it defines);
    general (word, met: the stem of the function that stands for it in public code, share); together (the rest of that
    signal, of all words as one vector); context (stems of the function: word, share; the largest first).
    """

    query: dict[str, Any]
    hits: list[dict[str, Any]]


def explain(ranker: Ranker, text: str, ranking: Ranking, table: WordReader) -> Explanation:
    """The hits of `ranker.rank(text, ...)`. table: the words of all documents."""
    words = list(ranking.words)
    internals, rows = ranker.internals(), np.array(ranking.rows, np.int64)
    stems, intent = first_words(words), ranking.intent
    idf = internals.postings.idf(words) if internals.postings else {}
    factor = np.prod(list(ranking.factors.values()), axis=0)
    shares = {name: values * factor for name, values in ranking.signals.items()}
    by_word = _word_scores(words, ranking, internals, rows)
    evidence, analysis, facts = ranking.evidence, ranking.analysis, internals.facts
    causes: list[dict[str, Any]] = []
    if evidence and analysis and facts:
        causes = _causes(evidence, analysis, facts, rows, internals.title * factor, shares)
    hits = []
    for at, (row, score) in enumerate(ranking.hits):
        of_hit = {name: float(values[at]) for name, values in shares.items()}
        parts = {name: rescale(values[:, at], of_hit[name]).tolist() for name, values in by_word.items()}
        entries = match_words(words, table, row, internals.encoder)
        for i, (stem, entry) in enumerate(zip(stems, entries, strict=True)):
            entry |= {"idf": idf.get(stem), "shares": {name: values[i] for name, values in parts.items()}}
        factors = {name: float(values[at]) for name, values in ranking.factors.items()}
        hit = {"score": score, "shares": of_hit or None, "factors": factors, "words": tuple(entries)}
        head = _head_words(internals.general, words, row, of_hit)
        hits.append({**hit, **(causes[at] if causes else NO_CAUSES), **head})
    corrections = analysis.expansion.corrections if analysis else {}
    left_out = [word for word in dict.fromkeys(tokenize(text)) if word not in words and word not in corrections]
    languages = facts.languages if facts else ()
    query = {
        "words": tuple(dict.fromkeys(words)),
        "grammar": tuple(word for word in left_out if word not in languages),
        "languages": tuple(word for word in left_out if word in languages),
        "added": tuple(ranking.added),
        "symbols": tuple(map(_spelling, intent.symbols)) if intent else (),
        "kind": intent.kind if intent else None,
        "gates": _gates(evidence, facts) if evidence and facts else None,
    }
    return Explanation(query, hits)


def _head_words(
    head: GeneralScorer | None, words: Sequence[str], row: int, shares: Mapping[str, float]
) -> dict[str, Any]:
    """The keys general, together and context of a hit; shares: of its signals."""
    general, context, share = list[dict[str, Any]](), list[dict[str, Any]](), shares.get("general", 0.0)
    if head and share:
        rows = np.array([row])
        scale = share / float(head.scores(words, rows)[0])
        (matches,) = head.explain(words, rows)
        general = [{"word": each.query, "met": each.code, "share": scale * each.share} for each in matches]
    if head and (of_context := shares.get("context")):
        cosines = head.explain_context(words, row)
        parts = rescale(np.array(list(cosines.values())), of_context).tolist()
        pairs = sorted(zip(cosines, parts, strict=True), key=lambda pair: -pair[1])
        context = [{"word": word, "share": part} for word, part in pairs]
    together = share - sum(each["share"] for each in general)
    return {"general": tuple(general), "together": together, "context": tuple(context)}


def _gates(evidence: Evidence, facts: DocumentFacts) -> dict[str, Any]:
    """The weights of the signals that are computed from the candidates."""
    owners = facts.file_roles.repositories_of(evidence.pool)
    return {
        "candidates": len(owners),
        "repositories": len(distinct(owners)),
        "effective": round(1 / evidence.inside, DIGITS),
        "support": round(evidence.consensus.support, DIGITS),
        "consensus": round(evidence.consensus.gate, DIGITS),
        "inside": round(evidence.inside, DIGITS),
    }


NO_CAUSES: Mapping[str, Any] = {"names": (), "title": (), "title_share": 0.0, "defines": ()}


def _causes(
    evidence: Evidence,
    analysis: QueryAnalysis,
    facts: DocumentFacts,
    rows: Rows,
    title: Scores,
    shares: Mapping[str, Scores],
) -> list[dict[str, Any]]:
    """For each hit its shared names, words of the file's name and definitions. title: weight of that name, [hits]."""
    names, roles, symbols = _shared_names(evidence, facts), facts.file_roles, analysis.intent.symbols
    words = first_words(analysis.intent.words)
    in_title = {word: roles.title_match({stem: 1.0}, rows) > 0 for stem, word in words.items()}
    title_shares = evidence.inside * title * roles.title_match(analysis.idf, rows)
    defining = {symbol: facts.definitions.match(symbol)[0] for symbol in symbols}
    causes = []
    for at, row in enumerate(rows):
        consensus_share = float(shares["consensus"][at])
        used = np.flatnonzero(np.isin(evidence.consensus.names, facts.uses.of(rows[at : at + 1])[0]))
        parts = rescale(evidence.consensus.lifts[used], consensus_share).tolist()
        uses = [{**names[i], "share": part} for i, part in zip(used.tolist(), parts, strict=True)]
        defines = (_spelling(symbol) for symbol in symbols if row in defining[symbol])
        causes.append(
            {
                "names": tuple(uses) if consensus_share else (),
                "title": tuple(word for word, matches in in_title.items() if matches[at]),
                "title_share": float(title_shares[at]),
                "defines": tuple(defines) if shares["definition"][at] else (),
            }
        )
    return causes


def _shared_names(evidence: Evidence, facts: DocumentFacts) -> list[dict[str, Any]]:
    """The names of the consensus, and how many repositories of the pool use each."""
    ids, lengths = facts.uses.of(evidence.pool)
    owners = np.repeat(facts.file_roles.repositories_of(evidence.pool), lengths)
    names = evidence.consensus.names
    return [
        {"name": facts.uses.names.word(int(name)), "repositories": len(distinct(owners[ids == name]))} for name in names
    ]


def _spelling(symbol: Symbol) -> str:
    return ".".join((*symbol.qualifiers, symbol.name))


def _word_scores(words: Sequence[str], ranking: Ranking, internals: Internals, rows: Rows) -> dict[str, Scores]:
    """Signal -> scores by stem of the query before weights, [stems, hits]; lexical and meaning."""
    stems, scores = list(first_words(words)), {}
    if internals.postings and "lexical" in ranking.signals:
        terms = [term for term in internals.postings.terms(words) if term.documents]
        counts: Mapping[str, float] = Counter(term.stem for term in terms)
        if ranking.analysis:
            counts = ranking.analysis.expansion.query
        lexical = np.zeros((len(stems), len(rows)))
        for stem in counts:
            lexical[stems.index(stem)] = counts[stem] * internals.postings.scores({stem: 1.0}, rows)
        scores["lexical"] = lexical
    if internals.encoder and internals.vectors and "meaning" in ranking.signals:
        encoded, parts = query_parts(" ".join(words), internals.encoder)
        scores["meaning"] = np.zeros((len(stems), len(rows)))
        for stem, part in zip(stem_all(encoded), parts, strict=True):
            scores["meaning"][stems.index(stem)] += internals.vectors.similarities(part, rows)
    return scores


def match_words(
    words: Sequence[str], table: WordReader, row: int, encoder: TfidfEncoder | None
) -> list[dict[str, Any]]:
    """For each stem of the query: word, met, similarity (1, or a cosine) and fields, as in `Explanation`."""
    fields: dict[int, list[Field]] = {}
    for field in FIELDS:
        for id in dict.fromkeys(table.ids_of(row, field).tolist()):
            fields.setdefault(id, []).append(field)
    spellings = {table.vocabulary.word(id): each for id, each in fields.items()}
    stems = dict(zip(spellings, stem_all(spellings), strict=True))
    known = len(encoder.vectors) if encoder else 0  # words that are newer than the vectors have larger ids
    candidates = [id for id, each in fields.items() if id < known and not set(NCS_FIELDS).isdisjoint(each)]
    vectors = unit_rows(np.asarray(encoder.vectors[candidates], np.float32)) if encoder and candidates else None
    result = []
    for stem, word in first_words(words).items():
        entry: dict[str, Any] = {"word": word, "met": None, "similarity": None, "fields": ()}
        same = [spelling for spelling in spellings if stems[spelling] == stem]
        if same:
            in_fields = {field for spelling in same for field in spellings[spelling]}
            entry |= {"met": word if word in same else same[0], "similarity": 1.0}
            entry["fields"] = tuple(field for field in FIELDS if field in in_fields)
        elif vectors is not None and encoder is not None and (nearest := _nearest(word, vectors, encoder)):
            at, similarity = nearest
            entry |= {"met": encoder.vocabulary.word(candidates[at]), "similarity": similarity}
            entry["fields"] = tuple(fields[candidates[at]])
        result.append(entry)
    return result


def _nearest(word: str, vectors: Matrix, encoder: TfidfEncoder) -> tuple[int, float] | None:
    """The unit vector nearest to a word's vector, and their cosine; None if there is none."""
    id = encoder.vocabulary.id(word)
    vector = unit_rows(np.asarray(encoder.vectors[[] if id is None else [id]], np.float32))
    nonzero = vectors.any(axis=1)
    if not vector.any() or not nonzero.any():
        return None
    cosines = np.where(nonzero, vectors @ vector[0], -2.0)
    best = int(np.argmax(cosines))
    return best, float(cosines[best])


def query_parts(text: str, encoder: TfidfEncoder) -> tuple[list[str], Matrix]:
    """The words of `encoder.query` and the part of each in the vector, [n, d]; zero rows for unknown words."""
    words, positions, known_parts = encoder.parts(text)
    parts = np.zeros((len(words), encoder.vectors.shape[1]), np.float32)
    parts[positions] = known_parts
    length = float(np.linalg.norm(parts.sum(axis=0, dtype=np.float64)))
    return words, (parts / length).astype(np.float32) if length else parts


def rescale(parts: Scores, total: float) -> Scores:
    """The parts scaled to add up to the total, with the rounding error spread over them; zeros for a zero total.

    >>> rescale(np.array([0.25, 0.0, 0.75]), 2.0).tolist()
    [0.5, 0.0, 1.5]
    >>> rescale(np.array([0.5, -0.25]), 0.0).tolist()
    [0.0, 0.0]
    """
    if not total or not parts.any():
        return np.zeros(len(parts))
    parts_total = float(parts.sum())
    scaled = parts * (total / parts_total) if parts_total * total > 0 else parts
    return scaled + (total - float(scaled.sum())) * np.abs(scaled) / float(np.abs(scaled).sum())


MIN_WIDTH, MIN_WORD, MIN_FIELDS = 40, 8, 18
"""Minimum columns of a line, of a word, and of fields on the line of their word."""
NAMES = 5
"""Number of shared names shown."""
MIN_SHARE = 0.005
"""Least share for a word of the general head to be shown."""
ABOUT = {"similarity": "alike", "idf": "idf"}
_FILLER = "\0"


def query_lines(answer: Mapping[str, Any], width: int) -> list[str]:
    """Lines about the query: its kind, the words used and ignored, and the gates."""
    query, width = answer["explanation"], max(width, MIN_WIDTH)
    parts = [f"{query['kind']} query" if query["kind"] else f"ranker {answer['ranker']}"]
    parts.append(f"words: {', '.join(query['words']) or 'none'}")
    if ignored := [*query["grammar"], *(f"{word} (nearly all documents)" for word in query["languages"])]:
        parts.append(f"left out: {', '.join(ignored)}")
    if query["added"]:
        parts.append(f"added: {', '.join(query['added'])}")
    if query["symbols"]:
        parts.append(f"symbols: {', '.join(query['symbols'])}")
    if gates := query["gates"]:
        few = "y" if gates["repositories"] == 1 else "ies"
        parts.append(f"candidates: {gates['candidates']} of {gates['repositories']} repositor{few}")
        parts.append(f"gates: consensus {gates['consensus']:.2f}, file {gates['inside']:.2f}")
    return _wrap("; ".join(parts), width, "", "  ")


def reasons_lines(explanation: Mapping[str, Any], width: int, indent: int = 4) -> list[str]:
    """Lines about one hit: the sum of its signals, a table of words, and the causes of the other signals."""
    margin, width = " " * indent, max(width, MIN_WIDTH)
    lines: list[str] = []
    if explanation["shares"] is not None:
        sum_of = " + ".join(f"{name} {share:.4f}" for name, share in explanation["shares"].items() if share)
        halved = [f"{name} {factor:.2f}" for name, factor in explanation["factors"].items() if factor != 1]
        after = f" (after {' x '.join(halved)})" if halved else ""
        lines += _wrap(f"{round(explanation['score'], 6):.4f} = {sum_of}{after}", width, margin, margin + "  ")
    lines += [margin + line for line in _words(explanation["words"], width - indent)]
    causes = []
    if names := explanation["names"]:
        users = [f"{used['name']} ({used['repositories']})" for used in names[:NAMES]]
        users[0] = users[0].replace(")", " repositories)" if names[0]["repositories"] != 1 else " repository)")
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        causes.append(f"shared names: {', '.join(users)}{more}")
    if explanation["defines"]:
        causes.append(f"defines {', '.join(explanation['defines'])}")
    if explanation["together"] or explanation["general"]:
        shown = [each for each in explanation["general"] if each["share"] >= MIN_SHARE]
        links = [f"{' -> '.join(dict.fromkeys((each['word'], each['met'])))} {each['share']:.4f}" for each in shown]
        causes.append(f"public code: {', '.join([*links, 'all words together'])} {explanation['together']:.4f}")
    if about := [each for each in explanation["context"][:NAMES] if each["share"] >= MIN_SHARE]:
        said = ", ".join(f"{each['word']} {each['share']:.4f}" for each in about)
        causes.append(f"it is about {said}")
    if explanation["title"]:
        causes.append(f"file name matches {', '.join(explanation['title'])}: {explanation['title_share']:.4f}")
    return lines + [line for cause in causes for line in _wrap(cause, width, margin, margin + "  ")]


def _words(words: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """A table of words. If it is too wide, fields get their own line, then similarity and idf are dropped, then words
    are shortened."""
    if not words:
        return []
    about = [name for name in ABOUT if any(each[name] is not None for each in words)]
    signals = list(words[0]["shares"])
    while True:
        head = ["word", "met", *(ABOUT[name] for name in about), *signals]
        rows = [[each["word"], _match_text(each), *_numbers(each, about, signals)] for each in words]
        columns = [max(columns_of(row[at]) for row in [head, *rows]) for at in range(len(head))]
        spare = width - sum(columns) - 2 * (len(columns) - 1)
        if spare >= 0 or not about:
            break
        about.pop()
    beside = spare - 2 >= MIN_FIELDS
    for at in (0, 1):  # long identifiers are shortened, numbers never
        columns[at] -= min(max(0, -spare), max(0, columns[at] - MIN_WORD))
        spare = width - sum(columns) - 2 * (len(columns) - 1)
    lines = [_row(head, columns) + ("  in" if beside else "")]
    for row, each in zip(rows, words, strict=True):
        fields, line = ", ".join(each["fields"]), _row(row, columns)
        if beside and fields:
            lines += _wrap(fields, width, f"{line}  ", " " * (columns_of(line) + 2))
        else:
            lines += [line, *(_wrap(f"in {fields}", width, "  ", "     ") if fields else [])]
    return [line.rstrip() for line in lines]


def _match_text(word: Mapping[str, Any]) -> str:
    if word["met"] is None:
        return "-"
    return str(word["met"]) if word["similarity"] == 1 else f"~ {word['met']}"


def _numbers(word: Mapping[str, Any], about: Sequence[str], signals: Sequence[str]) -> list[str]:
    numbers = ["" if word[name] is None else f"{word[name]:.2f}" for name in about]
    return [*numbers, *(f"{word['shares'][name]:.4f}" if word["shares"][name] else "0" for name in signals)]


def _row(texts: Sequence[str], columns: Sequence[int]) -> str:
    """A row of the table: two words, left-aligned and shortened to fit, and numbers, right-aligned."""
    words = map(fit_columns, texts[:2], columns[:2])
    return "  ".join([*words, *map(str.rjust, texts[2:], columns[2:])])


def _wrap(text: str, width: int, first: str, rest: str) -> list[str]:
    """Lines of at most `width` columns; textwrap counts characters, so wide ones are followed by a filler."""
    wide = {character for character in text + first + rest if columns_of(character) == 2}
    filled = {ord(character): character + _FILLER for character in wide}
    indents: dict[str, Any] = {"initial_indent": first.translate(filled), "subsequent_indent": rest}
    lines = textwrap.wrap(text.translate(filled), width, break_on_hyphens=False, **indents)
    return [line.replace(_FILLER, "") for line in lines]
