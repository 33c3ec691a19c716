"""How programs end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ncs.errors import IndexBusy, NcsError
from ncs.exit_status import main_program
from tests.waiting import LONG

FULL = "cannot write the output: the disk is full; free some space, or write it elsewhere"
LIMITED = "prog: no memory or thread is left; end other programs, or raise the limits (ulimit -a)\n"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (NcsError("no such corpus; name another"), 2, "prog: no such corpus; name another\n"),
        (IndexBusy("busy;\nwait"), 2, "prog: busy; wait\n"),
        (FileNotFoundError(2, "No such file or directory", "a.json"), 2, "prog: a.json: No such file or directory\n"),
        (FileNotFoundError(2, "No such file or directory"), 2, "prog: the working folder is gone; enter it again\n"),
        (OSError("odd"), 2, "prog: the system: odd\n"),
        (OSError(28, "No space left on device"), 2, f"prog: {FULL}\n"),
        (MemoryError(), 2, LIMITED),
        (RuntimeError("can't start new thread"), 2, LIMITED),
        (KeyboardInterrupt(), 130, "prog: interrupted; the same command goes on\n"),
        (ZeroDivisionError(), 2, "prog: ZeroDivisionError: a mistake in prog; please report it with the lines above\n"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_a_status_and_a_mistake_has_its_traceback_too(
    error: BaseException, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @main_program("prog", interrupted="the same command goes on")
    def main() -> int:
        raise error

    assert main() == status
    out, err = capsys.readouterr()
    assert not out
    assert err == line or (err.startswith("Traceback ") and err.endswith(line) and type(error) is ZeroDivisionError)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["info"], ["--help"], ["--version"]])
def test_output_that_cannot_be_written_is_one_line(demo: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "ncs.cli", *arguments]
        run = subprocess.run(
            command, cwd=demo, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=LONG
        )
    assert (run.returncode, run.stderr) == (2, f"ncs: {FULL}\n")
