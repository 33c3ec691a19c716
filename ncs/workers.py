"""Processes that do tasks within limits of time and memory: one over a limit is killed, and nothing is tried twice."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import re
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing import resource_tracker, util
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from ncs.errors import BadInput, NcsError
from ncs.messages import TIMEOUT

T = TypeVar("T")
START_SECONDS = 120
"""Seconds in which a process must become ready for its first task."""
ORPHAN_SECONDS = 5
"""Seconds after its time limit at which a task ends by itself, in case the parent is gone and cannot kill it."""
_starting = threading.Lock()
"""Held while a process starts, as `__main__` and the working folder are hidden from it."""


PARSE_SECONDS, PARSE_MEMORY = 30.0, 1 << 30
"""Limits of `run_limited`."""
READ_MEMORY = 640 << 20
"""Bytes that a process which reads files may allocate: some 500 MB for a file. Ordinary chunks take less than half."""


class TaskKilled(NcsError):
    """A task took too long or too much memory, or its process died."""


class TaskTimeout(TaskKilled):
    """A task took too long."""


class Workers:
    """`count` processes that share a queue of tasks; each is started when there is a task for it, or before if `warm`.

    memory: bytes that one may allocate, as of `limit_memory`. initialize: called first in each with
    `arguments`; it counts for no task's time. Functions and arguments must be importable and picklable. Interrupts are
    left to the caller.
    """

    def __init__(
        self,
        count: int,
        *,
        memory: int | None = None,
        initialize: Callable[..., object] | None = None,
        arguments: tuple[object, ...] = (),
        warm: bool = False,
    ) -> None:
        self._start_arguments, self._warm = (memory, initialize, arguments), warm
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._processes: list[BaseProcess | None] = [None] * count
        self._closed = False
        self._threads = [threading.Thread(target=self._serve, args=(slot,), daemon=True) for slot in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., T], *arguments: object, seconds: float | None = None) -> Future[T]:
        """The future result of a task; it raises TaskKilled where the task went over a limit or its process died.

        seconds: of running, not of waiting in the queue.
        """
        future: Future[T] = Future()
        self._tasks.put((future, function, arguments, seconds))
        if self._closed:
            future.cancel()
        return future

    def close(self) -> None:
        """Kill what runs and drop what waits: those futures raise TaskKilled or are cancelled."""
        self._closed = True
        for _ in self._threads:
            self._tasks.put(None)
        for process in self._processes:
            if process is not None:
                process.kill()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _serve(self, slot: int) -> None:
        """Hand tasks to the process of this slot, and start another where it has died."""
        connection: Connection | None = None
        while True:
            if self._warm and connection is None:
                with suppress(Exception):  # the next task will raise it
                    connection = self._start(slot, None)
            if (task := self._tasks.get()) is None:
                break
            future, function, arguments, seconds = task
            if self._closed:
                future.cancel()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                process = self._processes[slot]
                if connection is None or process is None or not process.is_alive():  # it may die between tasks
                    connection = self._start(slot, connection)
                connection.send((function, arguments, seconds))
                succeeded, value = _answer(connection, seconds)
            except (EOFError, OSError):
                succeeded, value = False, TaskKilled("its process died; memory may have run out")
            except Exception as error:  # TaskKilled; or of `initialize` or pickle, and its process is well
                succeeded, value = False, error
            if isinstance(value, MemoryError):
                value = TaskKilled("it took too much memory")
            if isinstance(value, TaskKilled):
                self._stop(slot, connection)
                connection = None
            if succeeded:
                future.set_result(value)
            else:
                future.set_exception(value)
        self._stop(slot, connection)

    def _start(self, slot: int, last: Connection | None) -> Connection:
        """A new process, ready for tasks; raises what `initialize` raised."""
        self._stop(slot, last)
        ahead = _ahead.pop(pickle.dumps(self._start_arguments), None)
        process, ours = ahead if ahead and ahead[0].is_alive() else _spawn(self._start_arguments)
        self._processes[slot] = process
        if self._closed:
            process.kill()
        succeeded, value = _answer(ours, START_SECONDS)
        if not succeeded:
            raise value
        return ours

    def _stop(self, slot: int, connection: Connection | None) -> None:
        if connection is not None:
            connection.close()
        if (process := self._processes[slot]) is not None:
            process.kill()
            process.join()
        self._processes[slot] = None


def _answer(connection: Connection, seconds: float | None) -> tuple[bool, Any]:
    if not connection.poll(seconds):
        raise TaskTimeout(TIMEOUT.format(seconds=seconds))
    answer: tuple[bool, Any] = pickle.loads(connection.recv_bytes())  # noqa: S301  (of our own process)
    return answer


_Arguments = tuple["int | None", "Callable[..., object] | None", tuple[object, ...]]
_ahead: dict[bytes, tuple[BaseProcess, Connection]] = {}
"""Processes that no Workers have taken yet, by the arguments that these start them with, pickled."""


def take_stdin() -> int:
    """A descriptor of stdin that processes started later do not have. They could read what is ours, and on Windows none
    starts while a thread reads from its stdin (python/cpython#78961)."""
    ours, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return ours


def start_ahead(memory: int | None, initialize: Callable[..., object], *arguments: object) -> None:
    """Start a process now, for Workers with these arguments: it imports while its parent does.

    A process that has limits itself starts none.
    """
    start = memory, initialize, arguments
    key = pickle.dumps(start)
    if key not in _ahead and not multiprocessing.current_process().daemon:
        _ahead[key] = _spawn(start)


def import_silently(*modules: str) -> None:
    """`initialize` of processes that read files; hides stderr, on which a parser writes before it aborts."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        for module in modules:
            import_module(module)
    except (ImportError, OSError) as error:  # the parent could
        raise MemoryError from error


def _spawn(arguments: _Arguments) -> tuple[BaseProcess, Connection]:
    """A process that will say when it is ready, and the connection to it."""
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, *arguments), daemon=True)
    with _starting:
        main, flags = sys.modules["__main__"], util._args_from_interpreter_flags  # type: ignore[attr-defined]
        sys.modules["__main__"] = ModuleType("__main__")  # else the caller's script would run again
        # else a multiprocessing.py of the working folder, which may be a stranger's repository, would run
        util._args_from_interpreter_flags = lambda: [*flags(), "-I"]  # type: ignore[attr-defined]
        mask = None
        try:
            if hasattr(signal, "pthread_sigmask"):
                resource_tracker.ensure_running()  # it would undo the next line, when the first process starts
                # inherited: ctrl-C is for this process
                mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            process.start()
        finally:
            sys.modules["__main__"] = main
            util._args_from_interpreter_flags = flags  # type: ignore[attr-defined]
            if mask is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    theirs.close()
    return process, ours


_Task = tuple["Future[Any]", Callable[..., Any], tuple[object, ...], "float | None"]


def _work(
    connection: Connection,
    memory: int | None,
    initialize: Callable[..., object] | None,
    arguments: tuple[object, ...],
) -> None:
    """Say that the process is ready, and do tasks until the parent closes the connection or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    if memory is not None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # stacks of a thread for every core count as memory
        limit_memory(memory)
    with suppress(EOFError, OSError):  # the parent has closed it
        connection.send_bytes(_do(initialize or _nothing, *arguments))
        while True:
            connection.send_bytes(_do(_unpickle_and_call, connection.recv_bytes()))


def _do(function: Callable[..., object], *arguments: object) -> bytes:
    """Whether it succeeded, and its value or error, pickled."""
    try:
        return pickle.dumps((True, function(*arguments)))
    except Exception as error:
        try:
            pickle.loads(answer := pickle.dumps((False, error)))  # noqa: S301
        except Exception:
            return pickle.dumps((False, RuntimeError(repr(error))))
        return answer
    finally:
        _set_alarm(None)


def _nothing() -> None:
    pass


def _unpickle_and_call(task: bytes) -> object:
    function, arguments, seconds = pickle.loads(task)  # noqa: S301  (of the parent)
    _set_alarm(seconds and seconds + ORPHAN_SECONDS)
    return function(*arguments)


def _set_alarm(seconds: float | None) -> None:
    """Let the system end this process then, if the parent is gone and no thread of it gets a turn."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds or 0)


PARSING = "this code cannot be parsed", "name or send other code"


def run_limited(function: Callable[..., T], *arguments: object, limits: tuple[str, str] = PARSING) -> T:
    """The result of a function, such as one that parses code, from a process of its own; here in one that has limits.

    limits: what a BadInput says where it goes over a limit, and the remedy.
    """
    if multiprocessing.current_process().daemon:
        return function(*arguments)
    try:
        return _parsers().submit(function, *arguments, seconds=PARSE_SECONDS).result()
    except TaskKilled as error:
        raise BadInput(f"{limits[0]} ({error}); {limits[1]}") from None


@cache
def _parsers() -> Workers:
    return Workers(2, memory=PARSE_MEMORY)


def limit_memory(memory: int) -> None:
    """Let this process allocate at most so many bytes more, without mapped files; only Linux has such a limit."""
    with suppress(ImportError, OSError, IndexError, ValueError):
        import resource

        memory += int(re.findall(r"VmData:\s*(\d+)", Path("/proc/self/status").read_text())[0]) << 10
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = min([memory, *(bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY)])
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _exit_with_parent() -> None:
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    os._exit(1)
