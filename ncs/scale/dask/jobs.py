"""A job of a cluster: one repository, read into a segment, as the bytes of a zip."""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ncs.build.file_cache import made_by
from ncs.build.ingest import ingest
from ncs.build.request import Request
from ncs.config import BuildConfig
from ncs.errors import MissingExtra, NcsError, SourceError
from ncs.extract.readers import skip_reason
from ncs.sources import Origin, Skipped, SourceFile, ignore
from ncs.sources.files import RawFile
from ncs.sources.filters import Filter
from ncs.sources.ignore import NCSIGNORE
from ncs.sources.repositories import Repository, archive_suffix, is_address, repository_at
from ncs.sources.roots import Names, files_of, repository_of_root, single_file

LIST = ".txt"
REPORT = "report.json"
Key = tuple[tuple[int, ...], bytes, bool, str]


@dataclass(frozen=True, slots=True)
class Part:
    """A repository: a root (with its number) and the path below it. prefix: as in Repository."""

    root: str
    number: tuple[int, ...]
    prefix: str = ""
    archive: bool = False

    @property
    def path(self) -> Path:
        """On disk; in messages too."""
        return Path(self.root, self.prefix.rstrip("/"))

    @property
    def key(self) -> Key:
        """The order in which `walk` reads: roots as given, in them repositories by name, archives after folders."""
        return self.number, os.fsencode(self._name) if self.prefix else b"", self.archive, self.prefix

    @property
    def _name(self) -> str:
        return Repository("archive" if self.archive else "folder", self.path, self.prefix).name

    def name(self, names: Names) -> str:
        """What the repository is called, given those that were named before."""
        root = Path(self.root)
        if not self.prefix and not self.archive and root.is_file():
            return names.of(root.parent, root.parent.name, root.parent.parent)
        return names.of(self.path, self._name, root)

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Part:
        """Of `asdict`, which has been JSON."""
        return cls(**{**fields, "number": tuple(fields["number"])})


@dataclass(frozen=True, slots=True)
class Job:
    """made_by: digest of the client's extraction code; a worker with another one refuses the job.
    other_roots: not read as parts of this one. config: settings of extraction."""

    part: Part
    made_by: str
    other_roots: tuple[str, ...]
    config: dict[str, Any]

    @classmethod
    def of(cls, part: Part, roots: Sequence[Part], config: BuildConfig) -> Job:
        """The job of reading a part."""
        names = ("java_frontend", "outside", "texts", "deduplicate", "revision")
        settings = {name: getattr(config, name) for name in names}
        return cls(part, made_by(), tuple(root.root for root in roots), settings)

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Of `to_json`."""
        fields = json.loads(text)
        return cls(Part.of(fields["part"]), fields["made_by"], tuple(fields["other_roots"]), fields["config"])


def run(job: Job) -> bytes:
    """A zip of the segment of its documents, and a report: the parts found below, and what was skipped.

    Raises NcsError where this worker has another ncs, and SourceError where the part cannot be read.
    """
    if job.made_by != made_by():
        raise NcsError("this worker has another version of ncs or of its grammars; install the client's version")
    skipped = Skipped(unwanted=skip_reason)
    with tempfile.TemporaryDirectory(prefix="ncs-") as name:
        room, segment = Path(name), Path(name, "segment")
        segment.mkdir()
        below = listed(job.part) if is_address(job.part.root) and not job.part.archive else []
        if not below:
            below = _read(job, room, segment, skipped)
        report = {
            "below": list(map(asdict, below)),
            "skipped": dict(skipped.counts),
            "unreadable": skipped.unreadable,
            "notes": skipped.notes,
        }
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(REPORT, json.dumps(report))
            for path in sorted(segment.rglob("*")):
                archive.write(path, path.relative_to(segment))
        return stream.getvalue()


def _read(job: Job, room: Path, segment: Path, skipped: Skipped) -> list[Part]:
    """Write the segment of a part; the parts below it."""
    config = replace(BuildConfig(), **job.config)
    filter = Filter(Request((), config).wanted(), skipped)
    part = job.part
    if is_address(part.root):
        part = replace(part, root=str(fetch(part.root, room)))
    files, below = files_of_part(part, filter, config.revision, frozenset(job.other_roots))
    name = part.name(Names())
    sources = (_placed(SourceFile.of(name, file), part, job.part) for file in files)
    collected = ingest(sources, segment, config, workers=1, began=time.time_ns())
    collected.uses.save(segment)
    collected.files_read.save(segment)
    return below


def files_of_part(
    part: Part, filter: Filter, revision: str | None, other_roots: frozenset[str]
) -> tuple[Iterator[RawFile], list[Part]]:
    """Its files, and the other parts below it, complete once the files are read. Raises SourceError as `walk` does."""
    repository = _repository(part)
    if repository is None:
        return (file for _, file in single_file(Path(part.root), filter, Names(), read=True)), []
    below: list[Part] = []

    def discovered(other: Repository) -> None:
        below.append(Part(part.root, part.number, other.prefix, other.kind == "archive"))

    return files_of(repository, filter, revision, discovered, other_roots, read=True), below


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


def _placed(file: SourceFile, read: Part, part: Part) -> SourceFile:
    """The file with its original place instead of the worker's copy."""
    if read == part or file.origin is None:
        return file
    below = file.origin.place.removeprefix(str(Path(read.root).resolve()))
    return replace(file, origin=Origin(part.root + below, file.origin.stamp))


def is_archive(root: str) -> bool:
    """By its name."""
    return bool(archive_suffix(root.rpartition("/")[2]))


def listed(part: Part) -> list[Part]:
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
    try:
        import fsspec
    except ImportError:
        raise MissingExtra("addresses need the extra `cluster`: pip install 'neural-code-search[cluster]'") from None
    try:
        files, path = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise SourceError(f"cannot open {address}: {str(error).splitlines()[0]}") from error
    return files, str(path)
