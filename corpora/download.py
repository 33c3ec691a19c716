"""Files from web servers into a folder: several at once, retried, resumed and checked; what arrived is recorded."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import stat
import threading
import zipfile
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from time import time
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from corpora.corpus import first_repeated
from ncs import __version__
from ncs.errors import BadInput, MissingExtra, SourceError
from ncs.progress import Track, silent

if TYPE_CHECKING:
    import httpx

USER_AGENT = f"neural-code-search/{__version__} (corpora)"
RECORD = "downloads.jsonl"
"""In the folder: one JSON object a line for every file that arrived or failed; the last line of a path counts."""
JOBS, TRIES = 4, 5
TIMEOUT, FIRST_WAIT, LONGEST_WAIT = 60.0, 1.0, 120.0
"""Seconds: without an answer or a byte; before the second try, doubled for each further one; at most. Where a server
asks to wait longer, the file is left for another day."""
GIVE_UP = 3
"""After so many files for each job, one after the other, that failed and might not have, the network is down."""
LIMIT = 200 << 30
"""Bytes of one file."""
UNPACKED = 4 << 30
"""Bytes: no archive's source files are larger than this together; what claims to be is a bomb."""
BLOCK = 1 << 16
PART, STATE = ".part", ".part.json"
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotFetched(SourceError):
    """A file that did not arrive. final: asking again will not help (it is not there, or not what was expected)."""

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


class _Retry(Exception):
    """This try failed and the next may not; `after`: seconds the server asked to wait."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to fetch, and where it goes below the folder (posix).

    checksum: `sha256:<hex>`, or `git:<hex>`, the name git has for a file of that content, or nothing.
    """

    url: str
    path: str
    size: int | None = None
    checksum: str = ""


@dataclass(slots=True)
class Downloads:
    """The result of a call. present: came with an earlier call. failed: path -> reason."""

    arrived: int = 0
    present: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def place(folder: Path, path: str) -> Path:
    """Where a path lies below a folder; BadInput for one that leads out of it."""
    parts = PurePosixPath(path)
    outside = parts.is_absolute() or ".." in parts.parts or "\\" in path or PureWindowsPath(path).drive
    if outside or not parts.name or "\0" in path:
        raise BadInput(f"{path!r} does not lie inside a folder; name files by relative paths")
    return folder / parts


class Client:
    """HTTP connections used by several threads at once; `stop` ends what they read and wait for."""

    def __init__(self, *, jobs: int = JOBS, tries: int = TRIES, limit: int = LIMIT) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("fetching needs httpx: pip install 'neural-code-search[corpora]'") from None
        self.tries, self.limit, self.stop = tries, limit, threading.Event()
        self.sleep: Callable[[float], object] = self.stop.wait
        self._not_before: dict[str, float] = {}  # host -> when it may be asked again
        self._errors = httpx
        self._client = httpx.Client(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            follow_redirects=True, timeout=TIMEOUT, limits=httpx.Limits(max_connections=jobs),
        )  # fmt: skip

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()

    def fetch(self, file: RemoteFile, folder: Path) -> str:
        """Bring one file to its place; its SHA-256. Raises NotFetched.

        What has arrived lies in `<path>.part`, beside it the version that the server named (`<path>.part.json`); a
        later call resumes it if the server still has the same version (If-Range). A file in its place is whole.
        """
        if not re.match(r"https?://[^/:]", file.url):
            raise BadInput(f"{file.url!r} is no web address; write it as https://host/path")
        path = place(folder, file.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        tries, host = 0, urlsplit(file.url).netloc
        while True:
            if (seconds := self._not_before.get(host, 0.0) - time()) > 0:
                message = f"{file.url}: the server asks to wait {seconds:.0f} s; try again then"
                raise NotFetched(message, final=False)
            had = _size(_beside(path, PART))
            try:
                return _finish(file, path, resumed=self._try(file, path))
            except _Retry as retry:
                tries = 1 if _size(_beside(path, PART)) > had else tries + 1  # progress starts the count anew
                if tries >= self.tries:
                    raise NotFetched(f"{file.url}: {retry}", final=False) from retry
                if retry.after > LONGEST_WAIT:
                    self._not_before[host] = time() + retry.after
                    continue
                spread = 1 + random.random() / 4  # noqa: S311  so that workers do not come back all at once
                self.sleep(retry.after or min(FIRST_WAIT * 2 ** (tries - 1) * spread, LONGEST_WAIT))

    def _try(self, file: RemoteFile, path: Path) -> bool:
        """Append what is missing to the part; whether a part was resumed."""
        if self.stop.is_set():
            raise NotFetched("stopped", final=False)
        errors = self._errors
        had, headers = _resumption(file, path)
        try:
            with self._client.stream("GET", file.url, headers=headers) as response:
                return self._receive(file, path, response, had)
        except errors.TransportError as error:
            raise _Retry(f"no connection ({_line(error)})") from error
        except (errors.TooManyRedirects, errors.InvalidURL) as error:
            raise NotFetched(f"{file.url}: {_line(error)}", final=True) from error

    def _receive(self, file: RemoteFile, path: Path, response: httpx.Response, had: int) -> bool:
        if file.url.startswith("https:") and response.url.scheme != "https":
            raise NotFetched(f"{file.url}: led to an address without encryption", final=True)
        start, total = _range(response)
        if response.status_code == 416 and total == had > 0:
            return True  # all of it had arrived, only its end was not seen
        if response.status_code == 200:
            length = response.headers.get("Content-Length", "")
            start, total = 0, int(length) if length.isdigit() else None
        elif response.status_code != 206 or start != had or not had:
            raise _refusal(file, path, response)
        most = self.limit if file.size is None else file.size
        if total is not None and total > most:
            raise NotFetched(f"{file.url}: {total} bytes instead of at most {most}", final=True)
        if total is not None and total - start > (free := shutil.disk_usage(path.parent).free):
            raise NotFetched(f"{file.url}: needs {total - start} bytes, {free} are free; make room", final=False)
        if not start:
            state = {"url": file.url, "validator": _validator(response.headers)}
            _beside(path, PART).unlink(missing_ok=True)
            _beside(path, STATE).write_text(json.dumps(state), encoding="utf-8")
        size = start
        with _beside(path, PART).open("ab" if start else "wb") as part:
            for block in response.iter_raw():
                if self.stop.is_set():
                    raise NotFetched("stopped", final=False)
                size += len(block)
                if size > most:
                    _drop(path)
                    raise NotFetched(f"{file.url}: more than {most} bytes", final=True)
                part.write(block)
        if total is not None and size != total:
            raise _Retry(f"{size} bytes arrived of {total}")
        return start > 0


def _resumption(file: RemoteFile, path: Path) -> tuple[int, Mapping[str, str]]:
    """How much of the same version is there, and the headers that ask for the rest."""
    start = _size(_beside(path, PART))
    try:
        state = json.loads(_beside(path, STATE).read_text(encoding="utf-8"))
        validator, same = state["validator"], state["url"] == file.url
    except (OSError, ValueError, KeyError, TypeError):
        return 0, {}
    if not same or not start or not (validator or file.checksum):
        return 0, {}
    # Without a validator only the checksum tells in the end whether both halves are of one version.
    return start, {"Range": f"bytes={start}-", **({"If-Range": validator} if validator else {})}


def _validator(headers: Mapping[str, str]) -> str:
    """What names this version of the file: a strong ETag, else its date, else nothing (RFC 9110, 13.1.5)."""
    etag = headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")


def _range(response: httpx.Response) -> tuple[int, int | None]:
    """First byte, -1 for none, and size of the whole file, by Content-Range."""
    header = response.headers.get("Content-Range", "").strip()
    start, total = re.fullmatch(r"bytes (\d+)-\d+/.*", header), header.rpartition("/")[2]
    return int(start[1]) if start else -1, int(total) if total.isdigit() else None


def _refusal(file: RemoteFile, path: Path, response: httpx.Response) -> Exception:
    """The error for an answer that brings no file."""
    if response.status_code in (206, 416):  # not the range that was asked for: begin anew
        _drop(path)
        return _Retry(f"the server does not resume where it stopped ({response.status_code})")
    status, after = f"{response.status_code} {response.reason_phrase}".strip(), response.headers.get("Retry-After", "")
    if response.status_code in RETRIED or (response.status_code == 403 and after):
        return _Retry(status, _seconds(after))
    return NotFetched(f"{file.url}: {status}", final=True)


def _seconds(retry_after: str) -> float:
    """Seconds of a Retry-After header, a number or a date; 0 for anything else."""
    if retry_after.isdigit():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time())
    except ValueError:
        return 0.0


def _finish(file: RemoteFile, path: Path, *, resumed: bool) -> str:
    """Check the part and put it in its place; its SHA-256."""
    part = _beside(path, PART)
    size, (kind, _, expected) = _size(part), file.checksum.partition(":")
    sha256 = hashlib.sha256()
    git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with part.open("rb") as opened:
        while block := opened.read(BLOCK):
            sha256.update(block)
            git.update(block)
        os.fsync(opened.fileno())
    digest = {"sha256": sha256.hexdigest(), "git": git.hexdigest(), "": ""}.get(kind)
    if digest is None:
        raise BadInput(f"{file.checksum!r} is no checksum; write sha256:<hex> or git:<hex>")
    if digest != expected or file.size not in (None, size):
        _drop(path)
        if resumed:
            raise _Retry("both halves together are not what was expected")
        raise NotFetched(f"{file.url}: {size} bytes are not what was expected ({kind} {digest})", final=True)
    part.replace(path)
    _beside(path, STATE).unlink(missing_ok=True)
    return sha256.hexdigest()


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _drop(path: Path) -> None:
    _beside(path, PART).unlink(missing_ok=True)
    _beside(path, STATE).unlink(missing_ok=True)


def _line(error: object) -> str:
    return " ".join(str(error).split())[:200]


def fetch_all(
    files: Sequence[RemoteFile],
    folder: Path,
    *,
    jobs: int = JOBS,
    tries: int = TRIES,
    again: bool = False,
    then: Callable[[Path], None] | None = None,
    track: Track = silent,
) -> Downloads:
    """Fetch what is missing; `then` is applied to each file once it is there, and raises NotFetched to refuse it.

    Files that cannot be had (404) are not asked for a second time, unless `again`. Raises SourceError where the network
    is down or a host wants to be left alone, BadInput for two files of one path and for a folder that another call is
    filling.
    """
    if (twice := first_repeated(file.path for file in files)) is not None:
        raise BadInput(f"two files are to go to {twice!r}; name each one once")
    if min(jobs, tries) < 1:
        raise BadInput("jobs and tries must be at least 1")
    for file in files:
        place(folder, file.path)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / f".{RECORD}.lock", timeout=0), Client(jobs=jobs, tries=tries) as client:
            return _fetch_all(files, folder, jobs, client, again, then, track)
    except Timeout:
        raise BadInput(f"another process is fetching into {folder}; wait until it is done") from None


def _fetch_all(
    files: Sequence[RemoteFile],
    folder: Path,
    jobs: int,
    client: Client,
    again: bool,
    then: Callable[[Path], None] | None,
    track: Track,
) -> Downloads:
    downloads = Downloads()
    missing = _missing(files, folder, again, downloads)
    with ExitStack() as stack:
        record = stack.enter_context((folder / RECORD).open("a", encoding="utf-8"))
        _end_line(folder / RECORD, record)
        results = stack.enter_context(closing(_results(missing, folder, jobs, client, then)))
        in_a_row = 0
        for file, row in track(results, "fetching", total=len(missing), unit="files"):
            record.write(json.dumps(row, ensure_ascii=False) + "\n")
            record.flush()
            if row["status"] == "done":
                downloads.arrived += 1
            else:
                downloads.failed[file.path] = row["reason"]
            in_a_row = in_a_row + 1 if row.get("final") is False else 0
            if in_a_row >= GIVE_UP * jobs:
                client.stop.set()
                kept = f"{downloads.arrived} arrived before; the same command resumes from there"
                raise SourceError(f"{in_a_row} files in a row could not be fetched ({row['reason']}); {kept}")
    return downloads


def _missing(files: Sequence[RemoteFile], folder: Path, again: bool, downloads: Downloads) -> list[RemoteFile]:
    """What to ask for; the others are counted in `downloads`: present already, or known not to be had."""
    known = read_record(folder / RECORD)
    missing: list[RemoteFile] = []
    for file in files:
        row = known.get(file.path, {})
        if (
            row.get("status") == "done"
            and row.get("url") == file.url
            and _size(place(folder, file.path)) == row["bytes"]
        ):
            downloads.present += 1
        elif row.get("final") and row.get("url") == file.url and not again:
            downloads.failed[file.path] = str(row.get("reason"))
        else:
            missing.append(file)
    return missing


def _results(
    missing: Sequence[RemoteFile], folder: Path, jobs: int, client: Client, then: Callable[[Path], None] | None
) -> Generator[tuple[RemoteFile, dict[str, Any]], None, None]:
    """Each file and its row of the record, in order of arrival."""
    with ThreadPoolExecutor(jobs) as pool:
        futures: dict[Future[dict[str, Any]], RemoteFile] = {}
        try:
            futures = {pool.submit(_fetch_one, file, folder, client, then): file for file in missing}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:  # ended early: nothing more is begun, and what is under way stops at its next block
            if not all(future.done() for future in futures):
                client.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)


def _fetch_one(file: RemoteFile, folder: Path, client: Client, then: Callable[[Path], None] | None) -> dict[str, Any]:
    path = place(folder, file.path)
    row: dict[str, Any] = {"path": file.path, "url": file.url}
    try:
        sha256 = client.fetch(file, folder)
        if then is not None:
            then(path)
    except NotFetched as error:
        return {**row, "status": "failed", "reason": str(error), "final": error.final}
    return {**row, "status": "done", "bytes": path.stat().st_size, "sha256": sha256}


def read_record(path: Path) -> dict[str, Mapping[str, Any]]:
    """The last row of every path; a line that a killed process left half written does not count."""
    rows: dict[str, Mapping[str, Any]] = {}
    if not path.is_file():
        return rows
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(row, dict) and isinstance(row.get("path"), str):
                rows[row["path"]] = row
    return rows


def _end_line(path: Path, record: IO[str]) -> None:
    """So that a half line stays alone."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                record.write("\n")


def keep_in_zip(path: Path, wanted: Callable[[str], bool], *, limit: int = UNPACKED) -> None:
    """Keep of a .zip only the files that are wanted by their path; links and paths that lead outside go.

    The archive is replaced at once. Raises NotFetched, and removes it, where it is no archive or over the limit.
    """
    part = path.with_name(path.name + ".slim")
    try:
        with zipfile.ZipFile(path) as whole, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as kept:
            left = limit
            for member in whole.infolist():
                if not _is_wanted(member, wanted):
                    continue
                left -= member.file_size
                if left < 0:
                    raise NotFetched(f"{path.name} holds over {limit} bytes of source files", final=True)
                entry = zipfile.ZipInfo(member.filename, member.date_time)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with whole.open(member) as source, kept.open(entry, "w") as target:
                    shutil.copyfileobj(source, target)  # zipfile reads no more than the size it names, and checks it
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        path.unlink()
        raise NotFetched(f"{path.name} is damaged or no archive ({error})", final=False) from error
    except NotFetched:
        path.unlink()
        raise
    else:
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _is_wanted(member: zipfile.ZipInfo, wanted: Callable[[str], bool]) -> bool:
    if member.is_dir() or stat.S_ISLNK(member.external_attr >> 16) or not wanted(member.filename):
        return False
    try:
        place(Path(), member.filename)
    except BadInput:
        return False
    return True
