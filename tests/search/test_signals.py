"""Signals and factors of the default ranker, against counts by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.search.signals import consensus, naming, priors, proximity, saturation
from ncs.search.signals.naming import OPPOSITES, direction, directions
from ncs.storage.uses import NameUses, UsesBuilder, batch_uses
from ncs.text.stems import Stems, stem_all
from ncs.types import Document
from tests.words import table


def document(*calls: str) -> Document:
    return Document("", "", "", 1, 1, "java", "method", "", "", {"calls": calls})


def uses(*documents: tuple[str, ...]) -> NameUses:
    builder = UsesBuilder()
    builder.add(*batch_uses([document(*calls) for calls in documents]))
    return builder.finish()


def test_a_name_used_twice_in_a_document_counts_once_and_documents_are_counted() -> None:
    found = uses(("open", "read", "open"), ("read",), ())
    assert {name: int(n) for name, n in zip(found.names, found.documents, strict=True)} == {"open": 1, "read": 2}
    ids, lengths = found.of(np.array([1, 0, 2]))
    assert [found.names.word(int(id)) for id in ids] == ["read", "open", "read"]
    assert lengths.tolist() == [1, 2, 0]


def test_lifts_are_share_times_rarity_times_repositories() -> None:
    found = uses(("hide", "log"), ("hide", "log"), ("log",), ("other",), ("other",))
    agreed = consensus.agree(found, np.array([0, 1, 1]), np.array([0, 1, 2]), np.array([1.0, 0.5, 0.5]))
    hide = 1.5 / 2 * math.log(6 / 3) * math.log(1 + 2)
    log = 2.0 / 2 * math.log(6 / 4) * math.log(1 + 2)
    assert [found.names.word(int(id)) for id in agreed.names] == ["hide", "log"]
    assert agreed.lifts == pytest.approx([hide, log])
    assert agreed.support == 2
    assert agreed.scores(found, np.array([2, 0, 3])) == pytest.approx([log / (hide + log), 1, 0])


def test_one_repository_alone_is_no_consensus() -> None:
    found = uses(("hide",), ("hide",), ("x",))
    rows, weights = np.array([0, 1]), np.array([1.0, 1.0])
    assert consensus.agree(found, np.array([4, 4]), rows, weights).gate == 0
    assert 0 < consensus.agree(found, np.array([4, 5]), rows, weights).gate < 0.2


@pytest.mark.parametrize(("names", "score"), [((), 1.0), (("hide",), 0.0)])
def test_documents_without_names_or_scores_agree_on_nothing(names: tuple[str, ...], score: float) -> None:
    found = uses(names, names)
    agreed = consensus.agree(found, np.array([0, 1]), np.array([0, 1]), np.full(2, score))
    assert (agreed.gate, agreed.scores(found, np.array([0, 1])).tolist()) == (0, [0, 0])


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(-1, 3)), max_size=30),
    st.integers(1, 12),
    st.sampled_from([0.3, 0.5, 1.0]),
)
def test_saturation_is_the_greedy_choice(documents: list[tuple[int, int]], k: int, factor: float) -> None:
    scores = np.array([score / 8 for score, _ in documents])
    files = np.array([file for _, file in documents], np.int64)
    left = list(range(len(documents)))
    taken: dict[int, int] = {}
    want: list[tuple[int, float]] = []
    while left and len(want) < k:
        now = {at: scores[at] * factor ** (taken.get(int(files[at]), 0)) for at in left}
        best = min(left, key=lambda at: (-now[at], at))
        want.append((best, float(now[best])))
        left.remove(best)
        if files[best] >= 0:
            taken[int(files[best])] = taken.get(int(files[best]), 0) + 1
    assert saturation.saturated(scores, files, k, factor=factor) == want


def test_a_name_agrees_where_it_says_the_question_and_nothing_else() -> None:
    words = table(
        "name: hide soft keyboard", "name: hide", "name: hide soft keyboard when scrolled", "name: open", "doc: hide"
    )
    found = naming.agreement(words, np.arange(5), {"hide": 1.0, "soft": 2.0, "keyboard": 1.0})
    assert found == pytest.approx([1, math.sqrt(1 / 4), 3 / 5, 0, 0])


def test_a_name_of_the_other_way_or_an_opposite_is_told_from_the_one_asked_for() -> None:
    words = table(
        "name: int to string", "name: string to int", "name: string from int", "name: to string", "name: sort"
    )
    assert direction(words, np.arange(5), ["convert", "int", "to", "string"]).tolist() == [1, -1, 1, 0, 0]
    assert direction(words, np.arange(5), ["string", "from", "int"]).tolist() == [1, -1, 1, 0, 0]
    words = table("name: show keyboard", "name: hide keyboard", "name: toggle show hide", "name: hiding")
    assert direction(words, np.arange(4), ["show", "soft", "keyboard"]).tolist() == [0, -1, 0, -1]
    assert direction(words, np.arange(4), ["show", "or", "hide"]).tolist() == [0, 0, 0, 0]


def test_how_to_is_no_way_and_every_opposite_has_one() -> None:
    assert directions(["how", "to", "restart"]) == []
    assert all(OPPOSITES[OPPOSITES[stem]] == stem for stem in OPPOSITES)


LONG = " ".join(["open read close send"] * 3)  # twelve words


def body(*documents: str, inside: float = 0.0, outline: tuple[int, ...] = (), named: float = 0.0) -> list[float]:
    rows, names = np.arange(len(documents)), np.full(len(documents), named)
    values: list[float] = priors.body_factors(table(*documents), rows, np.isin(rows, outline), inside, names).tolist()
    return values


def test_twelve_words_are_a_thin_body_and_thirteen_are_not_whatever_stands_around_it() -> None:
    assert body(f"calls: {LONG}", f"calls: {LONG}; literals: x", f"name: {LONG} x; doc: {LONG} x; calls: go") == [
        priors.BODY,
        1.0,
        priors.BODY,
    ]


def test_a_class_is_no_thin_body() -> None:
    assert body("calls: go", "calls: go", outline=(1,)) == [priors.BODY, 1.0]


def test_inside_one_project_thin_bodies_are_worth_as_much() -> None:
    assert body("calls: go", inside=1.0) == [1.0]
    assert body("calls: go", inside=0.5) == pytest.approx([1 - (1 - priors.BODY) / 2])


def test_a_thin_body_whose_name_is_the_question_is_worth_as_much() -> None:
    assert body("calls: go", named=1.0) == body("calls: go", named=4.0) == [1.0]  # 4: and says the question's way
    assert body("calls: go", named=0.5) == pytest.approx([1 - (1 - priors.BODY) / 2])
    assert body("calls: go", named=-3.0) == [priors.BODY]  # it says the opposite


def quality(*documents: str) -> list[float]:
    words = table(*documents)
    values: list[float] = priors.quality_factors(words, Stems(words.vocabulary), np.arange(len(documents))).tolist()
    return values


def test_a_small_body_that_says_it_is_not_written_counts_less() -> None:
    assert quality(
        "calls: not implemented error",
        "types: unsupported operation exception",
        "calls: unimplemented",
        "calls: implemented error",  # which says the opposite
        "identifiers: not implemented",  # a value that Python's operators give back
        "doc: not implemented",  # a comment may speak of something else
        f"calls: not implemented error {LONG}",  # one branch of many
    ) == [priors.UNFINISHED, priors.UNFINISHED, priors.UNFINISHED, 1, 1, 1, 1]


IDF = {"pars": 3.0, "date": 2.0, "file": 1.0}


def near(*documents: str, words: str = "parse date file") -> list[float]:
    words_of, stems = table(*documents, field="calls"), stem_all(words.split())
    values: list[float] = proximity.agreement(
        words_of, Stems(words_of.vocabulary), np.arange(len(documents)), stems, IDF
    ).tolist()
    return values


def test_a_pair_counts_up_to_four_words_apart_and_not_beyond_in_any_order() -> None:
    # pairs of the question: parse date (idf 5), date file (idf 3)
    found = near(
        "parse the date",
        "date we want to parse",  # four words on
        "date that we want to parse",  # five
        "file of dates one two three four parse",
        "parse date file",
        "parse one two three four file",  # no pair of the question at all
    )
    assert found == pytest.approx([5 / 8, 5 / 8, 0, 3 / 8, 1, 0])


def test_words_of_different_documents_are_not_near_and_a_pair_counts_once() -> None:
    assert near("only parse", "date only", "parse date parse date") == [0, 0, 5 / 8]


def test_a_question_of_one_word_or_of_one_word_twice_has_no_pairs() -> None:
    assert near("parse parse", words="parse") == [0]
    assert near("parse parse", words="parse parse") == [0]


def test_only_the_first_candidates_are_read() -> None:
    found = near(*["parse date"] * (proximity.DEPTH + 1), words="parse date")
    assert found == [1.0] * proximity.DEPTH + [0.0]


def test_a_name_stands_beside_its_class_and_comments_say_nothing() -> None:
    found = near("name: parse; scope: date", "doc: parse date", "literals: parse date", words="parse date")
    assert found == [1.0, 0.0, 0.0]
