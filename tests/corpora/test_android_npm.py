"""The demo's npm packages are pinned; what npm brings is checked by its hash."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from corpora import android_npm
from corpora.android_npm import Package
from ncs.errors import SourceError
from tests.command import program
from tests.waiting import LONG

PACKAGES = android_npm.packages()


def test_the_list_names_every_package_once_at_one_version_with_its_hash() -> None:
    assert len(PACKAGES) == len(android_npm.LIST.read_text().splitlines())
    assert [package.name for package in PACKAGES] == sorted({package.name for package in PACKAGES})
    for package in PACKAGES:
        assert re.fullmatch(r"(@[a-z-]+/)?[a-z.-]+@\d+\.\d+\.\d+", package.spec), package
        algorithm, _, digest = package.integrity.partition("-")
        assert (algorithm, len(base64.b64decode(digest, validate=True))) == ("sha512", 64), package
    versions = {package.name: package.version for package in PACKAGES}
    assert versions["react-native"].startswith("0.7")  # the newest release is a placeholder


def package(name: str, content: str) -> Package:
    digest = hashlib.sha512(content.encode()).digest()
    return Package(name, "1.0.0", "sha512-" + base64.b64encode(digest).decode())


TWENTY = [package(f"@scope/p{number}", f"@scope/p{number}@1.0.0\n") for number in range(20)]
NPM = """echo "$2" >> {log}
name=${{2#@}}; name=${{name%@*}}
{refuse}
echo "$2" > "${{name/\\//-}}-1.0.0.tgz"
"""


def offer(folder: Path, refuse: str = "") -> None:
    """An npm that packs each package's spec as its content, and fails where `refuse` says."""
    program(folder / "npm", "npm", NPM.format(log=folder / "log", refuse=refuse))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What npm is called for."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'npm'}{os.pathsep}{os.environ['PATH']}")
    offer(tmp_path)
    return tmp_path / "log"


def test_fetch_brings_every_package_and_asks_only_for_those_that_are_not_there(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "corpus"
    assert android_npm.fetch(TWENTY, folder) == {}
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"scope-p{n}-1.0.0.tgz" for n in range(20))
    assert sorted(log.read_text().split()) == sorted(f"@scope/p{n}@1.0.0" for n in range(20))
    (folder / "scope-p3-1.0.0.tgz").write_text("damaged")
    log.unlink()
    assert android_npm.fetch(TWENTY, folder) == {}
    assert log.read_text().split() == ["@scope/p3@1.0.0"]
    assert all(package.is_in(folder) for package in TWENTY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "log", "npm"]


def test_fetch_names_the_few_that_fail_or_differ_and_refuses_a_corpus_that_lacks_more_than_a_tenth(
    tmp_path: Path, log: Path
) -> None:
    offer(tmp_path, 'case $2 in *p7@*) echo "npm error code E404" >&2; exit 1;; esac')
    altered = [package("@scope/p0", "another content"), *TWENTY[1:]]
    reasons = android_npm.fetch(altered, tmp_path / "corpus")
    assert "hash differs" in reasons.pop("@scope/p0@1.0.0")
    assert reasons == {"@scope/p7@1.0.0": "E404"}
    assert len(list((tmp_path / "corpus").iterdir())) == 18
    offer(tmp_path, "case $2 in *p1?@*) exit 7;; esac")
    message = r"^npm could not fetch 10 of 20 packages \(@scope/p10@1.0.0: npm ended with 7\)"
    with pytest.raises(SourceError, match=message):
        android_npm.fetch(TWENTY, tmp_path / "other")


def test_without_npm_or_a_network_one_line_says_so(tmp_path: Path) -> None:
    def fetch() -> str:
        command, path = [sys.executable, "-m", "corpora.android_npm", str(tmp_path / "corpus")], str(tmp_path / "npm")
        root, env = Path(__file__).parent.parent.parent, {"PATH": path}
        run = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=LONG)
        assert (run.returncode, run.stdout) == (1, "")
        return run.stderr

    assert fetch() == "no Android corpus: npm is not installed (it comes with Node.js)\n"
    program(tmp_path / "npm", "npm", f'echo "$2" >> {tmp_path}/log; echo "npm ERR! code ENOTFOUND" >&2; exit 1')
    total, first = len(PACKAGES), PACKAGES[0].spec
    assert fetch() == f"no Android corpus: npm could not fetch {total} of {total} packages ({first}: ENOTFOUND)\n"
    assert len((tmp_path / "log").read_text().split()) == android_npm.JOBS  # it is given up early
