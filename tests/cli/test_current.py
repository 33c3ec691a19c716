"""A query takes small changes of the sources in before it answers, and builds an index where it is asked to."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ncs.build import request
from ncs.build.update import catch_up
from ncs.index import Index
from ncs.sources import walk
from ncs.storage.commit import open_writer
from ncs.storage.freshness import known_changes, state_of
from ncs.storage.snapshot import SNAPSHOT, open_snapshot, read_description
from tests import gitrepo
from tests.command import invoke
from tests.corpus import QUICK
from tests.terminal import Terminal

CODE = "def open_door(key):\n    return key.turn()\n"
NEW = "def ring_bell(cord):\n    return cord.pull()\n"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {f"lib/m{n}.py": f"def move_{n}(thing):\n    return thing.step({n})\n" for n in range(30)}
    folder = gitrepo.write(tmp_path_factory.mktemp("original") / "project", {"door.py": CODE, **files})
    Index.build(folder, folder / ".ncs", config=QUICK).close()
    return folder


@pytest.fixture
def project(original: Path, tmp_path: Path) -> Path:
    """A copy, built again: the stamps of a copy are others."""
    folder = shutil.copytree(original, tmp_path / "project")
    Index.build(folder, folder / ".ncs", config=QUICK).close()
    return folder


def names(project: Path, text: str, *options: str) -> tuple[list[str], str]:
    """The hits of a query by name, and stderr."""
    run = invoke("query", text, "--json", *options, cwd=project)
    assert run.returncode in (0, 1), run.stderr
    return [hit["name"] for hit in json.loads(run.stdout)["hits"]], run.stderr


def test_a_new_a_changed_and_a_removed_file_count_in_the_next_query(project: Path) -> None:
    (project / "lib" / "bell.py").write_text(NEW)
    (project / "door.py").write_text(CODE.replace("open_door", "unlock_door"))
    (project / "lib" / "m3.py").unlink()
    assert "ring_bell" not in names(project, "ring bell", "--no-update")[0]
    assert names(project, "ring bell", "-n", "1") == (["ring_bell"], "")
    assert names(project, "unlock door", "-n", "1") == (["unlock_door"], "")
    assert "move_3" not in names(project, "move 3 thing", "-n", "40")[0]


def test_the_only_function_with_the_words_of_a_question_is_no_weak_hit_though_no_other_stands_behind_it(
    project: Path,
) -> None:
    (project / "lib" / "zap.py").write_text('def zap(it):\n    """Frobnicate a gizmo."""\n    return it.go()\n')
    assert names(project, "frobnicate gizmo") == (["zap"], "")
    only = ("-g", "zap.py", "--json")
    some = invoke("query", "frobnicate paintings of a ship at sunset", *only, cwd=project).stdout
    every = invoke("query", "frobnicate gizmo", *only, cwd=project).stdout
    assert [json.loads(text)["hits"][0]["likelihood"] for text in (every, some)] == ["strong", ""]


def test_the_files_are_compared_once_for_an_update_before_a_query(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = list[object]()

    def count(*roots: Any, **how: Any) -> Any:
        walks.append(roots)
        return walk(*roots, **how)

    monkeypatch.setattr(request, "walk", count)
    (project / "lib" / "bell.py").write_text(NEW)
    with open_snapshot(project / ".ncs", lambda snapshot: snapshot) as snapshot:
        state = state_of(snapshot)
        assert state
        assert catch_up(snapshot, state) is None
    assert len(walks) == 1
    assert names(project, "ring bell", "-n", "1") == (["ring_bell"], "")
    counts = read_description(project / ".ncs").counts
    Index.build(project, project / ".ncs", config=QUICK).close()
    assert counts["skipped"] == read_description(project / ".ncs").counts["skipped"]


def test_similar_functions_are_found_in_what_changed_just_before(project: Path) -> None:
    (project / "lib" / "bell.py").write_text(CODE.replace("open_door", "unlock_door"))
    similar = ("similar", "door.py:1", "-n", "1", "--no-tests", "--json")
    for options, found in ((("--no-update",), []), ((), ["unlock_door"])):
        run = invoke(*similar, *options, cwd=project)
        assert run.returncode in (0, 1), run.stderr
        names = [hit["name"] for hit in json.loads(run.stdout)["hits"]]
        assert [name for name in names if name == "unlock_door"] == found


def test_files_that_are_not_read_are_compared_once(project: Path) -> None:
    (project / "picture.png").write_bytes(b"\x89PNG\0")
    assert names(project, "open door", "-n", "1") == (["open_door"], "")
    with open_snapshot(project / ".ncs", lambda snapshot: snapshot) as snapshot:
        state = state_of(snapshot)
        assert state
        assert known_changes(snapshot, state) == 0
        (project / "lib" / "x.png").write_bytes(b"\x89PNG\0")
        later = state_of(snapshot)
        assert later
        assert known_changes(snapshot, later) is None


def test_many_changes_are_counted_and_left_to_an_update(project: Path) -> None:
    for number in range(60):
        (project / f"n{number}.py").write_text(NEW.replace("bell", f"bell_{number}"))
    number = read_description(project / ".ncs").number
    line = "ncs: the index is behind: 60 files changed; run ncs update\n"
    for _ in range(2):
        assert names(project, "open door", "-n", "1") == (["open_door"], line)
    assert names(project, "open door", "-n", "1", "-q") == (["open_door"], "")
    for command in (("query", "open door"), ("def", "open_door"), ("locate", "open door"), ("similar", "door.py:1")):
        notes = json.loads(invoke(*command, "--json", cwd=project).stdout)["notes"]
        assert notes[0] == line.removeprefix("ncs: ").rstrip()
    assert names(project, "open door", "-n", "1", "--no-update") == (["open_door"], "")
    assert read_description(project / ".ncs").number == number


def test_an_index_that_another_process_writes_answers_as_it_stands(project: Path) -> None:
    (project / "bell.py").write_text(NEW)
    line = "ncs: the index is behind: 1 file changed; run ncs update\n"
    with open_writer(project / ".ncs"):
        assert names(project, "open door", "-n", "1") == (["open_door"], line)
    assert names(project, "ring bell", "-n", "1") == (["ring_bell"], "")


def test_an_index_without_its_sources_or_of_a_stranger_is_not_updated(project: Path, tmp_path: Path) -> None:
    (project / "bell.py").write_text(NEW)
    content = json.loads((project / ".ncs" / SNAPSHOT).read_bytes())
    (project / ".ncs" / SNAPSHOT).write_text(json.dumps({**content, "signature": "0" * 64}))
    found, said = names(project, "ring bell", "-n", "1")
    assert "ring_bell" not in found
    assert "not trusted" in said
    (project / ".ncs" / SNAPSHOT).write_text(json.dumps(content))
    (tmp_path / "away").mkdir()
    shutil.move(project / ".ncs", tmp_path / "away" / ".ncs")
    assert names(tmp_path / "away", "open door", "-n", "1")[0] == ["open_door"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_index_answers(project: Path) -> None:
    (project / "bell.py").write_text(NEW)
    (project / ".ncs").chmod(0o555)
    assert names(project, "open door", "-n", "1") == (["open_door"], "")
    (project / ".ncs").chmod(0o755)


def test_where_there_is_no_index_the_error_names_build_which_builds_one_for_the_project(tmp_path: Path) -> None:
    project = gitrepo.repository(tmp_path / "project", {"door.py": CODE, "lib/bell.py": NEW})
    run = invoke("query", "open door", cwd=project / "lib")
    error = (
        f"ncs: no index in {project}/lib or above; make one with: ncs build ., or with the query: ncs query --build\n"
    )
    assert (run.returncode, run.stdout, run.stderr) == (2, "", error)
    run = invoke("query", "open door", "--build", "-q", "-n", "1", "--no-code", cwd=project / "lib")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("1. open_door  ../door.py:1  ")
    assert read_description(project / ".ncs").counts["sources"]["roots"] == ["."]
    number = read_description(project / ".ncs").number
    assert invoke("query", "open door", "--build", cwd=project).returncode == 0
    assert read_description(project / ".ncs").number == number


@pytest.mark.parametrize(("answer", "built"), [(b"y\r", True), (b"\r", False)])
def test_a_terminal_is_asked(tmp_path: Path, answer: bytes, built: bool) -> None:
    project = gitrepo.write(tmp_path / "project", {"door.py": CODE})
    terminal = Terminal("query", "open door", cwd=project, columns=200)
    terminal.until(lambda: f"no index here; build one for {project} (y/N)? ".encode() in terminal.written)
    terminal.type(answer)
    terminal.wait()
    assert (project / ".ncs" / SNAPSHOT).exists() == built


def test_the_offer_may_be_left_with_ctrl_d_and_the_error_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    terminal = Terminal("query", "open door", cwd=gitrepo.write(tmp_path, {"door.py": CODE}), columns=200)
    terminal.until(lambda: b"(y/N)? " in terminal.written)
    terminal.type(b"\x04")
    assert terminal.wait() == 2
    assert b"\nncs: " in terminal.written
    assert not (tmp_path / ".ncs").exists()


def test_what_a_build_refuses_is_not_offered(tmp_path: Path) -> None:
    terminal = Terminal("query", "open door", cwd=tmp_path, columns=200, HOME=str(tmp_path))
    assert terminal.wait() == 2
    assert b"build one for" not in terminal.written
    assert b"no index in " in terminal.written
