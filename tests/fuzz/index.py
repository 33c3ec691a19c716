"""Small indexes whose files were altered, by a stranger (checksums fit) or by a damaged disk (they do not).

Every command answers, or says in one line what is wrong; nothing waits, crashes, or shows a file beside the index.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from ncs.build.map import make_map
from ncs.index import Index
from ncs.learn.tokenization import StemTokenizer
from ncs.storage import snapshot as snapshots
from ncs.storage.snapshot import checksum
from tests import corpus, heads
from tests.command import invoke

SECONDS = 120.0
MEMORY = 1 << 30
CASES = 8

KINDS = ("fresh", "updated", "rich")
SOURCE = "def open_file(path):\n    return open(path)\n"
NOTHING = blake2b(digest_size=16).hexdigest()
SECRET = "c4n4ry-0f-4-s3cr3t-f1l3"
EXTREMES = (0, 1, -1, 2**31 - 1, -(2**31), 2**62, -(2**63), 10**12)
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**9, 10**30, 1e308, "", "../../../etc/passwd", "x" * 10_000, [], [[]], {}, [1, "a"], {"a": {}},
)  # fmt: skip
STATEMENTS = (
    "DROP TABLE copies; CREATE VIEW copies AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
    " SELECT x AS row, 1 AS start_line, 1 AS end_line, 0 AS file, 'a' AS qualified_name FROM c",
    "ALTER TABLE labels RENAME TO old; CREATE VIEW labels AS SELECT id, label || hex(zeroblob(100000000)) AS label"
    " FROM old",
    "CREATE TRIGGER t AFTER INSERT ON files BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE v USING fts5(x)",
    "CREATE INDEX more ON files (path)",
    "DROP INDEX documents_id",
    "UPDATE documents SET {column} = {value}",
    "UPDATE copies SET row = {value}",
    "UPDATE files SET path = {value}",
    "UPDATE labels SET label = {value}",
    "UPDATE columns SET data = {value}",
    "UPDATE documents SET body = zeroblob(20000000) WHERE row = 0",
    "DELETE FROM documents",
    "DELETE FROM labels",
    "DELETE FROM columns WHERE name = 'kind'",
    "UPDATE repositories SET id = id + 1000",
    "INSERT INTO copies SELECT row, 1, 1, file, 'x' FROM documents, (SELECT 1 FROM documents, documents LIMIT 5000)",
)
COLUMNS = ("id", "start_line", "end_line", "file", "language", "kind", "name", "qualified_name", "digest", "body")
SQL_VALUES = (
    "0", "-1", "9223372036854775807", "1e300", "''", "x''", "x'ff'", "'a\nb'", "zeroblob(1000000)", "randomblob(50)",
    "NULL", "$bomb",
)  # fmt: skip
COMMANDS = (
    ("query", "open a file"),
    ("query", "hide the soft keyboard", "--explain", "--json", "-k", "50"),
    ("query", "View.setPadding", "--ranker", "two_field"),
    ("query", "close the socket", "--ranker", "unif", "--explain"),
    ("query", "opne teh file", "--functions-only", "--path", "src", "--format", "vimgrep"),
    ("similar", "a.py:1"),
    ("words", "file"),
    ("info",),
    ("info", "--json", "--verify"),
    ("map", "--points", "5"),
    ("tune", "--from-feedback", "questions.tsv", "--force"),
    ("update", "-q"),
    ("update", "--compact", "-q"),
    ("query", "open a file", "--ranker", "ncs_postrank", "--format", "plain"),
    ("query", "close the socket", "--ranker", "ncs_enhanced", "--json"),
    ("query", "the file", "--unfold", "--kind", "function", "-a", "--min-confidence", "0.1"),
    ("similar", "a.py:1", "--json"),
    ("eval", "questions.tsv"),
    ("doctor",),
    ("build", "--add", "two_field", "-q"),
    ("build", "repos", "-q"),
    ("tune", "--reset"),
)


PARTS = ("", "", "snapshot.json", "tuned.json", ".json", ".npy", ".sqlite", "unif", "statistics", "tombstones")
"""Of the names of files: half of the edits are of these, as most files are arrays of a segment."""


def generate(random: Random) -> bytes:
    edits = [
        [
            random.choice([*EDITS, *("numbers", "values", "tables", "bodies") * 3]), random.random(),
            random.randrange(1 << 32), random.choice(PARTS),
        ]
        for _ in range(random.choice((1, 1, 1, 2, 5)))
    ]  # fmt: skip
    commands = [0, *random.sample(range(1, len(COMMANDS)), 4)]
    values = {"kind": random.choice(KINDS), "damage": random.random() < 0.4, "edits": edits, "commands": commands}
    return json.dumps(values).encode()


def check(case: bytes, room: Path) -> None:
    values, folder = json.loads(case), room / ".ncs"
    shutil.copytree(base(values["kind"]), room, dirs_exist_ok=True)
    (room / "a.py").write_text(SOURCE)
    (room / "questions.tsv").write_text("open a file\topen_file\n")
    (room.parent / "secret.json").write_text(json.dumps(dict.fromkeys(("weights", "model", SECRET), SECRET)))
    for name, where, seed, part in values["edits"]:
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        files = [path for path in files if path.name not in (".gitignore", "ncs.lock")]
        files = [path for path in files if part in path.relative_to(folder).as_posix()] or files
        with suppress(Exception):  # an edit that an earlier one made impossible
            EDITS[name](files[int(where * len(files))], Random(seed))
    if not values["damage"] and (folder / "snapshot.json").is_file() and not (folder / "snapshot.json").is_symlink():
        with suppress(Exception):
            update_checksums(folder)
    with pytest.MonkeyPatch.context() as patch:
        if values["damage"]:  # all files are as large ones, whose checksums are not compared when an index is opened
            patch.setattr(snapshots, "QUICK_BYTES", 0)
        for number in values["commands"]:
            run(COMMANDS[number], folder, room)


def update_checksums(folder: Path) -> None:
    """As a stranger would, who computes those himself."""
    path = folder / "snapshot.json"
    content = json.loads(path.read_bytes())
    for name in list(content["files"]):
        if not (folder / name).exists():
            del content["files"][name]
        elif (folder / name).is_file():
            content["files"][name] = checksum(folder / name)
        else:
            content["files"][name] = {"bytes": (folder / name).stat().st_size, "blake2b": NOTHING}
    path.write_text(json.dumps(content))


def run(command: tuple[str, ...], folder: Path, room: Path) -> None:
    """Run a command; AssertionError unless it answers, or ends with 2 and one line."""
    done, called = invoke(*command, "-i", str(folder), cwd=room), " ".join(command)
    told = done.stderr
    assert done.returncode in (0, 1, 2), f"{called} ended with {done.returncode}"
    assert "Traceback" not in told, f"{called}: {told.splitlines()[-1]}; {told.splitlines()[-3]}"
    assert SECRET not in done.stdout + told, f"{called} shows a file beside the index"
    if done.returncode == 2:
        assert not done.stdout, f"{called} printed {done.stdout[:100]!r} before its error"
        assert told.startswith("ncs: "), f"{called} said {told[:200]!r}"
        assert told.count("\n") == 1, f"{called} said {told[:200]!r}"


@cache
def bomb() -> bytes:
    """A body that unpacks to a thousand times its size."""
    stream = zlib.compressobj(9)
    return b"".join([stream.compress(b"p"), *(stream.compress(b"\x1f" * (1 << 20)) for _ in range(64)), stream.flush()])


@cache
def base(kind: str) -> Path:
    """A small project with its index, signed by a key of this process."""
    room = Path(tempfile.mkdtemp(prefix="ncs-fuzz-index-"))
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    os.environ["XDG_STATE_HOME"] = str(room.parent / f"ncs-fuzz-state-{os.getpid()}")
    root = corpus.write(room / "repos")
    if kind == "rich":
        make_rich(room, root)
    else:
        Index.build(root, room / ".ncs").close()
    if kind == "updated":
        (root / "tools" / "files.py").write_text(SOURCE)
        (root / "tools" / "more.py").write_text(SOURCE.replace("open", "close"))
        Index.update(room / ".ncs")[0].close()
    (room / ".ncs" / "tuned.json").write_text('{"weights": {"naming": 0.5}}')
    return room


def make_rich(room: Path, root: Path) -> None:
    """An index with a map, and rankers on request: a head with a translation, and others."""
    words = ("close", "file", "hide", "keyboard", "open", "path", "read", "socket")
    head = heads.head(1, words=words, tokenizer=StemTokenizer)
    replace(head, translation=heads.translation(len(words))).save(room / "head")
    pairs = [{"query": "open a file", "code": "def open_file(path): open(path)", "language": "python"}]
    (room / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs * 5))
    rankers = ("two_field", "ncs_postrank", f"unif:head={room / 'head'}", f"ncs_enhanced:pairs={room / 'pairs.jsonl'}")
    Index.build(root, room / ".ncs", config=replace(corpus.QUICK, rankers=rankers)).close()
    with suppress(Exception):
        make_map(room / ".ncs", points=5)


def _truncate(path: Path, random: Random) -> None:
    os.truncate(path, int(random.choice((0, 1, random.random() * path.stat().st_size, path.stat().st_size - 1)) or 0))


def _extend(path: Path, random: Random) -> None:
    with path.open("ab") as file:
        file.write(random.choice((b"\0", b"\n", b"x" * 5000, random.randbytes(100))))


def _flip(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 1, 3, 30)) if data else 0):
        data[int(random.random() ** random.choice((1, 4)) * len(data))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, 10))
    path.write_bytes(data)


def _zero(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    start, length = random.randrange(len(data) + 1), random.choice((8, 128, 4096))
    data[start : start + length] = bytes(len(data[start : start + length]))
    path.write_bytes(data)


def _index_of(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.name == ".ncs")


def _swap(path: Path, random: Random) -> None:
    other = random.choice(sorted(each for each in _index_of(path).rglob(f"*{path.suffix}") if each.is_file()))
    shutil.copyfile(other, path) if other != path else path.unlink()


def _replace(path: Path, random: Random) -> None:
    path.unlink()
    secret = _index_of(path).parent.parent / "secret.json"
    how = random.choice(("", "pipe", "folder", "/dev/stdin", "/dev/zero", "/dev/tty", str(secret)))
    if how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how:
        path.symlink_to(how)


def _link_folder(path: Path, random: Random) -> None:
    """The folder of a file moves out of the index, and a link leads there."""
    folder = path.parent
    if folder.name == ".ncs":
        return
    outside = _index_of(folder).parent / f"moved{random.randrange(1 << 30)}"
    folder.rename(outside)
    folder.symlink_to(outside)


def _numbers(path: Path, random: Random) -> None:
    """Other values, kinds or shapes in an array."""
    if path.suffix != ".npy":
        return _flip(path, random)
    try:
        array = np.load(path)
    except (ValueError, OSError, EOFError):
        return None
    how = random.randrange(8)
    flat = array.reshape(-1).copy()
    if how < 4:
        picked = [random.randrange(flat.size) for _ in range(random.choice((1, 1, 5, flat.size)))] if flat.size else []
        whole = np.iinfo(flat.dtype) if flat.dtype.kind in "iu" else None
        for at in picked:
            value = random.choice(EXTREMES)
            if whole:
                flat[at] = min(max(value, whole.min), whole.max)
            else:
                flat[at] = random.choice((value % 2, float("nan"), float("inf"), -3e38, 1e-40))
        array = flat.reshape(array.shape)
    elif how == 4:
        array = array.astype(random.choice(("i1", "i8", "f4", "f8", ">i4", "c16", "U1", "f2")), casting="unsafe")
    elif how == 5:
        array = random.choice((array[None], array[:0], np.asfortranarray(array[None]), flat, np.repeat(flat, 3)))
    elif how == 6:
        data = path.read_bytes()
        shape = random.choice(("(1000000000000,)", "(-1,)", "(2, 99999999999999999999)", "()", "(0, 1000000000)", "1"))
        header = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        path.write_bytes(data[:10] + header.ljust(len(data) - flat.nbytes - 11)[: len(data)] + b"\n" + flat.tobytes())
        return None
    else:
        header = random.choice((b"(" * 9000, b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", b"9" * 9000))
        path.write_bytes(b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + flat.tobytes())
        return None
    with np.errstate(all="ignore"):
        np.save(path, array, allow_pickle=True)
    return None


def _values(path: Path, random: Random) -> None:
    """Another value somewhere in JSON."""
    if path.suffix != ".json":
        return _numbers(path, random)
    try:
        content: Any = json.loads(path.read_bytes())
    except (ValueError, OSError):
        return None
    at, parent = content, None
    while isinstance(at, (dict, list)) and at and (parent is None or random.random() < 0.8):
        key: Any = random.choice(list(at)) if isinstance(at, dict) else random.randrange(len(at))
        parent, at = (at, key), at[key]
    value = random.choice(VALUES)
    if parent is None or random.random() < 0.1:
        content = value
    elif random.random() < 0.2 and isinstance(parent[0], dict):
        del parent[0][parent[1]]
    else:
        parent[0][parent[1]] = value
    text = json.dumps(content)
    if random.random() < 0.1:
        text = random.choice(("[" * 100_000, "9" * 6000, text.replace(": ", ": NaN", 1), "[" + "[]," * 100_000 + "1]"))
    path.write_text(text)
    return None


def _tables(path: Path, random: Random) -> None:
    """Other tables, rows or values in the documents."""
    if path.suffix != ".sqlite":
        found = [each for each in path.parents[0].rglob("*.sqlite") if not each.is_symlink()]
        return _tables(found[0], random) if found else _values(path, random)
    statement = random.choice(STATEMENTS).format(column=random.choice(COLUMNS), value=random.choice(SQL_VALUES))
    with closing(sqlite3.connect(path)) as db, suppress(sqlite3.Error):
        db.execute("PRAGMA journal_mode = OFF")
        if "$bomb" in statement:
            db.execute(statement.replace("$bomb", "?"), (bomb(),))
        else:
            db.executescript(statement)
        db.commit()
    return None


def _bodies(path: Path, random: Random) -> None:
    """Other words or code in a body, packed as ours are."""
    if path.suffix != ".sqlite":
        return _tables(path, random)
    with closing(sqlite3.connect(path)) as db, suppress(sqlite3.Error, zlib.error):
        row, body = db.execute(
            "SELECT row, body FROM documents ORDER BY row * ? % 7 LIMIT 1", (random.randrange(1, 7),)
        ).fetchone() or (0, b"")
        data = bytearray(zlib.decompress(body))
        how, at = random.randrange(5), random.randrange(len(data) or 1)
        if how == 0:
            data[at : at + random.choice((0, 1, 1000))] = random.choice(
                (b"\x1e", b"\x1f", b"\x1ename", b"\xff", b"\n\x1b[2J")
            )
        elif how == 1:
            words: Any = random.choice(({"name": ["open"]}, {"no field": ["x"]}, {"name": "open"}, [], {"name": [[1]]}))
            data[:] = b"j" + json.dumps([random.choice(("code", 1, None, "x\n" * 50_000)), words]).encode()
        elif how == 2:
            data[:] = b"j" + random.choice((b"[" * 100_000, b"9" * 6000, b"{}", b"[1,2,3]", b"NaN"))
        elif how == 3:
            data[1:1] = random.choice((b"((" * 40_000, b"class A {" * 5_000, b"\x1f".join([b"open"] * 200_000)))
        else:
            data[:] = random.choice((b"", b"p", b"x", b"j", data[::-1]))
        stream = zlib.compressobj(random.choice((0, 9)))
        db.execute("UPDATE documents SET body = ? WHERE row = ?", (stream.compress(data) + stream.flush(), row))
        db.commit()
    return None


EDITS: dict[str, Callable[[Path, Random], None]] = {
    "truncate": _truncate, "extend": _extend, "flip": _flip, "zero": _zero, "swap": _swap, "replace": _replace,
    "link_folder": _link_folder, "numbers": _numbers, "values": _values, "tables": _tables, "bodies": _bodies,
}  # fmt: skip
