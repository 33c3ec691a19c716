"""`python -m evaluation.judges.calibrate`: what each threshold of the judge lets pass, so that none is guessed.

    python -m evaluation.judges.calibrate QUESTIONS.json INDEX --clones FOLDER [--out FILE] [-q]

Compared are functions that questions list as answers (they should pass) with functions drawn at random from an index
and judged by every question (they should not), and with the first hits of bm25 for the question that are none of the
listed ones: some of these are right, so their share is what a judge decides about, not an error rate.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpora.ncs287 import Question, read_questions
from evaluation import machine
from evaluation.examples import Example, find_examples, listed_qrels
from evaluation.judged import index_identity
from evaluation.judges.aroma import PAPER_THRESHOLD, STRICT_THRESHOLD, VERSION, judge, passing
from evaluation.report import aligned
from ncs.console import tracker
from ncs.errors import BadInput, NcsError
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.types import Document

THRESHOLDS = (0.1, 0.2, PAPER_THRESHOLD, 0.3, 0.4, 0.5, STRICT_THRESHOLD, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Similarities:
    """How similar functions of each kind are to the answers."""

    listed: Sequence[float]
    """Listed functions as they were listed, one value each."""
    current: Sequence[float]
    """Those that are still there, as they stand at HEAD."""
    random: Sequence[float]
    """Functions drawn from the index, one value for each question."""
    bm25: Sequence[float]
    """First hits of bm25 for the question, without its listed functions."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Which share of each kind passes a threshold."""

    threshold: float
    listed: float
    current: float
    random: float
    bm25: float


def measure(
    questions: Sequence[Question],
    examples: Sequence[Example],
    index: Index,
    *,
    draw: int = 3_000,
    seed: int = 0,
    k: int = 10,
    track: Track = silent,
) -> Similarities:
    """Judge listed functions, `draw` functions of the index by every question, and k hits of bm25 a question."""
    answers = {question.query.id: question.answer for question in questions}
    rows = np.random.default_rng(seed).choice(len(index), min(draw, len(index)), replace=False)
    drawn = index.store.documents(np.sort(rows).tolist())
    found: list[float] = []
    for question in track(questions, "judging random functions", total=len(questions), unit="questions"):
        found += _similarities(question.answer, drawn)
    listed = listed_qrels(index, examples)
    hits: list[float] = []
    for question in track(questions, "judging hits of bm25", total=len(questions), unit="questions"):
        documents = [hit.document for hit in index.search(question.query.text, k, ranker="bm25")]
        known = listed.get(question.query.id, {})
        hits += _similarities(question.answer, [document for document in documents if document.id not in known])
    return Similarities(
        [_similarities(answers[example.question], [example.document])[0] for example in examples],
        [_similarities(answers[example.question], [now])[0] for example in examples if (now := example.current)],
        found,
        hits,
    )


def rates(similarities: Similarities, thresholds: Sequence[float] = THRESHOLDS) -> list[Rates]:
    """The shares that pass; BadInput where there is nothing of one kind."""
    kinds = (similarities.listed, similarities.current, similarities.random, similarities.bm25)
    return [Rates(threshold, *(passing(values, threshold) for values in kinds)) for threshold in thresholds]


def _similarities(answer: str, documents: Sequence[Document]) -> list[float]:
    judged = judge(answer)
    return [judged(document.code, document.language) for document in documents]


def table(found: Sequence[Rates]) -> str:
    """As Markdown."""
    head = ["threshold", "listed", "listed, at HEAD", "random", "bm25's first hits"]
    return aligned(
        head,
        [
            [f"{row.threshold:.2f}", f"{row.listed:.1%}", f"{row.current:.1%}", f"{row.random:.3%}", f"{row.bm25:.1%}"]
            for row in found
        ],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, told in one line on stderr."""
    parser = argparse.ArgumentParser(prog="calibrate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("questions", type=Path, help="JSON file of questions with examples_url")
    parser.add_argument("index", type=Path, help="index folder")
    parser.add_argument("--clones", type=Path, required=True, help="folder of the git repositories that are linked to")
    parser.add_argument("--draw", type=int, default=3_000, help="random functions (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default %(default)s)")
    parser.add_argument("-k", type=int, default=10, help="hits of bm25 a question (default %(default)s)")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except NcsError as error:
        sys.stderr.write(f"calibrate: {error}\n")
        return 2


def _run(options: argparse.Namespace) -> int:
    if options.draw < 1 or options.k < 1:
        raise BadInput(f"--draw is {options.draw} and -k {options.k}; both must be at least 1")
    if not options.clones.is_dir():
        raise BadInput(f"there is no folder {options.clones}; name the one with the clones after --clones")
    questions = read_questions(options.questions)
    track = tracker(options.quiet)
    with Index.load(options.index) as index:
        examples = find_examples(questions, options.clones, track=track)
        similarities = measure(
            questions, examples, index, draw=options.draw, seed=options.seed, k=options.k, track=track
        )
        about = _about(questions, examples, index, similarities, options)
    found = rates(similarities)
    sys.stdout.write(f"{table(found)}\n\n{_caption(about)}\n")
    if options.out:
        record = {**about, "rates": [asdict(row) for row in found]}
        record["listed_similarities"] = [round(value, 4) for value in similarities.listed]
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def _about(
    questions: Sequence[Question],
    examples: Sequence[Example],
    index: Index,
    similarities: Similarities,
    options: argparse.Namespace,
) -> dict[str, Any]:
    return {
        "questions": len(questions),
        "questions_with_examples": len({example.question for example in examples}),
        "listed": len(similarities.listed),
        "listed_current": len(similarities.current),
        "questions_current": len({example.question for example in examples if example.current}),
        "random_pairs": len(similarities.random),
        "bm25_hits": len(similarities.bm25),
        "judge": VERSION,
        "seed": options.seed,
        "documents": len(index),
        "index": index_identity(index),
        "commit": machine.commit(),
        "machine": machine.machine(),
    }


def _caption(about: Mapping[str, Any]) -> str:
    return (
        f"{about['listed']} listed functions of {about['questions_with_examples']} of {about['questions']} questions, "
        f"{about['listed_current']} of them still at HEAD; {about['random_pairs']:,} random (function, question) pairs "
        f"from {about['documents']:,} functions; {about['bm25_hits']:,} hits of bm25."
    )


if __name__ == "__main__":
    sys.exit(main())
