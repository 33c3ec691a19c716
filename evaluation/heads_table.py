"""What learnt heads change in the default ranker, by sets of evaluation.learnt_heads, and what could be seen.

    python -m evaluation.heads_table FILE SET...

For each head that all SETs of FILE have: the difference that it makes to `hybrid`, a set a row and the last row of all
their questions together, [95 %, paired bootstrap], * where the interval leaves zero out; and how many questions would
show half and all of GAIN in four of five tries (two-sided at .05, the spread of the differences as it is).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.significance import paired_interval
from ncs.errors import BadInput
from ncs.exit_status import ending

Values = Mapping[str, float]
FUSED, TOGETHER = "hybrid with ", "together"
GAIN = 0.02
SEEN = 1.96 + 0.84
"""Standard errors between no gain and one that is seen in four of five tries: 97.5 % and 80 % of a normal curve."""


def table(sets: Mapping[str, Mapping[str, Mapping[str, Values]]]) -> str:
    """Markdown. sets: name -> label -> column -> query id -> reciprocal rank, `hybrid` among the labels.

    Raises BadInput where the sets have no head in common, or other columns.
    """
    labels = [label for label in next(iter(sets.values())) if all(label in ranks for ranks in sets.values())]
    heads = [label for label in labels if label.startswith(FUSED)]
    columns = [list(ranks["hybrid"]) for ranks in sets.values()]
    if not heads or any(each != columns[0] for each in columns):
        raise BadInput("these sets share no head in hybrid, or are judged otherwise; name sets of the same heads")
    lines = [f"| head | set | questions | {' | '.join(columns[0])} | questions to see {GAIN / 2:g}, {GAIN:g} |"]
    lines.append(f"|---|---|---:|{'---|' * (len(columns[0]) + 1)}")
    for head in heads:
        for name, (fused, plain) in _each(sets, head).items():
            numbers = len(next(iter(plain.values())))
            cells = [_difference(fused[column], plain[column]) for column in columns[0]]
            needed = "; ".join(_needed(fused[column], plain[column]) for column in columns[0])
            lines.append(f"| {head.removeprefix(FUSED)} | {name} | {numbers} | {' | '.join(cells)} | {needed} |")
    return "\n".join(lines)


def _each(
    sets: Mapping[str, Mapping[str, Mapping[str, Values]]], head: str
) -> dict[str, tuple[dict[str, Values], dict[str, Values]]]:
    """Set, and all together -> (column -> values with the head, without)."""
    found = {name: (dict(ranks[head]), dict(ranks["hybrid"])) for name, ranks in sets.items()}
    if len(sets) > 1:
        found[TOGETHER] = _joined(sets, head), _joined(sets, "hybrid")
    return found


def _joined(sets: Mapping[str, Mapping[str, Mapping[str, Values]]], label: str) -> dict[str, Values]:
    columns = next(iter(sets.values()))[label]
    return {
        column: {f"{name} {id}": value for name, ranks in sets.items() for id, value in ranks[label][column].items()}
        for column in columns
    }


def _difference(values: Values, base: Values) -> str:
    change, low, high = paired_interval(values, base)
    star = " *" if low > 0 or high < 0 else ""
    return f"{np.mean(list(values.values())):.3f}, {change:+.3f} [{low:+.3f}, {high:+.3f}]{star}"


def _needed(values: Values, base: Values) -> str:
    return ", ".join(f"{needed(values, base, gain):,}" for gain in (GAIN / 2, GAIN))


def needed(values: Values, base: Values, gain: float) -> int:
    """Questions that would show a mean difference of `gain`.

    >>> needed({"a": 0.1, "b": 0.0, "c": 0.0, "d": 0.1}, dict.fromkeys("abcd", 0.0), 0.05)
    11
    """
    spread = float(np.std([values[id] - base[id] for id in values], ddof=1))
    return int(np.ceil((SEEN * spread / gain) ** 2))


@ending("heads_table")
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.heads_table", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("sets", nargs="+", metavar="SET")
    options = parser.parse_args(arguments)
    held: dict[str, Any] = json.loads(options.file.read_bytes()) if options.file.is_file() else {}
    if missing := [name for name in options.sets if name not in held]:
        raise BadInput(f"{options.file} has no {missing[0]!r}; it has {', '.join(held) or 'nothing'}")
    sys.stdout.write(table({name: held[name]["reciprocal_ranks"] for name in options.sets}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
