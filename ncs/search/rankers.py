"""Every way of ranking, by name; each is imported when it is asked for."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from ncs.errors import BadInput
from ncs.progress import Track, silent

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import Store
    from ncs.storage.words import WordTable
    from ncs.types import Mask


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


@runtime_checkable
class ReadsDocuments(Protocol):
    """A ranker that also learns from the documents themselves: their code, their lines.

    `fit_documents` comes after `fit`. Raises BadInput where an index without code has not what it needs.
    """

    def fit_documents(self, store: Store, *, track: Track = silent) -> None: ...


@runtime_checkable
class NeedsMore(Protocol):
    """A ranker that also needs something from outside the index: a file, a model, a server.

    `prepare` raises NcsError where it is not to be had: a build asks before its hours of work, not after.
    """

    def prepare(self) -> None: ...


@runtime_checkable
class KeepsCopy(Protocol):
    """A ranker whose folder in an index holds all that it was made of: it can be made again without the rest."""

    def take_over(self, data: Path) -> None:
        """Before `prepare`: what it may take from this data folder where what it was made of is gone."""
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
    "ncs_postrank": ("ncs.search.baselines.postranked:PostrankedRanker", {}),
    "transformers": ("ncs.search.baselines.transformers:transformers_ranker", {}),
    "endpoint": ("ncs.search.baselines.endpoint:endpoint_ranker", {}),
    "unif": ("ncs.search.unif:UnifRanker", {}),
    "rrf": ("ncs.search.rrf:RrfRanker", {"parts": ("bm25", "ncs_centred")}),
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

    known = [each for each in signature(kind).parameters if each != "name"]
    for setting in config:
        if setting not in known:
            raise BadInput(f"ranker {name!r} has no setting {setting!r}; there are: {', '.join(known)}")


def requested_ranker(text: str) -> Ranker:
    """A ranker on request as people type it; BadInput for one that cannot be fitted as it is asked for."""
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
    """Teach a ranker what it reads: words and embeddings, and the documents where it reads these too."""
    ranker.fit(words, embeddings, track=track)
    if isinstance(ranker, ReadsDocuments):
        ranker.fit_documents(store, track=track)


def built_room(folder: Path, name: str) -> Path:
    """Where the files of a ranker on request are, in a data folder; BadInput where the build was not asked for it."""
    room = folder / name
    if not room.is_dir():
        asked = f"{name}:{needs}=..." if (needs := ON_REQUEST.get(name)) else name
        raise BadInput(f"this index was built without {name!r}; build it again with: ncs build --ranker {asked}")
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
