"""What a cluster's workers read gives the segment that one machine would have made, whatever happens to them."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from ncs.build.pipeline import build
from ncs.build.request import Request
from ncs.config import BuildConfig
from ncs.errors import BadInput, NcsError, SourceError
from ncs.extract.readers import skip_reason
from ncs.index import Index
from ncs.scale.dask import LOCAL, Tasks, connect, ingest_on_cluster, job_settings
from ncs.scale.dask_worker import Part, run
from ncs.sources import Skipped
from ncs.storage.documents import NAME, DocumentTable
from tests import gitrepo
from tests.serving import own_port, wait_for_port
from tests.waiting import LONG, processes, until

LSA = BuildConfig(embeddings="lsa")


@dataclass
class Cluster:
    """A Dask scheduler and its workers, each a process on loopback."""

    address: str
    room: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self, memory: str = "0") -> None:
        """One more, with one thread and no nanny that would start it again."""
        options = ["--no-nanny", "--nthreads", "1", "--memory-limit", memory, "--no-dashboard", "--host", "127.0.0.1"]
        self.workers.append(dask("worker", self.address, "--local-directory", str(self.room), *options))


def dask(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    path, quiet = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path), subprocess.DEVNULL
    environment = {"DASK_LOGGING__DISTRIBUTED": "critical", "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    environment["DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE"] = "False"  # it would wait for memory that it itself takes
    environment["PATH"] = os.pathsep.join([str(Path(__file__).with_name("slow_git")), os.environ["PATH"]])
    command = [sys.executable, "-W", "ignore", "-m", f"distributed.cli.dask_{program}", *arguments]
    return subprocess.Popen(command, env={**os.environ, **environment}, stdin=quiet, stdout=quiet, stderr=quiet)


@contextmanager
def running(workers: int) -> Iterator[Cluster]:
    port = own_port()
    with tempfile.TemporaryDirectory() as room:
        cluster = Cluster(f"tcp://127.0.0.1:{port}", Path(room))
        scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        try:
            wait_for_port(scheduler, port)
            for _ in range(workers):
                cluster.start_worker()
            yield cluster
        finally:
            for process in (*cluster.workers, scheduler):
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running(2) as cluster:
        yield cluster


def function(name: str) -> str:
    return f"def {name}(x):\n    return {name}_of(x)\n"


def sources(root: Path) -> tuple[Path, Path]:
    """Two roots: repositories of every kind, in each other, with ignored files, and names that come twice."""
    one, two = root / "one", root / "two"
    gitrepo.repository(one / "app", {"a.py": function("first"), "deep/b.py": function("second")})
    gitrepo.repository(one / "app" / "inner", {"n.py": function("inner")})
    gitrepo.repository(one / "app-b", {"z.py": function("beside"), "broken.py": "def f(:\n"})
    gitrepo.bare(one / "app.git", {"c.py": function("bare"), "d.py": function("barer")})
    loose = {"loose.py": function("loose"), "left.py": function("left_out"), ".ncsignore": "left.py\nhidden/\n"}
    gitrepo.write(one, {**loose, "packed.zip": gitrepo.zipped({"packed/e.py": function("packed")})})
    gitrepo.repository(one / "zz", {"hidden/h.py": function("hidden"), "copy.py": function("loose")})
    gitrepo.repository(two / "app", {"same_name.py": function("second_app")})
    (two / "bad.zip").write_bytes(b"PK\x03\x04 this is no archive")
    return one, two


def beside_good(root: Path) -> Path:
    """A folder with a repository that is read without trouble."""
    gitrepo.repository(root / "good", {"a.py": function("good")})
    return root


def request(*roots: Path, ingest: object = None) -> Request:
    return replace(Request(tuple(roots), LSA), ingest=ingest)  # type: ignore[arg-type]


def read(cluster: Cluster, *roots: Path, seconds: float = 4 * LONG) -> tuple[list[str], Skipped]:
    """Repositories that have documents, and what was skipped."""
    skipped = Skipped(reason_of=skip_reason)
    with tempfile.TemporaryDirectory() as folder:
        ingest_on_cluster(request(*roots), skipped, Path(folder), scheduler=cluster.address, give_up=seconds)
        with DocumentTable(Path(folder) / NAME) as documents:
            return sorted(documents.counts()["repositories"]), skipped


@pytest.mark.slow
def test_an_index_that_a_cluster_read_is_that_of_one_machine_and_is_updated_as_any_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    roots = sources(tmp_path)
    indexes = []
    for name, ingest in (("alone", None), ("together", partial(ingest_on_cluster, scheduler=cluster.address))):
        build(request(*roots, ingest=ingest), tmp_path / name)
        with Index.load(tmp_path / name) as index:
            counts, files = dict(index.description.counts), dict(index.description.files)
        assert (len(counts["repositories"]), counts["copies"]) == (8, 1)
        del counts["seconds"], counts["peak_memory_bytes"], files["segments/000001/files/began.npy"]
        indexes.append((counts, files))
    assert indexes[0] == indexes[1]
    (roots[0] / "app" / "new.py").write_text(function("novel_function"))
    index, changes = Index.update(tmp_path / "together")
    with index:
        assert changes.added == ("one/app/new.py",)
        assert index.search("novel function")[0].document.name == "novel_function"


@pytest.mark.slow
def test_a_cluster_of_this_machine_reads_as_well(tmp_path: Path) -> None:
    ingest = partial(ingest_on_cluster, scheduler=LOCAL)
    build(replace(request(beside_good(tmp_path / "repos"), ingest=ingest), workers=2), tmp_path / "index")
    with Index.load(tmp_path / "index") as index:
        assert index.search("good")[0].document.name == "good"


def blocked(root: Path, name: str) -> Path:
    """A bare repository whose reading does not end: slow_git/git waits for a pipe in it. Gives the pipe."""
    gitrepo.bare(root / name, {"slow.py": function("slow")})
    os.mkfifo(root / name / "pipe")
    return root / name / "pipe"


def is_read(pipe: Path) -> bool:
    """Whether a process has opened it to read."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno == errno.ENXIO:
            return False
        raise
    return True


@pytest.mark.slow
def test_a_repository_that_never_ends_is_left_out_and_named(cluster: Cluster, tmp_path: Path) -> None:
    root = beside_good(tmp_path / "repos")
    pipe = blocked(root, "endless.git")
    for seconds in (4, 16, 64, 256):  # in which a busy machine reads the one that does end
        names, skipped = read(cluster, root, seconds=seconds)
        if names:
            break
    assert names == ["good"]
    assert skipped.unreadable == ["endless.git"]
    assert skipped.notes == [f"{root / 'endless.git'} is left out: it takes longer than {seconds} s"]
    until(lambda: not processes(str(root)))
    assert not is_read(pipe), "git is still waiting"


@pytest.mark.slow
def test_workers_killed_at_a_job_change_nothing(cluster: Cluster, tmp_path: Path) -> None:
    root = beside_good(tmp_path / "repos")
    pipe = blocked(root, "slow.git")
    names: list[str] = []
    thread = threading.Thread(target=lambda: names.extend(read(cluster, root)[0]))
    thread.start()
    dead = []
    for _ in range(4):  # then Dask gives the job up, and it is tried once more
        victim = at_work(cluster)
        dead.append(f"ncs.scale.dask_worker\0{0}\0{victim.pid}")
        victim.kill()
        victim.wait()
        cluster.workers.remove(victim)
        cluster.start_worker()
    pipe.rename(tmp_path / "pipe")
    thread.join()
    assert names == ["good", "slow"]
    until(lambda: not any(map(processes, (str(root), *dead))))  # the processes of dead workers notice
    assert not is_read(tmp_path / "pipe")


def at_work(cluster: Cluster) -> subprocess.Popen[bytes]:
    """The worker that has a job; waits for it."""
    with connect(cluster.address) as client:
        while True:
            busy = [worker for worker, keys in client.processing().items() if keys]
            pids: dict[str, int] = {}
            with suppress(OSError):  # one that was killed a moment ago does not answer
                pids = client.run(os.getpid, workers=busy) if busy else {}
            for process in cluster.workers:
                if process.pid in pids.values():
                    return process
            time.sleep(0.1)


def too_large(folder: Path) -> Path:
    """A notebook that nobody reads in 120 MB, and soon in more: nearly all of it is the output of a cell."""
    cell = {"cell_type": "code", "source": "def f(x):\n    return g(x)\n", "outputs": ["A" * 29_000_000]}
    gitrepo.write(folder, {"a.ipynb": json.dumps({"cells": [cell]})})
    return folder


@pytest.mark.slow
def test_a_repository_that_needs_more_memory_than_a_worker_has_is_read_by_another_or_left_out_and_named(
    tmp_path: Path,
) -> None:
    root = beside_good(tmp_path / "repos")
    gitrepo.git(too_large(root / "large"), "init", "--quiet")
    with running(0) as small:
        small.start_worker(memory="120MB")
        names, skipped = read(small, root)
        assert names == ["good"]
        assert skipped.unreadable == ["large"]
        assert "memory" in skipped.notes[0]
        with connect(small.address) as client:
            tasks = Tasks(client, job_settings(request(), []), 4 * LONG)
            tasks.submit(Part(str(root / "large"), (0,)))
            until(lambda: any(client.processing().values()))
            small.start_worker(memory="3GB")
            client.wait_for_workers(2)
            assert [(answer is not None, reason) for _, answer, reason in tasks.done()] == [(True, "")]


@pytest.mark.slow
def test_addresses_of_a_list_and_of_a_folder_are_read_by_the_workers(cluster: Cluster, tmp_path: Path) -> None:
    store = tmp_path / "store"
    gitrepo.write(store, {"README": "neither\n", "two.zip": gitrepo.zipped({"b.py": function("in_zip")})})
    gitrepo.bare(store / "one.git", {"a.py": function("in_git")})
    assert read(cluster, Path(f"file://{store}"))[0] == ["one", "two"]
    (tmp_path / "list.txt").write_text(f"# ours\nfile://{store}/two.zip\n\n{store}/one.git\nfile://{store}/gone.zip\n")
    names, skipped = read(cluster, Path(f"file://{tmp_path}/list.txt"))
    assert names == ["one", "two"]
    assert skipped.unreadable == [f"file://{store}/gone.zip"]
    assert "cannot fetch" in skipped.notes[0]
    root = Path(f"file://{store}")
    build(request(root, ingest=partial(ingest_on_cluster, scheduler=cluster.address)), tmp_path / "index")
    with pytest.raises(BadInput, match=f"from file://{store}; build it again with --scheduler"):
        Index.update(tmp_path / "index")
    with pytest.raises(BadInput, match="is read by a cluster"):
        build(request(root), tmp_path / "index")


def test_where_no_scheduler_answers_one_line_says_how_to_start_one() -> None:
    with pytest.raises(NcsError, match="start one with: dask scheduler"), connect("tcp://127.0.0.1:9", patience=1):
        pass


def test_a_missing_root_is_reported_as_without_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no .*nowhere; name a folder"):
        ingest_on_cluster(request(tmp_path / "nowhere"), Skipped(), tmp_path, scheduler="tcp://127.0.0.1:9")


def test_a_worker_with_other_code_refuses(tmp_path: Path) -> None:
    job = {"part": {"root": str(tmp_path), "number": [0]}, **job_settings(request(), [])}
    with pytest.raises(NcsError, match="another version of ncs"):
        run({**job, "made_by": "another"})
