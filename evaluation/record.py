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
    """One system over one build. values: measure -> one value a query, in the order of Experiment.queries."""

    system: str
    fit_seconds: float | None
    query_ms_p50: float
    query_ms_p95: float
    means: Mapping[str, float]
    values: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Build:
    """One index and the systems asked in it. seconds: per stage, as its manifest has them."""

    settings: str
    config: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: Mapping[str, float]
    build_seconds: float
    index_bytes: int
    peak_memory_bytes: int
    systems: Sequence[Ranked]


@dataclass(frozen=True, slots=True)
class Experiment:
    """All of it; `write` and `read` keep it as JSON. The first measure is the one compared."""

    corpus: str
    corpus_digest: str
    documents: int
    commit: str
    machine: Mapping[str, str | int]
    depth: int
    measures: Sequence[str]
    queries: Sequence[str]
    builds: Sequence[Build]


def write(experiment: Experiment, path: Path) -> None:
    """As JSON, lists of plain values on one line."""
    text = json.dumps(asdict(experiment), indent=1)
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
