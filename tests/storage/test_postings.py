"""BM25 postings against brute force, and themselves in pieces and in segments."""

from __future__ import annotations

import math
import mmap
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.errors import BadInput, IndexDamaged
from ncs.storage import postings as module
from ncs.storage.postings import Postings, PostingTable, Term, TermStatistics, build
from ncs.text.stems import stem
from ncs.types import FIELDS, Field
from tests.words import Words
from tests.words import table_of as table

K1, B = 1.2, 0.75
PLAIN: Mapping[Field, float] = {"name": 1, "doc": 1}
UNEVEN: Mapping[Field, float] = {"name": 3, "doc": 0.5, "calls": 1}


def postings(documents: Sequence[Words], weights: Mapping[Field, float] = PLAIN) -> Postings:
    return build(table(documents), weights=weights, k1=K1, b=B)


def reloaded(built: Postings, folder: Path) -> Postings:
    built.save(folder / "statistics", folder / "segment", "bm25")
    part = PostingTable.load(folder / "segment" / "bm25")
    return Postings([part], TermStatistics.load(folder / "statistics" / "bm25"))


def assert_same(one: Postings, other: Postings) -> None:
    for name in ("offsets", "rows", "impacts", "lengths"):
        left, right = getattr(one.tables[0], name), getattr(other.tables[0], name)
        assert (left.tobytes(), left.dtype) == (right.tobytes(), right.dtype)


def brute_force(documents: Sequence[Words], weights: Mapping[Field, float], words: Sequence[str]) -> list[float]:
    """BM25 as it is written in the papers, a document and a word at a time."""
    texts = []
    for document in documents:
        tf: Counter[str] = Counter()
        for field, weight in weights.items():
            for word in document.get(field, ()):
                tf[stem(word)] += weight  # type: ignore[assignment]
        texts.append(+tf)  # without zeros
    lengths = [sum(tf.values()) for tf in texts]
    mean = sum(lengths) / len(lengths) or 1
    scores = []
    for tf, length in zip(texts, lengths, strict=True):
        scores.append(0.0)
        for word in map(stem, words):
            df = sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            scores[-1] += idf * tf[word] / (tf[word] + K1 * (1 - B + B * length / mean))
    return scores


VOCABULARY = ("open", "close", "file", "files", "socket", "read", "reading", "http", "404", "naïve")
WORDS = st.sampled_from(VOCABULARY)
DOCUMENT = st.dictionaries(st.sampled_from(["name", "doc", "calls"]), st.lists(WORDS, max_size=6))
WEIGHTS = st.fixed_dictionaries({field: st.sampled_from([0, 0.5, 1, 2, 3.25]) for field in ("name", "doc", "calls")})


@given(
    documents=st.lists(DOCUMENT, min_size=1, max_size=12),
    weights=WEIGHTS,
    words=st.lists(WORDS, max_size=5),
    k=st.integers(1, 14),
    data=st.data(),
)
def test_any_corpus_in_any_segments_is_ranked_as_by_brute_force(
    documents: list[Words], weights: Mapping[Field, float], words: list[str], k: int, data: st.DataObject
) -> None:
    masks = st.lists(st.booleans(), min_size=len(documents), max_size=len(documents))
    allowed, live = np.array(data.draw(masks)), np.array(data.draw(masks))
    whole = postings(documents, weights)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(documents)), max_size=3)))
    parts = [table(documents[a:b]) for a, b in zip([0, *cuts], [*cuts, len(documents)], strict=True)]
    tables = [build(part, weights=weights, k1=K1, b=B, statistics=whole.statistics).tables[0] for part in parts]
    split = Postings(tables, whole.statistics, live)
    scores = brute_force(documents, weights, words)
    for built, mask in ((whole, allowed), (split, allowed & live)):
        hits = built.search(words, k, allowed=allowed)
        rows = [row for row in range(len(documents)) if mask[row] and scores[row] > 0]
        assert [score for _, score in hits] == pytest.approx(sorted((scores[row] for row in rows), reverse=True)[:k])
        assert all(score == pytest.approx(scores[row]) and row in rows for row, score in hits)
        assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
        assert hits == built.search(data.draw(st.permutations(words)), k, allowed=allowed)
    every = np.arange(len(documents))
    for word in map(stem, words):
        assert split.scores({word: 2.0}, every).tolist() == whole.scores({word: 2.0}, every).tolist()
        assert split.rows_with(word).tolist() == [row for row in whole.rows_with(word).tolist() if live[row]]
        assert (split.df(word), split.idf_of(word)) == (whole.df(word), whole.idf_of(word))
    assert np.concatenate([each.lengths for each in tables]).tolist() == whole.tables[0].lengths.tolist()


def test_a_word_that_the_statistics_lack_has_the_frequency_of_its_own_segment() -> None:
    old = postings([{"name": ["read", "file"]}, {"name": ["open"]}])
    new = build(table([{"name": ["zibble"]}, {"name": ["zibble", "file"]}]), weights=PLAIN, statistics=old.statistics)
    both = Postings([*old.tables, *new.tables], old.statistics)
    assert both.df("file") == 1
    assert [row for row, _ in both.search(["zibble"], 5)] == [2, 3]
    assert both.terms(["zibbles", "nope"]) == [Term("zibbles", "zibbl", 2), Term("nope", "nope", 0)]
    assert both.idf_of("zibbl") == pytest.approx(math.log(1 + 0.5 / 2.5))


def test_ties_at_the_cut_go_to_the_lower_rows() -> None:
    expected = [row for row in range(50) if row % 3]
    built = postings([{"name": ["same", "word"] if row in expected else ["other", "thing"]} for row in range(50)])
    for k in (1, 2, 7, 33, 40):
        assert [row for row, _ in built.search(["same"], k)] == expected[:k]


def test_bad_settings_and_searches_are_refused() -> None:
    with pytest.raises(BadInput, match="no field 'nme'"):
        build(table([]), weights={"nme": 1})  # type: ignore[dict-item]
    for weight in (-1, float("nan")):
        with pytest.raises(BadInput, match="weight"):
            build(table([]), weights={"name": weight})
    for k1, b in ((-1, B), (K1, 1.5)):
        with pytest.raises(BadInput, match=r"k1=-1|b=1\.5"):
            build(table([]), weights=PLAIN, k1=k1, b=b)
    with pytest.raises(BadInput, match="must be at least 1"):
        postings([{}]).search(["file"], 0)


def random_documents(n: int) -> list[Words]:
    draw = random.Random(7)
    return [{field: draw.choices(VOCABULARY, k=draw.randrange(5)) for field in FIELDS} for _ in range(n)]


def test_postings_sorted_on_disk_and_saved_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = random_documents(100)
    whole = postings(documents, UNEVEN)
    monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr("ncs.files.SMALL_BYTES", 0)
    assert_same(whole, postings(documents, UNEVEN))
    words = table(documents)
    words.work_folder = tmp_path
    on_disk = build(words, weights=UNEVEN, k1=K1, b=B)
    assert isinstance(on_disk.tables[0].rows, np.memmap)
    assert [*tmp_path.iterdir()] == []
    assert_same(whole, on_disk)
    loaded = reloaded(on_disk, tmp_path)
    assert_same(whole, loaded)
    assert isinstance(loaded.tables[0].rows.base.base, mmap.mmap)  # type: ignore[union-attr]
    assert loaded.statistics.in_code.tolist() == whole.statistics.in_code.tolist()
    for count in (0, 2):
        loaded = reloaded(postings([{}] * count), tmp_path / f"{count}")
        assert (len(loaded), loaded.search(["file"], 3)) == (count, [])


def test_files_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    for name, kind in (("rows", np.int32), ("impacts", np.float32), ("offsets", np.int64)):
        postings(random_documents(100)).save(tmp_path, tmp_path, "bm25")
        np.save(tmp_path / "bm25" / f"{name}.npy", np.zeros(3, kind))
        with pytest.raises(IndexDamaged, match="do not fit each other; build the index again"):
            PostingTable.load(tmp_path / "bm25")
