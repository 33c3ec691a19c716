"""What a cluster's workers read gives the index that one machine would have made, whatever happens to them."""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import subprocess
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ncs.build.building import make

from ncs.build.file_cache import made_by
from ncs.build.request import Recipe
from ncs.config import BuildConfig, FastTextConfig
from ncs.errors import BadInput, NcsError, SourceError
from ncs.extract.readers import why_unread
from ncs.index import Index
from ncs.scale.dask import build as cluster_build
from ncs.scale.dask.job import Job
from ncs.scale.dask.parts import Part
from ncs.scale.dask.shards import Shard
from ncs.scale.dask.tasks import Tasks, _Tried, connected
from ncs.sources import Skipped
from ncs.sources.repositories import address_of
from tests import dask_processes, gitrepo
from tests.dask_processes import Cluster
from tests.test_update import source
from tests.waiting import LONG, processes, until

pytestmark = pytest.mark.slow
QUICK = BuildConfig(fasttext=FastTextConfig(dim=8, epochs=1, least_words=1, min_count=1))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as room, dask_processes.cluster(Path(room), 2) as found:
        yield found


def sources(root: Path) -> tuple[Path, Path]:
    """Two roots: repositories of every kind, in each other, with ignored files, and names that come twice."""
    rng = random.Random(7)
    one, two = root / "one", root / "two"
    gitrepo.repository(one / "app", {"a.py": source(rng).decode() or "x = 1\n", "deep/b.py": source(rng).decode()})
    gitrepo.repository(one / "app" / "inner", {"n.py": "def inner(x):\n    return open_file(x)\n"})
    gitrepo.repository(one / "app-b", {"z.py": "def beside(x):\n    return x.close()\n", "broken.py": "def f(:\n"})
    gitrepo.bare(one / "app.git", {"c.py": "def bare(x):\n    return hide(x)\n", "d.py": source(rng).decode()})
    with zipfile.ZipFile(one / "packed.zip", "w") as archive:
        archive.writestr("packed/e.py", "def packed(x):\n    return show(x)\n")
    (one / "loose.py").write_text("def loose(x):\n    return parse(x)\n")
    (one / "left.py").write_text("def left_out(x):\n    return x\n")
    (one / ".ncsignore").write_text("left.py\nhidden/\n")
    gitrepo.repository(
        one / "zz", {"hidden/h.py": "def hidden(x):\n    return x\n", "copy.py": "def loose(x):\n    return parse(x)\n"}
    )
    gitrepo.repository(two / "app", {"same_name.py": "def second_app(x):\n    return encode(x)\n"})
    (two / "bad.zip").write_bytes(b"PK\x03\x04 this is no archive")
    return one, two


def content(folder: Path) -> dict[str, object]:
    """Every file of the index that stands, by name, but what its walk has seen; of the database what it holds."""
    data = next(folder.glob("data-*"))
    found: dict[str, object] = {
        str(path.relative_to(data)): path.read_bytes()
        for path in data.rglob("*")
        if path.is_file() and path.suffix != ".sqlite" and path.stem not in ("seen", "lying")
    }
    with sqlite3.connect(data / "documents.sqlite") as database:
        found["documents"] = list(database.iterdump())
    database.close()
    return found


def recipe(*roots: Path, **more: object) -> Recipe:
    return replace(Recipe(tuple(roots), QUICK), **more)  # type: ignore[arg-type]


def read(cluster: Cluster, *roots: Path, seconds: float = 4 * LONG) -> tuple[list[str], Skipped]:
    """Repositories that have documents, and what was left out."""
    skipped = Skipped(unwanted=why_unread)
    with tempfile.TemporaryDirectory() as folder:
        found = cluster_build.read(recipe(*roots, give_up=seconds), skipped, Path(folder), cluster.address)
    return sorted(found.tally["repositories"]), skipped


def test_every_file_of_a_clusters_index_equals_the_single_machines(cluster: Cluster, tmp_path: Path) -> None:
    roots = sources(tmp_path)
    make(recipe(*roots), tmp_path / "alone")
    make(recipe(*roots, scheduler=cluster.address), tmp_path / "together")
    assert content(tmp_path / "together") == content(tmp_path / "alone")
    with Index.load(tmp_path / "together") as ours, Index.load(tmp_path / "alone") as theirs:
        kept = ("repositories", "copies", "broken_files", "skipped", "unreadable_files", "source_bytes", "files")
        assert {name: ours.manifest.counts[name] for name in kept} == {
            name: theirs.manifest.counts[name] for name in kept
        }
        assert len(ours.manifest.counts["repositories"]) == 8  # type: ignore[arg-type]
        assert ours.manifest.counts["copies"] == 1
        assert ours.manifest.notes == theirs.manifest.notes


def blocked(root: Path, name: str) -> Path:
    """A bare repository whose reading does not end: its HEAD is a pipe that nobody writes to. Gives the pipe."""
    gitrepo.bare(root / name, {"slow.py": "def slow(x):\n    return wait(x)\n"})
    (root / name / "HEAD").unlink()
    os.mkfifo(root / name / "HEAD")
    return root / name / "HEAD"


def is_read(pipe: Path) -> bool:
    """Whether a process has opened it to read."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno == errno.ENXIO:
            return False
        raise
    return True


def test_a_repository_that_never_ends_is_left_out_and_named(cluster: Cluster, tmp_path: Path) -> None:
    root = tmp_path / "repos"
    gitrepo.repository(root / "good", {"a.py": "def good(x):\n    return x\n"})
    pipe = blocked(root, "endless.git")
    for seconds in (4, 30, LONG):  # in which a busy machine reads what does end
        names, skipped = read(cluster, root, seconds=seconds)
        if names:
            break
    assert names == ["good"]
    assert skipped.unreadable == ["endless.git"]
    assert skipped.notes == [f"{root / 'endless.git'} is left out: it takes longer than {seconds} s"]
    until(lambda: not processes(str(root)))
    assert not is_read(pipe), "git is still waiting"


@pytest.mark.parametrize("deaths", [1, 4])
def test_workers_killed_at_a_job_change_nothing(cluster: Cluster, tmp_path: Path, deaths: int) -> None:
    """After four Dask gives a job up; then it is tried once more, alone."""
    root = tmp_path / "repos"
    gitrepo.repository(root / "good", {"a.py": "def good(x):\n    return x\n"})
    pipe = blocked(root, "slow.git")
    found: list[list[str]] = []
    thread = threading.Thread(target=lambda: found.append(read(cluster, root)[0]))
    thread.start()
    dead = []
    for _ in range(deaths):
        victim = at_work(cluster)
        dead.append(f"ncs.scale.dask.child\0{0}\0{victim.pid}")
        victim.kill()
        victim.wait()
        cluster.workers.remove(victim)
        cluster.start_worker()
    head = pipe.with_name("HEAD.new")
    head.write_text("ref: refs/heads/main\n")
    os.link(pipe, tmp_path / "pipe")
    head.replace(pipe)
    thread.join()
    assert found == [["good", "slow"]]
    until(lambda: not any(map(processes, (str(root), *dead))))  # what the dead have left behind notices
    assert not is_read(tmp_path / "pipe")


def at_work(cluster: Cluster) -> subprocess.Popen[bytes]:
    """The worker that has a job; waits for it."""
    with connected(cluster.address) as client:
        while True:
            busy = [worker for worker, keys in client.processing().items() if keys]
            pids: dict[str, int] = {}
            with suppress(OSError):  # one that was killed a moment ago does not answer
                pids = client.run(os.getpid, workers=busy) if busy else {}
            for process in cluster.workers:
                if process.pid in pids.values():
                    return process
            time.sleep(0.1)


def too_large(folder: Path) -> None:
    """What is not read in 150 MB."""
    rng = random.Random(3)
    folder.mkdir()
    for number in range(4):
        lines = [f"def f{number}_{i}(x):\n    return g{rng.random()}(x, {rng.random()})\n" for i in range(9_000)]
        (folder / f"f{number}.py").write_text("".join(lines))


def test_what_needs_more_memory_than_a_worker_has_is_left_out_and_named(tmp_path: Path) -> None:
    root = tmp_path / "repos"
    gitrepo.repository(root / "good", {"a.py": "def good(x):\n    return x\n"})
    too_large(root / "large")
    gitrepo.git(root / "large", "init", "--quiet")
    with tempfile.TemporaryDirectory() as room, dask_processes.cluster(Path(room), 0) as small:
        small.start_worker(memory="150MB")
        names, skipped = read(small, root)
    assert names == ["good"]
    assert skipped.unreadable == ["large"]
    assert "memory" in skipped.notes[0]


def test_what_needs_too_much_memory_is_tried_on_another_worker_before_it_is_left_out(tmp_path: Path) -> None:
    too_large(tmp_path / "large")
    with tempfile.TemporaryDirectory() as room, dask_processes.cluster(Path(room), 0) as small:
        for memory in ("150MB", "3GB"):
            small.start_worker(memory=memory)
        with connected(small.address) as client:
            client.wait_for_workers(2)
            first, second = client.scheduler_info(n_workers=-1)["workers"].items()
            weak = first if first[1]["memory_limit"] < second[1]["memory_limit"] else second
            tasks = Tasks(client, 4 * LONG)
            job = Job(Part(str(tmp_path / "large"), (0,)), "large", made_by())
            tried = _Tried(job, elsewhere={next(each[0] for each in (first, second) if each is not weak)})
            tasks._start(tried)
            tried.elsewhere.clear()  # it only had to begin on the weak one
            found = [(data is not None, why) for _, data, why in tasks.done()]
    assert tasks.again == 1
    assert found == [(True, "")]


def test_addresses_of_a_list_and_of_a_folder_are_read_by_the_workers(cluster: Cluster, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    gitrepo.bare(store / "one.git", {"a.py": "def in_git(x):\n    return x\n"})
    with zipfile.ZipFile(store / "two.zip", "w") as archive:
        archive.writestr("b.py", "def in_zip(x):\n    return x\n")
    (store / "README").write_text("neither\n")
    assert read(cluster, Path(f"file://{store}"))[0] == ["one", "two"]
    (tmp_path / "list.txt").write_text(f"# ours\nfile://{store}/two.zip\n\n{store}/one.git\nfile://{store}/gone.zip\n")
    names, skipped = read(cluster, Path(f"file://{tmp_path}/list.txt"))
    assert names == ["one", "two"]
    assert skipped.unreadable == [f"file://{store}/gone.zip"]
    assert "cannot fetch" in skipped.notes[0]


def test_what_was_read_from_addresses_is_not_updated_without_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    gitrepo.bare(tmp_path / "store" / "one.git", {"a.py": "def in_git(x):\n    return x\n"})
    root = Path(f"file://{tmp_path}/store")
    make(recipe(root, scheduler=cluster.address), tmp_path / "index")
    with pytest.raises(BadInput, match=f"from file://{tmp_path}/store; build it again with --scheduler"):
        Index.update(tmp_path / "index")
    with pytest.raises(BadInput, match="a cluster reads file://"):
        make(recipe(root), tmp_path / "index")


def test_where_no_scheduler_answers_one_line_says_how_to_start_one() -> None:
    with pytest.raises(NcsError, match="start one with: dask scheduler"), connected("tcp://127.0.0.1:9", patience=1):
        pass


def test_a_root_that_is_missing_is_told_as_without_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no"):
        read(cluster, tmp_path / "nowhere")


def test_a_shard_with_a_pickle_in_it_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", head=np.array([object()], dtype=object))
    with pytest.raises(NcsError, match="no shard"):
        Shard.from_bytes((tmp_path / "evil.npz").read_bytes())
    with pytest.raises(NcsError, match="no shard"):
        Shard.from_bytes(b"nothing of the kind")


def test_the_order_of_places_is_that_of_walk() -> None:
    places = [Part("/r", (0,), where) for where in ("app/", "app-b/", "app/inner/", "")]
    assert [part.where for part in sorted(places, key=lambda part: part.key)] == ["", "app/", "app-b/", "app/inner/"]
    assert address_of(Path("s3://bucket/a.git")) == "s3://bucket/a.git"
