"""Every way of ranking, by name; each is imported when it is used first."""

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
    from ncs.storage.document_facts import Structure
    from ncs.storage.documents import Store
    from ncs.storage.postings import Postings
    from ncs.storage.vectors import VectorIndex
    from ncs.storage.words import WordTable
    from ncs.types import Mask


@dataclass(frozen=True, slots=True)
class Internals:
    """What a ranker compares a query with, as far as explanations know it. title: what a file's name counts."""

    postings: Postings | None = None
    encoder: TfidfEncoder | None = None
    vectors: VectorIndex | None = None
    structure: Structure | None = None
    title: float = 0.0


class Ranker(Protocol):
    """Orders the documents of an index for a query. Classes inherit from it, and with that what they do not do.

    Scores order, nothing more: higher is better, ties go to the lower row. `fit` learns from the words of all
    documents; `save` writes into `<folder>/<name>/` and `load` reads from there, memory-mapped, plus what the data
    folder shares (vocabulary, embeddings).
    """

    name: str
    config: Mapping[str, object]

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows among the allowed ones, ordered by (-score, row); raises BadInput for k < 1."""
        ...

    def rank(
        self, text: str, k: int, *, allowed: Mask | None = None, fold: bool = False, confidences: bool = False
    ) -> Ranking:
        """`search`, with all that the ranker knows of the hits.

        fold, confidences: fold near duplicates, and say how probable it is that each hit is right, where the ranker
        can.
        """
        hits = self.search(text, k, allowed=allowed)
        return Ranking([row for row, _ in hits], [score for _, score in hits])

    def internals(self) -> Internals:
        """What it compares a query with, for explanations."""
        return Internals()

    def fit(self, words: WordTable, embeddings: Embeddings, *, track: Track = silent) -> None: ...

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...


@runtime_checkable
class Composed(Protocol):
    """A ranker that owns no data: all of it is other rankers, which an index opens once, whoever uses them."""

    def assemble(self, folder: Path, part: Callable[[str], Ranker]) -> None:
        """`load` with parts that are open already: part gives them by name."""
        ...


@runtime_checkable
class ReadsDocuments(Protocol):
    """A ranker that also learns from the documents themselves: their code, their lines.

    `fit_documents` comes after `fit`. Raises BadInput where it needs code and the index has none.
    """

    def fit_documents(self, store: Store, *, track: Track = silent) -> None: ...


@runtime_checkable
class NeedsMore(Protocol):
    """A ranker that also needs something from outside the index: a file, a model, a server.

    `prepare` raises NcsError where it is missing: a build calls it before its hours of work, not after.
    """

    def prepare(self) -> None: ...


@runtime_checkable
class KeepsCopy(Protocol):
    """A ranker whose folder in an index holds all that it was made of, so that it can be made again from there."""

    def take_over(self, data: Path) -> None:
        """Before `prepare`: use what this data folder holds where the original is gone."""
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
    "unif": ("unif.ranker:UnifRanker", {}),
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
"""Rankers that a build fits only where it is told to, and the setting that fitting cannot do without."""
DEFAULT_RANKER = "hybrid"


def create_ranker(name: str, **config: object) -> Ranker:
    """A ranker by name, its defaults overridden by config; BadInput names the known ones."""
    if name not in RANKERS:
        raise BadInput(f"no ranker called {name!r}; there are: {', '.join(RANKERS)}")
    target, defaults = RANKERS[name]
    module, _, attribute = target.partition(":")
    kind: Any = getattr(importlib.import_module(module), attribute)
    if config:
        _check_settings(name, kind, config)
    return cast(Ranker, kind(name=name, **{**defaults, **config}))


def _check_settings(name: str, kind: Any, config: Mapping[str, object]) -> None:
    from inspect import signature  # here, because a cold query has no settings

    known = [each for each in signature(kind).parameters if each not in ("name", "options")]
    known += [each for each in getattr(kind, "OPTIONS", ()) if each not in known]
    for setting in config:
        if setting not in known:
            raise BadInput(f"ranker {name!r} has no setting {setting!r}; there are: {', '.join(known)}")


def load_ranker(name: str, folder: Path) -> Ranker:
    """A ranker by name, opened from a data folder."""
    ranker = create_ranker(name)
    ranker.load(folder)
    return ranker


PARTS = ("bm25", "ncs", "ncs_centred")
"""Rankers that others may be put around: words are all they need, and every build saves them."""


def create_part(name: str) -> Ranker:
    """One of PARTS; BadInput names them."""
    if name not in PARTS:
        raise BadInput(f"{name!r} cannot be a part of another ranker; these can: {', '.join(PARTS)}")
    return create_ranker(name)


def save_part(part: Ranker, folder: Path) -> None:
    """Save it under its own name, unless the build did."""
    if not (folder / part.name).is_dir():
        part.save(folder)


def requested_ranker(text: str) -> Ranker:
    """A ranker on request as people type it; BadInput for one that cannot be fitted with these settings."""
    name, settings = read_ranker(text)
    needs = ON_REQUEST.get(name)
    if needs is None:
        raise BadInput(f"{name!r} is no ranker on request; these are: {', '.join(ON_REQUEST)}")
    if needs and needs not in settings:
        raise BadInput(f"{name!r} cannot be built without its {needs}; write {name}:{needs}=...")
    return create_ranker(name, **settings)


def fit_ranker(
    ranker: Ranker, words: WordTable, embeddings: Embeddings, store: Store, *, track: Track = silent
) -> None:
    """Fit a ranker to words and embeddings, and to the documents where it reads these too."""
    ranker.fit(words, embeddings, track=track)
    if isinstance(ranker, ReadsDocuments):
        ranker.fit_documents(store, track=track)


def built_room(folder: Path, name: str) -> Path:
    """Where the files of a ranker on request are, in a data folder; BadInput where the build made none."""
    room = folder / name
    if not room.is_dir():
        option = f"{name}:{needs}=..." if (needs := ON_REQUEST.get(name)) else name
        raise BadInput(f"this index was built without {name!r}; build it again with: ncs build --ranker {option}")
    return room


def read_ranker(text: str) -> tuple[str, dict[str, object]]:
    """A ranker and its settings as people type them; values are JSON where they can be. BadInput names what is wrong.

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
