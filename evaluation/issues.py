"""`bin/evaluate issues`: bug reports in, the files (and functions) to be edited out.

Each repository has one work tree and one index, brought from issue to issue, in the order of their commits, by update.
acc@k is strict: 1 where all right files are within the first k. `functions acc@k` is the same for functions, over the
issues where they are known, and mrr 1 / the rank of the first right file. Tokens are those of the answer that `ncs mcp`
gives an agent.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpora.corpus import digest
from corpora.issues import Issue, read_issues
from corpora.repo_search import OF_FILE
from evaluation import experiments, outputs, reports
from evaluation.experiments import BASELINE, RESULTS, Build, Experiment, Ranked, build_of, judge, query_times
from evaluation.machine import commit, machine
from evaluation.measures import evaluate, mean
from evaluation.work_trees import WorkTree, find_objects
from ncs.errors import BadInput, unknown
from ncs.exit_status import main_program
from ncs.index import Index
from ncs.search.question import MAX_QUERY
from ncs.search.rankers import DEFAULT_RANKER
from ncs.serve.mcp.pages import tokens
from ncs.serve.mcp.projects import Projects, Settings
from ncs.serve.mcp.tools import answer
from ncs.storage.filters import Filters
from ncs.types import Location, Query

DEPTH = 50
"""Files, and functions, that are ranked for a report."""
MEASURES = ("acc@5", "acc@1", "acc@3", "acc@10", "mrr")
"""Of files; the first is compared."""
FUNCTIONS = {f"functions {name}": name for name in ("acc@1", "acc@3", "acc@5", "acc@10")}
"""Of functions, and what they are called in evaluation.measures."""
CHECK_INTERVAL = 20
"""An updated index is compared with a whole build once per so many issues."""
OVERLAP_DEPTH = 10
"""First files of two rankings that `overlap` compares."""
MAX_EXAMPLES = 5
"""Documents in only one of two indexes that a result names."""
Say = Callable[[str], object]


class Answer(NamedTuple):
    """Files, best first; functions: ranks functions, of each hit its place and those of its copies; call: the MCP tool
    that answers so, and its arguments, where there is one."""

    files: Sequence[str]
    functions: Callable[[], Sequence[Sequence[Location]]]
    call: tuple[str, Mapping[str, str]] | None = None


Ranker = Callable[[Index, Issue], Answer]


def _search(index: Index, text: str, ranker: str) -> Answer:
    """Files in the order of their best document, and functions, as Index.search ranks them."""
    text = text[:MAX_QUERY]
    files = index.results(text, DEPTH, ranker=ranker, files=True).hits

    def functions() -> list[Sequence[Location]]:
        hits = index.results(text, DEPTH, ranker=ranker, filters=Filters(functions_only=True)).hits
        return [(hit.document.location, *hit.document.copies) for hit in hits]

    call = ("search_code", {"query": text}) if ranker == DEFAULT_RANKER else None
    return Answer([hit.document.path for hit in files], functions, call)


def _locate(index: Index, issue: Issue) -> Answer:
    """Files as Index.locate ranks them, and their functions by the scores of file and function together."""
    text = issue.text[:MAX_QUERY]
    found = index.locate(text, DEPTH)

    def functions() -> list[Sequence[Location]]:
        are_functions = index.functions()
        scores = {row: file.score + own for file in found for row, own in zip(file.rows, file.row_scores, strict=True)}
        rows = [row for row in sorted(scores, key=lambda row: -scores[row]) if are_functions[row]][:DEPTH]
        return [(document.location, *document.copies) for document in index.documents.documents(rows)]

    return Answer([file.path for file in found], functions, ("locate", {"report": text}))


RANKERS: Mapping[str, Ranker] = {
    "bm25": lambda index, issue: _search(index, issue.text, "bm25"),
    "hybrid": lambda index, issue: _search(index, issue.text, "hybrid"),
    "title": lambda index, issue: _search(index, issue.title, "hybrid"),
    "locate": _locate,
}
"""name -> what ranks; `title` is hybrid, asked with the first line alone. Another one is a row here."""


# What is right.


def right_functions(issue: Issue, index: Index) -> tuple[str, ...]:
    """The functions to be edited, `path::qualified_name`: those of the row, else the innermost ones around the edited
    lines; none where neither is known."""
    if issue.functions or issue.lines is None:
        return tuple(map(_plain, issue.functions))
    functions, found = index.functions(), dict[str, None]()
    repository = index.documents.files()[1][0][0]
    for path, lines in issue.lines.items():
        allowed = index.allowed(Filters(places=[(repository, path)]))
        rows = np.flatnonzero(functions if allowed is None else functions & allowed).tolist()
        places = [
            place
            for document in index.documents.documents(rows)
            for place in (document.location, *document.copies)
            if place.path == path
        ]
        for line in lines:
            if around := [place for place in places if place.start_line <= line <= place.end_line]:
                found[_name(min(around, key=lambda place: place.end_line - place.start_line))] = None
    return tuple(found)


def _name(location: Location) -> str:
    return _plain(f"{location.path}{OF_FILE}{location.qualified_name}")


def _plain(name: str) -> str:
    """LocBench calls a constructor by the name of its class."""
    return name.removesuffix(".__init__")


def _names(hits: Sequence[Sequence[Location]], right: Sequence[str]) -> list[str]:
    """The name of each hit: a right one where any of its places has it, so that copies take one rank."""
    names = [[_name(place) for place in places] for places in hits]
    return list(dict.fromkeys(next((name for name in each if name in right), each[0]) for each in names))


def _run(names: Sequence[str]) -> dict[str, float]:
    return {name: -float(rank) for rank, name in enumerate(names)}


# A repository.


class _Result(NamedTuple):
    """The answer of a ranker to an issue."""

    files: list[str]
    functions: list[str]
    milliseconds: float
    tokens: int | None


def _ask(ranker: Ranker, index: Index, issue: Issue, right: Sequence[str]) -> _Result:
    start = time.perf_counter()
    found = ranker(index, issue)
    milliseconds = (time.perf_counter() - start) * 1000
    functions = _names(found.functions(), right) if right else []
    read = None
    if found.call:
        with closing(Projects(Settings(indexes=(index.folder,)))) as projects:
            read = tokens(answer(projects, None, *found.call).text)
    return _Result(list(dict.fromkeys(found.files))[:DEPTH], functions, milliseconds, read)


def run_repository(
    name: str,
    issues: Sequence[Issue],
    objects: Path,
    folder: Path,
    rankers: Sequence[str],
    *,
    functions: bool,
    every: int,
    asked: Iterator[int],
    say: Say,
) -> Experiment:
    """Ask about every issue of one repository, in the order of their commits.

    objects: of its git directory. folder: where the work tree and the index will lie. every: once so many
    issues were asked (`asked` counts them), the next index that was updated is compared with a whole build; 0: never.
    functions: whether they are judged, too.
    Raises BadInput for a commit that is not there.
    """
    started_at = commit()
    tree = WorkTree(objects, folder / name.rpartition("-")[2])
    dates = {revision: tree.date(revision) for revision in dict.fromkeys(issue.revision for issue in issues)}
    issues = sorted(issues, key=lambda issue: (dates[issue.revision], issue.revision))  # sorted is stable
    answers: dict[str, list[_Result]] = {ranker: [] for ranker in rankers}
    right: dict[str, tuple[str, ...]] = {}
    update_seconds, compactions, checks = list[float](), 0, list[dict[str, Any]]()
    build: Build | None = None
    documents, revision, due = 0, "", False
    for issue in issues:
        start, seconds = time.perf_counter(), 0.0
        if issue.revision != revision:
            for line in tree.check_out(issue.revision):
                say(f"{issue.id}: {line}")
            start = time.perf_counter()
            if build is None:
                with Index.build(tree.folder, folder / "index") as index:
                    build, documents = build_of(index, "", []), len(index)
            else:
                with Index.update(folder / "index")[0] as index:
                    compactions += len(index.snapshot.segments) == 1
                update_seconds.append(round(time.perf_counter() - start, 3))
            seconds, revision = time.perf_counter() - start, issue.revision
        number = next(asked)
        due = due or (every > 0 and number % every == 0)
        with Index.load(folder / "index") as index:
            right[issue.id] = right_functions(issue, index)
            for ranker in rankers:
                RANKERS[ranker](index, issue)  # opens the files of the index
                answers[ranker].append(_ask(RANKERS[ranker], index, issue, right[issue.id]))
            latest = {ranker: answers[ranker][-1] for ranker in rankers}
            say(f"{issue.id}: {seconds:.1f} s, {', '.join(f'{r} {_ranks(issue, a)}' for r, a in latest.items())}")
            if due and update_seconds:
                checks.append(_check(issue, tree, index, latest, say))
                due = False
    assert build is not None
    queries = [Query(issue.id, issue.text) for issue in issues]
    qrels = {issue.id: dict.fromkeys(issue.files, 1) for issue in issues}
    return Experiment(
        corpus=name,
        corpus_digest=digest(
            [], queries, {**qrels, **{f"{id} functions": dict.fromkeys(n, 1) for id, n in right.items()}}
        ),
        documents=documents,
        commit=started_at,
        machine=machine(),
        depth=DEPTH,
        measures=[*MEASURES, *(FUNCTIONS if functions else ())],
        queries=[issue.id for issue in issues],
        builds=[
            replace(
                build,
                updates={"seconds": update_seconds, "compactions": [compactions], "checks": checks},
                systems=[_ranked(each, issues, right, answers[each], functions=functions) for each in rankers],
            )
        ],
        texts=[issue.title for issue in issues],
    )


def _ranks(issue: Issue, asked: _Result) -> list[int]:
    """The rank of each right file, from 1; 0: not ranked."""
    places = {path: rank for rank, path in enumerate(asked.files, 1)}
    return [places.get(path, 0) for path in issue.files]


def _check(issue: Issue, tree: WorkTree, index: Index, latest: Mapping[str, _Result], say: Say) -> dict[str, Any]:
    """The updated index, and what its rankings were for an issue, against a whole build of the same tree."""
    with (
        tempfile.TemporaryDirectory(prefix="ncs-issues-") as folder,
        Index.build(tree.folder, Path(folder) / "index") as built,
    ):
        found = _differences(index, built)
        rankings = {}
        for ranker, updated in latest.items():
            whole = _ask(RANKERS[ranker], built, issue, ())
            rankings[ranker] = {
                "overlap": overlap(updated.files, whole.files),
                "updated": _accuracies(issue, updated),
                "built": _accuracies(issue, whole),
            }
    say(f"{issue.id}: {found['missing']} documents missing and {found['extra']} extra after updates")
    return {"issue": issue.id, "segments": len(index.snapshot.segments), **found, "rankings": rankings}


def _differences(updated: Index, built: Index) -> dict[str, Any]:
    """How many documents the built index holds, how many of them the updated one does not (missing), and how many it
    holds beyond them (extra), with the first of each; copies count as documents."""
    ours, whole = _places(updated), _places(built)
    missing, extra = sorted(whole - ours), sorted(ours - whole)
    return {
        "documents": len(whole), "missing": len(missing), "extra": len(extra),
        "examples": [*missing[:MAX_EXAMPLES], *extra[:MAX_EXAMPLES]],
    }  # fmt: skip


def _places(index: Index) -> set[str]:
    return {
        f"{each.path}:{each.start_line}-{each.end_line} {each.qualified_name}"
        for document in experiments.all_documents(index)
        for each in (document.location, *document.copies)
    }


def overlap(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """The share of the first ten files of one ranking that are among the first ten of another.

    >>> overlap(["a", "b"], ["b", "c"])
    0.5
    """
    first = set(theirs[:OVERLAP_DEPTH])
    return len(first & set(ours[:OVERLAP_DEPTH])) / len(first) if first else 1.0


def _accuracies(issue: Issue, asked: _Result) -> dict[str, float]:
    qrels, run = {issue.id: dict.fromkeys(issue.files, 1)}, {issue.id: _run(asked.files)}
    return {name: evaluate(qrels, run, name)[issue.id] for name in MEASURES}


def _ranked(
    ranker: str,
    issues: Sequence[Issue],
    right: Mapping[str, Sequence[str]],
    answers: Sequence[_Result],
    *,
    functions: bool,
) -> Ranked:
    """A row of the table."""
    of_issue = {issue.id: each for issue, each in zip(issues, answers, strict=True)}
    qrels = {issue.id: dict.fromkeys(issue.files, 1) for issue in issues}
    files = judge(qrels, {id: _run(each.files) for id, each in of_issue.items()}, MEASURES)
    known = {id: dict.fromkeys(names, 1) for id, names in right.items() if names}
    means, values = files["means"], files["values"]
    for label, name in FUNCTIONS.items() if functions else ():
        found = evaluate(known, {id: _run(of_issue[id].functions) for id in known}, name) if known else {}
        means[label] = round(mean(found), 6)
        values[label] = [found.get(issue.id) for issue in issues]
    ranks = [_ranks(issue, each) for issue, each in zip(issues, answers, strict=True)]
    times = query_times([each.milliseconds for each in answers])
    read = [each.tokens for each in answers if each.tokens is not None]
    return Ranked(ranker, None, **times, means=means, values=values, ranks=ranks, tokens=read)


# All of them.


def run_issues(
    name: str,
    issues: Sequence[Issue],
    mirror: Path,
    rankers: Sequence[str],
    *,
    limit: int | None = None,
    every: int = CHECK_INTERVAL,
    work: Path | None = None,
    say: Say = lambda line: None,
) -> Iterator[Experiment]:
    """An experiment for each repository, in the order of the issues; bm25 is always one of the rankers.

    limit: issues of each repository. work: a new folder that keeps work trees and indexes.
    Raises BadInput, before anything is built, for repositories that the mirror does not have.
    """
    by_repository: dict[str, list[Issue]] = {}
    for issue in issues:
        by_repository.setdefault(issue.repository, []).append(issue)
    objects = {repository: find_objects(repository, mirror) for repository in by_repository}
    functions = any(issue.functions or issue.lines is not None for issue in issues)
    systems, asked = list(dict.fromkeys([BASELINE, *rankers])), count(1)
    for repository, own in by_repository.items():
        kept = nullcontext(str(work / repository.replace("/", "+"))) if work else None
        with kept or tempfile.TemporaryDirectory(prefix="ncs-issues-") as folder:
            label = f"{name}-{repository.rpartition('/')[2]}"
            yield run_repository(
                label,
                own[:limit],
                objects[repository],
                Path(folder),
                systems,
                functions=functions,
                every=every,
                asked=asked,
                say=say,
            )


@main_program("evaluate")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, with one line on stderr."""
    options = _parser().parse_args(arguments)
    files = outputs.output_files(options)
    for ranker in options.ranker or ():
        if ranker not in RANKERS:
            raise unknown("ranker", ranker, RANKERS)
    for option, value, least in (("--limit", options.limit, 1), ("--check", options.check, 0)):
        if value is not None and value < least:
            raise BadInput(f"{option} is {value}; it must be at least {least}")
    if options.work and options.work.exists():
        raise BadInput(f"--work {options.work} exists; name a new folder")
    outputs.check_outputs(files)
    name = options.data.name.partition(".")[0].removeprefix("eval_")
    path = options.json or RESULTS / f"{name}.json"
    say: Say = (lambda line: None) if options.quiet else (lambda line: sys.stderr.write(f"{line}\n"))
    results = []
    for each in run_issues(
        name, read_issues(options.data), options.repositories, options.ranker or list(RANKERS),
        limit=options.limit, every=options.check, work=options.work, say=say,
    ):  # fmt: skip
        experiments.write(each, path.with_suffix("") / f"{each.corpus}.json")
        sys.stdout.write(f"\n{reports.section(each.corpus, each)}")
        results.append(each)
    whole = experiments.pooled(name, results)
    experiments.write(whole, path)
    outputs.write_outputs([whole], {**files, "json": None}, pair=options.pair)
    sys.stdout.write(f"\n{reports.section(name, whole)}\nwritten: {path}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bin/evaluate issues", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="issues as JSON lines, gzip too: ours, of SWE-bench or of LocBench")
    parser.add_argument(
        "--repositories", type=Path, required=True, metavar="MIRROR",
        help="folder of git directories: owner+name/repo, owner+name or owner/name, bare or not",
    )  # fmt: skip
    parser.add_argument(
        "--ranker", action="append", metavar="R", help=f"one of {', '.join(RANKERS)}; default: all; repeatable"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N issues of each repository")
    parser.add_argument(
        "--check", type=int, default=CHECK_INTERVAL, metavar="N",
        help="compare the updated index with a whole build every N issues; 0: never (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="a new folder that keeps work trees and indexes")
    outputs.add_options(parser, ("json", "csv", "markdown", "html"))
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser
