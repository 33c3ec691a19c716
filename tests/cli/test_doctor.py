"""What `ncs doctor` finds, and that its advice fits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ncs.cli.doctor import Finding, diagnose, left_out, requirements
from ncs.cli.main import app
from ncs.config import BuildConfig
from ncs.index import Index
from tests import corpus


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index with sources of its own to change."""
    corpus.write(tmp_path / "repos")
    Index.build(tmp_path / "repos", tmp_path / ".ncs").close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NCS_INDEX", raising=False)
    return tmp_path


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments], env={"NO_COLOR": "1"})


def findings(folder: Path, about: str) -> list[Finding]:
    return [finding for finding in diagnose(folder) if finding.about == about]


def describe_otherwise(folder: Path, **counts: object) -> None:
    """Other counts in the description of an index."""
    file = folder / "snapshot.json"
    description = json.loads(file.read_text())
    description["counts"] |= counts
    file.write_text(json.dumps(description))


def test_a_sound_index_is_healthy_and_lists_what_it_has(demo: Path) -> None:
    done = doctor("-i", str(demo / ".ncs"))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "note"}
    assert lines[0].startswith("ok    ncs 0.")
    index = f"ok    {demo}/.ncs: 10 documents of 3 repositories in java 5, python 5; of 20"
    assert any(line.startswith(index) for line in lines)
    assert any(line.startswith("ok    nothing changed since 20") and "4 files checked" in line for line in lines)
    report = json.loads(doctor("-i", str(demo / ".ncs"), "--json").stdout)
    assert report["healthy"] is True
    assert {"level", "about", "text", "command"} == set(report["findings"][0])


def test_without_an_index_the_command_that_makes_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NCS_INDEX", raising=False)
    done = doctor()
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == f"todo  no index in {tmp_path} or above: ncs build ."


def test_new_changed_and_removed_files_are_counted_with_the_command_that_reads_them(home: Path) -> None:
    (home / "repos" / "app" / "src" / "Network.java").unlink()
    (home / "repos" / "tools" / "files.py").write_text("def changed():\n    return 1\n")
    (home / "repos" / "tools" / "more.py").write_text("def added():\n    return 2\n")
    text = "out of date: 1 new, 1 changed, 1 removed (tools/more.py ...); 4 files checked"
    assert findings(home / ".ncs", "sources") == [Finding("todo", "sources", text, f"ncs update -i {home}/.ncs")]
    assert doctor().exit_code == 1
    assert "; 1 file checked in 0 s, there may be more" in doctor("--seconds", "0").stdout
    Index.update(home / ".ncs")[0].close()
    assert [finding.level for finding in findings(home / ".ncs", "sources")] == ["ok"]


def test_a_missing_source_folder_is_named(home: Path) -> None:
    shutil.move(home / "repos", home / "elsewhere")
    text = f"source folder missing ({home}/repos); results come from the old index"
    command = f"ncs build SOURCES -i {home}/.ncs"
    assert findings(home / ".ncs", "sources") == [Finding("todo", "sources", text, command)]


def test_a_damaged_index_is_one_line_to_do(home: Path) -> None:
    (home / ".ncs" / "snapshot.json").write_text("{")
    done = doctor()
    assert done.exit_code == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("todo  ")
    assert last.endswith(f": ncs build <sources> -i {home}/.ncs")


def test_what_was_left_out_is_listed_with_its_reasons() -> None:
    counts = {
        "skipped": {"minified": 2, "binary": 0, "generated": 1234},
        "broken": 5,
        "broken_files": ["a.py", "b.py", "c.py", "d.py"],
        "unreadable_files": ["secret.py"],
    }
    remedy = "pip install 'neural-code-search[languages]'"
    notes = [f"files (3 of c) were left out; to read them, {remedy}", "x: has no commit"]
    assert [finding.text for finding in left_out(counts, notes)] == [
        "1,234 generated, 2 minified",
        "5 files with syntax errors (what could be parsed is indexed): a.py, b.py, c.py ...",
        "1 file could not be read; check the permissions: secret.py",
        "files (3 of c) were left out; to read them",
        "x: has no commit",
    ]
    assert [finding.command for finding in left_out(counts, notes)][3:] == [remedy, None]


def test_a_full_disk_is_found_before_an_update_fails(home: Path) -> None:
    describe_otherwise(home / ".ncs", source_bytes=10**15)
    (full,) = findings(home / ".ncs", "disk")
    assert (full.level, full.command) == ("todo", f"df -h {home}/.ncs")
    assert full.text.endswith(" MB free; an update may need 4,000,000,000 MB")


def test_word_vectors_of_a_much_smaller_corpus_should_be_learned_again(home: Path) -> None:
    describe_otherwise(home / ".ncs", training={"documents": 2})
    (finding,) = findings(home / ".ncs", "vectors")
    assert (finding.level, finding.command) == ("todo", f"ncs update -i {home}/.ncs --retrain")


def test_an_index_of_documents_at_hand_cannot_be_updated(tmp_path: Path, demo: Path) -> None:
    with Index.load(demo / ".ncs") as index:
        documents = index.documents.documents(list(range(len(index))))
    Index.of(documents, tmp_path / "own", config=BuildConfig(deduplicate=False)).close()
    assert findings(tmp_path / "own", "sources")[0].level == "note"


def test_extras_and_what_they_need_come_from_the_installed_distribution() -> None:
    needed = requirements()
    assert "numpy" in needed[""]
    assert "fastapi" in needed["server"]
    assert "torch" in needed["unif"]
