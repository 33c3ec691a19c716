"""Source files of a git revision, read as blobs: bare repositories, and work trees at `revision`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ncs.errors import SourceError
from ncs.sources.folders import Place, Read
from ncs.sources.ignores import NCSIGNORE, Ignores, parse
from ncs.sources.skips import Sieve, shown

_WINDOW = 64  # object names asked for ahead: 2.6 KB, which every system's pipe takes without blocking


def files(place: Place, sieve: Sieve, revision: str | None, *, read: bool) -> Iterator[Read]:
    """Source files of one revision (HEAD where none is named), in git's own order, which is bytewise by path.

    Raises SourceError where git is not installed or the revision does not exist.
    """
    git = _command(place)
    commit = _commit(git, place, revision, sieve)
    if commit is None:
        return
    ignores = place.ignores
    own = _run([*git, "cat-file", "blob", f"{commit}:{NCSIGNORE}"])
    if own.returncode == 0:
        ignores = ignores.with_ncs(parse(own.stdout, place.where))
    listed = _listed(git, commit, place, ignores, sieve)
    if not read:
        yield from ((path, size, b"") for path, _, size in listed)
        return
    yield from _blobs(git, listed, place, ignores, sieve)


def _command(place: Place) -> list[str]:
    folder = place.path if place.kind == "bare" else os.path.join(place.path, ".git")
    # an explicit --git-dir also settles whose folder it may be; nothing here runs hooks or filters
    return ["git", f"--git-dir={folder}", "-c", "safe.directory=*", "-c", "core.fsmonitor=false"]


def _environment() -> dict[str, str]:
    """Git that asks nobody, locks nothing, reads no one's settings and never goes to the network."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # git before 2.45 does not know GIT_NO_LAZY_FETCH
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "LC_ALL": "C",
    }


def _run(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, capture_output=True, check=False, env=_environment(), stdin=subprocess.DEVNULL)
    except FileNotFoundError as missing:
        raise SourceError("git is not installed, and a git revision is to be read; install git") from missing


def _commit(git: list[str], place: Place, revision: str | None, sieve: Sieve) -> str | None:
    """The commit to read; None with a note where there is none."""
    name = shown(place.where.rstrip("/") or Path(place.path).name)
    for candidate in [revision] if revision else ["HEAD", *_branches(git)]:
        if candidate.startswith("-"):
            break
        done = _run([*git, "rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}"])
        if done.returncode == 0:
            if candidate not in (revision, "HEAD"):
                sieve.skipped.note(f"{name}: HEAD points to no commit, read {candidate} instead")
            return done.stdout.decode().strip()
    if revision:
        if not place.where:
            raise SourceError(f"{place.path} has no revision {revision!r}; name a branch, tag or commit of it")
        sieve.skipped.add("repositories without the revision")
        sieve.skipped.note(f"{name}: has no revision {revision!r}")
    else:
        sieve.skipped.add("empty repositories")
        sieve.skipped.note(f"{name}: has no commit")
    return None


def _branches(git: list[str]) -> list[str]:
    """Branches to take where HEAD leads nowhere: main, master, then the one with the newest commit."""
    listed = _run([*git, "for-each-ref", "--sort=-committerdate", "--format=%(refname)", "refs/heads", "refs/remotes"])
    names = listed.stdout.decode("utf-8", "surrogateescape").split()
    usual = [f"refs/{where}/{name}" for where in ("heads", "remotes/origin") for name in ("main", "master")]
    return [name for name in usual if name in names] + names


def _listed(
    git: list[str], commit: str, place: Place, ignores: Ignores, sieve: Sieve
) -> Iterator[tuple[str, str, int]]:
    """(path, object name, size) of the blobs that the sieve lets pass by their path and size."""
    command = [*git, "ls-tree", "-r", "-z", "--long", "--full-tree", commit]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=_environment()
    ) as process:
        assert process.stdout is not None
        folders = Folders(place.where, ignores, sieve)
        try:
            for line in _records(process.stdout):
                about, _, raw = line.partition(b"\t")
                mode, kind, object_name, size = about.split()
                path = os.fsdecode(raw)
                if kind != b"blob" or mode == b"120000":
                    if sieve.wanted(path):
                        sieve.skipped.add("links")
                    continue
                if not folders.enter(path) or not sieve.file(place.where + path, ignores):
                    continue
                if not size.isdigit():
                    sieve.skipped.add_unreadable(shown(place.where + path))
                elif sieve.size(int(size)):
                    yield path, object_name.decode(), int(size)
        finally:
            process.kill()


class Folders:
    """Asks the sieve once for each folder on the way to files that come in path order."""

    def __init__(self, where: str, ignores: Ignores, sieve: Sieve) -> None:
        self._where, self._ignores, self._sieve = where, ignores, sieve
        self._open: list[str] = []  # folders entered, outermost first
        self._shut: str | None = None  # the folder not entered

    def enter(self, path: str) -> bool:
        """Are all folders above this file entered?"""
        if self._shut is not None and path.startswith(self._shut):
            return False
        self._shut = None
        while self._open and not path.startswith(self._open[-1]):
            self._open.pop()
        known = self._open[-1] if self._open else ""
        for name in path[len(known) :].split("/")[:-1]:
            known += name + "/"
            if not self._sieve.folder(self._where + known, self._ignores):
                self._shut = known
                return False
            self._open.append(known)
        return True


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(1 << 16):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole


def _blobs(
    git: list[str], listed: Iterator[tuple[str, str, int]], place: Place, ignores: Ignores, sieve: Sieve
) -> Iterator[Read]:
    """The content of blobs through one `git cat-file --batch`, asked for a window ahead."""
    with subprocess.Popen(
        [*git, "cat-file", "--batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        bufsize=1 << 16,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            waiting: list[str] = []
            while True:
                asked = [item for _, item in zip(range(_WINDOW), listed, strict=False)]
                process.stdin.write("".join(f"{name}\n" for _, name, _ in asked).encode())
                process.stdin.flush()
                for path in waiting:
                    data = _answer(process.stdout)
                    if data is None:
                        sieve.skipped.add_unreadable(shown(place.where + path))
                    elif sieve.content(place.where + path, data, ignores):
                        yield path, len(data), data
                waiting = [path for path, _, _ in asked]
                if not waiting:
                    break
        finally:
            process.kill()


def _answer(stream: IO[bytes]) -> bytes | None:
    header = stream.readline().split()
    if len(header) != 3:  # "<name> missing", or git has died
        return None
    size = int(header[2])
    data = stream.read(size + 1)
    return data[:-1] if len(data) == size + 1 else None
