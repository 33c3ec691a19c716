"""Whenever a build dies, the index before it or the new one answers, whole, and the next build clears up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from ncs.storage.folder import Hold, Manifest, reading

from ncs.storage.documents import Store
from tests.waiting import LONG

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="builds are killed in forked processes"),
]

COMMAND = (sys.executable, "-W", "error", "-m", "tests.killed")


def kills(mode: str, folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run([*COMMAND, mode, str(folder)], capture_output=True, text=True, check=False, timeout=5 * LONG)
    assert (done.stderr, done.returncode) == ("", 0)
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_the_next_build_left_no_garbage(kill: dict[str, Any]) -> None:
    assert kill["next"] == "next"
    current = [name for name in kill["names"] if name.startswith("data-")]
    assert len(current) == 1
    assert sorted(kill["names"]) == sorted([".gitignore", "manifest.json", "ncs.lock", *current])


@pytest.mark.parametrize(("mode", "before"), [("again", "old"), ("first", "")])
def test_killed_before_any_operation_on_files_a_build_leaves_the_old_index_or_the_new_one(
    tmp_path: Path, mode: str, before: str
) -> None:
    *killed, ended = kills(mode, tmp_path)
    assert len(killed) >= 30
    for kill in killed:
        assert_the_next_build_left_no_garbage(kill)
    # there is one moment at which the new index takes over
    assert [found for found, _ in groupby(kill["found"] for kill in killed)] == [before, "new"]
    assert ended["found"] == "new"


def test_killed_at_any_moment_a_build_leaves_the_old_index_or_the_new_one(tmp_path: Path) -> None:
    killed = kills("moments", tmp_path)
    assert len(killed) == 60
    for kill in killed:
        assert_the_next_build_left_no_garbage(kill)
        assert kill["found"] in ("old" if kill["kill"] == 0 else "next", f"new{kill['kill']}")


def test_readers_always_find_a_whole_index_while_builds_replace_it(tmp_path: Path) -> None:
    seen = set()

    def load(data: Path, manifest: Manifest) -> str:
        hold = Hold(data)
        with Store(data / "documents.sqlite") as store:
            text = store.document(4).repository
        # opened late, as rankers are
        assert (data / "ncs" / "text").read_text() == text == manifest.config["text"]
        hold.close()
        return text

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, "alive", str(tmp_path)], text=True, **pipes) as builds:  # type: ignore[call-overload]
        while builds.poll() is None:
            if (tmp_path / "idx" / "manifest.json").exists():
                seen.add(reading(tmp_path / "idx", load))
            if len(seen) > 10:
                (tmp_path / "enough").touch()
        last, told = builds.communicate()
    assert told == ""
    assert reading(tmp_path / "idx", load) == last.strip()
