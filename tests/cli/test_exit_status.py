"""How programs end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ncs.errors import IndexBusy, NcsError
from ncs.exit_status import main_program


def raising(error: BaseException) -> int:
    """What a main function that raises this ends with."""

    @main_program("prog", interrupted="the same command goes on")
    def main(argv: list[str] | None = None) -> int:
        """Its docstring."""
        raise error

    assert main.__doc__ == "Its docstring."
    assert main.__name__ == "main"
    return main([])


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (NcsError("no such corpus; name another"), 2, "prog: no such corpus; name another\n"),
        (IndexBusy("busy;\nwait"), 2, "prog: busy; wait\n"),
        (FileNotFoundError(2, "No such file or directory", "a.json"), 2, "prog: a.json: No such file or directory\n"),
        (OSError("odd"), 2, "prog: the system: odd\n"),
        (KeyboardInterrupt(), 130, "prog: interrupted; the same command goes on\n"),
    ],
)
def test_an_error_of_a_main_function_is_one_line_on_stderr_and_a_status(
    error: BaseException, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raising(error) == status
    assert capsys.readouterr() == ("", line)


def test_what_is_no_error_of_ours_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        raising(ZeroDivisionError())


def test_a_reader_that_leaves_is_no_error() -> None:
    program = (
        "import sys\nfrom ncs.exit_status import main_program\n"
        "@main_program('prog')\ndef main():\n"
        "    while True:\n        print('x' * 1000)\n"
        "sys.exit(main())"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.slow
def test_programs_of_the_project_tell_a_missing_file_in_one_line() -> None:
    for module, arguments in {
        "evaluation.benchmarks.query": ["nowhere", "--queries", "none.txt"],
        "evaluation.challenge": ["none.csv", "none.csv", "none.csv"],
        "corpora": ["ncs287", "score-sheet", "none.csv"],
    }.items():
        ran = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1), module
        assert "Traceback" not in ran.stderr
