"""`bin/evaluate-stackoverflow`: questions with answer snippets over one or several indexes, hits judged by similarity.

    bin/evaluate-stackoverflow QUESTIONS.json INDEX... [--ranker R]... [--json FILE] [--csv FILE] [--sheet FILE]

QUESTIONS.json is in the shape of Facebook's Neural Code Search Evaluation Dataset: a list of objects with
stackoverflow_id, question and answer. A hit answers where it holds at least a share of the features of the answer's
code (ncs.search.aroma). Cambronero et al., "When deep learning met code search" (FSE 2019), section 4, use a threshold
of .25. Long functions pass it easily, so a strict one is reported, too (`python -m evaluation.calibrate`).

Every judged question is appended to a state file beside the first output, so that a run that was stopped can be
resumed by the same command; the state is removed when the outputs are written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from corpora.corpus import first_repeated
from corpora.ncs287 import Question, read_questions
from evaluation import outputs, reports
from evaluation.experiments import (
    BASELINE,
    Experiment,
    Ranked,
    System,
    build_of,
    costs,
    fit_ranker,
    read_system,
    require_code,
)
from evaluation.machine import commit, machine
from evaluation.measures import evaluate as evaluate_run
from evaluation.measures import mean
from ncs.console import count, say, tracker
from ncs.errors import BadInput
from ncs.exit_status import main_program
from ncs.extract.languages import is_installed
from ncs.files import append_file
from ncs.index import Index
from ncs.progress import Track
from ncs.search.aroma import cached_features, similarity
from ncs.search.rankers import RANKERS, Ranker

STRICT_THRESHOLD, PAPER_THRESHOLD = THRESHOLDS = (0.6, 0.25)
"""A hit answers where its similarity is at least this."""
VERSION = 2
"""Raised with every change of similarities."""
HEADER = b'{"file": "judged answers of ncs", "version": 2}\n'


@main_program("evaluate-stackoverflow", interrupted="the same command resumes if it names an output")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, with one line on stderr, 130 stopped by the keyboard."""
    parser = argparse.ArgumentParser(prog="bin/evaluate-stackoverflow", description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path, metavar="QUESTIONS.json", help="the questions and their answers")
    parser.add_argument("index", type=Path, nargs="+", metavar="INDEX", help="index folders")
    parser.add_argument(
        "--ranker", action="append", metavar="R",
        help=f"{', '.join(RANKERS)}; with settings: ncs:centre=true; default: all that the index has; repeatable",
    )  # fmt: skip
    parser.add_argument("-k", type=int, default=10, help="hits per question that are judged (default %(default)s)")
    outputs.add_options(parser)
    parser.add_argument("--state", type=Path, help="file to resume from (default: beside the first output)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    result = evaluate(
        options.questions, options.index, rankers=options.ranker or (), k=options.k,
        files=outputs.output_files(options), pair=options.pair, state=options.state,
        quiet=options.quiet,
    )  # fmt: skip
    sys.stdout.write(reports.report(result))
    return 0


def evaluate(
    questions_file: Path,
    folders: Sequence[Path],
    *,
    files: Mapping[str, Path | None],
    rankers: Sequence[str] = (),
    k: int = 10,
    pair: reports.Pair | None = None,
    state: Path | None = None,
    quiet: bool = False,
) -> Experiment:
    """Search, judge, write the outputs; raises NcsError before the first search where it can.

    files: outputs.OUTPUTS -> where to write it. rankers: names with settings; none: all that each index has; `bm25` is
    always one. pair: for the page. state: None: beside the first output, if any.
    """
    if k < 1:
        raise BadInput(f"-k is {k}; it must be at least 1")
    labels = _labels(folders)
    outputs.check_outputs(files)
    questions = read_questions(questions_file)
    systems = [read_system(text) for text in rankers]
    first = next((path for path in files.values() if path), None)
    state = state or (first.with_name(f"{first.name}.state.jsonl") if first else None)
    with ExitStack() as stack:
        indexes = [stack.enter_context(Index.load(path)) for path in folders]
        journal = stack.enter_context(Journal(state))
        if journal.answers:
            say(f"resuming: {count(len(journal.answers), 'answer is', 'answers are')} in {state}")
        builds = []
        for index, label in zip(indexes, labels, strict=True):
            require_code(index)
            rest = systems or [System(name) for name in RANKERS if index.has_ranker(name)]
            each_once = {system.name: system for system in [System(BASELINE), *rest]}
            results = [
                _rank(index, system, questions, k, journal, tracker(quiet), f"{label} {system.name}".strip())
                for system in each_once.values()
            ]
            builds.append(build_of(index, label, results, documents=len(index)))
        experiment = Experiment(
            corpus=questions_file.stem,
            corpus_digest=_digest(indexes),
            documents=len(indexes[0]),
            commit=commit(),
            machine=machine(),
            depth=k,
            measures=[f"{measure} at {threshold}" for threshold in THRESHOLDS for measure in measures(k)],
            queries=[question.query.id for question in questions],
            builds=builds,
            texts=[question.query.text for question in questions],
        )
        if outputs.write_outputs([experiment], files, pair=pair):
            journal.remove()
    return experiment


def _labels(folders: Sequence[Path]) -> list[str]:
    """The names of several indexes in tables, "" for a single one."""
    if len(folders) == 1:
        return [""]
    labels = [path.name or str(path) for path in folders]
    if first_repeated(labels) is not None:
        labels = [str(path) for path in folders]
    if (twice := first_repeated(labels)) is not None:
        raise BadInput(f"the index {twice} is named twice; name it once")
    return labels


def _digest(indexes: Sequence[Index]) -> str:
    """A digest of the ids of all documents."""
    state = hashlib.sha256()
    for index in indexes:
        rows = index.documents.rows().tolist()
        for start in range(0, len(rows), 10_000):
            ids = index.documents.ids(rows[start : start + 10_000])
            state.update("\n".join(ids).encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def measures(k: int) -> list[str]:
    """The measures of k judged hits.

    >>> measures(7)
    ['mrr@7', 'answered@1', 'answered@5']
    """
    return [f"mrr@{k}", *(f"answered@{depth}" for depth in (1, 5, 10) if depth <= k)]


def _rank(
    index: Index, system: System, questions: Sequence[Question], k: int, journal: Journal, track: Track, stage: str
) -> Ranked:
    """One system's hits for all questions, judged at both thresholds; journaled answers are not searched again."""
    ranker, fit_seconds = fit_ranker(index, system)
    ranker.search(questions[0].query.text, 1)  # open the files before the clock runs
    identity, answers = index_identity(index), dict[str, Answer]()
    for question in track(questions, stage, total=len(questions), unit="questions"):
        inputs = VERSION, identity, system.name, *astuple(question.query), question.answer, k
        key = hashlib.blake2b(json.dumps(inputs).encode(), digest_size=16).hexdigest()
        if key not in journal.answers:
            journal.add(key, _answer(index, ranker, question, k))
        answers[question.query.id] = journal.answers[key]
    run = {query: {id: score for id, score, _ in answer.hits} for query, answer in answers.items()}
    columns: dict[str, Any] = {"means": {}, "values": {}}
    for threshold in THRESHOLDS:
        qrels = {
            query: {id: int(similarity >= threshold) for id, _, similarity in answer.hits}
            for query, answer in answers.items()
        }
        for measure in measures(k):
            by_query = evaluate_run(qrels, run, measure)
            columns["means"][f"{measure} at {threshold}"] = mean(by_query)
            columns["values"][f"{measure} at {threshold}"] = list(by_query.values())
    milliseconds = [answer.milliseconds for answer in answers.values()]
    spent = costs(index, system, ranker, milliseconds, [each.query for each in questions])
    return Ranked(system.name, fit_seconds, **columns, **spent)


def judge(answer: str, code: str, language: str) -> float:
    """The share of an answer in Java that a function holds, 0..1; 0 in a language without a grammar.

    >>> judge("imm.toggleSoftInput(SHOW, 0);", "void show() { imm.toggleSoftInput(SHOW, 1); log(); }", "java")
    1.0
    """
    if not is_installed(language):
        return 0.0
    return similarity(cached_features(code, language), cached_features(answer, "java"))


def index_identity(index: Index) -> str:
    """A digest of the snapshot.json, unique to a build."""
    return hashlib.blake2b(index.description.to_json().encode(), digest_size=16).hexdigest()


def _answer(index: Index, ranker: Ranker, question: Question, k: int) -> Answer:
    start = time.perf_counter()
    rows = ranker.search(question.query.text, k, allowed=index.functions())
    documents = index.documents.documents([row for row, _ in rows])
    milliseconds = round(1000 * (time.perf_counter() - start), 3)
    hits = tuple(
        (document.id, float(score), judge(question.answer, document.code, document.language))
        for document, (_, score) in zip(documents, rows, strict=True)
    )
    return Answer(hits, milliseconds)


# The state file: judged questions as JSON lines, each whole before the next question is searched.


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits of one system for one question: (document id, score, similarity to the answer), best first."""

    hits: tuple[tuple[str, float, float], ...]
    milliseconds: float


class Journal:
    """Answers by a digest of all that they depend on, in a file too unless path is None.

    The first line identifies the file format. A torn last line is truncated and its question searched again; any other
    invalid line is an error.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.answers: dict[str, Answer] = {}
        self._file: BinaryIO | None = None

    def __enter__(self) -> Journal:
        if self.path:
            try:
                size = self._read(self.path) if self.path.exists() else 0
                self._file = append_file(self.path)
                self._file.truncate(size)
                if not size:
                    self._write(HEADER)
            except OSError as error:
                raise BadInput(f"cannot use {self.path} ({error.strerror}); name another state file") from None
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file:
            self._file.close()

    def add(self, key: str, answer: Answer) -> None:
        """Add an answer; it is in the file before this returns."""
        self.answers[key] = answer
        self._write(json.dumps({"key": key, **asdict(answer)}).encode() + b"\n")

    def remove(self) -> None:
        """Remove the file, after its contents are in a result."""
        if self.path:
            self.path.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        if self._file:
            self._file.write(line)
            self._file.flush()

    def _read(self, path: Path) -> int:
        """Read all complete lines; returns their size in bytes. BadInput for another kind of file."""
        data = path.read_bytes()
        if HEADER.startswith(data):
            return 0
        if not data.startswith(HEADER):
            raise BadInput(f"{path} is not a state file of this program; name another one")
        size = data.rindex(b"\n") + 1
        for number, line in enumerate(data[len(HEADER) : size].splitlines(), 2):
            key, answer = _parse(line, f"{path}:{number}")
            self.answers[key] = answer
        return size


def _parse(line: bytes, place: str) -> tuple[str, Answer]:
    try:
        row = json.loads(line)
        hits = tuple((str(id), float(score), float(similarity)) for id, score, similarity in row["hits"])
        return str(row["key"]), Answer(hits, float(row["milliseconds"]))
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{place} is not a line of a state file; remove the file to start again") from None


if __name__ == "__main__":
    sys.exit(main())
