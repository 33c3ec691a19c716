"""Indexes that a stranger or a damaged disk altered: what is asked of them is answered, or refused in one line."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ncs.workers import Workers
from tests.fuzz import index as fuzz
from tests.fuzz.harness import check_case
from tests.rights import make_pipe
from tests.waiting import LONG

SEGMENT = "segments/000001"


@pytest.mark.slow
def test_whatever_is_done_to_a_file_every_command_answers_or_ends_with_one_line(tmp_path: Path) -> None:
    """One edit after another to every file, and two commands; the checksums fit, as a stranger's do."""
    edits, order = [*fuzz.EDITS] * 3, Random(11)
    with Workers(1, memory=600 << 20) as workers:
        files = 44
        cases = [
            {
                "kind": ("updated", "rich")[number % 2],
                "damage": number % 7 == 0,
                "edits": [(edits[number % len(edits)], number / files, order.randrange(1 << 32), "")],
                "commands": [1, number % len(fuzz.COMMANDS)],
            }
            for number in range(files)
        ]
        tasks = [
            workers.submit(check_case, "index", json.dumps(case).encode(), tmp_path / str(number), seconds=LONG)
            for number, case in enumerate(cases)
        ]
        wrong = {str(case): str(error) for case, task in zip(cases, tasks, strict=True) if (error := task.exception())}
    assert not wrong


def query(folder: Path) -> subprocess.CompletedProcess[str]:
    """`ncs query`, which must end in time, with a stdin that never does."""
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "ncs.cli", "query", "open a file", "-i", str(folder)]
    try:
        return subprocess.run(command, stdin=reader, capture_output=True, text=True, check=False, timeout=LONG)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.fixture
def index(demo: Path, tmp_path: Path) -> Path:
    return shutil.copytree(demo / ".ncs", tmp_path / ".ncs")


def with_sql(statement: str, *values: object) -> Callable[[Path], None]:
    def alter(index: Path) -> None:
        with closing(sqlite3.connect(index / SEGMENT / "documents.sqlite")) as db:
            db.executescript(statement) if not values else db.execute(statement, values)
            db.commit()

    return alter


def with_array(
    name: str, change: Callable[[np.ndarray[tuple[int], np.dtype[np.int64]]], object]
) -> Callable[[Path], None]:
    def alter(index: Path) -> None:
        path = index / SEGMENT / name
        array = np.load(path)
        changed = change(array)
        np.save(path, changed if isinstance(changed, np.ndarray) else array)

    return alter


def with_other(name: str, put: Callable[[Path], object]) -> Callable[[Path], None]:
    def alter(index: Path) -> None:
        (index / name).unlink(missing_ok=True)
        put(index / name)

    return alter


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS id, 'a' AS label FROM c"


@pytest.mark.slow
@pytest.mark.parametrize(
    "alter",
    [
        with_sql(f"DROP TABLE labels; CREATE VIEW labels AS {ENDLESS}"),
        with_sql("UPDATE documents SET body = ?", fuzz.bomb()),
        with_sql("UPDATE documents SET name = x'07'"),
        with_other(f"{SEGMENT}/vocabulary.npy", make_pipe),
        with_other(f"{SEGMENT}/bm25/rows.npy", lambda path: path.symlink_to("/dev/stdin")),
        with_other("statistics/000001/languages.json", lambda path: path.symlink_to("/dev/stdin")),
        with_other("tuned.json", make_pipe),
        with_other("snapshot.json", make_pipe),
        with_array("words.offsets.npy", lambda offsets: offsets.__setitem__(slice(1, None, 2), offsets[-1])),
        with_array("bm25/rows.npy", lambda rows: rows.__setitem__(slice(None), 2**31 - 1)),
        with_array("uses/ids.npy", lambda ids: ids.__setitem__(slice(None), -(2**31))),
        with_array("ncs_centred/vectors.npy", lambda vectors: vectors.__setitem__(0, np.nan)),
        with_array("ncs_centred/vectors.npy", lambda vectors: vectors.astype(object)),
    ],
    ids=range(13),
)
def test_a_hostile_index_is_refused_in_one_line_and_in_time(index: Path, alter: Callable[[Path], None]) -> None:
    alter(index)
    fuzz.update_checksums(index) if (index / "snapshot.json").is_file() else None
    result = query(index)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("ncs: ")
    assert result.stderr.count("\n") == 1
