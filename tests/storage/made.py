"""A small index folder whose files all say one text, for tests of snapshots and commits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ncs.storage.commit import open_writer
from ncs.storage.snapshot import SEGMENTS, STATISTICS, Description, Snapshot


def build(folder: Path, text: str = "one", config: Mapping[str, object] | None = None) -> Description:
    """Commit one segment and its statistics."""
    with open_writer(folder) as writer:
        segment = writer.new_folder(SEGMENTS)
        statistics = writer.new_folder(STATISTICS, segment.name)
        (segment / "bm25").mkdir()
        (segment / "bm25" / "rows.npy").write_text(text * 10)
        (segment / "documents.sqlite").write_text(text)
        (statistics / "text").write_text(text)
        return writer.commit(
            [(segment, 3)],
            statistics,
            config=config or {"text": text},
            counts={"documents": 3},
            notes=("a note",),
            versions={"ncs": "1"},
        )


def fail(folder: Path, error: type[BaseException] = ZeroDivisionError) -> None:
    """A build that ends with an error."""
    with open_writer(folder) as writer:
        (writer.new_folder(SEGMENTS) / "documents.sqlite").write_text("new")
        raise error


def text_of(snapshot: Snapshot) -> str:
    """What all files of a snapshot say."""
    texts = {(snapshot.statistics / "text").read_text()}
    texts |= {(segment.path / "documents.sqlite").read_text() for segment in snapshot.segments}
    (text,) = texts
    return text


def names(folder: Path) -> list[str]:
    """All files below a folder, and empty folders."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() or not any(path.iterdir()))
    return [path.relative_to(folder).as_posix() for path in paths]


def files(number: int) -> list[str]:
    """The names of an index of one segment."""
    segment = f"segments/{number:06}"
    own = [f"{segment}/bm25/rows.npy", f"{segment}/documents.sqlite", f"statistics/{number:06}/text"]
    return sorted([".gitignore", "ncs.lock", "snapshot.json", *own])


def dead(*pairs: tuple[int, int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Tombstones."""
    return np.array(pairs, np.int64).reshape(-1, 2)
