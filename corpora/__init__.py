"""Data sets in one shape; the data itself is not in git."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncs.errors import BadInput

if TYPE_CHECKING:
    from corpora.corpus import Corpus

CORPORA: Mapping[str, str] = {
    "cosqa": "corpora.cosqa:read",
    "nlp2api": "corpora.nlp2api:read",
    "codesearchnet": "corpora.codesearchnet.challenge:challenges",
    "coir": "corpora.coir:read_all",
    "repo_search": "corpora.repo_search:corpora",
}
"""name -> module:function, which takes the data folder and returns a Corpus or a list of them."""
_DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_folder(folder_option: Path | None = None) -> Path:
    """The folder of the data sets: `folder_option`, else $NCS_DATA, else ../shared/data beside the project.

    Raises BadInput where that is no folder.
    """
    folder = folder_option or Path(os.environ.get("NCS_DATA") or _DEFAULT_FOLDER)
    if not folder.is_dir():
        raise BadInput(f"there is no data folder {folder}; name the one with the data sets with --data or NCS_DATA")
    return folder


def load_corpora(name: str, data: Path | None = None) -> list[Corpus]:
    """The corpora of a name (one, or one per language, task or repository), or of a path to BEIR folders.

    Raises BadInput, listing the known names, for anything else.
    """
    if beir_folders := [
        path.parent
        for path in (Path(name) / "corpus.jsonl", *sorted(Path(name).glob("*/corpus.jsonl")))
        if path.is_file()
    ]:
        from corpora.corpus import read_beir

        return [read_beir(folder) for folder in beir_folders]
    if any(Path(name).glob("*/final/jsonl")):
        from corpora.codesearchnet.pairs import corpora_of

        return corpora_of(Path(name))
    if name not in CORPORA:
        raise BadInput(f"no corpus or BEIR folder called {name!r}; choose from {', '.join(CORPORA)}")
    module, _, function = CORPORA[name].partition(":")
    read: Any = getattr(importlib.import_module(module), function)
    loaded: Corpus | list[Corpus] = read(data_folder(data))
    return loaded if isinstance(loaded, list) else [loaded]
