"""`python -m evaluation.judges.calibrate`: the share of listed, random and found functions that passes each threshold.

    python -m evaluation.judges.calibrate QUESTIONS.json INDEX --clones FOLDER [--out FILE] [-q]

Compares functions that questions list as answers (which should pass), random functions of an index judged by every
question (which should not), and unlisted first hits of bm25, some of which are right.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from corpora.ncs287 import Question, read_questions
from evaluation import machine
from evaluation.judges.aroma import PAPER_THRESHOLD, STRICT_THRESHOLD, VERSION, judge, passing
from evaluation.judges.examples import Example, find_examples, listed_qrels
from evaluation.reports import markdown_table
from evaluation.stackoverflow import index_identity
from ncs.console import tracker
from ncs.errors import BadInput
from ncs.exit_status import main_program
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.types import Document

THRESHOLDS = (0.1, 0.2, PAPER_THRESHOLD, 0.3, 0.4, 0.5, STRICT_THRESHOLD, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Similarities:
    """How similar functions of each kind are to the answers.

    listed: as they were listed; current: those that are still there, as they stand at HEAD. random: functions drawn
    from the index, one value for each question; outlines: drawn documents that are no functions, there may be none.
    bm25: functions among the first hits of bm25, without the listed ones.
    """

    listed: Sequence[float]
    current: Sequence[float]
    random: Sequence[float]
    outlines: Sequence[float]
    bm25: Sequence[float]


@dataclass(frozen=True, slots=True)
class Rates:
    """Which share of each kind passes a threshold."""

    threshold: float
    listed: float
    current: float
    random: float
    outlines: float | None
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
    """Judge listed functions, `draw` documents of the index by every question, and k hits of bm25 per question."""
    answers = {question.query.id: question.answer for question in questions}
    rows = np.sort(np.random.default_rng(seed).choice(index.documents.rows(), min(draw, len(index)), replace=False))
    is_function = index.functions()
    functions, outlines = (
        index.documents.documents(rows[mask].tolist()) for mask in (is_function[rows], ~is_function[rows])
    )
    random: list[float] = []
    others: list[float] = []
    for question in track(questions, "judging random functions", total=len(questions), unit="questions"):
        random += _similarities(question.answer, functions)
        others += _similarities(question.answer, outlines)
    listed = listed_qrels(index, examples)
    hits: list[float] = []
    for question in track(questions, "judging hits of bm25", total=len(questions), unit="questions"):
        listed_ids = listed.get(question.query.id, {})
        rows_found = [row for row, _ in index.ranker("bm25").search(question.query.text, k) if is_function[row]]
        unlisted = [document for document in index.documents.documents(rows_found) if document.id not in listed_ids]
        hits += _similarities(question.answer, unlisted)
    return Similarities(
        [_similarities(answers[example.question], [example.document])[0] for example in examples],
        [_similarities(answers[example.question], [now])[0] for example in examples if (now := example.current)],
        random,
        others,
        hits,
    )


def _similarities(answer: str, documents: Sequence[Document]) -> list[float]:
    similarity = judge(answer)
    return [similarity(document.code, document.language) for document in documents]


def rates(similarities: Similarities, thresholds: Sequence[float] = THRESHOLDS) -> list[Rates]:
    """The shares that pass; BadInput where there is nothing of one kind."""
    of = similarities
    return [
        Rates(
            threshold,
            passing(of.listed, threshold),
            passing(of.current, threshold),
            passing(of.random, threshold),
            passing(of.outlines, threshold) if of.outlines else None,
            passing(of.bm25, threshold),
        )
        for threshold in thresholds
    ]


def table(results: Sequence[Rates]) -> str:
    """As Markdown."""
    head = ["threshold", "listed", "listed, at HEAD", "random", "random, no function", "bm25's first hits"]
    rows = [
        [
            f"{row.threshold:.2f}", f"{row.listed:.1%}", f"{row.current:.1%}", f"{row.random:.3%}",
            "" if row.outlines is None else f"{row.outlines:.3%}", f"{row.bm25:.1%}",
        ]
        for row in results
    ]  # fmt: skip
    return markdown_table(head, rows)


@main_program("calibrate")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, with one line on stderr."""
    parser = argparse.ArgumentParser(prog="calibrate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("questions", type=Path, help="JSON file of questions with examples_url")
    parser.add_argument("index", type=Path, help="index folder")
    parser.add_argument("--clones", type=Path, required=True, help="folder of the git repositories that are linked to")
    parser.add_argument("--draw", type=int, default=3_000, help="random documents (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default %(default)s)")
    parser.add_argument("-k", type=int, default=10, help="hits of bm25 per question (default %(default)s)")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    if options.draw < 1 or options.k < 1:
        raise BadInput(f"--draw is {options.draw} and -k {options.k}; both must be at least 1")
    if not options.clones.is_dir():
        raise BadInput(f"no folder {options.clones}; name the one with the clones after --clones")
    questions = read_questions(options.questions)
    track = tracker(options.quiet)
    with Index.load(options.index) as index:
        examples = find_examples(questions, options.clones, track=track)
        similarities = measure(
            questions, examples, index, draw=options.draw, seed=options.seed, k=options.k, track=track
        )
        about = {
            "questions": len(questions),
            "questions_with_examples": len({example.question for example in examples}),
            "listed": len(similarities.listed),
            "listed_current": len(similarities.current),
            "random_pairs": len(similarities.random),
            "bm25_hits": len(similarities.bm25),
            "judge": VERSION,
            "seed": options.seed,
            "documents": len(index),
            "index": index_identity(index),
            "commit": machine.commit(),
            "machine": machine.machine(),
        }
    results = rates(similarities)
    sys.stdout.write(
        f"{table(results)}\n\n{about['listed']} listed functions of {about['questions_with_examples']} of "
        f"{about['questions']} questions, {about['listed_current']} of them still at HEAD; {about['random_pairs']:,} "
        f"random (function, question) pairs from {about['documents']:,} documents; {about['bm25_hits']:,} functions "
        "among the hits of bm25.\n"
    )
    if options.out:
        similar = [round(value, 4) for value in similarities.listed]
        record = {**about, "rates": [asdict(row) for row in results], "listed_similarities": similar}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
