"""A snapshot of several segments with tombstones reads as one segment of the documents that are left."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ncs.build.ingest import Collector, pack_batch
from ncs.errors import IndexDamaged
from ncs.storage.document_facts import DocumentFacts, write_facts, write_languages
from ncs.storage.documents import NAME, Documents, DocumentTable
from ncs.storage.files import FILES, FileEntry, FileTable
from ncs.storage.filters import Filters
from ncs.storage.names import Symbol
from ncs.storage.snapshot import SEGMENTS, STATISTICS, TOMBSTONES, Description, Snapshot
from ncs.types import FIELDS, Document, Field

PATHS = ("src/cookies.py", "tests/test_net.py", "lib/auth_jar.py", "examples/net.py", "a/authentication.py")
BARE = 99
"""Of a file without a path, as in corpora of bare functions."""
NAMES = ("setPadding", "set_padding", "setPaddingLeft", "Session", "open_file", "openFile")
FIELD_CHOICES: Sequence[Sequence[Field]] = (FIELDS, ("name",), ("calls", "doc"), ("comments",))


@dataclass
class File:
    """A file and its documents; gone: a tombstone."""

    repository: str
    path: str
    documents: list[Document]
    gone: bool = False


def make_file(rng: random.Random, segment: int, number: int) -> File:
    repository, path = rng.choice(("app", "owner/lib")), f"{segment}.{number}/{rng.choice(PATHS)}"
    if number == BARE:
        repository, path = "corpus", ""
    documents = []
    for line in range(1, rng.randint(1, 5)):
        body, unique = rng.randrange(4), f"{segment} {number} {line}"
        name = NAMES[body] if rng.random() < 0.7 else f"only{segment}x{number}x{line}"
        digest = f"{segment}{rng.randrange(6)}" if rng.random() < 0.3 else unique  # copies within a segment
        if digest != unique:
            body, name, unique = int(digest[-1]) % 4, f"copied{digest}", digest
        words: dict[Field, tuple[str, ...]] = {
            "name": (name,),
            "calls": tuple(f"call{body}x{n}" for n in range(15)),
            "types": tuple(f"Type{body}x{n}" for n in range(10)),
            "comments": (f"remark{unique.replace(' ', 'x')}",),
            **({"declared": ("MAX_SIZE", f"OWN_{line}", name)} if body == 3 else {}),
        }
        language, kind = ("java", "class") if body == 3 else ("python", "function")
        scope = rng.choice(("View", "Table"))
        place = (repository, path, line, line + 1)
        labels = (language, kind, name, f"{scope}.{name}")
        content = (words, unique, digest.encode().ljust(16, b"."))
        documents.append(Document(f"{repository}/{path}:{line}", *place, *labels, *content))
    return File(repository, path, documents)


def bury(files: Sequence[File], rng: random.Random) -> None:
    """Some files are gone; those that hold copies of their documents were read again, into a later segment."""
    first: dict[bytes, File] = {}
    for file in files:
        file.gone = rng.random() < 0.3
        for document in file.documents:
            first.setdefault(document.digest, file)
    changed = True
    while changed:
        dead = [file for file in files if not file.gone and any(first[d.digest].gone for d in file.documents)]
        changed = bool(dead)
        for file in dead:
            file.gone = True


def write(folder: Path, segments: Sequence[Sequence[File]]) -> Snapshot:
    """These files as segments; what is gone is a tombstone."""
    parts, dead = [], []
    for number, files in enumerate(segments, 1):
        path = folder / SEGMENTS / f"{number:06}"
        path.mkdir(parents=True)
        with Collector(path, True) as collector:
            entries = [FileEntry(file.repository, file.path, "", "", bytes(16), 1) for file in files]
            documents = [document for file in files for document in file.documents]
            owners = np.repeat(np.arange(len(files)), [len(file.documents) for file in files])
            collector.add(pack_batch(documents), entries, owners)
            collected = collector.finish()
        collected.files_read.save(path / FILES)
        with DocumentTable(path / NAME) as table:
            write_facts(path, collected.uses, collected.words, table, deduplicate=True)
            if number == 1:
                (folder / STATISTICS / path.name).mkdir(parents=True)
                write_languages(folder / STATISTICS / path.name, table)
        parts.append((path.name, len(collected.words)))
        dead += [(number, at) for at, file in enumerate(files) if file.gone]
    (folder / TOMBSTONES).mkdir()
    np.save(folder / TOMBSTONES / "000009.npy", np.array(dead, np.int64).reshape(-1, 2))
    return Snapshot(folder, Description(1, "", "000001", tuple(parts), "000009" if dead else None))


@dataclass
class Readers:
    """All readers of a snapshot. live: its rows without tombstones."""

    snapshot: Snapshot
    documents: Documents
    facts: DocumentFacts
    live: np.ndarray[tuple[int], np.dtype[np.int64]]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Readers:
        live = np.arange(len(snapshot)) if snapshot.live is None else np.flatnonzero(snapshot.live)
        return cls(snapshot, Documents(snapshot), DocumentFacts.open(snapshot), live)

    def numbers_of(self, rows: Iterable[int]) -> list[int]:
        """Rows by their number among the live ones."""
        numbers = {row: number for number, row in enumerate(self.live.tolist())}
        return [numbers[row] for row in rows]


@pytest.fixture(scope="module", params=range(6))
def readers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Readers, Readers]]:
    """Of several segments with tombstones, and of one segment of what is left."""
    folder = tmp_path_factory.mktemp("index")
    rng = random.Random(request.param)
    segments = [[make_file(rng, s, n) for n in range(rng.randint(0, 12))] for s in range(rng.randint(2, 5))]
    segments[0].append(make_file(rng, 0, BARE))
    for files in segments:
        bury(files, rng)
    left = [file for files in segments for file in files if not file.gone]
    many, one = Readers.of(write(folder / "many", segments)), Readers.of(write(folder / "one", [left]))
    with closing(many.documents), closing(one.documents):
        yield many, one


def same_groups(one: Iterable[Hashable], other: Iterable[Hashable]) -> bool:
    """Whether two lists of labels group their positions alike."""
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len({left for left, _ in pairs}) == len({right for _, right in pairs})


def test_documents_their_places_and_filters_are_the_same(readers: tuple[Readers, Readers]) -> None:
    many, one = readers
    rows = np.random.default_rng(1).permutation(len(one.live))
    assert many.snapshot.documents == len(one.live) == len(one.snapshot)
    for read in ("documents", "locations", "ids"):
        assert getattr(many.documents, read)(many.live[rows]) == getattr(one.documents, read)(rows), read
    names = list(many.documents.names())
    assert [names[row] for row in many.live.tolist()] == list(one.documents.names())
    (files, places), (own_files, own_places) = many.documents.files(), one.documents.files()
    assert [places[files[row]] for row in many.live.tolist()] == [own_places[file] for file in own_files.tolist()]
    assert np.flatnonzero(files >= 0).tolist() == many.documents.rows().tolist() == many.live.tolist()
    for filters in (Filters(), Filters("java"), Filters(path="src"), Filters(repository="lib", kind="function")):
        mask, expected = (readers.documents.mask(filters) for readers in (many, one))
        rows_of_mask = many.live if mask is None else np.flatnonzero(mask)
        assert many.numbers_of(rows_of_mask.tolist()) == (
            list(range(len(one.live))) if expected is None else np.flatnonzero(expected).tolist()
        )
    ids = one.documents.ids(range(len(one.live)))
    assert [many.documents.row_of(id) for id in ids] == many.live.tolist()
    assert many.documents.row_of("nobody/knows.py:1") is None


def test_words_and_names_used_are_the_same(readers: tuple[Readers, Readers]) -> None:
    rows = np.random.default_rng(2).permutation(len(readers[1].live))
    contents = []
    for each in readers:
        words, uses, here = each.facts.words, each.facts.uses, each.live[rows]
        selected = [words.select_rows(fields, here) for fields in FIELD_CHOICES]
        used, counts = uses.of(here)
        contents.append(
            (
                [[words.vocabulary.word(id) for id in ids.tolist()] for ids, _ in selected],
                [offsets.tolist() for _, offsets in selected],
                words.lengths(here).tolist(),
                [{uses.names.word(id) for id in ids.tolist()} for ids in np.split(used, np.cumsum(counts))],
                counts.tolist(),
            )
        )
    assert contents[0] == contents[1]


def test_definitions_are_the_same(readers: tuple[Readers, Readers]) -> None:
    many, _ = readers
    names = {name for name, _, _ in many.documents.names()}
    for name in sorted({*names, "setPadd", "onlyx", "nothing", "sess", "MAX_SIZE", "max_size", "OWN_1"}):
        for symbol in (Symbol(name), Symbol(name, ("View",)), Symbol(name, certain=False)):
            (rows, weights), (own_rows, own_weights) = (each.facts.definitions.match(symbol) for each in readers)
            assert many.numbers_of(rows.tolist()) == own_rows.tolist(), symbol
            assert weights.tolist() == own_weights.tolist(), symbol
    assert len(many.facts.definitions.match(Symbol("MAX_SIZE"))[0]) > 1
    assert not len(many.facts.definitions.match(Symbol("max_size"))[0])


def test_roles_titles_and_groups_of_files_are_the_same(readers: tuple[Readers, Readers]) -> None:
    many, one = readers
    rows = np.random.default_rng(3).permutation(len(one.live))
    roles, own = many.facts.file_roles, one.facts.file_roles
    here = many.live[rows]
    assert roles.roles_of(here).tolist() == own.roles_of(rows).tolist()
    assert roles.outlines_of(here).tolist() == own.outlines_of(rows).tolist()
    assert roles.functions()[here].tolist() == own.functions()[rows].tolist()
    for words in ({"cooki": 3.0, "jar": 1.0}, {"auth": 1.0}, {}):
        assert roles.title_match(words, here).tolist() == own.title_match(words, rows).tolist()
    files, own_files = roles.files_of(here), own.files_of(rows)
    assert same_groups(files.tolist(), own_files.tolist())
    assert (files < 0).tolist() == (own_files < 0).tolist()
    assert same_groups(roles.repositories_of(here).tolist(), own.repositories_of(rows).tolist())


def test_near_duplicates_among_the_rows_of_a_query_are_the_same(readers: tuple[Readers, Readers]) -> None:
    many, one = readers
    rows = np.arange(len(one.live))
    clusters, own = many.facts.duplicates.clusters_of(many.live), one.facts.duplicates.clusters_of(rows)
    assert same_groups(np.where(clusters < 0, many.live, clusters).tolist(), np.where(own < 0, rows, own).tolist())
    assert (own >= 0).any()
    for row in many.live.tolist():
        others = many.facts.duplicates.others(row)
        assert row not in others
        assert set(others.tolist()) <= set(many.live.tolist())


def test_every_missing_empty_or_truncated_file_of_facts_is_refused_with_the_remedy(tmp_path: Path) -> None:
    rng = random.Random(0)
    snapshot = write(tmp_path, [[make_file(rng, 0, number) for number in range(5)]])
    segment = snapshot.segments[0].path
    paths = [path for path in segment.rglob("*") if path.is_file() and path.name != NAME]
    assert len(paths) > 30
    for path in paths:
        whole = path.read_bytes()
        for content in (whole[:-2], b"", None):
            path.write_bytes(content) if content is not None else path.unlink()
            with pytest.raises(IndexDamaged, match="build the index again"):
                FileTable.load(segment / FILES) if path.parent.name == "files" else DocumentFacts.open(snapshot)
        path.write_bytes(whole)
    DocumentFacts.open(snapshot)
