"""A worker of a cluster reads one repository into a segment, in a process of its own, with a time limit.

The process reads a job as JSON from stdin, and writes a zip of the segment, or an error message, to stdout.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ncs.build.file_cache import made_by
from ncs.build.ingest import ingest
from ncs.build.request import Request
from ncs.config import BuildConfig
from ncs.errors import NcsError, SourceError, needing
from ncs.extract.readers import skip_reason
from ncs.sources import Origin, Skipped, SourceFile, ignore
from ncs.sources.files import RawFile
from ncs.sources.filters import Filter
from ncs.sources.ignore import NCSIGNORE
from ncs.sources.repositories import Repository, archive_suffix, is_address, repository_at
from ncs.sources.roots import Names, files_of, repository_of_root, single_file
from ncs.storage.files import FILES
from ncs.storage.names import USES

SEGMENT, BAD_SOURCE, REFUSED, FAILED = 0, 3, 4, 5
"""Exit statuses of the process."""
LIST = ".txt"
REPORT = "report.json"
SETTINGS = ("java_frontend", "outside", "texts", "deduplicate", "revision")
"""Of a BuildConfig, what decides the documents of a file."""
Key = tuple[tuple[int, ...], bytes, bool, str]


@dataclass(frozen=True, slots=True)
class Part:
    """A repository: a root (with its number) and the path below it. prefix: as in Repository."""

    root: str
    number: Sequence[int]
    prefix: str = ""
    archive: bool = False

    @property
    def path(self) -> Path:
        """The path on disk, also in messages."""
        return Path(self.root, self.prefix.rstrip("/"))

    @property
    def key(self) -> Key:
        """The order in which `walk` reads: roots as given, in them repositories by name, archives after folders."""
        return tuple(self.number), os.fsencode(self._name) if self.prefix else b"", self.archive, self.prefix

    @property
    def _name(self) -> str:
        return Repository("archive" if self.archive else "folder", self.path, self.prefix).name

    def name(self, names: Names) -> str:
        """The name of the repository, given the names of earlier ones."""
        root = Path(self.root)
        if not self.prefix and not self.archive and root.is_file():
            return names.of(root.parent, root.parent.name, root.parent.parent)
        return names.of(self.path, self._name, root)


def read(job: str, seconds: float) -> tuple[int, bytes, str]:
    """(SEGMENT, zip, worker), or another status with the reason as UTF-8. Called by Dask in a thread of a worker."""
    from distributed import get_worker

    worker = get_worker()
    memory = int(worker.memory_manager.memory_limit or 0) // max(1, worker.state.nthreads)
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    with subprocess.Popen(
        [sys.executable, "-m", "ncs.scale.dask_worker", str(memory), str(os.getpid())],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # so that a git that hangs is ended too
    ) as process:
        try:
            answer, _ = process.communicate(job.encode(), timeout=seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            status, answer = FAILED, f"it takes longer than {seconds:g} s".encode()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if status < 0:
        answer = f"the process that read it was ended by signal {-status}; is there enough memory?".encode()
    elif status not in (SEGMENT, BAD_SOURCE, REFUSED, FAILED):
        answer = f"the process that read it ended with status {status}".encode()
    return status, answer, str(worker.address)


def main(arguments: list[str]) -> int:
    """arguments: bytes of memory that may be used, 0 for no limit; the process of the worker."""
    stdout, sys.stdout = sys.stdout.buffer, sys.stderr
    memory, worker = map(int, arguments)
    threading.Thread(target=_end_with, args=(worker,), daemon=True).start()
    with suppress(ImportError, OSError, ValueError):  # not on every system
        import resource

        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    status = FAILED
    try:
        status, answer = SEGMENT, run(json.load(sys.stdin))
    except SourceError as error:
        status, answer = BAD_SOURCE, str(error).encode()
    except NcsError as error:
        status, answer = REFUSED, str(error).encode()
    except MemoryError:
        answer = b"it needs more memory than the worker has"
    except Exception as error:
        answer = f"{type(error).__name__}: {error}".encode()
    stdout.write(answer)
    stdout.flush()
    return status


def _end_with(worker: int) -> None:
    """Exit when the worker has died, with all child processes."""
    while os.getppid() == worker:
        time.sleep(0.5)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def run(job: dict[str, Any]) -> bytes:
    """A zip of the segment of its documents, and a report: the parts found below, and what was skipped.

    job: part; made_by, the digest of the client's extraction code; other_roots, not read as parts of this one; config,
    the SETTINGS. Raises NcsError where this worker has another ncs, and SourceError where the part cannot be read.
    """
    if job["made_by"] != made_by():
        raise NcsError("this worker has another version of ncs or of its grammars; install the client's version")
    part, config, skipped = Part(**job["part"]), replace(BuildConfig(), **job["config"]), Skipped(reason_of=skip_reason)
    with tempfile.TemporaryDirectory(prefix="ncs-") as room:
        segment = Path(room, "segment")
        segment.mkdir()
        below = list_parts(part) if is_address(part.root) and not part.archive else []
        if not below:
            copy = replace(part, root=str(fetch(part.root, Path(room)))) if is_address(part.root) else part
            filter = Filter(Request((), config).readable(), skipped)
            files, below = files_of_part(copy, filter, config.revision, frozenset(job["other_roots"]))
            name = copy.name(Names())
            sources = (_restore_place(SourceFile.of(name, file), copy, part) for file in files)
            collected = ingest(sources, segment, config, workers=1, began=time.time_ns())
            collected.uses.save(segment / USES)
            collected.files_read.save(segment / FILES)
        report = {
            "below": list(map(asdict, below)),
            "skipped": dict(skipped.counts),
            "unreadable": skipped.unreadable,
            "notes": skipped.notes,
        }
        answer = Path(room, "answer.zip")  # in memory, a zip that cannot grow hides the MemoryError as it is closed
        with zipfile.ZipFile(answer, "w") as archive:
            archive.writestr(REPORT, json.dumps(report))
            for path in sorted(segment.rglob("*")):
                archive.write(path, path.relative_to(segment))
        return answer.read_bytes()


def files_of_part(
    part: Part, filter: Filter, revision: str | None, other_roots: frozenset[str]
) -> tuple[Iterator[RawFile], list[Part]]:
    """Its files, and the other parts below it, complete once the files are read. Raises SourceError as `walk` does."""
    repository = _repository(part)
    if repository is None:
        return (file for _, file in single_file(Path(part.root), filter, Names())), []
    below: list[Part] = []

    def discovered(other: Repository) -> None:
        below.append(Part(part.root, part.number, other.prefix, other.kind == "archive"))

    return files_of(repository, filter, revision, discovered, other_roots), below


def _repository(part: Part) -> Repository | None:
    """The repository with the .ncsignore files of its parent folders, as in `walk`; None for a single file."""
    root = Path(part.root)
    first = repository_of_root(root)
    if not part.prefix or first is None:
        return first
    ignores, above = first.ignores, ""
    for folder in part.prefix.rstrip("/").split("/"):
        ignores = ignores.with_ncs(ignore.load(root / above / NCSIGNORE, base=above))
        above += f"{folder}/"
    if part.archive:
        return Repository("archive", part.path, part.prefix, ignores.without_git())
    try:
        repository = repository_at(part.path, os.listdir(part.path), part.prefix, ignores)  # noqa: PTH208  (names only)
    except OSError as error:
        raise SourceError(f"cannot read {part.path}: {error.strerror}; does every machine see it?") from error
    if repository is None:
        raise SourceError(f"{part.path} is no repository any more; build again")
    return repository


def _restore_place(file: SourceFile, read: Part, part: Part) -> SourceFile:
    """The file with its original place instead of the worker's copy."""
    if read == part or file.origin is None:
        return file
    below = file.origin.place.removeprefix(str(Path(read.root).resolve()))
    return replace(file, origin=Origin(part.root + below, file.origin.stamp))


def is_archive(root: str) -> bool:
    """Whether the name is that of an archive."""
    return bool(archive_suffix(root.rpartition("/")[2]))


def list_parts(part: Part) -> list[Part]:
    """The parts at an address: lines of a list, archives and git directories of a folder; [] for a repository."""
    files, path = _file_system(part.root)
    protocol = part.root.partition("://")[0]
    try:
        if path.endswith(LIST):
            lines = [line.strip() for line in files.cat_file(path).decode().splitlines()]
            names = [line for line in lines if line and not line.startswith("#")]
        elif files.isfile(path) or _is_git(files, path):
            names = []
        else:
            entries = [entry for entry in files.ls(path, detail=True) if _is_source(files, entry)]
            names = sorted(f"{protocol}://{entry['name']}" for entry in entries)
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot list {part.root} ({error}); does the worker have the rights to read it?") from error
    return [Part(name, (*part.number, at), archive=is_archive(name)) for at, name in enumerate(names)]


def fetch(address: str, room: Path) -> Path:
    """A copy of an archive, or of a git directory, in a folder of the worker."""
    files, path = _file_system(address)
    copy = room / Path(path).name
    try:
        files.get(path, str(copy), recursive=bool(files.isdir(path)))
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot fetch {address} ({error}); does the worker have the rights to read it?") from error
    return copy


def _is_source(files: Any, entry: dict[str, Any]) -> bool:
    if entry["type"] == "directory":
        return _is_git(files, entry["name"])
    return bool(archive_suffix(Path(entry["name"]).name))


def _is_git(files: Any, path: str) -> bool:
    return bool(files.isdir(path)) and all(files.exists(f"{path}/{name}") for name in ("HEAD", "objects"))


def _file_system(address: str) -> tuple[Any, str]:
    """The file system behind an address and the path in it."""
    with needing("reading an address", "cluster"):
        import fsspec
    try:
        files, path = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise SourceError(f"cannot open {address}: {str(error).splitlines()[0]}") from error
    return files, str(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
