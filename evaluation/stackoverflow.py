"""`bin/evaluate-stackoverflow`: questions with answer snippets over one or several indexes, hits judged by similarity.

    bin/evaluate-stackoverflow QUESTIONS.json INDEX... [--ranker R]... [--json FILE] [--csv FILE] [--sheet FILE]

QUESTIONS.json is in the shape of Facebook's Neural Code Search Evaluation Dataset: a list of objects with
stackoverflow_id, question and answer. A hit answers where it holds at least a share of the answer's
features (evaluation.judges.aroma): .25 is the paper's threshold, .6 the strict one.

Every judged question is appended to a state file beside the first output, so a run that was stopped goes on where it
was; the state is removed when the outputs are written.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpora.corpus import first_repeated
from corpora.ncs287 import Question, read_questions
from evaluation import experiment, machine, outputs, record, report
from evaluation.asking import System, costs
from evaluation.journal import Journal
from evaluation.judged import THRESHOLDS, Judged, judge_system
from ncs.cli.output import say, tracker
from ncs.errors import BadInput
from ncs.exit_status import ending
from ncs.index import Index
from ncs.search.rankers import RANKERS, read_ranker


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask of what. rankers: as people type them; none: all that each index has. `bm25` is always one.

    files: outputs.KINDS -> where to write it. pair: for the page. state: the journal; None: beside the first output,
    if there is one.
    """

    questions: Path
    indexes: Sequence[Path]
    rankers: Sequence[str] = ()
    k: int = 10
    files: Mapping[str, Path | None] = field(default_factory=dict)
    pair: outputs.Pair | None = None
    state: Path | None = None
    quiet: bool = False


@ending("evaluate-stackoverflow", stopped="the same command goes on from here where it names an output")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, told in one line on stderr, 130 stopped by the keyboard."""
    parser = argparse.ArgumentParser(prog="bin/evaluate-stackoverflow", description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path, metavar="QUESTIONS.json", help="the questions and their answers")
    parser.add_argument("index", type=Path, nargs="+", metavar="INDEX", help="index folders")
    parser.add_argument(
        "--ranker", action="append", metavar="R",
        help=f"{', '.join(RANKERS)}; with settings: ncs:centre=true; default: all that the index has; repeatable",
    )  # fmt: skip
    parser.add_argument("-k", type=int, default=10, help="hits a question that are judged (default %(default)s)")
    outputs.add_options(parser)
    parser.add_argument("--state", type=Path, help="file to resume from (default: beside the first output)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    found = evaluate(
        Request(
            options.questions,
            options.index,
            options.ranker or (),
            options.k,
            outputs.chosen(options),
            options.pair and tuple(options.pair),
            options.state,
            options.quiet,
        )
    )
    sys.stdout.write(shown(found))
    return 0


def evaluate(request: Request) -> record.Experiment:
    """Ask, judge, write the outputs; raises NcsError before anything is asked where it can."""
    if request.k < 1:
        raise BadInput(f"-k is {request.k}; it must be at least 1")
    labels = [path.name or str(path) for path in request.indexes]
    if first_repeated(labels) is not None:
        labels = [str(path) for path in request.indexes]
    if (twice := first_repeated(labels)) is not None:
        raise BadInput(f"the index {twice} is named twice; name it once")
    outputs.check(request.files)
    questions = read_questions(request.questions)
    systems = [System(*read_ranker(text)) for text in request.rankers]
    with ExitStack() as stack:
        indexes = [stack.enter_context(Index.load(path)) for path in request.indexes]
        journal = stack.enter_context(Journal(request.state or outputs.state_of(request.files)))
        if len(journal):
            say(f"going on: {len(journal):,} answers are in {journal.path}")
        builds = [
            _build(index, label if len(labels) > 1 else "", questions, systems, request, journal)
            for index, label in zip(indexes, labels, strict=True)
        ]
        found = _experiment(request, questions, indexes, builds)
        if outputs.write([found], request.files, pair=request.pair):
            journal.remove()
    return found


def shown(found: record.Experiment) -> str:
    """The result for people: the table and what it was measured on."""
    return f"{report.judged_table(found)}\n\n{report.caption(found)}\n"


def _systems(index: Index, asked_for: Sequence[System]) -> Iterator[System]:
    """bm25, then those asked for, else all that this index has; each once."""
    rest = asked_for or [System(name) for name in RANKERS if index.has_ranker(name)]
    yield from {system.name: system for system in [System(experiment.BASELINE), *rest]}.values()


def _build(
    index: Index, label: str, questions: Sequence[Question], systems: Sequence[System], request: Request,
    journal: Journal,
) -> record.Build:  # fmt: skip
    counts: Mapping[str, Any] = index.manifest.counts
    track = tracker(request.quiet)
    ranked = []
    for system in _systems(index, systems):
        stage = f"{label} {system.name}".strip()
        judged = judge_system(index, system, questions, k=request.k, journal=journal, track=track, stage=stage)
        ranked.append(_ranked(index, judged, questions, request.k))
    return record.Build(
        settings=label,
        config=index.manifest.config,
        versions=index.manifest.versions,
        seconds=counts["seconds"],
        build_seconds=round(sum(counts["seconds"].values()), 2),
        index_bytes=sum(entry["bytes"] for entry in index.manifest.files.values()),
        peak_memory_bytes=counts.get("peak_memory_bytes", 0),
        systems=ranked,
        documents=len(index),
    )


def _experiment(
    request: Request, questions: Sequence[Question], indexes: Sequence[Index], builds: Sequence[record.Build]
) -> record.Experiment:
    """The judged rankings in the shape every other experiment has; measures are named with their threshold."""
    return record.Experiment(
        corpus=request.questions.stem,
        corpus_digest=_digest(indexes),
        documents=len(indexes[0]),
        commit=machine.commit(),
        machine=machine.machine(),
        depth=request.k,
        measures=[f"{measure} at {threshold}" for threshold in THRESHOLDS for measure in measures(request.k)],
        queries=[question.query.id for question in questions],
        builds=builds,
        texts=[question.query.text for question in questions],
    )


def measures(k: int) -> list[str]:
    """What is computed of k judged hits.

    >>> measures(7)
    ['mrr@7', 'answered@1', 'answered@5']
    """
    return [f"mrr@{k}", *(f"answered@{depth}" for depth in (1, 5, 10) if depth <= k)]


def _digest(indexes: Sequence[Index]) -> str:
    checksums = [
        f"{path} {entry['blake2b']}"
        for index in indexes
        for path, entry in sorted(index.manifest.files.items())
        if "/" not in path
    ]
    return hashlib.sha256("\n".join(checksums).encode()).hexdigest()


def _ranked(index: Index, judged: Judged, questions: Sequence[Question], k: int) -> record.Ranked:
    values: dict[str, list[float | None]] = {
        f"{measure} at {threshold}": list(judged.values(measure, threshold).values())
        for threshold in THRESHOLDS
        for measure in measures(k)
    }
    means = {measure: statistics.fmean(value or 0.0 for value in column) for measure, column in values.items()}
    spent = costs(index, judged.system, judged.asked, [question.query for question in questions])
    return record.Ranked(judged.system.name, means=means, values=values, **spent)


if __name__ == "__main__":
    sys.exit(main())
