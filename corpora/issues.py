"""Bug reports and what was edited to mend them: rows of ours, of SWE-bench and of LocBench, as JSON lines.

Ours have `id, query, repo, revision, relevant` (paths of files); those of SWE-bench `instance_id, repo, base_commit,
problem_statement, patch`; those of LocBench also `edit_functions`, as `path/to/file.py:Class.method`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from corpora.corpus import first_repeated
from corpora.jsonl import Row, read_rows
from corpora.repo_search import OF_FILE, REPOSITORY
from ncs.errors import BadInput

_REVISION = re.compile(r"[0-9a-f]{7,64}")
_SECTION = re.compile(r"^(?=diff --git )", re.M)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+")


@dataclass(frozen=True, slots=True)
class Issue:
    """A report about a repository at a revision, and what is right.

    files: those that were there and were edited, renamed or removed; of a row with `edit_functions` the files of these,
    as LocBench counts. functions: `path::qualified_name`, where the row has them. lines: of each file the edited lines,
    where the row has a patch and no functions.
    """

    id: str
    text: str
    repository: str
    revision: str
    files: tuple[str, ...]
    functions: tuple[str, ...] = ()
    lines: Mapping[str, tuple[int, ...]] | None = None

    @property
    def title(self) -> str:
        """The first line of the text that is not empty."""
        return self.text.strip().partition("\n")[0].rstrip()


def read_issues(path: Path) -> list[Issue]:
    """The issues of a `.jsonl` or `.jsonl.gz` file, in its order.

    Raises BadInput, with the number of the line, for rows of another form and for those without a right file.
    """
    issues = [_issue(row) for row in read_rows(path)]
    if not issues:
        raise BadInput(f"{path} holds no issues; name a file with one as JSON in each line")
    if (id := first_repeated(issue.id for issue in issues)) is not None:
        raise BadInput(f"{path}: two issues have the id {id!r}; keep one")
    return issues


def _issue(row: Row) -> Issue:
    ours = "instance_id" not in row.values
    names = ("id", "query", "revision") if ours else ("instance_id", "problem_statement", "base_commit")
    id, text, revision = (row.text(name) for name in names)
    repository = row.text("repo")
    for name, value, form, what in (
        ("repo", repository, REPOSITORY, "owner/name"),
        (names[2], revision, _REVISION, "name of a commit (7 or more hexadecimal digits)"),
    ):
        if not form.fullmatch(value):
            raise BadInput(f"{row.place}: {name} {value!r} is no {what}; correct that line")
    if not text.strip():
        raise BadInput(f"{row.place}: {names[1]!r} is empty; correct that line, or leave it out")
    files, functions, lines = _right(row, ours)
    if not files:
        raise BadInput(f"{row.place}: nothing is edited that was there before; leave that line out")
    return Issue(id, text, repository, revision, files, functions, lines)


def _right(row: Row, ours: bool) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, tuple[int, ...]] | None]:
    """Right files, right functions, edited lines."""
    if ours:
        return tuple(dict.fromkeys(row.texts("relevant"))), (), None
    if names := row.texts("edit_functions"):
        functions = [name.rpartition(":") for name in names]
        if bad := next(
            (name for name, (path, _, own) in zip(names, functions, strict=True) if not path or not own), ""
        ):
            raise BadInput(f"{row.place}: {bad!r} is no path/to/file.py:Class.method; correct that line")
        files = dict.fromkeys(path for path, _, _ in functions)
        return tuple(files), tuple(dict.fromkeys(f"{path}{OF_FILE}{own}" for path, _, own in functions)), None
    try:
        lines = edited_files(row.text("patch"))
    except ValueError as error:
        raise BadInput(f"{row.place}: not a patch of git ({error}); correct that line") from None
    return tuple(lines), (), lines


# Patches.


def edited_files(patch: str) -> dict[str, tuple[int, ...]]:
    r"""Path of each file that is edited, renamed or removed -> its edited lines; new files and copies are left out.

    Lines are numbered from 1 as before the patch: those removed, and the line before what is inserted.
    Raises ValueError for a path whose quotes are wrong.

    >>> edited_files("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -2,3 +2,3 @@\n a\n-b\n+c\n d\n+e\n")
    {'x': (3, 4)}
    """
    edited: dict[str, tuple[int, ...]] = {}
    for section in _SECTION.split(patch):
        lines = section.split("\n")
        head = list(takewhile(lambda line: not line.startswith("@@ "), lines))
        if path := _old_path(head):
            edited[path] = tuple(dict.fromkeys(_edited_lines(lines[len(head) :])))
    return edited


def _old_path(head: Sequence[str]) -> str | None:
    """The path before the patch; None where there was none."""
    if not head[0].startswith("diff --git ") or any(line.startswith(("new file mode ", "copy from ")) for line in head):
        return None
    for line in head:
        if line.startswith("rename from "):
            return _unquote(line.removeprefix("rename from "))
        if line.startswith("--- "):
            path = _unquote(line.removeprefix("--- ").removesuffix("\t"))
            return None if path == "/dev/null" else path.removeprefix("a/")
    both = head[0].removeprefix("diff --git ")  # nothing else says it of binary files and changed modes
    return _unquote(both[: len(both) // 2]).removeprefix("a/")


def _unquote(path: str) -> str:
    """A path as it is; git puts those with unusual characters in quotes, bytes as octal numbers."""
    if not path.startswith('"'):
        return path
    return path[1:-1].encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")


def _edited_lines(hunks: Sequence[str]) -> Iterator[int]:
    old = 0
    for line in hunks:
        if hunk := _HUNK.match(line):
            old = int(hunk[1]) + (hunk[2] == "0")  # of no lines: the one after which lines are inserted
        elif line.startswith("-"):
            yield old
            old += 1
        elif line.startswith("+"):
            yield old - 1
        elif not line.startswith("\\"):
            old += 1
