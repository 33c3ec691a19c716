"""A build whose client was killed is gone on with: what workers had read is not read again, all else is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ncs.build.building import make

from ncs.build.file_cache import made_by
from ncs.scale.dask.job import Job, do
from ncs.scale.dask.kept import Kept
from ncs.scale.dask.parts import Part
from ncs.scale.dask.shards import Shard
from tests import dask_processes, gitrepo
from tests.dask_processes import Cluster
from tests.test_cluster import blocked, content, recipe
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as room, dask_processes.cluster(Path(room), 2) as found:
        yield found


def sources(root: Path) -> None:
    """Four bare repositories, an archive, and a work tree, in a folder with rules."""
    for number in range(4):
        gitrepo.bare(root / f"r{number}.git", {"a.py": f"def function_{number}(x):\n    return open(x, {number})\n"})
    with zipfile.ZipFile(root / "packed.zip", "w") as archive:
        archive.writestr("e.py", "def packed(x):\n    return show(x)\n")
    gitrepo.repository(root / "tree", {"b.py": "def in_tree(x):\n    return hide(x)\n"})
    (root / ".ncsignore").write_text("left.py\n")


def pushed(bare: Path, files: dict[str, str], room: Path) -> None:
    """One more commit in a bare repository."""
    gitrepo.git(room, "clone", "-q", str(bare), "clone")
    gitrepo.commit(room / "clone", files)
    gitrepo.git(room / "clone", "push", "-q")


def client(root: Path, index: Path, cluster: Cluster) -> subprocess.Popen[bytes]:
    code = (
        "import sys; from pathlib import Path; from ncs.build.building import make\n"
        "from tests.test_cluster import recipe\n"
        "make(recipe(Path(sys.argv[1]), scheduler=sys.argv[3]), Path(sys.argv[2]))"
    )
    return subprocess.Popen([sys.executable, "-c", code, str(root), str(index), cluster.address])


def test_what_was_read_for_a_client_that_was_killed_is_not_read_again(cluster: Cluster, tmp_path: Path) -> None:
    root, index = tmp_path / "repos", tmp_path / "index"
    sources(root)
    pipe = blocked(root, "slow.git")
    os.link(pipe, tmp_path / "pipe")
    first = client(root, index, cluster)
    shards = tmp_path / "index.shards"
    until(lambda: len([path for path in shards.glob("*") if not path.suffix]) == 5)  # the work tree's is not kept
    first.kill()
    first.wait()
    assert not list(index.glob("manifest.json"))
    head = pipe.with_name("HEAD.new")
    head.write_text("ref: refs/heads/main\n")
    head.replace(pipe)
    os.close(os.open(tmp_path / "pipe", os.O_WRONLY))  # who waits for it goes on
    pushed(root / "r1.git", {"a.py": "def changed_since(x):\n    return close(x)\n"}, tmp_path)
    assert client(root, index, cluster).wait() == 0
    make(recipe(root), tmp_path / "alone")
    assert content(index) == content(tmp_path / "alone")
    notes = json.loads((index / "manifest.json").read_bytes())["notes"]
    assert "4 repositories had been read by a build that ended before its time" in notes
    assert not shards.exists()


def test_a_repository_is_read_again_where_it_or_its_rules_or_what_is_asked_for_differ(tmp_path: Path) -> None:
    sources(tmp_path / "repos")
    part = Part(str(tmp_path / "repos"), (0,), "r0.git/")
    job = Job(part, "r0", made_by())
    kept = Kept(tmp_path / "kept")
    assert kept.state(job) == ""
    shard = do(job)
    kept.put(job, shard)
    state = kept.state(job)
    assert state
    assert not Shard.from_bytes(do(again(job, state))).files
    (tmp_path / "repos" / ".ncsignore").write_text("a.py\n")
    assert Shard.about_of(do(again(job, state)))["skipped"]
    (tmp_path / "repos" / ".ncsignore").write_text("left.py\n")
    pushed(tmp_path / "repos" / "r0.git", {"new.py": "def new(x):\n    return x\n"}, tmp_path)
    assert len(Shard.from_bytes(do(again(job, state))).files) == 2
    assert kept.state(Job(part, "r0", made_by(), outside=False)) == ""
    kept.path(job).write_bytes(shard[: len(shard) // 2])
    assert kept.state(job) == ""


def again(job: Job, state: str) -> Job:
    return Job(job.part, job.name, job.made_by, had=state)
