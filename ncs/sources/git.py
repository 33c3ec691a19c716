"""Source files of a git revision, read as blobs: of bare repositories, and of work trees at a revision."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import IO, NamedTuple

from ncs.errors import SourceError
from ncs.sources.ignores import NCSIGNORE, Ignores, parse
from ncs.sources.places import Place, Read, common_dir
from ncs.sources.skips import Folders, Sieve, shown

_WINDOW = 30  # object names asked for ahead: two windows fit into any system's pipe, so nobody waits for the other
_CHUNK = 1 << 16


class _Blob(NamedTuple):
    path: str
    name: str
    size: int


def files(place: Place, sieve: Sieve, revision: str | None, *, read: bool = True) -> Iterator[Read]:
    """Source files of one revision (HEAD where None) in git's own order, which is bytewise by path.

    Through one `git ls-tree` and one `git cat-file --batch`, both streaming. Missing objects count
    as unreadable. Raises SourceError where git is not installed, the revision does not exist or the
    repository is damaged.
    """
    with _git(place, "cat-file", "--batch") as objects:
        commit = _commit(objects, place, sieve, revision)
        if commit is None:
            return
        ignores = place.ignores
        if own := _ask(objects, f"{commit}:{place.inside}{NCSIGNORE}"):
            ignores = ignores.with_ncs(parse(own[1], base=place.where))
        listed = _listed(place, f"{commit}:{place.inside}", ignores, sieve)
        if read:
            yield from _contents(objects, listed, place, ignores, sieve)
        else:
            yield from ((blob.path, blob.size, b"") for blob in listed)


def _commit(objects: subprocess.Popen[bytes], place: Place, sieve: Sieve, revision: str | None) -> str | None:
    """The name of the commit to read; None, with a note, where the repository has none."""
    for candidate in [revision] if revision is not None else ["HEAD", *_branches(place)]:
        answer = None if "\n" in candidate else _ask(objects, f"{candidate}^{{commit}}")
        if answer is not None:
            if candidate not in (revision, "HEAD"):
                sieve.skipped.note(f"{shown(place.name)}: HEAD names no commit; read {candidate}")
            return answer[0]
    if revision is not None:
        raise SourceError(f"{place.path} has no revision {revision!r}; name a branch, tag or commit that it has")
    sieve.skipped.add("empty repositories")
    sieve.skipped.note(f"{shown(place.name)}: has no commit")
    return None


def _branches(place: Place) -> Iterator[str]:
    """Where HEAD leads nowhere: the branch main or master, else the one with the newest commit, then its remotes'."""
    for where in ("refs/heads", "refs/remotes"):
        with _git(place, "for-each-ref", "--sort=-committerdate", "--format=%(refname)", where) as refs:
            names = _out(refs).read().decode("utf-8", "surrogateescape").split()
        yield from sorted(names, key=lambda name: not name.endswith(("/main", "/master")))


def _listed(place: Place, tree: str, ignores: Ignores, sieve: Sieve) -> Iterator[_Blob]:
    """The blobs that the sieve lets pass by path and size."""
    missing = _missing(place, tree)
    long = [] if missing else ["--long"]  # asking for the size of a missing object would end git
    with _git(place, "ls-tree", "-r", "-z", *long, tree) as listing:
        folders = Folders(place.where, ignores, sieve)
        for record in _records(_out(listing)):
            about, _, raw = record.partition(b"\t")
            mode, _, name, *size = about.decode().split()
            path = os.fsdecode(raw)
            if mode == "160000":
                sieve.skipped.add("submodules")
            elif not folders.enter(path) or not sieve.file(place.where + path, ignores):
                continue
            elif mode == "120000":
                sieve.skipped.add("links")
            elif name in missing or size == ["BAD"]:
                sieve.unreadable(place.where + path)
            elif sieve.size(int(size[0]) if size else 0):
                yield _Blob(path, name, int(size[0]) if size else 0)
        if listing.wait() != 0:
            raise SourceError(f"git cannot list {place.path}; see what is wrong with: git fsck")


def _missing(place: Place, tree: str) -> set[str]:
    """The objects that a partial clone has left on its server; reading one of them would fetch it."""
    try:
        settings = (common_dir(place.git_dir or place.path) / "config").read_bytes()
    except OSError:
        return set()
    if b"promisor" not in settings and b"partialclone" not in settings.lower():
        return set()
    with _git(place, "rev-list", "--objects", "--missing=print", tree) as objects:
        return {line[1:].strip().decode() for line in _out(objects) if line.startswith(b"?")}


def _contents(
    objects: subprocess.Popen[bytes], listed: Iterator[_Blob], place: Place, ignores: Ignores, sieve: Sieve
) -> Iterator[Read]:
    """The contents of blobs, asked for a window ahead so that git works while the caller does."""
    waiting: list[_Blob] = []
    while True:
        asked = list(islice(listed, _WINDOW))
        _send(objects, "".join(blob.name + "\n" for blob in asked))
        for blob in waiting:
            answer = _answer(objects)
            if answer is None:
                sieve.unreadable(place.where + blob.path)
            elif (data := sieve.content(place.where + blob.path, answer[1], ignores)) is not None:
                yield blob.path, len(data), data
        if not asked:
            return
        waiting = asked


@contextmanager
def _git(place: Place, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
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


def _ask(objects: subprocess.Popen[bytes], name: str) -> tuple[str, bytes] | None:
    _send(objects, name + "\n")
    return _answer(objects)


def _send(objects: subprocess.Popen[bytes], names: str) -> None:
    if objects.stdin is not None and names:
        with suppress(BrokenPipeError):  # git has died: the answers will be None
            os.write(objects.stdin.fileno(), os.fsencode(names))


def _answer(objects: subprocess.Popen[bytes]) -> tuple[str, bytes] | None:
    """(name, content) of the next object; None where it is missing or git has died."""
    header = _out(objects).readline().split()
    if len(header) != 3 or not header[2].isdigit():
        return None
    size = int(header[2])
    content = _out(objects).read(size + 1)
    return (header[0].decode(), content[:-1]) if len(content) == size + 1 else None


def _out(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdout is None:
        raise SourceError("git gave no output")
    return process.stdout


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(_CHUNK):
        *records, rest = (rest + chunk).split(b"\0")
        yield from records
