"""Real git repositories for tests, the same on every machine."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
}


def git(folder: Path, *arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "protocol.file.allow=always", *arguments],
        check=True,
        capture_output=True,
        env=ENVIRONMENT,
    )
    return done.stdout.decode()


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A folder with these files."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """What the files below a folder hold, by their paths."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of these files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return data.getvalue()


def repository(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A git repository whose one commit on the branch main has these files."""
    write(folder, files)
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    return folder


def commit(folder: Path, files: Mapping[str, str | bytes] | None = None) -> None:
    """One more commit with these files."""
    write(folder, files or {})
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "a commit", "--allow-empty")


def bare(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A bare git repository with these files."""
    work_tree = repository(folder.parent / f"{folder.name}.work-tree", files)
    git(folder.parent, "clone", "-q", "--bare", str(work_tree), str(folder))
    shutil.rmtree(work_tree)
    return folder
