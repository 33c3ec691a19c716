"""Source files of a git revision, read as blobs: of bare repositories, and of work trees at a revision.

A repository may be a stranger's. Its settings can name pipes and files to read, its links and alternates other
repositories, and a few small objects can unpack to any size. So git runs in a git directory of ours that holds nothing
but a HEAD and links to the refs, and uses the objects once they are checked (`Git`); what it may list and how long it
may take grows with the bytes of the repository, and how much memory it may take has a limit.
"""

from __future__ import annotations

import io
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple, cast

from ncs.errors import SourceError
from ncs.files import read_regular
from ncs.sources import ignore
from ncs.sources.files import LONGEST_PATH, Origin, RawFile, printable
from ncs.sources.filters import Filter, FolderFilter
from ncs.sources.ignore import NCSIGNORE, Ignores
from ncs.sources.repositories import Repository, settings

_CHUNK = 1 << 16
_SECONDS, _BYTES_A_SECOND = 30, 1 << 20  # waiting for git: half a minute, and a second for each of so many bytes
_FEW_FILES, _BYTES_A_FILE = 10_000, 16  # the name of an object alone takes 20
_ALTERNATES, _ALTERNATES_BYTES = 50, 1 << 13  # folders of objects, and bytes of a file that names them
_COMMIT_BYTES = 1 << 20
_BRANCHES = 10_000
_MAX_BYTES = 1 << 32  # that count for the bounds: a file with holes has any size
_FORMAT = re.compile(r"^[ \t]*(repositoryformatversion|objectformat|refstorage)[ \t]*=[ \t]*(\w+)", re.M | re.I)
_HEADER = re.compile(rb"([0-9a-f]{40,64}) (?:commit|tree|blob|tag) (\d{1,18})\n")
_UNSAFE = re.compile(rb"(?:^|/)\.{0,2}(?:/|$)")
_SETTINGS = ("bare = true", "multiPackIndex = false", "commitGraph = false")
"""A multi-pack index may name packs of another repository."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # for versions of git that do not know GIT_NO_LAZY_FETCH
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOC_LIMIT": "128m",  # of one object; that of the largest notebook is 32 MiB
    "LC_ALL": "C",
}
"""Git prompts nobody, locks nothing, follows nobody's settings and never goes to the network."""


def files(repository: Repository, filter: Filter, revision: str | None) -> Iterator[RawFile]:
    """Source files of one revision (HEAD where None) in git's own order, which is bytewise by path.

    Through one `git ls-tree` and one `git cat-file --batch`, both streaming. Missing objects count as unreadable.
    Raises SourceError where git is not installed, the revision does not exist or the repository is damaged.
    """
    with open_git(repository) as git, closing(ObjectReader(git)) as objects:
        commit = _commit(git, objects, filter, revision)
        if commit is None:
            return
        ignores = repository.ignores.without_git()  # what is versioned is not ignored
        tree = f"{commit}:{repository.subfolder}"
        if ncsignore := objects.read(f"{tree}{NCSIGNORE}", ignore.MAX_BYTES):
            ignores = ignores.with_ncs(filter.rules(ignore.parse, ncsignore.content, repository.prefix))

        for blob in _blobs(git, tree, ignores, filter):
            path = repository.prefix + blob.path
            if filter.is_unchanged(blob.origin):
                yield RawFile(blob.path, blob.size, b"", blob.origin, unchanged=True)
            elif (content := objects.content(blob)) is None:
                filter.skipped.add_unreadable(path)
            elif (data := filter.content(path, content, ignores)) is not None:
                yield RawFile(blob.path, len(data), data, blob.origin)


def _commit(git: Git, objects: ObjectReader, filter: Filter, revision: str | None) -> str | None:
    """The name of the commit to read; None, with a note, where the repository has none."""
    repository = git.repository
    for candidate in [revision] if revision is not None else ["HEAD", *_branches(git)]:
        commit = None if "\n" in candidate else objects.read(f"{candidate}^{{commit}}", _COMMIT_BYTES)
        if commit is not None:
            if candidate not in (revision, "HEAD"):
                filter.skipped.note(f"{printable(repository.name)}: HEAD names no commit; read {candidate}")
            return commit.name
    if revision is not None:
        raise SourceError(f"{repository.path} has no revision {revision!r}; name a branch, tag or commit that it has")
    filter.skipped.add("empty repositories")
    filter.skipped.note(f"{printable(repository.name)}: has no commit")
    return None


def _branches(git: Git) -> Iterator[str]:
    """Where HEAD names no commit: main, master or the branch with the newest commit; then those of remotes."""
    for namespace in ("refs/heads", "refs/remotes"):
        newest = ("--sort=-committerdate", f"--count={_BRANCHES}")
        with git.run("for-each-ref", *newest, "--format=%(refname)", namespace) as (_, refs):
            names = refs.read().decode("utf-8", "surrogateescape").split()
        usual = {"main": 0, "master": 1}
        yield from sorted(names, key=lambda name: usual.get(name.rpartition("/")[2], 2))


class Blob(NamedTuple):
    """A file of a tree. The stamp of its origin is the name of its object."""

    path: str
    size: int
    origin: Origin


def _blobs(git: Git, tree: str, ignores: Ignores, filter: Filter) -> Iterator[Blob]:
    """The blobs that the filter accepts by path and size; SourceError for more than the repository can hold."""
    repository, files, content_bytes = git.repository, 0, 0
    most_files, most_bytes = _FEW_FILES + git.n_bytes // _BYTES_A_FILE, filter.limits.unpacked(git.n_bytes)
    # --full-tree: else git lists what lies below the working folder, where that is inside the work tree
    with git.run("ls-tree", "-r", "-z", "--full-tree", "--long", tree) as (listing, output):
        folders = FolderFilter(repository.prefix, ignores, filter)
        for record in _records(output):
            header, _, raw = record.partition(b"\t")
            mode, _, name, size = header.decode().split()
            path = os.fsdecode(raw)
            if (files := files + 1) > most_files or content_bytes > most_bytes:
                raise SourceError(f"{repository.path} lists more than its {git.n_bytes:,} bytes can hold; leave it out")
            if mode == "160000":
                filter.skipped.add("submodules")
            elif len(raw) > LONGEST_PATH or _UNSAFE.search(raw):
                filter.skipped.add("unsafe paths")
            elif not folders.enter(path) or not filter.file(repository.prefix + path, ignores):
                continue
            elif mode == "120000":
                filter.skipped.add("links")
            elif size == "BAD":
                filter.skipped.add_unreadable(repository.prefix + path)
            elif filter.size(n_bytes := int(size), path):
                content_bytes += n_bytes
                yield Blob(path, n_bytes, Origin.within(repository.path, path, name))
        if listing.wait() != 0:
            raise SourceError(f"git cannot list {repository.path}; see what is wrong with: git fsck")


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(_CHUNK):
        *records, rest = (rest + chunk).split(b"\0")
        yield from records
        if len(rest) > _CHUNK:
            raise SourceError("git lists a path of more than 64 KiB; leave the repository out")


class Object(NamedTuple):
    """An object's name and content; None for a larger one than was asked for."""

    name: str
    content: bytes | None


class ObjectReader:
    """A running `git cat-file --batch`, started again where a damaged object has ended it."""

    def __init__(self, git: Git) -> None:
        self._git, self._running = git, ExitStack()
        self._restart()

    def _restart(self) -> None:
        self._running.close()
        self._process, self._output = self._running.enter_context(self._git.run("cat-file", "--batch"))

    def close(self) -> None:
        """End git."""
        self._running.close()

    def read(self, name: str, limit: int) -> Object | None:
        """One object by name or revision; None where it is missing. SourceError where git ends instead."""
        self._send(name)
        try:
            return self._receive(limit)
        except EOFError as error:
            path = self._git.repository.path
            raise SourceError(f"git cannot read {path}; see what is wrong with: git fsck") from error

    def content(self, blob: Blob) -> bytes | None:
        """The content of a blob; None where it cannot be read."""
        self._send(blob.origin.stamp)
        try:
            read = self._receive(blob.size)
        except EOFError:
            self._restart()
            return None
        return read.content if read else None

    def _send(self, name: str) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):  # git has died: there will be no answer
                os.write(self._process.stdin.fileno(), os.fsencode(f"{name}\n"))

    def _receive(self, limit: int) -> Object | None:
        """The next object, None for a missing one; EOFError where git has ended."""
        header = self._output.readline()
        if not header:
            raise EOFError
        if (match := _HEADER.fullmatch(header)) is None:
            return None
        name, size = match[1].decode(), int(match[2])
        if size > limit:
            self._restart()
            return Object(name, None)
        content = self._output.read(size + 1)
        if len(content) <= size:
            raise EOFError
        return Object(name, content[:-1])


@contextmanager
def open_git(repository: Repository) -> Iterator[Git]:
    """Git over one repository; SourceError where that cannot be read."""
    with TemporaryDirectory(prefix="ncs-git-") as room:
        try:
            git = Git(repository, Path(room))
        except (OSError, ValueError, RuntimeError) as error:  # ValueError: \0 in a path; RuntimeError: a loop of links
            reason = getattr(error, "strerror", None) or error
            raise SourceError(f"cannot read {repository.path}: {reason}; see what is wrong with: git fsck") from error
        yield git


class Git:
    """Git over the objects and refs of one repository; no other file of it is read, and of its settings the format.

    repository, n_bytes: the repository, and the bytes that its objects and refs have on disk. Raises SourceError
    where they hold links, pipes or the like, or lead out of the repository's border.
    """

    def __init__(self, repository: Repository, own: Path) -> None:
        """own: an empty folder."""
        self.repository = repository
        if repository.git is None:
            raise SourceError(
                f"the git directory of {repository.path} lies outside of the folder that was named;"
                f" name one that holds both, or the git directory itself"
            )
        self._own, self._objects = own, (repository.git.common / "objects").resolve()
        self._border = repository.git.border
        self.n_bytes = self._check_objects()
        self._make_directory(own, repository.git.path, repository.git.common)
        self.n_bytes = min(self.n_bytes, _MAX_BYTES)
        self.seconds = _SECONDS + self.n_bytes / _BYTES_A_SECOND

    def _make_directory(self, own: Path, git_dir: Path, common: Path) -> None:
        head = b"ref: refs/heads/.invalid\n"
        with suppress(OSError):
            head = read_regular(git_dir / "HEAD", LONGEST_PATH, follow=False)
        (own / "HEAD").write_bytes(head)
        formats = {name.lower(): value for name, value in _FORMAT.findall(settings(common))}
        version = formats.pop("repositoryformatversion", "0")
        lines = [f"[core]\nrepositoryformatversion = {version}", *_SETTINGS, "[extensions]"]
        lines += (f"{name} = {value}" for name, value in formats.items())
        (own / "config").write_text("\n".join(lines), encoding="utf-8")
        for source in (common / "refs", common / "packed-refs", common / "reftable", git_dir / "logs"):
            if source.exists():
                real = source.resolve()
                self.n_bytes += self._check(real)
                _link(own / source.name, real)
        (own / "refs").mkdir(exist_ok=True)

    def _check_objects(self) -> int:
        """The bytes of the folder of objects and of its alternates."""
        n_bytes, waiting, seen = 0, [self._objects], {self._objects}
        while waiting:
            folder = waiting.pop()
            n_bytes += self._check(folder)
            alternates = folder / "info" / "alternates"
            lines = (
                read_regular(alternates, _ALTERNATES_BYTES, follow=False).split(b"\n") if alternates.exists() else []
            )
            for line in [os.fsdecode(line) for line in lines if line and line[:1] != b"#"]:
                real = (folder / line).resolve()
                # some versions of git take `..` away before they follow links, others after it
                same = real == Path(os.path.normpath(folder / line)).resolve()
                if not same or line[0] == '"' or len(seen) > _ALTERNATES:
                    raise self._outside(alternates)
                if real not in seen:
                    seen.add(real)
                    waiting.append(real)
        return n_bytes

    def _check(self, top: Path) -> int:
        """The bytes of a file, or of all files below a folder, none of which may be a link or a special file."""
        if not top.is_relative_to(self._border):
            raise self._outside(top)
        if top.is_file():
            return top.stat().st_size
        n_bytes, folders = 0, [str(top)]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        with suppress(FileNotFoundError):  # git tidies up meanwhile
                            n_bytes += entry.stat(follow_symlinks=False).st_size
                    else:
                        raise self._outside(Path(entry.path))
        return n_bytes

    def _outside(self, path: Path) -> SourceError:
        return SourceError(
            f"{path} is no regular file or leads out of the folder that was named; name one that holds both,"
            f" or copy all objects into {self.repository.path} with: git repack -a -d"
        )

    @contextmanager
    def run(self, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
        """A running git and its output; it ends with the block."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            process = subprocess.Popen(
                ["git", f"--git-dir={self._own}", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=own | _ENVIRONMENT | {"GIT_OBJECT_DIRECTORY": str(self._objects)},
                bufsize=0,
                close_fds=False,  # twice as fast to start; Python's own files are not inherited anyway
            )
        except OSError as error:
            path = self.repository.path
            raise SourceError(f"{path} is read with git, which is not installed; install git") from error
        try:
            yield process, io.BufferedReader(_Output(self, cast("IO[bytes]", process.stdout)), _CHUNK)
        finally:
            process.kill()
            with process:
                pass


class _Output(io.RawIOBase):
    """The output of a git command, which is not waited for longer than its repository may take."""

    def __init__(self, git: Git, pipe: IO[bytes]) -> None:
        self._git, self._pipe = git, pipe.fileno()
        self._poll = None
        if hasattr(select, "poll"):  # Windows has none
            self._poll = select.poll()
            self._poll.register(self._pipe, select.POLLIN)

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what there is."""
        if self._poll is not None:
            began = time.monotonic()
            if not self._poll.poll(1000 * self._git.seconds):
                path = self._git.repository.path
                raise SourceError(f"git takes too long over {path}; see what is wrong with: git fsck")
            self._git.seconds = max(0, self._git.seconds - (time.monotonic() - began))
        piece = os.read(self._pipe, len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _link(link: Path, target: Path) -> None:
    try:
        link.symlink_to(target)
    except OSError:  # Windows lets few people
        (shutil.copytree if target.is_dir() else shutil.copy)(target, link)
