"""How programs end."""

from __future__ import annotations

import pytest

from ncs.errors import IndexBusy, NcsError
from ncs.exit_status import main_program

LIMITED = "prog: no memory or thread is left; end other programs, or raise the limits (ulimit -a)\n"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (NcsError("no such corpus; name another"), 2, "prog: no such corpus; name another\n"),
        (IndexBusy("busy;\nwait"), 2, "prog: busy; wait\n"),
        (FileNotFoundError(2, "No such file or directory", "a.json"), 2, "prog: a.json: No such file or directory\n"),
        (FileNotFoundError(2, "No such file or directory"), 2, "prog: the working folder is gone; enter it again\n"),
        (OSError("odd"), 2, "prog: the system: odd\n"),
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
