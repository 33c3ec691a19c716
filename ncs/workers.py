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
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from ncs.errors import NcsError

T = TypeVar("T")
ORPHAN_SECONDS = 5
"""After its time limit a task ends even if nobody is left to kill it."""
_starting = threading.Lock()
"""Held while a process starts, as `__main__` is hidden from it."""


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
                with suppress(EOFError, OSError):
                    connection = self._start(slot)
            if (task := self._tasks.get()) is None:
                break
            future, function, arguments, seconds = task
            if self._closed:
                future.cancel()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if (process := self._processes[slot]) is not None and not process.is_alive():  # killed from outside
                    self._stop(slot, connection)
                    connection = None
                if connection is None:
                    connection = self._start(slot)
                connection.send((function, arguments, seconds))
                succeeded, value = self._answer(slot, connection, seconds)
            except TaskKilled as error:
                succeeded, value = False, error
            except (EOFError, OSError):
                succeeded, value = False, TaskKilled("its process died; memory may have run out")
            except Exception as error:  # (of pickle: the task cannot be sent, its process is well)
                future.set_exception(error)
                continue
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

    def _answer(self, slot: int, connection: Connection, seconds: float | None) -> tuple[bool, Any]:
        if not connection.poll(seconds):
            raise TaskTimeout(f"it took more than {seconds:g} seconds")
        answer: tuple[bool, Any] = pickle.loads(connection.recv_bytes())  # noqa: S301  (of our own process)
        return answer

    def _start(self, slot: int) -> Connection:
        context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, *self._start_arguments), daemon=True)
        with _starting:
            main = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")  # else the caller's script would run again
            try:
                process.start()
            finally:
                sys.modules["__main__"] = main
        theirs.close()
        self._processes[slot] = process
        if self._closed:
            process.kill()
        try:
            ours.recv_bytes()  # it is ready
        except EOFError:
            self._stop(slot, ours)
            raise
        return ours

    def _stop(self, slot: int, connection: Connection | None) -> None:
        if connection is not None:
            connection.close()
        if (process := self._processes[slot]) is not None:
            process.kill()
            process.join()
        self._processes[slot] = None


_Task = tuple["Future[Any]", Callable[..., Any], tuple[object, ...], "float | None"]


def _work(
    connection: Connection,
    memory: int | None,
    initialize: Callable[..., object] | None,
    arguments: tuple[object, ...],
) -> None:
    """Do tasks until the parent closes the connection or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    if memory is not None:
        limit_memory(memory)
    if initialize is not None:
        initialize(*arguments)
    connection.send_bytes(b"ready")
    while True:
        try:
            function, values, seconds = connection.recv()
        except EOFError:
            return
        _set_alarm(seconds and seconds + ORPHAN_SECONDS)
        try:
            answer = pickle.dumps((True, function(*values)))
        except Exception as error:
            answer = pickle.dumps((False, _portable(error)))
        _set_alarm(None)
        connection.send_bytes(answer)
        del answer, values


def _set_alarm(seconds: float | None) -> None:
    """Let the system end this process then, if the parent is gone and no thread of it gets a turn."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds or 0)


def _portable(error: Exception) -> Exception:
    """The error as it can be sent."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:
        return RuntimeError(repr(error))
    return error


def limit_memory(memory: int) -> None:
    """Let this process allocate at most so many bytes more, without mapped files; only Linux has such a limit."""
    with suppress(ImportError, OSError, IndexError, ValueError):
        import resource

        memory += int(re.findall(r"VmData:\s*(\d+)", Path("/proc/self/status").read_text())[0]) << 10
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory if hard < 0 else min(memory, hard), hard))


def _exit_with_parent() -> None:
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    os._exit(1)
