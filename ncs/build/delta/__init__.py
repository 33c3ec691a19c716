"""What changed since an index was built, kept beside it: few documents made anew instead of all, read as one index.

The base is a whole build; its files are linked from generation to generation. The folder `delta/` beside them is made
anew by each update. Rows are numbered as a whole build would number them, whoever holds them.
"""

from __future__ import annotations

from pathlib import Path

ROOM = "delta"
WHOLE = 20_000
"""Documents up to which an update makes all anew: that is quick, and what is counted stays fresh."""


def room_of(data: Path) -> Path | None:
    """The delta of a data folder; None where the index is as it was built."""
    room = data / ROOM
    return room if room.is_dir() else None
