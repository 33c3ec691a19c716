"""Files in folders that a stranger may have filled."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ncs.files import create_file, open_regular, read_regular, replace_file, save_array
from tests.rights import small_files


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "terminal").symlink_to("/dev/tty")
    os.mkfifo(tmp_path / "pipe")
    assert read_regular(tmp_path / "link", 5) == b"12345"
    for name in ("pipe", "terminal", ".", "missing"):
        with pytest.raises(OSError, match=name):
            open_regular(tmp_path / name)
    with pytest.raises(OSError, match="link"):
        open_regular(tmp_path / "link", follow=False)
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular(tmp_path / "file", 4)


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_is_replaced_and_never_written_to(tmp_path: Path, dangling: bool) -> None:
    victim = tmp_path / "victim"
    if not dangling:
        victim.write_text("precious")
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(victim)
    create_file(tmp_path / "a").close()
    replace_file(tmp_path / "b", "new")
    assert not (tmp_path / "a").is_symlink()
    assert (tmp_path / "b").read_text() == "new"
    assert victim.exists() is not dangling
    assert dangling or victim.read_text() == "precious"
    assert not list(tmp_path.glob("*.part"))


def test_an_array_whose_last_bytes_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with small_files(4500), pytest.raises(OSError, match="File too large"):
        save_array(tmp_path / "a.npy", np.arange(600))
    save_array(tmp_path / "b.npy", np.arange(600))
    np.save(tmp_path / "c.npy", np.arange(600))
    assert (tmp_path / "b.npy").read_bytes() == (tmp_path / "c.npy").read_bytes()


def refuse(times: int, monkeypatch: pytest.MonkeyPatch, winerror: int | None) -> list[Path]:
    """Let so many renames fail, as on Windows where the target is open; those tried."""
    tried: list[Path] = []

    def replace(self: Path, target: Path, rename: Callable[[Path, Path], Path] = Path.replace) -> Path:
        tried.append(target)
        if len(tried) <= times:
            error = PermissionError(errno.EACCES, "in use", str(target))
            error.winerror = winerror  # type: ignore[attr-defined,unused-ignore]
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    return tried


def test_a_file_that_windows_says_is_open_is_replaced_once_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    tried = refuse(2, monkeypatch, winerror=32)
    replace_file(tmp_path / "a", "new")
    assert ((tmp_path / "a").read_text(), len(tried)) == ("new", 3)


@pytest.mark.parametrize(("winerror", "attempts"), [(None, 1), (5, 3)])
def test_a_file_that_cannot_be_replaced_is_left_and_nothing_beside_it(
    winerror: int | None, attempts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncs.files.REPLACE_ATTEMPTS", 2)
    (tmp_path / "a").write_text("old")
    tried = refuse(9, monkeypatch, winerror)
    with pytest.raises(PermissionError):
        replace_file(tmp_path / "a", "new")
    assert ([path.name for path in tmp_path.iterdir()], len(tried)) == (["a"], attempts)
    assert (tmp_path / "a").read_text() == "old"
