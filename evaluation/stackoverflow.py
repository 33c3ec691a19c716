"""`bin/evaluate-stackoverflow`: questions with answer snippets over an index, hits judged by similarity.

    bin/evaluate-stackoverflow QUESTIONS.json INDEX [--ranker R ...] [-k 10] [--out FILE] [-q]

QUESTIONS.json is in the shape of Facebook's Neural Code Search Evaluation Dataset: a list of objects with
stackoverflow_id, question and answer. A hit answers where it holds at least a share of the answer's
features (evaluation.judges.aroma): .25 is the paper's threshold, .6 the strict one.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora.ncs287 import Question, read_questions
from evaluation import experiment, machine, record, report
from evaluation.judged import MEASURES, THRESHOLDS, Judged, judge_ranker
from ncs.console import tracker
from ncs.errors import BadInput, NcsError
from ncs.index import Index
from ncs.rankers import RANKERS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, told in one line on stderr."""
    parser = argparse.ArgumentParser(prog="bin/evaluate-stackoverflow", description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path, help="JSON file of questions")
    parser.add_argument("index", type=Path, help="index folder")
    parser.add_argument("--ranker", action="append", choices=list(RANKERS), help="default: all; repeatable")
    parser.add_argument("-k", type=int, default=10, help="hits a question (default %(default)s)")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    try:
        if options.k < 1:
            raise BadInput(f"-k is {options.k}; it must be at least 1")
        questions = read_questions(options.questions)
        rankers = list(dict.fromkeys([experiment.BASELINE, *(options.ranker or RANKERS)]))  # bm25 is always a row
        with Index.load(options.index) as index:
            track = tracker(options.quiet)
            judged = [judge_ranker(index, questions, ranker, k=options.k, track=track) for ranker in rankers]
            found = as_experiment(options.questions.stem, index, questions, judged, options.k)
    except NcsError as error:
        sys.stderr.write(f"evaluate-stackoverflow: {error}\n")
        return 2
    sys.stdout.write(f"{report.table(found)}\n\n{report.caption(found)}\n")
    if options.out:
        record.write(found, options.out)
    return 0


def as_experiment(
    name: str, index: Index, questions: Sequence[Question], judged: Sequence[Judged], k: int
) -> record.Experiment:
    """The judged rankings in the shape every other experiment has; measures are named with their threshold."""
    manifest = index.manifest
    counts: Mapping[str, Any] = manifest.counts
    measures = [f"{measure} at {threshold}" for threshold in THRESHOLDS for measure in MEASURES]
    build = record.Build(
        settings="",
        config=manifest.config,
        versions=manifest.versions,
        seconds=counts["seconds"],
        build_seconds=sum(counts["seconds"].values()),
        index_bytes=sum(entry["bytes"] for entry in manifest.files.values()),
        peak_memory_bytes=counts.get("peak_memory_bytes", 0),
        systems=[_ranked(one) for one in judged],
    )
    checksums = sorted(f"{path} {entry['blake2b']}" for path, entry in manifest.files.items() if "/" not in path)
    return record.Experiment(
        corpus=name,
        corpus_digest=hashlib.sha256("\n".join(checksums).encode()).hexdigest(),
        documents=len(index),
        commit=machine.commit(),
        machine=machine.machine(),
        depth=k,
        measures=measures,
        queries=[question.query.id for question in questions],
        builds=[build],
    )


def _ranked(judged: Judged) -> record.Ranked:
    values = {
        f"{measure} at {threshold}": list(judged.values(measure, threshold).values())
        for threshold in THRESHOLDS
        for measure in MEASURES
    }
    milliseconds = sorted(1000 * seconds for seconds in judged.seconds)
    return record.Ranked(
        system=judged.ranker,
        fit_seconds=None,
        query_ms_p50=statistics.median(milliseconds),
        query_ms_p95=milliseconds[min(len(milliseconds) - 1, int(0.95 * len(milliseconds)))],
        means={measure: statistics.fmean(column) for measure, column in values.items()},
        values=values,
    )


if __name__ == "__main__":
    sys.exit(main())
