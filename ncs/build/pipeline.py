"""A build: source files into one segment and the statistics learned from it, committed as a snapshot."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.batches import Collector, chunks, pack_batch
from ncs.build.calibration import calibrate, weigh_head
from ncs.build.file_cache import FileCache, is_reusable, made_by
from ncs.build.ingest import MovedError, ingest
from ncs.build.memory import Budget, Corpus, expected
from ncs.build.request import Request
from ncs.config import BuildConfig
from ncs.errors import BadInput, NcsError
from ncs.learn.embeddings import Embeddings, carried_over, choose, share_without_vector
from ncs.progress import Track, silent
from ncs.search.bm25 import Bm25Ranker
from ncs.search.rankers import FITTED, Ranker, create_ranker, fit_ranker, requested_ranker
from ncs.search.signals.head import NAME as HEAD
from ncs.sources import Skipped, count
from ncs.sources.repositories import address_of, is_address
from ncs.storage.commit import open_writer
from ncs.storage.document_facts import write_facts, write_languages
from ncs.storage.documents import NAME, DocumentTable
from ncs.storage.snapshot import PENDING, SEGMENTS, STATISTICS, Description, Snapshot, open_snapshot

if TYPE_CHECKING:
    from ncs.build.batches import CollectedDocuments
    from ncs.storage.commit import IndexWriter
    from ncs.storage.words import WordTable
    from ncs.types import Document

SPACE = 4
"""Bytes an index may take for a byte of source, temporary ones included; 3.6 without these."""
CHUNK = 2_000
"""Documents of `build_of` packed at a time."""
EARLY = 2_000
"""Documents from which on a first build answers by words while embeddings are still being learned."""
PENDING_EMBEDDINGS = "embeddings are still being learned: so far only words are matched, not their meaning"


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = round(time.perf_counter() - start, 2)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where documents come from. began: nanoseconds since 1970. made_by: a digest of the code that extracts them."""

    roots: tuple[Path, ...]
    skipped: Skipped
    began: int
    made_by: str

    def described(self) -> dict[str, object]:
        """For the snapshot."""
        roots = [address_of(root) if is_address(root) else str(root.resolve()) for root in self.roots]
        return {"roots": roots, "made_by": self.made_by}


def build(request: Request, folder: Path, *, embeddings_of: Path | None = None, use_cache: bool = True) -> None:
    """Read all sources into a new segment, learn statistics from it, and commit both as the index in `folder`.

    embeddings_of: the folder of an index whose word vectors are used instead of training; it may be `folder`.
    use_cache: take the documents of unchanged files from the index in `folder`.
    Raises SourceError, IndexBusy, and BadInput where there is no function or too little memory.
    """
    from ncs.extract.readers import skip_reason

    config = request.config
    sources = Sources(request.roots, Skipped(unwanted=skip_reason), time.time_ns(), made_by())
    if request.ingest is None and (remote := next(filter(is_address, request.roots), None)):
        raise BadInput(f"{address_of(remote)} is read by a cluster; name one with --scheduler")
    rankers = requested_rankers(config.rankers, _statistics(folder))
    total, size, budget = 0, 0, Budget.of(request.memory)
    if request.ingest is None:  # a cluster may read files that this machine cannot see
        total, size = count(request.roots, wanted=request.wanted(), revision=config.revision, force=request.force)
        budget.check(Corpus.of(config, *expected(size)))
        request = replace(request, workers=budget.workers(request.workers, expected(size)[0]))
    try:
        with open_writer(folder, needed_bytes=SPACE * size) as writer, ExitStack() as stack:
            clock, segment = Clock(), writer.new_folder(SEGMENTS)
            with clock("extract"):
                cache = _open_cache(folder, config, stack) if use_cache and request.ingest is None else None
                collected = _ingest(request, sources, segment, cache, total)
            budget.check(Corpus.of(config, len(collected.words), len(collected.words.vocabulary)))
            learn(writer, segment, collected, request, rankers, clock, sources, embeddings_of)
    except MovedError:
        build(request, folder, embeddings_of=embeddings_of, use_cache=False)


def build_of(documents: Iterable[Document], request: Request, folder: Path) -> None:
    """Build an index from documents instead of source files."""
    config, clock = request.config, Clock()
    rankers = requested_rankers(config.rankers)
    with open_writer(folder) as writer:
        segment = writer.new_folder(SEGMENTS)
        with clock("extract"), Collector(segment, config.store_code, config.deduplicate) as collector:
            for chunk in chunks(documents, CHUNK):
                collector.add(pack_batch(chunk, code=config.store_code))
            collected = collector.finish()
        if not collected.documents:
            raise BadInput("there are no documents to index")
        learn(writer, segment, collected, request, rankers, clock)


def requested_rankers(texts: Iterable[str], statistics: Path | None = None) -> list[Ranker]:
    """Rankers written as `unif:head=HEAD`, with the files they need.

    statistics: of the existing index, whose copy of a file replaces one that is missing.
    """
    rankers = [requested_ranker(text) for text in texts]
    for ranker in rankers:
        ranker.prepare(statistics)
    return rankers


def _statistics(folder: Path) -> Path | None:
    with suppress(NcsError):
        return open_snapshot(folder, lambda snapshot: snapshot.statistics)
    return None


def _open_cache(folder: Path, config: BuildConfig, stack: ExitStack) -> FileCache | None:
    """The files of the existing index that can be reused; None without an index or with a damaged one."""
    with suppress(NcsError, OSError):
        snapshot = stack.enter_context(open_snapshot(folder, lambda snapshot: snapshot))
        return FileCache(snapshot) if is_reusable(snapshot, config) else None
    return None


def _ingest(
    request: Request, sources: Sources, segment: Path, cache: FileCache | None, total: int
) -> CollectedDocuments:
    from ncs.extract.readers import count_text_files, grammar_notes

    if request.ingest is None:
        files = request.track(
            request.files(sources.skipped, cache.is_unchanged if cache else None),
            "reading functions",
            total=total,
            unit="files",
        )
        collected = ingest(files, segment, request.config, request.workers, cache, began=sources.began)
    else:
        collected = request.ingest(request, sources.skipped, segment)
    texts = count_text_files(entry.path for entry in collected.files_read.entries)
    collected.tally["text_files"] = texts
    for line in grammar_notes(texts, sources.skipped.counts):
        sources.skipped.note(line)
    if not collected.documents:
        raise BadInput(no_function(request.roots, sources.skipped))
    return collected


def no_function(roots: Sequence[Path], skipped: Skipped) -> str:
    """The message for sources without any function."""
    from ncs.extract.readers import grammar_notes

    names = ", ".join(str(root) for root in roots)
    reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(skipped.counts.items()))
    remedy = next(grammar_notes({}, skipped.counts), "name a folder with source files")
    return f"no function found in {names} (skipped: {reasons or 'nothing'}); {remedy}"


def learn(
    writer: IndexWriter,
    segment: Path,
    collected: CollectedDocuments,
    request: Request,
    rankers: Sequence[Ranker],
    clock: Clock,
    sources: Sources | None = None,
    embeddings_of: Path | None = None,
) -> None:
    """Postings, embeddings, vectors and confidence of a new segment; then the commit.

    rankers: those on request. embeddings_of: see `build`. Without sources the documents did not come from files.
    """
    config, words, track = request.config, collected.words, request.track
    statistics = writer.new_folder(STATISTICS, segment.name)
    write_words(collected, segment, statistics, config, track, clock)
    if sources:
        collected.files_read.save(segment)
        if writer.previous is None and len(words) >= EARLY:
            segment, statistics = _commit_early(writer, segment, statistics, collected, config, clock, sources)
    with clock("embeddings"):
        embeddings, training = _embeddings(words, segment, request, embeddings_of)
        embeddings.save(statistics)
    with open_documents(segment) as documents:
        for ranker in [*dense_rankers(config), *rankers]:
            with clock(ranker.name):
                fit_ranker(ranker, words, embeddings, documents, track=track)
                ranker.save(statistics, segment)
    counts = counts_of(collected, clock, sources)
    parts = [(segment, len(words))]
    with clock("calibration"), Snapshot(writer.folder, draft(parts, statistics, counts)) as snapshot:
        head = weigh_head(snapshot) if any(ranker.name == HEAD for ranker in rankers) else None
        counts["calibration"] = {**calibrate(snapshot), **({"head": head} if head else {})}
    counts |= {"embeddings": embeddings.method, "training": training, "seconds": dict(clock.seconds)}
    if request.before_commit:
        request.before_commit(parts, statistics, np.zeros((0, 2), np.int64))
    notes = (*(sources.skipped.notes if sources else ()), *embeddings.notes)
    writer.commit(parts, statistics, config=asdict(config), counts=counts, notes=notes, versions=versions())


def write_words(
    collected: CollectedDocuments, segment: Path, statistics: Path, config: BuildConfig, track: Track, clock: Clock
) -> None:
    """Write postings and the facts of documents."""
    with clock("facts"), open_documents(segment) as documents:
        write_facts(segment, collected.uses, collected.words, documents, deduplicate=config.deduplicate)
        write_languages(statistics, documents)
        collected.words.vocabulary.save(statistics)
    with clock("bm25"):
        lexical = Bm25Ranker()
        lexical.fit(collected.words, track=track)
        lexical.save(statistics, segment)


def _commit_early(
    writer: IndexWriter,
    segment: Path,
    statistics: Path,
    collected: CollectedDocuments,
    config: BuildConfig,
    clock: Clock,
    sources: Sources,
) -> tuple[Path, Path]:
    """Commit with zero vectors, so that words can be searched; returns the segment and statistics to continue with."""
    nothing = Embeddings(np.zeros((len(collected.words.vocabulary), 1), np.float32))
    nothing.save(statistics)
    for ranker in dense_rankers(config):
        ranker.fit(collected.words, nothing, track=silent)
        ranker.save(statistics, segment)
    counts = {**counts_of(collected, clock, sources), "embeddings": nothing.method, PENDING: PENDING_EMBEDDINGS}
    parts = [(segment, len(collected.words))]
    writer.commit(parts, statistics, config=asdict(config), counts=counts, versions=versions())
    dense = [ranker.name for ranker in dense_rankers(config)]
    following = writer.copy_folder(segment, without=dense)
    return following, writer.copy_folder(
        statistics, following.name, without=["embeddings.npy", "embeddings.json", *dense]
    )


def _embeddings(
    words: WordTable, segment: Path, request: Request, embeddings_of: Path | None
) -> tuple[Embeddings, dict[str, object]]:
    """Embeddings trained on these words, or those of an index; and figures about the training."""
    from ncs.storage.file_roles import FileRoleTable

    config = request.config
    if embeddings_of is not None:
        with open_snapshot(embeddings_of, lambda snapshot: snapshot) as snapshot:
            description = snapshot.description
            if PENDING not in description.counts:
                embeddings = carried_over(snapshot.statistics, words)
                training = dict(description.counts.get("training") or {})
                return embeddings, {**training, "without_vector_now": share_without_vector(words, embeddings)}
    roles = FileRoleTable.load(segment)
    how = choose(config.embeddings, roles.repository[roles.file], config.fasttext, config.lsa)
    embeddings = Embeddings.train(words, how, track=request.track, folder=segment)
    share = share_without_vector(words, embeddings)
    return embeddings, {"documents": len(words), "without_vector": share, "without_vector_now": share}


def dense_rankers(config: BuildConfig) -> Iterator[Ranker]:
    """Created one at a time, so that only one ranker's vectors are in memory."""
    return (create_ranker(name, vectors=config.vectors) for name in FITTED[1:])


def draft(segments: Sequence[tuple[Path, int]], statistics: Path, counts: Mapping[str, object]) -> Description:
    """The description of files that are not committed yet, to search them before the commit."""
    return Description(0, "", statistics.name, tuple((path.name, n) for path, n in segments), counts=counts)


@contextmanager
def open_documents(segment: Path) -> Iterator[DocumentTable]:
    """The documents of a segment that is being written."""
    with DocumentTable(segment / NAME) as documents:
        yield documents


def counts_of(collected: CollectedDocuments, clock: Clock, sources: Sources | None) -> dict[str, object]:
    """The counts of a snapshot of these documents."""
    skipped = sources.skipped if sources else None
    return {
        **collected.counts(),
        "words": len(collected.words.vocabulary),
        "sources": sources.described() if sources else None,
        "seconds": dict(clock.seconds),
        "peak_memory_bytes": _peak_memory(),
        "skipped": dict(sorted(skipped.counts.items())) if skipped else {},
        "unreadable_files": list(skipped.unreadable) if skipped else [],
    }


def _peak_memory() -> int:
    """The peak memory of this process or its largest child; 0 where the system does not report it."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = max(resource.getrusage(process).ru_maxrss for process in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return peak if sys.platform == "darwin" else peak * 1024


def versions() -> dict[str, str]:
    """Of Python, this package, and libraries that decide what an index holds."""
    names = {"ncs": "neural-code-search"}
    names |= {name: name for name in ("numpy", "faiss-cpu", "tree-sitter", "PyStemmer")}
    return {"python": platform.python_version(), **{name: _version(package) for name, package in names.items()}}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
