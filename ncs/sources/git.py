"""Source files of a git revision, read as blobs: of bare repositories, and of work trees at a revision."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from typing import IO, NamedTuple

from ncs.errors import SourceError
from ncs.sources import ignore
from ncs.sources.files import Origin, RawFile, printable
from ncs.sources.filters import Filter, FolderFilter
from ncs.sources.ignore import NCSIGNORE, Ignores
from ncs.sources.repositories import Repository, common_dir

_WINDOW = 30  # object names sent ahead: two windows fit into any system's pipe, so that neither side blocks
_CHUNK = 1 << 16
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # for versions of git that do not know GIT_NO_LAZY_FETCH
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""Git prompts nobody, locks nothing, follows nobody's settings and never goes to the network."""


def files(repository: Repository, filter: Filter, revision: str | None) -> Iterator[RawFile]:
    """Source files of one revision (HEAD where None) in git's own order, which is bytewise by path.

    Through one `git ls-tree` and one `git cat-file --batch`, both streaming. Missing objects count as unreadable.
    Raises SourceError where git is not installed, the revision does not exist or the repository is damaged.
    """
    with closing(ObjectReader(repository)) as objects:
        commit = _commit(objects, repository, filter, revision)
        if commit is None:
            return
        ignores = repository.ignores.without_git()  # what is versioned is not ignored
        tree = f"{commit}:{repository.subfolder}"
        if ncsignore := objects.read(f"{tree}{NCSIGNORE}"):
            ignores = ignores.with_ncs(filter.rules(ignore.parse, ncsignore.content, repository.prefix))

        blobs = _blobs(repository, tree, ignores, filter)
        for blob, unchanged, content in objects.contents(blobs, filter):
            path = repository.prefix + blob.path
            if unchanged:
                yield RawFile(blob.path, blob.size, b"", blob.origin, unchanged=True)
            elif content is None:
                filter.unreadable(path)
            elif (data := filter.content(path, content, ignores)) is not None:
                yield RawFile(blob.path, len(data), data, blob.origin)


def _commit(objects: ObjectReader, repository: Repository, filter: Filter, revision: str | None) -> str | None:
    """The name of the commit to read; None, with a note, where the repository has none."""
    for candidate in [revision] if revision is not None else ["HEAD", *_branches(repository)]:
        commit = None if "\n" in candidate else objects.read(f"{candidate}^{{commit}}")
        if commit is not None:
            if candidate not in (revision, "HEAD"):
                filter.skipped.note(f"{printable(repository.name)}: HEAD names no commit; read {candidate}")
            return commit.name
    if revision is not None:
        raise SourceError(f"{repository.path} has no revision {revision!r}; name a branch, tag or commit that it has")
    filter.skipped.add("empty repositories")
    filter.skipped.note(f"{printable(repository.name)}: has no commit")
    return None


def _branches(repository: Repository) -> Iterator[str]:
    """Where HEAD names no commit: main, master or the branch with the newest commit; then those of remotes."""
    for namespace in ("refs/heads", "refs/remotes"):
        with run_git(repository, "for-each-ref", "--sort=-committerdate", "--format=%(refname)", namespace) as refs:
            names = output(refs).read().decode("utf-8", "surrogateescape").split()
        usual = {"main": 0, "master": 1}
        yield from sorted(names, key=lambda name: usual.get(name.rpartition("/")[2], 2))


class Blob(NamedTuple):
    """A file of a tree: its path, its object's name, its size (0 where unknown)."""

    path: str
    name: str
    size: int
    origin: Origin


def _blobs(repository: Repository, tree: str, ignores: Ignores, filter: Filter) -> Iterator[Blob]:
    """The blobs that the filter accepts by path and size."""
    missing = _missing(repository, tree)
    long = [] if missing else ["--long"]  # asking for the size of a missing object would end git
    # --full-tree: else git lists what lies below the working folder, where that is inside the work tree
    with run_git(repository, "ls-tree", "-r", "-z", "--full-tree", *long, tree) as listing:
        folders = FolderFilter(repository.prefix, ignores, filter)
        for record in _records(output(listing)):
            header, _, raw = record.partition(b"\t")
            mode, _, name, *size = header.decode().split()
            path = os.fsdecode(raw)
            if mode == "160000":
                filter.skipped.add("submodules")
            elif not folders.enter(path) or not filter.file(repository.prefix + path, ignores):
                continue
            elif mode == "120000":
                filter.skipped.add("links")
            elif name in missing or size == ["BAD"]:
                filter.unreadable(repository.prefix + path)
            elif filter.size(n_bytes := int(size[0]) if size else 0, path):
                yield Blob(path, name, n_bytes, Origin(f"{repository.path}/{path}", name))
        if listing.wait() != 0:
            raise SourceError(f"git cannot list {repository.path}; see what is wrong with: git fsck")


def _missing(repository: Repository, tree: str) -> set[str]:
    """The objects that a partial clone has left on its server; reading one of them would fetch it."""
    try:
        settings = (common_dir(repository.git_dir or repository.path) / "config").read_bytes()
    except OSError:
        return set()
    if b"promisor" not in settings and b"partialclone" not in settings.lower():
        return set()
    with run_git(repository, "rev-list", "--objects", "--missing=print", tree) as objects:
        return {line[1:].strip().decode() for line in output(objects) if line.startswith(b"?")}


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(_CHUNK):
        *records, rest = (rest + chunk).split(b"\0")
        yield from records


class Object(NamedTuple):
    """An object's name and content."""

    name: str
    content: bytes


class ObjectReader:
    """A running `git cat-file --batch`, started again where a damaged object has ended it."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._start()

    def _start(self) -> None:
        self._running = ExitStack()
        self._process = self._running.enter_context(run_git(self._repository, "cat-file", "--batch"))

    def close(self) -> None:
        """End git."""
        self._running.close()

    def read(self, name: str) -> Object | None:
        """One object by name or revision; None where it is missing. SourceError where git ends instead."""
        self._send([name])
        try:
            return self._receive()
        except EOFError as error:
            raise SourceError(f"git cannot read {self._repository.path}; see what is wrong with: git fsck") from error

    def contents(self, blobs: Iterator[Blob], filter: Filter) -> Iterator[tuple[Blob, bool, bytes | None]]:
        """(blob, whether it is unchanged, content); the content is None of unchanged and of unreadable blobs.

        Names are sent ahead, so that git works while the caller does.
        """
        waiting: deque[tuple[Blob, bool]] = deque()
        while True:
            if len(waiting) <= _WINDOW:
                window = [(blob, filter.is_unchanged(blob.origin)) for blob in islice(blobs, _WINDOW)]
                self._send([blob.name for blob, unchanged in window if not unchanged])
                waiting.extend(window)
            if not waiting:
                return
            blob, unchanged = waiting.popleft()
            read = None
            try:
                read = None if unchanged else self._receive()
            except EOFError:
                self.close()
                self._start()
                self._send([blob.name for blob, unchanged in waiting if not unchanged])
            yield blob, unchanged, read.content if read else None

    def _send(self, names: list[str]) -> None:
        if self._process.stdin is not None and names:
            with suppress(BrokenPipeError):  # git has died: there will be no answers
                os.write(self._process.stdin.fileno(), os.fsencode("".join(f"{name}\n" for name in names)))

    def _receive(self) -> Object | None:
        """The next object, None for a missing one; EOFError where git has ended."""
        stream = output(self._process)
        header = stream.readline()
        name, *fields = header.split()[:3] or [b""]
        if len(fields) == 2 and fields[1].isdigit():
            size = int(fields[1])
            content = stream.read(size + 1)
            if len(content) == size + 1:
                return Object(name.decode(), content[:-1])
            header = b""
        if not header:
            raise EOFError
        return None


@contextmanager
def run_git(repository: Repository, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running git; it ends with the block. Naming the git directory also settles that it may belong to others."""
    safe = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false")
    try:
        process = subprocess.Popen(
            ["git", f"--git-dir={repository.git_dir}", *safe, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ENVIRONMENT,
            bufsize=_CHUNK,
            close_fds=False,  # twice as fast to start; Python's own files are not inherited anyway
        )
    except OSError as error:
        raise SourceError(f"{repository.path} is read with git, which is not installed; install git") from error
    try:
        yield process
    finally:
        process.kill()
        with process:
            pass


def output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """The output of a git command."""
    if process.stdout is None:
        raise SourceError("git gave no output")
    return process.stdout
