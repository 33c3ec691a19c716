"""ncs: search code by what it does, learned from the code it searches."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncs.index import Index as Index
    from ncs.types import Document as Document
    from ncs.types import Hit as Hit
    from ncs.types import Query as Query

__version__ = "0.1.0"
__all__ = ["Document", "Hit", "Index", "Query", "__version__"]


def __getattr__(name: str) -> Any:
    """Import on first use: `import ncs` alone costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'ncs' has no attribute {name!r}")
    return getattr(import_module("ncs.index" if name == "Index" else "ncs.types"), name)
