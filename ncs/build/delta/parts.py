"""What a delta consists of beside its documents: words and names in the base's numbers, postings, vectors, places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.build.delta.alike import save_near_duplicates
from ncs.build.delta.files import COPIES as FILE_COPIES
from ncs.build.delta.files import ROWS as FILE_ROWS
from ncs.build.delta.rows import ROWS
from ncs.build.delta.standing import save_places
from ncs.build.delta.store import COPIES
from ncs.build.delta.uses import DOCUMENTS
from ncs.build.delta.vocabulary import GONE, NUMBERS
from ncs.learn.embeddings import Embeddings
from ncs.build.frozen_stats import taken
from ncs.storage.postings import SPELLINGS, Postings, stem_all
from ncs.search.rankers import create_ranker
from ncs.search.bm25 import Bm25Ranker
from ncs.search.ncs import MEAN, NcsRanker
from ncs.storage.uses import ROOM as USED
from ncs.storage.uses import References
from ncs.storage.documents import NAME, Store
from ncs.storage.definitions import Symbols
from ncs.types import FIELDS
from ncs.text.vocabulary import Vocabulary, numbered
from ncs.storage.words import COUNTS, WordTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.build.delta.making import Made
    from ncs.types import Mask

    Numbers = NDArray[np.int64]


def save_parts(data: Path, path: Path, made: Made) -> None:
    """All but the documents, into the delta of the new generation at `path`. data: the folder that stands."""
    from ncs.build.delta import ROOM

    room = path / ROOM
    np.save(room / ROWS, made.stack.held)
    rows = made.stack.row[made.decided.copies[:, 0]]
    np.save(room / COPIES, np.stack([rows, made.decided.copies[:, 1].astype(np.int32)], axis=1))
    made.filed.save(room)
    made.collected.sources.save(room)
    with Store(room / NAME) as store:
        Symbols.of(store.names()).save(room)
        save_places(path, room, made, store)
    _save_file_bounds(room, made)
    words = made.collected.words
    _, late = made.stack.living()
    living = only(words, late)
    gone = _save_words(path, room, made, living)
    _save_references(path, room, made, late)
    _save_postings(path, room, living, gone)
    _save_vectors(path, room, living)
    save_near_duplicates(data, path, made, wanted=made.deduplicate)


def only(words: WordTable, kept: Mask) -> WordTable:
    """The table with nothing in the rows that are not kept."""
    lengths = np.diff(words.offsets)
    stays = np.repeat(kept, len(FIELDS))
    offsets = np.zeros(len(words.offsets), np.int64)
    np.cumsum(np.where(stays, lengths, 0), out=offsets[1:])
    return WordTable(words.vocabulary, np.asarray(words.ids[np.repeat(stays, lengths)]), offsets)


def _save_file_bounds(room: Path, made: Made) -> None:
    """How many rows and copies each file has."""
    base, late = np.full(len(made.filed.base), -1, np.int64), np.flatnonzero(made.filed.order < 0)
    base[made.filed.order[made.filed.order >= 0]] = np.flatnonzero(made.filed.order >= 0)
    place = np.concatenate([base[made.base.file], late[made.delta.file]])[made.stack.held]
    for name, places in ((FILE_ROWS, place), (FILE_COPIES, made.decided.copy_places)):
        bounds = np.zeros(len(made.filed.order) + 1, np.int64)
        np.cumsum(np.bincount(places, minlength=len(made.filed.order)), out=bounds[1:])
        np.save(room / name, bounds)


def _lost(made: Made) -> Numbers:
    """Documents of the base that are no rows any more."""
    base, _ = made.stack.living()
    return np.flatnonzero(~base)


def _save_words(path: Path, room: Path, made: Made, living: WordTable) -> list[str]:
    """The numbers of the delta's words, and which words no document has any more; these words."""
    base = WordTable.of_folder(path)
    numbers = numbered(base.vocabulary, living.vocabulary)
    counts = np.zeros(len(base.vocabulary) + int(np.count_nonzero(numbers >= len(base.vocabulary))), np.int64)
    counts[: len(base.vocabulary)] = np.load(path / COUNTS, mmap_mode="r", allow_pickle=False)
    ids, _ = base.select_rows(FIELDS, _lost(made))
    counts -= np.bincount(ids, minlength=len(counts))
    counts += np.bincount(numbers[living.ids], minlength=len(counts))
    gone = np.flatnonzero(counts == 0).astype(np.int32)
    np.save(room / NUMBERS, numbers)
    np.save(room / GONE, gone)
    own = dict(zip(numbers.tolist(), range(len(numbers)), strict=True))
    early = [base.vocabulary.word(id) for id in gone.tolist() if id < len(base.vocabulary)]
    return early + [living.vocabulary.word(own[id]) for id in gone.tolist() if id >= len(base.vocabulary)]


def _save_references(path: Path, room: Path, made: Made, late: Mask) -> None:
    made.collected.references.save(room)
    base, own = References.of_folder(path), made.collected.references
    numbers = numbered(base.names, own.names)
    documents = np.zeros(len(base.names) + int(np.count_nonzero(numbers >= len(base.names))), np.int32)
    documents[: len(base.names)] = base.documents
    documents -= np.bincount(base.of(_lost(made))[0], minlength=len(documents)).astype(np.int32)
    used = own.of(np.flatnonzero(late))[0]
    documents += np.bincount(numbers[used], minlength=len(documents)).astype(np.int32)
    np.save(room / USED / NUMBERS, numbers)
    np.save(room / USED / GONE, np.flatnonzero(documents == 0).astype(np.int32))
    np.save(room / USED / DOCUMENTS, documents)


def _save_postings(path: Path, room: Path, living: WordTable, gone: list[str]) -> None:
    base, ranker = Postings.of_folder(path / "bm25"), Bm25Ranker()
    ranker.learnt = base
    ranker.fit(living)
    ranker.save(room)
    own = ranker.postings.stems
    numbers = numbered(base.stems, own)
    spellings = np.zeros(len(base.stems) + int(np.count_nonzero(numbers >= len(base.stems))), np.int64)
    spellings[: len(base.stems)] = np.load(path / "bm25" / SPELLINGS, mmap_mode="r", allow_pickle=False)
    stacked = dict(zip(own, numbers.tolist(), strict=True))
    known = np.load(room / NUMBERS, allow_pickle=False) < len(Vocabulary.of_folder(path))
    for old, stem in zip(known.tolist(), stem_all(living.vocabulary), strict=True):
        if stacked[stem] >= len(base.stems) or not old:
            spellings[stacked[stem]] += 1
    for stem in stem_all(gone):
        number = stacked.get(stem, base.stems.id(stem))
        if number is not None:
            spellings[number] -= 1
    np.save(room / "bm25" / NUMBERS, numbers)
    np.save(room / "bm25" / GONE, np.flatnonzero(spellings == 0).astype(np.int32))


def _save_vectors(path: Path, room: Path, living: WordTable) -> None:
    """Document vectors with the base's word vectors, idf and mean."""
    learnt = Embeddings.of_folder(path)
    numbers = np.load(room / NUMBERS, allow_pickle=False)
    vectors = taken(learnt.vectors, numbers)
    for name in ("ncs", "ncs_centred"):
        ranker = create_ranker(name, vectors="exact")
        if not isinstance(ranker, NcsRanker):
            raise TypeError(name)
        idf = taken(np.load(path / name / "idf.npy", mmap_mode="r", allow_pickle=False), numbers)
        mean = (
            np.load(path / name / MEAN, allow_pickle=False) if ranker.centre else np.zeros(vectors.shape[1], np.float32)
        )
        ranker.learnt = (idf, mean)
        ranker.fit(living, Embeddings(vectors, learnt.method))
        (room / name).mkdir()
        ranker.index.save(room / name)
