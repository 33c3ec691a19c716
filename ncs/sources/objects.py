"""A running git, kept from doing anything but reading, and the objects it gives."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import IO, NamedTuple

from ncs.errors import SourceError
from ncs.sources.places import Place

_WINDOW = 30  # object names asked for ahead: two windows fit into any system's pipe, so nobody waits for the other
_CHUNK = 1 << 16
KNOWN = b"known already"
"""What `Objects.contents` gives for a blob that was not asked for; compare with `is`."""


class Blob(NamedTuple):
    """A file of a tree: its path, its object's name, its size (0 where unknown)."""

    path: str
    name: str
    size: int


class Object(NamedTuple):
    """An object's name and content."""

    name: str
    content: bytes


class Objects:
    """A running `git cat-file --batch`, started again where a damaged object has ended it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._start()

    def _start(self) -> None:
        self._running = ExitStack()
        self._process = self._running.enter_context(git(self._place, "cat-file", "--batch"))

    def close(self) -> None:
        """End git."""
        self._running.close()

    def ask(self, name: str) -> Object | None:
        """One object by name or revision; None where it is missing. SourceError where git ends instead."""
        self._send([name])
        try:
            return self._receive()
        except EOFError as error:
            raise SourceError(f"git cannot read {self._place.path}; see what is wrong with: git fsck") from error

    def contents(
        self, blobs: Iterator[Blob], known: Callable[[Blob], bool] = lambda blob: False
    ) -> Iterator[tuple[Blob, bytes | None]]:
        """The contents of blobs, asked for ahead so that git works while the caller does; None: cannot be read.

        What is known is not asked for: its content is KNOWN.
        """
        waiting: deque[tuple[Blob, bool]] = deque()
        while True:
            if len(waiting) <= _WINDOW:
                asked = [(blob, known(blob)) for blob in islice(blobs, _WINDOW)]
                self._send([blob.name for blob, passed in asked if not passed])
                waiting.extend(asked)
            if not waiting:
                return
            blob, passed = waiting.popleft()
            if passed:
                yield blob, KNOWN
                continue
            try:
                answer = self._receive()
            except EOFError:
                answer = None
                self.close()
                self._start()
                self._send([blob.name for blob, passed in waiting if not passed])
            yield blob, answer.content if answer else None

    def _send(self, names: list[str]) -> None:
        if self._process.stdin is not None and names:
            with suppress(BrokenPipeError):  # git has died: there will be no answers
                os.write(self._process.stdin.fileno(), os.fsencode("".join(f"{name}\n" for name in names)))

    def _receive(self) -> Object | None:
        """The next answer, None for a missing object; EOFError where git has ended."""
        stream = output(self._process)
        header = stream.readline()
        name, *about = header.split()[:3] or [b""]
        if len(about) == 2 and about[1].isdigit():
            content = stream.read(int(about[1]) + 1)
            if len(content) == int(about[1]) + 1:
                return Object(name.decode(), content[:-1])
            header = b""
        if not header:
            raise EOFError
        return None


@contextmanager
def git(place: Place, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running git; it ends with the block. Naming the git directory also settles that it may belong to others."""
    command = ["git", f"--git-dir={place.git_dir}", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", *arguments]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            bufsize=_CHUNK,
            close_fds=False,  # twice as fast to start; Python's own files are not inherited anyway
        )
    except OSError as error:
        raise SourceError(f"{place.path} is read with git, which is not installed; install git") from error
    try:
        yield process
    finally:
        process.kill()
        with process:
            pass


def _environment() -> dict[str, str]:
    """Git that asks nobody, locks nothing, follows nobody's settings and never goes to the network."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # for versions of git that do not know GIT_NO_LAZY_FETCH
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """What git prints."""
    if process.stdout is None:
        raise SourceError("git gave no output")
    return process.stdout
