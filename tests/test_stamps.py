"""Stamps of many paths: one at a time and at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncs.sources import stamps
from ncs.sources.seen import NOWHERE, folder_stamp, stamp_of


@pytest.mark.parametrize("folders", [True, False])
def test_many_are_told_as_one_is(tmp_path: Path, folders: bool) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "größe").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py")).write_text("y")
    (tmp_path / "link").symlink_to("a.py")
    (tmp_path / "broken").symlink_to("nowhere")
    os.utime(tmp_path / "a.py", ns=(0, 1_234_567_890_123_456_789))
    paths = [*sorted(entry.path for entry in os.scandir(tmp_path)), str(tmp_path / "none"), str(tmp_path / "a.py/x")]
    look = folder_stamp if folders else stamp_of
    found = stamps.stamps_of(stamps.joined(paths), folders=folders).tolist()
    assert found == [list(look(path)) for path in paths]
    assert found[-1] == list(NOWHERE)
    assert stamps.parted(stamps.joined(paths)) == paths
    assert stamps.stamps_of(b"", folders=folders).shape == (0, 3)
