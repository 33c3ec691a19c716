"""The interface of rankers and their registry: names, imported on first use."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.errors import BadInput, check_k, reading, unknown
from ncs.files import read_json
from ncs.messages import NO_CODE, NOT_BUILT
from ncs.progress import Track, silent
from ncs.search.ranking import Internals, Ranking
from ncs.storage.arrays import as_pairs
from ncs.storage.trust import untrusted
from ncs.text.tokens import content_words, tokenize

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.vectors import Vectors
    from ncs.storage.words import WordTable
    from ncs.types import Document, Mask, Matrix

BATCH = 1000
"""Documents read at a time."""


class Ranker:
    """The interface of rankers, with defaults for optional methods. Ties of scores go to the lower row.

    A build calls `prepare`, `fit` and `save`; an update `extend`; a query `load`, `compose`, and `search` or `rank`.
    """

    name: str
    config: Mapping[str, object]
    parts: Sequence[str] = ()
    """Names of the rankers that it is made of."""
    signal: str = ""
    """The name of its scores as a signal; explanations know `lexical` and `meaning`."""
    composed: Sequence[Ranker]
    """Its open parts, in their order, from `compose` on."""
    can_extend: bool = True
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
        rows, scores = [row for row, _ in hits], [score for _, score in hits]
        signals = {self.signal: np.array(scores)} if self.signal else {}
        return Ranking(rows, scores, signals=signals, words=self.query_words(text))

    def query_words(self, text: str) -> list[str]:
        """The words of a query that it searches for."""
        return content_words(tokenize(text))

    def internals(self) -> Internals:
        """Its data for explanations."""
        return Internals()

    def prepare(self, statistics: Path | None = None) -> None:
        """Open external resources (files, models, servers), or their copies among the statistics of the current index;
        raises NcsError."""

    def fit(self, words: WordTable, embeddings: Embeddings, documents: DocumentTable, *, track: Track = silent) -> None:
        """Learn from all documents; raises BadInput if it needs code and the index has none."""

    def save(self, statistics: Path, segment: Path) -> None:
        """Write into the folders `<name>` of both: what was learned, and what was computed from the documents."""

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        """Write the files of a new segment, with the existing statistics."""

    def load(self, snapshot: Snapshot) -> None:
        """Open what `save` and `extend` wrote, memory-mapped; raises IndexDamaged, or BadInput if it was not built."""

    def compose(self, rankers: Sequence[Ranker]) -> None:
        """Take its open parts."""
        self.composed = rankers

    def _save_config(self, statistics: Path) -> Path:
        """The folder of its statistics, with config.json."""
        folder = statistics / self.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")
        return folder


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
    "rrf": ("ncs.search.fusion:RrfRanker", {}),
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
FITTED = ("bm25", "ncs", "ncs_centred")
"""Rankers that every build fits and saves; others may be parts of them."""
DEFAULT_RANKER = "hybrid"
HEAD = "unif"
"""The ranker with a learned head, which the default ranker uses where it helps."""


def create_ranker(name: str, **config: object) -> Ranker:
    """A ranker by name, its defaults overridden by config; raises BadInput for unknown names."""
    target, defaults = RANKERS[_check_name(name)]
    module, _, attribute = target.partition(":")
    kind: Any = getattr(importlib.import_module(module), attribute)
    if config:
        _check_settings(name, kind, config)
    return cast(Ranker, kind(name=name, **{**defaults, **config}))


def _check_name(name: str) -> str:
    if name not in RANKERS:
        raise unknown("ranker", name, RANKERS)
    return name


def _check_settings(name: str, kind: Any, config: Mapping[str, object]) -> None:
    from inspect import signature  # here to keep a query's cold start fast

    defaults = {each: it.default for each, it in signature(kind).parameters.items() if each not in ("name", "options")}
    defaults |= getattr(kind, "OPTIONS", {})
    for setting, value in config.items():
        if setting not in defaults:
            raise unknown("setting", setting, defaults, f" of {name}")
        if isinstance(defaults[setting], (bool, int, float, str)) and value is not None:
            of_type(defaults[setting], value, setting)


def of_type(default: object, value: object, name: str) -> object:
    """The value in the type of the default; a default of None allows any. BadInput for another type."""
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if default is not None and type(value) is not type(default):
        raise BadInput(f"{name} is {default!r} by default; {value!r} has another type")
    return value


def load_ranker(name: str, snapshot: Snapshot, **config: object) -> Ranker:
    """A ranker by name, opened from a snapshot."""
    ranker = create_ranker(name, **config)
    ranker.load(snapshot)
    ranker.compose([load_ranker(part, snapshot) for part in ranker.parts])
    return ranker


def requested_ranker(text: str) -> Ranker:
    """Parse a ranker on request; raises BadInput if it cannot be fitted with these settings."""
    name, settings = read_ranker(text)
    needs = ON_REQUEST.get(name)
    if needs is None:
        raise unknown("ranker on request", name, ON_REQUEST)
    if needs and needs not in settings:
        raise BadInput(f"{name!r} cannot be built without its {needs}; write {name}:{needs}=...")
    return create_ranker(name, **settings)


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
        settings[key] = setting_value(value)
    return _check_name(name), settings


def setting_value(text: str) -> object:
    """JSON if possible, else the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def check_part(name: str) -> str:
    """The name; raises BadInput for a ranker that cannot be a part of others."""
    if name not in FITTED:
        raise BadInput(f"{name!r} cannot be a part of another ranker; these can: {', '.join(FITTED)}")
    return name


def statistics_of(snapshot: Snapshot, name: str) -> Path:
    """The statistics folder of a ranker on request; raises BadInput if the index has none, or is not trusted.

    This is the gate of all that a ranker may do beyond numbers: such rankers name addresses, models and files.
    """
    if snapshot.distrust:
        raise BadInput(f"{name!r} is not used, as {untrusted(snapshot.distrust, snapshot.folder)}")
    folder, files = snapshot.statistics / name, snapshot.description.files
    config = (folder / "config.json").relative_to(snapshot.folder).as_posix()
    if not folder.is_dir() or (files and config not in files):  # put there later; a draft has no list yet
        option = f"{name}:{needs}=..." if (needs := ON_REQUEST.get(name)) else name
        raise BadInput(NOT_BUILT.format(name=name, option=option))
    return folder


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration that a ranker saved; raises IndexDamaged."""
    with reading(folder):
        config = read_json(folder / "config.json")
        if not isinstance(config, dict):
            raise ValueError("config.json is no object")
    return config


def batches_with_code(documents: DocumentTable, name: str, track: Track) -> Iterator[list[Document]]:
    """All documents in row order, BATCH at a time; raises BadInput for an index without code."""
    starts, has_code = range(0, len(documents), BATCH), False
    for start in track(starts, name, total=len(starts), unit="batches"):
        batch = documents.documents(range(start, min(start + BATCH, len(documents))))
        has_code = has_code or any(document.code for document in batch)
        if not has_code:
            raise BadInput(NO_CODE)
        yield batch


def nearest(vectors: Vectors, query: Matrix, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
    """The k rows of the highest similarity to a vector [d], by (-similarity, row); none for a vector of zeros."""
    check_k(k)
    if not query.any():
        return []
    return as_pairs(*vectors.search(query, k, allowed=allowed))
