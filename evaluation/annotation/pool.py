"""The pool to judge: the merged first hits of several rankers for each query (CodeSearchNet, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from corpora.codesearchnet.challenge import read_queries as read_challenge
from corpora.jsonl import read_lines, read_rows
from evaluation.experiments import require_code
from ncs.errors import BadInput
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.types import Document, Query, Run

MAX_QUERY = 2_000
"""Characters of a query."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings of a pool. k: functions per query and ranker, in each of the languages where some are named.

    seed: decides the order in which annotators see the pairs.
    """

    rankers: tuple[str, ...] = ("bm25", "ncs", "hybrid")
    k: int = 10
    languages: tuple[str, ...] = ()
    seed: int = 0

    def __str__(self) -> str:
        languages = "".join(f" --language {language}" for language in self.languages)
        return f"--rankers {','.join(self.rankers)} -k {self.k}{languages} --seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a function to judge for it. number: 1, 2, ...; digest: of the code, 16 bytes.

    ranks: ranker -> its rank of the function; annotators do not see them.
    """

    number: int
    query: str
    document: str
    digest: bytes
    language: str
    ranks: Mapping[str, int]


def make_pool(index: Index, queries: Sequence[Query], recipe: Recipe, track: Track = silent) -> list[Pair]:
    """The pairs of all queries, each function once per query, however many rankers find it.

    Raises BadInput for a ranker or language that the index does not have, an index without code, and for an empty pool.
    """
    require_code(index)
    for ranker in recipe.rankers:
        index.ranker(ranker)  # a missing one is an error before any work
    pairs: list[Pair] = []
    for query in track(queries, "pooling", total=len(queries), unit="queries"):
        documents: dict[str, Document] = {}
        ranks: dict[str, dict[str, int]] = {}
        for only in recipe.languages or (None,):
            for ranker in recipe.rankers:
                for hit in index.search(query.text, recipe.k, ranker=ranker, language=only, functions_only=True):
                    documents[hit.document.id] = hit.document
                    ranks.setdefault(hit.document.id, {})[ranker] = hit.rank
        for number, (id, document) in enumerate(documents.items(), len(pairs) + 1):
            pairs.append(Pair(number, query.id, id, digest(document), document.language, ranks[id]))
    if not pairs:
        raise BadInput("the rankers find nothing for any of the queries; use words that the code has")
    return pairs


def digest(document: Document) -> bytes:
    """A 16-byte digest of a function's code."""
    return blake2b(document.code.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def runs(pairs: Sequence[Pair], recipe: Recipe) -> Mapping[str, Run]:
    """ranker -> its run over the pool, scores by rank alone."""
    by_ranker: dict[str, dict[str, dict[str, float]]] = {ranker: {} for ranker in recipe.rankers}
    for pair in pairs:
        for ranker, rank in pair.ranks.items():
            by_ranker[ranker].setdefault(pair.query, {})[pair.document] = float(recipe.k + 1 - rank)
    return by_ranker


# Queries.


def read_queries(path: Path) -> tuple[Query, ...]:
    """The queries of a file, by its name's ending; `.gz` may follow it.

    .csv: the Challenge's, a header `query` and one per line. .tsv: id, tab, text. .jsonl: objects with text (or query)
    and perhaps _id (or id). All else: one per line. Without ids they are 1, 2, ...; empty lines are skipped.
    Raises BadInput, naming the line, for a query that cannot be judged or exported later: no text, an id with white
    space, a repeated id or text; and for a file that holds none.
    """
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    queries: list[Query] = []
    places: dict[tuple[str, str], str] = {}
    for place, query in _READERS.get(ending, _read_lines)(path):
        if problem := _problem(query):
            raise BadInput(f"{place}: {problem}")
        for label, key in (("id", query.id), ("query", query.text.casefold())):
            if (label, key) in places:
                raise BadInput(f"{place}: the {label} {key[:80]!r} is already at {places[label, key]}; "
                               "keep one of them")  # fmt: skip
            places[label, key] = place
        queries.append(query)
    if not queries:
        raise BadInput(f"{path} has no queries; write one per line")
    return tuple(queries)


def _problem(query: Query) -> str:
    if not query.text:
        return "no text; write the query, or take the line out"
    if len(query.text) > MAX_QUERY:
        return f"a query of {len(query.text):,} characters; shorten it to {MAX_QUERY:,}"
    if not query.id or query.id.split() != [query.id]:
        return f"the id {query.id[:80]!r} is empty or holds white space, as no qrels can; rename it"
    if any("\ud800" <= letter <= "\udfff" for letter in query.id + query.text):
        return "half a surrogate pair, which is not Unicode; correct that line"
    return ""


Readable = Iterator[tuple[str, Query]]
"""Queries, each with its place: `file:line`."""


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            yield f"{path}:{number}", line


def _read_lines(path: Path) -> Readable:
    for id, (place, line) in enumerate(_lines(path), 1):
        yield place, Query(str(id), line.strip())


def _read_table(path: Path) -> Readable:
    for place, line in _lines(path):
        id, tab, text = line.partition("\t")
        if not tab:
            raise BadInput(f"{place}: no tab; write the id, a tab and the query")
        yield place, Query(id.strip(), text.strip())


def _read_objects(path: Path) -> Readable:
    for number, row in enumerate(read_rows(path), 1):
        id = next((row.values[key] for key in ("_id", "id") if key in row.values), number)
        if type(id) not in (str, int):
            raise BadInput(f"{row.place}: the id is neither text nor a whole number; correct that line")
        yield row.place, Query(str(id), row.text("text" if "text" in row.values else "query").strip())


def _read_challenge(path: Path) -> Readable:
    for query in read_challenge(path):
        yield f"{path}:{int(query.id) + 1}", query


_READERS: Mapping[str, Callable[[Path], Readable]] = {
    ".csv": _read_challenge,
    ".tsv": _read_table,
    ".jsonl": _read_objects,
}
