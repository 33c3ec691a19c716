"""The default ranker without each of its signals, and words with each of them alone, over several sets.

    bin/benchmark ablation cosqa nlp2api repo_search [--questions QUESTIONS.json --index INDEX] [--json FILE]

Corpora are those of `bin/evaluate`, questions with answers and an index those of `bin/evaluate-stackoverflow`.
Columns that the file holds already are kept, so sets may be measured one after the other. `bin/evaluate --readme`
shows the table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from corpora import load_corpora
from evaluation import experiment, machine, stackoverflow
from evaluation.ablation import Ablation, Column, column, read, systems, table, write
from evaluation.pooling import pooled
from ncs.errors import BadInput
from ncs.exit_status import ending

MEASURES = {"repo_search": "ndcg@10"}
"""Corpus -> what it is measured by; else mrr."""


@ending("ablation")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables and write them; 2 for an error, told in one line."""
    parser = argparse.ArgumentParser(prog="benchmark ablation", description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs="*", metavar="CORPUS")
    parser.add_argument("--questions", type=Path, help="questions with answers, judged over --index")
    parser.add_argument("--index", type=Path)
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--json", type=Path, default=experiment.RESULTS / "ablation.json")
    args = parser.parse_args(argv)
    if (args.questions is None) != (args.index is None):
        raise BadInput("--questions and --index go together; name both")
    for found in _columns(args):
        _add(found, args.json)
    sys.stdout.write(table(read(args.json)) + "\n")
    return 0


def _columns(args: argparse.Namespace) -> Iterator[list[Column]]:
    """The columns of each set, as soon as it is done."""
    asked = list(systems().values())
    for name in args.corpora:
        measure = MEASURES.get(name, "mrr")
        each = [
            experiment.run_experiment(corpus, asked, measures=[measure]) for corpus in load_corpora(name, args.data)
        ]
        yield [column(pooled(name, each), measure, name)]
    if args.questions:
        rankers = [system.name for system in asked]
        request = stackoverflow.Request(args.questions, [args.index], rankers, quiet=True)
        found = stackoverflow.evaluate(request)
        name = args.questions.stem
        yield [column(found, measure, f"{name}{measure[6:]}") for measure in found.measures if measure[:6] == "mrr@10"]


def _add(found: Sequence[Column], path: Path) -> None:
    """Write columns beside those of other sets."""
    before = read(path).columns if path.exists() else []
    names = {each.name for each in found}
    kept = [each for each in before if each.name not in names and each.values.keys() == systems().keys()]
    write(Ablation(machine.commit(), machine.machine(), sorted([*kept, *found], key=lambda each: each.name)), path)


if __name__ == "__main__":
    sys.exit(main())
