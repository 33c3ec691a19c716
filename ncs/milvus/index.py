"""An index whose candidates come from Milvus; asked, explained and shown as any other."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.embeddings import Embeddings
from ncs.encoder import TfidfEncoder
from ncs.errors import IndexNotFound, IndexVersion
from ncs.folder import Manifest, reading
from ncs.index import Index
from ncs.lexical import Postings
from ncs.milvus.collection import DENSE, FORMAT, LEXICAL, collection_of
from ncs.milvus.publish import answering, is_whole
from ncs.milvus.served import MilvusPostings, MilvusVectors, Served
from ncs.milvus.target import TIMEOUT, Target, connected, remedy, told
from ncs.rankers import DEFAULT_RANKER, RANKERS, Ranker
from ncs.rankers.bm25 import Bm25Ranker
from ncs.rankers.ncs import NcsRanker
from ncs.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ncs.vectors import VectorIndex


class MilvusIndex(Index):
    """`Index`, with the postings and the vectors of its collection; the rankers over others read the folder's."""

    def __init__(self, target: Target, folder: Path, data: Path, manifest: Manifest) -> None:
        super().__init__(folder, data, manifest)
        self._connection = ExitStack()
        try:
            client = self._connection.enter_context(connected(target, existing=True))
            with told(target):
                self._served = Served(client, target, _collection(client, target, manifest, len(self)))
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, folder: Path | str, target: Target) -> MilvusIndex:
        """Raises what Index.load and `connected` raise, and IndexVersion where another index is in the store."""
        return reading(Path(folder), partial(cls, target, Path(folder)))

    def __enter__(self) -> MilvusIndex:
        return self

    def close(self) -> None:
        """Of the folder and of the store."""
        self._connection.close()
        super().close()

    def ranker(self, name: str = DEFAULT_RANKER) -> Ranker:
        """As in Index; bm25 and ncs_centred, and what is made of them, ask the store."""
        if name not in self._rankers and name in (LEXICAL, DENSE):
            kind = _Bm25(self._served) if name == LEXICAL else _Ncs(self._served, len(self))
            kind.load(self.data)
            self._rankers[name] = kind
        return super().ranker(name)


def _collection(client: Any, target: Target, manifest: Manifest, documents: int) -> str:
    """The collection that answers; IndexNotFound or IndexVersion where it is not this index's, whole."""
    name = answering(client, target.alias)
    if name is None:
        raise IndexNotFound(f"{target.shown} has no collection {target.alias}; {remedy(target)}")
    client.load_collection(name, timeout=TIMEOUT)
    told_of = is_whole(client, name)
    if told_of is None or told_of.get("format") != FORMAT:
        raise IndexVersion(f"{target.shown} holds a collection of another format; {remedy(target)}")
    if name != collection_of(target, manifest) or told_of["documents"] != documents:
        raise IndexVersion(f"{target.shown} holds another build than this folder; {remedy(target)}")
    return name


class _Bm25(Bm25Ranker):
    def __init__(self, served: Served) -> None:
        super().__init__(LEXICAL, **cast(Any, RANKERS[LEXICAL][1]))
        self._served = served

    def load(self, folder: Path) -> None:
        self._postings = MilvusPostings.over(Postings.load(folder / LEXICAL), self._served)


class _Ncs(NcsRanker):
    def __init__(self, served: Served, documents: int) -> None:
        super().__init__(DENSE, **cast(Any, RANKERS[DENSE][1]))
        self._served, self._documents = served, documents

    def load(self, folder: Path) -> None:
        """The encoder of questions is the folder's."""
        embeddings = Embeddings.load(folder)
        idf = np.load(folder / DENSE / "idf.npy", mmap_mode="r", allow_pickle=False)
        vocabulary = Vocabulary.load(folder)
        self._encoder = TfidfEncoder(vocabulary, embeddings.vectors, idf, self.query_weights, self.stop_words)
        vectors = MilvusVectors(self._served, self._documents, embeddings.vectors.shape[1])
        self._index = cast("VectorIndex", vectors)
