"""What an experiment found, as values and as a JSON file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ncs.errors import BadInput


@dataclass(frozen=True, slots=True)
class Ranked:
    """One system over one build.

    values: measure -> one value a query, in the order of Experiment.queries; None where the measure leaves it out.
    query_ms: milliseconds of each query, search and ids; what p50 and p95 are taken from.
    embed_document_ms, embed_query_ms: of one sample, in a batch, as CoIR measures; None for what embeds nothing.
    index_bytes: the ranker's own files; None where it saved none.
    """

    system: str
    fit_seconds: float | None
    query_ms_p50: float
    query_ms_p95: float
    means: Mapping[str, float]
    values: Mapping[str, Sequence[float | None]]
    query_ms: Sequence[float] = ()
    embed_document_ms: float | None = None
    embed_query_ms: float | None = None
    index_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Build:
    """One index and the systems asked in it. seconds: per stage, as its manifest has them.

    documents: where the builds are over different documents; None: the experiment's.
    """

    settings: str
    config: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: Mapping[str, float]
    build_seconds: float
    index_bytes: int
    peak_memory_bytes: int
    systems: Sequence[Ranked]
    documents: int | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """All of it; `write` and `read` keep it as JSON. The first measure is the one compared.

    texts: the queries' words, for people to read; files do not keep them, as data sets may not be passed on.
    candidates: what each query was ranked among, where that is not every document.
    """

    corpus: str
    corpus_digest: str
    documents: int
    commit: str
    machine: Mapping[str, str | int]
    depth: int
    measures: Sequence[str]
    queries: Sequence[str]
    builds: Sequence[Build]
    texts: Sequence[str] = ()
    candidates: str = ""

    def values(self, ranked: Ranked, measure: str) -> dict[str, float]:
        """query id -> value of a measure, without the queries that it leaves out."""
        pairs = zip(self.queries, ranked.values[measure], strict=True)
        return {query: value for query, value in pairs if value is not None}


def write(experiment: Experiment, path: Path) -> None:
    """As JSON, lists of plain values on one line; without the texts of the queries."""
    values = asdict(experiment)
    del values["texts"]
    text = json.dumps(values, indent=1)
    text = re.sub(r"\[[^][{}]*\]", lambda list_: " ".join(list_[0].split()).replace("[ ", "[").replace(" ]", "]"), text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> Experiment:
    """What `write` wrote; BadInput for anything else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        builds = [
            Build(**{**build, "systems": [Ranked(**system) for system in build["systems"]]})
            for build in values["builds"]
        ]
        return Experiment(**{**values, "builds": builds})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is not the JSON of an experiment ({error}); make one with bin/evaluate") from None
