"""Parallel downloads into a folder, with retries, resumption, checksums and a record of the results."""

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
"""Seconds: of silence; before the second try, doubled each time; at most. A longer Retry-After is a failure."""
GIVE_UP = 3
"""Consecutive retryable failures per job after which the network counts as down."""
LIMIT = 200 << 30
"""Bytes of one file."""
UNPACKED = 4 << 30
"""Most bytes of an archive's source files; more is a zip bomb."""
BLOCK = 1 << 16
PART, STATE = ".part", ".part.json"
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotFetched(SourceError):
    """A failed download. final: a retry would not help (not found, or not the expected content)."""

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


class _Retry(Exception):
    """A retryable failure; `after`: seconds of Retry-After."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to fetch, and its path below the folder (posix).

    checksum: `sha256:<hex>`, or `git:<hex>` (the blob's object id), or empty.
    """

    url: str
    path: str
    size: int | None = None
    checksum: str = ""


@dataclass(slots=True)
class Downloads:
    """The result of `fetch_all`. present: fetched earlier. failed: path -> reason."""

    arrived: int = 0
    present: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def place(folder: Path, path: str) -> Path:
    """A path below a folder; BadInput for one that leads out of it."""
    parts = PurePosixPath(path)
    outside = parts.is_absolute() or ".." in parts.parts or "\\" in path or PureWindowsPath(path).drive
    if outside or not parts.name or "\0" in path:
        raise BadInput(f"{path!r} leads out of its folder; use relative paths")
    return folder / parts


class Client:
    """HTTP connections shared by threads; `stop` ends their reading and waiting."""

    def __init__(self, *, jobs: int = JOBS, tries: int = TRIES, limit: int = LIMIT) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("fetching needs httpx: pip install 'neural-code-search[corpora]'") from None
        self.tries, self.limit, self.stop = tries, limit, threading.Event()
        self.sleep: Callable[[float], object] = self.stop.wait
        self._not_before: dict[str, float] = {}  # host -> time of the next allowed request
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
        """Fetch one file; returns its SHA-256. Raises NotFetched.

        Partial content is in `<path>.part`, its ETag or date in `<path>.part.json`; a later call resumes it if the
        server still has that version (If-Range). A file without `.part` is complete.
        """
        if not re.match(r"https?://[^/:]", file.url):
            raise BadInput(f"{file.url!r} is not a URL; write it as https://host/path")
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
                tries = 1 if _size(_beside(path, PART)) > had else tries + 1  # progress resets the count
                if tries >= self.tries:
                    raise NotFetched(f"{file.url}: {retry}", final=False) from retry
                if retry.after > LONGEST_WAIT:
                    self._not_before[host] = time() + retry.after
                    continue
                spread = 1 + random.random() / 4  # noqa: S311  jitter, so that workers do not retry at once
                self.sleep(retry.after or min(FIRST_WAIT * 2 ** (tries - 1) * spread, LONGEST_WAIT))

    def _try(self, file: RemoteFile, path: Path) -> bool:
        """Append the missing bytes to the part; whether a part was resumed."""
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
            raise NotFetched(f"{file.url}: redirected to a URL without encryption", final=True)
        start, total = _range(response)
        if response.status_code == 416 and total == had > 0:
            return True  # the part was complete already
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
    """Bytes already there of this version, and the headers that request the rest."""
    start = _size(_beside(path, PART))
    try:
        state = json.loads(_beside(path, STATE).read_text(encoding="utf-8"))
        validator, same = state["validator"], state["url"] == file.url
    except (OSError, ValueError, KeyError, TypeError):
        return 0, {}
    if not same or not start or not (validator or file.checksum):
        return 0, {}
    # Without a validator the checksum verifies at the end that both halves are of one version.
    return start, {"Range": f"bytes={start}-", **({"If-Range": validator} if validator else {})}


def _validator(headers: Mapping[str, str]) -> str:
    """A strong ETag, else Last-Modified, else "" (RFC 9110, 13.1.5)."""
    etag = headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")


def _range(response: httpx.Response) -> tuple[int, int | None]:
    """First byte (-1 for none) and file size from Content-Range."""
    header = response.headers.get("Content-Range", "").strip()
    start, total = re.fullmatch(r"bytes (\d+)-\d+/.*", header), header.rpartition("/")[2]
    return int(start[1]) if start else -1, int(total) if total.isdigit() else None


def _refusal(file: RemoteFile, path: Path, response: httpx.Response) -> Exception:
    """The error for a response without the file."""
    if response.status_code in (206, 416):  # not the requested range: start again
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
    """Verify the part and rename it to the path; returns its SHA-256."""
    part = _beside(path, PART)
    size, (kind, _, expected) = _size(part), file.checksum.partition(":")
    sha256 = hashlib.sha256()
    git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with part.open("rb") as file_object:
        while block := file_object.read(BLOCK):
            sha256.update(block)
            git.update(block)
        os.fsync(file_object.fileno())
    digest = {"sha256": sha256.hexdigest(), "git": git.hexdigest(), "": ""}.get(kind)
    if digest is None:
        raise BadInput(f"{file.checksum!r} is not a checksum; write sha256:<hex> or git:<hex>")
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
    """Fetch missing files; `then` is applied to each fetched file and may raise NotFetched to reject it.

    Final failures (404) are not requested again, unless `again`. Raises SourceError where the network is down, BadInput
    for two files of one path and for a folder that another process is filling.
    """
    if (twice := first_repeated(file.path for file in files)) is not None:
        raise BadInput(f"two files have the path {twice!r}; name each once")
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
                progress = f"{downloads.arrived} arrived before; the same command resumes from there"
                raise SourceError(f"{in_a_row} files in a row could not be fetched ({row['reason']}); {progress}")
    return downloads


def _missing(files: Sequence[RemoteFile], folder: Path, again: bool, downloads: Downloads) -> list[RemoteFile]:
    """Files to request; the others are counted in `downloads` as present or failed."""
    record = read_record(folder / RECORD)
    missing: list[RemoteFile] = []
    for file in files:
        row = record.get(file.path, {})
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
        finally:  # on early exit: start no more, and stop running downloads at their next block
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
    """The last row of every path; a torn line is skipped."""
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
    """End a torn last line."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                record.write("\n")


def filter_zip(path: Path, wanted: Callable[[str], bool], *, limit: int = UNPACKED) -> None:
    """Reduce a .zip to the files wanted by path; links and paths that lead out of it are dropped.

    The archive is replaced atomically. Raises NotFetched, and removes it, if it is damaged or over the limit.
    """
    part = path.with_name(path.name + ".slim")
    try:
        with zipfile.ZipFile(path) as source_zip, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as target_zip:
            bytes_left = limit
            for member in source_zip.infolist():
                if not _is_wanted(member, wanted):
                    continue
                bytes_left -= member.file_size
                if bytes_left < 0:
                    raise NotFetched(f"{path.name} holds over {limit} bytes of source files", final=True)
                entry = zipfile.ZipInfo(member.filename, member.date_time)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with source_zip.open(member) as source, target_zip.open(entry, "w") as target:
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
