"""Makes a corpus in CodeSearchNet's shape from repositories (Husain et al. 2019, section 2).

OUT/<language>/final/jsonl/<partition>/*.jsonl.gz   pairs, as published
OUT/<language>/undocumented/*.jsonl.gz              the other functions, which a search finds too
OUT/repositories.jsonl.gz                           name, commit, license, partition and counts of every repository
OUT/statistics.json                                 written last; without it the same command resumes
OUT/.work/                                          functions of each repository; removed when the corpus is complete
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import shutil
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

from corpora.codesearchnet.duplicates import EXACT, KEPT, duplicates, identifiers
from corpora.codesearchnet.filters import (
    CONSTRUCTOR,
    FEW_TOKENS,
    METHOD,
    MIN_LINES,
    MIN_TOKENS,
    SHORT,
    TEST,
    UNDOCUMENTED,
    comment_above,
    documentation_tokens,
    first_paragraph,
    read_code,
    reason_to_drop,
)
from corpora.codesearchnet.functions import CodeFunction
from corpora.codesearchnet.licenses import ALLOWED, UNKNOWN, permits
from corpora.codesearchnet.repositories import (
    Repository,
    commit_of,
    find_license,
    find_repositories,
    read_files,
    url_of,
)
from corpora.jsonl import json_line, open_gzip, write_rows
from corpora.pairs import choose_by_hash
from ncs.console import show_table
from ncs.errors import BadInput, NcsError, SourceError
from ncs.extract import LANGUAGES, readers
from ncs.extract.languages import is_installed, language_of
from ncs.extract.source_bytes import as_utf8
from ncs.files import replace_file
from ncs.progress import Track, silent
from ncs.sources import Skipped, SourceFile
from ncs.types import Document

WORK, DONE = ".work", "repository.json"
REPOSITORIES, FILE = "repositories.jsonl.gz", "statistics.json"
VERSION = 3
"""Version of the work files; others are not resumed."""
LINES = 30_000
"""Functions per file, as in the published corpus."""
ALL, ALL_FUNCTIONS = "All", "functions"
TWICE, EXACT_COPY, NEAR_COPY = "on the lines of another", "exact duplicate", "near duplicate"
REMOVED = (TEST, CONSTRUCTOR, METHOD, SHORT, TWICE, EXACT_COPY, NEAR_COPY)
"""Reasons to remove a function, in the order of the filters."""
NO_PAIR = (UNDOCUMENTED, FEW_TOKENS)
"""Reasons why a kept function is no pair, counted before duplicates are removed."""
NO_LICENSE, UNKNOWN_LICENSE, NOT_ALLOWED = "no licence file", "licence not recognised", "licence not allowed"
"""Reasons as statistics.json has them."""
SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}
"""Husain et al. 2019, section 2: 80-10-10; all functions of a repository are in one partition."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a corpus. languages: empty for all; licenses: SPDX ids."""

    languages: tuple[str, ...] = ()
    licenses: tuple[str, ...] = tuple(sorted(ALLOWED))
    any_license: bool = False
    seed: int = 0

    def refusal(self, expression: str) -> str | None:
        """Why a repository under this license is left out."""
        if self.any_license or permits(expression, frozenset(self.licenses)):
            return None
        return {"": NO_LICENSE, UNKNOWN: UNKNOWN_LICENSE}.get(expression, NOT_ALLOWED)

    def accepts(self, path: str) -> bool:
        """Whether a file is read, by its path."""
        language = language_of(path)
        return language is not None and (not self.languages or language in self.languages) and is_installed(language)

    def to_json(self) -> dict[str, Any]:
        """The rules by the names that they have in files."""
        return {
            "languages": self.languages,
            "licences": self.licenses,
            "any_licence": self.any_license,
            "seed": self.seed,
        }


def partition_of(repository: str, seed: int = 0) -> str:
    """train, valid or test, by a hash of the seed and the name in lower case (hosts do not tell cases apart).

    >>> partition_of("owner/a"), partition_of("owner/b"), partition_of("Owner/B"), partition_of("owner/b", seed=2)
    ('train', 'valid', 'valid', 'test')
    """
    return choose_by_hash(f"{seed}:{repository.lower()}", SHARES)


def make_corpus(
    sources: Sequence[Path], out: Path, rules: Rules, *, workers: int | None = None, track: Track = silent
) -> dict[str, Any]:
    """Make the corpus of all repositories below the sources in the folder `out`; its statistics.

    The result is the same for any number of workers, and for a resumed run. Where `out` holds
    the finished corpus of the same sources and rules, nothing is done.
    Raises BadInput for an unknown language, an `out` that holds something else, and where no function is left.
    """
    if unknown := [name for name in rules.languages if name not in LANGUAGES]:
        raise BadInput(f"there is no language {unknown[0]!r}; choose from {', '.join(LANGUAGES)}")
    repositories = find_repositories(sources)
    settings = _settings(repositories, rules)
    if (out / FILE).is_file():
        finished: dict[str, Any] = json.loads((out / FILE).read_bytes())
        if finished["settings"] != settings:
            raise BadInput(f"{out} holds a corpus of other repositories or rules; name another folder")
        return finished
    work = out / WORK
    _open_work(out, work, settings)
    try:
        with FileLock(work / "lock", timeout=0), _pool(workers or os.cpu_count() or 1) as run:
            corpus = {"settings": settings, "rules": settings["rules"], **_make(repositories, out, rules, run, track)}
            _write_json(out / FILE, corpus)
        shutil.rmtree(work)  # which on Windows nobody may while its lock is held
    except BadInput:
        shutil.rmtree(work)  # nothing to resume: of other sources, perhaps named by mistake, OUT may be made
        raise
    except Timeout:
        raise BadInput(f"another process is making the corpus in {out}; wait for it, or name another folder") from None
    return corpus


def _settings(repositories: Sequence[Repository], rules: Rules) -> dict[str, Any]:
    """The settings that decide the content: the rules and a digest of the repositories."""
    state = blake2b(digest_size=16)
    for repository in repositories:
        state.update(f"{repository.name}\n{repository.path}\n".encode("utf-8", "surrogateescape"))
    settings = {"version": VERSION, "repositories": state.hexdigest(), "rules": rules.to_json()}
    as_read: dict[str, Any] = json.loads(json.dumps(settings))
    return as_read


def _open_work(out: Path, work: Path, settings: Mapping[str, Any]) -> None:
    path = work / "settings.json"
    if not work.is_dir():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInput(f"{out} is there and is no corpus; name another folder")
        work.mkdir(parents=True)
    if not path.is_file():
        _write_json(path, settings)
    elif json.loads(path.read_bytes()) != settings:
        raise BadInput(f"{out} holds an unfinished corpus of other repositories or rules; name another folder")


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    replace_file(path, json.dumps(values, indent=1) + "\n")


Run = Callable[..., Iterable[Any]]
"""`map`, here or in processes."""


@contextmanager
def _pool(workers: int) -> Iterator[Run]:
    if workers == 1:
        yield map
        return
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    )
    try:
        yield pool.map
    except BrokenProcessPool:
        raise NcsError(
            "a process was killed, perhaps for memory; the same command resumes; --workers 1 needs less memory"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _make(repositories: Sequence[Repository], out: Path, rules: Rules, run: Run, track: Track) -> dict[str, Any]:
    folders = [out / WORK / f"{number:06}" for number in range(len(repositories))]
    pending = [pair for pair in zip(repositories, folders, strict=True) if not (pair[1] / DONE).is_file()]
    collecting = run(partial(collect, rules=rules), *zip(*pending, strict=True)) if pending else ()
    for _ in track(collecting, "repositories", total=len(pending), unit="repositories"):
        pass
    outcomes = [json.loads((folder / DONE).read_bytes()) for folder in folders]
    partitions = {folder: each["partition"] for folder, each in zip(folders, outcomes, strict=True)}
    languages = sorted({language for each in outcomes for language in each["counts"]})
    finishing = run(partial(finish, partitions=partitions, out=out), languages)
    counts = dict(zip(languages, track(finishing, "languages", total=len(languages), unit="languages"), strict=True))
    if not any(each.get("pairs") or each.get("undocumented") for each in counts.values()):
        refused = sum(each["refused"] is not None for each in outcomes)
        if outcomes and refused == len(outcomes):
            raise BadInput(f"none of {refused:,} repositories has an allowed license; take them all with --any-license")
        raise BadInput(
            f"no function of {len(outcomes):,} repositories passes the filters; name a folder of repositories"
        )
    write_rows(out / REPOSITORIES, outcomes)
    return _statistics(outcomes, counts)


@dataclass(slots=True)
class Outcome:
    """The outcome of a repository. counts: language -> reason -> functions."""

    name: str
    commit: str = ""
    license: str = ""
    partition: str = ""
    refused: str | None = None
    error: str = ""
    files: int = 0
    broken: int = 0
    failed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


def collect(repository: Repository, folder: Path, rules: Rules) -> None:
    """Write the functions of a repository that pass the filters into `folder`, which exists once all are written.

    `<language>.jsonl.gz` has a digest and a line of the corpus for each, `repository.json` the outcome. A repository
    that cannot be read sets `error`; nothing is raised.
    """
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    outcome = Outcome(repository.name, partition=partition_of(repository.name, rules.seed))
    try:
        outcome.commit, outcome.license = commit_of(repository), find_license(repository)
        outcome.refused = rules.refusal(outcome.license)
        if outcome.refused is None:
            _collect_functions(repository, part, rules, outcome)
    except SourceError as error:
        outcome.error = str(error)
    _write_json(part / DONE, asdict(outcome))
    part.replace(folder)


def _collect_functions(repository: Repository, part: Path, rules: Rules, outcome: Outcome) -> None:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    skipped = Skipped()
    with ExitStack() as stack:
        outputs: dict[str, IO[bytes]] = {}
        for file in read_files(repository, accepts=rules.accepts, skipped=skipped):
            outcome.files += 1
            language = language_of(file.path) or ""
            try:
                documents, broken = readers.read_code(file.data, language, repository.name, file.path)
            except NcsError:
                outcome.failed += 1
                continue
            outcome.broken += broken
            for function, digest in _functions(repository, file, documents, outcome, counts[language]):
                if language not in outputs:
                    outputs[language] = stack.enter_context(open_gzip(part / f"{language}.jsonl.gz", 1))
                outputs[language].write(digest.hex().encode() + b" " + json_line(function.row()))
    outcome.skipped = {reason: n for reason, n in sorted(skipped.counts.items()) if reason != "other language"}
    outcome.counts = {language: dict(sorted(tally.items())) for language, tally in sorted(counts.items())}


def _functions(
    repository: Repository, file: SourceFile, documents: Sequence[Document], outcome: Outcome, tally: Counter[str]
) -> Iterator[tuple[CodeFunction, bytes]]:
    """The functions of a file that pass, with their digests; the others are counted by reason."""
    lines = as_utf8(file.data).decode("utf-8", "replace").split("\n")
    spans: set[tuple[int, int]] = set()
    tally[ALL_FUNCTIONS] += len(documents)
    for document in documents:
        if reason := reason_to_drop(document.language, document.kind, document.name, document.qualified_name):
            tally[reason] += 1
            continue
        code = read_code(document.code, document.language, document.kind)
        span = (document.start_line, document.end_line)
        if code.text.count("\n") + 1 < MIN_LINES or span in spans:
            tally[TWICE if span in spans else SHORT] += 1
            continue
        spans.add(span)
        documentation = _documentation(document, code.docstring, lines)
        paragraph = first_paragraph(documentation)
        tokens = documentation_tokens(paragraph)
        if len(tokens) < MIN_TOKENS:
            tally[FEW_TOKENS if documentation else UNDOCUMENTED] += 1
            paragraph, tokens = "", ()
        function = CodeFunction(
            repo=repository.name,
            path=document.path,
            func_name=document.qualified_name,
            original_string=document.code,
            language=document.language,
            code=code.text,
            code_tokens=code.tokens,
            docstring=paragraph,
            docstring_tokens=tokens,
            sha=outcome.commit,
            url=url_of(repository, outcome.commit, document.path, *span),
            partition=outcome.partition,
            license=outcome.license,
        )
        yield function, document.digest


def _documentation(document: Document, docstring: str, lines: Sequence[str]) -> str:
    """The docstring in Python, elsewhere the comment above the function."""
    if docstring or document.language == "python" or not document.words.get("doc"):
        return docstring
    return comment_above(lines, document.start_line) or "\n".join(document.words["doc"])


def finish(language: str, partitions: Mapping[Path, str], out: Path) -> dict[str, int]:
    """Write `out`/<language> without duplicates; counts of kept and removed functions.

    partitions: of the folders of repositories, in their order. Counts: pairs, undocumented, duplicates by kind, and of
    each the partition's (`pairs train`).
    """
    paths = {path: name for folder, name in partitions.items() if (path := folder / f"{language}.jsonl.gz").is_file()}
    digests, names, documented = [], [], bytearray()
    for digest, line, _ in _lines(paths):
        function = json.loads(line)
        digests.append(digest)
        names.append(identifiers(function["code_tokens"], language))
        documented.append(bool(function["docstring"]))
    fates = duplicates(names, digests, documented)
    shutil.rmtree(out / language, ignore_errors=True)
    counts: Counter[str] = Counter()
    with _Shards(out / language, language) as shards:
        for (_, line, partition), fate, is_pair in zip(_lines(paths), fates.tolist(), documented, strict=True):
            if fate == KEPT:
                name = "pairs" if is_pair else "undocumented"
                shards.write(line, f"final/jsonl/{partition}" if is_pair else name, partition if is_pair else name)
            else:
                name = EXACT_COPY if fate == EXACT else NEAR_COPY
            counts.update((name, f"{name} {partition}"))
    return dict(sorted(counts.items()))


def _lines(paths: Mapping[Path, str]) -> Iterator[tuple[bytes, bytes, str]]:
    """Digest, JSON and partition of every function."""
    for path, partition in paths.items():
        with gzip.open(path, "rb") as lines:
            for line in lines:
                digest, _, function = line.partition(b" ")
                yield digest, function, partition


class _Shards(ExitStack):
    """Files of LINES functions each, the same bytes for the same lines."""

    def __init__(self, folder: Path, language: str) -> None:
        super().__init__()
        self._folder, self._language = folder, language
        self._open: defaultdict[str, ExitStack] = defaultdict(lambda: self.enter_context(ExitStack()))
        self._files: dict[str, IO[bytes]] = {}
        self._counts: Counter[str] = Counter()

    def write(self, line: bytes, below: str, partition: str) -> None:
        """Append a line to its partition's last file, in a folder below."""
        number, place = divmod(self._counts[partition], LINES)
        if place == 0:
            path = self._folder / below / f"{self._language}_{partition}_{number}.jsonl.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open[partition].close()
            self._files[partition] = self._open[partition].enter_context(open_gzip(path))
        self._counts[partition] += 1
        self._files[partition].write(line)


def _statistics(outcomes: Sequence[Mapping[str, Any]], written: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """All counts: of repositories, `Outcome` as dicts, and by language of functions found, removed and kept."""
    by_language = {name: Counter(counts) for name, counts in sorted(written.items())}
    skipped: Counter[str] = Counter()
    for repository in outcomes:
        skipped.update(repository["skipped"])
        for language, counts in repository["counts"].items():
            by_language[language].update(counts)
    by_language[ALL] = sum(by_language.values(), Counter())
    readable = [repository for repository in outcomes if repository["refused"] is None and not repository["error"]]
    repositories = {
        "found": len(outcomes),
        "read": len(readable),
        "left out": dict(sorted(Counter(each["refused"] for each in outcomes if each["refused"]).items())),
        "unreadable": sum(bool(each["error"]) for each in outcomes),
        "licences": dict(sorted(Counter(each["license"] or "none" for each in outcomes).items())),
        "partitions": {name: sum(each["partition"] == name for each in readable) for name in SHARES},
        "files": sum(each["files"] for each in outcomes),
        "files with syntax errors": sum(each["broken"] for each in outcomes),
        "files that failed": sum(each["failed"] for each in outcomes),
        "files left out": dict(sorted(skipped.items())),
    }
    return {
        "repositories": repositories,
        "languages": {name: _language(counts) for name, counts in by_language.items()},
    }


def _language(counts: Counter[str]) -> dict[str, Any]:
    partitions = {
        name: {"pairs": counts[f"pairs {name}"], "all": counts[f"pairs {name}"] + counts[f"undocumented {name}"]}
        for name in SHARES
    }
    return {
        "functions found": counts[ALL_FUNCTIONS],
        "removed": {reason: counts[reason] for reason in REMOVED},
        "all": counts["pairs"] + counts["undocumented"],
        "with documentation": counts["pairs"],
        "no pair": {reason: counts[reason] for reason in NO_PAIR},
        "partitions": partitions,
    }


def table_1(statistics: Mapping[str, Any]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Rows and columns of the paper's Table 1, with the pairs of each partition."""
    columns = ("language", "w/ documentation", "all", *(f"pairs {name}" for name in SHARES))
    rows = []
    for name, each in statistics["languages"].items():
        pairs = [each["partitions"][partition]["pairs"] for partition in SHARES]
        rows.append((name, *(f"{n:,}" for n in (each["with documentation"], each["all"], *pairs))))
    return rows, columns


def table_removed(statistics: Mapping[str, Any]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """A column per language: functions found, then a row per filter and per reason why a kept function is no pair."""
    languages = statistics["languages"]
    rows = [("found", [each["functions found"] for each in languages.values()])]
    rows += [(reason, [each["removed"][reason] for each in languages.values()]) for reason in REMOVED]
    rows += [(f"no pair: {reason}", [each["no pair"][reason] for each in languages.values()]) for reason in NO_PAIR]
    return [(name, *(f"{n:,}" for n in numbers)) for name, numbers in rows], ("", *languages)


def show(statistics: dict[str, Any]) -> None:
    """Table 1, what was removed, and the repositories, on stdout."""
    repositories = statistics["repositories"]
    show_table("functions kept (Table 1)", *table_1(statistics))
    show_table("functions found and what removed them", *table_removed(statistics))
    rows = [("found", f"{repositories['found']:,}"), ("read", f"{repositories['read']:,}")]
    rows += [(f"left out: {reason}", f"{n:,}") for reason, n in repositories["left out"].items()]
    by_count = sorted(repositories["licences"].items(), key=lambda each: -each[1])
    show_table("repositories", rows + [(f"license {name}", f"{n:,}") for name, n in by_count])
