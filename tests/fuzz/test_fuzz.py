"""Fuzzers find nothing in a few seconds, cases that once failed stay mended, and the harness sees what fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from importlib import import_module
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.harness import FINDINGS, TARGETS, failure, main, run

SECONDS = 5.0
MEMORY = 500 << 20
CASES = 3
"""This module is a target itself, of the test below."""


def generate(random: Random) -> bytes:
    return random.choice(("fail", "crash", "sleep", "allocate", "die")).encode()


def check(case: bytes, room: Path) -> None:
    assert case != b"fail", "one line"
    assert os.environ["HOME"] == str(room.parent)
    assert not list(room.iterdir())
    if case == b"crash":
        int("x")
    if case == b"sleep":
        time.sleep(600)
    if case == b"allocate":
        print(len(b"x" * (1 << 30)))
    if case == b"die":
        os.kill(os.getpid(), signal.SIGKILL)


WRONG = {
    "fail": "AssertionError: one line",
    "crash": "ValueError: invalid literal for int() with base 10: 'x'",
    "sleep": "TaskTimeout: no answer within 5 seconds",
    "allocate": "TaskKilled: it took too much memory",
    "die": "TaskKilled: its process died; memory may have run out",
}


@pytest.mark.slow
def test_every_kind_of_failure_is_found_saved_and_repeated(tmp_path: Path) -> None:
    summary = run("test_fuzz", seed=5, cases=5, jobs=2, findings=tmp_path)
    assert summary.findings == {path.name: WRONG[path.read_text()] for path in (tmp_path / "test_fuzz").iterdir()}
    assert set(summary.findings.values()) == set(WRONG.values())
    assert failure("test_fuzz", b"fail") == WRONG["fail"]
    assert failure("test_fuzz", b"well") is None


def test_the_command_prints_one_line_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["question", "--minutes", "0.02", "--jobs", "1", "--out", str(tmp_path / "out.json")]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values == json.loads((tmp_path / "out.json").read_text())
    assert (values["target"], values["findings"]) == ("question", {})
    assert values["cases"] > 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.slow
def test_a_few_seconds_of_a_fuzzer_find_nothing(target: str, tmp_path: Path) -> None:
    module = import_module(f"tests.fuzz.{target}")
    if (program := getattr(module, "PROGRAM", None)) and not shutil.which(program):
        pytest.skip(f"needs {program}")
    cases: int = module.CASES
    summary = run(target, cases=cases, findings=tmp_path)
    assert (summary.cases, summary.findings) == (cases, {})


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*/*")), ids=lambda path: f"{path.parent.name} {path.name}")
def test_a_case_that_once_failed_stays_mended(path: Path) -> None:
    assert failure(path.parent.name, path.read_bytes()) is None
