"""`ncs` run as a command, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import LONG


def ncs(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `ncs ARGUMENTS` printed and how it ended; without the caller's NCS_ variables."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NCS_")} | environment
    command = [sys.executable, "-m", "ncs.cli", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=LONG)
