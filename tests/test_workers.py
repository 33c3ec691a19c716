"""Tasks in processes that are killed when they go over a limit."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ncs import workers
from ncs.errors import BadInput
from ncs.extract.pool import CHUNK_FILES
from ncs.workers import TaskKilled, Workers, import_silently, start_ahead
from tests.command import invoke
from tests.gitrepo import write
from tests.waiting import LONG, until

pytestmark = pytest.mark.slow


def allocate(size: int) -> int:
    return len(b"x" * size)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise BadInput("no")


def unpickled() -> None:
    raise AssertionError("the process has unpickled what it cannot")


class Odd:
    """Can be sent, but not be read."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return unpickled, ()


class OddError(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def fail_oddly() -> None:
    raise OddError("a", "b")


def test_a_task_over_a_limit_is_killed_and_the_next_one_has_a_fresh_process() -> None:
    with Workers(1, memory=500 << 20) as workers:
        process = workers.submit(os.getpid).result()
        assert workers.submit(allocate, 10 << 20).result() == 10 << 20
        assert workers.submit(os.getpid).result() == process != os.getpid()
        for future in (
            workers.submit(time.sleep, LONG, seconds=0.2),
            workers.submit(allocate, 1 << 30),
            workers.submit(die),
        ):
            with pytest.raises(TaskKilled):
                future.result()
        with pytest.raises(BadInput, match="no"):
            workers.submit(fail).result()
        assert workers.submit(os.getpid).result() != process


def wait_holding_the_lock(seconds: float) -> None:
    """As a parser does: no other thread of the process gets a turn."""
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


def test_processes_that_are_warm_are_ready_before_their_tasks_and_again_after_a_kill() -> None:
    with Workers(1, initialize=time.sleep, arguments=(3,), warm=True) as workers:
        for _ in range(2):
            assert workers.submit(os.getpid, seconds=2).result() != os.getpid()  # the start takes none of its time
            with pytest.raises(TaskKilled):
                workers.submit(die, seconds=2).result()
    with Workers(1, initialize=die, warm=True) as workers, pytest.raises(TaskKilled):
        workers.submit(os.getpid).result()


def test_a_process_that_was_started_ahead_does_the_tasks_of_workers_with_its_arguments_once() -> None:
    def process_of(module: str) -> int:
        with Workers(1, memory=1 << 30, initialize=import_silently, arguments=(module,)) as workers:
            return workers.submit(os.getpid).result()

    start_ahead(1 << 30, import_silently, "json")
    ahead = {child.pid for child in psutil.Process().children()}
    with Workers(1, initialize=repr, arguments=({},)) as others:  # not hashable
        assert others.submit(os.getpid).result() not in ahead
    assert [process_of(module) in ahead for module in ("zlib", "json", "json")] == [False, True, False]


def test_a_build_reads_files_in_the_process_that_it_started_ahead(tmp_path: Path) -> None:
    write(tmp_path, {f"a{number}.py": f"def f{number}():\n    pass\n" for number in range(CHUNK_FILES + 1)})
    assert invoke("build", ".", "--quiet", cwd=tmp_path).returncode == 0
    assert not workers._ahead


def test_a_task_that_lets_no_thread_run_ends_after_its_time_though_the_parent_was_killed() -> None:
    script = (
        "import os, sys, time; from ncs.workers import Workers; from tests import test_workers as t\n"
        "w = Workers(1); print(w.submit(os.getpid).result(), flush=True)\n"
        "w.submit(t.wait_holding_the_lock, 900, seconds=1)\n"
        "time.sleep(900)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        worker = psutil.Process(int(parent.stdout.readline()))
        time.sleep(0.5)  # it has the task
        parent.kill()
    worker.wait(LONG)  # TimeoutExpired where it goes on


def is_interruptible() -> bool:
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.skipif(sys.platform == "win32", reason="it has no masks of signals")
def test_ctrl_c_is_for_the_parent_from_the_first_instruction_of_a_process_on() -> None:
    script = (  # the first process of a program, which starts the tracker of resources, too
        "from tests.test_workers import *\n"
        "with Workers(2) as workers:\n"
        "    print([workers.submit(is_interruptible).result() for _ in range(2)], is_interruptible())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[False, False] True\n"


def test_a_module_of_the_working_folder_is_not_imported(tmp_path: Path) -> None:
    for name in ("multiprocessing", "os", "re", "typing", "site", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')")
    script = "from ncs.workers import Workers; import os; print(Workers(1).submit(os.getpid).result())"
    script = f"import sys; sys.path[0] = {str(Path(__file__).parents[1])!r}; {script}"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=LONG, check=False
    )
    assert run.stdout.strip().isdigit(), run.stderr
    assert not (tmp_path / "ran").exists()


def test_no_process_reads_the_stdin_that_was_taken_before_it_started() -> None:
    script = (
        "import os, subprocess, sys; from ncs.workers import take_stdin; stdin = take_stdin()\n"
        "subprocess.run([sys.executable, '-c', 'import os; print(os.read(0, 9), flush=True)'])\n"
        "print(os.read(stdin, 9))"
    )
    done = subprocess.run([sys.executable, "-c", script], input="ours", capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["b''", "b'ours'"]


def test_closing_kills_what_runs_and_drops_what_waits() -> None:
    began = time.monotonic()
    workers = Workers(1)
    workers.submit(os.getpid).result()
    running, waiting = workers.submit(time.sleep, LONG), workers.submit(os.getpid)
    until(running.running)
    workers.close()
    with pytest.raises(TaskKilled):
        running.result()
    assert waiting.cancelled()
    assert time.monotonic() - began < LONG


def test_an_idle_process_that_dies_is_replaced_before_the_next_task() -> None:
    with Workers(1) as workers:
        process = workers.submit(os.getpid).result()
        idle = psutil.Process(process)
        idle.kill()
        until(lambda: not idle.is_running() or idle.status() == psutil.STATUS_ZOMBIE)
        assert workers.submit(os.getpid).result() != process


def test_what_initialize_raises_is_the_error_of_every_task() -> None:
    with Workers(1, initialize=fail) as workers:
        for _ in range(2):
            with pytest.raises(BadInput, match="no"):
                workers.submit(os.getpid).result()


def test_what_cannot_be_pickled_is_the_error_of_its_task_and_the_process_lives_on() -> None:
    with Workers(1) as workers:
        process = workers.submit(os.getpid).result()
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
            workers.submit(lambda: None).result()
        with pytest.raises(AssertionError, match="unpickled"):
            workers.submit(repr, Odd()).result()
        with pytest.raises(RuntimeError, match=r"OddError\('ab'\)"):
            workers.submit(fail_oddly).result()
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
            workers.submit(eval, "lambda: None").result()
        assert workers.submit(os.getpid).result() == process


def test_a_task_submitted_after_closing_is_cancelled() -> None:
    workers = Workers(1)
    workers.close()
    assert workers.submit(os.getpid).cancelled()
