"""`--no-tests`, `ncs info` and ranking know tests by their syntax, after a build and after an update."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncs.index import Index
from tests import gitrepo
from tests.command import invoke
from tests.corpus import QUICK

FILES = {
    "src/door.rs": (
        "fn open_door(door: Door) -> bool {\n    door.open()\n}\n\n"
        "#[cfg(test)]\nmod checks {\n    fn open_door_checked(door: Door) {\n        assert!(door.open());\n    }\n}\n"
    ),
    "src/lock.rs": "mod tests {\n    fn lock_door(door: Door) {\n        assert!(door.lock());\n    }\n}\n",
    "src/door.py": (
        "import unittest\n\n\ndef open_doors(doors):\n    return [door.open() for door in doors]\n\n\n"
        "class Opening(unittest.TestCase):\n    def opens_doors(self):\n        self.assertTrue(open_doors([Door()]))\n"
    ),
    "src/client.py": "def test_connection(door):\n    return door.open(timeout=1)\n",
    "tests/helpers.py": "def make_door():\n    return Door(open=True)\n",
}
TESTED = ["Opening", "Opening.opens_doors", "checks", "checks.open_door_checked", "make_door"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    gitrepo.write(tmp_path, FILES)
    Index.build(tmp_path, tmp_path / ".ncs", config=QUICK).close()
    return tmp_path


def found(home: Path, *options: str) -> list[str]:
    run = invoke("query", "door", "--json", "-n", "50", *options, cwd=home)
    return [hit["qualified_name"] for hit in json.loads(run.stdout)["hits"]]


def left_out(home: Path) -> list[str]:
    without = found(home, "--no-tests")
    return sorted(name for name in found(home) if name not in without)


def test_tests_are_left_out_and_counted_wherever_their_files_lie_and_after_an_update(home: Path) -> None:
    assert left_out(home) == TESTED
    assert "test_connection" in found(home, "--no-tests")
    assert json.loads(invoke("info", "--json", cwd=home).stdout)["tests"] == len(TESTED)
    gate = "import pytest\n\n\ndef test_gate():\n    assert open_door(Gate())\n\n\ndef open_gate(door): ...\n"
    gitrepo.write(home, {"src/gate.py": gate, "src/door.rs": FILES["src/door.rs"].replace("#[cfg(test)]\n", "")})
    assert invoke("update", cwd=home).returncode == 0
    assert left_out(home) == ["Opening", "Opening.opens_doors", "make_door", "test_gate"]
    assert "\ntests\t4 of the documents\n" in invoke("info", cwd=home).stdout


def test_tests_by_syntax_stand_behind_what_they_test(home: Path) -> None:
    hits = json.loads(invoke("query", "open door", "--json", "--explain", cwd=home).stdout)["hits"]
    roles = {hit["qualified_name"]: hit["explanation"]["factors"]["role"] for hit in hits}
    assert roles["checks.open_door_checked"] == roles["Opening.opens_doors"] < 1
    assert roles["open_door"] == roles["open_doors"] == roles["test_connection"] == 1
