"""What embedding costs, and what a ranker's files weigh: the two of CoIR's efficiency figures that no search shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ncs.search.baselines.dense import DenseRanker, text_of
from ncs.search.ncs import NcsRanker

if TYPE_CHECKING:
    from ncs.index import Index
    from ncs.search.rankers import Ranker
    from ncs.types import Query

SAMPLE = 1000
"""Documents, and queries, that the latency of our own encoders is taken over."""
SAMPLE_OF_MODELS = 100
"""The same for the models of others, which may take seconds a text."""


def embedding_milliseconds(index: Index, ranker: Ranker, queries: Sequence[Query]) -> tuple[float | None, float | None]:
    """Milliseconds to embed one document and one query: a batch's time over its size (CoIR, section 5.1).

    Of a ranker made of others, the sum over its parts; (None, None) where nothing is embedded.
    """
    found = [_measured(index, part, [query.text for query in queries]) for part in _parts(ranker)]
    known = [each for each in found if each is not None]
    if not known:
        return None, None
    return round(sum(document for document, _ in known), 4), round(sum(query for _, query in known), 4)


def saved_bytes(index: Index, ranker: Ranker) -> int | None:
    """Bytes of the files that this ranker, and its parts, saved in the index; None for one that saved none."""
    names = {ranker.name, *(part.name for part in _parts(ranker))}
    files = [path for name in names for path in (index.data / name).rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files) or None


def _parts(ranker: Ranker) -> Iterator[Ranker]:
    """The ranker itself, or the rankers it is made of: several (fusions), or one whose ranking it changes."""
    several: Sequence[Ranker] = getattr(ranker, "rankers", ())
    one: Ranker | None = getattr(ranker, "part", None)
    parts = [*several, *([one] if one is not None else [])]
    if not parts:
        yield ranker
    for part in parts:
        yield from _parts(part)


def _measured(index: Index, ranker: Ranker, texts: Sequence[str]) -> tuple[float, float] | None:
    """Milliseconds a document and a query; None for a ranker that embeds nothing."""
    if isinstance(ranker, DenseRanker):
        asked = texts[:SAMPLE_OF_MODELS]
        documents = index.store.documents(range(min(SAMPLE_OF_MODELS, len(index))))
        read = [text_of(document) for document in documents]
        ranker.model.queries(asked[:1])  # what a first call loads is not a text's latency
        return (
            _each(partial(ranker.model.documents, read), len(read)),
            _each(partial(ranker.model.queries, asked), len(asked)),
        )
    if not isinstance(ranker, NcsRanker):
        return None
    encoder, n, asked = ranker.encoder, min(SAMPLE, len(index)), texts[:SAMPLE]
    return (
        _each(partial(encoder.documents, index.words(), 0, n), n),
        _each(lambda: [encoder.query(text) for text in asked], len(asked)),
    )


def _each(work: Callable[[], object], n: int) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000 / n
