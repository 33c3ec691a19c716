"""Many files at once into one folder: what has arrived is remembered, and what is missing fetched next time."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

from corpora.client import Client, Manners, NotFetched
from corpora.corpus import first_repeated
from corpora.fetch import Fetched, Wanted, fetch, place
from ncs.errors import BadInput, SourceError
from ncs.progress import Track, silent

RECORD = "downloads.jsonl"
"""In the folder: one JSON object a line for every file that arrived or failed; the last line of a path counts."""
JOBS = 4
GIVE_UP = 3
"""After so many files for each job, one after the other, that failed and might not have: the network or the host is
not to be had, and trying thousands more helps nobody."""
Then = Callable[[Path], None]
"""What becomes of a file once it is there; raises NotFetched where it is of no use."""


@dataclass(slots=True)
class Downloads:
    """What a call brought. there: came with an earlier call. failed: path -> reason."""

    arrived: int = 0
    there: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def fetch_all(
    wanted: Sequence[Wanted],
    folder: Path,
    *,
    jobs: int = JOBS,
    manners: Manners = Manners(),  # noqa: B008  (frozen)
    again: bool = False,
    then: Then | None = None,
    track: Track = silent,
) -> Downloads:
    """Bring what is missing. Files that cannot be had (404) are not asked for a second time, unless `again`.

    Raises SourceError where the network is down or a host wants to be left alone, BadInput for two files of one
    path and for a folder that another call is filling.
    """
    if (twice := first_repeated(file.path for file in wanted)) is not None:
        raise BadInput(f"two files are to go to {twice!r}; name each one once")
    if jobs < 1:
        raise BadInput(f"{jobs} jobs fetch nothing; name at least 1")
    for file in wanted:
        place(folder, file.path)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / f".{RECORD}.lock", timeout=0):
            return _fetch_all(wanted, folder, jobs, Client(manners), again, then, track)
    except Timeout:
        raise BadInput(f"another process is fetching into {folder}; wait until it is done") from None


def _fetch_all(
    wanted: Sequence[Wanted], folder: Path, jobs: int, client: Client, again: bool, then: Then | None, track: Track
) -> Downloads:
    found = Downloads()
    missing = _missing(wanted, folder, again, found)
    with ExitStack() as ends:
        record = ends.enter_context((folder / RECORD).open("a", encoding="utf-8"))
        _end_line(folder / RECORD, record)
        results = ends.enter_context(closing(_results(missing, folder, jobs, client, then)))
        in_a_row = 0
        for file, row in track(results, "fetching", total=len(missing), unit="files"):
            record.write(json.dumps(row, ensure_ascii=False) + "\n")
            record.flush()
            if row["status"] == "done":
                found.arrived += 1
            else:
                found.failed[file.path] = row["reason"]
            in_a_row = in_a_row + 1 if row.get("final") is False else 0
            if in_a_row >= GIVE_UP * jobs:
                client.stop.set()
                kept = f"{found.arrived} arrived before; the same command goes on from there"
                raise SourceError(f"{in_a_row} files in a row could not be fetched ({row['reason']}); {kept}")
    return found


def _missing(wanted: Sequence[Wanted], folder: Path, again: bool, found: Downloads) -> list[Wanted]:
    """What to ask for; the others are counted in `found`: there already, or known not to be had."""
    known = read_record(folder / RECORD)
    missing: list[Wanted] = []
    for file in wanted:
        row = known.get(file.path, {})
        if _is_there(file, folder, row):
            found.there += 1
        elif row.get("final") and row.get("url") == file.url and not again:
            found.failed[file.path] = str(row.get("reason"))
        else:
            missing.append(file)
    return missing


def _results(
    missing: Sequence[Wanted], folder: Path, jobs: int, client: Client, then: Then | None
) -> Generator[tuple[Wanted, dict[str, Any]], None, None]:
    """Each file and its row of the record, in the order in which they come."""
    with ThreadPoolExecutor(jobs) as pool:
        futures: dict[Future[dict[str, Any]], Wanted] = {}
        try:
            futures = {pool.submit(_bring, file, folder, client, then): file for file in missing}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:  # ended early: nothing more is begun, and what is under way stops at its next block
            if not all(future.done() for future in futures):
                client.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)


def _bring(file: Wanted, folder: Path, client: Client, then: Then | None) -> dict[str, Any]:
    path = place(folder, file.path)
    row: dict[str, Any] = {"path": file.path, "url": file.url}
    try:
        got: Fetched = fetch(file, folder, client)
        if then is not None:
            then(path)
    except NotFetched as error:
        return {**row, "status": "failed", "reason": str(error), "final": error.final}
    return {**row, "status": "done", "bytes": path.stat().st_size, "sha256": got.sha256}


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


def _is_there(file: Wanted, folder: Path, row: Mapping[str, Any]) -> bool:
    """Whether the file arrived from that address and still has the size it had then."""
    if row.get("status") != "done" or row.get("url") != file.url:
        return False
    path = place(folder, file.path)
    return path.is_file() and path.stat().st_size == row.get("bytes")


def _end_line(path: Path, record: IO[str]) -> None:
    """So that a half line stays alone."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                record.write("\n")
