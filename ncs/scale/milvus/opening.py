"""An index as it is asked: its folder's own, or one whose candidates a store finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ncs.index import Index
from ncs.scale.milvus.index import MilvusIndex
from ncs.scale.milvus.target import TIMEOUT, Target
from ncs.storage.folder import open_folder


def open_index(folder: Path, store: str | None = None, *, verify: bool = False, seconds: float = TIMEOUT) -> Index:
    """It, open; store: an address as people type it; seconds: how long a question may try to reach it.

    Raises what Index.load raises, and for a store what `Target.of` and `MilvusIndex.open` raise.
    """
    if not store:
        return Index.load(folder, verify=verify)
    if verify:
        open_folder(folder, verify=True)
    return MilvusIndex.open(folder, replace(Target.of(store), seconds=min(seconds, TIMEOUT)))
