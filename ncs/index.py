"""An index: built from source trees into a folder, loaded from it, asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ncs.build.building import SPACE, learn, make, requested_rankers
from ncs.build.delta import room_of
from ncs.build.pipeline import FITTED, Clock
from ncs.build.request import Ready, Recipe, changes_since, known_files, recipe_of
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.learn.confidence import Learnt, is_sure
from ncs.progress import Track, silent
from ncs.search.bm25 import Bm25Ranker
from ncs.search.confidence_features import sure_ranking
from ncs.search.head_signal import NAME as HEAD_NAME
from ncs.search.hybrid import HybridRanker
from ncs.search.rankers import DEFAULT_RANKER, ON_REQUEST, Ranker, create_ranker, fit_ranker
from ncs.search.rrf import RrfRanker
from ncs.storage.document_facts import Structure
from ncs.storage.documents import Store, open_store
from ncs.storage.file_roles import Places
from ncs.storage.filters import shown_at
from ncs.storage.folder import Hold, Manifest, open_folder, reading
from ncs.storage.generations import new_generation
from ncs.storage.words import WordTable
from ncs.text.tokens import tokenize
from ncs.types import Document, Hit, Location, Query, Run

if TYPE_CHECKING:
    from ncs.build.ingest import Changes
    from ncs.search.explain.explanation import Explanation
    from ncs.types import Mask

__all__ = ["FITTED", "SPACE", "BuildConfig", "Index"]


class Index:
    """Functions that can be asked for; open one with `Index.load`, make one with `Index.build`.

    Everything is read when it is needed: a query by one ranker opens that ranker's files only.
    """

    def __init__(self, folder: Path, data: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._data = data
        self._hold = Hold(data)  # rankers open their files on first use: a build must not remove them before
        self._store = open_store(data)
        self._rankers: dict[str, Ranker] = {}
        self._spelled: list[str] | None = None

    def __len__(self) -> int:
        """How many documents."""
        return len(self._store)

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the document store; the index cannot be asked after that."""
        self._store.close()
        self._hold.close()

    @property
    def store(self) -> Store:
        """The documents."""
        return self._store

    @property
    def data(self) -> Path:
        """The folder of this generation's files."""
        return self._data

    @classmethod
    def build(
        cls,
        roots: Path | str | Sequence[Path | str],
        folder: Path | str,
        *,
        config: BuildConfig | None = None,
        workers: int | None = None,
        force: bool = False,
        track: Track = silent,
        scheduler: str | None = None,
        give_up: float = 1800,
        memory: int | None = None,
        ready: Ready | None = None,
    ) -> Index:
        """Read source trees, learn from them, and write the index into `folder`.

        roots: folders, git repositories (bare ones too) and archives. The index that stood in
        `folder` before answers until this one is complete, and stays if this one fails; files that it
        holds and that have not changed are taken over from it. scheduler: of a Dask cluster whose workers read,
        or "local" (ncs.scale.dask); then everything is read, and what takes longer than give_up seconds on two
        workers is
        left out and named. memory: bytes that the build may hold, all its processes together; half of the machine's
        by default, and the result is the same. ready: told of the new files before they become the index. Raises
        SourceError, IndexBusy, and BadInput where the sources hold no function or the memory is too little for them.
        """
        paths = tuple(Path(root) for root in ([roots] if isinstance(roots, (str, Path)) else roots))
        config = config or BuildConfig()
        make(Recipe(paths, config, workers, force, track, scheduler, give_up, memory, ready), Path(folder))
        return cls.load(folder)

    @classmethod
    def update(
        cls,
        folder: Path | str,
        *,
        retrain: bool = False,
        workers: int | None = None,
        force: bool = False,
        whole: bool = False,
        track: Track = silent,
        ready: Ready | None = None,
    ) -> tuple[Index, Changes]:
        """Bring an index up to date with its sources: only files that changed are read.

        Word vectors stay as they were learnt (words that are new have none) but for `retrain`. In a large index of
        which little changed, what changed is made beside the rest (ncs.build.delta), and what is counted stays too;
        else, or
        with `whole`, all else is made anew. So the ranking equals that of a whole build that learnt the same. Where
        nothing changed nothing is written, but for what an ignore file, an archive or a bare repository says anew.
        ready is told of new files before they become the index. Raises what `load` and `build` raise, and BadInput for
        an index that was not made of files.
        """
        folder = Path(folder)
        with cls.load(folder) as standing:
            manifest = standing.manifest
            recipe = replace(recipe_of(manifest, folder), workers=workers, force=force, track=track, ready=ready)
            if not retrain and not whole:
                from ncs.build.delta.making import update

                if (few := update(folder, standing, recipe)) is not None:
                    return cls.load(folder), few
            beside = room_of(standing.data) is not None
            known = known_files(standing.data, manifest, standing.store, recipe.config)
            found, _ = changes_since(recipe, standing.data, known)
        if found or retrain or known is None or "pending" in manifest.counts or (whole and beside):
            make(recipe, folder, None if retrain else folder)
        return cls.load(folder), found

    @classmethod
    def of(
        cls,
        documents: Iterable[Document],
        folder: Path | str,
        *,
        config: BuildConfig | None = None,
        track: Track = silent,
    ) -> Index:
        """An index of documents at hand instead of source files."""
        from ncs.build.batches import Collector, chunks, pack_batch

        config = config or BuildConfig()
        requested = requested_rankers(config.rankers)
        with new_generation(Path(folder)) as generation:
            clock = Clock()
            with clock("extract"), Collector(generation.path, config.store_code, config.deduplicate) as collector:
                for chunk in chunks(documents, 2_000):
                    collector.add(pack_batch(chunk, code=config.store_code))
                collected = collector.finish()
            if not collected.documents:
                raise BadInput("there are no documents to index")
            learn(collected, generation, config, requested, track, clock)
        return cls.load(folder)

    @classmethod
    def load(cls, folder: Path | str, *, verify: bool = False) -> Index:
        """Open an index; verify=True reads every file and compares its checksum.

        Raises IndexNotFound, IndexDamaged or IndexVersion, each naming the folder and the remedy.
        """
        folder = Path(folder)
        if verify:
            open_folder(folder, verify=True)
        return reading(folder, partial(cls, folder))

    def ranker(self, name: str = DEFAULT_RANKER) -> Ranker:
        """A ranker of this index by name, loaded on first use."""
        if name not in self._rankers:
            ranker = create_ranker(name)
            if not self._assembled(ranker):
                ranker.load(self._data)
            self._rankers[name] = ranker
        return self._rankers[name]

    def _assembled(self, ranker: Ranker) -> bool:
        """Whether a ranker is made of other rankers: its parts are opened once, whoever asks."""
        if isinstance(ranker, RrfRanker):
            ranker.rankers = tuple(self.ranker(part) for part in ranker.parts)
        elif isinstance(ranker, HybridRanker):
            parts = [self.ranker(part) for part in ranker.parts]
            head = self.ranker(HEAD_NAME) if (weight := ranker.head_weight(self._data)) else None
            ranker.open(parts, Structure.load(self._data), Learnt.load(self._data), head, weight)
        return isinstance(ranker, (RrfRanker, HybridRanker))

    def has_ranker(self, name: str) -> bool:
        """Whether the build saved what this ranker needs."""
        return name not in ON_REQUEST or (self._data / name).is_dir()

    def fitted(self, name: str, *, track: Track = silent, **config: object) -> Ranker:
        """A ranker with these settings, learnt now from the documents of this index; nothing is written."""
        from ncs.learn.embeddings import Embeddings

        ranker = create_ranker(name, **config)
        if self._assembled(ranker):
            return ranker
        fit_ranker(ranker, self.words(), Embeddings.load(self._data), self._store, track=track)
        return ranker

    def search(
        self,
        text: str,
        k: int = 10,
        *,
        ranker: str = DEFAULT_RANKER,
        language: str | None = None,
        repository: str | None = None,
        path: str | None = None,
        kind: str | None = None,
        functions_only: bool = False,
        min_confidence: float | None = None,
        unfold: bool = False,
    ) -> list[Hit]:
        """The best k documents for a question, best first; an empty list where nothing matches.

        language, repository, path and kind filter before ranking; repository and path are globs. A function
        that stands in several places is shown where the filter finds it. functions_only leaves out
        classes and top-level code, min_confidence hits that are less likely to be right (the default ranker's only).
        The default ranker folds near duplicates into the best of them (`Hit.near_copies`), but for unfold.
        """
        if k < 1:
            raise BadInput(f"k is {k}; it must be at least 1")
        allowed = self._allowed(language, repository, path, kind, functions_only)
        rows, sure = self._ranked(ranker, text, k, allowed, unfold)
        near = self._near_copies(ranker, [row for row, _ in rows], allowed, unfold)
        hits = self._hits(rows, repository, path, sure, near)
        return hits if min_confidence is None else [hit for hit in hits if is_sure(hit.confidence, min_confidence)]

    def _allowed(
        self, language: str | None, repository: str | None, path: str | None, kind: str | None, functions_only: bool
    ) -> Mask | None:
        allowed = self._store.mask(language, repository, path, kind)
        if not functions_only:
            return allowed
        return self.functions() if allowed is None else allowed & self.functions()

    def _ranked(
        self, name: str, text: str, k: int, allowed: Mask | None, unfold: bool
    ) -> tuple[list[tuple[int, float]], list[float] | None]:
        """What a ranker finds, and of the default one how probable it is that each hit is right."""
        ranker = self.ranker(name)
        if not isinstance(ranker, HybridRanker):
            return ranker.search(text, k, allowed=allowed), None
        ranking, sure = sure_ranking(ranker, text, k, allowed=allowed, fold=ranker.fold and not unfold)
        return list(zip(ranking.rows, ranking.scores, strict=True)), sure

    def _near_copies(
        self, name: str, rows: Sequence[int], allowed: Mask | None, unfold: bool
    ) -> list[tuple[Location, ...]]:
        """Where the near duplicates of each row stand, those that may be found."""
        ranker = self.ranker(name)
        if unfold or not (isinstance(ranker, HybridRanker) and ranker.fold and ranker.structure):
            return [()] * len(rows)
        others = [ranker.structure.near_duplicates.others(row) for row in rows]
        if allowed is not None:
            others = [each[allowed[each]] for each in others]
        return [tuple(self._store.locations(each.tolist())) if len(each) else () for each in others]

    def explain(
        self,
        text: str,
        k: int = 10,
        *,
        ranker: str = DEFAULT_RANKER,
        language: str | None = None,
        repository: str | None = None,
        path: str | None = None,
        kind: str | None = None,
        functions_only: bool = False,
        unfold: bool = False,
    ) -> tuple[list[Hit], Explanation]:
        """`search`, with how the question was read and the reasons of every hit, in the order of the hits."""
        from ncs.search.explain.reasons import explain

        if k < 1:
            raise BadInput(f"k is {k}; it must be at least 1")
        allowed = self._allowed(language, repository, path, kind, functions_only)
        found = explain(self.ranker(ranker), text, k, self.words(), allowed=allowed, unfold=unfold)
        sure, rows = [one.confidence for one in found.reasons], [(one.row, one.score) for one in found.reasons]
        near = self._near_copies(ranker, [row for row, _ in rows], allowed, unfold)
        return self._hits(rows, repository, path, sure, near), found

    def _hits(
        self,
        rows: Sequence[tuple[int, float]],
        repository: str | None,
        path: str | None,
        sure: Sequence[float | None] | None,
        near: Sequence[tuple[Location, ...]],
    ) -> list[Hit]:
        documents = self._store.documents([row for row, _ in rows])
        if repository or path:
            documents = [shown_at(document, repository, path) for document in documents]
        return [
            Hit(rank, score, document, sure[rank - 1] if sure else None, near[rank - 1])
            for rank, ((_, score), document) in enumerate(zip(rows, documents, strict=True), 1)
        ]

    def similar(
        self,
        function: Document,
        k: int = 10,
        *,
        language: str | None = None,
        repository: str | None = None,
        path: str | None = None,
        kind: str | None = None,
    ) -> list[Hit]:
        """Functions like this one, best first; the score is the share of its features that they have.

        `ncs.search.similar.function_at` reads one from a file; it need not be of this index. Filters as in `search`.
        """
        from ncs.search.similar import similar

        postings = self._bm25().postings
        found = similar(
            function, postings, self._store, k, language=language, repository=repository, path=path, kind=kind
        )
        return [Hit(rank, other.share, other.document) for rank, other in enumerate(found, 1)]

    def run(self, queries: Iterable[Query], *, ranker: str = DEFAULT_RANKER, k: int = 10) -> Run:
        """query id -> document id -> score for many queries, each in rank order."""
        loaded = self.ranker(ranker)
        found = {query.id: loaded.search(query.text, k) for query in queries}
        rows = sorted({row for hits in found.values() for row, _ in hits})
        ids = dict(zip(rows, self._store.ids(rows), strict=True))
        return {query_id: {ids[row]: score for row, score in hits} for query_id, hits in found.items()}

    def functions(self) -> Mask:
        """Which rows are functions, bool [n]; the others are classes and top-level code."""
        return ~Places.load(self._data).outline

    def words(self) -> WordTable:
        """Which words stand in which document, memory-mapped."""
        return WordTable.load(self._data)

    def unknown_words(self, text: str) -> dict[str, list[str]]:
        """Words of a question that no function holds, each with known words of near spelling."""
        terms = self._bm25().terms(text)
        return {term.word: self.near_spellings(term.word) for term in terms if term.id is None}

    def near_spellings(self, word: str, n: int = 3) -> list[str]:
        """Words of the vocabulary that are spelled almost like this one, the best and more frequent first."""
        from ncs.text.spelling import Known, near

        if self._spelled is None:
            self._spelled = Known(self.words().vocabulary.known())
        return near(word.lower(), self._spelled, n, count=self._bm25().documents)

    def _bm25(self) -> Bm25Ranker:
        return cast(Bm25Ranker, self.ranker("bm25"))

    def neighbours(self, word: str, n: int = 10) -> list[tuple[str, float]] | None:
        """The words learnt to be used most like this one, with their cosine; None for a word without a vector."""
        from ncs.learn.embeddings import Embeddings

        vocabulary = self.words().vocabulary
        tokens = tokenize(word)
        id = vocabulary.id(tokens[0]) if len(tokens) == 1 else None
        return Embeddings.load(self._data).nearest(vocabulary, id, n) if id is not None else None
