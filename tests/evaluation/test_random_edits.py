"""Edits drawn at random, and undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.benchmarks.random_edits import KINDS, edited
from tests.gitrepo import write


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("fails", [False, True])
def test_files_are_edited_in_every_way_and_come_back_as_they_were(tmp_path: Path, fails: bool) -> None:
    root = write(tmp_path, {f"a{n}.py": f"def f{n}():\n    return get({n})\n" for n in range(60)} | {"empty.py": ""})
    before = contents(root)
    try:
        with edited(sorted(root.iterdir())) as made:
            assert sum(made.values()) == 61
            assert all(made[kind] for kind in KINDS)
            during = contents(root)
            assert len(during) == 61 + made["copy"] - made["delete"]
            assert sum(during.get(name) == kept for name, kept in before.items()) <= made["copy"] + 1
            if fails:
                raise InterruptedError
    except InterruptedError:
        assert fails
    assert contents(root) == before
