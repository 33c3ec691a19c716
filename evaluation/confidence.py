"""`python -m evaluation.confidence`: fits the confidence of hits to the questions of judged sets, and tests it.

    python -m evaluation.confidence --fit cosqa --fit nlp2api --fit evaluation/functions/develop \\
      --fit evaluation/large --report evaluation/functions/report
    python -m evaluation.confidence --table evaluation/results/confidence.md --plot docs/confidence.svg

Each set counts the same. Every question is asked of its own corpus, and one in four (UNANSWERED) also of a corpus of
the next set, where nothing is right. Printed are the model for ncs.learn.confidence, and how often hits of a stated
probability are right: on each set by a model of the others, and on the reported sets by the model of all.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpora import data_folder, load_corpora
from corpora.repo_search import OWN_ROWS
from corpora.repo_search import corpora as repositories
from evaluation.page import MARKERS, svg
from evaluation.reports import markdown_table
from ncs.config import BuildConfig
from ncs.console import tracker
from ncs.exit_status import main_program
from ncs.index import Index
from ncs.learn.confidence import FEATURES, LIKELY, STRONG, WEAK, Model
from ncs.search.hybrid import confidence_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from corpora.corpus import Corpus
    from ncs.progress import Track
    from ncs.types import Scores

HITS = 10
UNANSWERED = 4
BANDS = (0.0, WEAK, LIKELY, STRONG, 0.8, 1.0)
PENALTY = 1.0
"""The weight of the squared coefficients, relative to a set of 1,000 hits."""


@dataclass(frozen=True, slots=True)
class JudgedHits:
    """The features of a question's first hits, [n, len(FEATURES)], and which are right, [n]."""

    features: Scores
    right: NDArray[np.bool_]


@main_program("confidence")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, with one line on stderr."""
    parser = argparse.ArgumentParser(prog="confidence", description=(__doc__ or "").partition("\n")[0])
    for option in ("--fit", "--report"):
        parser.add_argument(
            option, action="append", default=[], metavar="SET",
            help=f"a corpus that bin/evaluate knows, or a folder with {OWN_ROWS}; repeatable",
        )  # fmt: skip
    parser.add_argument("--table", type=Path, help="what this command has printed, to draw it")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="draw that table")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    if (options.table is None) != (options.plot is None) or bool(options.fit) == bool(options.plot):
        parser.error("name sets with --fit; or draw a table with --table FILE --plot SVG")
    if options.plot:
        lines = options.table.read_text(encoding="utf-8").splitlines()
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        options.plot.write_bytes(svg("reliability", partial(_draw, rows=cells)))
        return 0
    sets, track = [*options.fit, *options.report], tracker(options.quiet)
    corpora = {name: _corpora(name) for name in dict.fromkeys(sets)}
    asked = {name: list(ask(corpora, name, track)) for name in corpora}
    model = fit([asked[name] for name in options.fit])
    rows = []
    for name in options.fit:
        others = [asked[other] for other in options.fit if other != name]
        rows += [(f"{name}, by the others", *row) for row in reliability(fit(others), asked[name])] if others else []
    for name in options.report:
        rows += [(name, *row) for row in reliability(model, asked[name])]
    coefficients = ", ".join(f"{value:.2f}" for value in model.coefficients)
    sys.stdout.write(f"Model({model.intercept:.2f}, ({coefficients}))  # {', '.join(FEATURES)}\n\n")
    sys.stdout.write(markdown_table(["set", "stated", "hits", "mean stated", "right"], rows) + "\n")
    return 0


def _draw(axes: Axes, rows: Sequence[Sequence[str]]) -> None:
    """The share of right hits over the stated probability, one line per set."""
    bands = [row for row in rows if len(row) == 5 and " to " in row[1]]
    axes.plot([0, 1], [0, 1], color="black", linewidth=0.8, label="as stated")
    for number, name in enumerate(dict.fromkeys(row[0] for row in bands)):
        stated, right = zip(*((float(row[3]), float(row[4])) for row in bands if row[0] == name), strict=True)
        axes.plot(stated, right, marker=MARKERS[number % len(MARKERS)], label=name)
    axes.set(xlabel="stated probability (mean of a band)", ylabel="share of hits that are right", ylim=(0, 1.02))


def _corpora(name: str) -> list[Corpus]:
    folder = Path(name)
    return list(repositories(folder) if (folder / OWN_ROWS).is_file() else load_corpora(name, data_folder(None)))


def ask(corpora: dict[str, list[Corpus]], name: str, track: Track) -> Iterator[JudgedHits]:
    """The questions of a set asked of its corpora, and some of those of the set before it."""
    sets = list(corpora)
    before = sets[sets.index(name) - 1]
    foreign = [query.text for corpus in corpora[before] for query in corpus.queries] if before != name else []
    for number, corpus in enumerate(corpora[name]):
        documents = list(corpus.documents())
        with (
            tempfile.TemporaryDirectory(prefix="ncs-confidence-") as folder,
            Index.of(documents, Path(folder) / "index", config=BuildConfig(deduplicate=False)) as index,
        ):
            questions = [(query.text, corpus.qrels.get(query.id, {})) for query in corpus.queries]
            strangers = foreign[number :: len(corpora[name])][: len(questions) // UNANSWERED]
            questions += [(text, {}) for text in strangers]
            for text, grades in track(questions, corpus.name, total=len(questions), unit="questions"):
                ranking = index.ranker("hybrid").rank(text, HITS + 1, fold=True)
                ids = index.documents.ids(list(ranking.rows)[:HITS])
                judged = [corpus.judged_run({"": {id: 1.0}})[""] for id in ids]
                right = [any(grades.get(each, 0) > 0 for each in names) for names in judged]
                if ids:
                    yield JudgedHits(confidence_features(ranking)[:HITS], np.array(right))


def fit(sets: Sequence[Sequence[JudgedHits]]) -> Model:
    """The logistic model of all sets, each of the same weight, without a negative coefficient."""
    from scipy.optimize import minimize

    features = np.concatenate([asked.features for questions in sets for asked in questions])
    right = np.concatenate([asked.right for questions in sets for asked in questions])
    sizes = [sum(len(asked.right) for asked in questions) for questions in sets]
    weights = np.repeat([1000 / size for size in sizes], sizes)
    rows = np.column_stack([np.ones(len(features)), features])

    def loss(at: Scores) -> tuple[float, Scores]:
        z, penalized = rows @ at, np.concatenate([[0.0], at[1:]])
        slope = rows.T @ (weights * (1 / (1 + np.exp(-z)) - right)) + PENALTY * penalized
        return float(weights @ (np.logaddexp(0, z) - z * right) + PENALTY * penalized @ penalized / 2), slope

    bounds = [(None, None), *[(0.0, None)] * len(FEATURES)]
    best = minimize(loss, np.zeros(rows.shape[1]), jac=True, bounds=bounds, method="L-BFGS-B").x
    return Model(float(best[0]), tuple(float(value) for value in best[1:]))


def reliability(model: Model, questions: Sequence[JudgedHits]) -> list[tuple[str, str, str, str]]:
    """Of each band of stated probabilities, and of the first hits: how many, their mean, the share that is right."""
    stated = [model.probabilities(asked.features) for asked in questions]
    every, right = np.concatenate(stated), np.concatenate([asked.right for asked in questions])
    masks = {f"{low:.1f} to {high:.1f}": (every >= low) & (every < high) for low, high in pairwise(BANDS)}
    masks["first hits"] = np.concatenate([np.arange(len(each)) == 0 for each in stated])
    rows = [(band, mask, int(mask.sum())) for band, mask in masks.items() if mask.any()]
    return [(band, f"{n:,}", f"{every[mask].mean():.2f}", f"{right[mask].mean():.2f}") for band, mask, n in rows]


if __name__ == "__main__":
    sys.exit(main())
