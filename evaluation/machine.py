"""The conditions of a measurement: commit and machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """The commit's hash, with `+` where the code that ranks or measures differs from it."""
    git = ["git", "-C", str(_PROJECT)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = [*git, "status", "--porcelain", "--", "ncs", "corpora", "evaluation/*.py"]
        return head + ("+" if subprocess.run(changed, capture_output=True, text=True, check=True).stdout else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> dict[str, str | int]:
    """System, cores, Python, and on Linux processor and memory in GiB."""
    about: dict[str, str | int] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 0,
        "python": platform.python_version(),
    }
    if Path("/proc/cpuinfo").is_file():
        model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        memory = re.search(r"MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text())
        about["processor"] = model[1] if model else platform.processor()
        about["memory_gib"] = round(int(memory[1]) / 2**20) if memory else 0
    return about
