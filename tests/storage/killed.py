"""Builds and updates that are killed, each in a process of its own; prints a JSON line a kill. Run by test_kill.py."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np

from ncs.errors import IndexFolderError
from ncs.storage.commit import open_writer
from ncs.storage.documents import NAME, Documents
from ncs.storage.documents_writer import StoreWriter
from ncs.storage.packing import pack
from ncs.storage.snapshot import SEGMENTS, STATISTICS, Snapshot, open_snapshot
from ncs.types import Document, Location

STEPS: tuple[str, ...] = (
    *("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir", "os.listdir", "os.link"),
    *("shutil.rmtree", "shutil.copytree", "shutil.copyfile", "sqlite3.connect", "fcntl.flock"),
)


def write_segment(path: Path, text: str, rows: int) -> None:
    """Documents that all say `text`, each from a file of its own."""
    with StoreWriter(path / NAME) as writer:
        for row in range(rows):
            document = Document(f"{row}", text, "p", row + 1, row + 2, "java", "method", "f", "A.f", {}, text * 20)
            writer.add([pack(document)])
            writer.add_copy(row, Location("copy", "p", 1, 2, text))
        writer.finish()
    (path / "files").mkdir()
    np.save(path / "files" / "rows.npy", np.arange(rows + 1))


def build(folder: Path, text: str, rows: int) -> None:
    """An index of one segment."""
    with open_writer(folder) as writer:
        segment = writer.new_folder(SEGMENTS)
        write_segment(segment, text, rows)
        statistics = writer.new_folder(STATISTICS, segment.name)
        (statistics / "text").write_text(text)
        writer.commit([(segment, rows)], statistics, config={"texts": [text]}, counts={"documents": rows}, versions={})


def update(folder: Path, text: str, rows: int) -> None:
    """Another segment, and a tombstone in the first."""
    with open_writer(folder) as writer, open_snapshot(folder, lambda snapshot: snapshot) as old:
        segment = writer.new_folder(SEGMENTS)
        write_segment(segment, text, rows)
        writer.commit(
            [*((each.path, each.documents) for each in old.segments), (segment, rows)],
            old.statistics,
            tombstones=np.array([[int(old.segments[0].name), 0]]),
            config={"texts": [*old.description.config["texts"], text]},  # type: ignore[misc]
            counts={"documents": old.documents - 1 + rows},
            versions={},
        )


def text_of(snapshot: Snapshot) -> str:
    """What its last segment says; SystemExit where files of two snapshots are mixed."""
    texts: list[str] = snapshot.description.config["texts"]  # type: ignore[assignment]
    documents = Documents(snapshot)
    whole = snapshot.documents == snapshot.description.counts["documents"]
    whole = whole and (snapshot.statistics / "text").read_text() == texts[0]
    for segment, text in zip(snapshot.segments, texts, strict=True):
        for each in documents.documents(range(segment.first, segment.first + segment.documents)):
            whole = whole and each.code == text * 20 and each.copies[0].qualified_name == text
    documents.close()
    if not whole:
        raise SystemExit(f"{snapshot.folder} mixes snapshots")
    return texts[-1]


def read(folder: Path) -> str:
    """What the index says, every file read and compared; "" where there is none."""
    try:
        return open_snapshot(folder, text_of, verify=True)
    except IndexFolderError:
        return ""


def run_and_kill(work: Callable[[], None], after: float | None = None) -> bool:
    """Whether a forked process that does `work` was killed, by itself or `after` seconds by us."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def report(folder: Path, **about: object) -> None:
    """What a killed process left, then what the next build makes of it."""
    text = read(folder)
    build(folder, "next", 3)
    names = sorted(path.name for path in [*folder.iterdir(), *folder.glob("*/*")])
    print(json.dumps({**about, "text": text, "next": read(folder), "names": names}), flush=True)


def kill_at_every_step(folder: Path, mode: str) -> None:
    """Kill a build or update just before its 1st, 2nd, ... operation on files, until it gets through."""
    for step in count(1):
        place = folder / str(step)
        if mode != "first":
            build(place, "old", 5)

        def work(place: Path = place, step: int = step) -> None:
            left = step

            def hook(event: str, arguments: object) -> None:
                nonlocal left
                left -= event in STEPS
                if left == 0 and event in STEPS:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(hook)
            (update if mode == "update" else build)(place, "new", 5)

        killed = run_and_kill(work)
        report(place, step=step)
        if not killed:
            return


def kill_at_random_moments(folder: Path, kills: int) -> None:
    """Kill updates that follow one another, wherever they happen to be."""
    moments = random.Random(20)
    build(folder, "old", 1500)
    start = time.perf_counter()
    update(folder, "warm", 1500)
    seconds = time.perf_counter() - start
    for kill in range(kills):
        build(folder, "old", 1500)
        run_and_kill(lambda: update(folder, "new", 1500), moments.uniform(0, 1.2 * seconds))
        report(folder, kill=kill)


def commit_until_enough(folder: Path) -> None:
    """Builds and updates in turn, until somebody has seen enough."""
    for number in count():
        build(folder / "idx", str(number), 5)
        update(folder / "idx", f"{number} updated", 5)
        if number >= 99 and (folder / "enough").exists():
            print(f"{number} updated")
            return


if __name__ == "__main__":
    os.fsync = lambda fd: None  # what is written survives SIGKILL without it, and it takes most of the time
    mode, target = sys.argv[1], Path(sys.argv[2])
    build(target / "imports", "everything is imported before the first fork", 2)
    update(target / "imports", "so is this", 2)
    if mode == "moments":
        kill_at_random_moments(target / "idx", kills=40)
    elif mode == "alive":
        commit_until_enough(target)
    else:
        kill_at_every_step(target, mode)
