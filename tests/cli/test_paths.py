"""The path that a hit shows opens from the working directory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ncs.cli.paths import from_here
from ncs.index import Index
from tests import corpus, gitrepo
from tests.command import invoke
from tests.corpus import QUICK

HIDE, FILE = "hide soft keyboard", "repos/app/src/Keyboards.java"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paths")
    repos = corpus.write(folder / "repos")
    packed = gitrepo.zipped({"packed/dock.py": "def unique_archived_dock():\n    return 1\n"})
    gitrepo.write(repos, {"packed.zip": packed})
    Index.build(repos, folder / ".ncs", config=QUICK).close()
    return folder


@pytest.mark.parametrize(
    ("folder", "shown"),
    [(".", FILE), ("repos/app", "src/Keyboards.java"), ("repos/tools", "../app/src/Keyboards.java")],
)
@pytest.mark.parametrize("form", ["plain", "table", "vimgrep", "json"])
def test_every_format_shows_a_path_that_opens_from_here(home: Path, folder: str, shown: str, form: str) -> None:
    run = invoke("query", HIDE, "-n", "1", "--format", form, cwd=home / folder)
    assert run.returncode == 0
    if form == "json":
        (hit,) = json.loads(run.stdout)["hits"]
        assert (hit["repository"], hit["path"], hit["file"]) == ("app", "src/Keyboards.java", shown)
        (copy,) = hit["copies"]
        assert (home / folder / copy["file"]).samefile(home / "repos/copy/src/Keyboards.java")
    else:
        assert f"{'' if form == 'vimgrep' else ' '}{shown}:11" in run.stdout
    if form in ("plain", "table"):
        assert f"also at {shown.replace('app', 'copy') if 'app' in shown else '../copy/' + shown}:11" in run.stdout


def test_what_is_not_on_disk_keeps_the_path_of_its_repository(home: Path, tmp_path: Path) -> None:
    run = invoke("query", "unique archived dock", "-n", "1", "--no-code", cwd=home)
    assert run.stdout.split()[2] == "packed/dock.py:1"
    (hit,) = json.loads(invoke("query", "unique archived dock", "-n", "1", "--json", cwd=home).stdout)["hits"]
    assert hit["file"] is None
    shutil.copytree(home / ".ncs", tmp_path / ".ncs")  # without its sources
    run = invoke("query", HIDE, "-n", "1", "--no-code", cwd=tmp_path)
    assert " app/src/Keyboards.java:11 " in run.stdout


def test_a_path_that_has_only_the_root_in_common_stays_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr/lib")
    assert from_here(Path("/usr/share/x.py")) == "../share/x.py"
    assert from_here(Path("/home/me/x.py")) == "/home/me/x.py"
