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
    "codesearchnet": "corpora.codesearchnet:challenges",
    "coir": "corpora.coir:read_there",
    "repo_search": "corpora.repo_search:corpora",
}
"""name -> module:function, which takes the data folder and gives the Corpus, or a list of several."""
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_folder(given: Path | None = None) -> Path:
    """Where the data sets lie: the folder given, else $NCS_DATA, else ../shared/data beside the project.

    Raises BadInput where that is no folder.
    """
    folder = given or (Path(os.environ["NCS_DATA"]) if os.environ.get("NCS_DATA") else _BESIDE)
    if not folder.is_dir():
        raise BadInput(f"there is no data folder {folder}; name the one with the data sets with --data or NCS_DATA")
    return folder


def load_corpora(name: str, data: Path | None = None) -> list[Corpus]:
    """The corpora of a name (one, or one a language, task or repository), or by its path a BEIR folder, or a folder of
    such.

    Raises BadInput, naming the known ones, for neither.
    """
    if beir := [
        path.parent
        for path in (Path(name) / "corpus.jsonl", *sorted(Path(name).glob("*/corpus.jsonl")))
        if path.is_file()
    ]:
        from corpora.corpus import read_beir

        return [read_beir(folder) for folder in beir]
    if any(Path(name).glob("*/final/jsonl")):
        from corpora.codesearchnet.pairs import corpora_of

        return corpora_of(Path(name))
    if name not in CORPORA:
        raise BadInput(f"no corpus or BEIR folder called {name!r}; there are: {', '.join(CORPORA)}")
    module, _, function = CORPORA[name].partition(":")
    read: Any = getattr(importlib.import_module(module), function)
    loaded: Corpus | list[Corpus] = read(data_folder(data))
    return loaded if isinstance(loaded, list) else [loaded]


def load_corpus(name: str, data: Path | None = None) -> Corpus:
    """The corpus of a name that stands for one; BadInput where it is unknown or stands for several."""
    corpora = load_corpora(name, data)
    if len(corpora) > 1:
        raise BadInput(
            f"{name!r} is {len(corpora)} corpora ({', '.join(each.name for each in corpora)}); take one by one"
        )
    return corpora[0]
