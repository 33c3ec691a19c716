"""`bin/evaluate-stackoverflow`: questions with answer snippets over one or several indexes, hits judged by similarity.

    bin/evaluate-stackoverflow QUESTIONS.json INDEX... [--ranker R]... [--json FILE] [--csv FILE] [--sheet FILE]

QUESTIONS.json is in the shape of Facebook's Neural Code Search Evaluation Dataset: a list of objects with
stackoverflow_id, question and answer. A hit answers where it holds at least a share of the answer's features
(evaluation.judges.aroma): .25 is the paper's threshold, .6 the strict one.

Every judged question is appended to a state file beside the first output, so that a run that was stopped can be
resumed by the same command; the state is removed when the outputs are written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from corpora.corpus import first_repeated
from corpora.ncs287 import Question, read_questions
from evaluation import machine, reports
from evaluation.experiments import BASELINE, Answers, Build, Experiment, Ranked, System, costs, fitted
from evaluation.judges.aroma import PAPER_THRESHOLD, STRICT_THRESHOLD, VERSION, judge
from evaluation.measures import evaluate as evaluate_run
from ncs.console import say, tracker
from ncs.errors import BadInput
from ncs.exit_status import main_program
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.search.rankers import RANKERS, Ranker, read_ranker
from ncs.types import Qrels, Run

THRESHOLDS = (STRICT_THRESHOLD, PAPER_THRESHOLD)
HEADER = b'{"file": "judged answers of ncs", "version": 1}\n'


@dataclass(frozen=True, slots=True)
class Request:
    """Questions, indexes and rankers (names with settings; none: all that each index has). `bm25` is always one.

    files: reports.OUTPUTS -> where to write it. pair: for the page. state: None: beside the first output, if any.
    """

    questions: Path
    indexes: Sequence[Path]
    rankers: Sequence[str] = ()
    k: int = 10
    files: Mapping[str, Path | None] = field(default_factory=dict)
    pair: reports.Pair | None = None
    state: Path | None = None
    quiet: bool = False


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
    reports.add_options(parser)
    parser.add_argument("--state", type=Path, help="file to resume from (default: beside the first output)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    request = Request(
        options.questions, options.index, options.ranker or (), options.k, reports.output_files(options),
        options.pair and tuple(options.pair), options.state, options.quiet,
    )  # fmt: skip
    sys.stdout.write(format_result(evaluate(request)))
    return 0


def format_result(experiment: Experiment) -> str:
    """The result for people: the table and what it was measured on."""
    return f"{reports.table(experiment)}\n\n{reports.caption(experiment)}\n"


def evaluate(request: Request) -> Experiment:
    """Ask, judge, write the outputs; raises NcsError before anything is asked where it can."""
    if request.k < 1:
        raise BadInput(f"-k is {request.k}; it must be at least 1")
    labels = _labels(request.indexes)
    reports.check_outputs(request.files)
    questions = read_questions(request.questions)
    systems = [System(*read_ranker(text)) for text in request.rankers]
    first = next((path for path in request.files.values() if path), None)
    state = request.state or (first.with_name(f"{first.name}.state.jsonl") if first else None)
    with ExitStack() as stack:
        indexes = [stack.enter_context(Index.load(path)) for path in request.indexes]
        journal = stack.enter_context(Journal(state))
        if len(journal):
            say(f"resuming: {len(journal):,} {'answer is' if len(journal) == 1 else 'answers are'} in {state}")
        builds = [
            _build(index, label if len(labels) > 1 else "", questions, systems, request, journal)
            for index, label in zip(indexes, labels, strict=True)
        ]
        experiment = _experiment(request, questions, indexes, builds)
        if reports.write_outputs([experiment], request.files, pair=request.pair):
            journal.remove()
    return experiment


def _labels(indexes: Sequence[Path]) -> list[str]:
    labels = [path.name or str(path) for path in indexes]
    if first_repeated(labels) is not None:
        labels = [str(path) for path in indexes]
    if (twice := first_repeated(labels)) is not None:
        raise BadInput(f"the index {twice} is named twice; name it once")
    return labels


def _systems(index: Index, requested: Sequence[System]) -> Iterator[System]:
    """bm25, then those requested, else all that this index has; each once."""
    rest = requested or [System(name) for name in RANKERS if index.has_ranker(name)]
    yield from {system.name: system for system in [System(BASELINE), *rest]}.values()


def _build(
    index: Index, label: str, questions: Sequence[Question], systems: Sequence[System], request: Request,
    journal: Journal,
) -> Build:  # fmt: skip
    counts: Mapping[str, Any] = index.description.counts
    track = tracker(request.quiet)
    results = []
    for system in _systems(index, systems):
        stage = f"{label} {system.name}".strip()
        judged_system = judge_system(index, system, questions, k=request.k, journal=journal, track=track, stage=stage)
        results.append(_system_result(index, judged_system, questions, request.k))
    return Build(
        settings=label,
        config=index.description.config,
        versions=index.description.versions,
        seconds=counts["seconds"],
        build_seconds=round(sum(counts["seconds"].values()), 2),
        index_bytes=sum(path.stat().st_size for path in index.folder.rglob("*") if path.is_file()),
        peak_memory_bytes=counts.get("peak_memory_bytes", 0),
        systems=results,
        documents=len(index),
    )


def _experiment(
    request: Request, questions: Sequence[Question], indexes: Sequence[Index], builds: Sequence[Build]
) -> Experiment:
    """The judged rankings in the shape of every other experiment; measures are named with their threshold."""
    return Experiment(
        corpus=request.questions.stem,
        corpus_digest=_digest(indexes),
        documents=len(indexes[0]),
        commit=machine.commit(),
        machine=machine.machine(),
        depth=request.k,
        measures=[f"{measure} at {threshold}" for threshold in THRESHOLDS for measure in measures(request.k)],
        queries=[question.query.id for question in questions],
        builds=builds,
        texts=[question.query.text for question in questions],
    )


def measures(k: int) -> list[str]:
    """What is computed of k judged hits.

    >>> measures(7)
    ['mrr@7', 'answered@1', 'answered@5']
    """
    return [f"mrr@{k}", *(f"answered@{depth}" for depth in (1, 5, 10) if depth <= k)]


def _digest(indexes: Sequence[Index]) -> str:
    """Of the ids of all documents."""
    state = hashlib.sha256()
    for index in indexes:
        rows = index.documents.rows().tolist()
        for start in range(0, len(rows), 10_000):
            ids = index.documents.ids(rows[start : start + 10_000])
            state.update("\n".join(ids).encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def _system_result(index: Index, judged: Judged, questions: Sequence[Question], k: int) -> Ranked:
    values: dict[str, list[float | None]] = {
        f"{measure} at {threshold}": list(judged.values(measure, threshold).values())
        for threshold in THRESHOLDS
        for measure in measures(k)
    }
    means = {measure: statistics.fmean(value or 0.0 for value in column) for measure, column in values.items()}
    spent = costs(index, judged.system, judged.answers, [question.query for question in questions])
    return Ranked(judged.system.name, means=means, values=values, **spent)


# Judging one system.


@dataclass(frozen=True, slots=True)
class Judged:
    """One system's hits for all questions. similarities: query id -> document id -> similarity to the answer."""

    system: System
    answers: Answers
    similarities: Mapping[str, Mapping[str, float]]

    def qrels(self, threshold: float) -> Qrels:
        """The judge's decisions as qrels over the hits; a question none of whose hits passes stays judged."""
        return {
            query: {document: int(value >= threshold) for document, value in values.items()}
            for query, values in self.similarities.items()
        }

    def values(self, measure: str, threshold: float) -> dict[str, float]:
        """query id -> value of a measure."""
        return evaluate_run(self.qrels(threshold), self.answers.run, measure)


def judge_system(
    index: Index,
    system: System,
    questions: Sequence[Question],
    *,
    k: int = 10,
    journal: Journal | None = None,
    track: Track = silent,
    stage: str = "",
) -> Judged:
    """Ask every question, judge the first k hits; what the journal holds is not asked again.

    Raises BadInput for an index without code, in which nothing can be judged.
    """
    if not index.description.config.get("store_code", True):
        raise BadInput(f"{index.folder} holds no code to judge; build it without --no-store-code")
    journal = Journal(None) if journal is None else journal
    ranker, fit_seconds = fitted(index, system)
    ranker.search(questions[0].query.text, 1)  # open the files before the clock runs
    identity = index_identity(index)
    answers: dict[str, Answer] = {}
    for question in track(questions, stage or f"judging {system.name}", total=len(questions), unit="questions"):
        key = _key(identity, system, question, k)
        if (answer := journal.get(key)) is None:
            answer = _answer(index, ranker, question, k)
            journal.add(key, answer)
        answers[question.query.id] = answer
    run: Run = {query: {id: score for id, score, _ in answer.hits} for query, answer in answers.items()}
    similarities = {query: {id: similar for id, _, similar in answer.hits} for query, answer in answers.items()}
    milliseconds = [answer.milliseconds for answer in answers.values()]
    return Judged(system, Answers(ranker, fit_seconds, run, milliseconds), similarities)


def index_identity(index: Index) -> str:
    """A digest of the snapshot.json, unique to a build."""
    return hashlib.blake2b(index.description.to_json().encode(), digest_size=16).hexdigest()


def _key(identity: str, system: System, question: Question, k: int) -> Key:
    text = f"{VERSION}\0{question.query.text}\0{question.answer}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).hexdigest()
    return Key(identity, system.name, question.query.id, digest, k)


def _answer(index: Index, ranker: Ranker, question: Question, k: int) -> Answer:
    start = time.perf_counter()
    rows = ranker.search(question.query.text, k, allowed=index.functions())
    documents = index.documents.documents([row for row, _ in rows])
    milliseconds = round(1000 * (time.perf_counter() - start), 3)
    similarity = judge(question.answer)
    hits = tuple(
        (document.id, float(score), similarity(document.code, document.language))
        for document, (_, score) in zip(documents, rows, strict=True)
    )
    return Answer(hits, milliseconds)


# The state file: judged questions as JSON lines, each whole before the next question is asked.


@dataclass(frozen=True, slots=True)
class Key:
    """What decides a judged answer: index (`index_identity`), system, question with its digest, and depth."""

    index: str
    system: str
    question: str
    digest: str
    k: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits of one system for one question: (document id, score, similarity to the answer), best first."""

    hits: tuple[tuple[str, float, float], ...]
    milliseconds: float


class Journal:
    """Answers by key, kept in a file; in memory only where path is None.

    The first line identifies the file format. A torn last line is truncated and its question asked again; any other
    invalid line is an error.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._answers: dict[Key, Answer] = {}
        self._file: BinaryIO | None = None

    def __enter__(self) -> Journal:
        if self.path:
            try:
                size = self._read(self.path) if self.path.exists() else 0
                self._file = self.path.open("ab")
                self._file.truncate(size)
                if not size:
                    self._write(HEADER)
            except OSError as error:
                raise BadInput(f"cannot use {self.path} ({error.strerror}); name another state file") from None
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: Key) -> Answer | None:
        """The answer that is known already."""
        return self._answers.get(key)

    def add(self, key: Key, answer: Answer) -> None:
        """Keep an answer; it is in the file before this returns."""
        self._answers[key] = answer
        self._write(json.dumps({**asdict(key), **asdict(answer)}).encode() + b"\n")

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
            self._answers[key] = answer
        return size


def _parse(line: bytes, place: str) -> tuple[Key, Answer]:
    try:
        values = json.loads(line)
        index, system, question, digest = (str(values[name]) for name in ("index", "system", "question", "digest"))
        key = Key(index, system, question, digest, int(values["k"]))
        hits = tuple((str(id), float(score), float(similarity)) for id, score, similarity in values["hits"])
        return key, Answer(hits, float(values["milliseconds"]))
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{place} is not a line of a state file; remove the file to start again") from None


if __name__ == "__main__":
    sys.exit(main())
