"""`ncs def` and `ncs refs` as pipes, editors and terminals get them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ncs.index import Index
from tests import gitrepo
from tests.command import invoke
from tests.corpus import QUICK

VIEW = "class View:\n    def pad(self, n):\n        return n\n\n\ndef show(view):\n    view.pad(\n        1)\n"
FILES = {
    "app/view.py": VIEW,
    "app/evil.py": "def evil(view):\n    return view.pad(\t'\x1b[2J')\n",
    "tests/test_view.py": "def test_pad(view):\n    assert view.pad(2) == 2\n",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("symbols")
    Index.build(gitrepo.write(folder / "src", FILES), folder / ".ncs", config=QUICK).close()
    return folder


def test_uses_are_grouped_with_the_lines_that_have_the_name(home: Path) -> None:
    run = invoke("refs", "View.pad", cwd=home)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (
        "same file\n"
        "  src/app/view.py:6  show\n"
        "    7  view.pad(\n"
        "\n"
        "same folder\n"
        "  src/app/evil.py:1  evil\n"
        "    2  return view.pad(    '␛[2J')\n"
        "\n"
        "tests\n"
        "  src/tests/test_view.py:1  test_pad\n"
        "    2  assert view.pad(2) == 2\n"
    )
    assert "view.pad(\n" not in invoke("refs", "pad", "--no-code", cwd=home).stdout


def test_vimgrep_has_a_line_for_each_use_and_follows_edits(home: Path, tmp_path: Path) -> None:
    run = invoke("refs", "pad", "--format", "vimgrep", "-t", "py", "--path", "app", cwd=home)
    assert run.stdout == "src/app/view.py:7:10:    view.pad(\nsrc/app/evil.py:2:17:    return view.pad(\t'␛[2J')\n"
    Index.build(gitrepo.write(tmp_path / "src", FILES), tmp_path / ".ncs", config=QUICK).close()
    (tmp_path / "src/app/view.py").write_text("# moved\n" + VIEW)
    run = invoke("refs", "pad", "--format", "vimgrep", "-n", "1", cwd=tmp_path)
    assert run.stdout == "src/app/view.py:8:10:    view.pad(\n"
    assert run.stderr == "ncs: about 3 functions use pad; not all are shown\n"


def test_json_is_one_object_or_a_line_for_each(home: Path) -> None:
    answer = json.loads(invoke("refs", "pad", "--json", cwd=home).stdout)
    assert [hit["lines"] for hit in answer["references"]] == [[7], [2], [2]]
    lines = invoke("refs", "pad", "--jsonl", "--no-code", cwd=home).stdout.splitlines()
    assert [json.loads(line)["group"] for line in lines] == ["same file", "same folder", "tests"]
    definition = json.loads(invoke("def", "View.pad", "--json", cwd=home).stdout)["definitions"][0]
    assert (definition["path"], definition["start_line"], definition["match"]) == ("app/view.py", 2, "exact")


def test_a_definition_is_shown_as_a_hit(home: Path) -> None:
    run = invoke("def", "src/app/view.py::pad", cwd=home / "src")
    assert run.stdout == "1. View.pad  app/view.py:2  exact\n     2  def pad(self, n):\n     3      return n\n\n"
    assert invoke("def", "app/view.py::pad", cwd=home / "src").stdout == run.stdout  # a path from here
    assert invoke("def", "View", "--format", "vimgrep", cwd=home).stdout == "src/app/view.py:1:7:class View:\n"


def test_files_and_folders_after_the_name_narrow_what_is_found_to_them(home: Path) -> None:
    def paths(*arguments: str) -> list[str]:
        return invoke(*arguments, "-l", cwd=home / "src").stdout.splitlines()

    assert paths("refs", "pad") == ["app/view.py", "app/evil.py", "tests/test_view.py"]
    assert paths("refs", "pad", "tests", "app/evil.py") == ["app/evil.py", "tests/test_view.py"]
    assert paths("def", "pad", "app") == ["app/view.py"]
    assert paths("def", "pad", "tests") == []


@pytest.mark.parametrize("command", ["def", "refs"])
def test_vimgrep_without_a_file_on_disk_finds_nothing(home: Path, tmp_path: Path, command: str) -> None:
    shutil.copytree(home / ".ncs", tmp_path / ".ncs")
    run = invoke(command, "pad", "--format", "vimgrep", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert "not in a file here" in run.stderr


def test_forced_colors_mark_the_name(home: Path) -> None:
    run = invoke("refs", "pad", cwd=home, FORCE_COLOR="1", TERM="xterm-256color", COLUMNS="80")
    assert "view.\x1b[1;4mpad\x1b[0m(2) == 2" in run.stdout
    assert "\x1b\\\x1b[32m  src/app/view.py:6\x1b[0m" in run.stdout  # a link
    assert "\x1b]8;;\x1b\\  show\n" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("refs", "padd"), 1, "no match for 'padd'; similar: pad"),
        (("def", "zzyzx"), 1, "no match for 'zzyzx'"),
        (("def", "show", "padd"), 2, "no such file or folder: padd; name one to search in\n"),
        (("refs", "pad", "/dev"), 2, "/dev is outside of what is indexed; index it, too: ncs build "),
    ],
)
def test_what_is_not_found_is_one_line_and_its_status(
    home: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    run = invoke(*arguments, cwd=home)
    assert (run.returncode, run.stdout) == (status, "")
    assert run.stderr.count("\n") == 1
    assert message in run.stderr
