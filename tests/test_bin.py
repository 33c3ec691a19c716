"""The scripts on machines that lack something, and the pinned packages of the demo."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from corpora import android_npm
from corpora.android_npm import Package
from ncs.errors import SourceError
from tests.waiting import LONG

ROOT = Path(__file__).parent.parent
SCRIPTS = [ROOT / ".ci/run", *sorted((ROOT / "bin").iterdir())]
BARE = ("bash", "dirname", "cat", "cksum", "tee", "uname", "rm", "mkdir", "find")


def program(folder: Path, name: str, body: str) -> Path:
    """Put a program into a folder of the PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
    path.chmod(0o755)
    return path


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
def test_a_script_is_executable_parses_and_says_what_it_does(script: Path) -> None:
    first, second, *_ = script.read_text("utf-8").splitlines()
    assert (first[:2], second[:2]) == ("#!", "# ")
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="needs shellcheck")
def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(["shellcheck", *SCRIPTS], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("programs", "remedy"),
    [
        ({}, r".*: (g\+\+|xcode-select --install)"),
        ({"apt-get": "exit 9", "id": "echo 1000"}, r": sudo apt-get install g\+\+"),
    ],
    ids=["any system", "a user of Debian"],
)
def test_setup_without_a_compiler_names_what_to_install(clone: Path, programs: dict[str, str], remedy: str) -> None:
    for name, body in programs.items():
        program(clone / "path", name, body)
    done = run(clone / "bin/setup", path=clone / "path")
    assert done.returncode == 1
    assert re.fullmatch(f"bin/setup: install what is missing first{remedy}\n", done.stderr)
    assert not (clone / ".venv").exists()


def test_setup_as_root_of_debian_installs_what_is_missing_and_says_so(clone: Path) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    program(clone / "path", "apt-get", f'echo "$@" >> {clone}/apt; [ "$2" != install ]')
    program(clone / "path", "id", "echo 0")
    program(clone / "path", "python3", f'[[ "$*" != *Python.h* ]] && exec {sys.executable} "$@"')
    done = run(clone / "bin/setup", path=clone / "path")
    asked = f"g++ {version}-dev"
    assert done.stdout == f"bin/setup: apt-get install {asked}\n"
    assert (clone / "apt").read_text() == f"-qq update\n-qq install -y --no-install-recommends {asked}\n"
    assert done.returncode == 1
    assert done.stderr.startswith(f"bin/setup: apt-get could not install {asked}")


def test_setup_without_a_python_that_serves_says_how_to_name_one(clone: Path) -> None:
    done = run(clone / "bin/setup", path=clone / "path", PYTHON="/no/such/python")
    assert done.returncode == 1
    assert done.stderr == "bin/setup: needs Python 3.10 or newer: install it, or name it with PYTHON=/path/to/python\n"


def test_setup_installs_once_until_the_settings_change(clone: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True)
    packages = next((clone / ".venv").glob("lib/*/site-packages"))
    (packages / "fasttext.py").write_text("")
    (packages / "pip.py").write_text(f"import sys; print(sys.argv[-1], file=open({str(clone / 'pip')!r}, 'a'))")

    def installed(*arguments: str) -> list[str]:
        done = run(clone / "bin/setup", *arguments, path=clone / "path")
        assert done.returncode == 0, done.stderr
        return (clone / "pip").read_text().split()

    assert installed() == ["."]
    assert installed() == ["."]
    assert installed("dev") == [".", ".[dev]"]
    assert installed("dev") == [".", ".[dev]"]
    assert installed() == [".", ".[dev]"]
    with (clone / "setup.cfg").open("a") as settings:
        settings.write("# another line\n")
    assert installed() == [".", ".[dev]", "."]


def demo(clone: Path, fetch: str) -> list[str]:
    """Run the demo with an `ncs` that only takes notes; what it was asked."""
    program(clone / "bin", "setup", "true")
    program(clone / ".venv/bin", "python", f'[ "$1" = -c ] && exec {sys.executable} "$@"\n{fetch}')
    notes = f"""echo "$@" >> {clone}/asked
    if [ "$1" = build ]; then mkdir -p "$4" && cat </dev/null > "$4/snapshot.json"; fi"""
    program(clone / ".venv/bin", "ncs", notes)
    (clone / "asked").write_text("")
    done = run(clone / "bin/demo", path=clone / "path")
    assert done.returncode == 0, done.stderr
    return (clone / "asked").read_text().splitlines()


def test_demo_builds_over_the_packages_once_and_asks_five_questions(clone: Path) -> None:
    fetched = 'mkdir -p "$3"'
    build, *asked = demo(clone, fetched)
    assert build == "build .cache/android-npm -i .cache/android-index"
    assert len(asked) == 5
    assert asked[0] == "query -i .cache/android-index -k 2 hide soft keyboard"
    information, *again = demo(clone, fetched)
    assert information == "info -i .cache/android-index"
    assert again == asked


def test_demo_builds_again_when_a_package_arrived_since(clone: Path) -> None:
    fetched = 'mkdir -p "$3"'
    demo(clone, fetched)
    os.utime(clone / ".cache/android-index/snapshot.json", (0, 0))
    assert demo(clone, fetched)[0] == "build .cache/android-npm -i .cache/android-index"


def test_demo_without_packages_searches_the_standard_library(clone: Path) -> None:
    build, *asked = demo(clone, "exit 1")
    assert build == f"build {Path(os.__file__).parent} -i .cache/python-index"
    assert len(asked) == 5


PACKAGES = android_npm.packages()


def test_list_names_every_package_once_at_one_version_with_its_hash() -> None:
    assert len(PACKAGES) == len(android_npm.LIST.read_text().splitlines())
    assert [package.name for package in PACKAGES] == sorted({package.name for package in PACKAGES})
    for package in PACKAGES:
        assert re.fullmatch(r"(@[a-z-]+/)?[a-z.-]+", package.name), package
        assert re.fullmatch(r"\d+\.\d+\.\d+", package.version), package
        algorithm, _, digest = package.integrity.partition("-")
        assert (algorithm, len(base64.b64decode(digest, validate=True))) == ("sha512", 64), package


def test_list_holds_what_the_questions_are_about() -> None:
    versions = {package.name: package.version for package in PACKAGES}
    wanted = "cordova-android @capacitor/android @capacitor/keyboard cordova-plugin-network-information react-native-fs"
    assert versions.keys() >= set(wanted.split())
    assert versions["react-native"].startswith("0.7")  # the newest release is a placeholder


def package(name: str, content: str) -> Package:
    digest = hashlib.sha512(content.encode()).digest()
    return Package(name, "1.0.0", "sha512-" + base64.b64encode(digest).decode())


WANTED = [package(f"@scope/p{number}", f"@scope/p{number}@1.0.0\n") for number in range(20)]
NPM = """echo "$2" >> {log}
name=${{2#@}}; name=${{name%@*}}
{refuse}
echo "$2" > "${{name/\\//-}}-1.0.0.tgz"
"""


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of an npm that packs each package's spec as its content, and fails where `refuse` says."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'npm'}{os.pathsep}{os.environ['PATH']}")
    offer(tmp_path)
    return tmp_path / "log"


def offer(folder: Path, refuse: str = "") -> None:
    program(folder / "npm", "npm", NPM.format(log=folder / "log", refuse=refuse))


def asked(log: Path) -> list[str]:
    return sorted(log.read_text().split()) if log.exists() else []


def test_fetch_brings_every_package_and_asks_only_for_those_that_are_not_there(tmp_path: Path, npm: Path) -> None:
    folder = tmp_path / "corpus"
    assert android_npm.fetch(WANTED, folder) == {}
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"scope-p{n}-1.0.0.tgz" for n in range(20))
    assert asked(npm) == sorted(f"@scope/p{n}@1.0.0" for n in range(20))
    (folder / "scope-p3-1.0.0.tgz").write_text("damaged")
    npm.unlink()
    assert android_npm.fetch(WANTED, folder) == {}
    assert asked(npm) == ["@scope/p3@1.0.0"]
    assert all(package.is_in(folder) for package in WANTED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "log", "npm"]


def test_fetch_names_the_few_that_failed_and_goes_on(tmp_path: Path, npm: Path) -> None:
    offer(tmp_path, 'case $2 in *p1@*|*p7@*) echo "npm error code E404" >&2; exit 1;; esac')
    assert android_npm.fetch(WANTED, tmp_path / "corpus") == {"@scope/p1@1.0.0": "E404", "@scope/p7@1.0.0": "E404"}
    assert sum(package.is_in(tmp_path / "corpus") for package in WANTED) == 18


def test_fetch_refuses_a_corpus_that_lacks_more_than_a_tenth(tmp_path: Path, npm: Path) -> None:
    offer(tmp_path, "case $2 in *p1?@*) exit 7;; esac")
    with pytest.raises(
        SourceError, match=r"^npm could not fetch 10 of 20 packages \(@scope/p10@1.0.0: npm ended with 7\)"
    ):
        android_npm.fetch(WANTED, tmp_path / "corpus")


def test_fetch_keeps_nothing_that_differs_from_what_was_pinned(tmp_path: Path, npm: Path) -> None:
    altered = [package("@scope/p0", "another content"), *WANTED[1:]]
    reasons = android_npm.fetch(altered, tmp_path / "corpus")
    assert list(reasons) == ["@scope/p0@1.0.0"]
    assert "hash differs" in reasons["@scope/p0@1.0.0"]
    assert not (tmp_path / "corpus" / altered[0].archive).exists()


def fetch_program(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "corpora.android_npm", str(folder / "corpus")]
    environment = {"PATH": str(folder / "npm")}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LONG)


def test_fetch_without_npm_says_so_in_one_line(tmp_path: Path) -> None:
    done = fetch_program(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no Android corpus: npm is not installed (it comes with Node.js)\n"


def test_fetch_without_a_network_says_so_in_one_line_after_four_tries(tmp_path: Path) -> None:
    program(tmp_path / "npm", "npm", f'echo "$2" >> {tmp_path}/log; echo "npm ERR! code ENOTFOUND" >&2; exit 1')
    done = fetch_program(tmp_path)
    assert done.returncode == 1
    total, first = len(PACKAGES), PACKAGES[0].spec
    assert done.stderr == f"no Android corpus: npm could not fetch {total} of {total} packages ({first}: ENOTFOUND)\n"
    assert len(asked(tmp_path / "log")) == android_npm.JOBS
