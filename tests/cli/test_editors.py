"""Opening hits: the arguments of editors, and what opens where a file has moved, changed or is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ncs.answer import ask
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.locate_source import SourceLocator
from ncs.serve.editors import editor_command, file_to_open, find_editor, open_in_editor
from tests import gitrepo

CODE = "def open_dock(ship):\n    return ship.moor()\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    packed = gitrepo.zipped({"packed/crane.py": "def lift_crane():\n    return 2\n"})
    src = gitrepo.write(tmp_path / "src", {"dock.py": "import ships\n\n\n" + CODE, "packed.zip": packed})
    Index.build(src, tmp_path / ".ncs").close()
    return tmp_path


def hit_of(project: Path, text: str) -> tuple[dict[str, Any], SourceLocator]:
    with Index.load(project / ".ncs") as index:
        answer = ask(index, text, 1, ranker="bm25", functions_only=True)
        return answer["hits"][0], SourceLocator(index.snapshot)


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("nvim -p", ["nvim", "-p", "+7", "a b.py"]),
        ("'/opt/My Apps/codium'", ["/opt/My Apps/codium", "-g", "a b.py:7"]),
        ("subl -w", ["subl", "-w", "a b.py:7"]),
        ("idea.sh", ["idea.sh", "--line", "7", "a b.py"]),
        ("kate", ["kate", "-l", "7", "a b.py"]),
        ("ed", ["ed", "a b.py"]),
    ],
)
def test_an_editor_that_is_known_by_name_opens_at_the_line(editor: str, command: list[str]) -> None:
    assert editor_command(editor, Path("a b.py"), 7) == command


def test_visual_goes_before_editor_and_none_is_an_error_with_its_remedy() -> None:
    assert find_editor({"VISUAL": "code", "EDITOR": "vim"}) == "code"
    assert find_editor({"VISUAL": " ", "EDITOR": "vim"}) == "vim"
    with pytest.raises(BadInput, match="no editor is set; name yours in VISUAL or EDITOR"):
        find_editor({})
    with pytest.raises(BadInput, match="cannot parse the editor"):
        editor_command("vim 'x", Path("a"), 1)


def test_a_hit_opens_at_its_line_and_where_it_has_moved_to_in_its_file(project: Path) -> None:
    file = project / "src" / "dock.py"
    assert file_to_open(*hit_of(project, "open dock")) == (file, 4, None)
    file.write_text("class Port:\n" + "".join(f"    {line}\n" for line in CODE.split("\n")))
    assert file_to_open(*hit_of(project, "open dock")) == (file, 2, None)
    file.write_text("import ships\n")
    note = "src/dock.py has changed since it was indexed; run ncs update"
    assert file_to_open(*hit_of(project, "open dock")) == (file, 2, note)  # the last line there is


def test_a_frame_opens_at_its_line_where_its_function_has_moved_to(project: Path) -> None:
    hit, locator = hit_of(project, "open dock")
    file, frame = project / "src" / "dock.py", {**hit, "line": 5}
    assert file_to_open(frame, locator) == (file, 5, None)
    file.write_text(CODE)
    assert file_to_open(frame, locator) == (file, 2, None)
    file.unlink()
    assert file_to_open(frame, locator)[1] == 2


@pytest.mark.parametrize(("query", "name"), [("lift crane", "crane.py"), ("open dock", "dock.py")])
def test_without_a_file_the_code_as_indexed_opens(project: Path, query: str, name: str) -> None:
    (project / "src" / "dock.py").unlink()
    hit, locator = hit_of(project, query)
    path, line, note = file_to_open(hit, locator)
    assert (path.name, line, path.read_text()) == (name, 1, hit["code"])
    assert note is not None
    assert note.endswith("is not a file here (moved, or in an archive or bare repository); opening the indexed code")


@pytest.mark.parametrize("path", ["dir/a\0b.py", "dir/a\nb.py", "dir/\x1b[31m.py"])
def test_the_copy_of_a_hostile_name_opens_under_a_harmless_one(project: Path, path: str) -> None:
    hit, locator = hit_of(project, "open dock")
    opened, _, _ = file_to_open({**hit, "path": path}, locator)
    assert opened.read_text() == hit["code"]
    assert opened.name.isprintable()


def test_an_index_without_code_says_so_where_the_file_is_gone(project: Path) -> None:
    Index.build(project / "src", project / ".ncs", config=BuildConfig(store_code=False)).close()
    hit, locator = hit_of(project, "open dock")
    assert file_to_open(hit, locator) == (project / "src" / "dock.py", 4, None)
    (project / "src" / "dock.py").unlink()
    with pytest.raises(BadInput, match=r"src/dock\.py is not on this machine, and the index has no code"):
        file_to_open(hit, locator)


def test_an_editor_that_fails_is_reported_in_one_line(project: Path) -> None:
    hit, locator = hit_of(project, "open dock")
    with pytest.raises(BadInput, match=r"false exited with status 1; the file is .*dock\.py, line 4"):
        open_in_editor(hit, locator, {"VISUAL": "false"})
    with pytest.raises(BadInput, match="cannot start no-such-editor: No such file"):
        open_in_editor(hit, locator, {"EDITOR": "no-such-editor"})


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes of this kind")
def test_a_hit_whose_file_became_a_pipe_is_not_waited_for(project: Path) -> None:
    hit, locator = hit_of(project, "open dock")
    (project / "src" / "dock.py").unlink()
    os.mkfifo(project / "src" / "dock.py")
    assert locator.locate(hit) is None


def test_files_of_repositories_of_one_name_are_told_apart_both_ways(tmp_path: Path) -> None:
    for owner in ("mine", "yours"):
        gitrepo.repository(tmp_path / "all" / owner / "app", {"a.py": f"def of_{owner}(x):\n    return x.{owner}\n"})
    with Index.build(tmp_path / "all", tmp_path / "idx") as index:
        locator = SourceLocator(index.snapshot)
        for document in index.documents.documents(range(len(index))):
            file = tmp_path / "all" / document.name.removeprefix("of_") / "app" / "a.py"
            assert locator.path_of(document.repository, document.path) == file
            assert locator.name_of(file) == f"{document.repository}/{document.path}"
        assert locator.name_of(tmp_path / "elsewhere.py") is None
