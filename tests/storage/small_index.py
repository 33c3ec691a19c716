"""Small index folders whose files all say one text, for tests of snapshots and commits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import numpy as np

from ncs.storage.commit import IndexWriter, open_writer
from ncs.storage.snapshot import SEGMENTS, STATISTICS, Description, Snapshot, open_snapshot

ROWS = 3
UNLOCKED = {"ncs.lock"} if os.name == "nt" else set()
"""A file that is there while it is locked only."""


def write_segment(writer: IndexWriter, text: str) -> Path:
    """A segment of ROWS documents, each from a file of its own."""
    segment = writer.new_folder(SEGMENTS)
    for name in ("bm25", "files"):
        (segment / name).mkdir()
    (segment / "bm25" / "rows.npy").write_text(text * 10)
    (segment / "documents.sqlite").write_text(text)
    np.save(segment / "files" / "rows.npy", np.arange(ROWS + 1))
    return segment


def build(folder: Path, text: str = "one", config: Mapping[str, object] | None = None) -> Description:
    """Commit one segment and its statistics."""
    with open_writer(folder, anew=True) as writer:
        segment = write_segment(writer, text)
        statistics = writer.new_folder(STATISTICS, segment.name)
        (statistics / "text").write_text(text)
        return writer.commit(
            [(segment, ROWS)],
            statistics,
            config=config or {"texts": [text]},
            counts={"documents": ROWS},
            notes=("a note",),
            versions={"ncs": "1"},
        )


def update(folder: Path, text: str) -> Description:
    """Commit another segment, and a tombstone for the first document."""
    with open_writer(folder) as writer, open_snapshot(folder, lambda snapshot: snapshot) as old:
        return writer.commit(
            [*((segment.path, ROWS) for segment in old.segments), (write_segment(writer, text), ROWS)],
            old.statistics,
            tombstones=np.array([[int(old.segments[0].name), 0]]),
            config={"texts": [*old.description.config["texts"], text]},  # type: ignore[misc]
            counts={"documents": len(old) + ROWS - 1},
            versions={},
        )


def fail(folder: Path, error: type[BaseException] = ZeroDivisionError) -> None:
    """A build that ends with an error."""
    with open_writer(folder) as writer:
        write_segment(writer, "new")
        raise error


def commit_until_enough(folder: Path) -> str:
    """Builds and updates in turn, until somebody has seen enough; the last text."""
    for number in count():
        build(folder / "idx", str(number))
        update(folder / "idx", f"{number} updated")
        if number >= 50 and (folder / "enough").exists():
            break
    return f"{number} updated"


def text_of(snapshot: Snapshot) -> str:
    """What the files of the last segment say."""
    texts = [(segment.path / "documents.sqlite").read_text() for segment in snapshot.segments]
    assert (snapshot.statistics / "text").read_text() == texts[0]
    return texts[-1]


def consistent_text_of(snapshot: Snapshot) -> str:
    """`text_of`; AssertionError where files of two snapshots are mixed."""
    texts: list[str] = snapshot.description.config["texts"]  # type: ignore[assignment]
    for segment, text in zip(snapshot.segments, texts, strict=True):
        assert (segment.path / "documents.sqlite").read_text() == text
        assert (segment.path / "bm25" / "rows.npy").read_text() == text * 10
    assert snapshot.description.counts["documents"] == snapshot.documents
    return text_of(snapshot)


def names(folder: Path) -> list[str]:
    """All files below a folder, and empty folders."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() or not any(path.iterdir()))
    return [name for path in paths if (name := path.relative_to(folder).as_posix()) not in UNLOCKED]


def files(number: int) -> list[str]:
    """The names of an index of one segment."""
    in_segment = ("bm25/rows.npy", "documents.sqlite", "files/rows.npy")
    own = [f"segments/{number:06}/{name}" for name in in_segment]
    all_files = {".gitignore", "ncs.lock", "snapshot.json", *own, f"statistics/{number:06}/text"}
    return sorted(all_files - UNLOCKED)
