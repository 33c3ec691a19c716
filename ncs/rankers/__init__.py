"""Every way of ranking, by name; each is imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from ncs.errors import BadInput
from ncs.progress import Track, silent

if TYPE_CHECKING:
    from ncs.embeddings import Embeddings
    from ncs.types import Mask
    from ncs.vocabulary import WordTable


class Ranker(Protocol):
    """Orders the documents of an index for a question.

    Scores order, nothing more: higher is better, ties go to the lower row.
    `fit` learns from the words of all documents; `save` writes into `<folder>/<name>/`
    and `load` reads from there, memory-mapped, plus what the data folder shares
    (vocabulary, embeddings).
    """

    name: str
    config: Mapping[str, object]

    def fit(self, words: WordTable, embeddings: Embeddings, *, track: Track = silent) -> None: ...

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows among the allowed ones, ordered by (-score, row)."""
        ...

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...


RANKERS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "bm25": ("ncs.rankers.bm25:Bm25Ranker", {}),
    "ncs": ("ncs.rankers.ncs:NcsRanker", {}),
    "ncs_centred": (
        "ncs.rankers.ncs:NcsRanker",
        {"query_weights": "idf", "centre": True, "stop_words": False},
    ),
    "hybrid": ("ncs.rankers.hybrid:HybridRanker", {"parts": ("bm25", "ncs_centred")}),
}
"""name -> (module:class, its configuration). `ncs` is the published form."""
DEFAULT_RANKER = "hybrid"


def create_ranker(name: str, **config: object) -> Ranker:
    """A ranker by name, its defaults overridden by config; BadInput names the known ones."""
    if name not in RANKERS:
        raise BadInput(f"no ranker called {name!r}; there are: {', '.join(RANKERS)}")
    target, defaults = RANKERS[name]
    module, _, attribute = target.partition(":")
    kind: Any = getattr(importlib.import_module(module), attribute)
    return cast(Ranker, kind(name=name, **{**defaults, **config}))
