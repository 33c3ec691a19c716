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


def test_a_head_given_to_a_build_or_added_later_answers_and_outlives_its_folder(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert ncs(monkeypatch, "build", sources, "-i", one, "--head", tmp_path / "run", "-q") == 0
    assert ncs(monkeypatch, "build", sources, "-i", other, "-q") == 0
    assert ncs(monkeypatch, "query", "-i", other, "--ranker", "unif", "open the file") == 2
    assert ncs(monkeypatch, "build", "-i", other, "--add", f"unif:head={tmp_path / 'run'}") == 0
    assert "40 are needed" in capsys.readouterr().err  # questions, before the default ranker listens to a head
    hits = []
    for folder in (one, other):
        assert ncs(monkeypatch, "query", "-i", folder, "--ranker", "unif", "--no-code", "--jsonl", "close socket") == 0
        hits.append(capsys.readouterr().out)
    assert hits[0] == hits[1]
    with Index.load(one) as index:
        assert index.description.config["rankers"] == [f"unif:head={tmp_path / 'run'}"]
    shutil.rmtree(tmp_path / "run")
    (sources / "io.py").write_text(SOURCE + "\n\ndef open_socket(sock):\n    sock.open()\n")
    assert ncs(monkeypatch, "update", "-i", one, "-q") == 0
    capsys.readouterr()
    assert ncs(monkeypatch, "query", "-i", one, "--ranker", "unif", "--no-code", "--jsonl", "open socket") == 0
    assert "open_socket" in capsys.readouterr().out
    assert ncs(monkeypatch, "build", sources, "-i", tmp_path / "new", "--head", tmp_path / "run", "-q") == 2


def test_explain_attention_shows_the_words_of_the_first_hit(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, run = tmp_path / "index", tmp_path / "run"
    assert ncs(monkeypatch, "build", sources, "-i", folder, "-q") == 0
    command = ("explain-attention", "-i", folder)
    assert ncs(monkeypatch, *command, "--head", run, "open file", "-n", "2") == 0
    place, title, *lines = shown = capsys.readouterr().out.splitlines()
    assert place.startswith("open_file  ")
    assert title == "learned  tf-idf  word"
    assert {line.split("  ")[-1] for line in lines} == {"open x 2", "file"}
    assert ncs(monkeypatch, *command, "--head", run, "zzz") == 1
    assert ncs(monkeypatch, *command, "open") == 2
    assert "built without 'unif'" in capsys.readouterr().err
    assert ncs(monkeypatch, *command, "--head", folder, "open") == 2
    assert "no trained head" in capsys.readouterr().err
    assert ncs(monkeypatch, "build", "-i", folder, "--add", f"unif:head={run}", "-q") == 0
    shutil.rmtree(run)
    capsys.readouterr()
    assert ncs(monkeypatch, *command, "open file", "-n", "2") == 0
    assert capsys.readouterr().out.splitlines() == shown


def test_training_without_torch_names_the_command_to_type(tmp_path: Path) -> None:
    script = "import sys; sys.modules['torch'] = None; from ncs.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "train", "cnn", "-i", str(tmp_path), "--out", str(tmp_path / "run")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ncs: training needs torch: pip install 'neural-code-search[unif]'\n"
