"""What each signal of the default ranker is worth: without it, and beside words alone; as values, JSON and tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.asking import System
from evaluation.record import Experiment
from evaluation.report import aligned
from evaluation.significance import paired_interval
from ncs.errors import BadInput

OFF: Mapping[str, Mapping[str, object]] = {
    "other spellings": {"spelling": 0.0},
    "words of prose": {"prose": 1.0},
    "meaning": {"meaning": 0.0},
    "name": {"naming": 0.0},
    "definition": {"definition": 0.0},
    "proximity": {"proximity": 0.0},
    "consensus": {"consensus": 0.0},
    "file's title": {"title": 0.0},
    "file's neighbours": {"neighbours": 0.0},
    "learnt head": {"head": 0.0},
    "roles of files": {"role": 1.0},
    "outlines": {"outline": 1.0},
    "bodies": {"body": 1.0},
    "unfinished": {"unfinished": 1.0},
    "saturation": {"saturation": 1.0},
    "folding": {"fold": False},
}
"""Signal -> the settings of `hybrid` that turn it off."""
ON: Mapping[str, Mapping[str, object]] = {
}
"""Signals that are off by default -> the settings that turn them on."""
WHOLE, WORDS = "hybrid", "words alone"


def systems() -> dict[str, System]:
    """Label -> system: all of it, without each signal, with those that are off, words alone, and each beside them."""
    found = {"bm25": System("bm25"), WHOLE: System("hybrid")}
    found |= {f"without {name}": System("hybrid", dict(off)) for name, off in OFF.items()}
    found |= {f"with {name}": System("hybrid", dict(on)) for name, on in ON.items()}
    found["without calibration"] = System("hybrid", {"calibrated": False})
    for alone in (None, *OFF):
        config = {key: value for name, off in OFF.items() if name != alone for key, value in off.items()}
        label = WORDS if alone is None else f"words and {alone}"
        found[label] = System("hybrid", {**config, "calibrated": False})
    return found


@dataclass(frozen=True, slots=True)
class Column:
    """One measure over one set. values: label of `systems` -> the value of each query, in the order of `queries`."""

    name: str
    measure: str
    documents: int
    queries: Sequence[str]
    values: Mapping[str, Sequence[float]]

    def mean(self, label: str) -> float:
        """Of a system, over all queries."""
        return sum(self.values[label]) / len(self.queries)

    def difference(self, label: str, other: str) -> tuple[float, float, float]:
        """Mean difference between two systems and its 95 % paired bootstrap interval."""
        ours, theirs = (dict(zip(self.queries, self.values[each], strict=True)) for each in (label, other))
        return (0.0, 0.0, 0.0) if ours == theirs else paired_interval(ours, theirs)


@dataclass(frozen=True, slots=True)
class Ablation:
    """All columns, with what they were measured by."""

    commit: str
    machine: Mapping[str, Any]
    columns: Sequence[Column]


def column(found: Experiment, measure: str, label: str) -> Column:
    """One measure of an experiment over `systems`; BadInput where it has other ones."""
    (build,) = found.builds
    ranked = {each.system: each for each in build.systems}
    values = {}
    for name, system in systems().items():
        if system.name not in ranked or measure not in ranked[system.name].values:
            raise BadInput(f"{found.corpus} has no {measure} of {system.name}; run: bin/benchmark ablation")
        values[name] = [round(value or 0.0, 5) for value in ranked[system.name].values[measure]]
    return Column(label, measure, found.documents, list(found.queries), values)


def write(found: Ablation, path: Path) -> None:
    """As JSON, lists of numbers on one line."""
    text = re.sub(r"\[[^][{}]*\]", lambda list_: " ".join(list_[0].split()), json.dumps(asdict(found), indent=1))
    path.write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> Ablation:
    """What `write` wrote; BadInput for anything else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Ablation(**{**values, "columns": [Column(**each) for each in values["columns"]]})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is not the JSON of an ablation ({error}); run: bin/benchmark ablation") from None


def table(found: Ablation) -> str:
    """Two tables: what each signal's absence changes, and what it adds to words alone."""
    head = [f"{each.name}: {each.measure.partition(' ')[0]}" for each in found.columns]
    labels = [label for label in systems() if all(label in each.values for each in found.columns)]
    tables = []
    for base, others in (
        (WHOLE, [label for label in labels if label.startswith(("without ", "with "))]),
        (WORDS, [label for label in labels if label.startswith("words and ")]),
    ):
        rows = [[label, *(f"{each.mean(label):.3f}" for each in found.columns)] for label in ("bm25", base)]
        rows += [[label, *(_cell(each, label, base) for each in found.columns)] for label in others]
        tables.append(aligned([f"difference to {base} [95 %]", *head], rows))
    return "\n\n".join(tables)


def _cell(column: Column, label: str, base: str) -> str:
    """The difference with its interval; bold where that leaves out 0."""
    if column.values[label] == column.values[base]:
        return "equal"
    difference, low, high = column.difference(label, base)
    text = f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"**{text}**" if low > 0 or high < 0 else text


def section(found: Ablation) -> str:
    """The tables with a heading and what they are over."""
    about = "; ".join(
        f"{each.name}: {each.documents:,} documents, {len(each.queries)} queries" for each in found.columns
    )
    return f"### ablation of hybrid\n\n{table(found)}\n\n{about}; commit {found.commit[:10]}.\n"
