"""A build: source files into one segment and the statistics learned from it, committed as a snapshot; and
`add_rankers`, which fits further rankers over an existing index."""

from __future__ import annotations

import platform
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncs.build.file_cache import FileCache, installed_version, is_reusable, made_by
from ncs.build.head_weight import weigh_head
from ncs.build.ingest import CollectedDocuments, Collector, MovedError, ingest, pack_batch
from ncs.build.memory import DOCUMENT_BYTES, check_memory, expected_size, reader_processes
from ncs.build.request import Request
from ncs.config import BuildConfig, FastTextConfig, LsaConfig
from ncs.errors import BadInput, NcsError
from ncs.extract.pool import CHUNK_BYTES
from ncs.extract.readers import count_text_files, grammar_notes, skip_reason
from ncs.learn.confidence import TUNED
from ncs.learn.embeddings import Embeddings, choose, reuse_embeddings, share_without_vector
from ncs.progress import Part, Track, Whole, silent
from ncs.search.bm25 import Bm25Ranker
from ncs.search.rankers import FITTED, HEAD, Ranker, create_ranker, read_ranker, requested_ranker
from ncs.sources import Skipped, SourceFile, count
from ncs.sources.repositories import Repository, address_of, is_address, main_work_tree
from ncs.storage.commit import IndexWriter, open_writer
from ncs.storage.document_facts import write_facts, write_languages
from ncs.storage.documents import NAME, DocumentTable
from ncs.storage.file_roles import FOLDER, FileRoleTable, read_sections
from ncs.storage.files import BROKEN, FAILED, FILES, FileEntry, FileTable, home_of
from ncs.storage.snapshot import (
    DEFAULT_NAME,
    PENDING,
    SEGMENTS,
    STATISTICS,
    Description,
    Snapshot,
    open_snapshot,
    read_description,
)
from ncs.storage.trust import check_trust, stored_root
from ncs.storage.words import WordTable
from ncs.types import Document

SPACE = 4
"""Bytes that an index may take per byte of source, with temporary files; 3.6 without these."""
CHUNK = 2_000
"""Documents of `build_of` packed at a time."""
MIN_EARLY = 2_000
"""Fewest documents for a first build to commit postings before fastText learns; LSA takes only seconds."""
NAMED_FILES = 100
"""Most broken files and most failed files that a snapshot names."""
READING: Mapping[type[FastTextConfig | LsaConfig], float] = {LsaConfig: 0.75, FastTextConfig: 0.47}
"""The share of reading in a build's time, on two cores (measured on 20,000 to 86,000 documents)."""
WORDS, TRAINING = 0.05, 0.97
"""The share of facts and postings, and the total share up to the training."""
NO_TOMBSTONES: NDArray[np.int64] = np.zeros((0, 2), np.int64)
PENDING_EMBEDDINGS = "embeddings are still being learned: what words mean in this code does not count yet"


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = round(time.perf_counter() - start, 2)


def build(request: Request, folder: Path, *, keep_vectors: bool = False, use_cache: bool = True) -> None:
    """Read all sources into a new segment, learn statistics from it, and commit both as the index in `folder`.

    keep_vectors, use_cache: reuse word vectors, and documents of unchanged files, of the existing index. Raises
    SourceError, IndexBusy, and BadInput without functions or with too little memory.
    """
    config, began, skipped = request.config, time.time_ns(), Skipped(reason_of=skip_reason)
    made_by()  # of the code as it is now: it may change while the build runs
    if request.ingest is None and (remote := next(filter(is_address, request.roots), None)):
        raise BadInput(f"{address_of(remote)} is read by a cluster; name one with --scheduler")
    rankers = requested_rankers(config.rankers, _statistics(folder))
    total, size, whole, reading = 0, 0, None, 0.0
    if request.ingest is None:  # a cluster may read files that this machine cannot see
        total, sizes = count(request.roots, readable=request.readable(), revision=config.revision, force=request.force)
        size = sizes.total()
        rows, words = expected_size(size)
        check_memory(request.memory, config, rows, words)
        request = replace(request, workers=reader_processes(request.memory, request.workers, rows))
        whole, reading = Whole(), _share_of_reading(config, list(sizes.values()), request.workers or 1)
    try:
        with open_writer(folder, needed_bytes=SPACE * size, anew=True) as writer, ExitStack() as stack:
            segment, clock = writer.new_folder(SEGMENTS), Clock()
            step = _Build(writer, request, rankers, skipped, keep_vectors, clock, whole, reading)
            Thread(target=import_module, args=("scipy.sparse",)).start()  # takes .2 s, while processes read files
            with clock("extract"):
                cache = _open_cache(folder, request, stack) if use_cache and request.ingest is None else None
                collected = step.read_sources(segment, cache, total, size, began)
            check_memory(request.memory, config, len(collected.words), len(collected.words.vocabulary))
            step.learn(segment, collected)
    except MovedError:
        build(request, folder, keep_vectors=keep_vectors, use_cache=False)


def build_of(documents: Iterable[Document], request: Request, folder: Path) -> None:
    """Build an index from documents instead of source files."""
    config, iterator = request.config, iter(documents)
    rankers = requested_rankers(config.rankers)
    with open_writer(folder, anew=True) as writer:
        segment, step = writer.new_folder(SEGMENTS), _Build(writer, request, rankers)
        with step.clock("extract"), Collector(segment, config.deduplicate) as collector:
            while chunk := list(islice(iterator, CHUNK)):
                collector.add(pack_batch(chunk, code=config.store_code))
            collected = collector.finish()
        if not len(collected.words):
            raise BadInput("there are no documents to index")
        step.learn(segment, collected)


def requested_rankers(texts: Iterable[str], statistics: Path | None = None) -> list[Ranker]:
    """Prepared rankers, written as `unif:head=HEAD`; statistics: of the existing index, with copies of their files."""
    rankers = [requested_ranker(text) for text in texts]
    for ranker in rankers:
        ranker.prepare(statistics)
    return rankers


def _statistics(folder: Path) -> Path | None:
    """The statistics folder of an index; None without a trusted index."""
    with suppress(NcsError), open_snapshot(folder, lambda snapshot: snapshot) as snapshot:
        return None if snapshot.distrust else snapshot.statistics
    return None


def _open_cache(folder: Path, request: Request, stack: ExitStack) -> FileCache | None:
    """The reusable files of the existing index or, in a linked work tree, of that of the main one; None without a sound
    and trusted index."""
    root = request.roots[0].resolve()
    top, main = Repository("folder", root), main_work_tree(root)
    for tree, index in ((root, folder), (main, main and main / DEFAULT_NAME)):
        if tree is None or index is None:
            continue
        names = request.names or ({str(tree): top.name} if len(request.roots) == 1 else {})
        with suppress(NcsError, OSError):
            snapshot = stack.enter_context(open_snapshot(index, lambda snapshot: snapshot))
            if not snapshot.distrust and is_reusable(snapshot, request.config):
                return stack.enter_context(closing(FileCache(snapshot, names)))
    return None


def _share_of_reading(config: BuildConfig, sizes: Sequence[int], workers: int) -> float:
    """The share of reading in a build's time, given the bytes of each repository; a mean over the learners chosen for
    the expected number of documents and for twice as many."""
    rows = np.repeat(np.arange(len(sizes), dtype=np.int32), [size // DOCUMENT_BYTES for size in sizes])
    learners = [choose(config.embeddings, np.repeat(rows, n), config.fasttext, config.lsa) for n in (1, 2)]
    share = sum(READING[type(learner)] for learner in learners) / 2
    here = share * 2 / max(2, workers)
    return here / (here + 1 - share)


@dataclass(frozen=True)
class _Build:
    """The steps of a build. rankers: on request; keep_vectors: see `build`; read: share of progress after reading."""

    writer: IndexWriter
    request: Request
    rankers: Sequence[Ranker]
    skipped: Skipped = field(default_factory=Skipped)
    keep_vectors: bool = False
    clock: Clock = field(default_factory=Clock)
    whole: Whole | None = None
    read: float = 0.0

    def stage(self, until: float) -> Track:
        """The progress of a stage that ends at this share of the whole."""
        return self.whole.stage(self.request.track, until) if self.whole else self.request.track

    def read_sources(
        self, segment: Path, cache: FileCache | None, total: int, size: int, began: int
    ) -> CollectedDocuments:
        """The documents of all sources; total, size: files and bytes. Raises BadInput without documents."""
        request = self.request
        if request.ingest is None:
            files: Iterable[SourceFile] = request.files(self.skipped, cache.is_unchanged if cache else None)
            if self.whole:
                waiting = (request.workers or 1) * CHUNK_BYTES  # half of what processes have before them
                files = Part(files, self.whole, self.read, size, lambda file: len(file.data), waiting)
            files = request.track(files, "reading functions", total=total, unit="files")
            home = home_of(segment.parents[1])
            collected = ingest(files, segment, request.config, request.workers, cache, began=began, home=home)
        else:
            collected = request.ingest(request, self.skipped, segment)
        if not len(collected.words):
            names = ", ".join(str(root) for root in request.roots)
            reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(self.skipped.counts.items())) or "nothing"
            remedy = next(grammar_notes({}, self.skipped.counts), "name a folder with source files")
            raise BadInput(f"no function found in {names} (skipped: {reasons}); {remedy}")
        return collected

    def learn(self, segment: Path, collected: CollectedDocuments) -> None:
        """Postings, embeddings and vectors of a new segment; then the commit."""
        words = collected.words
        statistics = self.writer.new_folder(STATISTICS, segment.name)
        self._write_words(collected, segment, statistics)
        if self.request.roots:
            collected.files_read.save(segment / FILES)
        counts = self._counts(segment, words)
        learner = self._learner(words, segment)
        slow = isinstance(learner, FastTextConfig) and len(words) >= MIN_EARLY
        if slow and self.request.roots and self.writer.previous is None:
            segment, statistics = self._commit_early(segment, statistics, words, counts)
        with self.clock("embeddings"):
            embeddings, training = self._embeddings(words, segment, learner)
            embeddings.save(statistics)
        with DocumentTable(segment / NAME) as documents:
            for ranker in [*dense_rankers(self.request.config), *self.rankers]:
                with self.clock(ranker.name):
                    ranker.fit(words, embeddings, documents, track=self.request.track)
                    ranker.save(statistics, segment)
        parts = [(segment, len(words))]
        if any(ranker.name == HEAD for ranker in self.rankers):
            draft = _draft(parts, statistics, counts)
            with self.clock("head weight"), Snapshot(self.writer.folder, draft) as snapshot:
                counts["head"] = weigh_head(snapshot)
        counts |= {"embeddings": embeddings.method, "training": training}
        if self.request.before_commit:
            self.request.before_commit(parts)
        about_grammars = grammar_notes(counts["text_files"], self.skipped.counts)
        self._commit(parts, statistics, counts, (*self.skipped.notes, *about_grammars, *embeddings.notes))

    def _commit(
        self, parts: Sequence[tuple[Path, int]], statistics: Path, counts: dict[str, Any], notes: Sequence[str] = ()
    ) -> None:
        counts = {**counts, "seconds": dict(self.clock.seconds), "peak_memory_bytes": _peak_memory()}
        config = asdict(self.request.config)
        if self.writer.distrust:  # nothing of such an index stays
            (self.writer.folder / TUNED).unlink(missing_ok=True)
        self.writer.commit(parts, statistics, config=config, counts=counts, notes=notes, versions=versions())

    def _write_words(self, collected: CollectedDocuments, segment: Path, statistics: Path) -> None:
        """Write postings and the facts of documents."""
        words, deduplicate = collected.words, self.request.config.deduplicate
        with self.clock("facts"), DocumentTable(segment / NAME) as documents:
            write_facts(segment, collected.uses, words, documents, deduplicate=deduplicate)
            write_languages(statistics, documents)
            words.vocabulary.save(statistics)
            sections = read_sections(segment / FOLDER, len(words))
            words.sections = None if sections.all() else sections
        with self.clock("bm25"):
            lexical = Bm25Ranker()
            lexical.fit(words, track=self.stage(self.read + WORDS))
            lexical.save(statistics, segment)

    def _commit_early(
        self, segment: Path, statistics: Path, words: WordTable, counts: dict[str, Any]
    ) -> tuple[Path, Path]:
        """Commit with zero vectors, so that words can be searched; returns copies of both folders to continue with."""
        nothing = Embeddings(np.zeros((len(words.vocabulary), 1), np.float32))
        nothing.save(statistics)
        names = []
        for ranker in dense_rankers(self.request.config):
            with DocumentTable(segment / NAME) as documents:
                ranker.fit(words, nothing, documents)
            ranker.save(statistics, segment)
            names.append(ranker.name)
        pending = {"embeddings": nothing.method, PENDING: PENDING_EMBEDDINGS}
        self._commit([(segment, len(words))], statistics, counts | pending)
        following = self.writer.copy_folder(segment, without=names)
        without = ["embeddings.npy", "embeddings.json", *names]
        return following, self.writer.copy_folder(statistics, following.name, without=without)

    def _learner(self, words: WordTable, segment: Path) -> FastTextConfig | LsaConfig:
        """The settings that word vectors are learned with."""
        config, roles = self.request.config, FileRoleTable.load(segment / FOLDER)
        files = roles.file[words.learned(0, len(words))]
        return choose(config.embeddings, roles.repository[files], config.fasttext, config.lsa)

    def _embeddings(
        self, words: WordTable, segment: Path, learner: FastTextConfig | LsaConfig
    ) -> tuple[Embeddings, dict[str, object]]:
        """Embeddings trained on these words, or those of the index; and figures about the training."""
        if self.keep_vectors:
            with open_snapshot(self.writer.folder, lambda snapshot: snapshot) as snapshot:
                embeddings = reuse_embeddings(snapshot.statistics, words)
                training = dict(snapshot.description.counts.get("training") or {})
                return embeddings, {**training, "without_vector_now": share_without_vector(words, embeddings)}
        embeddings = Embeddings.train(words, learner, track=self.stage(TRAINING), folder=segment)
        share = share_without_vector(words, embeddings)
        return embeddings, {"documents": len(words), "without_vector": share, "without_vector_now": share}

    def _counts(self, segment: Path, words: WordTable) -> dict[str, Any]:
        folder = self.writer.folder
        roots = [address_of(root) if is_address(root) else stored_root(folder, root) for root in self.request.roots]
        return {
            **live_counts([segment], NO_TOMBSTONES),
            "words": len(words.vocabulary),
            "sources": {"roots": roots, "made_by": made_by()} if roots else None,
            **skipped_counts(self.skipped),
        }


def live_counts(segments: Iterable[Path], tombstones: NDArray[np.int64]) -> dict[str, Any]:
    """Counts of live documents, copies and files for a snapshot; the first broken and failed files by name."""
    totals: Counter[str] = Counter()
    labels: dict[str, Counter[str]] = {"repositories": Counter(), "languages": Counter(), "kinds": Counter()}
    entries: list[FileEntry] = []
    for path in segments:
        dead = tombstones[tombstones[:, 0] == int(path.name), 1]
        with DocumentTable(path / NAME) as documents:
            counts = documents.counts(dead)
        for name, counter in labels.items():
            counter.update(counts[name])
        totals += Counter(documents=counts["documents"], copies=counts["copies"])
        files, dead_numbers = FileTable.of_segment(path).entries(), set(dead.tolist())
        entries += [entry for number, entry in enumerate(files) if number not in dead_numbers]
    broken, failed = (
        sorted(f"{entry.repository}/{entry.path}" for entry in entries if entry.state == state)
        for state in (BROKEN, FAILED)
    )
    return {
        **{name: totals[name] for name in ("documents", "copies")},
        **{name: dict(sorted(counter.items())) for name, counter in labels.items()},
        "files": len(entries),
        "source_bytes": sum(entry.bytes for entry in entries),
        "broken": len(broken),
        "failed": len(failed),
        "broken_files": broken[:NAMED_FILES],
        "failed_files": failed[:NAMED_FILES],
        "text_files": count_text_files(entry.path for entry in entries),
    }


def skipped_counts(skipped: Skipped) -> dict[str, Any]:
    """The counts of a snapshot that say what was skipped."""
    return {"skipped": dict(sorted(skipped.counts.items())), "unreadable_files": list(skipped.unreadable)}


def dense_rankers(config: BuildConfig) -> Iterator[Ranker]:
    """Created one at a time, so that only one ranker's vectors are in memory."""
    return (create_ranker(name, vectors=config.vectors) for name in FITTED[1:])


def _draft(segments: Sequence[tuple[Path, int]], statistics: Path, counts: Mapping[str, object]) -> Description:
    """The description of files that are not committed yet, to search them before the commit."""
    return Description(0, "", statistics.name, tuple((path.name, n) for path, n in segments), counts=counts)


def _peak_memory() -> int:
    """The peak memory of this process or its largest child; 0 where the system does not report it."""
    if sys.platform == "win32":
        return 0
    import resource

    own, child = (resource.getrusage(which).ru_maxrss for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    if (status := Path("/proc/self/status")).is_file():  # Linux counts who started this process into its ru_maxrss
        own = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return max(own, child) * (1 if sys.platform == "darwin" else 1024)


def versions() -> dict[str, str]:
    """Versions of Python, this package, and libraries that decide what an index holds."""
    names = ("numpy", "faiss-cpu", "tree-sitter", "PyStemmer")
    distributions = {"ncs": "neural-code-search"} | {name: name for name in names}
    versions = {name: installed_version(distribution) or "unknown" for name, distribution in distributions.items()}
    return {"python": platform.python_version(), **versions}


def add_rankers(folder: Path | str, texts: Sequence[str], *, track: Track = silent) -> dict[str, float]:
    """Fit (or fit again) rankers, written as `unif:head=HEAD`, over the documents of an index; the seconds of each. If
    one fails, the index is unchanged. Raises what opening an index raises, IndexBusy, and BadInput."""
    folder, clock = Path(folder), Clock()
    check_trust(folder, read_description(folder))  # fail before a ranker asks its server
    rankers = requested_rankers(texts)
    names = [ranker.name for ranker in rankers]
    with open_writer(folder) as writer, open_snapshot(folder, lambda snapshot: snapshot) as snapshot:
        if len(snapshot.segments) > 1 and not all(ranker.can_extend for ranker in rankers):
            raise BadInput(f"{folder} has been updated; compact it first: ncs update --compact -i {folder}")
        copies = [writer.copy_folder(segment.path, without=names) for segment in snapshot.segments]
        statistics = writer.copy_folder(snapshot.statistics, copies[0].name, without=names)
        for ranker in rankers:
            with clock(ranker.name):
                _fit(ranker, copies, statistics, track)
        parts = [(path, segment.documents) for path, segment in zip(copies, snapshot.segments, strict=True)]
        tombstones = snapshot.tombstones.copy()
        for path, segment in zip(copies, snapshot.segments, strict=True):  # new numbers are above all old ones
            tombstones[tombstones[:, 0] == int(segment.name), 0] = int(path.name)
        description = snapshot.description
        counts = {**description.counts, "seconds": {**description.counts.get("seconds", {}), **clock.seconds}}
        if HEAD in names and len(parts) == 1:
            with Snapshot(folder, _draft(parts, statistics, counts)) as new:
                counts["head"] = weigh_head(new)
        before: Sequence[str] = description.config.get("rankers", ())  # type: ignore[assignment]
        others = [text for text in before if read_ranker(text)[0] not in names]
        writer.commit(
            parts,
            statistics,
            tombstones=tombstones,
            config={**description.config, "rankers": [*others, *texts]},
            counts=counts,
            notes=description.notes,
            versions=description.versions,
        )
    return clock.seconds


def _fit(ranker: Ranker, segments: Sequence[Path], statistics: Path, track: Track) -> None:
    first, *later = segments
    with DocumentTable(first / NAME) as documents:
        ranker.fit(WordTable.load(first), Embeddings.load(statistics), documents, track=track)
        ranker.save(statistics, first)
    for segment in later:
        with DocumentTable(segment / NAME) as documents:
            ranker.extend(statistics, segment, WordTable.load(segment), documents)
