"""An index whose candidates come from Milvus; asked, explained and shown as any other."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

from ncs.errors import IndexNotFound, IndexVersion
from ncs.index import Index
from ncs.scale.milvus.about import About
from ncs.scale.milvus.collection import DENSE, LEXICAL, answering, collections
from ncs.scale.milvus.keys import Keys
from ncs.scale.milvus.narrowing import Narrowing
from ncs.scale.milvus.served import MilvusPostings, MilvusVectors, Served
from ncs.scale.milvus.target import TIMEOUT, Target, connected, remedy, told
from ncs.search.bm25 import Bm25Ranker
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import DEFAULT_RANKER, RANKERS, Ranker
from ncs.storage.file_roles import Places
from ncs.storage.folder import Manifest, reading
from ncs.storage.postings import Postings


class MilvusIndex(Index):
    """`Index`, with what its collection finds; the rankers over other than these postings and vectors do without."""

    def __init__(self, target: Target, folder: Path, data: Path, manifest: Manifest) -> None:
        super().__init__(folder, data, manifest)
        self._connection = ExitStack()
        try:
            client, keys = self._connection.enter_context(connected(target, existing=True)), Keys.load(data)
            with told(target):
                name = _collection(client, target, data, keys)
            if keys is None:
                raise another(target)
            self._served = Served(client, target, name, keys, Narrowing(keys, self.store, Places.load(data)))
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, folder: Path | str, target: Target) -> MilvusIndex:
        """Raises what Index.load and `connected` raise, and IndexVersion where the store does not hold this index."""
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
            kind = _Bm25(self._served) if name == LEXICAL else _Ncs(self._served)
            kind.load(self.data)
            self._rankers[name] = kind
        return super().ranker(name)


def _collection(client: Any, target: Target, data: Path, keys: Keys | None) -> str:
    """The collection that holds all documents of this state of an index; IndexNotFound or IndexVersion for none.

    Another than that which answers while it is filled anew, or before the folder's index is replaced.
    """
    now = answering(client, target.alias)
    if now is None:
        raise IndexNotFound(f"{target.shown} has no collection {target.alias}; {remedy(target)}")
    names = collections(client, target.alias)
    for name in names:
        client.load_collection(name, timeout=TIMEOUT)
        about = About.read(client, name)
        if about is not None and keys is not None and about.holds(data, keys):
            return name
    if now not in names or About.read(client, now) is None:
        raise IndexVersion(f"{target.shown} holds a collection of another format; {remedy(target)}")
    raise another(target)


def another(target: Target) -> IndexVersion:
    """What is raised where an index was made or updated without its store."""
    return IndexVersion(f"{target.shown} holds another build than this folder; {remedy(target)}")


class _Bm25(Bm25Ranker):
    def __init__(self, served: Served) -> None:
        super().__init__(LEXICAL, **cast(Any, RANKERS[LEXICAL][1]))
        self._served = served

    def load(self, folder: Path) -> None:
        self._postings = MilvusPostings.over(Postings.load(folder / LEXICAL), self._served)


class _Ncs(NcsRanker):
    def __init__(self, served: Served) -> None:
        super().__init__(DENSE, **cast(Any, RANKERS[DENSE][1]))
        self._served = served

    def load(self, folder: Path) -> None:
        super().load(folder)
        self._index = MilvusVectors(self.index, self._served)
