"""What is judged: for every query the first functions of several rankers, merged (CodeSearchNet, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ncs.errors import BadInput
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.search.rankers import RANKERS
from ncs.types import Document, Query, Run

DEFAULT_RANKERS = ("bm25", "ncs", "hybrid")
DEPTH = 10


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a pool is made. k: functions a query and ranker, in each of the languages where some are named.

    seed: of the order in which people see the pairs.
    """

    rankers: tuple[str, ...] = DEFAULT_RANKERS
    k: int = DEPTH
    languages: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a function to judge for it. number: 1, 2, ...; digest: of the code, 16 bytes.

    ranks: ranker -> at which rank it found the function; people do not see them.
    """

    number: int
    query: str
    document: str
    digest: bytes
    language: str
    ranks: Mapping[str, int]


def pool(index: Index, queries: Sequence[Query], recipe: Recipe, track: Track = silent) -> list[Pair]:
    """The pairs of all queries, each function once a query, however many rankers find it.

    Raises BadInput for an unknown ranker, one that the index has not, a language that it has not, an index without
    code, and where nothing is found.
    """
    _check(index, recipe)
    pairs: list[Pair] = []
    for query in track(queries, "pooling", total=len(queries), unit="queries"):
        found: dict[str, Document] = {}
        ranks: dict[str, dict[str, int]] = {}
        for language in recipe.languages or (None,):
            for ranker in recipe.rankers:
                for hit in index.search(query.text, recipe.k, ranker=ranker, language=language, functions_only=True):
                    found.setdefault(hit.document.id, hit.document)
                    ranks.setdefault(hit.document.id, {})[ranker] = hit.rank
        for id, document in found.items():
            number = len(pairs) + 1
            pairs.append(Pair(number, query.id, id, digest(document), document.language, ranks[id]))
    if not pairs:
        raise BadInput("the rankers find nothing for any of the queries; ask with words that the code has")
    return pairs


def digest(document: Document) -> bytes:
    """16 bytes that tell a function's code from every other."""
    return blake2b(document.code.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def runs(pairs: Sequence[Pair], recipe: Recipe) -> dict[str, Run]:
    """ranker -> its run over the pool, scores by rank alone."""
    found: dict[str, dict[str, dict[str, float]]] = {ranker: {} for ranker in recipe.rankers}
    for pair in pairs:
        for ranker, rank in pair.ranks.items():
            found[ranker].setdefault(pair.query, {})[pair.document] = float(recipe.k + 1 - rank)
    return dict(found)


def _check(index: Index, recipe: Recipe) -> None:
    if not index.description.config.get("store_code", True):
        raise BadInput(f"{index.folder} holds no code to judge; build it without --no-store-code")
    for name in recipe.rankers:
        if name not in RANKERS:
            raise BadInput(f"no ranker called {name!r}; there are: {', '.join(RANKERS)}")
        if not index.has_ranker(name):
            raise BadInput(f"{index.folder} has no ranker {name!r}; fit it with: ncs build --ranker {name}")
    there = index.description.counts.get("languages")
    for language in recipe.languages:
        if isinstance(there, Mapping) and language not in there:
            raise BadInput(f"{index.folder} has no {language}; it has: {', '.join(there)}")
