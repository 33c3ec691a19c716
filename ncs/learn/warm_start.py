"""Words of other code on this machine, which word vectors learn from beside those of the documents.

The documents stay what they were: nothing of the other code can be found.
"""

from __future__ import annotations

import sysconfig
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.learn.embeddings import Embeddings, FastTextConfig, LsaConfig
from ncs.progress import Track, silent
from ncs.storage.folder import open_folder
from ncs.storage.manifest import NAME
from ncs.storage.words import WordTable
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

STDLIB = "stdlib"
"""The standard library of the running Python."""
LEFT_OUT = frozenset({"site-packages", "dist-packages", "test", "idlelib", "lib2to3", "__pycache__"})
"""Of the standard library's folder: what is installed, tests and programs."""


def other_words(source: str, *, workers: int | None = None, track: Track = silent) -> WordTable:
    """The words of STDLIB, of an index, or of a folder, repository or archive that is read as a build reads it.

    Raises BadInput where nothing is there, or no function.
    """
    place = Path(source)
    if source != STDLIB and not place.exists():
        raise BadInput(f"no code to learn from at {source}; name a folder, an index, or {STDLIB}")
    if source != STDLIB and (place / NAME).is_file():
        return WordTable.load(open_folder(place)[0])
    found = _read(_standard_library() if source == STDLIB else [place], workers, track)
    if not len(found):
        raise BadInput(f"no function found in {source} to learn from; name other code with --warm-start")
    return found


def train_beside(
    words: WordTable,
    source: str,
    config: FastTextConfig | LsaConfig,
    *,
    track: Track = silent,
    folder: Path | None = None,
) -> tuple[Embeddings, dict[str, object]]:
    """Vectors of the words, learnt from them and from other code together; and how much that was, for the manifest."""
    other = other_words(source, track=track)
    table, own = joined(words, other)
    learnt = Embeddings.train(table, config, track=track, folder=folder)
    about = {"source": source, "documents": len(other), "words": len(other.ids)}
    return replace(learnt, vectors=learnt.vectors[own]), about


def _standard_library() -> list[Path]:
    room = Path(sysconfig.get_paths()["stdlib"])
    entries = sorted(room.iterdir()) if room.is_dir() else []
    return [path for path in entries if path.name not in LEFT_OUT and (path.is_dir() or path.suffix == ".py")]


def _read(roots: list[Path], workers: int | None, track: Track) -> WordTable:
    from ncs.build.ingest import read
    from ncs.config import BuildConfig
    from ncs.extract.readers import without_texts
    from ncs.sources import walk

    with tempfile.TemporaryDirectory(prefix="ncs-warm-start-") as room:
        files = track(walk(roots, wanted=without_texts), "reading other code", unit="files")
        return read(files, Path(room), BuildConfig(store_code=False), workers).words


def joined(own: WordTable, other: WordTable) -> tuple[WordTable, NDArray[np.int32]]:
    """The documents of both under one vocabulary; and where in it each word of the first one stands."""
    known, more = list(own.vocabulary), list(other.vocabulary)
    vocabulary = Vocabulary.of({*known, *more})
    number = {word: id for id, word in enumerate(vocabulary)}
    here = np.fromiter((number[word] for word in known), np.int32, len(known))
    there = np.fromiter((number[word] for word in more), np.int32, len(more))
    ids = np.concatenate([here[own.ids], there[other.ids]])
    offsets = np.concatenate([own.offsets, other.offsets[1:] + own.offsets[-1]])
    return WordTable(vocabulary, ids, offsets), here
