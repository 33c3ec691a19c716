"""`python -m evaluation.calibrate`: the share of listed and of random functions that pass each threshold.

    python -m evaluation.calibrate QUESTIONS.json INDEX --clones FOLDER [--out FILE] [-q]

Compares functions that questions list as answers (which should pass) with random functions of an index judged by every
question (which should not).

A question lists functions by GitHub links, which name a commit that a newer clone need not have. So a listed function
is read at that commit where it is there, else at HEAD by its lines.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from corpora.codesearchnet.repositories import git_repository
from corpora.ncs287 import Question, read_questions
from corpora.repo_search import find_repository
from evaluation.machine import commit, machine
from evaluation.reports import markdown_table
from evaluation.stackoverflow import PAPER_THRESHOLD, STRICT_THRESHOLD, VERSION, index_identity, judge
from ncs.console import tracker
from ncs.errors import BadInput, SourceError
from ncs.exit_status import main_program
from ncs.extract import extract, language_of
from ncs.files import replace_file
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.sources import Limits
from ncs.sources.git import ObjectReader, open_git
from ncs.sources.repositories import Repository
from ncs.types import Document

THRESHOLDS = (0.1, 0.2, PAPER_THRESHOLD, 0.3, 0.4, 0.5, STRICT_THRESHOLD, 0.7, 0.8, 0.9)
Similarities = Mapping[str, Sequence[float]]
"""Kind -> similarities of its functions to the answers.

random: functions drawn from the index, one value for each question; outlines: drawn documents that are no functions,
if any.
"""
_LINK = re.compile(r"https?://github\.com/([^/]+/[^/]+)/blob/([^/]+)/([^#]+)#L(\d+)(?:-L(\d+))?")


@main_program("calibrate")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, with one line on stderr."""
    parser = argparse.ArgumentParser(prog="calibrate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("questions", type=Path, help="JSON file of questions with examples_url")
    parser.add_argument("index", type=Path, help="index folder")
    parser.add_argument("--clones", type=Path, required=True, help="folder of the git repositories that are linked to")
    parser.add_argument("--draw", type=int, default=3_000, help="random documents (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default %(default)s)")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    if options.draw < 1:
        raise BadInput(f"--draw is {options.draw}; it must be at least 1")
    if not options.clones.is_dir():
        raise BadInput(f"no folder {options.clones}; name the one with the clones after --clones")
    questions, track = read_questions(options.questions), tracker(options.quiet)
    with Index.load(options.index) as index:
        examples = find_examples(questions, options.clones, track=track)
        similarities = measure(questions, examples, index, draw=options.draw, seed=options.seed, track=track)
        record: dict[str, Any] = {
            "questions": len(questions),
            "questions_with_examples": len({question.query.id for question, _ in examples}),
            "listed": len(similarities["listed"]),
            "random_pairs": len(similarities["random"]),
            "judge": VERSION,
            "seed": options.seed,
            "documents": len(index),
            "index": index_identity(index),
            "commit": commit(),
            "machine": machine(),
        }
    record["rates"] = [rates(similarities, threshold) for threshold in THRESHOLDS]
    record["listed_similarities"] = [round(value, 4) for value in similarities["listed"]]
    sys.stdout.write(
        f"{table(record['rates'])}\n\n{record['listed']} listed functions of {record['questions_with_examples']} of "
        f"{record['questions']} questions; {record['random_pairs']:,} random (function, question) pairs from "
        f"{record['documents']:,} documents.\n"
    )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(options.out, json.dumps(record, indent=1) + "\n")
    return 0


def rates(similarities: Similarities, threshold: float) -> dict[str, float | None]:
    """The share of each kind that passes; None for outlines where there are none, BadInput for other kinds."""
    if not similarities["listed"] or not similarities["random"]:
        raise BadInput("calibration needs listed examples and other functions; give at least one of each")
    shares = {
        kind: sum(value >= threshold for value in values) / len(values) if values else None
        for kind, values in similarities.items()
    }
    return {"threshold": threshold, **shares}


def table(rows: Sequence[Mapping[str, float | None]]) -> str:
    """The table as Markdown."""
    formats = {"threshold": ".2f", "listed": ".1%", "random": ".3%", "outlines": ".3%"}
    cells = [["" if row[kind] is None else f"{row[kind]:{form}}" for kind, form in formats.items()] for row in rows]
    return markdown_table(["threshold", "listed", "random", "random, no function"], cells)


# Listed functions.


@dataclass(frozen=True, slots=True)
class Link:
    """A GitHub address of some lines of a file at a commit."""

    repository: str
    commit: str
    path: str
    first: int
    last: int


def parse_link(url: str) -> Link:
    """The parts of a link; BadInput for anything else.

    >>> parse_link("https://github.com/o/n/blob/1f2e/src/A%20b.java#L3-L9")
    Link(repository='o/n', commit='1f2e', path='src/A b.java', first=3, last=9)
    """
    if (match := _LINK.fullmatch(url)) is None:
        raise BadInput(f"{url!r} is no link to lines of a file on GitHub; correct the questions' examples_url")
    repository, commit, path, first, last = match.groups()
    return Link(repository, commit, unquote(path), int(first), int(last or first))


def find_examples(
    questions: Sequence[Question], clones: Path, *, track: Track = silent
) -> list[tuple[Question, Document]]:
    """All listed functions that the clones below a folder have, in the order of the questions.

    clones: a folder with `owner/name`, `owner+name` or `owner+name/repo`, each a git repository, bare or not.
    Missing repositories, files and functions are skipped.
    """
    links = [(question, parse_link(url)) for question in questions for url in question.examples]
    examples = []
    for question, link in track(links, "reading listed functions", total=len(links), unit="functions"):
        if (clone := clone_of(link.repository, clones)) is not None and (function := function_at(clone, link)):
            examples.append((question, function))
    return examples


def clone_of(repository: str, clones: Path) -> Repository | None:
    """The clone of `owner/name`."""
    with suppress(BadInput):
        return git_repository(find_repository(repository, clones))
    return None


def function_at(clone: Repository, link: Link) -> Document | None:
    """The function at a link's lines: at its commit, or at HEAD where the commit has no such file."""
    if (language := language_of(link.path)) is None:
        return None
    with open_git(clone) as git, closing(ObjectReader(git)) as objects:
        for revision in (link.commit, "HEAD"):
            file = objects.read(f"{revision}:{link.path}", Limits().of(link.path))
            if file is not None and file.content is not None:
                with suppress(SourceError):
                    return at_lines(extract(file.content, language), link.first, link.last)
    return None


def at_lines(functions: Iterable[Document], first: int, last: int) -> Document | None:
    """The function that covers at least half of these lines and little else; None where there is none."""

    def fit(function: Document) -> tuple[float, int]:
        common = max(0, min(last, function.end_line) - max(first, function.start_line) + 1)
        union = last - first + 1 + function.end_line - function.start_line + 1 - common
        return common / union, common

    best = max(functions, key=fit, default=None)
    return best if best is not None and 2 * fit(best)[1] >= last - first + 1 else None


# Similarities.


def measure(
    questions: Sequence[Question],
    examples: Sequence[tuple[Question, Document]],
    index: Index,
    *,
    draw: int,
    seed: int = 0,
    track: Track = silent,
) -> Similarities:
    """Judge listed functions by their question, and `draw` documents of the index by every question."""
    rows = np.sort(np.random.default_rng(seed).choice(index.documents.rows(), min(draw, len(index)), replace=False))
    is_function = index.functions()[rows]
    functions, outlines = (index.documents.documents(rows[mask].tolist()) for mask in (is_function, ~is_function))
    listed = [_similarity(question, function) for question, function in examples]
    random, others = list[float](), list[float]()
    for question in track(questions, "judging", total=len(questions), unit="questions"):
        random += [_similarity(question, document) for document in functions]
        others += [_similarity(question, document) for document in outlines]
    return {"listed": listed, "random": random, "outlines": others}


def _similarity(question: Question, document: Document) -> float:
    return judge(question.answer, document.code, document.language)


if __name__ == "__main__":
    sys.exit(main())
