"""From repositories to a corpus in CodeSearchNet's shape (Husain et al. 2019, section 2).

OUT/<language>/final/jsonl/<partition>/*.jsonl.gz   pairs, as published
OUT/<language>/undocumented/*.jsonl.gz              the other functions, which a search finds too
OUT/repositories.jsonl.gz                           name, commit, license, partition and counts of every repository
OUT/statistics.json                                 written last; without it the same command resumes
OUT/.work/                                          intermediate files; removed when the corpus is complete
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import shutil
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from filelock import FileLock, Timeout

from corpora.codesearchnet.collect import ALL_FUNCTIONS, DONE, PARTITIONS, TWICE, Rules, collect
from corpora.codesearchnet.duplicates import EXACT, KEPT, ROW, Part, duplicates
from corpora.codesearchnet.filters import CONSTRUCTOR, FEW_TOKENS, METHOD, SHORT, TEST, UNDOCUMENTED
from corpora.codesearchnet.licenses import ALLOWED
from corpora.codesearchnet.repositories import Repository, find_repositories
from corpora.jsonl import write_rows
from ncs.errors import BadInput, NcsError
from ncs.extract import LANGUAGES
from ncs.progress import Track, silent

T = TypeVar("T")
WORK = ".work"
REPOSITORIES = "repositories.jsonl.gz"
AHEAD = 64
"""Tasks in flight."""
VERSION = 2
"""Version of the work files; others are not resumed."""
LINES = 30_000
"""Functions per file, as in the published corpus."""
EXACT_COPY, NEAR_COPY = "exact duplicate", "near duplicate"
FILE = "statistics.json"
ALL = "All"
REMOVED = (TEST, CONSTRUCTOR, METHOD, SHORT, TWICE, EXACT_COPY, NEAR_COPY)
"""Reasons to remove a function, in the order of the filters."""
NO_PAIR = (UNDOCUMENTED, FEW_TOKENS)
"""Reasons why a kept function is no pair, counted before duplicates are removed."""


def make_corpus(
    sources: Sequence[Path],
    out: Path,
    rules: Rules = Rules(licences=tuple(sorted(ALLOWED))),  # noqa: B008  (frozen)
    *,
    workers: int | None = None,
    track: Track = silent,
) -> dict[str, Any]:
    """Make the corpus of all repositories below the sources in the folder `out`; its statistics.

    The result is the same for any number of workers, and for a resumed run. Where `out` holds
    the finished corpus of the same sources and rules, nothing is done.
    Raises BadInput for an unknown language, an `out` that holds something else, and where no function is left.
    """
    unknown = [name for name in rules.languages if name not in LANGUAGES]
    if unknown:
        raise BadInput(f"there is no language {unknown[0]!r}; choose from {', '.join(LANGUAGES)}")
    repositories = find_repositories(sources)
    settings = _settings(repositories, rules)
    if (out / FILE).is_file():
        statistics = read_statistics(out)
        if statistics["settings"] != settings:
            raise BadInput(f"{out} holds a corpus of other repositories or rules; name another folder")
        return statistics
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
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(rules).items()}
    return {"version": VERSION, "repositories": state.hexdigest(), "rules": values}


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
    pending = [pair for pair in zip(repositories, folders, strict=True) if not (pair[1] / DONE).is_file()]
    collecting = ((collect, (repository, folder, rules)) for repository, folder in pending)
    for _ in track(_all(collecting, pool), "repositories", total=len(pending), unit="repositories"):
        pass
    collected = [json.loads((folder / DONE).read_bytes()) for folder in folders]
    languages = sorted({language for each in collected for language in each["counts"]})
    finished = _finish(languages, list(zip(folders, collected, strict=True)), out, work, pool, track)
    if not any(counts.get("pairs") or counts.get("undocumented") for counts in finished.values()):
        raise BadInput(_nothing(collected))
    write_rows(out / REPOSITORIES, collected)
    statistics_ = {"settings": dict(settings), **statistics(collected, finished, settings["rules"])}
    part = out / f"{FILE}.part"
    part.write_text(json.dumps(statistics_, indent=1) + "\n", encoding="utf-8")
    part.replace(out / FILE)
    shutil.rmtree(work)
    return statistics_


def _finish(
    languages: Sequence[str],
    collected: Sequence[tuple[Path, Mapping[str, Any]]],
    out: Path,
    work: Path,
    pool: ProcessPoolExecutor | None,
    track: Track,
) -> dict[str, dict[str, int]]:
    """Counts of every language, after finishing those that are not yet."""
    tasks = []
    for language in languages:
        parts = [(folder, each["partition"]) for folder, each in collected if (folder / f"{language}.rows").is_file()]
        if parts and not (work / f"{language}.json").is_file():
            tasks.append((finish_one, (language, parts, out, work)))
    for _ in track(_all(tasks, pool), "languages", total=len(tasks), unit="languages"):
        pass
    finished = {language: work / f"{language}.json" for language in languages}
    return {language: json.loads(path.read_bytes()) for language, path in finished.items() if path.is_file()}


def finish_one(language: str, parts: Sequence[tuple[Path, str]], out: Path, work: Path) -> None:
    """Finish a language, then write its counts."""
    counts = finish(language, parts, out, work / f"{language}.scratch")
    part = work / f"{language}.part"
    part.write_text(json.dumps(counts), encoding="utf-8")
    part.replace(work / f"{language}.json")


def _nothing(collected: Sequence[Mapping[str, Any]]) -> str:
    refused = sum(each["refused"] is not None for each in collected)
    if collected and refused == len(collected):
        return f"none of {len(collected):,} repositories has an allowed license; take them all with --any-license"
    return f"no function of {len(collected):,} repositories passes the filters; name a folder of repositories"


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    """Worker processes; None with one worker. Waits for running tasks at the end."""
    if workers == 1:
        yield None
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _quiet)
    try:
        yield pool
    except BrokenProcessPool:
        raise NcsError(
            "a process was killed, perhaps for memory; the same command resumes; --workers 1 needs less memory"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _all(tasks: Iterable[tuple[Callable[..., T], tuple[Any, ...]]], pool: ProcessPoolExecutor | None) -> Iterator[T]:
    """The results of tasks in order, with AHEAD in flight."""
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


def finish(language: str, parts: Sequence[tuple[Path, str]], out: Path, scratch: Path) -> dict[str, int]:
    """Write `out`/<language>, renamed into place at the end; returns counts of kept and removed functions.

    parts: folders of repositories in their order, each with its partition. Counts: kept, pairs, duplicates by kind,
    and of each the partition's (`pairs train`).
    """
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    folder, target = scratch / "out", out / language
    stems = [path / language for path, _ in parts]
    fates = duplicates([Part(stem.with_suffix(".rows"), stem.with_suffix(".names")) for stem in stems], scratch)
    counts: Counter[str] = Counter()
    at = 0
    with _Shards(folder, language) as shards:
        for stem, (_, partition) in zip(stems, parts, strict=True):
            pairs = np.fromfile(stem.with_suffix(".rows"), ROW)["documented"].tolist()
            with gzip.open(stem.with_suffix(".jsonl.gz"), "rb") as lines:
                for line, documented in zip(lines, pairs, strict=True):
                    fate = fates[at]
                    at += 1
                    if fate == KEPT:
                        shards.write(line, partition if documented else "")
                    name = _count_name(fate, documented)
                    counts.update((name, f"{name} {partition}"))
    if target.exists():
        shutil.rmtree(target)
    folder.replace(target)
    shutil.rmtree(scratch)
    return dict(sorted(counts.items()))


def _count_name(fate: int, documented: int) -> str:
    if fate != KEPT:
        return EXACT_COPY if fate == EXACT else NEAR_COPY
    return "pairs" if documented else "undocumented"


class _Shards:
    """Files of LINES functions each, numbered by partition, the same bytes for the same lines."""

    def __init__(self, folder: Path, language: str) -> None:
        self._folder, self._language = folder, language
        self._open: dict[str, _GzipFile] = {}
        self._written: Counter[str] = Counter()

    def __enter__(self) -> _Shards:
        self._folder.mkdir()
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._open.values():
            file.close()

    def write(self, line: bytes, partition: str) -> None:
        """Append a line to its partition's file ("": undocumented functions)."""
        number, place = divmod(self._written[partition], LINES)
        if place == 0:
            self._next(partition, number)
        self._written[partition] += 1
        self._open[partition].write(line)

    def _next(self, partition: str, number: int) -> None:
        if partition in self._open:
            self._open[partition].close()
        below = f"final/jsonl/{partition}" if partition else "undocumented"
        path = self._folder / below / f"{self._language}_{partition or 'undocumented'}_{number}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._open[partition] = _GzipFile(path)


class _GzipFile(gzip.GzipFile):
    """A gzip file without name and time in its header, which closes the file below it too."""

    def __init__(self, path: Path) -> None:
        self._raw = path.open("wb")
        super().__init__("", "wb", compresslevel=6, fileobj=self._raw, mtime=0)

    def close(self) -> None:
        super().close()
        self._raw.close()


def statistics(
    repositories: Sequence[Mapping[str, Any]], finished: Mapping[str, Mapping[str, int]], rules: Mapping[str, Any]
) -> dict[str, Any]:
    """All counts: of repositories, and by language of functions found, removed and kept.

    repositories: `collect.Collected` as dicts. finished: language -> counts of `finish`.
    """
    by_language: dict[str, Counter[str]] = {}
    for repository in repositories:
        for language, counts in repository["counts"].items():
            by_language.setdefault(language, Counter()).update(counts)
    languages = {
        language: _language(by_language[language], finished.get(language, {})) for language in sorted(by_language)
    }
    return {
        "rules": dict(rules),
        "repositories": _repositories(repositories),
        "languages": {**languages, ALL: _sum(languages.values())},
    }


def _language(collected: Mapping[str, int], finished: Mapping[str, int]) -> dict[str, Any]:
    counts = {**collected, **finished}
    pairs, without = finished.get("pairs", 0), finished.get("undocumented", 0)
    return {
        "functions found": collected[ALL_FUNCTIONS],
        "removed": {reason: counts.get(reason, 0) for reason in REMOVED},
        "all": pairs + without,
        "with documentation": pairs,
        "no pair": {reason: counts.get(reason, 0) for reason in NO_PAIR},
        "partitions": {
            name: {"pairs": finished.get(f"pairs {name}", 0), "all": _both(finished, name)} for name in PARTITIONS
        },
    }


def _both(finished: Mapping[str, int], partition: str) -> int:
    return sum(finished.get(f"{kind} {partition}", 0) for kind in ("pairs", "undocumented"))


def _sum(languages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of nested counts."""
    total: dict[str, Any] = {}
    for language in languages:
        for key, value in language.items():
            if isinstance(value, Mapping):
                total[key] = _sum([total.get(key, {}), value])
            else:
                total[key] = total.get(key, 0) + value
    return total


def _repositories(collected: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    skipped: Counter[str] = Counter()
    for repository in collected:
        skipped.update(repository["skipped"])
    kept = [repository for repository in collected if repository["refused"] is None and not repository["error"]]
    return {
        "found": len(collected),
        "read": len(kept),
        "left out": dict(sorted(Counter(each["refused"] for each in collected if each["refused"]).items())),
        "unreadable": sum(bool(each["error"]) for each in collected),
        "licences": dict(sorted(Counter(each["license"] or "none" for each in collected).items())),
        "partitions": {name: sum(each["partition"] == name for each in kept) for name in PARTITIONS},
        "files": sum(each["files"] for each in collected),
        "files with syntax errors": sum(each["broken"] for each in collected),
        "files that failed": sum(each["failed"] for each in collected),
        "files left out": dict(sorted(skipped.items())),
    }


def read_statistics(folder: Path) -> dict[str, Any]:
    """The statistics of a corpus; BadInput where there are none."""
    try:
        statistics_read: dict[str, Any] = json.loads((folder / FILE).read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        raise BadInput(
            f"{folder} has no valid {FILE}; make the corpus: ncs corpus codesearchnet SRC {folder}"
        ) from None
    return statistics_read


def table_1(corpus_statistics: Mapping[str, Any]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Rows and columns of the paper's Table 1, with the pairs of each partition."""
    columns = ("language", "w/ documentation", "all", *(f"pairs {name}" for name in PARTITIONS))
    rows = []
    for name, each in corpus_statistics["languages"].items():
        pairs = [each["partitions"][partition]["pairs"] for partition in PARTITIONS]
        rows.append((name, *(f"{n:,}" for n in (each["with documentation"], each["all"], *pairs))))
    return rows, columns


def table_removed(corpus_statistics: Mapping[str, Any]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """A column a language: functions found, a row for what each filter removed and for what makes the rest no pairs."""
    languages = corpus_statistics["languages"]
    rows = [("found", [each["functions found"] for each in languages.values()])]
    rows += [(reason, [each["removed"][reason] for each in languages.values()]) for reason in REMOVED]
    rows += [(f"no pair: {reason}", [each["no pair"][reason] for each in languages.values()]) for reason in NO_PAIR]
    return [(name, *(f"{n:,}" for n in numbers)) for name, numbers in rows], ("", *languages)
