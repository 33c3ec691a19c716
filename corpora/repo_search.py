"""Questions inside one repository, answered by files: semble's benchmark, pinned repositories of six projects.

`evaluation/held_out` has 174 more about twelve other projects, written before any ranker was run, never tuned on.

The rows name a repository, its revision, the folder `root` in it, a query, and the relevant files below that folder.
We search functions: a file has the rank of its best function (`files_of_run`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from corpora.corpus import Corpus
from corpora.download import RemoteFile
from corpora.jsonl import Row, read_rows
from ncs.errors import BadInput, SourceError
from ncs.extract.readers import read as read_file
from ncs.extract.readers import readable
from ncs.sources import SourceFile, walk
from ncs.types import Document, Qrels, Query, Run

ROWS = "eval_repo_search_dev.jsonl.gz"
OWN_ROWS = "questions.jsonl"
"""The file name of further rows of this form."""
REPOSITORIES = "repositories"
GITHUB = "https://github.com"
_LINE = re.compile(r":\d+[^/]*$")


@dataclass(frozen=True, slots=True)
class RepoTask:
    """The questions about one repository.

    corpus: functions below the root, and the queries; its qrels judge files, by their paths below the root, so
    runs over functions go through `corpus.judged_run` first.
    relevant: query -> number of relevant files. Where that exceeds the listed ones, the qrels get placeholder paths, so
    that recall and nDCG divide by the true number.
    note: deviations from the pinned revision, "" for none.
    """

    corpus: Corpus
    repository: str
    revision: str
    root: str
    relevant: Mapping[str, int]
    note: str

    @property
    def files(self) -> Qrels:
        """Judgments of files."""
        return self.corpus.qrels


def read(data: Path, mirror: Path | None = None) -> list[RepoTask]:
    """One task per repository, in the order of the rows in `data`: OWN_ROWS where it exists, else ROWS.

    A repository lies in `mirror` (default: `data`/repositories, else ../.mirror beside the data) as `owner+name`, a git
    directory or a folder with one in `repo`, and is read at the pinned revision, else at HEAD, with a note; or as
    `owner+name.zip`, an archive of that revision. Repositories without a file in a language that is read have no
    documents, which their note says. Raises BadInput for invalid rows and missing repositories.
    """
    rows = _by_repository(read_rows(_rows(data)))
    folder = mirror or _mirror(data)
    return [_task(repository, rows_of_repository, folder) for repository, rows_of_repository in rows.items()]


def corpora(data: Path) -> list[Corpus]:
    """The corpora of all tasks that have documents."""
    tasks = [task.corpus for task in read(data) if next(iter(task.corpus.source()), None) is not None]
    if not tasks:
        raise BadInput(f"{_rows(data)}: none of the repositories holds a file in a language that is read")
    return tasks


def files_of_run(run: Run, file_of: Callable[[str], str]) -> Run:
    """A run over functions as a run over files: each file has the score of its best function.

    >>> files_of_run({"q": {"a.py:3": 2.0, "b.py:1": 1.5, "a.py:9": 1.0}}, lambda id: id.split(":")[0])
    {'q': {'a.py': 2.0, 'b.py': 1.5}}
    """
    folded: dict[str, dict[str, float]] = {}
    for query, scores in run.items():
        files = folded.setdefault(query, {})
        for id, score in sorted(scores.items(), key=lambda pair: -pair[1]):
            files.setdefault(file_of(id), score)
    return folded


def file_of(id: str) -> str:
    """The file of a function's id.

    >>> file_of("src/core.py:12")
    'src/core.py'
    """
    return _LINE.sub("", id)


def archives(data: Path, host: str = GITHUB) -> list[RemoteFile]:
    """The pinned revisions as archives to fetch into `data`/repositories."""
    rows = _by_repository(read_rows(_rows(data)))
    return [
        RemoteFile(
            f"{host}/{repository}/archive/{rows_of_repository[0].text('revision')}.zip", f"{_file(repository)}.zip"
        )
        for repository, rows_of_repository in rows.items()
    ]


def _rows(data: Path) -> Path:
    return data / OWN_ROWS if (data / OWN_ROWS).is_file() else data / ROWS


def _by_repository(rows: Iterable[Row]) -> dict[str, list[Row]]:
    by_repository: dict[str, list[Row]] = {}
    for row in rows:
        repository = row.text("repo")
        if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", repository):
            raise BadInput(f"{row.place}: {repository!r} is no owner/name; correct that line")
        repository_rows = by_repository.setdefault(repository, [])
        repository_rows.append(row)
        for key in ("revision", "root"):
            if row.text(key) != repository_rows[0].text(key):
                raise BadInput(
                    f"{row.place}: another {key} of {repository} than in {repository_rows[0].place}; keep one"
                )
    return by_repository


def _task(repository: str, rows: list[Row], mirror: Path) -> RepoTask:
    revision, root = rows[0].text("revision"), rows[0].text("root").strip("/")
    prefix = "" if root in (".", "") else f"{root}/"
    place, pinned = _find_repository(repository, mirror)
    note = ""
    if pinned is not None and not _has(place, revision):
        note = f"{repository} has no revision {revision[:12]}; read at its HEAD. "
        pinned = "HEAD"
    commit = revision if pinned == "" else pinned

    def source() -> Iterator[Document]:
        for file in walk([place], wanted=readable, revision=commit):
            yield from _documents(file, repository, prefix)

    if next(source(), None) is None:
        note += f"{repository} holds nothing in a language that is read"
    relevant = {row.text("id"): _count(row) for row in rows}
    qrels = {row.text("id"): _qrels(row) for row in rows}
    queries = tuple(Query(row.text("id"), row.text("query")) for row in rows)
    corpus = Corpus(
        f"repo_search-{repository.rpartition('/')[2]}", queries, qrels, source, lambda run: files_of_run(run, file_of)
    )
    return RepoTask(corpus, repository, revision, root, relevant, note.strip())


def _find_repository(repository: str, mirror: Path) -> tuple[Path, str | None]:
    """The path of a repository, and "" for a git repository, None for an archive of one revision."""
    name = _file(repository)
    for place in (mirror / name / "repo", mirror / name):
        if place.is_dir():
            return place, ""
    if (archive := mirror / f"{name}.zip").is_file():
        return archive, None
    raise BadInput(f"there is no {mirror / name}; fetch it with: python -m corpora fetch repo_search DATA")


def _has(place: Path, revision: str) -> bool:
    try:
        next(walk([place], wanted=lambda path: False, revision=revision), None)
    except SourceError:
        return False
    return True


def _documents(file: SourceFile, repository: str, prefix: str) -> Iterator[Document]:
    if not file.path.startswith(prefix):
        return
    try:
        documents, _ = read_file(file.data, repository, file.path.removeprefix(prefix), outside=True)
    except SourceError:
        return
    for document in documents:
        yield replace(document, id=document.id.removeprefix(f"{repository}/"))


def _qrels(row: Row) -> dict[str, int]:
    paths = row.values.get("relevant")
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise BadInput(f"{row.place}: 'relevant' is no list of files; correct that line")
    missing = range(len(set(paths)), _count(row))
    return {**dict.fromkeys(paths, 1), **{f"not listed {number + 1}": 1 for number in missing}}


def _count(row: Row) -> int:
    count = row.values.get("relevant_count")
    if not isinstance(count, int) or count < 1:
        raise BadInput(f"{row.place}: 'relevant_count' is no number from 1; correct that line")
    return count


def _file(repository: str) -> str:
    return repository.replace("/", "+")


def _mirror(data: Path) -> Path:
    return data / REPOSITORIES if (data / REPOSITORIES).is_dir() else data.resolve().parents[1] / ".mirror"
