"""`ncs` run as a command, for tests."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from ncs.cli.main import main
from tests.waiting import LONG


def program(folder: Path, name: str, body: str) -> Path:
    """A shell script in a folder of the PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
    path.chmod(0o755)
    return path


def ncs(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `ncs ARGUMENTS` printed and how it ended, as a process; without the caller's NCS_ variables."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NCS_")} | environment
    command = [sys.executable, "-m", "ncs.cli", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, encoding="utf-8", check=False, timeout=LONG)


def invoke(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """As `ncs`, in this process: a second faster."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        for name in os.environ:
            if name.startswith("NCS_"):
                patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["ncs", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
    return subprocess.CompletedProcess(arguments, int(end.value.code or 0), out.getvalue(), err.getvalue())
