"""How programs end."""

from __future__ import annotations

import pytest

from ncs.errors import IndexBusy, NcsError
from ncs.exit_status import main_program


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (NcsError("no such corpus; name another"), 2, "prog: no such corpus; name another\n"),
        (IndexBusy("busy;\nwait"), 2, "prog: busy; wait\n"),
        (FileNotFoundError(2, "No such file or directory", "a.json"), 2, "prog: a.json: No such file or directory\n"),
        (OSError("odd"), 2, "prog: the system: odd\n"),
        (KeyboardInterrupt(), 130, "prog: interrupted; the same command goes on\n"),
        (ZeroDivisionError(), None, ""),
    ],
)
def test_an_error_of_ours_is_one_line_on_stderr_and_a_status_others_are_not_hidden(
    error: BaseException, status: int | None, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @main_program("prog", interrupted="the same command goes on")
    def main() -> int:
        raise error

    if status is None:
        with pytest.raises(ZeroDivisionError):
            main()
    else:
        assert main() == status
    assert capsys.readouterr() == ("", line)
