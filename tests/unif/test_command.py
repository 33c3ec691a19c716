"""`ncs build --head`, `--add`, `ncs train`, `ncs explain-attention`: from a head to answers; errors in one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ncs.index import Index
from tests import gitrepo
from tests.command import invoke
from tests.heads import SOURCE, head


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Code in `src`, a training run in `run`."""
    gitrepo.write(tmp_path, {"src/io.py": SOURCE})
    head().save(tmp_path / "run" / "head")
    return tmp_path


def test_a_head_given_to_a_build_or_added_later_answers_and_outlives_its_folder(folder: Path) -> None:
    def ncs(*arguments: str) -> int:
        return invoke(*arguments, cwd=folder).returncode

    def hits(index: str, query: str) -> str:
        options = ("--ranker", "unif", "--no-code", "--jsonl")
        return invoke("query", "-i", index, *options, query, cwd=folder).stdout

    run = folder / "run"
    built = invoke("build", "src", "-i", "one", "--head", str(run), cwd=folder)
    why = "its functions make 1 query to judge it by; 10 are needed"
    assert f"hybrid: weight 0 of the head: {why}" in built.stderr
    assert f"own head\tweight 0: {why}" in invoke("info", "-i", "one", cwd=folder).stdout
    assert f"note  hybrid: weight 0 of the head: {why}" in invoke("doctor", "-i", "one", cwd=folder).stdout
    assert ncs("build", "src", "-i", "other", "-q") == 0
    assert ncs("query", "-i", "other", "--ranker", "unif", "open the file") == 2
    added = invoke("build", "-i", "other", "--add", f"unif:head={run}", cwd=folder)
    assert "10 are needed" in added.stderr  # questions, before the default ranker listens to a head
    assert hits("one", "close socket") == hits("other", "close socket") != ""
    with Index.load(folder / "one") as index:
        assert index.description.config["rankers"] == [f"unif:head={run}"]
    shutil.rmtree(run)
    (folder / "src" / "io.py").write_bytes(SOURCE + b"\n\ndef open_socket(sock):\n    sock.open()\n")
    assert ncs("update", "-i", "one", "-q") == 0
    assert "open_socket" in hits("one", "open socket")
    assert ncs("build", "src", "-i", "new", "--head", str(run), "-q") == 2


def test_explain_attention_shows_the_words_of_the_first_hit(folder: Path) -> None:
    def explain(*arguments: str) -> subprocess.CompletedProcess[str]:
        return invoke("explain-attention", "-i", "index", *arguments, cwd=folder)

    assert invoke("build", "src", "-i", "index", "-q", cwd=folder).returncode == 0
    shown = explain("--head", "run", "open file", "-n", "2").stdout
    place, title, *lines = shown.splitlines()
    assert place.startswith("open_file  ")
    assert title == "learned  tf-idf  word"
    assert {line.split("  ")[-1] for line in lines} == {"open x 2", "file"}
    assert explain("--head", "run", "zzz").returncode == 1
    for arguments, message in ((["open"], "built without 'unif'"), (["--head", "index", "open"], "no trained head")):
        refused = explain(*arguments)
        assert (refused.returncode, message in refused.stderr) == (2, True)
    assert invoke("build", "-i", "index", "--add", "unif:head=run", "-q", cwd=folder).returncode == 0
    shutil.rmtree(folder / "run")
    assert explain("open file", "-n", "2").stdout == shown


def test_training_without_torch_names_the_command_to_type(tmp_path: Path) -> None:
    script = "import sys; sys.modules['torch'] = None; from ncs.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "train", "cnn", "-i", str(tmp_path), "--out", str(tmp_path / "run")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ncs: training needs torch; pip install 'neural-code-search[unif]'\n"


@pytest.mark.parametrize(
    ("encoder", "option", "of"),
    [
        ("cnn", ["--answers", "a.jsonl"], "translation"),
        ("unif", ["--apart", "a.jsonl"], "general"),
        ("translation", ["--own"], "unif, nbow, cnn, birnn, selfatt, mixed"),
        ("general", ["--patience", "3"], "unif, nbow, cnn, birnn, selfatt, mixed"),
    ],
)
def test_an_option_of_another_encoder_is_refused(tmp_path: Path, encoder: str, option: list[str], of: str) -> None:
    run = invoke("train", encoder, *option, "--out", str(tmp_path / "run"), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"ncs: {option[0]} is of ncs train {of}, not of {encoder}; leave it out\n"
