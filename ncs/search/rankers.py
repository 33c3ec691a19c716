"""The registry of rankers by name, imported on first use, and the interface that they implement."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.search.ranking import Ranking

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings
    from ncs.learn.tfidf import TfidfEncoder
    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.documents import DocumentTable
    from ncs.storage.postings import Postings
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.vectors import Vectors
    from ncs.storage.words import WordTable
    from ncs.types import Mask


@dataclass(frozen=True, slots=True)
class Internals:
    """The data of a ranker that explanations read. title: weight of the file name."""

    postings: Postings | None = None
    encoder: TfidfEncoder | None = None
    vectors: Vectors | None = None
    facts: DocumentFacts | None = None
    title: float = 0.0


class Ranker:
    """The interface of rankers, with defaults for optional methods.

    Scores only order: higher is better, ties go to the lower row. A build calls `prepare`, `fit`,
    `fit_documents` and `save`; an update calls `extend`; a query `load` and `search` or `rank`.
    """

    name: str
    config: Mapping[str, object]
    can_extend: bool = False
    """Whether `extend` works; otherwise an update is a build."""

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows among the allowed ones, ordered by (-score, row); raises BadInput for k < 1."""
        raise NotImplementedError

    def rank(
        self, text: str, k: int, *, allowed: Mask | None = None, fold: bool = False, confidences: bool = False
    ) -> Ranking:
        """`search`, with signals and other details of the hits.

        fold, confidences: fold near duplicates and estimate confidences, if the ranker can.
        """
        hits = self.search(text, k, allowed=allowed)
        return Ranking([row for row, _ in hits], [score for _, score in hits])

    def internals(self) -> Internals:
        """Its data for explanations."""
        return Internals()

    def prepare(self, statistics: Path | None = None) -> None:
        """Open external resources: a file, a model, a server; raises NcsError if one is missing.

        statistics: of the current index, which may have a copy of a missing resource.
        """

    def fit(self, words: WordTable, embeddings: Embeddings, *, track: Track = silent) -> None:
        """Learn from the words of all documents."""

    def fit_documents(self, documents: DocumentTable, *, track: Track = silent) -> None:
        """After `fit`: learn from the documents. Raises BadInput if it needs code and the index has none."""

    def save(self, statistics: Path, segment: Path) -> None:
        """Write into the folders `<name>` of both: what was learned, and what was computed from the documents."""

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        """Write the files of a new segment, with the existing statistics."""
        raise BadInput(f"ranker {self.name!r} cannot be extended; build the index again")

    def load(self, snapshot: Snapshot) -> None:
        """Open what `save` and `extend` wrote, memory-mapped."""


@runtime_checkable
class Composed(Protocol):
    """A ranker made of other rankers, which an index opens once."""

    def assemble(self, snapshot: Snapshot, part: Callable[[str], Ranker]) -> None:
        """`load` with open parts; part: returns one by name."""
        ...


RANKERS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "bm25": ("ncs.search.bm25:Bm25Ranker", {}),
    "ncs": ("ncs.search.ncs:NcsRanker", {}),
    "ncs_centred": (
        "ncs.search.ncs:NcsRanker",
        {"query_weights": "idf", "centre": True, "stop_words": False},
    ),
    "two_field": ("ncs.search.baselines.two_field:TwoFieldRanker", {}),
    "ncs_enhanced": ("ncs.search.baselines.enhanced:EnhancedRanker", {}),
    "ncs_postrank": ("ncs.search.baselines.postrank:PostrankRanker", {}),
    "transformers": ("ncs.search.baselines.transformers:transformers_ranker", {}),
    "endpoint": ("ncs.search.baselines.endpoint:endpoint_ranker", {}),
    "unif": ("ncs.search.unif:UnifRanker", {}),
    "rrf": ("ncs.search.fusion:RrfRanker", {"parts": ("bm25", "ncs_centred")}),
    "hybrid": ("ncs.search.hybrid:HybridRanker", {}),
}
"""name -> (module:class, its configuration). `ncs` is the published form."""
ON_REQUEST: Mapping[str, str] = {
    "two_field": "",
    "ncs_postrank": "",
    "ncs_enhanced": "pairs",
    "transformers": "model",
    "endpoint": "url",
    "unif": "head",
}
"""Rankers that a build fits only on request, and their required setting."""
DEFAULT_RANKER = "hybrid"


def create_ranker(name: str, **config: object) -> Ranker:
    """A ranker by name, its defaults overridden by config; raises BadInput for unknown names."""
    if name not in RANKERS:
        raise BadInput(f"no ranker called {name!r}; there are: {', '.join(RANKERS)}")
    target, defaults = RANKERS[name]
    module, _, attribute = target.partition(":")
    kind: Any = getattr(importlib.import_module(module), attribute)
    if config:
        _check_settings(name, kind, config)
    return cast(Ranker, kind(name=name, **{**defaults, **config}))


def _check_settings(name: str, kind: Any, config: Mapping[str, object]) -> None:
    from inspect import signature  # here to keep a query's cold start fast

    settings = [each for each in signature(kind).parameters if each not in ("name", "options")]
    settings += [each for each in getattr(kind, "OPTIONS", ()) if each not in settings]
    for setting in config:
        if setting not in settings:
            raise BadInput(f"ranker {name!r} has no setting {setting!r}; there are: {', '.join(settings)}")


def load_ranker(name: str, snapshot: Snapshot, **config: object) -> Ranker:
    """A ranker by name, opened from a snapshot."""
    ranker = create_ranker(name, **config)
    ranker.load(snapshot)
    return ranker


FITTED = ("bm25", "ncs", "ncs_centred")
"""Rankers that every build fits and saves; others may be composed of them."""


def create_part(name: str) -> Ranker:
    """One of FITTED; raises BadInput for others."""
    if name not in FITTED:
        raise BadInput(f"{name!r} cannot be a part of another ranker; these can: {', '.join(FITTED)}")
    return create_ranker(name)


def save_part(part: Ranker, statistics: Path, segment: Path) -> None:
    """Save a part under its own name, unless it is saved already."""
    if not (segment / part.name).is_dir():
        part.save(statistics, segment)


def requested_ranker(text: str) -> Ranker:
    """Parse a ranker on request; raises BadInput if it cannot be fitted with these settings."""
    name, settings = read_ranker(text)
    needs = ON_REQUEST.get(name)
    if needs is None:
        raise BadInput(f"{name!r} is no ranker on request; these are: {', '.join(ON_REQUEST)}")
    if needs and needs not in settings:
        raise BadInput(f"{name!r} cannot be built without its {needs}; write {name}:{needs}=...")
    return create_ranker(name, **settings)


def fit_ranker(
    ranker: Ranker, words: WordTable, embeddings: Embeddings, documents: DocumentTable, *, track: Track = silent
) -> None:
    """Fit a ranker to words, embeddings and documents."""
    ranker.fit(words, embeddings, track=track)
    ranker.fit_documents(documents, track=track)


def statistics_of(snapshot: Snapshot, name: str) -> Path:
    """The statistics folder of a ranker on request; raises BadInput if the index has none."""
    room = snapshot.statistics / name
    if not room.is_dir():
        option = f"{name}:{needs}=..." if (needs := ON_REQUEST.get(name)) else name
        raise BadInput(f"this index was built without {name!r}; build it again with: ncs build --ranker {option}")
    return room


def read_ranker(text: str) -> tuple[str, dict[str, object]]:
    """Parse a ranker and its settings; values are JSON if possible. Raises BadInput.

    >>> read_ranker("ncs_enhanced:pairs=pairs.jsonl.gz,least_weight=0.1")
    ('ncs_enhanced', {'pairs': 'pairs.jsonl.gz', 'least_weight': 0.1})
    """
    name, _, rest = text.partition(":")
    settings: dict[str, object] = {}
    for part in rest.split(",") if rest else ():
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise BadInput(f"{part!r} is no setting of a ranker; write {name}:key=value")
        settings[key] = _value(value)
    if name not in RANKERS:
        raise BadInput(f"no ranker called {name!r}; there are: {', '.join(RANKERS)}")
    return name, settings


def _value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value
