"""Paths of hits that open from the working directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.search.locate_source import locator_of

if TYPE_CHECKING:
    from ncs.answer import Answer
    from ncs.storage.snapshot import Snapshot

LISTS = ("copies", "near_copies")


def from_here(path: Path) -> str:
    """An absolute path relative to the working directory; as it is where they have only the root in common."""
    here = Path.cwd()
    return str(path) if path.parts[1:2] != here.parts[1:2] else os.path.relpath(path, here)


def with_files(answer: Answer, snapshot: Snapshot, hits: str = "hits") -> Answer:
    """The answer with `file` beside each `path` of its hits: the file from here, None where it is not on disk.

    hits: the key of the hits.
    """
    locator = locator_of(snapshot)

    def located(place: Mapping[str, Any]) -> dict[str, Any]:
        file = locator.path_of(place["repository"], place["path"])
        with_file: dict[str, Any] = {}
        for key, value in place.items():
            with_file[key] = [located(each) for each in value] if key in LISTS else value
            if key == "path":
                with_file["file"] = from_here(file) if file else None
        return with_file

    return {**answer, hits: [located(hit) for hit in answer[hits]]}
