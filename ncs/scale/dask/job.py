"""What a worker is asked to do with one repository, as JSON; and how it is done, in a process that may be ended."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.build.batches import pack_batch
from ncs.build.file_cache import made_by
from ncs.errors import NcsError, SourceError
from ncs.extract import extract_files
from ncs.extract.readers import readable, why_unread, without_texts
from ncs.scale.dask import addresses
from ncs.scale.dask.parts import Part, read_part, scout, state_of
from ncs.scale.dask.shards import Shard
from ncs.sources import Skipped, SourceFile
from ncs.sources.filters import Filter
from ncs.sources.repositories import is_address
from ncs.storage.files import FileEntry

if TYPE_CHECKING:
    from ncs.sources.files import RawFile


@dataclass(frozen=True, slots=True)
class Job:
    """list_only: name the places below, read nothing. name: what the repository is called.

    made_by: what decides the documents of a file where the build was started; a worker with other code refuses.
    """

    part: Part
    name: str
    made_by: str
    apart: tuple[str, ...] = ()
    revision: str | None = None
    frontend: str = "tree-sitter"
    outside: bool = True
    texts: bool = True
    code: bool = True
    list_only: bool = False
    had: str = ""
    """The state in which an earlier build has read it; where it still is in that, it is not read again."""

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Of `to_json`."""
        found = json.loads(text)
        part = found.pop("part")
        return cls(Part(**{**part, "number": tuple(part["number"])}), **{**found, "apart": tuple(found["apart"])})


def do(job: Job) -> bytes:
    """Its shard; raises NcsError where another ncs is asked for, and SourceError for a root that cannot be read."""
    if job.made_by != made_by():
        raise NcsError("this worker has another version of ncs or of its grammars; install the one that builds")
    skipped = Skipped(unwanted=why_unread)
    filter, apart = Filter(readable if job.texts else without_texts, skipped), frozenset(job.apart)
    if job.list_only:
        address = is_address(job.part.root)
        below = addresses.listed(job.part) if address else scout(job.part, filter, apart)
        return Shard({"below": list(map(asdict, below))}, (), ()).to_bytes()
    entries: list[FileEntry] = []
    state = _state(job)
    if state and state == job.had:
        return Shard({"below": [], "state": state}, (), ()).to_bytes()
    with _here(job.part) as part:
        files, below = read_part(part, filter, job.revision, apart)
        finish, noted = partial(pack_batch, code=job.code), _noted(files, job.name, entries)
        done = tuple(extract_files(noted, workers=1, frontend=job.frontend, outside=job.outside, finish=finish))
        entries = [_placed(entry, part, job.part) for entry in entries]
    left_out = {"skipped": dict(skipped.counts), "unreadable": skipped.unreadable, "notes": skipped.notes}
    return Shard({"below": list(map(asdict, below)), "state": state, **left_out}, entries, done).to_bytes()


def _state(job: Job) -> str:
    """Of its repository; "" where only reading can tell, or what is wrong with it."""
    with suppress(SourceError, OSError):
        return "" if is_address(job.part.root) else state_of(job.part, Filter(readable, Skipped()), job.revision)
    return ""


@contextmanager
def _here(part: Part) -> Iterator[Part]:
    """The part on this machine's disk; of an address a copy, for as long as it is read."""
    if not is_address(part.root):
        yield part
        return
    with tempfile.TemporaryDirectory(prefix="ncs-") as room:
        yield replace(part, root=str(addresses.fetch(part.root, Path(room))))


def _noted(files: Iterator[RawFile], name: str, entries: list[FileEntry]) -> Iterator[SourceFile]:
    for file in files:
        source = SourceFile.of(name, file)
        entries.append(FileEntry.of(source))
        yield source


def _placed(entry: FileEntry, read: Part, asked: Part) -> FileEntry:
    """Where it lies for everybody, not where a worker's copy of it lay."""
    if read == asked:
        return entry
    return replace(entry, place=asked.root + entry.place.removeprefix(str(Path(read.root).resolve())))
