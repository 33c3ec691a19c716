"""Random edits of source files that can be undone: lines changed, files renamed, copied, deleted."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

KINDS = ("line", "function", "rename", "copy", "delete")
SHARES = (6, 2, 1, 1, 1)
"""How often each of KINDS is drawn."""

Undo = Callable[[], None]


@contextmanager
def edited(files: Sequence[Path], seed: int = 0) -> Iterator[dict[str, int]]:
    """Edit each file once at random, and undo all edits at the end, times included.

    Yields the number of edits of each kind.
    """
    rng, undo = random.Random(seed), []  # noqa: S311
    counts = dict.fromkeys(KINDS, 0)
    try:
        for path in files:
            kind = rng.choices(KINDS, SHARES)[0]
            undo.append(_edit(path, kind, rng))
            counts[kind] += 1
        yield counts
    finally:
        for back in reversed(undo):
            back()


def _edit(path: Path, kind: str, rng: random.Random) -> Undo:
    content, status = path.read_bytes(), path.stat()

    def restore() -> None:
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    if kind in ("rename", "copy"):
        new_path = path.with_name(f"{path.stem}Moved{rng.randrange(10**9)}{path.suffix}")
        if kind == "copy":
            new_path.write_bytes(content)
            return new_path.unlink
        path.rename(new_path)

        def back() -> None:
            new_path.unlink()
            restore()

        return back
    if kind == "delete":
        path.unlink()
        return restore
    lines = content.splitlines(keepends=True)
    if kind == "line" and lines:
        line = rng.randrange(len(lines))
        lines[line] = lines[line].replace(b"get", b"fetch").replace(b"new", b"fresh") + b"\n"
    else:  # what it holds stands in it twice
        lines += [b"\n", *lines]
    path.write_bytes(b"".join(lines))
    return restore
