"""An index: built from source trees into a folder, loaded from it, asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ncs.build.building import SPACE, learn, make, requested_rankers
from ncs.build.delta import room_of
from ncs.build.pipeline import FITTED, Clock
from ncs.build.request import Ready, Recipe, changes_since, known_files, recipe_of
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.learn.confidence import is_sure
from ncs.progress import Track, silent
from ncs.search.bm25 import Bm25Ranker
from ncs.search.rankers import DEFAULT_RANKER, ON_REQUEST, Composed, Ranker, create_ranker, fit_ranker
from ncs.storage.documents import Store, open_store
from ncs.storage.duplicates import NearDuplicates
from ncs.storage.file_roles import Places
from ncs.storage.filters import shown_at
from ncs.storage.folder import Hold, Manifest, open_folder, reading
from ncs.storage.generations import new_generation
from ncs.storage.words import WordTable
from ncs.text.tokens import tokenize
from ncs.types import Document, Hit, Location, Query, Run

if TYPE_CHECKING:
    from ncs.build.ingest import Changes
    from ncs.search.explain import Explanation
    from ncs.search.ranking import Ranking
    from ncs.types import Mask

__all__ = ["FITTED", "SPACE", "BuildConfig", "Index"]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents may be hits; repository and path are globs. functions_only leaves out classes and top-level
    code."""

    language: str | None = None
    repository: str | None = None
    path: str | None = None
    kind: str | None = None
    functions_only: bool = False


@dataclass(frozen=True, slots=True)
class Results:
    """Hits, best first, the ranking behind them, and why each has its score, if that was asked for."""

    hits: list[Hit]
    ranking: Ranking
    explanation: Explanation | None = None


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
        self._duplicates: NearDuplicates | None = None

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
            if isinstance(ranker, Composed):
                ranker.assemble(self._data, self.ranker)
            else:
                ranker.load(self._data)
            self._rankers[name] = ranker
        return self._rankers[name]

    def has_ranker(self, name: str) -> bool:
        """Whether the build saved what this ranker needs."""
        return name not in ON_REQUEST or (self._data / name).is_dir()

    def fitted(self, name: str, *, track: Track = silent, **config: object) -> Ranker:
        """A ranker with these settings, learnt now from the documents of this index; nothing is written."""
        from ncs.learn.embeddings import Embeddings

        ranker = create_ranker(name, **config)
        if isinstance(ranker, Composed):
            ranker.assemble(self._data, self.ranker)
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
        filters = Filters(language, repository, path, kind, functions_only)
        hits = self.results(text, k, ranker=ranker, filters=filters, unfold=unfold).hits
        return hits if min_confidence is None else [hit for hit in hits if is_sure(hit.confidence, min_confidence)]

    def results(
        self,
        text: str,
        k: int = 10,
        *,
        ranker: str = DEFAULT_RANKER,
        filters: Filters | None = None,
        unfold: bool = False,
        explain: bool = False,
    ) -> Results:
        """`search`, with the ranking behind the hits; explain: and why each hit has its score."""
        if k < 1:
            raise BadInput(f"k is {k}; it must be at least 1")
        filters, opened = filters or Filters(), self.ranker(ranker)
        allowed = self._allowed(filters)
        ranking = opened.rank(text, k, allowed=allowed, fold=not unfold, confidences=True)
        explanation = None
        if explain:
            from ncs.search.explain import explain as explain_ranking

            explanation = explain_ranking(opened, text, ranking, self.words())
        return Results(self._hits(ranking, filters, allowed), ranking, explanation)

    def _allowed(self, filters: Filters) -> Mask | None:
        allowed = self._store.mask(filters.language, filters.repository, filters.path, filters.kind)
        if not filters.functions_only:
            return allowed
        return self.functions() if allowed is None else allowed & self.functions()

    def _hits(self, ranking: Ranking, filters: Filters, allowed: Mask | None) -> list[Hit]:
        documents = self._store.documents(ranking.rows)
        if filters.repository or filters.path:
            documents = [shown_at(document, filters.repository, filters.path) for document in documents]
        confidences: Sequence[float | None] = ranking.confidences or [None] * len(documents)
        copies = self._near_copies(ranking.rows, allowed) if ranking.folded else [()] * len(documents)
        return [
            Hit(rank, *each)
            for rank, each in enumerate(zip(ranking.scores, documents, confidences, copies, strict=True), 1)
        ]

    def _near_copies(self, rows: Sequence[int], allowed: Mask | None) -> list[tuple[Location, ...]]:
        """Where the near duplicates of each row are, those that are allowed."""
        if self._duplicates is None:
            self._duplicates = NearDuplicates.load(self._data, len(self))
        others = [self._duplicates.others(row) for row in rows]
        if allowed is not None:
            others = [each[allowed[each]] for each in others]
        return [tuple(self._store.locations(each.tolist())) if len(each) else () for each in others]

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
