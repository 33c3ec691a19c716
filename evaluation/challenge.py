"""CodeSearchNet's Challenge evaluated from a submission: NDCG within annotated functions and over all, by language.

    python -m evaluation.challenge QUERIES ANNOTATIONS ANSWERS [--json FILE]

QUERIES and ANNOTATIONS are queries.csv and annotationStore.csv as published, ANSWERS what `python -m corpora
codesearchnet submission` writes. As in CodeSearchNet's own script a query without answers counts 0, one without a
relevant function nothing, and an annotated function that the corpus lacks stays in the best ranking possible.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from corpora.codesearchnet import Grades, read_annotations, read_queries, read_submission
from evaluation.measures import challenge_ndcg, mean
from ncs.console import show_table
from ncs.exit_status import main_program
from ncs.types import Run

AVERAGE = "average"


@dataclass(frozen=True, slots=True)
class Judged:
    """One language. queries: with a relevant function. covered: share of the annotated functions that are answers."""

    queries: int
    ndcg_within: float
    ndcg_all: float
    covered: float


def judge(annotations: Mapping[str, Grades], runs: Mapping[str, Run]) -> dict[str, Judged]:
    """Every annotated language, and the average over languages (Husain et al. 2019, table 4); no run: 0."""
    results = {language: _language(grades, runs.get(language, {})) for language, grades in sorted(annotations.items())}
    each = list(results.values())
    results[AVERAGE] = Judged(
        sum(row.queries for row in each),
        *(sum(getattr(row, name) for row in each) / len(each) for name in ("ndcg_within", "ndcg_all", "covered")),
    )
    return results


def _language(grades: Grades, run: Run) -> Judged:
    within = challenge_ndcg(grades, run, within=True)
    annotated = sum(len(urls) for urls in grades.values())
    covered = sum(url in run.get(query, {}) for query, urls in grades.items() for url in urls)
    return Judged(len(within), mean(within), mean(challenge_ndcg(grades, run, within=False)), covered / annotated)


@main_program("challenge")
def main(argv: Sequence[str] | None = None) -> int:
    """Print a row a language; --json also writes them."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.challenge", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("queries", type=Path)
    parser.add_argument("annotations", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    queries = read_queries(options.queries)
    results = judge(read_annotations(options.annotations, queries), read_submission(options.answers, queries))
    columns = ("language", "queries", "ndcg within", "ndcg all", "covered")
    rows = [
        (language, str(row.queries), f"{row.ndcg_within:.3f}", f"{row.ndcg_all:.3f}", f"{row.covered:.3f}")
        for language, row in results.items()
    ]
    show_table("CodeSearchNet's Challenge", rows, columns)
    if options.json:
        options.json.write_text(json.dumps({name: asdict(row) for name, row in results.items()}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
