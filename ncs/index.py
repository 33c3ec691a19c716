"""An index: built from source trees into a folder, loaded from it, asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.learn.confidence import is_sure
from ncs.progress import Track, silent
from ncs.search.bm25 import Bm25Ranker
from ncs.search.rankers import DEFAULT_RANKER, ON_REQUEST, Composed, Ranker, create_ranker, fit_ranker
from ncs.storage.document_facts import DocumentFacts
from ncs.storage.documents import Documents
from ncs.storage.filters import shown_at
from ncs.storage.snapshot import Description, Snapshot, open_snapshot
from ncs.text.tokens import tokenize
from ncs.types import Document, Hit, Location, Query, Run

if TYPE_CHECKING:
    from ncs.build.request import BeforeCommit, Changes, Ingest
    from ncs.search.explain import Explanation
    from ncs.search.ranking import Ranking
    from ncs.storage.words import Words, WordTable
    from ncs.types import Mask


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

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.folder = snapshot.folder
        self.documents = Documents(snapshot)
        self._rankers: dict[str, Ranker] = {}
        self._facts: DocumentFacts | None = None
        self._known_words: list[str] | None = None

    def __len__(self) -> int:
        """How many documents can be found."""
        return self.snapshot.documents

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the documents; the index cannot be asked after that."""
        self.documents.close()
        self.snapshot.close()

    @property
    def description(self) -> Description:
        """What snapshot.json says: configuration, counts, notes, versions."""
        return self.snapshot.description

    @property
    def facts(self) -> DocumentFacts:
        """What is known of the documents beyond their words; opened on first use."""
        if self._facts is None:
            self._facts = DocumentFacts.open(self.snapshot)
        return self._facts

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
        ingest: Ingest | None = None,
        memory: int | None = None,
        before_commit: BeforeCommit | None = None,
    ) -> Index:
        """Read source trees, learn from them, and write the index into `folder`.

        roots: folders, git repositories (bare ones too) and archives. The index that stood in `folder` before answers
        until this one is complete, and stays if this one fails; files that have not changed are taken over from it.
        ingest: reads the sources elsewhere than on this machine (ncs.scale.dask.client.ingest_on_cluster).
        memory: bytes that the build may hold, all its processes together; half of the machine's by default, and the
        result is the same. Raises SourceError, IndexBusy, and BadInput where the sources hold no function or the
        memory is too little for them.
        """
        from ncs.build.pipeline import build  # a query need not import it
        from ncs.build.request import Request

        paths = tuple(Path(root) for root in ([roots] if isinstance(roots, (str, Path)) else roots))
        config = config or BuildConfig()
        request = Request(paths, config, workers, force, track, ingest, memory, before_commit)
        build(request, Path(folder))
        return cls.load(folder)

    @classmethod
    def update(cls, folder: Path | str, **options: Any) -> tuple[Index, Changes]:
        """Bring an index up to date with its sources: see `ncs.build.update.update`, which takes the options."""
        from ncs.build.update import update

        changes = update(Path(folder), **options)
        return cls.load(folder), changes

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
        from ncs.build.pipeline import build_of
        from ncs.build.request import Request

        build_of(documents, Request((), config or BuildConfig(), track=track), Path(folder))
        return cls.load(folder)

    @classmethod
    def load(cls, folder: Path | str, *, verify: bool = False) -> Index:
        """Open an index; verify=True reads every file and compares its checksum.

        Raises IndexNotFound, IndexDamaged or IndexVersion, each naming the folder and the remedy.
        """
        return open_snapshot(Path(folder), cls, verify=verify)

    def ranker(self, name: str = DEFAULT_RANKER) -> Ranker:
        """A ranker of this index by name, loaded on first use."""
        if name not in self._rankers:
            ranker = create_ranker(name)
            if isinstance(ranker, Composed):
                ranker.assemble(self.snapshot, self.ranker)
            else:
                ranker.load(self.snapshot)
            self._rankers[name] = ranker
        return self._rankers[name]

    def has_ranker(self, name: str) -> bool:
        """Whether the build saved what this ranker needs."""
        return name not in ON_REQUEST or (self.snapshot.statistics / name).is_dir()

    def fitted(self, name: str, *, track: Track = silent, **config: object) -> Ranker:
        """A ranker with these settings, learnt now from the documents of this index; nothing is written."""
        from ncs.learn.embeddings import Embeddings

        ranker = create_ranker(name, **config)
        if isinstance(ranker, Composed):
            ranker.assemble(self.snapshot, self.ranker)
            return ranker
        table = self.word_table()
        embeddings = Embeddings.load(self.snapshot.statistics)
        fit_ranker(ranker, table, embeddings, self.documents.tables[0], track=track)
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
        allowed = self.documents.mask(filters.language, filters.repository, filters.path, filters.kind)
        if not filters.functions_only:
            return allowed
        return self.functions() if allowed is None else allowed & self.functions()

    def _hits(self, ranking: Ranking, filters: Filters, allowed: Mask | None) -> list[Hit]:
        documents = self.documents.documents(ranking.rows)
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
        others = [self.facts.duplicates.others(row) for row in rows]
        if allowed is not None:
            others = [each[allowed[each]] for each in others]
        return [tuple(self.documents.locations(each.tolist())) if len(each) else () for each in others]

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
            function, postings, self.documents, k, language=language, repository=repository, path=path, kind=kind
        )
        return [Hit(rank, other.share, other.document) for rank, other in enumerate(found, 1)]

    def run(self, queries: Iterable[Query], *, ranker: str = DEFAULT_RANKER, k: int = 10) -> Run:
        """query id -> document id -> score for many queries, each in rank order."""
        loaded = self.ranker(ranker)
        found = {query.id: loaded.search(query.text, k) for query in queries}
        rows = sorted({row for hits in found.values() for row, _ in hits})
        ids = dict(zip(rows, self.documents.ids(rows), strict=True))
        return {query_id: {ids[row]: score for row, score in hits} for query_id, hits in found.items()}

    def functions(self) -> Mask:
        """Which rows are functions, bool [n]; the others are classes and top-level code."""
        return self.facts.file_roles.functions()

    def words(self) -> Words:
        """Which words stand in which document, memory-mapped."""
        return self.facts.words

    def word_table(self) -> WordTable:
        """The words of all documents as one table, to learn from; raises BadInput for an index with updates."""
        table = self.words().table()
        if table is None:
            raise BadInput(f"{self.folder} has been updated; compact it first: ncs update --compact -i {self.folder}")
        return table

    def unknown_words(self, text: str) -> dict[str, list[str]]:
        """Words of a question that no function holds, each with known words of near spelling."""
        terms = self._bm25().terms(text)
        return {term.word: self.near_spellings(term.word) for term in terms if not term.documents}

    def near_spellings(self, word: str, n: int = 3) -> list[str]:
        """Words of the vocabulary that are spelled almost like this one, the best and more frequent first."""
        from ncs.text.spelling import WordList, near

        if self._known_words is None:
            self._known_words = WordList(sorted(self.words().vocabulary))
        return near(word.lower(), self._known_words, n, count=self._bm25().documents)

    def _bm25(self) -> Bm25Ranker:
        return cast(Bm25Ranker, self.ranker("bm25"))

    def neighbours(self, word: str, n: int = 10) -> list[tuple[str, float]] | None:
        """The words learnt to be used most like this one, with their cosine; None for a word without a vector."""
        from ncs.learn.embeddings import Embeddings

        vocabulary = self.words().vocabulary
        tokens = tokenize(word)
        id = vocabulary.id(tokens[0]) if len(tokens) == 1 else None
        return Embeddings.load(self.snapshot.statistics).nearest(vocabulary, id, n) if id is not None else None
