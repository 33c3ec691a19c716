"""What an index learnt of its documents, for a build that is to rank as it does: counts, means, and calibration.

Word vectors alone are not enough for that: the counts behind BM25 and tf-idf and the mean of the document vectors are
those of the documents that an index was built of, whatever came since (ncs.build.delta).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.storage.postings import Postings
from ncs.storage.manifest import read_manifest
from ncs.search.ncs import MEAN, NcsRanker
from ncs.storage.document_facts import FILE as STRUCTURE
from ncs.types import NCS_FIELDS
from ncs.text.vocabulary import Vocabulary, numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.search.rankers import Ranker
    from ncs.storage.document_facts import Structure
    from ncs.storage.words import WordTable

CALIBRATION = "calibration.json"
PART = 1 << 14
"""Documents whose words are looked at at once."""


class Kept:
    """Of the index in a folder."""

    def __init__(self, folder: Path) -> None:
        """Raises what `read_manifest` raises."""
        self._manifest = read_manifest(folder)
        self._data = folder / self._manifest.generation

    def postings(self) -> Postings:
        """Whose counts stand behind BM25."""
        return Postings.of_folder(self._data / "bm25")

    def structure(self, found: Structure) -> Structure:
        """With the languages that a question need not name."""
        languages = json.loads((self._data / STRUCTURE).read_bytes())["languages"]
        return replace(found, languages=tuple(languages))

    def teach(self, rankers: Iterable[Ranker], vocabulary: Vocabulary) -> Iterator[Ranker]:
        """Rankers over document vectors that are made with the same idf and mean."""
        for ranker in rankers:
            if isinstance(ranker, NcsRanker):
                room, numbers = self._data / ranker.name, numbered(Vocabulary.of_folder(self._data), vocabulary)
                idf = np.load(room / "idf.npy", mmap_mode="r", allow_pickle=False)
                mean = np.load(room / MEAN) if ranker.centre else np.zeros(0, np.float32)
                ranker.learnt = taken(idf, numbers), mean
            yield ranker

    def calibrate(self, folder: Path) -> Mapping[str, Any]:
        """Write what calibration found, and give its figures."""
        shutil.copyfile(self._data / CALIBRATION, folder / CALIBRATION)
        return cast("Mapping[str, Any]", self._manifest.counts["calibration"])


def words_held(words: WordTable, embeddings: Embeddings) -> list[int]:
    """How many words of NCS_FIELDS there are, and how many of them have no vector: an update goes on from these."""
    has = np.einsum("ij,ij->i", embeddings.vectors, embeddings.vectors) > 0
    total = without = 0
    for start in range(0, len(words), PART):
        ids, _ = words.select(NCS_FIELDS, start, min(start + PART, len(words)))
        total, without = total + len(ids), without + int(np.count_nonzero(~has[ids]))
    return [total, without]


def taken(array: NDArray[np.float32], numbers: NDArray[np.int32]) -> NDArray[np.float32]:
    """What an array over some words says of others, by their numbers among them; zeros for those that are new."""
    found = np.zeros((len(numbers), *array.shape[1:]), np.float32)
    known = numbers < len(array)
    found[known] = array[numbers[known]]
    return found
