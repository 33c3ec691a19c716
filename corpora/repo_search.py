"""Questions inside one repository, answered by files: semble's benchmark, pinned repositories of six projects.

`evaluation/held_out` has 174 more of this form about twelve other projects, written by us from knowing these projects
before any ranker was asked, and never tuned on.

The rows name a repository, its revision, the folder `root` in it, a query, and the relevant files below that folder.
We search functions: a file stands where its best function does (`files_of_run`).
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
"""The name of rows of this form that somebody else wrote."""
REPOSITORIES = "repositories"
GITHUB = "https://github.com"
_LINE = re.compile(r":\d+[^/]*$")


@dataclass(frozen=True, slots=True)
class RepoTask:
    """The questions about one repository.

    corpus: functions below the root, and the queries; its qrels judge files, by their paths below the root, so
    runs over functions go through `corpus.judged_run` first.
    relevant: query -> how many files answer it. Where that is more than are listed, the qrels hold as many made-up
    paths as are missing, so that recall and nDCG divide by the true number; where less (one question), they do not.
    note: what is not as pinned, "" where all is.
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
    """One task a repository, in the order of the rows in `data`: those of OWN_ROWS where it has them, else of ROWS.

    A repository lies in `mirror` (default: `data`/repositories, else ../.mirror beside the data) as `owner+name`, a git
    directory or a folder with one in `repo`, and is read at the pinned revision, else at HEAD, with a note; or as
    `owner+name.zip`, an archive of that revision. Repositories without a file in a language that is read give no
    documents, and say so in their note. Raises BadInput for wrong rows and for a repository that is not there.
    """
    rows = _by_repository(read_rows(_rows(data)))
    folder = mirror or _mirror(data)
    return [_task(repository, listed, folder) for repository, listed in rows.items()]


def corpora(data: Path) -> list[Corpus]:
    """The corpora of all tasks that have documents."""
    tasks = [task.corpus for task in read(data) if next(iter(task.corpus.source()), None) is not None]
    if not tasks:
        raise BadInput(f"{_rows(data)}: none of the repositories holds a file in a language that is read")
    return tasks


def files_of_run(run: Run, file_of: Callable[[str], str]) -> Run:
    """A run over functions as one over files: each file where its best function stands, ties by that place.

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
        RemoteFile(f"{host}/{repository}/archive/{listed[0].text('revision')}.zip", f"{_file(repository)}.zip")
        for repository, listed in rows.items()
    ]


def _rows(data: Path) -> Path:
    return data / OWN_ROWS if (data / OWN_ROWS).is_file() else data / ROWS


def _by_repository(rows: Iterable[Row]) -> dict[str, list[Row]]:
    by_repository: dict[str, list[Row]] = {}
    for row in rows:
        repository = row.text("repo")
        if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", repository):
            raise BadInput(f"{row.place}: {repository!r} is no owner/name; correct that line")
        listed = by_repository.setdefault(repository, [])
        listed.append(row)
        for key in ("revision", "root"):
            if row.text(key) != listed[0].text(key):
                raise BadInput(f"{row.place}: another {key} of {repository} than in {listed[0].place}; keep one")
    return by_repository


def _task(repository: str, rows: list[Row], mirror: Path) -> RepoTask:
    revision, root = rows[0].text("revision"), rows[0].text("root").strip("/")
    prefix = "" if root in (".", "") else f"{root}/"
    place, pinned = _where(repository, mirror)
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


def _where(repository: str, mirror: Path) -> tuple[Path, str | None]:
    """Where a repository lies, and "" where it has revisions, None where it is an archive of one."""
    name = _file(repository)
    for place in (mirror / name / "repo", mirror / name):
        if place.is_dir():
            return place, ""
    if (archive := mirror / f"{name}.zip").is_file():
        return archive, None
    raise BadInput(f"there is no {mirror / name}; get it with: python -m corpora fetch repo_search DATA")


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
    listed = row.values.get("relevant")
    if not isinstance(listed, list) or not listed or not all(isinstance(path, str) for path in listed):
        raise BadInput(f"{row.place}: 'relevant' is no list of files; correct that line")
    missing = range(len(set(listed)), _count(row))
    return {**dict.fromkeys(listed, 1), **{f"not listed {number + 1}": 1 for number in missing}}


def _count(row: Row) -> int:
    count = row.values.get("relevant_count")
    if not isinstance(count, int) or count < 1:
        raise BadInput(f"{row.place}: 'relevant_count' is no number from 1; correct that line")
    return count


def _file(repository: str) -> str:
    return repository.replace("/", "+")


def _mirror(data: Path) -> Path:
    return data / REPOSITORIES if (data / REPOSITORIES).is_dir() else data.resolve().parents[1] / ".mirror"
