"""BM25 against a hand computation, brute force and bm25s."""

from __future__ import annotations

import math
import mmap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncs.errors import BadInput, IndexDamaged
from ncs.storage import postings as lexical
from ncs.storage import postings_builder as lexical_build
from ncs.storage.postings import Postings
from ncs.storage.postings_builder import build
from ncs.storage.words import WordTable
from ncs.storage.words_builder import WordTableBuilder, batch_words
from ncs.text.stems import stem
from ncs.types import FIELDS, Field

Words = Mapping[Field, Sequence[str]]
K1, B = 1.2, 0.75


def table(documents: Sequence[Words]) -> WordTable:
    builder = WordTableBuilder()
    builder.add(*batch_words([[document.get(field, ()) for field in FIELDS] for document in documents]))
    return builder.finish()


def postings(documents: Sequence[Words], weights: Mapping[Field, float] | None = None) -> Postings:
    return build(table(documents), weights=weights or {"name": 1, "doc": 1}, k1=K1, b=B)


def brute_force(documents: Sequence[Words], weights: Mapping[Field, float], words: Sequence[str]) -> list[float]:
    """BM25 as it is written in the papers, a document and a word at a time."""
    texts = []
    for document in documents:
        tf: defaultdict[str, float] = defaultdict(float)
        for field, weight in weights.items():
            for word in document.get(field, ()):
                tf[stem(word)] += weight
        texts.append(tf)
    lengths = [sum(tf.values()) for tf in texts]
    mean = sum(lengths) / len(lengths) or 1
    scores = []
    for tf, length in zip(texts, lengths, strict=True):
        score = 0.0
        for word in map(stem, words):
            df = sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            if word in tf:
                score += idf * tf[word] / (tf[word] + K1 * (1 - B + B * length / mean))
        scores.append(score)
    return scores


def test_three_documents_score_as_computed_by_hand() -> None:
    found = postings(
        [
            {"name": ["hide", "keyboard"], "doc": ["hides", "the", "keyboard"]},
            {"name": ["show", "keyboard"]},
            {"name": ["read", "file"], "doc": ["reads", "a", "file"]},
        ]
    )
    # lengths 5, 2, 5, mean 4; "keyboard" stands twice in the first and once in the second of N = 3 documents
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    first = idf * 2 / (2 + 1.2 * (0.25 + 0.75 * 5 / 4))
    second = idf * 1 / (1 + 1.2 * (0.25 + 0.75 * 2 / 4))
    [best, next_best] = found.search(["keyboards"], 10)
    assert (best[0], next_best[0]) == (0, 1)
    assert [best[1], next_best[1]] == pytest.approx([first, second])


def test_a_weight_counts_the_words_of_a_field_that_many_times() -> None:
    documents: list[Words] = [
        {"name": ["open", "file"], "doc": ["file", "x", "y"]},
        {"name": ["close"], "doc": ["open", "file"]},
    ]
    repeated: list[Words] = [{"name": list(d["name"]) * 3, "doc": d["doc"]} for d in documents]
    weighted = postings(documents, {"name": 3, "doc": 1})
    plain = postings(repeated)
    assert weighted.impacts.tobytes() == plain.impacts.tobytes()
    assert weighted.rows.tobytes() == plain.rows.tobytes()


def test_a_field_without_weight_is_not_read() -> None:
    found = postings([{"name": ["alpha"], "doc": ["beta"]}, {"name": ["gamma"]}], {"name": 1, "doc": 0})
    assert found.search(["beta"], 5) == []
    assert found.lengths.tolist() == [1, 1]


WORDS = st.sampled_from(["open", "close", "file", "files", "socket", "read", "reading", "http", "404", "naïve"])
DOCUMENT = st.dictionaries(st.sampled_from(["name", "doc", "calls"]), st.lists(WORDS, max_size=6))
WEIGHTS = st.fixed_dictionaries({field: st.sampled_from([0.5, 1, 2, 3.25]) for field in ("name", "doc", "calls")})


@settings(deadline=None, max_examples=150)
@given(
    documents=st.lists(DOCUMENT, min_size=1, max_size=12),
    weights=WEIGHTS,
    words=st.lists(WORDS, max_size=5),
    k=st.integers(1, 14),
    data=st.data(),
)
def test_any_corpus_is_ranked_as_by_brute_force(
    documents: list[Words], weights: Mapping[Field, float], words: list[str], k: int, data: st.DataObject
) -> None:
    allowed = data.draw(st.lists(st.booleans(), min_size=len(documents), max_size=len(documents)))
    built = postings(documents, weights)
    want = brute_force(documents, weights, words)
    got = built.search(words, k, allowed=np.array(allowed))
    rows = [row for row in range(len(documents)) if allowed[row] and want[row] > 0]
    assert [score for _, score in got] == pytest.approx(sorted((want[row] for row in rows), reverse=True)[:k])
    assert all(score == pytest.approx(want[row]) and row in rows for row, score in got)
    assert got == sorted(got, key=lambda hit: (-hit[1], hit[0]))
    assert got == built.search(data.draw(st.permutations(words)), k, allowed=np.array(allowed))
    for row, score in got:
        assert sum(share.score for share in built.shares(words, row)) == pytest.approx(score)


def test_ties_at_the_cut_go_to_the_lower_rows() -> None:
    documents: list[Words] = [{"name": ["same", "word"] if row % 3 else ["other", "thing"]} for row in range(50)]
    found = postings(documents)
    want = [row for row in range(50) if row % 3]
    for k in (1, 2, 7, 33, 40):
        assert [row for row, _ in found.search(["same"], k)] == want[:k]


def test_the_mask_is_honoured_before_the_cut() -> None:
    found = postings([{"name": ["file"]}, {"name": ["file", "a"]}, {"name": ["file", "a", "b"]}])
    allowed = np.array([False, False, True])
    assert [row for row, _ in found.search(["file"], 1, allowed=allowed)] == [2]
    with pytest.raises(BadInput, match="mask"):
        found.search(["file"], 1, allowed=allowed[:2])


def test_a_repeated_word_of_the_question_counts_each_time() -> None:
    found = postings([{"name": ["read", "file"]}, {"name": ["read"]}, {"name": ["x"]}])
    once, twice = found.search(["file"], 1)[0][1], found.search(["file", "files"], 1)[0][1]
    assert twice == 2 * once


def test_documents_without_a_word_of_the_question_are_never_returned() -> None:
    found = postings([{"name": ["a"]}, {}, {"name": ["b"]}, {"doc": []}])
    assert [row for row, _ in found.search(["b"], 10)] == [2]


@pytest.mark.parametrize("words", [[], ["unknown"]])
def test_a_question_without_known_words_finds_nothing(words: list[str]) -> None:
    assert postings([{"name": ["a"]}]).search(words, 3) == []


@pytest.mark.parametrize("documents", [[], [{}], [{}, {}]], ids=["no document", "one empty", "two empty"])
def test_a_corpus_without_words_is_built_saved_loaded_and_asked(documents: list[Words], tmp_path: Path) -> None:
    built = postings(documents)
    built.save(tmp_path)
    for found in (built, Postings.load(tmp_path)):
        assert len(found) == len(documents)
        assert found.search(["file"], 3) == []


def test_one_document_is_found_with_a_finite_score() -> None:
    [(row, score)] = postings([{"name": ["file"]}]).search(["file"], 10)
    assert row == 0
    assert score == pytest.approx(math.log(1 + 0.5 / 1.5) / 2.2)


@pytest.mark.parametrize("k", [0, -1])
def test_asking_for_no_hits_is_refused(k: int) -> None:
    with pytest.raises(BadInput, match="ask for 1 or more"):
        postings([{"name": ["file"]}]).search(["file"], k)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": {"nme": 1}}, "no field called 'nme'"),
        ({"weights": {"name": -1}}, "weight"),
        ({"weights": {"name": float("nan")}}, "weight"),
        ({"weights": {"name": 1}, "k1": -1}, "k1"),
        ({"weights": {"name": 1}, "b": 1.5}, "b=1.5"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        build(table([]), **settings)  # type: ignore[arg-type]


def test_terms_tell_stems_document_counts_and_unknown_words() -> None:
    found = postings([{"name": ["hiding"]}, {"doc": ["hide", "hides"]}, {"name": ["x"]}])
    hide, nope = found.terms(["hides", "nope"])
    assert (hide.word, hide.stem, hide.documents) == ("hides", "hide", 2)
    assert (nope.id, nope.documents) == (None, 0)
    assert found.stems.word(hide.id or 0) == "hide"


def random_documents(n: int) -> list[Words]:
    rng = np.random.default_rng(7)
    words = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200)]
    return [
        {field: [words[i] for i in np.minimum(rng.zipf(1.4, rng.integers(0, 5)) - 1, 199)] for field in FIELDS}
        for _ in range(n)
    ]


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = random_documents(100)
    weights: dict[Field, float] = {"name": 3, "doc": 0.5, "calls": 1}
    whole = postings(documents, weights)
    monkeypatch.setattr(lexical_build, "CHUNK", 7)
    pieces = postings(documents, weights)
    for name in ("offsets", "rows", "impacts", "lengths"):
        assert getattr(whole, name).tobytes() == getattr(pieces, name).tobytes()
        assert getattr(whole, name).dtype == getattr(pieces, name).dtype


@pytest.mark.parametrize("merged", [1, 50, 10_000])
def test_postings_put_aside_on_disk_and_merged_in_parts_are_the_same(
    merged: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = random_documents(100)
    weights: dict[Field, float] = {"name": 3, "doc": 0.5, "calls": 1}
    whole = postings(documents, weights)
    monkeypatch.setattr(lexical_build, "CHUNK", 7)
    monkeypatch.setattr(lexical_build, "MERGED", merged)
    words = table(documents)
    words.room = tmp_path
    pieces = build(words, weights=weights, k1=K1, b=B)
    assert isinstance(pieces.rows, np.memmap)
    assert isinstance(pieces.impacts, np.memmap)
    assert [*tmp_path.iterdir()] == []
    for name in ("offsets", "rows", "impacts", "lengths"):
        assert getattr(whole, name).tobytes() == getattr(pieces, name).tobytes()


@pytest.mark.parametrize("block", [1, 7, 64, 99, 100])
def test_blocks_change_nothing(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = postings(random_documents(100) + random_documents(100)[::-1])  # every document twice: all scores tie
    allowed = np.random.default_rng(3).random(200) < 0.5
    asked = [
        (["waa", word, "wac"], k, mask) for word in ("wab", "wcd") for k in (1, 5, 500) for mask in (None, allowed)
    ]
    whole = [found.search(words, k, allowed=mask) for words, k, mask in asked]
    monkeypatch.setattr(lexical, "BLOCK", block)
    assert [found.search(words, k, allowed=mask) for words, k, mask in asked] == whole


def test_saved_postings_answer_alike_from_mapped_files(tmp_path: Path) -> None:
    built = postings(random_documents(300))
    built.save(tmp_path)
    loaded = Postings.load(tmp_path)
    for word in ("waa", "wab", "wbc", "wcd"):
        assert loaded.search([word, "waa"], 20) == built.search([word, "waa"], 20)
    assert isinstance(loaded.rows.base.base, mmap.mmap)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["rows.npy", "impacts.npy", "offsets.npy", "lengths.npy", "vocabulary.txt"])
def test_missing_empty_and_truncated_files_are_refused(name: str, tmp_path: Path) -> None:
    postings(random_documents(300)).save(tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(IndexDamaged, match="build the index again"):
        Postings.load(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(IndexDamaged, match="build the index again"):
        Postings.load(tmp_path)
    path.unlink()
    with pytest.raises(IndexDamaged, match="build the index again"):
        Postings.load(tmp_path)


def test_files_of_different_builds_do_not_fit(tmp_path: Path) -> None:
    postings(random_documents(300)).save(tmp_path)
    np.save(tmp_path / "rows.npy", np.zeros(3, np.int32))
    with pytest.raises(IndexDamaged, match="do not fit"):
        Postings.load(tmp_path)


def bm25f(
    documents: Sequence[Words], weights: Mapping[Field, float], b_of: Mapping[Field, float], words: Sequence[str]
) -> list[float]:
    """BM25F as Robertson and Zaragoza write it, a document and a word at a time."""
    mean = {field: np.mean([len(document.get(field, ())) for document in documents]) for field in weights}
    scores = [0.0] * len(documents)
    for word in map(stem, words):
        df = sum(any(stem(w) == word for field in weights for w in document.get(field, ())) for document in documents)
        for row, document in enumerate(documents):
            tf = 0.0
            for field, weight in weights.items():
                held = [stem(w) for w in document.get(field, ())]
                if held:
                    tf += weight * held.count(word) / (1 - b_of[field] + b_of[field] * len(held) / mean[field])
            scores[row] += math.log(1 + (len(documents) - df + 0.5) / (df + 0.5)) * tf / (tf + K1)
    return scores


def test_fields_with_a_length_normalisation_of_their_own_score_as_bm25f_is_written() -> None:
    rng = np.random.default_rng(0)
    said = ["read", "file", "line", "path", "open", "close", "text"]
    fields: tuple[Field, ...] = ("name", "doc", "calls")
    documents: list[Words] = [
        {field: tuple(rng.choice(said, rng.integers(0, 9))) for field in fields} for _ in range(60)
    ]
    weights: Mapping[Field, float] = {"name": 3, "doc": 1, "calls": 0.5}
    b_of: Mapping[Field, float] = {"name": 0.3, "doc": 0.75, "calls": 1.0}
    found = build(table(documents), weights=weights, k1=K1, b_of=b_of)
    question = ["read", "file", "lines", "file"]
    expected = bm25f(documents, weights, b_of, question)
    scores = dict(found.search(question, len(documents)))
    assert [scores.get(row, 0.0) for row in range(60)] == pytest.approx(expected, abs=1e-4)


def test_a_field_without_b_of_its_own_takes_b() -> None:
    documents: list[Words] = [{"name": ("read", "file"), "doc": ("file",)}, {"doc": ("read", "a", "long", "file")}]
    weights: Mapping[Field, float] = {"name": 3, "doc": 1}
    found = build(table(documents), weights=weights, k1=K1, b=0.5, b_of={"doc": 0.9})
    expected = bm25f(documents, weights, {"name": 0.5, "doc": 0.9}, ["file"])
    assert [score for _, score in sorted(found.search(["file"], 2))] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("b_of", [{"nope": 0.5}, {"name": 1.5}])
def test_an_impossible_normalisation_is_refused(b_of: Mapping[Field, float]) -> None:
    with pytest.raises(BadInput):
        build(table([{"name": ("a",)}]), weights={"name": 1}, b_of=b_of)
