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
from pathlib import Path

from corpora.codesearchnet.challenge import Grades, read_annotations, read_queries, read_submission
from evaluation.measures import challenge_ndcg, mean
from ncs.console import show_table
from ncs.exit_status import main_program
from ncs.files import replace_file
from ncs.types import Run

FIGURES = ("queries", "ndcg_within", "ndcg_all", "covered")
"""Of a language; queries: with a relevant function. covered: share of the annotated functions that are answers."""
Figures = Mapping[str, float]


def judge(annotations: Mapping[str, Grades], runs: Mapping[str, Run]) -> dict[str, Figures]:
    """Every annotated language, and the average over languages (Husain et al. 2019, table 4); no run: 0."""
    results = {language: _language(grades, runs.get(language, {})) for language, grades in sorted(annotations.items())}
    sums = {name: sum(figures[name] for figures in results.values()) for name in FIGURES}
    means = {name: value / len(results) for name, value in sums.items() if name != "queries"}
    return {**results, "average": {"queries": sums["queries"], **means}}


def _language(grades: Grades, run: Run) -> Figures:
    within = challenge_ndcg(grades, run, within=True)
    annotated = sum(len(urls) for urls in grades.values())
    covered = sum(url in run.get(query, {}) for query, urls in grades.items() for url in urls)
    everywhere = challenge_ndcg(grades, run, within=False)
    values = (len(within), mean(within), mean(everywhere), covered / annotated)
    return dict(zip(FIGURES, values, strict=True))


@main_program("challenge")
def main(argv: Sequence[str] | None = None) -> int:
    """Print a row per language; --json also writes them."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.challenge", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("queries", type=Path)
    parser.add_argument("annotations", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    queries = read_queries(options.queries)
    results = judge(read_annotations(options.annotations, queries), read_submission(options.answers, queries))
    columns = ("language", *(name.replace("_", " ") for name in FIGURES))
    rows = [
        (language, str(figures["queries"]), *(f"{figures[name]:.3f}" for name in FIGURES[1:]))
        for language, figures in results.items()
    ]
    show_table("CodeSearchNet's Challenge", rows, columns)
    if options.json:
        replace_file(options.json, json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
