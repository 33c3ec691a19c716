"""What workers have read of a build whose client died: found again by the next one, and not read twice."""

from __future__ import annotations

import shutil
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from ncs.errors import NcsError
from ncs.scale.dask.job import Job
from ncs.scale.dask.shards import Shard

SUFFIX = ".shards"


class Kept:
    """Shards in a folder, each named by what was asked for: the repository, what is read of it, by which code."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def beside(cls, index: Path) -> Kept:
        """Of an index while it is built: `INDEX.shards`."""
        return cls(index.absolute().with_name(index.absolute().name + SUFFIX))

    def path(self, job: Job) -> Path:
        """Where the shard of a job is, if there is one."""
        return self._folder / blake2b(replace(job, had="").to_json().encode(), digest_size=16).hexdigest()

    def state(self, job: Job) -> str:
        """The state of the repository that was read for a job; "" where it was not, or what is there is damaged."""
        try:
            return str(Shard.about_of(self.path(job).read_bytes())["state"])
        except (OSError, NcsError):
            return ""

    def put(self, job: Job, data: bytes) -> Path:
        """Keep a shard, whole or not at all."""
        path = self.path(job)
        self._folder.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(data)
        part.replace(path)
        return path

    def discard(self) -> None:
        """When the build is complete."""
        shutil.rmtree(self._folder, ignore_errors=True)
