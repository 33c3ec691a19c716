"""Small changes are taken into an index before a query is answered."""

from __future__ import annotations

from contextlib import closing

from ncs.build.file_cache import FileCache, is_reusable
from ncs.build.request import find_changes, request_of
from ncs.build.update import update
from ncs.errors import NcsError
from ncs.extract.readers import skip_reason
from ncs.sources import Skipped
from ncs.storage.freshness import remember
from ncs.storage.snapshot import Snapshot, read_description

SECONDS = 1.0
"""Time for comparing the files."""
MOST_CHANGED, MOST_BYTES = 50, 1 << 20
"""Files that an update before a query reads, and their bytes."""


def catch_up(snapshot: Snapshot, state: str) -> int | None:
    """Update an index where little has changed; None where that was done, else the number of files that it is behind.

    state: of its files (`state_of`), in which they need not be compared again. Raises what `find_changes` raises.
    """
    request = request_of(snapshot.description, snapshot.folder)
    with closing(FileCache(snapshot)) as cache:
        difference = find_changes(cache, request, seconds=SECONDS, skipped=Skipped(reason_of=skip_reason))
    changes = difference.changes
    behind = sum(map(len, changes.kinds.values()))
    gone = len(changes.removed) > changes.unchanged + len(changes.changed)  # the sources may be away for a moment
    few = not gone and behind <= MOST_CHANGED and sum(len(file.data) for file in difference.files) <= MOST_BYTES
    if behind and few and difference.complete and is_reusable(snapshot, request.config):
        try:
            update(snapshot.folder, extend_only=True, found=difference)
        except (NcsError, OSError, ValueError, RuntimeError):  # for one, another process is writing: tried again later
            return behind
        if read_description(snapshot.folder).number > snapshot.description.number:
            return None
    remember(snapshot, state, behind)
    return behind
