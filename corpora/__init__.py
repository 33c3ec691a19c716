"""Data sets in one shape; the data itself is not in git."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ncs.errors import BadInput

if TYPE_CHECKING:
    from corpora.corpus import Corpus

CORPORA: Mapping[str, str] = {
    "cosqa": "corpora.cosqa:read",
    "nlp2api": "corpora.nlp2api:read",
}
"""name -> module:function, which takes the data folder and gives the Corpus."""
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_folder(given: Path | None = None) -> Path:
    """Where the data sets lie: the folder given, else $NCS_DATA, else ../shared/data beside the project.

    Raises BadInput where that is no folder.
    """
    folder = given or (Path(os.environ["NCS_DATA"]) if os.environ.get("NCS_DATA") else _BESIDE)
    if not folder.is_dir():
        raise BadInput(f"there is no data folder {folder}; name the one with the data sets with --data or NCS_DATA")
    return folder


def load_corpus(name: str, data: Path | None = None) -> Corpus:
    """A corpus by name from the data folder, or any BEIR folder by its path.

    Raises BadInput, naming the known ones, for neither.
    """
    if (Path(name) / "corpus.jsonl").is_file():
        from corpora.corpus import read_beir

        return read_beir(Path(name))
    if name not in CORPORA:
        raise BadInput(f"no corpus or BEIR folder called {name!r}; there are: {', '.join(CORPORA)}")
    module, _, function = CORPORA[name].partition(":")
    read: Any = getattr(importlib.import_module(module), function)
    return cast("Corpus", read(data_folder(data)))
