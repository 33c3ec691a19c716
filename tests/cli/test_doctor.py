"""What `ncs doctor` finds, and that its advice fits."""

from __future__ import annotations

import importlib.metadata as metadata
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ncs.cli.doctor import Finding, diagnose, left_out, requirements
from ncs.config import BuildConfig
from ncs.index import Index
from tests import corpus
from tests.command import invoke
from tests.snapshots import change


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An index with sources of its own to change."""
    corpus.write(tmp_path / "repos")
    Index.build(tmp_path / "repos", tmp_path / ".ncs").close()
    return tmp_path


def of_sources(folder: Path) -> list[Finding]:
    return [finding for finding in diagnose(folder, 5) if finding.about == "sources"]


def test_a_sound_index_is_healthy_and_lists_what_it_has(demo: Path) -> None:
    run = invoke("doctor", cwd=demo)
    assert run.returncode == 0
    lines = run.stdout.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "note"}
    assert lines[0].startswith("ok    ncs 0.")
    index = f"ok    {demo}/.ncs: 10 documents of 3 repositories in java 5, python 5; of 20"
    assert any(line.startswith(index) for line in lines)
    assert any(line.startswith("ok    nothing changed since 20") and "4 files checked" in line for line in lines)
    assert "ok    the general head is used" in lines
    report = json.loads(invoke("doctor", "--json", cwd=demo).stdout)
    assert report["healthy"] is True
    assert {"level", "about", "text", "command"} == set(report["findings"][0])


def test_info_and_doctor_say_where_the_general_head_is_not_used(tmp_path: Path) -> None:
    corpus.write(tmp_path / "repos")
    Index.build(tmp_path / "repos", tmp_path / ".ncs", config=BuildConfig(general=False)).close()
    assert "\ngeneral head\tnot used (--no-general)\n" in invoke("info", cwd=tmp_path).stdout
    assert json.loads(invoke("info", "--json", cwd=tmp_path).stdout)["config"]["general"] is False
    heads = [finding for finding in diagnose(tmp_path / ".ncs", 0) if finding.about == "heads"]
    assert heads == [Finding("ok", "heads", "the general head is not used (--no-general)")]


def test_a_missing_or_damaged_index_is_one_line_with_the_command_that_makes_one(tmp_path: Path) -> None:
    run = invoke("doctor", cwd=tmp_path)
    assert (run.returncode, run.stdout.splitlines()[-1]) == (1, f"todo  no index in {tmp_path} or above: ncs build .")
    (tmp_path / ".ncs").mkdir()
    (tmp_path / ".ncs" / "snapshot.json").write_text("{")
    run = invoke("doctor", cwd=tmp_path)
    assert run.returncode == 1
    last = run.stdout.splitlines()[-1]
    assert last.startswith("todo  ")
    assert last.endswith(f": ncs build SOURCES -i {tmp_path}/.ncs")


def test_new_changed_and_removed_files_are_counted_with_the_command_that_reads_them(home: Path) -> None:
    (home / "repos" / "app" / "src" / "Network.java").unlink()
    (home / "repos" / "tools" / "files.py").write_text("def changed():\n    return 1\n")
    (home / "repos" / "tools" / "more.py").write_text("def added():\n    return 2\n")
    text = "the index is behind: 1 new, 1 changed, 1 removed (tools/more.py ...); 4 files checked"
    assert of_sources(home / ".ncs") == [Finding("todo", "sources", text, f"ncs update -i {home}/.ncs")]
    assert invoke("doctor", cwd=home).returncode == 1
    (part,) = [finding.text for finding in diagnose(home / ".ncs", 0) if finding.about == "sources"]
    assert part.startswith("nothing changed since ")  # what is not reached does not count as removed
    assert part.endswith("; 1 file checked in 0 s, there may be more")
    Index.update(home / ".ncs")[0].close()
    assert [finding.level for finding in of_sources(home / ".ncs")] == ["ok"]


def test_missing_sources_a_full_disk_and_outgrown_word_vectors_are_to_do(home: Path) -> None:
    shutil.move(home / "repos", home / "elsewhere")
    counts = {"source_bytes": 10**15, "training": {"documents": 2}}
    change(home / ".ncs", lambda description: description["counts"].update(counts))
    todo = {finding.about: finding for finding in diagnose(home / ".ncs", 5) if finding.level == "todo"}
    text = f"source folder missing ({home}/repos); results come from the old index"
    assert todo["sources"] == Finding("todo", "sources", text, f"ncs build SOURCES -i {home}/.ncs")
    assert todo["disk"].text.endswith(" MB free; an update may need 4,000,000,000 MB; free some space")
    assert todo["vectors"].command == f"ncs update -i {home}/.ncs --retrain"


def test_what_was_left_out_is_listed_with_its_reasons() -> None:
    counts = {
        "skipped": {"minified": 2, "binary": 0, "generated": 1234},
        "broken": 5,
        "broken_files": ["a.py", "b.py", "c.py", "d.py"],
        "unreadable_files": ["secret.py"],
    }
    remedy = "pip install 'neural-code-search[languages]'"
    notes = [f"files (3 of c) were left out; to read them, {remedy}", "x: has no commit"]
    assert [(finding.text, finding.command) for finding in left_out(counts, notes)] == [
        ("skipped: 1,234 generated, 2 minified", None),
        ("5 files with syntax errors (what could be parsed is indexed): a.py, b.py, c.py ...", None),
        ("1 file could not be read; check the permissions: secret.py", None),
        ("files (3 of c) were left out; to read them", remedy),
        ("x: has no commit", None),
    ]


def test_an_index_of_documents_cannot_be_updated(tmp_path: Path, demo: Path) -> None:
    with Index.load(demo / ".ncs") as index:
        documents = index.documents.documents(list(range(len(index))))
    Index.of(documents, tmp_path / "own", config=BuildConfig(deduplicate=False)).close()
    assert of_sources(tmp_path / "own")[0].level == "note"


def test_extras_and_what_they_need_come_from_the_installed_distribution() -> None:
    needed = requirements()
    assert "numpy" in needed[""]
    assert "fastapi" in needed["server"]
    assert "torch" in needed["unif"]


@pytest.mark.parametrize(
    ("names", "shown"),
    [(["fasttext"], "0.9.3"), (["fasttext-community"], "0.11.9"), (["fasttext-wheel"], "0.9.2"), ([], "")],
)
def test_fasttext_of_any_distribution_is_accepted_and_its_absence_is_only_a_note(
    names: list[str], shown: str, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str, of: Callable[[str], str] = metadata.version) -> str:
        if "fasttext" in name and name not in names:
            raise metadata.PackageNotFoundError(name)
        return shown if name in names else of(name)

    monkeypatch.setattr(metadata, "packages_distributions", lambda: {"fasttext": names} if names else {})
    monkeypatch.setattr(metadata, "version", version)
    found = [finding for finding in diagnose(demo / ".ncs", 0) if finding.about == "program"]
    text = "fastText is not installed: all word vectors are from LSA"
    missing = [] if names else [Finding("note", "program", text, "pip install fasttext-community")]
    assert found[1:] == missing
    assert (found[0].level, f"fasttext {shown}" in found[0].text) == ("ok", bool(names))
