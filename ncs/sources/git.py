"""Source files of a git revision, read as blobs: of bare repositories, and of work trees at a revision."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import IO

from ncs.errors import SourceError
from ncs.sources.ignores import NCSIGNORE, Ignores, parse
from ncs.sources.objects import KNOWN, Blob, Objects, git, output
from ncs.sources.origins import Origin, Read
from ncs.sources.places import Place, common_dir
from ncs.sources.skips import Folders, Sieve, shown

_CHUNK = 1 << 16


def files(place: Place, sieve: Sieve, revision: str | None, *, read: bool = True) -> Iterator[Read]:
    """Source files of one revision (HEAD where None) in git's own order, which is bytewise by path.

    Through one `git ls-tree` and one `git cat-file --batch`, both streaming. Missing objects count
    as unreadable. Raises SourceError where git is not installed, the revision does not exist or the
    repository is damaged.
    """
    with closing(Objects(place)) as objects:
        commit = _commit(objects, place, sieve, revision)
        if commit is None:
            return
        ignores = place.ignores.without_git()  # what is versioned is not ignored
        if own := objects.ask(f"{commit}:{place.inside}{NCSIGNORE}"):
            ignores = ignores.with_ncs(parse(own.content, base=place.where))
        listed = _listed(place, f"{commit}:{place.inside}", ignores, sieve)
        if not read:
            yield from (Read(blob.path, blob.size, b"") for blob in listed)
            return
        for blob, content in objects.contents(listed, known=lambda blob: sieve.unchanged(_origin(place, blob))):
            path = place.where + blob.path
            if content is KNOWN:
                yield Read(blob.path, blob.size, b"", _origin(place, blob), unchanged=True)
            elif content is None:
                sieve.unreadable(path)
            elif (data := sieve.content(path, content, ignores)) is not None:
                yield Read(blob.path, len(data), data, _origin(place, blob))


def commit_of(place: Place, sieve: Sieve, revision: str | None) -> str | None:
    """The name of the commit that `files` reads; None where there is none. Raises what it raises."""
    with closing(Objects(place)) as objects:
        return _commit(objects, place, sieve, revision)


def _origin(place: Place, blob: Blob) -> Origin:
    return Origin(f"{place.path}/{blob.path}", blob.name)


def _commit(objects: Objects, place: Place, sieve: Sieve, revision: str | None) -> str | None:
    """The name of the commit to read; None, with a note, where the repository has none."""
    for candidate in [revision] if revision is not None else ["HEAD", *_branches(place)]:
        answer = None if "\n" in candidate else objects.ask(f"{candidate}^{{commit}}")
        if answer is not None:
            if candidate not in (revision, "HEAD"):
                sieve.skipped.note(f"{shown(place.name)}: HEAD names no commit; read {candidate}")
            return answer.name
    if revision is not None:
        raise SourceError(f"{place.path} has no revision {revision!r}; name a branch, tag or commit that it has")
    sieve.skipped.add("empty repositories")
    sieve.skipped.note(f"{shown(place.name)}: has no commit")
    return None


def _branches(place: Place) -> Iterator[str]:
    """Where HEAD leads nowhere: the branch main, master or the one with the newest commit; then those of remotes."""
    for where in ("refs/heads", "refs/remotes"):
        with git(place, "for-each-ref", "--sort=-committerdate", "--format=%(refname)", where) as refs:
            names = output(refs).read().decode("utf-8", "surrogateescape").split()
        usual = {"main": 0, "master": 1}
        yield from sorted(names, key=lambda name: usual.get(name.rpartition("/")[2], 2))


def _listed(place: Place, tree: str, ignores: Ignores, sieve: Sieve) -> Iterator[Blob]:
    """The blobs that the sieve lets pass by path and size."""
    missing = _missing(place, tree)
    long = [] if missing else ["--long"]  # asking for the size of a missing object would end git
    # --full-tree: else git lists what lies below the working folder, where that is inside the work tree
    with git(place, "ls-tree", "-r", "-z", "--full-tree", *long, tree) as listing:
        folders = Folders(place.where, ignores, sieve)
        for record in _records(output(listing)):
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
            elif sieve.size(int(size[0]) if size else 0, path):
                yield Blob(path, name, int(size[0]) if size else 0)
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
    with git(place, "rev-list", "--objects", "--missing=print", tree) as objects:
        return {line[1:].strip().decode() for line in output(objects) if line.startswith(b"?")}


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(_CHUNK):
        *records, rest = (rest + chunk).split(b"\0")
        yield from records
