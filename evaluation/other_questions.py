"""Questions of one topic beside a set that is kept for the end, in folds, and files to train on that leave each out.

    python -m evaluation.other_questions FILE... OUT --apart QUESTIONS.json [--topic android] [--folds 3] [--most N]

A hundred questions show no difference under .02 to .03 (evaluation.heads_table tells what a set can show). FILEs are
pairs of Stack Overflow (corpora.stackoverflow, ../shared/data: query, code, question_id or page, tags or platform);
of theirs that are about the topic, OUT gets as many questions as they hold, in the shape of ncs287's:

    questions.json              all of them
    other-<fold>.json           those of a fold; every thread or page is in one fold
    other-<fold>/FILE           the pairs without what is like a question of the fold, or one of QUESTIONS
    <QUESTIONS>/FILE            the pairs without what is like one of QUESTIONS only, to train what is asked these
    .../leave_out.jsonl         the questions that were left out, for ncs train --leave-out
    answers.jsonl.gz            all answers, for python -m corpora codesearchnet pairs --apart

So all that is known is learnt from, and every question is asked of a head that never saw it (cross-fitting).

Like a question is a pair (1) of its thread, or of its page and heading, (2) whose title shares LIKE of both titles'
words, or (3) whose code holds SAME of its answer's features while WHOLE of its own are the answer's. No two questions
of OUT are alike by (2), nor like one of QUESTIONS by (1) or (2). The same seed and files give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.jsonl import write_rows
from corpora.ncs287 import Question, read_questions
from evaluation.alike import shared
from evaluation.question_pairs import WORDS, Pair, Stems, read, stems
from ncs.errors import BadInput
from ncs.exit_status import ending
from ncs.search.aroma import Features, cached_features

LIKE = 0.5
"""Words that two titles share, of all that either has (Jaccard): "hide keyboard" and "how to hide soft keyboard"."""
SAME, WHOLE = 0.8, 0.5
"""A copy with a line changed has .8 of the answer; half of its own, or every long program would be like a short one."""
A_PAGE = 3
"""Questions of one thread or page: they are alike in words, so each more of them says less."""


def chosen(pairs: Sequence[Pair], kept: Sequence[Question], topic: str, most: int, seed: int) -> list[Pair]:
    """The best answer of each question that may be asked, in drawn order; see the module's rules."""
    by_question: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.about(topic) and len(stems(pair.title, topic)) >= WORDS and pair.answers():
            by_question[pair.question].append(pair)
    asked, ids = [stems(each.query.text, topic) for each in kept], {f"so{each.query.id}" for each in kept}
    order = sorted(by_question.keys() - ids)
    a_group: Counter[str] = Counter()
    found: list[Pair] = []
    for at in np.random.default_rng(seed).permutation(len(order)):
        pair = min(by_question[order[at]], key=lambda each: each.order)
        said = stems(pair.title, topic)
        if len(found) == most or a_group[pair.group] == A_PAGE or any(_like(said, other) for other in asked):
            continue
        a_group[pair.group] += 1
        asked.append(said)
        found.append(pair)
    if not found:
        raise BadInput(f"no pair is about {topic!r} and can be asked; name files with tags or platform, or --topic")
    return found


def _like(one: Stems, other: Stems) -> bool:
    return len(one & other) >= LIKE * max(1, len(one | other))


def folds(questions: Sequence[Pair], number: int) -> list[list[Pair]]:
    """Each thread or page in one fold, the folds nearly of one size."""
    found: list[list[Pair]] = [[] for _ in range(number)]
    by_group: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in questions:
        by_group[pair.group].append(pair)
    for together in by_group.values():
        min(found, key=len).extend(together)
    return found


class Left:
    """Which pairs may be learnt from, where some questions are kept: all pairs are compared with all kept at once."""

    def __init__(self, pairs: Sequence[Pair], topic: str) -> None:
        self._pairs = pairs
        self._titles = [Counter(stems(pair.title, topic)) for pair in pairs]
        self._codes = [pair.features for pair in pairs]
        self._topic = topic

    def others(self, threads: Collection[str], titles: Sequence[str], answers: Sequence[Features]) -> list[Pair]:
        """The pairs that are like none of these."""
        said = [Counter(stems(title, self._topic)) for title in titles]
        words, sizes = shared(self._titles, said), _sizes(self._titles)[:, None]
        like = (words >= LIKE * np.maximum(1, sizes + _sizes(said) - words)).any(axis=1)
        held, own = shared(self._codes, answers), _sizes(self._codes)[:, None]
        like |= ((held >= SAME * np.maximum(1, _sizes(answers))) & (held >= WHOLE * np.maximum(1, own))).any(axis=1)
        return [pair for pair, out in zip(self._pairs, like, strict=True) if not out and pair.question not in threads]


def _sizes(bags: Sequence[Mapping[Any, int]]) -> NDArray[np.int64]:
    return np.array([sum(bag.values()) for bag in bags], np.int64)


def make(
    files: Sequence[Path], out: Path, apart: Path, *, topic: str, number: int, most: int, seed: int
) -> dict[str, tuple[int, int]]:
    """Write all of it; folder -> (questions, pairs to learn from). Raises BadInput for files that do not fit."""
    kept, pairs = read_questions(apart), read(files)
    questions = chosen(pairs, kept, topic, most, seed)
    out.mkdir(parents=True, exist_ok=True)
    _write_questions(questions, out / "questions.json")
    answers = [*(pair.code for pair in questions), *(each.answer for each in kept)]
    write_rows(out / "answers.jsonl.gz", ({"code": code, "language": "java"} for code in answers))
    left = Left(pairs, topic)
    told = {}
    for name, held in [(f"other-{at}", fold) for at, fold in enumerate(folds(questions, number))] + [(apart.stem, [])]:
        titles = [*(pair.title for pair in held), *(each.query.text for each in kept)]
        codes = [*(pair.code for pair in held), *(each.answer for each in kept)]
        threads = {pair.question for pair in held} | {f"so{each.query.id}" for each in kept}
        rest = left.others(threads, titles, [cached_features(code, "java") for code in codes])
        if held:
            _write_questions(held, out / f"{name}.json")
        (out / name).mkdir(exist_ok=True)
        for path in files:
            write_rows(out / name / path.name, (pair.values for pair in rest if pair.file == path.name))
        write_rows(out / name / "leave_out.jsonl", ({"query": title} for title in titles))
        told[name] = len(held), len(rest)
    return told


def _write_questions(questions: Sequence[Pair], path: Path) -> None:
    rows = [
        {"stackoverflow_id": _short(pair.question), "question": pair.title, "answer": pair.code, "examples_url": []}
        | {"question_url": pair.values.get("url", pair.group)}
        for pair in questions
    ]
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _short(question: str) -> str:
    """A page and its heading in a few letters: results name each question many times."""
    thread = question.removeprefix("so").isdecimal()
    return question if thread else f"page-{blake2b(question.encode(), digest_size=4).hexdigest()}"


@ending("other_questions")
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the questions and the training files; how many of each on stdout."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.other_questions", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="pairs with tags or a platform")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--apart", type=Path, required=True, help="questions in ncs287's shape that are kept apart")
    parser.add_argument("--topic", default="android", help="a tag, or a platform (default %(default)s)")
    parser.add_argument("--folds", type=int, default=3, help="(default %(default)s)")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="questions at most (default: all there are)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default %(default)s)")
    options = parser.parse_args(arguments)
    if options.folds < 1 or options.most < options.folds:
        raise BadInput(f"--folds is {options.folds} and --most {options.most}; give at least 1, and a question a fold")
    told = make(
        options.files, options.out, options.apart,
        topic=options.topic, number=options.folds, most=options.most, seed=options.seed,
    )  # fmt: skip
    for name, (questions, pairs) in told.items():
        sys.stdout.write(f"{name}: {questions:,} questions, {pairs:,} pairs to learn from\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
