"""What `ncs doctor` finds, and that its advice is what is wrong."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ncs.build.request import changes_since, known_files, recipe_of
from ncs.cli.doctor.findings import Finding, as_dict
from ncs.cli.doctor.installation import requirements
from ncs.cli.doctor.standing import diagnose, left_out
from ncs.cli.main import app
from ncs.index import BuildConfig, Index
from tests import corpus


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doctor")
    Index.build(corpus.write(folder / "repos"), folder / ".ncs").close()
    return folder


@pytest.fixture
def home(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The index with sources of its own to change."""
    corpus.write(tmp_path / "repos")
    Index.build(tmp_path / "repos", tmp_path / ".ncs").close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NCS_INDEX", raising=False)
    return tmp_path


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments], env={"NO_COLOR": "1"})


def found(folder: Path, about: str) -> list[Finding]:
    return [finding for finding in diagnose(folder) if finding.about == about]


def test_a_sound_index_is_healthy_and_says_what_it_holds(built: Path) -> None:
    done = doctor("-i", str(built / ".ncs"))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "note"}
    assert lines[0].startswith("ok    ncs 0.")
    held = f"ok    {built}/.ncs: 10 documents of 3 repositories in java 5, python 5; of 20"
    assert any(line.startswith(held) for line in lines)
    assert any(line.startswith("ok    nothing changed since 20") and "4 files looked at" in line for line in lines)


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
    stale = found(home / ".ncs", "sources")
    text = "stale: 1 new, 1 changed, 1 removed (tools/more.py ...); 4 files looked at"
    assert stale == [Finding("todo", "sources", text, f"ncs update -i {home}/.ncs")]
    assert doctor().exit_code == 1
    Index.update(home / ".ncs")[0].close()
    assert [finding.level for finding in found(home / ".ncs", "sources")] == ["ok"]


def test_a_look_that_is_cut_short_says_so_and_names_no_file_removed(home: Path) -> None:
    with Index.load(home / ".ncs") as index:
        recipe = recipe_of(index.description, index.folder)
        known = known_files(index.data, index.description, index.documents, recipe.config)
        changes, whole = changes_since(recipe, index.data, known, 0.0)
    assert (whole, changes.removed, changes.unchanged) == (False, (), 1)
    done = doctor("--seconds", "0")
    assert "; 1 files looked at in 0 s; more may have" in done.stdout


def test_sources_that_are_gone_are_named(home: Path) -> None:
    shutil.move(home / "repos", home / "elsewhere")
    text = f"gone: {home}/repos; what was indexed still answers"
    assert found(home / ".ncs", "sources") == [Finding("todo", "sources", text, f"ncs build SOURCES -i {home}/.ncs")]


def test_a_damaged_index_is_one_line_to_do(home: Path) -> None:
    (home / ".ncs" / "manifest.json").write_text("{")
    done = doctor()
    assert done.exit_code == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("todo  ")
    assert last.endswith(f": ncs build <sources> -i {home}/.ncs")


def test_json_has_every_finding_and_the_verdict(built: Path) -> None:
    told = json.loads(doctor("-i", str(built / ".ncs"), "--json").stdout)
    assert told["healthy"] is True
    assert {"level", "about", "text", "command"} == set(told["findings"][0])
    assert not as_dict([Finding("ok", "a", "b"), Finding("todo", "a", "b")])["healthy"]
    assert as_dict([Finding("note", "a", "b")])["healthy"]


def test_what_was_left_out_is_told_with_its_reasons() -> None:
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
        "5 files have syntax errors (what parsed is indexed): a.py, b.py, c.py ...",
        "1 files could not be read; check their permissions: secret.py",
        "files (3 of c) were left out; to read them",
        "x: has no commit",
    ]
    assert [finding.command for finding in left_out(counts, notes)][3:] == [remedy, None]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_a_note(home: Path) -> None:
    (home / ".ncs").chmod(0o555)
    assert found(home / ".ncs", "disk")[0].level == "note"


def test_a_full_disk_is_told_before_an_update_fails(home: Path) -> None:
    manifest = home / ".ncs" / "manifest.json"
    described = json.loads(manifest.read_text())
    described["counts"]["source_bytes"] = 10**15
    manifest.write_text(json.dumps(described))
    (full,) = found(home / ".ncs", "disk")
    assert (full.level, full.command) == ("todo", f"df -h {home}/.ncs")
    assert full.text.endswith(" MB free; an update may take 4,000,000,000 MB")


def test_what_a_killed_build_left_is_told(home: Path) -> None:
    (home / ".ncs" / "data-9.part").mkdir()
    assert found(home / ".ncs", "disk")[-1].text == (
        "a build is running, or was killed: what it left goes with the next one"
    )


def test_word_vectors_of_a_smaller_corpus_are_to_be_learnt_anew(home: Path) -> None:
    manifest = home / ".ncs" / "manifest.json"
    described = json.loads(manifest.read_text())
    described["counts"]["training"]["documents"] = 2
    manifest.write_text(json.dumps(described))
    assert found(home / ".ncs", "vectors") == [
        Finding(
            "todo",
            "vectors",
            "word vectors were learned from 2 documents of 10",
            f"ncs update -i {home}/.ncs --retrain",
        )
    ]


def test_an_index_of_documents_at_hand_cannot_be_updated(tmp_path: Path, built: Path) -> None:
    with Index.load(built / ".ncs") as index:
        documents = index.documents.documents(list(range(len(index))))
    Index.of(documents, tmp_path / "own", config=BuildConfig(deduplicate=False)).close()
    assert found(tmp_path / "own", "sources")[0].level == "note"


def test_extras_and_what_they_need_come_from_the_installed_distribution() -> None:
    needed = requirements()
    assert "numpy" in needed[""]
    assert "fastapi" in needed["server"]
    assert "torch" in needed["unif"]
