"""Lists of packed codes in a file, mapped: what faiss's fast scan reads.

faiss writes such lists so that it must read them all to open them (33 bytes a vector). Its OnDiskInvertedLists only
wants to be told where each list's codes and ids begin, which is what this does; their layout stays faiss's: 32 vectors
a block.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import faiss as _faiss
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Sizes = NDArray[np.int64]

faiss: Any = _faiss

BLOCK = 32
"""Vectors that are packed together."""
ID = 8
"""Bytes of an id."""
LISTS = "lists.bin"


def begins(sizes: Sizes, code: int) -> Sizes:
    """Where each list begins, and the end of the last, in bytes; sizes: vectors a list, code: bytes of one.

    >>> begins(np.array([33, 0, 1]), 4).tolist()
    [0, 520, 520, 656]
    """
    return np.concatenate([[0], np.cumsum(_blocks(sizes) * BLOCK * code + sizes * ID)])


def write(lists: Any, path: Path, code: int) -> Sizes:
    """faiss's BlockInvertedLists into a file; returns their sizes."""
    sizes = np.array([lists.list_size(number) for number in range(lists.nlist)], np.int64)
    with path.open("wb") as file:
        for number in np.flatnonzero(sizes).tolist():
            blocks = int(_blocks(sizes[number : number + 1])[0])
            file.write(faiss.rev_swig_ptr(lists.get_codes(number), blocks * BLOCK * code).tobytes())
            file.write(faiss.rev_swig_ptr(lists.get_ids(number), int(sizes[number])).tobytes())
    return sizes


def mapped(path: Path, sizes: Sizes, code: int) -> Any:
    """What `write` wrote, as faiss's lists; raises ValueError for a file of another length, and what faiss raises."""
    places = begins(sizes, code)
    if path.stat().st_size != places[-1]:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, not {places[-1]}")
    lists = faiss.OnDiskInvertedLists()
    lists.nlist, lists.code_size, lists.read_only, lists.prefetch_nthread = len(sizes), code, True, 0
    lists.filename, lists.totsize = str(path), int(places[-1])
    for size, begin, room in zip(sizes.tolist(), places.tolist(), (_blocks(sizes) * BLOCK).tolist(), strict=False):
        entry = faiss.OnDiskOneList()
        entry.size, entry.offset, entry.capacity = size, begin, room
        lists.lists.push_back(entry)
    lists.do_mmap()
    return lists


def _blocks(sizes: Sizes) -> Sizes:
    return -(-sizes // BLOCK)
