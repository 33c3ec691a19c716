"""What a filter leaves, said as Milvus's filters can say it: at least these documents, and not many others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ncs.scale.milvus.collection import within
from ncs.scale.milvus.keys import Keys

if TYPE_CHECKING:
    from ncs.storage.documents import Store
    from ncs.storage.file_roles import Places
    from ncs.types import Mask

ALL = "key >= 0"
LISTED, NAMED = 5_000, 200
"""Single documents, and repositories, that a filter may name."""


class Narrowing:
    """Of the documents of a folder, by what is told of each in the store."""

    def __init__(self, keys: Keys, store: Store, places: Places) -> None:
        self._keys, self._store, self._places = keys, store, places

    def said(self, allowed: Mask | None) -> str:
        """An expression that is true of all rows that are allowed; who asks passes over others that it is true of."""
        if allowed is None:
            return ALL
        rows = np.flatnonzero(allowed)
        if len(rows) <= LISTED:
            return f"key in {self._keys.of(rows).tolist()}"
        said = [ALL]
        for column, known in (("language", "languages"), ("kind", "kinds")):
            here = self._store.tallied(column, allowed)
            if len(here) < len(self._store.counts[known]):
                said.append(f"{column} in {_listed(column, here)}")
        files, at = np.unique(self._places.file[rows], return_index=True)
        owners, first = np.unique(self._places.repository[files], return_index=True)
        if len(owners) <= NAMED and len(owners) < len(self._store.counts["repositories"]):
            some = self._store.locations(rows[at[first]].tolist())
            said.append(f"repository in {_listed('repository', (each.repository for each in some))}")
        return " and ".join(said)


def _listed(field: str, texts: Iterable[str]) -> str:
    """As a collection holds them, in the words of Milvus's filters."""
    return json.dumps(sorted(within(field, text) for text in texts), ensure_ascii=False)
