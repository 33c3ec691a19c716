"""The ranker that another one is put around."""

from __future__ import annotations

from pathlib import Path

from ncs.errors import BadInput
from ncs.search.rankers import Ranker, create_ranker

PARTS = ("bm25", "ncs", "ncs_centred")
"""What every build fits: words are all they need, and their files are there."""


def create_part(name: str) -> Ranker:
    """One of PARTS; BadInput names them."""
    if name not in PARTS:
        raise BadInput(f"{name!r} cannot be a part of another ranker; these can: {', '.join(PARTS)}")
    return create_ranker(name)


def save_part(part: Ranker, folder: Path) -> None:
    """Save it under its own name, unless the build did."""
    if not (folder / part.name).is_dir():
        part.save(folder)
