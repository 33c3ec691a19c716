"""`bin/evaluate --compare A B`: tests whether the difference between two results is significant.

Each side is the JSON of an experiment (`RESULT.json`, or `RESULT.json:SYSTEM` for one system of it) or a TREC run file,
which is judged by `--qrels`, a TREC file or a BEIR folder. Both must be over the same queries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from corpora.corpus import read_beir
from corpora.trec import read_qrels, read_run
from evaluation.experiments import MEASURES, read
from evaluation.measures import Comparison, compare, evaluate, mean
from evaluation.reports import markdown_table
from ncs.errors import BadInput
from ncs.files import replace_file

Values = Mapping[str, Mapping[str, float]]
"""measure -> query id -> value."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure of two systems; the comparison is ours minus theirs."""

    ours: str
    theirs: str
    measure: str
    our_mean: float
    their_mean: float
    comparison: Comparison


def compare_results(
    ours: str, theirs: str, *, qrels: Path | None = None, measures: Sequence[str] = ()
) -> list[Compared]:
    """The given measures, or every one that both sides have.

    Two sides of several systems each are compared system by system, by name; a side of one with the other's only one.
    Raises BadInput for what cannot be read, and where nothing can be compared.
    """
    left, right = (_side(text, qrels, measures) for text in (ours, theirs))
    pairs = [(name, name) for name in left if name in right]
    if len(left) == len(right) == 1:
        pairs = [(next(iter(left)), next(iter(right)))]
    if not pairs:
        systems = "; ".join(f"{text}: {', '.join(side)}" for text, side in ((ours, left), (theirs, right)))
        raise BadInput(f"no system is in both ({systems}); name one of each, as RESULT.json:SYSTEM")
    comparisons = []
    for our_name, their_name in pairs:
        a, b = left[our_name], right[their_name]
        names = _label(ours, our_name), _label(theirs, their_name)
        for measure in measures or a:
            if measure in a and measure in b:
                means = mean(a[measure]), mean(b[measure])
                comparisons.append(Compared(*names, measure, *means, compare(a[measure], b[measure])))
    if not comparisons:
        raise BadInput(f"{ours} and {theirs} share no measure; name one with --measure that both have")
    return comparisons


def _label(text: str, system: str) -> str:
    stem = Path(text.partition(".json")[0]).name
    return system if stem in (system, Path(text).name) else f"{stem} {system}"  # a run has one system


def _side(text: str, qrels: Path | None, measures: Sequence[str]) -> dict[str, Values]:
    """system -> its values; of several builds, the settings stand before the system."""
    path, json_ending, name = text.partition(".json")
    if json_ending:
        experiment = read(Path(path + json_ending))
        systems: dict[str, Values] = {
            f"{build.settings} {result.system}".strip(): {
                measure: experiment.values(result, measure) for measure in result.values
            }
            for build in experiment.builds
            for result in build.systems
        }
        if (name := name.removeprefix(":")) and name not in systems:
            raise BadInput(f"{path}.json has no system {name!r}; choose one of: {', '.join(systems)}")
        return {name: systems[name]} if name else systems
    if not qrels:
        raise BadInput(f"{text} is read as a TREC run; name its judgments with --qrels FILE")
    judgments = read_beir(qrels).qrels if qrels.is_dir() else read_qrels(qrels)
    run = read_run(Path(text))
    return {Path(text).stem: {measure: evaluate(judgments, run, measure) for measure in measures or MEASURES}}


def table(compared: Sequence[Compared]) -> str:
    """A row per measure: both means, the difference with its interval, the randomization test's p."""
    rows = []
    for each in compared:
        c, means = each.comparison, [f"{each.our_mean:.4f}", f"{each.their_mean:.4f}"]
        difference = f"{c.difference:+.4f} [{c.low:+.4f}, {c.high:+.4f}]"
        rows.append([each.ours, each.theirs, each.measure, *means, difference, f"{c.p:.4f}"])
    n_queries = compared[0].comparison.queries
    about = f"{n_queries:,} queries; 95 % paired bootstrap intervals; two-sided randomization test."
    return markdown_table(["A", "B", "measure", "A's mean", "B's mean", "A - B [95 %]", "p"], rows) + f"\n\n{about}"


def write(compared: Sequence[Compared], path: Path) -> None:
    """Write a JSON list, in which a comparison is called `found`."""
    rows = [asdict(each) for each in compared]
    for row in rows:
        row["found"] = row.pop("comparison")
    replace_file(path, json.dumps(rows, indent=1) + "\n")
