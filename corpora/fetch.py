"""One file from a server to the disk: resumed where it stopped, checked, and put in place whole."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from corpora.client import Again, Client, NotFetched, Response
from ncs.errors import BadInput

_BLOCK = 1 << 16
PART, STATE = ".part", ".part.json"
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to fetch, and where it goes below the folder (posix).

    checksum: `sha256:<hex>`, or `git:<hex>`, the name git has for a file of that content, or nothing.
    """

    url: str
    path: str
    size: int | None = None
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What arrived: its size and SHA-256, known before or not."""

    size: int
    sha256: str


def place(folder: Path, path: str) -> Path:
    """Where a path lies below a folder; BadInput for one that leads out of it."""
    parts = PurePosixPath(path)
    outside = parts.is_absolute() or ".." in parts.parts or "\\" in path or PureWindowsPath(path).drive
    if outside or not parts.name or "\0" in path:
        raise BadInput(f"{path!r} does not lie inside a folder; name files by relative paths")
    return folder / parts


def fetch(wanted: Wanted, folder: Path, client: Client) -> Fetched:
    """Bring one file to its place, in as many tries as the client's manners allow.

    What has arrived lies in `<path>.part`, beside it what the server called it (`<path>.part.json`); a later
    call goes on from there if the server still has the same file (If-Range). A file in its place is whole.
    Raises NotFetched.
    """
    path = place(folder, wanted.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    tries = 0
    while True:
        had = _size(_beside(path, PART))
        try:
            return _finish(wanted, path, resumed=_transfer(wanted, path, client))
        except Again as again:
            tries = 1 if _size(_beside(path, PART)) > had else tries + 1
            if tries >= client.manners.tries:
                raise NotFetched(f"{wanted.url}: {again}", final=False) from again
            client.wait(wanted.url, tries, again.after)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _transfer(wanted: Wanted, path: Path, client: Client) -> bool:
    """Append what is missing to the part; whether there was something before."""
    had, asked = _resumption(wanted, path)
    with client.get(wanted.url, asked) as response:
        if response.status == 416 and _range_total(response) == had > 0:
            return True  # all of it had arrived, only its end was not seen
        start, total = _agreed(wanted, path, response, had)
        _expect(wanted, total, client.manners.limit)
        if total is not None and total - start > (free := shutil.disk_usage(path.parent).free):
            raise NotFetched(f"{wanted.url}: needs {total - start} bytes, {free} are free; make room", final=False)
        if not start:
            state = {"url": wanted.url, "validator": _validator(response.headers)}
            _beside(path, PART).unlink(missing_ok=True)
            _beside(path, STATE).write_text(json.dumps(state), encoding="utf-8")
        arrived = _append(wanted, path, response, start, client.manners.limit)
    if total is not None and arrived != total:
        raise Again(f"{arrived} bytes arrived of {total}")
    return start > 0


def _agreed(wanted: Wanted, path: Path, response: Response, had: int) -> tuple[int, int | None]:
    """From where the server sends the file, and how large it is, where it says so."""
    if response.status == 206 and _range_start(response) == had > 0:
        return had, _range_total(response)
    if response.status == 200:
        return 0, response.length
    raise _refused(wanted, path, response)


def _append(wanted: Wanted, path: Path, response: Response, start: int, limit: int) -> int:
    """Write what comes, block by block; the size of the part in the end."""
    most = limit if wanted.size is None else wanted.size
    with _beside(path, PART).open("ab" if start else "wb") as file:
        for block in response.blocks(_BLOCK):
            start += len(block)
            if start > most:
                _drop(path)
                raise NotFetched(f"{wanted.url}: more than {most} bytes", final=True)
            file.write(block)
    return start


def _resumption(wanted: Wanted, path: Path) -> tuple[int, Mapping[str, str]]:
    """How much of the same file is there, and the headers that ask for the rest."""
    start = _size(_beside(path, PART))
    try:
        state = json.loads(_beside(path, STATE).read_text(encoding="utf-8"))
        validator, same = state["validator"], state["url"] == wanted.url
    except (OSError, ValueError, KeyError, TypeError):
        same = False
    if not same or not start or not (validator or wanted.checksum):
        return 0, {}
    # Without a validator only the checksum tells in the end whether both halves are of one file.
    return start, {"Range": f"bytes={start}-", **({"If-Range": validator} if validator else {})}


def _validator(headers: Mapping[str, str]) -> str:
    """What names this version of the file: a strong ETag, else its date, else nothing (RFC 9110, 13.1.5)."""
    etag = headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")


def _range_start(response: Response) -> int:
    found = re.fullmatch(r"bytes (\d+)-\d+/(?:\d+|\*)", response.headers.get("Content-Range", "").strip())
    return int(found[1]) if found else -1


def _range_total(response: Response) -> int | None:
    total = response.headers.get("Content-Range", "").rpartition("/")[2].strip()
    return int(total) if total.isdigit() else None


def _refused(wanted: Wanted, path: Path, response: Response) -> Exception:
    """What to make of an answer that brings no file."""
    if response.status in (206, 416):  # not the range that was asked for: begin anew
        _drop(path)
        return Again(f"the server does not go on where it stopped ({response.status})")
    said = f"{response.status} {response.reason}".strip()
    if response.status in _AGAIN or (response.status == 403 and response.retry_after):
        return Again(said, response.retry_after)
    return NotFetched(f"{wanted.url}: {said}", final=True)


def _expect(wanted: Wanted, size: int | None, limit: int) -> None:
    if size is not None and wanted.size is not None and size != wanted.size:
        raise NotFetched(f"{wanted.url}: {size} bytes instead of {wanted.size}", final=True)
    if size is not None and size > limit:
        raise NotFetched(f"{wanted.url}: {size} bytes are over the limit of {limit}", final=True)


def _finish(wanted: Wanted, path: Path, *, resumed: bool) -> Fetched:
    """Check the part and put it in its place."""
    part = _beside(path, PART)
    size = _size(part)
    kind, _, expected = wanted.checksum.partition(":")
    sha256 = hashlib.sha256()
    named = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with part.open("rb") as file:
        while block := file.read(_BLOCK):
            sha256.update(block)
            named.update(block)
        os.fsync(file.fileno())
    found = {"sha256": sha256.hexdigest(), "git": named.hexdigest(), "": ""}.get(kind)
    if found is None:
        raise BadInput(f"{wanted.checksum!r} is no checksum; write sha256:<hex> or git:<hex>")
    if found != expected or (wanted.size is not None and size != wanted.size):
        _drop(path)
        if resumed:
            raise Again("both halves together are not what was expected")
        raise NotFetched(f"{wanted.url}: what arrived is not what was expected ({kind} {found})", final=True)
    part.replace(path)
    _beside(path, STATE).unlink(missing_ok=True)
    return Fetched(size, sha256.hexdigest())


def _drop(path: Path) -> None:
    _beside(path, PART).unlink(missing_ok=True)
    _beside(path, STATE).unlink(missing_ok=True)
