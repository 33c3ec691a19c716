"""The conditions of a measurement: commit, machine, peak memory."""

from __future__ import annotations

import os
import platform
import re
import resource
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


def forget_peak_memory() -> None:
    """Reset this process's high-water mark (Linux), so that one build does not show the peak of another."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # not Linux, or not allowed: the peak of the whole process so far is given
        return


def peak_memory() -> int:
    """Bytes that this process held at most, or its largest finished child (fastText's) if that held more."""
    unit = 1 if platform.system() == "Darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    status = Path("/proc/self/status")
    match = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.is_file() else None
    own = int(match[1]) * 1024 if match else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return max(own, children)
