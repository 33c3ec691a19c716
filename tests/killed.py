"""Builds that are killed, each in a process of its own; prints one JSON line a kill. Run by test_kill.py."""

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
from ncs.storage.folder import new_generation, open_folder

from ncs.errors import IndexFolderError
from ncs.storage.documents import Store
from ncs.storage.documents_writer import StoreWriter
from ncs.storage.packing import pack
from ncs.types import Document, Location

STEPS: tuple[str, ...] = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.scandir",
    "os.listdir",
    "shutil.rmtree",
)
STEPS += ("sqlite3.connect", "fcntl.flock")


def build(folder: Path, text: str, rows: int) -> None:
    """An index whose files all say `text`."""
    with new_generation(folder) as generation:
        with StoreWriter(generation.path / "documents.sqlite") as writer:
            for row in range(rows):
                document = Document(f"{row}", text, "p", row + 1, row + 2, "java", "method", "f", "A.f", {}, text * 20)
                writer.add([pack(document)])
                writer.add_copy(row, Location("copy", "p", 1, 2, text))
            writer.finish()
        (generation.path / "ncs").mkdir()
        np.save(generation.path / "ncs" / "vectors.npy", np.full(rows, len(text)))
        (generation.path / "ncs" / "text").write_text(text)
        generation.commit(config={"text": text}, counts={"documents": rows}, versions={})


def found(folder: Path) -> str:
    """What the index says, every file read and compared; "" where there is none."""
    try:
        data, manifest = open_folder(folder, verify=True)
    except IndexFolderError:
        return ""
    text = str(manifest.config["text"])
    with Store(data / "documents.sqlite") as store:
        documents = store.documents(range(len(store)))
    whole = len(documents) == manifest.counts["documents"] and (data / "ncs" / "text").read_text() == text
    if (
        not whole
        or {d.code for d in documents} != {text * 20}
        or {d.copies[0].qualified_name for d in documents} != {text}
    ):
        raise SystemExit(f"{folder} mixes generations")
    return text


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


def check(folder: Path, **about: object) -> None:
    """Report what a killed build left, then what the next build makes of it."""
    text = found(folder)
    build(folder, "next", 3)
    names = sorted(path.name for path in folder.iterdir())
    print(json.dumps({**about, "found": text, "next": found(folder), "names": names}), flush=True)


def kill_at_every_step(folder: Path, *, first: bool) -> None:
    """Kill a build just before its 1st, 2nd, ... operation on files, until it gets through."""
    for step in count(1):
        place = folder / str(step)
        if not first:
            build(place, "old", 5)

        def work(place: Path = place, step: int = step) -> None:
            left = step

            def hook(event: str, arguments: object) -> None:
                nonlocal left
                left -= event in STEPS
                if left == 0 and event in STEPS:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(hook)
            build(place, "new", 5)

        if not run_and_kill(work):
            print(json.dumps({"step": step, "found": found(place)}))
            return
        check(place, step=step)


def kill_at_random_moments(folder: Path, kills: int) -> None:
    """Kill builds that follow one another, wherever they happen to be."""
    moments = random.Random(20)
    start = time.perf_counter()
    build(folder, "old", 1500)
    seconds = time.perf_counter() - start
    for kill in range(kills):
        after = moments.uniform(0, 1.2 * seconds)
        run_and_kill(lambda kill=kill: build(folder, f"new{kill}", 1500), after)  # type: ignore[misc]
        check(folder, kill=kill)


if __name__ == "__main__":
    os.fsync = lambda fd: None  # what is written survives SIGKILL without it, and it takes most of the time
    target = Path(sys.argv[2])
    build(target / "imports", "everything is imported before the first fork", 1)
    if sys.argv[1] == "moments":
        kill_at_random_moments(target / "idx", kills=60)
    elif sys.argv[1] == "alive":
        for number in count():
            build(target / "idx", str(number), 5)
            if number >= 199 and (target / "enough").exists():
                print(number)
                break
    else:
        kill_at_every_step(target, first=sys.argv[1] == "first")
