"""No command writes through a link that somebody left where it writes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from corpora.codesearchnet.challenge import write_submission
from corpora.jsonl import write_rows
from corpora.ncs287 import write_score_sheet
from corpora.trec import write_qrels, write_run
from evaluation.annotation.judgments import Judgments, is_new
from evaluation.annotation.pool import Recipe
from evaluation.experiments import write_json
from evaluation.stackoverflow import Journal
from ncs.build.map import make_map
from ncs.build.pipeline import add_rankers
from ncs.build.tune import reset, tune
from ncs.errors import NcsError
from ncs.index import Index
from ncs.search.feedback import Feedback
from ncs.serve.http.api import append
from ncs.storage.commit import open_writer
from ncs.storage.snapshot import open_snapshot
from tests.gitrepo import write

CANARY = "precious"
NAMES = (
    *("snapshot.json", "snapshot.json.part", "ncs.lock", ".gitignore", "tuned.json", "tuned.json.part"),
    *("segments", "statistics", "tombstones", "segments/000001", "segments/000007", "tombstones/000007.npy"),
    *("segments/000001/documents.sqlite", "statistics/000001/map", "segments/000001/ncs/vectors.npy"),
)


def tune_index(folder: Path) -> None:
    feedback = [Feedback(f"open file {n}", (n,)) for n in range(12)]
    with open_snapshot(folder, lambda snapshot: snapshot) as snapshot:
        tune(snapshot, feedback, force=True)


def reset_tuned(folder: Path) -> None:
    with open_snapshot(folder, lambda snapshot: snapshot) as snapshot:
        reset(snapshot)


WRITERS: dict[str, Callable[[Path], object]] = {
    "build": lambda folder: Index.build(folder.parent / "project", folder).close(),
    "update": lambda folder: Index.update(folder)[0].close(),
    "map": make_map,
    "add": lambda folder: add_rankers(folder, ["two_field"]),
    "tune": tune_index,
    "reset": reset_tuned,
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index beside its project, which has changed since."""
    room = tmp_path_factory.mktemp("room")
    write(room / "project", {f"m{n}.py": f"def open_file_{n}(path):\n    return open(path + {n})\n" for n in range(12)})
    Index.build(room / "project", room / ".ncs").close()
    tune_index(room / ".ncs")
    write(room / "project", {"m12.py": "def close_file(path):\n    return path.close()\n"})
    return room / ".ncs"


@pytest.mark.parametrize("dangling", [False, True], ids=["link", "dangling"])
@pytest.mark.parametrize("writer", WRITERS)
def test_no_link_in_an_index_is_written_through(index: Path, tmp_path: Path, writer: str, dangling: bool) -> None:
    for number, name in enumerate(NAMES):
        room, outside = tmp_path / str(number), tmp_path / f"outside {number}"
        shutil.copytree(index.parent, room)
        target, link = outside / "target", room / ".ncs" / name
        outside.mkdir()
        if not dangling:
            if link.is_dir():
                shutil.copytree(link, target)
            else:
                target.write_text(CANARY)
        before = content(outside)
        if link.is_dir():
            shutil.rmtree(link)
        else:
            link.unlink(missing_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        with suppress(NcsError):
            WRITERS[writer](room / ".ncs")
        assert content(outside) == before, name
        shutil.rmtree(room)


@pytest.mark.parametrize("name", NAMES)
def test_a_link_in_an_index_is_named_with_its_remedy(index: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(index, tmp_path / ".ncs")
    link, elsewhere = tmp_path / ".ncs" / name, tmp_path / "elsewhere"
    if link.exists():
        shutil.move(link, elsewhere)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    with pytest.raises(NcsError, match=rf"{name} is a link, which .*; remove it$"), open_writer(tmp_path / ".ncs"):
        pytest.fail("work started")


def test_an_index_folder_that_is_a_link_or_holds_a_pipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".ncs").symlink_to("elsewhere")
    with pytest.raises(NcsError, match=r"\.ncs is a link"), open_writer(tmp_path / ".ncs"):
        pytest.fail("work started")
    os.mkfifo(tmp_path / "elsewhere" / "ncs.lock")
    with pytest.raises(NcsError, match=r"ncs\.lock is neither a file"), open_writer(tmp_path / "elsewhere"):
        pytest.fail("work started")


def content(folder: Path) -> dict[str, bytes]:
    """Every name below a folder, with the bytes of files."""
    paths = sorted(folder.rglob("*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b"" for path in paths}


def write_judgments(path: Path) -> None:
    if is_new(path):
        Judgments.create(path, Recipe(("bm25",), 1, (), 0), [], []).close()
    Judgments(path).close()


def write_journal(path: Path) -> None:
    with Journal(path):
        pass


OUTPUTS: dict[str, Callable[[Path], object]] = {
    "json": lambda path: write_json({"a": [1]}, path),
    "run": lambda path: write_run({"q": {"d": 1.0}}, path),
    "qrels": lambda path: write_qrels({"q": {"d": 1}}, path),
    "rows": lambda path: write_rows(path, [{"a": 1}]),
    "score sheet": lambda path: write_score_sheet(["1"], {"ncs": [1]}, path),
    "submission": lambda path: write_submission({}, [], path),
    "journal": write_journal,
    "judgments": write_judgments,
    "feedback": lambda path: append(path, b"open file\ta.py:1\n"),
}


@pytest.mark.parametrize("suffix", ["", ".part", "-journal", "-wal"])
@pytest.mark.parametrize("dangling", [False, True], ids=["link", "dangling"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_no_output_is_written_through_a_link(tmp_path: Path, output: str, dangling: bool, suffix: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    if not dangling:
        (outside / "target").touch()
    before = content(outside)
    (tmp_path / f"out{suffix}").symlink_to(outside / "target")
    with suppress(NcsError, OSError):
        OUTPUTS[output](tmp_path / "out")
    assert content(outside) == before


def test_an_output_may_be_a_device(tmp_path: Path) -> None:
    write_json({}, Path("/dev/stdout"))
    assert Path("/dev/stdout").exists()
    write_json({}, Path("/dev/null"))
    assert Path("/dev/null").is_char_device()
