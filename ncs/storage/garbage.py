"""What is left in an index folder: of builds that were killed, and of indexes that were replaced."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ncs.storage.manifest import GENERATION, NAME, current_generation


def remove_others(folder: Path) -> None:
    """Remove what killed builds left, and the generations before the current one.

    Where the manifest cannot be read, finished generations stay: they may be all that is left of an index.
    """
    current = current_generation(folder)
    certain = current is not None or not (folder / NAME).exists()
    (folder / f"{NAME}.part").unlink(missing_ok=True)
    for entry in list(os.scandir(folder)):
        unfinished = entry.name.endswith(".part")
        ours = GENERATION.fullmatch(entry.name.removesuffix(".part"))
        if ours and entry.name != current and (unfinished or certain):
            _remove_unread(Path(entry))


def _remove_unread(data: Path) -> None:
    """Remove a generation, unless a reader holds it (`ncs.storage.folder.Hold`): then a later build will."""
    if os.name == "nt":  # there files that are open stay by themselves
        shutil.rmtree(data, ignore_errors=True)
        return
    descriptor = os.open(data, os.O_RDONLY)
    try:
        if _lock_alone(descriptor):
            shutil.rmtree(data, ignore_errors=True)
    finally:
        os.close(descriptor)


def _lock_alone(descriptor: int) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks has no holds either
    return True
