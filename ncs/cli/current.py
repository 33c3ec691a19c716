"""The index of a query: found or built, and updated first if few files have changed."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.cli import options
from ncs.console import count, one_line, tracker
from ncs.errors import BROKEN, IndexNotFound, NcsError, SourceError
from ncs.messages import BEHIND, OTHER_TREE
from ncs.storage.freshness import known_changes, state_of
from ncs.storage.snapshot import DEFAULT_NAME, SNAPSHOT, work_tree

if TYPE_CHECKING:
    from ncs.index import Index
    from ncs.storage.snapshot import Snapshot


def open_current(
    index: Path | None, store: str | None = None, *, update: bool = True, build: bool = False, quiet: bool
) -> Index:
    """The index, open, with cautions if it is behind or of another work tree. update: first update it with small
    changes; build: build a missing one. Raises what `options.open_index` and a build raise."""
    folder = _folder(index, build=build, quiet=quiet)
    opened = options.open_index(folder, store)
    behind = 0 if store or not update else _behind(opened.snapshot)
    if behind is None:
        opened.close()
        opened = options.open_index(folder, store)
    elif behind:
        opened.cautions.append(BEHIND.format(changed=f"{count(behind, 'file')} changed", remedy="run ncs update"))
    if other := _other_work_tree(opened.snapshot):
        opened.cautions.append(OTHER_TREE.format(tree=other))
    return opened


def _behind(snapshot: Snapshot) -> int | None:
    """The number of files that the index is behind, 0 if that is unknown; None if it was updated just now."""
    try:
        state = state_of(snapshot)
        if not state:
            return 0
        if (known := known_changes(snapshot, state)) is not None:
            return known
        from ncs.build.update import catch_up  # not where nothing has changed

        return catch_up(snapshot, state)
    except (NcsError, OSError, RuntimeError, *BROKEN):
        return 0


def _folder(index: Path | None, *, build: bool, quiet: bool) -> Path:
    """The folder of the index, which is built if there is none and the user agrees."""
    try:
        folder = options.index_folder(index)
        if not build or (folder / SNAPSHOT).exists():
            return folder
        root = work_tree(Path.cwd())
    except IndexNotFound as error:
        root = work_tree(Path.cwd())
        if not (build or (_is_project(root) and _confirm(f"no index here; build one for {root} (y/N)? "))):
            raise IndexNotFound(f"{error}, or with the query: ncs query --build") from None
        folder = root / DEFAULT_NAME
    from ncs.index import Index
    from ncs.storage.trust import check_place

    if index is None:
        check_place(folder)
    Index.build(root, folder, track=tracker(quiet)).close()
    return folder


def _is_project(root: Path) -> bool:
    """Whether a folder is no home or drive, which a build refuses."""
    from ncs.sources.roots import check_roots

    with suppress(SourceError):
        return bool(check_roots([root], force=False))
    return False


def _confirm(question: str) -> bool:
    """Whether the user at the terminal answers yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(one_line(question))
    sys.stderr.flush()
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer:  # ctrl-c and ctrl-d leave the cursor behind the question
            sys.stderr.write("\n")
    return answer.strip().lower() in ("y", "yes")


def _may_share(folder: Path) -> bool:
    """Whether the git directory of a work tree lies elsewhere, so that several may share it."""
    return (folder / ".git").is_file() or (folder / ".git").is_symlink()


def _other_work_tree(snapshot: Snapshot) -> Path | None:
    """The work tree of an index, if it is another one of the working directory's repository."""
    here, roots = work_tree(Path.cwd()), snapshot.roots
    tops = {work_tree(root) for root in roots}
    if not roots or here in tops or not (here / ".git").exists() or not any(map(_may_share, (here, *tops))):
        return None
    from ncs.sources.repositories import common_directory

    common = common_directory(here)
    return next((top for top in tops if common is not None and common_directory(top) == common), None)
