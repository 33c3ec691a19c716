"""Words and their ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.errors import IndexDamaged
from ncs.text.vocabulary import ExtendedVocabulary, Vocabulary, merge

WORDS = st.lists(st.text(alphabet="abcéж读_", min_size=1, max_size=4), unique=True, max_size=30)


@given(WORDS)
def test_every_word_has_the_number_of_its_place_in_byte_order(words: list[str]) -> None:
    vocabulary = Vocabulary.of(words)
    assert list(vocabulary) == sorted(words, key=str.encode)
    for number, word in enumerate(sorted(words, key=str.encode)):
        assert vocabulary.id(word) == number
        assert vocabulary.word(number) == word
    assert vocabulary.id("zzz") is None
    assert "" not in vocabulary


def test_a_cut_vocabulary_is_refused(tmp_path: Path) -> None:
    Vocabulary.of(["alpha", "beta"]).save(tmp_path)
    (tmp_path / "vocabulary.txt").write_bytes(b"alpha\n")
    with pytest.raises(IndexDamaged, match=r"vocabulary\.txt"):
        Vocabulary.load(tmp_path)


@given(WORDS, st.lists(WORDS, max_size=3))
def test_merged_vocabularies_keep_the_ids_of_the_base_and_give_every_other_word_one(
    words: list[str], others: list[list[str]]
) -> None:
    base = Vocabulary.of(words)
    merged, ids = merge(base, [Vocabulary.of(other) for other in others])
    assert list(merged)[: len(base)] == list(base)
    assert len(merged) == len(set(words).union(*others)) == len(set(merged))
    for other, numbers in zip(others, ids, strict=True):
        assert [merged.word(int(id)) for id in numbers] == sorted(other, key=str.encode)
    assert [merged.id(word) for word in merged] == list(range(len(merged)))
    assert merged.id("zzz") is None


@given(WORDS, WORDS)
def test_ranks_are_in_the_byte_order_of_old_and_new_words(words: list[str], more: list[str]) -> None:
    new = [word for word in more if word not in words]
    merged = ExtendedVocabulary(Vocabulary.of(words), Vocabulary.of(new))
    ranks = merged.ranks(np.arange(len(merged)))
    ordered = [merged.word(int(id)) for id in np.argsort(ranks)]
    assert ordered == sorted([*words, *new], key=str.encode)
