"""The nearest word of a document for each word of a question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ncs.index import Index
from ncs.search.hybrid import HybridRanker
from ncs.search.signals.soft_match import agreement
from ncs.storage.words import WordTable
from ncs.storage.words_builder import WordTableBuilder, batch_words
from ncs.types import FIELDS
from tests import corpus


def table(*names: str) -> WordTable:
    """Documents whose names are these words and that hold nothing else."""
    builder = WordTableBuilder()
    builder.add(*batch_words([[name.split() if field == "name" else [] for field in FIELDS] for name in names]))
    return builder.finish()


def test_each_word_counts_its_best_cosine_by_its_weight_and_an_opposite_none() -> None:
    words = table("conceal keyboard", "show keyboard", "", "hide")
    vectors = np.zeros((len(words.vocabulary), 3), np.float32)
    for word, vector in {"hide": (2, 0, 0), "conceal": (3, 4, 0), "show": (9, 1, 0), "keyboard": (0, 0, 5)}.items():
        vectors[words.vocabulary.id(word)] = vector
    asked = {"hide": 3.0, "keyboard": 1.0, "unheard": 1.0}
    found = agreement(words, vectors, np.array([3, 0, 1, 2]), asked)
    assert found == pytest.approx([3 / 5, (3 * 0.6 + 1) / 5, 1 / 5, 0])


def test_words_that_nobody_has_and_no_rows_give_zeros() -> None:
    words = table("hide")
    vectors = np.ones((1, 2), np.float32)
    assert agreement(words, vectors, np.array([0]), {"unheard": 1.0}).tolist() == [0]
    assert agreement(words, vectors, np.zeros(0, np.int64), {"hide": 1.0}).tolist() == []


def test_as_a_signal_of_the_default_ranker_it_is_one_more_share(tmp_path: Path) -> None:
    with Index.build(corpus.write(tmp_path / "repos"), tmp_path / "idx") as index:
        with_it, without = index.fitted("hybrid", soft_match=0.5), index.ranker("hybrid")
        assert isinstance(with_it, HybridRanker)
        assert isinstance(without, HybridRanker)
        ranking, plain = (ranker.rank("hide soft keyboard", 5) for ranker in (with_it, without))
    assert "soft_match" not in plain.signals
    assert ranking.signals["soft_match"][0] == pytest.approx(0.5)  # every word is there itself
    assert 0 < ranking.signals["soft_match"][-1] <= 0.5
