"""`ncs build --head`, `--add`, `ncs train`, `ncs explain-attention`: from a head to answers; errors in one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ncs.cli import main as cli
from ncs.index import Index
from tests.heads import head

SOURCE = "def open_file(path):\n    return open(path)\n\n\ndef close_socket(sock):\n    sock.close()\n"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "io.py").write_text(SOURCE)
    head().save(tmp_path / "run" / "head")
    return tmp_path / "src"


def ncs(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Exit status of the command."""
    monkeypatch.setattr(sys, "argv", ["ncs", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_a_head_given_to_a_build_or_added_later_answers(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert ncs(monkeypatch, "build", sources, "-i", one, "--head", tmp_path / "run", "-q") == 0
    assert ncs(monkeypatch, "build", sources, "-i", other, "-q") == 0
    assert ncs(monkeypatch, "query", "-i", other, "--ranker", "unif", "open the file") == 2
    assert ncs(monkeypatch, "build", "-i", other, "--add", f"unif:head={tmp_path / 'run'}") == 0
    told = capsys.readouterr().err
    assert "ask it with: ncs query --ranker unif" in told
    assert "hybrid: weight 0 of the head: its functions make 1 questions to judge it by; 40 are needed" in told
    found = []
    for folder in (one, other):
        assert ncs(monkeypatch, "query", "-i", folder, "--ranker", "unif", "--no-code", "--jsonl", "close socket") == 0
        found.append(capsys.readouterr().out)
        assert ncs(monkeypatch, "explain-attention", "-i", folder, "close socket", "-n", "1") == 0
        assert capsys.readouterr().out.startswith("close_socket  io.py:5\nlearnt  tf-idf  word\n")
    assert found[0] == found[1]
    with Index.load(one) as index:
        assert index.manifest.config["rankers"] == [f"unif:head={tmp_path / 'run'}"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["build"], "name a folder with source files"),
        (["build", "src", "--add", "two_field"], "--add takes the index as it stands"),
        (["build", "--add", "two_field", "-i", "nowhere"], "no index"),
        (["build", "--head", "nowhere", "src"], "there is no trained head"),
    ],
)
def test_wrong_use_is_told_in_one_line(
    sources: Path,
    tmp_path: Path,
    arguments: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ncs(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_training_without_torch_names_the_command_to_type(tmp_path: Path) -> None:
    script = "import sys; sys.modules['torch'] = None; from ncs.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "train", "cnn", "-i", str(tmp_path), "--out", str(tmp_path / "run")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "unif: training needs torch: pip install 'neural-code-search[unif]'\n"


def test_an_update_takes_the_copy_of_a_head_whose_folder_is_gone(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "index"
    assert ncs(monkeypatch, "build", sources, "-i", folder, "--head", tmp_path / "run", "-q") == 0
    shutil.rmtree(tmp_path / "run")
    (sources / "io.py").write_text(SOURCE + "\n\ndef open_socket(sock):\n    sock.open()\n")
    assert ncs(monkeypatch, "update", "-i", folder, "-q") == 0
    capsys.readouterr()
    assert ncs(monkeypatch, "query", "-i", folder, "--ranker", "unif", "--no-code", "--jsonl", "open socket") == 0
    assert "open_socket" in capsys.readouterr().out
    assert ncs(monkeypatch, "build", sources, "-i", tmp_path / "new", "--head", tmp_path / "run", "-q") == 2
