"""The pool to judge: the merged first hits of several rankers for each query (CodeSearchNet, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from corpora.codesearchnet import read_queries as read_challenge
from corpora.jsonl import read_lines, read_rows
from ncs.errors import BadInput
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.search.rankers import RANKERS
from ncs.types import Document, Query, Run

DEFAULT_RANKERS = ("bm25", "ncs", "hybrid")
DEPTH = 10
MAX_QUERY = 2_000
"""Characters of a query."""
Placed = Iterator[tuple[str, Query]]
"""Queries, each with its place: `file:line`."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a pool is made. k: functions per query and ranker, in each of the languages where some are named.

    seed: of the order in which people see the pairs.
    """

    rankers: tuple[str, ...] = DEFAULT_RANKERS
    k: int = DEPTH
    languages: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a function to judge for it. number: 1, 2, ...; digest: of the code, 16 bytes.

    ranks: ranker -> the rank at which it has the function; people do not see them.
    """

    number: int
    query: str
    document: str
    digest: bytes
    language: str
    ranks: Mapping[str, int]


def pool(index: Index, queries: Sequence[Query], recipe: Recipe, track: Track = silent) -> list[Pair]:
    """The pairs of all queries, each function once per query, however many rankers find it.

    Raises BadInput for a ranker or language that the index does not have, an index without code, and for an empty pool.
    """
    _check_recipe(index, recipe)
    pairs: list[Pair] = []
    for query in track(queries, "pooling", total=len(queries), unit="queries"):
        documents: dict[str, Document] = {}
        ranks: dict[str, dict[str, int]] = {}
        for language in recipe.languages or (None,):
            for ranker in recipe.rankers:
                for hit in index.search(query.text, recipe.k, ranker=ranker, language=language, functions_only=True):
                    documents.setdefault(hit.document.id, hit.document)
                    ranks.setdefault(hit.document.id, {})[ranker] = hit.rank
        for id, document in documents.items():
            number = len(pairs) + 1
            pairs.append(Pair(number, query.id, id, digest(document), document.language, ranks[id]))
    if not pairs:
        raise BadInput("the rankers find nothing for any of the queries; use words that the code has")
    return pairs


def digest(document: Document) -> bytes:
    """A 16-byte digest of a function's code."""
    return blake2b(document.code.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def runs(pairs: Sequence[Pair], recipe: Recipe) -> dict[str, Run]:
    """ranker -> its run over the pool, scores by rank alone."""
    by_ranker: dict[str, dict[str, dict[str, float]]] = {ranker: {} for ranker in recipe.rankers}
    for pair in pairs:
        for ranker, rank in pair.ranks.items():
            by_ranker[ranker].setdefault(pair.query, {})[pair.document] = float(recipe.k + 1 - rank)
    return dict(by_ranker)


def _check_recipe(index: Index, recipe: Recipe) -> None:
    if not index.description.config.get("store_code", True):
        raise BadInput(f"{index.folder} holds no code to judge; build it without --no-store-code")
    for name in recipe.rankers:
        if name not in RANKERS:
            raise BadInput(f"no ranker called {name!r}; choose one of: {', '.join(RANKERS)}")
        if not index.has_ranker(name):
            raise BadInput(f"{index.folder} has no ranker {name!r}; fit it with: ncs build --ranker {name}")
    languages = index.description.counts.get("languages")
    for language in recipe.languages:
        if isinstance(languages, Mapping) and language not in languages:
            raise BadInput(f"{index.folder} has no {language}; it has: {', '.join(languages)}")


def read_queries(path: Path) -> tuple[Query, ...]:
    """The queries of a file, by its name's ending; `.gz` may follow it.

    .csv: the Challenge's, a header `query` and one per line. .tsv: id, tab, text. .jsonl: objects with text (or query)
    and perhaps _id (or id). All else: one per line. Without ids they are 1, 2, ...; empty lines are skipped.
    Raises BadInput, naming the line, for what cannot be judged or exported later: no text, an id with white space, an
    id or a text that comes twice; and for a file that holds none.
    """
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    try:
        queries = list(_READERS.get(ending, _of_lines)(path))
    except OSError as error:
        raise BadInput(f"cannot read {path} ({error.strerror}); name a file of queries") from None
    if not queries:
        raise BadInput(f"{path} has no queries; write one per line")
    ids, texts = dict[str, str](), dict[str, str]()
    for place, query in queries:
        _check_query(query, place)
        for places, key, label in ((ids, query.id, "id"), (texts, query.text.casefold(), "query")):
            if key in places:
                raise BadInput(f"{place}: the {label} {key[:80]!r} is already at {places[key]}; keep one of them")
            places[key] = place
    return tuple(query for _, query in queries)


def _check_query(query: Query, place: str) -> None:
    if not query.text:
        raise BadInput(f"{place}: no text; write the query, or take the line out")
    if len(query.text) > MAX_QUERY:
        raise BadInput(f"{place}: a query of {len(query.text):,} characters; shorten it to {MAX_QUERY:,}")
    if not query.id or query.id.split() != [query.id]:
        raise BadInput(f"{place}: the id {query.id[:80]!r} is empty or holds white space, as no qrels can; rename it")
    try:
        (query.id + query.text).encode()
    except UnicodeEncodeError:
        raise BadInput(f"{place}: half a surrogate pair, which is not Unicode; correct that line") from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_lines(path), 1):
        if text := line.lstrip("\ufeff").rstrip("\r\n"):
            yield number, text


def _of_lines(path: Path) -> Placed:
    filled = ((number, text) for number, line in _lines(path) if (text := line.strip()))
    for id, (number, text) in enumerate(filled, 1):
        yield f"{path}:{number}", Query(str(id), text)


def _of_table(path: Path) -> Placed:
    for number, line in _lines(path):
        id, tab, text = line.partition("\t")
        if not line.strip():
            continue
        if not tab:
            raise BadInput(f"{path}:{number}: no tab; write the id, a tab and the query")
        yield f"{path}:{number}", Query(id.strip(), text.strip())


def _of_objects(path: Path) -> Placed:
    for number, row in enumerate(read_rows(path), 1):
        id = next((row.values[key] for key in ("_id", "id") if key in row.values), number)
        if type(id) not in (str, int):
            raise BadInput(f"{row.place}: the id is neither text nor a whole number; correct that line")
        text = row.text("text" if "text" in row.values else "query")
        yield row.place, Query(str(id), text.strip())


def _of_challenge(path: Path) -> Placed:
    for query in read_challenge(path):
        yield f"{path}:{int(query.id) + 1}", query


_READERS: Mapping[str, Callable[[Path], Placed]] = {
    ".csv": _of_challenge,
    ".tsv": _of_table,
    ".jsonl": _of_objects,
}
