"""Writers of an index are stopped at any system call that writes: killed, or refused as by a full or failing disk, or
killed by a power cut, which loses what was not synced. In the manner of SQLite's crash tests; it needs strace.

Whatever happened, the last snapshot answers, or the new one, which answers if its commit reported success; and the next
update brings the index up to date and leaves no garbage.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from ncs.build import pipeline, update
from ncs.build.map import Map, make_map
from ncs.build.pipeline import add_rankers
from ncs.build.tune import tune
from ncs.config import BuildConfig
from ncs.errors import NcsError
from ncs.index import Index
from ncs.learn.confidence import TUNED, load_weights
from ncs.search.feedback import Feedback
from ncs.storage.snapshot import SNAPSHOT, open_snapshot, read_description

SECONDS = 120.0
MEMORY = 4 << 30
CASES = 6
PROGRAM = "strace"
FILES = 12
WORDS = ("file", "keyboard", "socket", "window", "image")
CALLS = (
    *("openat", "write", "pwrite64", "ftruncate", "fallocate", "fsync", "fdatasync", "link", "linkat"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat"),
)
POWER = "power"
ERRORS = ("ENOSPC", "EIO")


def write_project(project: Path, *, changed: bool) -> None:
    """Some files; afterwards one is changed, one new and one gone."""
    project.mkdir(exist_ok=True)
    for n in range(FILES):
        verb, noun = WORDS[n % len(WORDS)], WORDS[n * n % len(WORDS)]
        (project / f"m{n}.py").write_text(f"def open_{verb}_{n}({noun}):\n    return open({noun}, {verb}())\n")
    if changed:
        (project / "m1.py").write_text("def open_all(files):\n    for file in files:\n        open(file)\n")
        (project / "new.py").write_text("def open_new_file():\n    return open('new')\n")
        (project / "m2.py").unlink()


def build(folder: Path) -> None:
    Index.build(folder.parent / "project", folder).close()


def build_early(folder: Path) -> None:
    pipeline.MIN_EARLY = 1
    Index.build(folder.parent / "project", folder, config=BuildConfig(embeddings="fasttext")).close()


def update_index(folder: Path) -> None:
    Index.update(folder)[0].close()


def compact(folder: Path) -> None:
    Index.update(folder, compact=True)[0].close()


def merge(folder: Path) -> None:
    update.MAX_SEGMENTS = 2
    update_index(folder)


def tune_index(folder: Path) -> None:
    with open_snapshot(folder, lambda snapshot: snapshot) as snapshot:
        tune(snapshot, [Feedback(f"open file {n}", (n,)) for n in range(FILES - 1)], force=True)


WRITERS: dict[str, Callable[[Path], object]] = {
    "first": build,
    "early": build_early,
    "build": build,
    "update": update_index,
    "compact": compact,
    "merge": merge,
    "map": make_map,
    "add": lambda folder: add_rankers(folder, ["two_field"]),
    "tune": tune_index,
}


def answer(folder: Path) -> dict[str, Any] | None:
    """What an index says, every file compared; None where there is none."""
    if not (folder / SNAPSHOT).exists():
        return None
    with Index.load(folder, verify=True) as index:
        hits = index.search("open file", 100)
        mapped = Map.load(index.snapshot)
        return {
            "code": sorted((hit.document.id, hit.document.code) for hit in hits),
            "pending": index.description.counts.get("pending"),
            "rankers": list(index.description.config.get("rankers", ())),  # type: ignore[call-overload]
            "map": mapped is not None and mapped.places.tolist(),
            "tuned": load_weights(folder),
        }


@dataclass(frozen=True)
class Scene:
    """A writer in its place: the index before (no folder for a first build), what it says before and after, the
    calls that write, as name and number within their thread, and the code that an index of the project holds.
    """

    folder: Path
    base: Path
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    calls: tuple[tuple[str, int], ...]
    code: list[tuple[str, str]]

    def reset(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.base.exists():
            shutil.copytree(self.base, self.folder)


@cache
def scene(name: str, home: Path) -> Scene:
    """Made once a process, as an index knows the path of its sources."""
    place = home / f"{os.getpid()}-{name}"
    folder, base = place / ".ncs", place / "base"
    place.mkdir()
    write_project(place / "project", changed=False)
    if name not in ("first", "early"):
        build(folder)
        if name == "merge":
            (place / "project" / "m3.py").write_text("def open_third():\n    return open('3')\n")
            update_index(folder)
        shutil.copytree(folder, base)
    if name != "tune":
        write_project(place / "project", changed=True)
    before = answer(folder)
    error, log = trace(WRITERS[name], folder, place / "log", ())
    assert not error, error
    calls = tuple((call, number) for call, number, _, paths in lines(log) if inside(folder, paths))
    after = answer(folder)
    with something_new(place / "project"):
        update_index(folder)
    last = answer(folder)
    assert last
    return Scene(folder, base, before, after, calls, last["code"])


@contextmanager
def something_new(project: Path) -> Iterator[None]:
    """A file that an update has to read."""
    path = project / "later.py"
    path.write_text("def open_later(door):\n    return open(door)\n")
    yield
    path.unlink()


def generate(random: Random) -> bytes:
    fault = random.choice(("kill", POWER, POWER, *ERRORS))
    case = {
        "writer": random.choice(list(WRITERS)),
        "fault": fault,
        "at": 1 if fault == POWER and random.random() < 0.3 else random.random(),
        "reader": random.random() < 0.3,
        "lost": random.choice((0.0, 0.5, 0.5, 1.0)),
        "seed": random.randrange(1 << 30),
    }
    return json.dumps(case).encode()


def check(case: bytes, room: Path) -> None:
    values = json.loads(case)
    home = room.parent.parent
    os.environ["HOME"] = str(home)
    at = scene(values["writer"], home)
    at.reset()
    backup = room / "backup"
    if at.base.exists():
        shutil.copytree(at.base, backup)
    inject: tuple[str, ...] = ()
    if values["at"] < 1:
        call, number = at.calls[int(values["at"] * len(at.calls))]
        how = f"error={values['fault']}" if values["fault"] in ERRORS else "signal=KILL"
        inject = ("-e", f"inject={call}:{how}:when={number}")
    with ExitStack() as stack:
        reader = stack.enter_context(Index.load(at.folder)) if values["reader"] and at.before else None
        error, log = trace(WRITERS[values["writer"]], at.folder, room / "log", inject)
        if reader and at.before:
            assert len(reader.search("open file", 100)) == len(at.before["code"]), "a reader lost its snapshot"
    assert "Traceback" not in error, error
    if values["fault"] == POWER:
        cut_power(at.folder, backup, log, values["lost"], Random(values["seed"]))
    found = answer(at.folder)
    early = at.before is None and found is not None and found["pending"] and error != ""
    assert found in (at.before, at.after) or early, f"it says neither the old nor the new: {found}"
    assert error or found == at.after, "a commit that reported success is lost"
    with something_new(at.folder.parent / "project"):
        (build if found is None else update_index)(at.folder)
    found = answer(at.folder)
    assert found is not None
    assert found["code"] == at.code, "the next update does not bring it up to date"
    names = {path.relative_to(at.folder).as_posix() for path in at.folder.rglob("*") if path.is_file()}
    known = {".gitignore", "ncs.lock", SNAPSHOT, TUNED, *read_description(at.folder).files}
    assert not names - known, f"garbage is left: {sorted(names - known)[:3]}"


def trace(work: Callable[[Path], object], folder: Path, log: Path, inject: tuple[str, ...]) -> tuple[str, list[str]]:
    """Do work in a forked process under strace: its error ("" for none, "killed"), and its calls that write."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.kill(os.getpid(), signal.SIGSTOP)
            work(folder)
        except (NcsError, OSError) as failure:
            os.write(writing, str(failure).encode())
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, os.WUNTRACED)
    calls = ",".join(CALLS)
    command = [PROGRAM, "-f", "-b", "execve", "-y", "-qq", "-s", "0", "-o", str(log), "-e", f"trace={calls}", *inject]
    with subprocess.Popen([*command, "-p", str(child)]) as tracer:
        while "TracerPid:\t0" in Path(f"/proc/{child}/status").read_text():
            assert tracer.poll() is None, "strace cannot attach"
            time.sleep(0.001)
        os.kill(child, signal.SIGCONT)
        with os.fdopen(reading, "rb") as file:
            error = file.read().decode()
        _, status = os.waitpid(child, 0)
    return error or ("killed" if os.WIFSIGNALED(status) else ""), log.read_text().splitlines()


def lines(log: list[str]) -> Iterator[tuple[str, int, str, list[str]]]:
    """Calls that succeeded: name, number within its thread, arguments, paths."""
    numbers: Counter[tuple[str, str]] = Counter()
    pending: dict[str, tuple[str, int, str]] = {}
    for line in log:
        if begun := re.match(r"(\d+) +(\w+)\((.*)", line):
            thread, call, arguments = begun.groups()
            numbers[thread, call] += 1
            if arguments.endswith("<unfinished ...>"):
                pending[thread] = call, numbers[thread, call], arguments
                continue
            number = numbers[thread, call]
        elif resumed := re.match(r"(\d+) +<\.\.\. \w+ resumed>(.*)", line):
            call, number, arguments = pending.pop(resumed[1])
            arguments += resumed[2]
        else:
            continue
        if re.search(r"\) += \d", arguments) and not ("openat" in call and "O_CREAT" not in arguments):
            named = re.findall(r'<([^>]*)>, "([^"]+)"', arguments)
            plain = re.findall(r'(?:^|, )"(/[^"]+)"', arguments) if not named else []
            handles = re.findall(r"^\d+<([^>]*)>", arguments) if not named else []
            yield call, number, arguments, [*(str(Path(*pair)) for pair in named), *plain, *handles]


def inside(folder: Path, paths: list[str]) -> bool:
    return any(Path(path) == folder or folder in Path(path).parents for path in paths)


def cut_power(folder: Path, backup: Path, log: list[str], share: float, random: Random) -> None:
    """Lose what was not synced: each entry of a folder, and the content of each file, with a chance of `share`."""
    dirty: set[str] = set()
    entries: list[tuple[str, list[str]]] = []
    exist = {str(folder / path.relative_to(backup)) for path in backup.rglob("*")}
    for call, _, arguments, paths in lines(log):
        if call in ("fsync", "fdatasync"):
            dirty.discard(paths[0])
            entries = [(done, names) for done, names in entries if Path(names[-1]).parent != Path(paths[0])]
        elif not inside(folder, paths) or "(deleted)" in paths[0] or "O_TMPFILE" in arguments:
            continue
        elif call in ("write", "pwrite64", "ftruncate", "fallocate"):
            dirty.add(paths[0])
        else:
            kind = call.removesuffix("2").removesuffix("at")
            if kind == "open":
                dirty.add(paths[0])
                if paths[0] in exist:
                    continue
            if kind == "rename":
                dirty = {paths[1] if name == paths[0] else name for name in dirty}
            exist.add(paths[-1])
            if kind in ("unlink", "rmdir"):
                exist.discard(paths[0])
                kind = "rmdir" if "AT_REMOVEDIR" in arguments else kind
            entries.append((kind, paths))
    for kind, paths in reversed(entries):
        if random.random() >= share:
            continue
        path, old = Path(paths[-1]), backup / Path(paths[-1]).relative_to(folder)
        if kind == "mkdir":
            shutil.rmtree(path, ignore_errors=True)
        elif kind == "rmdir":
            path.mkdir(parents=True, exist_ok=True)
        elif kind == "unlink":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(old.read_bytes() if old.exists() else bytes(random.randrange(99)))
        elif path.exists():
            if kind == "rename":
                path.rename(paths[0])
            else:
                path.unlink()
            if old.exists():
                shutil.copyfile(old, path)
    for name in sorted(dirty):
        path = Path(name)
        if path.is_file() and random.random() < share:
            size = path.stat().st_size
            path.write_bytes(random.choice((b"", bytes(size), path.read_bytes()[: random.randrange(size + 1)])))
