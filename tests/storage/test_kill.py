"""Whenever a writer dies, the last snapshot or the new one answers, whole, and the next build removes what it left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from ncs.errors import IndexFolderError
from ncs.storage.snapshot import open_snapshot
from tests.storage.small_index import consistent_text_of
from tests.waiting import LONG

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are killed in forked processes"),
]

COMMAND = (sys.executable, "-W", "error", "-m", "tests.storage.kills")


def kills(mode: str, folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run([*COMMAND, mode, str(folder)], capture_output=True, text=True, check=False, timeout=5 * LONG)
    assert (done.stderr, done.returncode) == ("", 0)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    for report in reports:
        assert report["next"] == "next"
        numbers = [name for name in report["names"] if name.isdigit()]
        assert (len(numbers), len(set(numbers))) == (2, 1), report["names"]
        others = [name for name in report["names"] if name not in {*numbers, "tombstones"}]
        assert others == [".gitignore", "ncs.lock", "segments", "snapshot.json", "statistics"]
    return reports


@pytest.mark.parametrize(("mode", "before"), [("first", ""), ("again", "old"), ("update", "old")])
def test_killed_before_any_operation_on_files_the_last_snapshot_answers_or_the_new_one(
    tmp_path: Path, mode: str, before: str
) -> None:
    reports = kills(mode, tmp_path)
    assert len(reports) >= 30
    # there is one moment at which the new snapshot takes over
    assert [text for text, _ in groupby(report["text"] for report in reports)] == [before, "new"]


def test_readers_always_find_a_whole_snapshot_while_builds_and_updates_replace_it(tmp_path: Path) -> None:
    seen = set()
    with subprocess.Popen(
        [*COMMAND, "alive", str(tmp_path)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as writer:
        while writer.poll() is None:
            try:
                seen.add(open_snapshot(tmp_path / "idx", consistent_text_of))
            except IndexFolderError:
                assert not seen
            if len(seen) > 10:
                (tmp_path / "enough").touch()
        last, errors = writer.communicate()
    assert errors == ""
    assert open_snapshot(tmp_path / "idx", consistent_text_of) == last.strip()
