"""Places as links that terminals open (OSC 8): file:// with the line, where the file is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from socket import gethostname
from typing import Any, Protocol


class Linked(Protocol):
    """What knows the link of a hit."""

    def of(self, hit: Mapping[str, Any]) -> str | None:
        """The address; None where nothing can be opened."""


class Links:
    """Links to files of this machine; `find` says where the file of a hit is."""

    def __init__(self, find: Callable[[Mapping[str, Any]], Path | None]) -> None:
        self._find = find
        self._host = gethostname()

    def of(self, hit: Mapping[str, Any]) -> str | None:
        """file://host/path#line, as terminals with a setting for editors read it."""
        path = self._find(hit)
        return f"{path.as_uri().replace('file://', f'file://{self._host}', 1)}#{hit['start_line']}" if path else None


class NoLinks:
    """Where nobody can click."""

    def of(self, hit: Mapping[str, Any]) -> None:
        """None."""
