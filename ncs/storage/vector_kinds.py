"""Which kind of index searches vectors, by their number or as asked for; what one says of itself. No faiss here."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from ncs.errors import BadInput, IndexDamaged

Kind = Literal["exact", "pq", "ivf", "hnsw", "rabitq"]
Choice = Literal["auto", "exact", "pq", "ivf", "hnsw", "rabitq"]
EXACT = 300_000
"""Vectors up to which "auto" compares with all of them; measured in DESIGN.md."""
ABOUT = "vectors.json"
WINDOWS = sys.platform == "win32"
"""Where faiss cannot map lists of its fast scan."""


def chosen(choice: str, rows: int) -> Kind:
    """The kind of index for so many vectors; BadInput for a choice there is not.

    >>> chosen("auto", 300_000), chosen("auto", 300_001), chosen("hnsw", 10)
    ('exact', 'pq', 'hnsw')
    """
    if choice not in get_args(Choice):
        raise BadInput(f"vectors are searched by {', '.join(get_args(Choice))}, not {choice!r}")
    if choice == "auto":
        return "exact" if rows <= EXACT else "pq"
    return cast(Kind, choice)


@dataclass(frozen=True, slots=True)
class About:
    """What a folder says of its vectors, `vectors.json`.

    lists: how many there are (a graph is one); effort: how many of them are searched, or candidates that the search in
    a graph keeps; recall: what that found of the ten best of the questions it was measured with, -1 without any;
    bytes: of the file, which is not opened where it has others.
    """

    kind: Kind
    dim: int
    rows: int
    lists: int
    effort: int
    recall: float = -1.0
    bytes: int = 0


def read_about(folder: Path) -> About | None:
    """What a folder says of its vectors; None where exact search needs no words. Raises IndexDamaged."""
    path = folder / ABOUT
    if not path.exists():
        return None
    try:
        return About(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise IndexDamaged(f"cannot read {path} ({error}); build the index again") from error
