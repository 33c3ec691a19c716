"""What makes a learnt head good: one thing changed a row, each trained alike, asked alone and in the default ranker.

    python -m evaluation.unif_ablation --index INDEX --data FOLDER --leave-out FILE --runs FOLDER \\
        --questions QUESTIONS.json [--row NAME ...] --json FILE

FOLDER of --data holds the Java pairs of ROWS, which is small for all alike so that the table takes an hour of one
core. A row that was trained before (--runs) is not trained again; of the JSON only the rows that were asked for are
made anew. The teacher is asked once, by the first row that has one; the others take its answers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.learnt_heads import bases, row_of, trained_by
from evaluation.machine import commit, machine
from evaluation.reciprocal_ranks import Ranks, by_similarity
from evaluation.significance import paired_interval
from ncs.errors import NcsError
from ncs.exit_status import ending
from ncs.index import Index
from unif.__main__ import main as train

SO, JAVADOC = ("java_so_threads", "java_so_docs"), ("java_deepcs", "java_tlcodesum")
NAMED = ",".join(SO)
DROPOUT = ("--word-dropout", "0.1")
SHORT = ("--epochs", "8", "--rate", "0.003", "--valid", "0.1")
LESSON = ("--batch", "128", "--stage", "5@0.002", "--stage", "2@0.0005", *DROPOUT)
LONGER = ("--batch", "128", "--stage", "11@0.002", "--stage", "3@0.0005", *DROPOUT)
ASKED = "asked"
"""Among the options of a row: questions of Stack Overflow's titles and of the index itself, for the teacher."""
ROWS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "published": (SO, SHORT),
    "word dropout": (SO, (*SHORT, *DROPOUT)),
    "stay near T": (SO, (*SHORT, *DROPOUT, "--stay", "0.2")),
    "weight decay": (SO, (*SHORT, *DROPOUT, "--weight-decay", "0.05")),
    "hard negatives": (SO, (*SHORT, *DROPOUT, "--mine-every", "2", "--mined-from", "pairs")),
    "centre": (SO, (*SHORT, *DROPOUT, "--centre")),
    "hard negatives, centre": (SO, (*SHORT, *DROPOUT, "--mine-every", "2", "--mined-from", "pairs", "--centre")),
    "own pairs": ((), ("--own", "0.2", "--epochs", "5", "--rate", "0.002", "--batch", "512", *DROPOUT)),
    "Javadoc pairs": (JAVADOC, ("--epochs", "5", "--rate", "0.001", "--batch", "512", *DROPOUT)),
    "all pairs": ((*SO, *JAVADOC), ("--own", "0.2", "--epochs", "4", "--rate", "0.001", "--batch", "512", *DROPOUT)),
    "all, then Stack Overflow": (
        (*SO, *JAVADOC),
        ("--own", "0.2", "--stage", "4@0.001", "--stage", f"6:{NAMED}@0.0005", "--batch", "512", *DROPOUT),
    ),
    "teacher": ((), (ASKED, *LESSON)),
    "teacher, centre": ((), (ASKED, *LESSON, "--centre")),
    "teacher for longer, centre": ((), (ASKED, *LONGER, "--centre")),
    "teacher sharper, centre": ((), (ASKED, *LESSON, "--centre", "--soft", "0.15")),
    "teacher and Stack Overflow, centre": (SO, (ASKED, *LESSON, "--centre")),
}
"""Row -> files of pairs, options of `ncs train unif`."""


def arguments_of(name: str, options: argparse.Namespace) -> list[str]:
    """Of `ncs train`."""
    files, settings = ROWS[name]
    found = ["train", "unif", "-q", "--device", "cpu", "-i", str(options.index), "--out", str(run_of(name, options))]
    found += ["--leave-out", str(options.leave_out)]
    found += [each for file in files for each in ("--pairs", str(options.data / f"{file}.jsonl.gz"))]
    if ASKED in settings:
        asked = [str(options.data / f"{file}.jsonl.gz") for file in SO]
        found += ["--teacher", str(options.asked or "hybrid")]
        found += [each for file in (*asked, "own") for each in ("--questions", file)]
    return [*found, *(each for each in settings if each != ASKED)]


def run_of(name: str, options: argparse.Namespace) -> Path:
    """The folder of a row's training."""
    folder: Path = options.runs / name.replace(", ", "_").replace(" ", "_")
    return folder


def trained(name: str, options: argparse.Namespace) -> Path:
    """The run of a row, trained if it is not; options.asked becomes the first whose teacher was asked."""
    run = run_of(name, options)
    if not (run / "head" / "head.json").is_file() and train(arguments_of(name, options)):
        raise NcsError(f"the training of {name!r} failed; its line is above")
    if options.asked is None and (run / "teacher").is_dir():
        options.asked = run
    return run


def summary(found: Mapping[str, Ranks], rows: Mapping[str, Mapping[str, Ranks]]) -> str:
    """Markdown, MRR by threshold: a head raw and centred, and what it changes in `hybrid` [95 %, paired]."""
    columns = list(found["hybrid"])
    lines = ["| row | raw | centred | hybrid with it | difference |", "|---|---|---|---:|---|"]
    lines += [f"| {name} | {_means(ranks, columns)} | | | |" for name, ranks in found.items()]
    for name, ranks in rows.items():
        raw, centred = (ranks.get(f"{name}, {form}", ranks[name]) for form in ("raw", "centred"))
        fused = ranks[f"hybrid with {name}"]
        changes = [paired_interval(fused[column], found["hybrid"][column]) for column in columns]
        told = ", ".join(f"{change:+.3f} [{low:+.3f}, {high:+.3f}]" for change, low, high in changes)
        forms = " | ".join(_means(each, columns) for each in (raw, centred, fused))
        lines.append(f"| {name} | {forms} | {told} |")
    return "\n".join(lines)


def _means(ranks: Ranks, columns: Sequence[str]) -> str:
    return " / ".join(f"{np.mean(list(ranks[column].values())):.3f}".lstrip("0") for column in columns)


@ending("unif_ablation")
def main(arguments: Sequence[str] | None = None) -> int:
    """Train, measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.unif_ablation", description=__doc__.partition("\n")[0])
    for name in ("index", "data", "leave-out", "runs", "questions", "json"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--asked", type=Path, metavar="RUN", help="a run whose teacher was asked already")
    parser.add_argument("--row", action="append", choices=ROWS, metavar="NAME", help=f"of {'; '.join(ROWS)}")
    parser.add_argument("--weight", type=float, default=0.3, help="of a head in hybrid (default %(default)s)")
    options = parser.parse_args(arguments)
    kept: dict[str, Any] = json.loads(options.json.read_bytes()) if options.json.is_file() else {}
    about = kept.get("rows", {})
    with Index.load(options.index) as index:
        judged = by_similarity(index, options.questions)
        rankers, found = bases(index, judged)
        told = {"commit": commit(), "machine": machine(), "documents": len(index), "weight": options.weight}
        told |= {"questions": options.questions.name, "bases": found, "rows": about}
        for name in options.row or ROWS:
            run = trained(name, options)
            ranks = row_of(index, name, run, rankers, options.weight, judged)
            about[name] = {"settings": trained_by(run), "reciprocal_ranks": ranks}
            options.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{summary(found, {name: about[name]['reciprocal_ranks'] for name in ROWS if name in about})}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
