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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from corpora.corpus import first_repeated
from corpora.jsonl import json_line
from ncs import __version__
from ncs.errors import BadInput, SourceError, needing
from ncs.files import append_file, open_replacement, replace_file
from ncs.progress import Track, silent
from ncs.sources.archives import ZIP_METHODS

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


@dataclass(frozen=True, slots=True)
class _Part:
    """A file on its way: its bytes in `<path>.part`, of which version they are in `<path>.part.json`."""

    path: Path
    file: RemoteFile

    @property
    def bytes(self) -> Path:
        return self.path.with_name(f"{self.path.name}.part")

    @property
    def state(self) -> Path:
        return self.path.with_name(f"{self.path.name}.part.json")

    @property
    def size(self) -> int:
        return self.bytes.stat().st_size if self.bytes.is_file() else 0

    def drop(self) -> None:
        self.bytes.unlink(missing_ok=True)
        self.state.unlink(missing_ok=True)

    def resumption(self) -> tuple[int, Mapping[str, str]]:
        """Bytes already there of this version, and the headers that request the rest."""
        try:
            state = json.loads(self.state.read_text(encoding="utf-8"))
            validator, same = state["validator"], state["url"] == self.file.url
        except (OSError, ValueError, KeyError, TypeError):
            return 0, {}
        # Without a validator the checksum verifies at the end that both halves are of one version.
        if not same or not self.size or not (validator or self.file.checksum):
            return 0, {}
        return self.size, {"Range": f"bytes={self.size}-", **({"If-Range": validator} if validator else {})}

    def start(self, headers: Mapping[str, str]) -> None:
        """Begin anew. The validator is a strong ETag, else Last-Modified, else "" (RFC 9110, 13.1.5)."""
        etag = headers.get("ETag", "")
        validator = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")
        self.bytes.unlink(missing_ok=True)
        replace_file(self.state, json.dumps({"url": self.file.url, "validator": validator}))

    def finish(self, *, resumed: bool) -> str:
        """Verify the bytes and rename them to the path; returns their SHA-256."""
        size, (kind, _, expected) = self.size, self.file.checksum.partition(":")
        sha256 = hashlib.sha256()
        git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        with self.bytes.open("rb") as file_object:
            while block := file_object.read(BLOCK):
                sha256.update(block)
                git.update(block)
            os.fsync(file_object.fileno())
        digest = {"sha256": sha256.hexdigest(), "git": git.hexdigest(), "": ""}.get(kind)
        if digest is None:
            raise BadInput(f"{self.file.checksum!r} is not a checksum; write sha256:<hex> or git:<hex>")
        if digest != expected or self.file.size not in (None, size):
            self.drop()
            if resumed:
                raise _Retry("both halves together are not what was expected")
            message = f"{self.file.url}: {size} bytes are not what was expected ({kind} {digest})"
            raise NotFetched(message, final=True)
        self.bytes.replace(self.path)
        self.state.unlink(missing_ok=True)
        return sha256.hexdigest()


class Client:
    """HTTP connections shared by threads; `stop` ends their reading and waiting."""

    def __init__(
        self, *, jobs: int = JOBS, tries: int = TRIES, limit: int = LIMIT, transport: httpx.BaseTransport | None = None
    ) -> None:
        with needing("fetching", "corpora"):
            import httpx
        self.tries, self.limit, self.stop = tries, limit, threading.Event()
        self.sleep: Callable[[float], object] = self.stop.wait
        self._retried, self._final = httpx.TransportError, (httpx.TooManyRedirects, httpx.InvalidURL)
        self._client = httpx.Client(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            follow_redirects=True, timeout=TIMEOUT, limits=httpx.Limits(max_connections=jobs), transport=transport,
        )  # fmt: skip

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()

    def fetch(self, file: RemoteFile, folder: Path) -> str:
        """Fetch one file; returns its SHA-256. Raises NotFetched.

        A later call resumes partial content if the server still has that version (If-Range). A file without `.part`
        is complete.
        """
        if not re.match(r"https?://[^/:]", file.url):
            raise BadInput(f"{file.url!r} is not a URL; write it as https://host/path")
        part = _Part(place(folder, file.path), file)
        part.path.parent.mkdir(parents=True, exist_ok=True)
        tries = 0
        while not self.stop.is_set():
            had = part.size
            try:
                return part.finish(resumed=self._try(part))
            except _Retry as retry:
                if retry.after > LONGEST_WAIT:
                    message = f"{file.url}: the server asks to wait {retry.after:.0f} s; try again then"
                    raise NotFetched(message, final=False) from retry
                tries = 1 if part.size > had else tries + 1  # progress resets the count
                if tries >= self.tries:
                    raise NotFetched(f"{file.url}: {retry}", final=False) from retry
                spread = 1 + random.random() / 4  # noqa: S311  jitter, so that workers do not retry at once
                self.sleep(retry.after or min(FIRST_WAIT * 2 ** (tries - 1) * spread, LONGEST_WAIT))
        raise NotFetched("stopped", final=False)

    def _try(self, part: _Part) -> bool:
        """Append the missing bytes to the part; whether a part was resumed."""
        had, headers = part.resumption()
        try:
            with self._client.stream("GET", part.file.url, headers=headers) as response:
                if response.status_code == 416 and had == _total(response) > 0:
                    return True  # the part was complete already
                return self._receive(part, response, had)
        except self._retried as error:
            raise _Retry(f"no connection ({_line(error)})") from error
        except self._final as error:
            raise NotFetched(f"{part.file.url}: {_line(error)}", final=True) from error

    def _receive(self, part: _Part, response: httpx.Response, had: int) -> bool:
        url, total = part.file.url, _total(response)
        most = self.limit if part.file.size is None else part.file.size
        if url.startswith("https:") and response.url.scheme != "https":
            raise NotFetched(f"{url}: redirected to a URL without encryption", final=True)
        if response.status_code == 200:
            had = 0
        elif response.status_code != 206 or not _continues(response, had):
            raise _refusal(part, response)
        if total > most:
            raise NotFetched(f"{url}: {total} bytes instead of at most {most}", final=True)
        if total - had > (free := shutil.disk_usage(part.path.parent).free):
            raise NotFetched(f"{url}: needs {total - had} bytes, {free} are free; make room", final=False)
        if not had:
            part.start(response.headers)
        size = had
        with append_file(part.bytes) as file:
            for block in response.iter_raw():
                size += len(block)
                if self.stop.is_set():
                    raise NotFetched("stopped", final=False)
                if size > most:
                    part.drop()
                    raise NotFetched(f"{url}: more than {most} bytes", final=True)
                file.write(block)
        if total not in (-1, size):
            raise _Retry(f"{size} bytes arrived of {total}")
        return had > 0


def _total(response: httpx.Response) -> int:
    """Bytes of the whole file, -1 where the response does not say."""
    header = "Content-Length" if response.status_code == 200 else "Content-Range"
    total = response.headers.get(header, "").rpartition("/")[2].strip()
    return int(total) if re.fullmatch("[0-9]{1,19}", total) else -1


def _continues(response: httpx.Response, had: int) -> bool:
    return had > 0 and response.headers.get("Content-Range", "").strip().startswith(f"bytes {had}-")


def _refusal(part: _Part, response: httpx.Response) -> Exception:
    """The error for a response without the file."""
    if response.status_code in (206, 416):  # not the requested range: start again
        part.drop()
        return _Retry(f"the server does not resume where it stopped ({response.status_code})")
    status, after = f"{response.status_code} {response.reason_phrase}".strip(), response.headers.get("Retry-After", "")
    if response.status_code in RETRIED or (response.status_code == 403 and after):
        return _Retry(status, float(after) if re.fullmatch("[0-9]{1,18}", after) else 0.0)
    return NotFetched(f"{part.file.url}: {status}", final=True)


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
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(FileLock(folder / f".{RECORD}.lock", timeout=0))
        except Timeout:
            raise BadInput(f"another process is fetching into {folder}; wait until it is done") from None
        downloads = Downloads()
        missing = _missing(files, folder, again, downloads)
        record = stack.enter_context(append_file(folder / RECORD))
        if record.tell():
            record.write(b"\n")  # ends a torn line
        client = stack.enter_context(Client(jobs=jobs, tries=tries))
        results = stack.enter_context(_results(missing, folder, jobs, client, then))
        in_a_row = 0
        for row in track(results, "fetching", total=len(missing), unit="files"):
            record.write(json_line(row))
            record.flush()
            if row["status"] == "done":
                downloads.arrived += 1
            else:
                downloads.failed[row["path"]] = row["reason"]
            in_a_row = in_a_row + 1 if row.get("final") is False else 0
            if in_a_row >= GIVE_UP * jobs:
                progress = f"{downloads.arrived} arrived before; the same command resumes from there"
                raise SourceError(f"{in_a_row} files in a row could not be fetched ({row['reason']}); {progress}")
    return downloads


def _missing(files: Sequence[RemoteFile], folder: Path, again: bool, downloads: Downloads) -> list[RemoteFile]:
    """Files to request; the others are counted in `downloads` as present or failed."""
    record = read_record(folder / RECORD)
    missing: list[RemoteFile] = []
    for file in files:
        path, row = place(folder, file.path), record.get(file.path, {})
        if row.get("url") != file.url:
            missing.append(file)
        elif row.get("status") == "done" and path.is_file() and path.stat().st_size == row["bytes"]:
            downloads.present += 1
        elif row.get("final") and not again:
            downloads.failed[file.path] = str(row.get("reason"))
        else:
            missing.append(file)
    return missing


@contextmanager
def _results(
    missing: Sequence[RemoteFile], folder: Path, jobs: int, client: Client, then: Callable[[Path], None] | None
) -> Iterator[Iterator[dict[str, Any]]]:
    """The rows of the record, in order of arrival; left early, running downloads stop at their next block."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(_fetch_one, file, folder, client, then) for file in missing]
        try:
            yield (future.result() for future in as_completed(futures))
        finally:
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
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(row, dict) and isinstance(row.get("path"), str):
            rows[row["path"]] = row
    return rows


def filter_zip(path: Path, accepts: Callable[[str], bool], *, limit: int = UNPACKED) -> None:
    """Reduce a .zip to the files whose paths `accepts` takes; links and paths that lead out of it are dropped.

    The archive is replaced atomically. Raises NotFetched, and removes it, if it is damaged or over the limit.
    """
    try:
        with (
            open_replacement(path) as part,
            zipfile.ZipFile(path) as source_zip,
            zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as target_zip,
        ):
            members = [member for member in source_zip.infolist() if _is_safe(member) and accepts(member.filename)]
            if sum(member.file_size for member in members) > limit:
                raise NotFetched(f"{path.name} holds over {limit} bytes of source files", final=True)
            for member in members:
                entry = zipfile.ZipInfo(member.filename, member.date_time)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with source_zip.open(member) as source, target_zip.open(entry, "w") as target:
                    shutil.copyfileobj(source, target)  # in pieces; zipfile ends at the size it names, and checks it
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        path.unlink()
        raise NotFetched(f"{path.name} is damaged or no archive ({error})", final=False) from error
    except NotFetched:
        path.unlink()
        raise


def _is_safe(member: zipfile.ZipInfo) -> bool:
    try:
        place(Path(), member.filename)
    except BadInput:
        return False
    return member.compress_type in ZIP_METHODS and not member.is_dir() and not stat.S_ISLNK(member.external_attr >> 16)
