"""The public interface of an index: build, update, load, search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.errors import BROKEN, BadInput, check_k
from ncs.learn.confidence import is_confident
from ncs.messages import EMPTY
from ncs.progress import Track, silent
from ncs.search.bm25 import Bm25Ranker
from ncs.search.question import check_length
from ncs.search.rankers import DEFAULT_RANKER, FITTED, ON_REQUEST, Ranker, create_ranker
from ncs.search.ranking import Ranking
from ncs.storage.arrays import both
from ncs.storage.document_facts import DocumentFacts
from ncs.storage.documents import Documents
from ncs.storage.file_roles import TEST
from ncs.storage.filters import Filters, at_matching_location
from ncs.storage.snapshot import Description, Snapshot, find_damage, open_snapshot
from ncs.text.tokens import tokenize
from ncs.types import SECTION, Document, Hit, Location

UNKNOWN_WORDS = 20
"""Unknown words of a query that are named, each compared with all words: pasted text has hundreds."""

if TYPE_CHECKING:
    from ncs.build.request import BeforeCommit, Changes, Ingest
    from ncs.config import BuildConfig
    from ncs.search.explain import Explanation
    from ncs.search.locate import LocatedFile, Locator
    from ncs.search.ncs import NcsRanker
    from ncs.search.references import Definitions, NameSearch, References
    from ncs.search.report import Report
    from ncs.storage.words import Words, WordTable
    from ncs.types import Mask


@dataclass(frozen=True, slots=True)
class Results:
    """Hits, best first, their ranking, the number of documents that passed the filters, and an explanation if
    requested."""

    hits: list[Hit]
    ranking: Ranking
    searched: int
    explanation: Explanation | None = None


class Index:
    """A searchable index of functions; open one with `Index.load`, create one with `Index.build`.

    Files are opened on first use.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.folder = snapshot.folder
        self.documents = Documents(snapshot)
        self._rankers: dict[str, Ranker] = {}
        self.cautions: list[str] = []
        """Notes for every answer, from the opener: that the index is behind, or of another work tree."""

    def __len__(self) -> int:
        """Number of live documents."""
        return self.snapshot.documents

    def __enter__(self) -> Index:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.documents.close()
        self.snapshot.__exit__(kind, error, traceback)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise IndexDamaged for errors caused by damaged files, and silence numpy's warnings."""
        try:
            with np.errstate(all="ignore"):
                yield
        except BROKEN as error:
            find_damage(self.snapshot, error)
            raise

    def close(self) -> None:
        """Close all files."""
        self.documents.close()
        self.snapshot.close()

    @property
    def description(self) -> Description:
        """The content of snapshot.json: configuration, counts, notes, versions."""
        return self.snapshot.description

    @cached_property
    def facts(self) -> DocumentFacts:
        """Facts about the documents beyond their words; opened on first use."""
        return DocumentFacts.open(self.snapshot)

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

        roots: folders, git repositories (bare ones too) and archives. Unchanged files of an existing index are reused.
        ingest: reads the sources elsewhere (ncs.scale.dask.ingest_on_cluster). memory: limit in bytes for all processes
        of the build, by default half of the machine's. Raises SourceError, IndexBusy, and BadInput without functions
        or with too little memory.
        """
        from ncs.build.pipeline import build  # a query need not import it
        from ncs.build.request import Request
        from ncs.config import BuildConfig

        paths = tuple(Path(root) for root in ([roots] if isinstance(roots, (str, Path)) else roots))
        config = config or BuildConfig()
        request = Request(paths, config, workers, force, track, ingest, memory, before_commit)
        build(request, Path(folder))
        return cls.load(folder)

    @classmethod
    def update(cls, folder: Path | str, **options: Any) -> tuple[Index, Changes]:
        """Update an index from its sources; options as of `ncs.build.update.update`."""
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
        """Build an index from documents instead of source files."""
        from ncs.build.pipeline import build_of
        from ncs.build.request import Request
        from ncs.config import BuildConfig

        build_of(documents, Request((), config or BuildConfig(), track=track), Path(folder))
        return cls.load(folder)

    @classmethod
    def load(cls, folder: Path | str, *, verify: bool = False) -> Index:
        """Open an index; verify=True compares the checksums of all files. Raises IndexNotFound, IndexDamaged or
        IndexVersion."""
        return open_snapshot(Path(folder), cls, verify=verify)

    def ranker(self, name: str = DEFAULT_RANKER) -> Ranker:
        """A ranker of this index by name, loaded on first use."""
        if name not in self._rankers:
            ranker = create_ranker(name)
            ranker.load(self.snapshot)
            ranker.compose([self.ranker(part) for part in ranker.parts])
            self._rankers[name] = ranker
        return self._rankers[name]

    def has_ranker(self, name: str) -> bool:
        """Whether the index has the files of this ranker."""
        return name not in ON_REQUEST or (not self.snapshot.distrust and (self.snapshot.statistics / name).is_dir())

    def fitted(self, name: str, **config: object) -> Ranker:
        """A ranker with these settings, fitted now to the documents of this index; nothing is written."""
        from ncs.learn.embeddings import Embeddings

        ranker = create_ranker(name, **config)
        if name in (*FITTED, *ON_REQUEST):
            ranker.fit(self.word_table(), Embeddings.load(self.snapshot.statistics), self.documents.tables[0])
        else:
            ranker.load(self.snapshot)
        ranker.compose([self.ranker(part) for part in ranker.parts])
        return ranker

    def search(
        self,
        text: str,
        k: int = 10,
        *,
        ranker: str = DEFAULT_RANKER,
        min_confidence: float | None = None,
        unfold: bool = False,
        **filters: Any,
    ) -> list[Hit]:
        """The best k documents for a query, best first; with an empty query those that match the regexp.

        filters: those of `Filters`, applied before ranking: language="java", path="src", content="docs". A function
        with copies is shown at its first location that passes. Of the default ranker only: min_confidence leaves out
        less probable hits, and near duplicates are folded into the best one (`Hit.near_copies`) unless unfold is set.
        Raises BadInput, also for unknown languages and kinds.
        """
        hits = self.results(text, k, ranker=ranker, filters=Filters(**filters), unfold=unfold).hits
        return hits if min_confidence is None else [hit for hit in hits if is_confident(hit.confidence, min_confidence)]

    def results(
        self,
        text: str,
        k: int = 10,
        *,
        ranker: str = DEFAULT_RANKER,
        filters: Filters | None = None,
        unfold: bool = False,
        explain: bool = False,
        files: bool = False,
    ) -> Results:
        """`search`, with the ranking of the hits and, with explain, an explanation. files: the best document of each of
        k files."""
        check_length(text)
        filters = filters or Filters()
        if not text.strip() and not filters.regexp:
            raise BadInput(EMPTY)
        with self.reading():
            allowed = self.allowed(filters, ranker)
            searched = len(self) if allowed is None else int(np.count_nonzero(allowed))
            loaded = None if filters.regexp and not text.strip() else self.ranker(ranker)
            rank = partial(self._listing, allowed)
            if loaded:
                rank = partial(loaded.rank, text, allowed=allowed, fold=not unfold, confidences=True)
            ranking = self._rank_files(rank, k) if files else rank(k)
            explanation = None
            if explain and loaded:
                from ncs.search.explain import explain as explain_ranking

                explanation = explain_ranking(loaded, text, ranking, self.words())
            return Results(self._hits(ranking, filters, allowed), ranking, searched, explanation)

    def allowed(self, filters: Filters, ranker: str = DEFAULT_RANKER) -> Mask | None:
        """Mask of the live rows that pass all filters, bool [n]; None if all rows do. Raises BadInput."""
        filters = filters.known(self.description.counts)
        allowed = self.documents.mask(filters)
        allowed = both(allowed, self._with_content(filters, ranker))
        if filters.functions_only:
            allowed = both(allowed, self.functions())
        if filters.no_tests:
            allowed = both(allowed, ~self.tests())
        if filters.regexp:
            from ncs.search.regexp import matching

            allowed = matching(self.snapshot, filters.regexp, allowed)
        return allowed

    def _with_content(self, filters: Filters, ranker: str) -> Mask | None:
        """Mask of the rows of the searched content: code, sections of prose, or both (None)."""
        sections, any_content = self.facts.file_roles.sections, ranker == DEFAULT_RANKER or filters.kind == SECTION
        content = filters.content or ("all" if any_content else "code")
        if content == "all" or (sections is None and content == "code"):
            return None
        sections = np.zeros(len(self.snapshot), np.bool_) if sections is None else sections
        return sections if content == "docs" else ~sections

    def _listing(self, allowed: Mask | None, k: int) -> Ranking:
        """The first k allowed rows in the order of paths, each with score 1."""
        check_k(k)
        files, places = self.documents.files()
        rows = np.arange(len(files)) if allowed is None else np.flatnonzero(allowed)
        in_order = sorted(rows.tolist(), key=lambda row: (places[files[row]], row))[:k]
        return Ranking(in_order, [1.0] * len(in_order))

    def _rank_files(self, rank: Callable[[int], Ranking], k: int) -> Ranking:
        """The best row of each of k files, best first."""
        check_k(k)
        n = k
        while True:
            n, firsts = 4 * n, dict[int, int]()
            ranking = rank(n)
            files = self.facts.file_roles.files_of(np.array(ranking.rows, np.int64)).tolist()
            for at, file in enumerate(files):
                firsts.setdefault(file if file >= 0 else -1 - at, at)  # a file without a path is one of its own
            if len(firsts) >= k or len(files) < n:
                return ranking.at(list(firsts.values())[:k])

    def _hits(self, ranking: Ranking, filters: Filters, allowed: Mask | None) -> list[Hit]:
        passes = self.documents.location_filter(filters)
        documents = [at_matching_location(document, passes) for document in self.documents.documents(ranking.rows)]
        confidences: Sequence[float | None] = ranking.confidences or [None] * len(documents)
        copies = self._near_copies(ranking.rows, allowed) if ranking.folded else [()] * len(documents)
        return [
            Hit(rank, *each)
            for rank, each in enumerate(zip(ranking.scores, documents, confidences, copies, strict=True), 1)
        ]

    def _near_copies(self, rows: Sequence[int], allowed: Mask | None) -> list[tuple[Location, ...]]:
        """Locations of the allowed near duplicates of each row."""
        others = [self.facts.duplicates.others(row) for row in rows]
        if allowed is not None:
            others = [each[allowed[each]] for each in others]
        return [tuple(self.documents.locations(each.tolist())) if len(each) else () for each in others]

    def similar(self, function: Document, k: int = 10, **filters: Any) -> list[Hit]:
        """Functions similar to this one (ncs.search.similar), best first; filters: as in `search`."""
        from ncs.search.similar import similar

        with self.reading():
            chosen = Filters(**filters)
            passes, allowed = self.documents.location_filter(chosen), self.allowed(chosen)
            return similar(function, self._bm25().postings, self.documents, k, passes=passes, allowed=allowed)

    def locate(self, report: str | Report, k: int = 10, **filters: Any) -> list[LocatedFile]:
        """The files to edit for a bug report (ncs.search.locate), best first; filters: as in `search`. Raises BadInput
        for a report that is empty or too long."""
        from ncs.search.report import read_report

        report = read_report(report) if isinstance(report, str) else report
        with self.reading():
            return self._locator.locate(report, k, self.allowed(Filters(**filters)))

    @cached_property
    def _locator(self) -> Locator:
        from ncs.search.locate import Locator

        ranker = self.ranker(DEFAULT_RANKER)
        return Locator(self.snapshot, self.facts, self._bm25().postings, ranker)

    def definitions(
        self, name: str, k: int = 10, *, file: str | None = None, prefixes: bool = False, **filters: Any
    ) -> Definitions:
        """The definitions of `NAME`, `Owner.NAME` or `FILE::NAME`; file: if not in the name; prefixes: else longer
        names; filters: as in `search`. Raises BadInput for an invalid name and an unknown file."""
        with self.reading():
            names, allowed = self._names(), self.allowed(Filters(**filters))
            return names.definitions(names.parse(name, file), k, allowed, prefixes=prefixes)

    def references(self, name: str, k: int = 10, *, file: str | None = None, **filters: Any) -> References:
        """The functions that use a name, as `definitions`; file: of the definition meant."""
        with self.reading():
            names, chosen = self._names(), Filters(**filters)
            passes, allowed = self.documents.location_filter(chosen), self.allowed(chosen)
            return names.references(names.parse(name, file), k, passes=passes, allowed=allowed)

    def _names(self) -> NameSearch:
        from ncs.search.references import NameSearch

        return NameSearch(self.snapshot, self.facts, self.documents, self._bm25().postings)

    def functions(self) -> Mask:
        """Mask of the rows that are functions, bool [n]; the others are classes, top-level code and sections."""
        return self.facts.file_roles.functions()

    def tests(self) -> Mask:
        """Mask of the rows that are tests, by their files or their syntax, bool [n]."""
        tests: Mask = self.facts.file_roles.roles_of(np.arange(len(self.snapshot))) == TEST
        return tests

    def count_tests(self) -> int:
        """The number of documents that are tests."""
        with self.reading():
            tests, live = self.tests(), self.snapshot.live
            return int(np.count_nonzero(tests if live is None else tests & live))

    def words(self) -> Words:
        """The words of all documents, memory-mapped."""
        return self.facts.words

    def word_table(self) -> WordTable:
        """The words of all documents as one table; raises BadInput for an index with updates."""
        table = self.words().table()
        if table is None:
            raise BadInput(f"{self.folder} has been updated; compact it first: ncs update --compact -i {self.folder}")
        return table

    def unknown_words(self, text: str) -> dict[str, list[str]]:
        """The first words of a query that are in no document, each with known words of similar spelling."""
        with self.reading():
            lexical = self._bm25()
            terms = lexical.postings.terms(lexical.query_words(text))
            unknown = list(dict.fromkeys(term.word for term in terms if not term.documents))[:UNKNOWN_WORDS]
            return {word: self.spelling_suggestions(word) for word in unknown}

    def idf(self, words: Sequence[str]) -> dict[str, float]:
        """Stem -> idf of some words."""
        with self.reading():
            return dict(self._bm25().postings.idf(list(words)))

    def spelling_suggestions(self, word: str) -> list[str]:
        """Vocabulary words of similar spelling, the nearest and more frequent first."""
        from ncs.text.spelling import nearest_words

        return nearest_words(word, self.words().by_spelling, count=self._bm25().postings.documents_with)

    def _bm25(self) -> Bm25Ranker:
        return cast(Bm25Ranker, self.ranker("bm25"))

    def neighbors(self, word: str, n: int = 10) -> tuple[int, list[tuple[str, float]]] | None:
        """The document frequency of a word in training, and its nearest words with cosines (`Embeddings.nearest`); None
        for a word without a vector."""
        from ncs.learn.embeddings import Embeddings

        with self.reading():
            vocabulary = self.words().vocabulary
            tokens = tokenize(word)
            id = vocabulary.id(tokens[0]) if len(tokens) == 1 else None
            if id is None:
                return None
            idf = cast("NcsRanker", self.ranker("ncs")).encoder.idf.astype(np.float64)
            documents = np.rint(self._bm25().postings.statistics.documents * np.exp(-idf)).astype(np.int64)
            near = Embeddings.load(self.snapshot.statistics).nearest(vocabulary, id, documents, n)
            return None if near is None else (int(documents[id]), near)
