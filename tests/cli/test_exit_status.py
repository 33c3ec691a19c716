"""How programs end."""

from __future__ import annotations

import subprocess
import sys

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


def test_a_reader_that_leaves_is_no_error() -> None:
    program = (
        "import sys\nfrom ncs.exit_status import main_program\n"
        "@main_program('prog')\ndef main():\n"
        "    while True:\n        print('x' * 1000)\n"
        "sys.exit(main())"
    )
    command = f'{sys.executable} -c "$0" | head -c 10; exit ${{PIPESTATUS[0]}}'
    run = subprocess.run(["bash", "-c", command, program], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "x" * 10, "")


@pytest.mark.slow
def test_programs_of_the_project_report_a_missing_file_in_one_line() -> None:
    for module, arguments in {
        "evaluation.benchmarks": ["query", "nowhere", "--queries", "none.txt"],
        "evaluation.challenge": ["none.csv", "none.csv", "none.csv"],
        "corpora": ["ncs287", "score-sheet", "none.csv"],
    }.items():
        run = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout, len(run.stderr.splitlines())) == (2, "", 1), module
        assert "Traceback" not in run.stderr
