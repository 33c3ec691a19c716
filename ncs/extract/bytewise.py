"""The bytes of a file: made UTF-8, blanked in places, and what stands beside a place."""

from __future__ import annotations

import re
from collections.abc import Sequence

Span = tuple[int, int]
"""A byte range: start, end."""

_SPACE = re.compile(rb"\s*")


def as_utf8(source: bytes) -> bytes:
    """UTF-16 and Latin-1 made UTF-8, no byte order mark, and Unix line ends, so that equal code is equal.

    >>> as_utf8("größe".encode("latin-1")).decode()
    'größe'
    """
    if source[:3] == b"\xef\xbb\xbf":
        source = source[3:]
    elif source[:2] in (b"\xff\xfe", b"\xfe\xff"):
        source = source.decode("utf-16", "replace").encode()
    elif not source.isascii():
        text = source.decode("utf-8", "replace")
        if "\ufffd" in text:  # where nothing beyond ASCII is UTF-8, it is Latin-1
            source = (source.decode("latin-1") if text.replace("\ufffd", "").isascii() else text).encode()
    return source.replace(b"\r\n", b"\n") if b"\r" in source else source


def blanked(source: bytes | bytearray, spans: Sequence[Span], blank: bytes = b"\0") -> bytearray:
    """The source with NULs in place of some ranges, so that offsets stay."""
    copy = bytearray(source)
    for start, end in spans:
        copy[start:end] = blank * (end - start)
    return copy


def after_space(source: bytes, at: int) -> int:
    """Where the next thing starts."""
    match = _SPACE.match(source, at)
    return match.end() if match else at
