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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from corpora.ncs287 import Question, read_questions
from evaluation import machine
from evaluation.examples import Example, find_examples
from evaluation.judged import index_identity
from evaluation.judges.aroma import VERSION
from evaluation.judges.calibration import Rates, Similarities, measure, rates
from evaluation.report import aligned
from ncs.cli.output import tracker
from ncs.errors import BadInput
from ncs.exit_status import ending
from ncs.index import Index


def table(found: Sequence[Rates]) -> str:
    """As Markdown."""
    head = ["threshold", "listed", "listed, at HEAD", "random", "random, no function", "bm25's first hits"]
    return aligned(head, [_cells(row) for row in found])


def _cells(row: Rates) -> list[str]:
    around = "" if row.around is None else f"{row.around:.3%}"
    first = [f"{row.threshold:.2f}", f"{row.listed:.1%}", f"{row.current:.1%}", f"{row.random:.3%}"]
    return [*first, around, f"{row.bm25:.1%}"]


@ending("calibrate")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, told in one line on stderr."""
    parser = argparse.ArgumentParser(prog="calibrate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("questions", type=Path, help="JSON file of questions with examples_url")
    parser.add_argument("index", type=Path, help="index folder")
    parser.add_argument("--clones", type=Path, required=True, help="folder of the git repositories that are linked to")
    parser.add_argument("--draw", type=int, default=3_000, help="random documents (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default %(default)s)")
    parser.add_argument("-k", type=int, default=10, help="hits of bm25 a question (default %(default)s)")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    return _run(options)


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
        "random_pairs_no_function": len(similarities.around),
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
        f"from {about['documents']:,} documents; {about['bm25_hits']:,} functions among the hits of bm25."
    )


if __name__ == "__main__":
    sys.exit(main())
