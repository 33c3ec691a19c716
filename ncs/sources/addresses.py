"""Roots behind a protocol (s3://bucket/repos), which workers of a cluster read; as paths they lose a slash."""

from __future__ import annotations

import re
from pathlib import Path

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")


def is_address(root: str | Path) -> bool:
    """Whether this names something behind a protocol; a path has folded its two slashes into one.

    >>> is_address(Path("s3://bucket/repos")), is_address("/data/repos"), is_address(Path("a:/b"))
    (True, False, False)
    """
    return _ADDRESS.match(str(root)) is not None


def address_of(root: str | Path) -> str:
    """The address that a path was made of.

    >>> address_of(Path("s3://bucket/repos"))
    's3://bucket/repos'
    >>> address_of(Path("file:///data/repos"))
    'file:///data/repos'
    """
    text = str(root)
    protocol, _, rest = text.partition(":")
    return f"{protocol}:///{rest.lstrip('/')}" if protocol in ("file", "local") else f"{protocol}://{rest.lstrip('/')}"
