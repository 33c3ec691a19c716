"""The scripts on machines that lack something, the hook of pre-commit and the workflows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import invoke, program
from tests.waiting import LONG

ROOT = Path(__file__).parent.parent
SCRIPTS = [ROOT / ".ci/run", *sorted((ROOT / "bin").iterdir())]
BARE = ("bash", "dirname", "cat", "cksum", "tee", "uname", "rm", "mkdir", "find")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh clone: the scripts and the settings, no .venv; its PATH has a shell's tools, git and Python only."""
    (tmp_path / "bin").mkdir()
    for path in ("bin/setup", "bin/demo", "setup.cfg", "pyproject.toml"):
        shutil.copy(ROOT / path, tmp_path / path)
    (tmp_path / "path").mkdir()
    for name in BARE:
        (tmp_path / "path" / name).symlink_to(str(shutil.which(name)))
    program(tmp_path / "path", "git", "true")
    program(tmp_path / "path", "python3", f'exec {sys.executable} "$@"')
    return tmp_path


def run(script: Path, *arguments: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path), "HOME": str(path), **environment}
    command = [str(shutil.which("bash")), str(script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=LONG)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_executable_parses_and_describes_itself(script: Path) -> None:
    first, second, *_ = script.read_text("utf-8").splitlines()
    assert (first[:2], second[:2]) == ("#!", "# ")
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)


def test_git_changes_no_line_end_on_any_system() -> None:
    done = subprocess.run(["git", "check-attr", "text", *SCRIPTS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {line.rpartition(" ")[2] for line in done.stdout.splitlines()} == {"unset"}


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="needs shellcheck")
def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(["shellcheck", *SCRIPTS], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("programs", "remedy"),
    [
        ({}, ", under the names that your system uses: git"),
        ({"apt-get": "exit 9", "id": "echo 1000"}, ": sudo apt-get install git"),
    ],
    ids=["any system", "a user of Debian"],
)
def test_setup_without_git_names_what_to_install(clone: Path, programs: dict[str, str], remedy: str) -> None:
    (clone / "path" / "git").unlink()
    for name, body in programs.items():
        program(clone / "path", name, body)
    done = run(clone / "bin/setup", path=clone / "path")
    assert (done.returncode, done.stderr) == (1, f"bin/setup: install what is missing first{remedy}\n")
    assert not (clone / ".venv").exists()


def test_setup_as_root_of_debian_installs_what_is_missing_and_says_so(clone: Path) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    program(clone / "path", "apt-get", f'echo "$@" >> {clone}/apt; [ "$2" != install ]')
    program(clone / "path", "id", "echo 0")
    program(clone / "path", "python3", f'[[ "$*" != *ensurepip* ]] && exec {sys.executable} "$@"')
    (clone / "path" / "git").unlink()
    done = run(clone / "bin/setup", path=clone / "path")
    packages = f"{version}-venv git"
    assert done.stdout == f"bin/setup: apt-get install {packages}\n"
    assert (clone / "apt").read_text() == f"-qq update\n-qq install -y --no-install-recommends {packages}\n"
    assert done.returncode == 1
    assert done.stderr.startswith(f"bin/setup: apt-get could not install {packages}")


def test_setup_without_a_supported_python_says_how_to_name_one(clone: Path) -> None:
    done = run(clone / "bin/setup", path=clone / "path", PYTHON="/no/such/python")
    assert done.returncode == 1
    assert done.stderr == "bin/setup: needs Python 3.10 or newer: install it, or name it with PYTHON=/path/to/python\n"


def test_setup_installs_once_until_the_settings_change(clone: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True)
    packages = next((clone / ".venv").glob("lib/*/site-packages"))
    (packages / "pip.py").write_text(f"import sys; print(sys.argv[-1], file=open({str(clone / 'pip')!r}, 'a'))")

    def is_installed(*arguments: str) -> list[str]:
        done = run(clone / "bin/setup", *arguments, path=clone / "path")
        assert done.returncode == 0, done.stderr
        return (clone / "pip").read_text().split()

    assert is_installed() == ["."]
    assert is_installed() == ["."]
    assert is_installed("dev") == [".", ".[dev]"]
    assert is_installed("dev") == [".", ".[dev]"]
    assert is_installed() == [".", ".[dev]"]
    with (clone / "setup.cfg").open("a") as settings:
        settings.write("# another line\n")
    assert is_installed() == [".", ".[dev]", "."]


def demo(clone: Path, fetch: str) -> list[str]:
    """Run the demo with an `ncs` that only writes a log of its arguments; the log."""
    program(clone / "bin", "setup", "true")
    program(clone / ".venv/bin", "python", f'[ "$1" = -c ] && exec {sys.executable} "$@"\n{fetch}')
    body = f"""echo "$@" >> {clone}/log
    if [ "$1" = build ]; then mkdir -p "$4" && cat </dev/null > "$4/snapshot.json"; fi"""
    program(clone / ".venv/bin", "ncs", body)
    (clone / "log").write_text("")
    done = run(clone / "bin/demo", path=clone / "path")
    assert done.returncode == 0, done.stderr
    return (clone / "log").read_text().splitlines()


def test_demo_builds_an_index_of_the_packages_once_and_when_one_arrived_since(clone: Path) -> None:
    build = "build .cache/android-npm -i .cache/android-index"
    first, *queries = demo(clone, 'mkdir -p "$3"')
    assert (first, len(queries)) == (build, 5)
    assert queries[0] == "query -i .cache/android-index -k 2 hide soft keyboard"
    assert demo(clone, 'mkdir -p "$3"') == ["info -i .cache/android-index", *queries]
    os.utime(clone / ".cache/android-index/snapshot.json", (0, 0))
    assert demo(clone, 'mkdir -p "$3"')[0] == build


def test_demo_without_packages_searches_the_standard_library(clone: Path) -> None:
    build, *queries = demo(clone, "exit 1")
    assert build == f"build {Path(os.__file__).parent} -i .cache/python-index"
    assert len(queries) == 5


def test_the_hook_updates_an_index_and_never_fails_a_commit(tmp_path: Path) -> None:
    entry = (ROOT / ".pre-commit-hooks.yaml").read_text().partition("entry: ")[2].partition("\n")[0]
    program(tmp_path / "bin", "ncs", f'exec {sys.executable} -m ncs.cli "$@"')
    (tmp_path / "a.py").write_text("def first(): pass")
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}

    def commit() -> int:
        return subprocess.run(shlex.split(entry, comments=True), cwd=tmp_path, env=environment, check=False).returncode

    assert commit() == 0
    assert not (tmp_path / ".ncs").exists()
    invoke("build", ".", "--quiet", cwd=tmp_path)
    (tmp_path / "a.py").write_text("def second(): pass")
    assert commit() == 0
    assert "def second" in invoke("query", "second", "--no-update", cwd=tmp_path).stdout


def test_every_action_of_the_workflows_is_a_commit_with_its_version() -> None:
    uses = [
        line
        for path in (ROOT / ".github/workflows").iterdir()
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert len(uses) == 13
    assert [line for line in uses if not re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []
