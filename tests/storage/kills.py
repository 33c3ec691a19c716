"""Builds and updates that are killed, each in a process of its own; prints a JSON line a kill. Run by test_kill.py."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from ncs.errors import IndexFolderError
from ncs.storage.snapshot import open_snapshot
from tests.storage.small_index import build, consistent_text_of, update

STEPS: tuple[str, ...] = (
    *("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir", "os.listdir", "os.link"),
    *("shutil.rmtree", "shutil.copytree", "shutil.copyfile", "fcntl.flock"),
)


def read(folder: Path) -> str:
    """What the index says, every file read and compared; "" where there is none."""
    try:
        assert not open_snapshot(folder, lambda snapshot: snapshot.distrust), "killed, and not trusted"
        return open_snapshot(folder, consistent_text_of, verify=True)
    except IndexFolderError:
        return ""


def is_killed(work: Callable[[], None]) -> bool:
    """Whether a forked process that does `work` was killed."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def kill_at_every_step(folder: Path, mode: str) -> None:
    """Kill a build or update just before its 1st, 2nd, ... operation on files, until it gets through; report what a
    killed process left, then what the next build makes of it.
    """
    for step in count(1):
        place = folder / str(step)
        if mode != "first":
            build(place, "old")

        def work(place: Path = place, step: int = step) -> None:
            left = step

            def hook(event: str, arguments: object) -> None:
                nonlocal left
                left -= event in STEPS
                if left == 0 and event in STEPS:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(hook)
            (update if mode == "update" else build)(place, "new")

        killed = is_killed(work)
        text = read(place)
        build(place, "next")
        names = sorted(path.name for path in [*place.iterdir(), *place.glob("*/*")])
        print(json.dumps({"text": text, "next": read(place), "names": names}), flush=True)
        if not killed:
            return


def commit_until_enough(folder: Path) -> None:
    """Builds and updates in turn, until somebody has seen enough."""
    for number in count():
        build(folder / "idx", str(number))
        update(folder / "idx", f"{number} updated")
        if number >= 99 and (folder / "enough").exists():
            print(f"{number} updated")
            return


if __name__ == "__main__":
    os.fsync = lambda fd: None  # what is written survives SIGKILL without it, and it takes most of the time
    mode, target = sys.argv[1], Path(sys.argv[2])
    build(target / "imports", "everything is imported before the first fork")
    update(target / "imports", "so is this")
    if mode == "alive":
        commit_until_enough(target)
    else:
        kill_at_every_step(target, mode)
