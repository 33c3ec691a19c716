"""From repositories to a corpus in CodeSearchNet's shape (Husain et al. 2019, section 2).

OUT/<language>/final/jsonl/<partition>/*.jsonl.gz   pairs, as published
OUT/<language>/undocumented/*.jsonl.gz              the other functions, which a search finds too
OUT/repositories.jsonl.gz                           name, commit, licence, partition and counts of every repository
OUT/statistics.json                                 written last: without it the same command goes on
OUT/.work/                                          what is done so far; gone when the corpus is complete
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from corpora.codesearchnet.candidates import DONE, collect
from corpora.codesearchnet.licences import ALLOWED
from corpora.codesearchnet.repositories import Repository, find_repositories
from corpora.codesearchnet.rules import Rules
from corpora.codesearchnet.shards import finish
from corpora.codesearchnet.statistics import FILE, read_statistics, statistics
from corpora.jsonl import write_rows
from ncs.errors import BadInput, NcsError
from ncs.extract import LANGUAGES
from ncs.progress import Track, silent

T = TypeVar("T")
WORK = ".work"
REPOSITORIES = "repositories.jsonl.gz"
AHEAD = 64
"""Repositories that wait for a process."""
VERSION = 1
"""Of the work files; those of another version are not gone on with."""


def make_corpus(
    sources: Sequence[Path],
    out: Path,
    rules: Rules = Rules(licences=tuple(sorted(ALLOWED))),  # noqa: B008  (frozen)
    *,
    workers: int | None = None,
    track: Track = silent,
) -> dict[str, Any]:
    """Make the corpus of all repositories below the sources in the folder `out`; its statistics.

    The result is the same for any number of workers, and for a run that was killed and begun again. Where `out` holds
    the finished corpus of the same sources and rules, nothing is done.
    Raises BadInput for an unknown language, an `out` that holds something else, and where no function is left.
    """
    unknown = [name for name in rules.languages if name not in LANGUAGES]
    if unknown:
        raise BadInput(f"there is no language {unknown[0]!r}; there are: {', '.join(LANGUAGES)}")
    repositories = find_repositories(sources)
    settings = _settings(repositories, rules)
    if (out / FILE).is_file():
        made = read_statistics(out)
        if made["settings"] != settings:
            raise BadInput(f"{out} holds a corpus of other repositories or rules; name another folder")
        return made
    work = out / WORK
    _open_work(out, work, settings)
    lock = FileLock(work / "lock")
    try:
        with lock.acquire(timeout=0), _pool(workers or os.cpu_count() or 1) as pool:
            return _make(repositories, out, work, rules, settings, pool, track)
    except Timeout:
        raise BadInput(f"another process is making the corpus in {out}; wait for it, or name another folder") from None


def _settings(repositories: Sequence[Repository], rules: Rules) -> dict[str, Any]:
    """What decides the content: the rules, and which repositories there are."""
    state = blake2b(digest_size=16)
    for repository in repositories:
        state.update(f"{repository.name}\n{repository.path}\n".encode("utf-8", "surrogateescape"))
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(rules).items()}
    return {"version": VERSION, "repositories": state.hexdigest(), "rules": told}


def _open_work(out: Path, work: Path, settings: Mapping[str, Any]) -> None:
    path = work / "settings.json"
    if not work.is_dir():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInput(f"{out} is there and is no corpus; name another folder")
        work.mkdir(parents=True)
    if not path.is_file():
        part = path.with_suffix(".part")
        part.write_text(json.dumps(settings), encoding="utf-8")
        part.replace(path)
    elif json.loads(path.read_bytes()) != settings:
        raise BadInput(f"{out} holds an unfinished corpus of other repositories or rules; name another folder")


def _make(
    repositories: Sequence[Repository],
    out: Path,
    work: Path,
    rules: Rules,
    settings: Mapping[str, Any],
    pool: ProcessPoolExecutor | None,
    track: Track,
) -> dict[str, Any]:
    folders = [work / f"{number:06}" for number in range(len(repositories))]
    waiting = [pair for pair in zip(repositories, folders, strict=True) if not (pair[1] / DONE).is_file()]
    collecting = ((collect, (repository, folder, rules)) for repository, folder in waiting)
    for _ in track(_all(collecting, pool), "repositories", total=len(waiting), unit="repositories"):
        pass
    found = [json.loads((folder / DONE).read_bytes()) for folder in folders]
    languages = sorted({language for each in found for language in each["counts"]})
    finished = _finish(languages, list(zip(folders, found, strict=True)), out, work, pool, track)
    if not any(counts.get("pairs") or counts.get("undocumented") for counts in finished.values()):
        raise BadInput(_nothing(found))
    write_rows(out / REPOSITORIES, found)
    made = {"settings": dict(settings), **statistics(found, finished, settings["rules"])}
    part = out / f"{FILE}.part"
    part.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    part.replace(out / FILE)
    shutil.rmtree(work)
    return made


def _finish(
    languages: Sequence[str],
    found: Sequence[tuple[Path, Mapping[str, Any]]],
    out: Path,
    work: Path,
    pool: ProcessPoolExecutor | None,
    track: Track,
) -> dict[str, dict[str, int]]:
    """Counts of every language, those that are not finished yet finished now."""
    waiting = []
    for language in languages:
        parts = [(folder, each["partition"]) for folder, each in found if (folder / f"{language}.rows").is_file()]
        if parts and not (work / f"{language}.json").is_file():
            waiting.append((finish_one, (language, parts, out, work)))
    for _ in track(_all(waiting, pool), "languages", total=len(waiting), unit="languages"):
        pass
    finished = {language: work / f"{language}.json" for language in languages}
    return {language: json.loads(path.read_bytes()) for language, path in finished.items() if path.is_file()}


def finish_one(language: str, parts: Sequence[tuple[Path, str]], out: Path, work: Path) -> None:
    """Finish a language and say so in a file, in this order."""
    counts = finish(language, parts, out, work / f"{language}.scratch")
    part = work / f"{language}.part"
    part.write_text(json.dumps(counts), encoding="utf-8")
    part.replace(work / f"{language}.json")


def _nothing(found: Sequence[Mapping[str, Any]]) -> str:
    refused = sum(each["refused"] is not None for each in found)
    if found and refused == len(found):
        return f"none of {len(found):,} repositories has an allowed licence; take them all with --any-licence"
    return f"no function of {len(found):,} repositories passes the filters; name a folder of repositories"


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    """Fresh processes, which take the place of none with one worker; those that still work are waited for."""
    if workers == 1:
        yield None
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _quiet)
    try:
        yield pool
    except BrokenProcessPool:
        raise NcsError(
            "a process was killed, perhaps for memory; the same command goes on, with --workers 1 in less memory"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _all(tasks: Iterable[tuple[Callable[..., T], tuple[Any, ...]]], pool: ProcessPoolExecutor | None) -> Iterator[T]:
    """The results of tasks, in their order; few are in flight."""
    if pool is None:
        yield from (function(*arguments) for function, arguments in tasks)
        return
    running: deque[Future[T]] = deque()
    for function, arguments in tasks:
        running.append(pool.submit(function, *arguments))
        if len(running) > AHEAD:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def _quiet() -> None:
    """Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
