"""Heads that translate: impacts against bm25, scores against plain loops, torch against numpy, saved and read back."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ncs.errors import BadInput, IndexDamaged
from ncs.index import BuildConfig, Index
from ncs.search.bm25 import Bm25Ranker
from ncs.search.signals.head import HeadSignal
from ncs.text.vocabulary import Vocabulary
from ncs.types import Document
from unif.head import Head, Side, opened, tokens_of
from unif.impacts import K1, B, saturated, table_impacts
from unif.ranker import UnifRanker
from unif.tokenization import Stems
from unif.translation import Translation

STEMS = ("close", "file", "keyboard", "open", "read", "socket", "word", "write")
TEXTS = {
    "openFile": "opens a file and reads all words",
    "closeSocket": "closes the socket; sockets are closed twice",
    "readWords": "reads words of a file, word by word",
    "hideKeyboard": "hides the keyboard",
    "writeFile": "writes words into an open file",
}


def translation(seed: int = 0, dim: int = 4, **settings: float) -> Translation:
    draw, n = np.random.default_rng(seed), len(STEMS) + 1
    tables = [draw.normal(size=(n, dim)).astype(np.float32) for _ in range(2)]
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in tables]
    weights = [draw.normal(size=n).astype(np.float32) for _ in range(2)]
    told = {"power": 3.0, "half": 0.4, "same": 0.7, **settings}
    return Translation(unit[0], unit[1], weights[0], weights[1], told["power"], told["half"], told["same"])


def head(seed: int = 0, found: Translation | None = None) -> Head:
    draw, tokens = np.random.default_rng(seed + 9), Stems(Vocabulary.of(STEMS))
    sides = []
    for _ in range(2):
        arrays = {
            name: draw.normal(size=(len(STEMS) + 1, d)).astype(np.float32) for name, d in (("table", 4), ("scores", 1))
        }
        sides.append(Side("bag", tokens, arrays, {"pooling": "scores", "longest": None}))
    return Head(sides[0], sides[1], "fields", {}, found or translation(seed))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    documents = [
        Document(
            id=name, repository="", path="", start_line=1, end_line=3, language="java", kind="method", name=name,
            qualified_name=name, words={"name": (name,), "doc": (doc,), "calls": (name[:4],)}, code="",
        )
        for name, doc in TEXTS.items()
    ]  # fmt: skip
    config = BuildConfig(deduplicate=False)
    return Index.of(documents, tmp_path_factory.mktemp("translation") / "index", config=config)


def by_loop(
    found: Translation, ids: Sequence[int], impacts: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> list[float]:
    """The formula of the module, word by word."""
    scores = []
    for row in impacts:
        total = weights = 0.0
        for t in set(ids):
            met = 0.0
            for u in range(len(row)):
                near = max(0.0, float(found.query[t] @ found.code[u + 1])) ** found.power
                met += row[u] * math.exp(found.counted[u + 1]) * (near + found.same * (t == u + 1))
            weights += math.exp(found.asked[t])
            total += math.exp(found.asked[t]) * met / (met + found.half)
        scores.append(total / weights)
    return scores


def test_scores_are_those_of_the_formula_word_by_word() -> None:
    draw = np.random.default_rng(3)
    impacts = draw.random((6, len(STEMS))) * (draw.random((6, len(STEMS))) < 0.5)
    found = translation()
    np.testing.assert_allclose(
        found.scores([2, 5, 2, 8], csr_matrix(impacts)), by_loop(found, [2, 5, 8], impacts), rtol=1e-5
    )
    assert not found.scores([], csr_matrix(impacts)).any()
    assert not found.scores([0], csr_matrix(impacts)).any()
    assert found.scores([1], csr_matrix((0, len(STEMS)))).shape == (0,)
    assert not found.scores([1], csr_matrix((2, len(STEMS)))).any()


def test_what_words_weigh_is_what_bm25_gives_them_but_for_idf(index: Index) -> None:
    words = index.words()
    tokens = head().code.tokens
    mapped = tokens_of(head().code, words.vocabulary)
    impacts, mean = table_impacts(words, mapped)
    bm25 = Bm25Ranker()
    bm25.fit(words)
    postings = bm25.postings
    assert mean < float(np.mean(postings.lengths))  # words that the head does not know are not counted
    known = saturated(_counted(index), float(_counted(index).sum(axis=1).mean()))
    np.testing.assert_allclose(impacts.toarray(), known.toarray(), rtol=1e-6)
    assert tokens.ids(["sockets", "closes"]) == [6, 1]


def _counted(index: Index) -> csr_matrix:
    """By hand from the texts: names count three times, all else once."""
    from ncs.text.stems import stem_all
    from ncs.text.tokens import tokenize

    counts = np.zeros((len(TEXTS), len(STEMS)), np.float32)
    for row, (name, doc) in enumerate(TEXTS.items()):
        for text, times in ((name, 3), (doc, 1), (name[:4], 1)):
            for stem in stem_all(tokenize(text)):
                if stem in STEMS:
                    counts[row, STEMS.index(stem)] += times
    return csr_matrix(counts)


def test_saturation_is_that_of_bm25() -> None:
    counts = csr_matrix(np.array([[3.0, 1.0], [0.0, 2.0]], np.float32))
    got = saturated(counts, 3.0).toarray()
    long, short = K1 * (1 - B + B * 4 / 3), K1 * (1 - B + B * 2 / 3)
    np.testing.assert_allclose(got, [[3 / (3 + long), 1 / (1 + long)], [0, 2 / (2 + short)]], rtol=1e-6)


def test_a_head_without_likeness_orders_as_bm25_with_its_own_idf_does(index: Index) -> None:
    plain = translation(same=1.0, half=1e6)
    nothing = np.zeros_like(plain.query)
    flat = Translation(nothing, nothing, plain.asked, np.zeros_like(plain.asked), 3.0, 1e6, 1.0)
    impacts, _ = table_impacts(index.words(), tokens_of(head().code, index.words().vocabulary))
    ids = [2, 6]
    weights = np.exp(plain.asked[ids].astype(np.float64))
    expected = impacts.toarray()[:, np.array(ids) - 1] @ weights / weights.sum() / 1e6
    np.testing.assert_allclose(flat.scores(ids, impacts), expected, rtol=1e-5)


def test_a_ranker_orders_by_both_standings_and_reads_itself_back(index: Index, tmp_path: Path) -> None:
    head().save(tmp_path / "run" / "head")
    ranker = UnifRanker(head=str(tmp_path / "run"))
    ranker.fit(index.words())
    text, rows = "how to close sockets", np.arange(len(TEXTS))
    cosines = (ranker.vectors.vectors(rows) @ ranker.question(text)).astype(np.float64)
    impacts, _ = table_impacts(index.words(), tokens_of(ranker.head.code, index.words().vocabulary))
    words = ranker.head.translation.scores([1, 6], impacts) if ranker.head.translation else cosines
    expected = sum((each - each.mean()) / each.std() for each in (cosines, words))
    found = dict(ranker.search(text, 5))
    np.testing.assert_allclose([found[row] for row in rows.tolist()], expected, atol=1e-4)
    np.testing.assert_allclose(HeadSignal.of(ranker).standing(ranker.question(text), rows, text), expected, atol=1e-4)
    assert [row for row, _ in ranker.search(text, 2)] == np.argsort(-expected)[:2].tolist()
    ranker.save(tmp_path)
    again = UnifRanker()
    again.load(tmp_path)
    assert dict(again.search(text, 5)) == pytest.approx(found, abs=1e-5)


def test_a_function_without_a_field_stands_where_its_other_words_put_it(index: Index, tmp_path: Path) -> None:
    head().save(tmp_path / "run" / "head")
    ranker = UnifRanker(head=str(tmp_path / "run"))
    ranker.fit(index.words())
    text = "close socket"
    whole = ranker.closer(text, np.array([3]))
    assert whole is not None
    assert ranker.closer_without(text, index.words(), 3, "literals") == pytest.approx(float(whole[0]))  # it has none
    assert ranker.closer_without(text, index.words(), 1, "doc") != pytest.approx(float(whole[0]))
    rest = ranker.without(index.words(), [3], index.store.documents([3]), "literals")
    np.testing.assert_allclose(rest[0], ranker.vectors.vectors(np.array([3]))[0], atol=1e-5)


def test_questions_lose_grammar_and_repetition_and_words_are_stems() -> None:
    assert head().asked("how to close the sockets and close a file") == [1, 6, 2]
    assert head().asked("unheard") == []
    assert not head().question("unheard").any()


def test_a_saved_translation_is_read_back_and_a_cut_one_is_refused(tmp_path: Path) -> None:
    head().save(tmp_path / "head")
    again = opened(tmp_path).translation
    assert again is not None
    impacts = csr_matrix(np.eye(len(STEMS)))
    np.testing.assert_array_equal(again.scores([3, 4], impacts), translation().scores([3, 4], impacts))
    np.save(tmp_path / "head" / "translation" / "asked.npy", np.zeros(3, np.float32))
    with pytest.raises(IndexDamaged, match="train it again"):
        opened(tmp_path)
    (tmp_path / "head" / "head.json").write_text(json.dumps({"format": 1}))
    with pytest.raises((BadInput, IndexDamaged)):
        opened(tmp_path)
