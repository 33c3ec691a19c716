"""Questions inside one repository, answered by files: semble's benchmark, pinned repositories of six projects.

`evaluation/held_out` has 174 more about twelve other projects, written before any ranker was run, never tuned on, and
`evaluation/functions` questions that functions answer.

The rows name a repository, its revision, the folder `root` in it, a query, and what is relevant below that folder:
paths of files, each with the rank of its best function (`files_of_run`), or functions as `path::qualified_name`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from corpora.corpus import Corpus
from corpora.download import RemoteFile
from corpora.jsonl import Row, read_rows
from ncs.errors import BadInput, SourceError
from ncs.extract.readers import read as read_file
from ncs.extract.readers import readable
from ncs.sources import SourceFile, walk
from ncs.types import Document, Query, Run

ROWS = "eval_repo_search_dev.jsonl.gz"
OWN_ROWS = "questions.jsonl"
"""The file name of further rows of this form."""
REPOSITORIES = "repositories"
GITHUB = "https://github.com"
OF_FILE = "::"
"""Between the path and the qualified name of a relevant function."""
REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_LINE = re.compile(r":\d+[^/]*$")


@dataclass(frozen=True, slots=True)
class RepoTask:
    """The questions about one repository.

    corpus: functions below the root, and the queries; its qrels judge files by their paths below the root, or functions
    by path and name, so runs over documents go through `corpus.judged_run` first. Where more is relevant than the row
    lists, the qrels get placeholders, so that recall and nDCG divide by the true number.
    note: deviations from the pinned revision, "" for none.
    """

    corpus: Corpus
    repository: str
    revision: str
    root: str
    note: str


def read(data: Path, mirror: Path | None = None) -> list[RepoTask]:
    """One task per repository, in the order of the rows in `data`: OWN_ROWS where it exists, else ROWS.

    A repository lies in `mirror` (default: `data`/repositories, else ../.mirror beside the data) as `owner+name`, a git
    directory or a folder with one in `repo`, and is read at the pinned revision, else at HEAD, with a note; or as
    `owner+name.zip`, an archive of that revision. Repositories without a file in a language that is read have no
    documents, which their note says. Raises BadInput for invalid rows and missing repositories.
    """
    mirror = mirror or mirror_of(data)
    return [_task(repository, rows, mirror) for repository, rows in _by_repository(data).items()]


def mirror_of(data: Path) -> Path:
    """Where the repositories of the rows lie, unless one says otherwise."""
    own = data / REPOSITORIES
    return own if own.is_dir() else data.resolve().parents[1] / ".mirror"


def corpora(data: Path) -> list[Corpus]:
    """The corpora of all tasks that have documents."""
    tasks = [task.corpus for task in read(data) if next(iter(task.corpus.source()), None) is not None]
    if not tasks:
        raise BadInput(f"{_rows(data)}: none of the repositories holds a file in a language that is read")
    return tasks


def files_of_run(run: Run) -> Run:
    """A run over functions as a run over files: each file has the score of its best function.

    >>> files_of_run({"q": {"a.py:3": 2.0, "b.py:1": 1.5, "a.py:9.B": 1.0}})
    {'q': {'a.py': 2.0, 'b.py': 1.5}}
    """
    return _fold_run(run, lambda id: (_LINE.sub("", id),))


def functions_of_run(run: Run, names: Mapping[str, Sequence[str]]) -> Run:
    """A run over documents as a run over `path::qualified_name`, each with its best score.

    names: those of each document. Overloads share one; exact copies of a function, which an index folds, have several.

    >>> functions_of_run({"q": {"a.py:3": 2.0, "a.py:9": 1.5}}, {"a.py:3": ["a::f", "b::f"], "a.py:9": ["a::f"]})
    {'q': {'a::f': 2.0, 'b::f': 2.0}}
    """
    return _fold_run(run, names.__getitem__)


def _fold_run(run: Run, names_of: Callable[[str], Sequence[str]]) -> Run:
    """A run over documents as a run over what they are named, each name with its best score."""
    runs: dict[str, dict[str, float]] = {}
    for query, scores in run.items():
        best = runs.setdefault(query, {})
        for id, score in sorted(scores.items(), key=lambda pair: -pair[1]):
            for name in names_of(id):
                best.setdefault(name, score)
    return runs


def archives(data: Path, host: str = GITHUB) -> list[RemoteFile]:
    """The pinned revisions as archives to fetch into `data`/repositories."""
    return [
        RemoteFile(f"{host}/{repository}/archive/{rows[0].text('revision')}.zip", f"{_file(repository)}.zip")
        for repository, rows in _by_repository(data).items()
    ]


def _rows(data: Path) -> Path:
    return data / OWN_ROWS if (data / OWN_ROWS).is_file() else data / ROWS


def _by_repository(data: Path) -> dict[str, list[Row]]:
    by_repository: dict[str, list[Row]] = {}
    for row in read_rows(_rows(data)):
        repository = row.text("repo")
        if not REPOSITORY.fullmatch(repository):
            raise BadInput(f"{row.place}: {repository!r} is no owner/name; correct that line")
        rows = by_repository.setdefault(repository, [])
        rows.append(row)
        for key in ("revision", "root"):
            if row.text(key) != rows[0].text(key):
                raise BadInput(f"{row.place}: another {key} of {repository} than in {rows[0].place}; keep one")
    return by_repository


def _task(repository: str, rows: list[Row], mirror: Path) -> RepoTask:
    revision, root = rows[0].text("revision"), rows[0].text("root").strip("/")
    prefix = "" if root in (".", "") else f"{root}/"
    place, note = find_repository(repository, mirror), ""
    commit = revision if place.is_dir() else None
    if commit and not _has(place, revision):
        note, commit = f"{repository} has no revision {revision[:12]}; read at its HEAD. ", "HEAD"

    def source() -> Iterator[Document]:
        for file in walk([place], readable=readable, revision=commit):
            if file.path.startswith(prefix):
                yield from _documents(file, repository, prefix)

    if next(source(), None) is None:
        note += f"{repository} holds nothing in a language that is read"
    qrels = {row.text("id"): _qrels(row) for row in rows}
    queries = tuple(Query(row.text("id"), row.text("query")) for row in rows)
    functions = [name for row in rows for name in row.texts("relevant") if OF_FILE in name]
    fold = _functions_fold(functions, source, repository) if functions else files_of_run
    name = f"{'functions' if functions else 'repo_search'}-{repository.rpartition('/')[2]}"
    return RepoTask(Corpus(name, queries, qrels, source, fold), repository, revision, root, note.strip())


def _functions_fold(
    relevant: Iterable[str], source: Callable[[], Iterable[Document]], repository: str
) -> Callable[[Run], Run]:
    """`functions_of_run` for the functions of a repository, read when it is first needed.

    Raises BadInput for a relevant function that it does not have.
    """

    @cache
    def names() -> Mapping[str, Sequence[str]]:
        documents = [(each.id, each.digest, f"{each.path}{OF_FILE}{each.qualified_name}") for each in source()]
        copies: dict[bytes, list[str]] = defaultdict(list)
        for _, digest, name in documents:
            copies[digest].append(name)
        if missing := set(relevant) - {name for _, _, name in documents}:
            raise BadInput(f"{repository} has no function {min(missing)}; correct the question that it answers")
        return {id: copies[digest] for id, digest, _ in documents}

    return lambda run: functions_of_run(run, names())


def find_repository(repository: str, mirror: Path) -> Path:
    """The folder or archive of owner/name in a mirror; BadInput where there is none."""
    name = _file(repository)
    for place in (mirror / name / "repo", mirror / name, mirror / repository, mirror / f"{name}.zip"):
        if place.is_dir() or (place.suffix == ".zip" and place.is_file()):
            return place
    raise BadInput(f"there is no {mirror / name}; fetch it with: python -m corpora fetch repo_search DATA")


def _has(place: Path, revision: str) -> bool:
    try:
        next(walk([place], readable=lambda path: False, revision=revision), None)
    except SourceError:
        return False
    return True


def _documents(file: SourceFile, repository: str, prefix: str) -> Iterator[Document]:
    try:
        documents, _ = read_file(file.data, repository, file.path.removeprefix(prefix), outside=True)
    except SourceError:
        return
    for document in documents:
        yield replace(document, id=document.id.removeprefix(f"{repository}/"))


def _qrels(row: Row) -> dict[str, int]:
    paths = row.texts("relevant")
    count = row.number("relevant_count", len(set(paths)))
    if not paths or count < 1:
        raise BadInput(f"{row.place}: nothing is relevant; correct that line")
    missing = range(len(set(paths)), count)
    return {**dict.fromkeys(paths, 1), **{f"not listed {number + 1}": 1 for number in missing}}


def _file(repository: str) -> str:
    return repository.replace("/", "+")
