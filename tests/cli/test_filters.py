"""The options of `ncs query` that people know from ripgrep."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ncs.index import Index
from tests import gitrepo
from tests.command import invoke
from tests.corpus import QUICK

LONG = "def open_dock(dock):\n" + "".join(f"    step_{n}(dock)\n" for n in range(30)) + "    raise DockError(dock)\n"
FILES = {
    "src/dock.py": "def open_door(door):\n    return door.open()\n\n\ndef open_all(all):\n    return map(open, all)\n",
    "src/long.py": LONG,
    "src/door.js": "function openDoor(door) {\n  return door.open();\n}\n",
    "tests/test_dock.py": "def test_open_door():\n    assert open_door(Door())\n",
    "lib/door.rs": "fn open_door(door: Door) -> bool {\n    door.open()\n}\n",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filters")
    gitrepo.write(folder, FILES)
    (folder / "notes").mkdir()
    Index.build(folder, folder / ".ncs", config=QUICK).close()
    return folder


def paths(home: Path, *arguments: str, cwd: str = ".") -> list[str]:
    run = invoke("query", *arguments, "-l", "-n", "50", cwd=home / cwd)
    assert run.stderr in ("", "ncs: nothing found; use other words\n")
    return sorted(run.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["open door"], sorted(FILES)),
        (["open door", "src"], ["src/dock.py", "src/door.js", "src/long.py"]),
        (["open", "door", "./src/dock.py", "lib/"], ["lib/door.rs", "src/dock.py"]),
        (["open door", "."], sorted(FILES)),
        (["open door", "-t", "rs", "-t", "javascript"], ["lib/door.rs", "src/door.js"]),
        (["open door", "-T", "py"], ["lib/door.rs", "src/door.js"]),
        (["open door", "-g", "*.py", "-g", "!tests/"], ["src/dock.py", "src/long.py"]),
        (["open door", "-g", "src/*.{js,rs}"], ["src/door.js"]),
        (["open door", "--path", "src", "-T", "js"], ["src/dock.py", "src/long.py"]),
        (["open door", "--no-tests", "-t", "py"], ["src/dock.py", "src/long.py"]),
        (["open door", "-e", r"door\.open\(\)"], ["lib/door.rs", "src/dock.py", "src/door.js"]),
        (["-e", r"door\.open\(\)", "src"], ["src/dock.py", "src/door.js"]),
        (["-e", r"dock\.open\(\)|nothing", "-e", r"door\.open\(\)", "src"], ["src/dock.py", "src/door.js"]),
        (["-e", "^def", "--no-tests", "-g", "!long.py"], ["src/dock.py"]),
    ],
)
def test_filters_restrict_the_search(home: Path, arguments: list[str], expected: list[str]) -> None:
    assert paths(home, *arguments) == expected


def test_a_match_of_a_regexp_is_at_its_line(home: Path) -> None:
    run = invoke("query", "-e", r"open\(\)|step_29", "-g", "src/", "--format", "vimgrep", cwd=home)
    assert run.stdout.splitlines() == [
        "src/dock.py:2:17:    return door.open()",
        "src/door.js:2:15:  return door.open();",
        "src/long.py:31:5:    step_29(dock)",
    ]
    plain = invoke("query", "open door", "-e", "DockError", "-n", "1", "--no-code", cwd=home).stdout
    assert plain.startswith("1. open_dock  src/long.py:32")
    assert "frame" not in plain
    named = invoke("query", "-e", "^open_dock$", "--no-code", cwd=home).stdout
    assert named == "1. open_dock  src/long.py:1\n"  # its name alone matches; what is listed has no score


def test_a_folder_that_may_be_a_word_of_the_question_is_named(home: Path) -> None:
    run = invoke("query", "open", "door", "src", "-l", cwd=home)
    assert run.stderr == "ncs: searched in src; to search for the word, quote the question\n"
    assert invoke("query", "open door", "src", "-l", cwd=home).stderr == ""


def test_a_path_is_relative_to_the_working_folder_and_so_are_those_that_are_printed(home: Path) -> None:
    assert paths(home, "open door", "dock.py", cwd="src") == ["dock.py"]
    assert paths(home, "open door", "../lib", cwd="src") == ["../lib/door.rs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["open", "src/nowhere"], "no such file or folder: src/nowhere; quote a question as one argument"),
        (["open", ""], "no such file or folder: ''; quote a question as one argument"),
        (
            ["open door", "notes"],
            "nothing of notes is indexed; if it is new: ncs update, if it was left out: ncs doctor",
        ),
        (["open door", "/dev"], "/dev is outside of what is indexed; index it, too: ncs build "),
        (["open door", "-l", "--json"], "--json and -l cannot be used together"),
        (["open door", "--format", "plain", "--json"], "--format plain and --json cannot be used together\n"),
        (
            ["open door", "--format", "grep"],
            "no format 'grep'; choose from table, plain, json, jsonl, vimgrep, paths\n",
        ),
        (["open door", "--color", "blue"], "no color 'blue'; choose from auto, always, never"),
        ([], "nothing to search for; say what the function does"),
    ],
)
def test_a_wrong_filter_is_one_line_with_its_remedy(home: Path, arguments: list[str], message: str) -> None:
    run = invoke("query", *arguments, cwd=home)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert run.stderr.startswith(f"ncs: {message}")


def test_files_are_ranked_once_each_with_their_best_function(home: Path) -> None:
    every = json.loads(invoke("query", "open door", "-n", "50", "--json", cwd=home).stdout)["hits"]
    files = json.loads(invoke("query", "open door", "-n", "3", "--files", "--json", cwd=home).stdout)["hits"]
    assert [hit["path"] for hit in files] == list(dict.fromkeys(hit["path"] for hit in every))[:3]
    first = {hit["path"]: hit["id"] for hit in reversed(every)}
    assert [hit["id"] for hit in files] == [first[hit["path"]] for hit in files]
    assert [hit["rank"] for hit in files] == [1, 2, 3]
    listed = invoke("query", "-e", "open", "--files", "--jsonl", "-n", "50", cwd=home).stdout.splitlines()
    assert [json.loads(line)["path"] for line in listed] == sorted(FILES)


def test_context_is_lines_around_those_that_matter(home: Path) -> None:
    def numbers(*options: str) -> list[int]:
        output = invoke("query", "-e", "step_(20|29)|DockError", "-g", "long.py", *options, cwd=home).stdout
        return [int(number) for number in re.findall(r"^ +(\d+)  ", output, re.MULTILINE)]

    assert numbers("-C", "0") == [1, 22, 31, 32]
    assert numbers("-A", "2") == [1, 22, 23, 24, 31, 32]
    assert numbers("-C", "1", "-B", "0") == [1, 22, 23, 31, 32]
    assert numbers("--all") == list(range(1, 33))


def test_color_is_forced_or_forbidden(home: Path) -> None:
    auto, always, never = (
        invoke("query", "open door", "--color", color, cwd=home, TERM="dumb").stdout
        for color in ("auto", "always", "never")
    )
    assert auto == never
    assert "\x1b" not in auto
    assert "\x1b[1;36m" in always
    assert "\x1b" not in invoke("query", "open door", "--color", "never", cwd=home, FORCE_COLOR="1").stdout


def test_a_question_may_begin_with_a_dash(home: Path) -> None:
    run = invoke("--", "-open door", "src/", cwd=home)
    assert (run.stdout, run.stderr) == (invoke("query", "open door", "src/", cwd=home).stdout, "")


def test_options_may_come_before_the_question_but_not_before_a_command(home: Path) -> None:
    assert invoke("-n", "1", "-e", "open", "open", "door", cwd=home).stdout == (
        invoke("query", "open door", "-n", "1", "-e", "open", cwd=home).stdout
    )
    run = invoke("-q", "build", ".", cwd=home)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "ncs: the options of build come after it: ncs build ...; to search for it: ncs query -q build .\n"
    )
    assert invoke("--version", cwd=home).returncode == 0


def test_similar_functions_are_filtered_and_listed_in_the_same_way(home: Path) -> None:
    run = invoke("similar", "src/dock.py:1", "-l", "-T", "py", "-e", "open", "-g", "!lib", cwd=home)
    assert (run.returncode, run.stdout) == (0, "src/door.js\n")
    for options in ((), ("-e", "open")):  # as an agent reads it
        hit = json.loads(invoke("similar", "src/dock.py:1", "-n", "1", "--json", *options, cwd=home).stdout)["hits"][0]
        run = invoke("similar", "src/dock.py:1", "-n", "1", "--no-code", *options, cwd=home)
        assert run.stdout.splitlines()[0].endswith(f"  {100 * hit['score']:.0f}% similar")
