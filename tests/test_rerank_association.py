"""Words of code that go with a word of the question: counted by hand over documents written for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from ncs.search.signals.association import agreement, associated
from ncs.storage.postings_builder import build
from ncs.storage.words import WordTable
from ncs.storage.words_builder import WordTableBuilder, batch_words
from ncs.types import FIELDS, Field

Documents = Sequence[Mapping[Field, Sequence[str]]]

# of 60 documents 20 say "keyboard"; 15 of these call ime, 12 call hide, 4 call rare; everything calls get
_SAYING: Documents = [
    {
        "doc": ("show", "keyboard"),
        "calls": ("get", *(["ime"] if n < 15 else []), *(["hide"] if n < 12 else []), *(["rare"] if n < 4 else [])),
    }
    for n in range(20)
]
_OTHERS: Documents = [{"name": ("other",), "calls": ("get",)} for _ in range(40)]
DOCUMENTS: Documents = [*_SAYING, *_OTHERS]


def table(documents: Documents) -> WordTable:
    builder = WordTableBuilder()
    builder.add(*batch_words([[document.get(field, ()) for field in FIELDS] for document in documents]))
    return builder.finish()


WORDS = table(DOCUMENTS)
POSTINGS = build(WORDS, weights=dict.fromkeys(FIELDS, 1))


def found(word: str) -> dict[str, float]:
    term = POSTINGS.terms([word])[0]
    return {POSTINGS.stems.word(id): p for id, p in associated(WORDS, POSTINGS, term)}


def test_a_word_goes_with_what_its_documents_call_and_others_do_not() -> None:
    # lifts: ime (15 / 25) / (15 / 60) = 2.4, hide (12 / 25) / (12 / 60) = 2.4; get (20 / 25) / 1 = .8; rare: in 4 only
    assert found("keyboard") == pytest.approx({"ime": 15 / 25, "hide": 12 / 25})


def test_an_opposite_is_never_taken() -> None:
    assert found("show") == pytest.approx({"ime": 15 / 25})  # and not hide, which stands in the same places


def test_an_unknown_word_goes_with_nothing() -> None:
    assert found("zebra") == {}


def test_a_row_is_worth_what_goes_with_the_words_it_lacks() -> None:
    documents: Documents = [*DOCUMENTS, {"name": ("ime",)}, {"name": ("hide", "ime")}, {"name": ("keyboard", "ime")}]
    words = table(documents)
    postings = build(words, weights=dict.fromkeys(FIELDS, 1))
    rows = np.array([59, 60, 61, 62])
    # 21 rows say keyboard now: the last one with ime; the question has one more word, which nothing has
    p, idf = 16 / (21 + 5), postings.idf(["keyboard", "zebra"])
    share = idf["keyboard"] / sum(idf.values())
    assert agreement(words, postings, ["keyboard", "zebra"], rows) == pytest.approx([0, p * share, p * share, 0])


def test_a_small_corpus_has_no_such_words() -> None:
    words = table(DOCUMENTS[:9])
    postings = build(words, weights=dict.fromkeys(FIELDS, 1))
    assert not agreement(words, postings, ["keyboard"], np.arange(9)).any()
