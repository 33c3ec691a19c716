"""Issues: rows of three forms, and what patches edit, against git's own patches."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.issues import Issue, edited_files, read_issues
from corpora.jsonl import write_rows
from ncs.errors import BadInput
from tests.gitrepo import commit, git, repository

REVISION = "0123456789abcdef0123456789abcdef01234567"
OURS = {
    "id": "o__r-1",
    "query": "Crash\n\nIt crashes.",
    "repo": "o/r",
    "revision": REVISION,
    "relevant": ["a.py", "b.py"],
}
PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -4,3 +4,3 @@ def f():\n x\n-y\n+z\n w\n"
SWE_BENCH = {
    "instance_id": "o__r-2", "repo": "o/r", "base_commit": REVISION, "problem_statement": "\n Wrong sum \nSee there.",
    "patch": PATCH, "test_patch": PATCH.replace("a.py", "tests/test_a.py"),
}  # fmt: skip
LOC_BENCH = {**SWE_BENCH, "instance_id": "o__r-3", "edit_functions": ["c.py:A.f", "c.py:A.f", "lib/d.py:g", "c.py:h"]}


def read(folder: Path, *rows: dict[str, object]) -> list[Issue]:
    write_rows(folder / "issues.jsonl", rows)
    return read_issues(folder / "issues.jsonl")


@pytest.mark.parametrize("name", ["issues.jsonl", "issues.jsonl.gz"])
def test_rows_of_three_forms_say_what_is_right(tmp_path: Path, name: str) -> None:
    write_rows(tmp_path / name, [OURS, SWE_BENCH, LOC_BENCH])
    ours, swe_bench, loc_bench = read_issues(tmp_path / name)
    assert ours == Issue("o__r-1", "Crash\n\nIt crashes.", "o/r", REVISION, ("a.py", "b.py"))
    assert (swe_bench.files, swe_bench.functions, swe_bench.lines) == (("a.py",), (), {"a.py": (5,)})
    assert (loc_bench.files, loc_bench.lines) == (("c.py", "lib/d.py"), None)
    assert loc_bench.functions == ("c.py::A.f", "lib/d.py::g", "c.py::h")
    assert [issue.title for issue in (ours, swe_bench)] == ["Crash", "Wrong sum"]


def test_a_row_of_locbench_without_functions_is_read_by_its_patch(tmp_path: Path) -> None:
    (issue,) = read(tmp_path, {**LOC_BENCH, "edit_functions": []})
    assert (issue.files, issue.functions, issue.lines) == (("a.py",), (), {"a.py": (5,)})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**OURS, "id": "o__r-0"}, "two issues have the id 'o__r-0'; keep one"),
        ({**OURS, "repo": "../r"}, r":2: repo '\.\./r' is no owner/name; correct that line"),
        ({**OURS, "revision": "--output=x"}, ":2: revision '--output=x' is no name of a commit"),
        ({**OURS, "query": " \n"}, ":2: 'query' is empty; correct that line"),
        ({**OURS, "relevant": "a.py"}, ":2: 'relevant' is not a list of strings; correct that line"),
        ({**OURS, "relevant": []}, ":2: nothing is edited that was there before; leave that line out"),
        ({"id": "x", "query": "y"}, ":2: no 'revision'; correct that line"),
        ({**SWE_BENCH, "patch": None}, ":2: no 'patch'; correct that line"),
        ({**SWE_BENCH, "patch": "x"}, ":2: nothing is edited that was there before"),
        ({**SWE_BENCH, "patch": 'diff --git "a/\\x" "b/\\x"\nold mode 100644'}, ":2: not a patch of git"),
        ({**LOC_BENCH, "edit_functions": ["c.py"]}, r":2: 'c\.py' is no path/to/file\.py:Class\.method; correct that"),
    ],
)
def test_a_wrong_row_is_an_error_of_one_line_with_its_number(
    tmp_path: Path, row: dict[str, object], message: str
) -> None:
    with pytest.raises(BadInput, match=message) as error:
        read(tmp_path, {**OURS, "id": "o__r-0"}, row)
    assert "\n" not in str(error.value)


def test_a_file_without_rows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no issues"):
        read(tmp_path)


LINES = "".join(f"line {n}\n" for n in range(1, 41))


def patch(folder: Path, before: dict[str, str | bytes], after: dict[str, str | bytes], *git_mv: str) -> str:
    """What git makes of a change; None removes a file."""
    tree = repository(folder / "r", before)
    if git_mv:
        git(tree, "mv", *git_mv)
    for path in [path for path, content in after.items() if content == "gone"]:
        (tree / path).unlink()
    commit(tree, {path: content for path, content in after.items() if content != "gone"})
    return git(tree, "diff", "--find-renames", "HEAD~", "HEAD")


def test_edited_lines_are_those_removed_and_the_line_before_what_is_inserted(tmp_path: Path) -> None:
    after = LINES.replace("line 3\n", "").replace("line 20\n", "new\nline 20\n").replace("line 30\n", "-- thirty\n")
    assert edited_files(patch(tmp_path, {"x.py": LINES}, {"x.py": after})) == {"x.py": (3, 19, 30)}


def test_an_insertion_without_context_is_after_its_line() -> None:
    assert edited_files("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -7,0 +8,2 @@\n+a\n+b\n") == {"x": (7,)}


def test_removed_lines_that_look_like_a_head_are_lines(tmp_path: Path) -> None:
    text = f"{LINES}-- a/y.py\n"
    assert edited_files(patch(tmp_path, {"x.sql": text}, {"x.sql": LINES})) == {"x.sql": (41,)}


def test_files_that_were_there_before_are_edited_renamed_or_removed_and_new_ones_are_not(tmp_path: Path) -> None:
    before: dict[str, str | bytes] = {
        "edited file.py": LINES, "removed.py": "gone one\n", "old.py": LINES.upper(), "é.py": "a\n", "b.bin": b"\0a",
    }  # fmt: skip
    after: dict[str, str | bytes] = {
        "edited file.py": f"{LINES}more\n", "removed.py": "gone", "é.py": "b\n", "b.bin": b"\0b", "new.py": "n\n",
        "new.bin": b"\0n",
    }  # fmt: skip
    found = edited_files(patch(tmp_path, before, after, "old.py", "moved.py"))
    assert found == {"edited file.py": (40,), "removed.py": (1,), "old.py": (), "é.py": (1,), "b.bin": ()}
