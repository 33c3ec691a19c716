"""What candidates say about each other, against counts by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.search.signals import consensus, diversity, naming
from ncs.search.signals.direction import OPPOSITES, direction, ways
from ncs.storage.uses import References, ReferencesBuilder, batch_references
from ncs.types import Document
from tests.words import table


def document(*calls: str) -> Document:
    return Document("", "", "", 1, 1, "java", "method", "", "", {"calls": calls})


def references(*documents: tuple[str, ...]) -> References:
    builder = ReferencesBuilder()
    builder.add(*batch_references([document(*calls) for calls in documents]))
    return builder.finish()


def test_a_name_used_twice_in_a_document_counts_once_and_documents_are_counted() -> None:
    found = references(("open", "read", "open"), ("read",), ())
    assert {name: int(n) for name, n in zip(found.names, found.documents, strict=True)} == {"open": 1, "read": 2}
    ids, lengths = found.of(np.array([1, 0, 2]))
    assert [found.names.word(int(id)) for id in ids] == ["read", "open", "read"]
    assert lengths.tolist() == [1, 2, 0]


def test_lifts_are_share_times_rarity_times_repositories() -> None:
    found = references(("hide", "log"), ("hide", "log"), ("log",), ("other",), ("other",))
    agreed = consensus.agree(found, np.array([0, 1, 1]), np.array([0, 1, 2]), np.array([1.0, 0.5, 0.5]))
    hide = 1.5 / 2 * math.log(6 / 3) * math.log(1 + 2)
    log = 2.0 / 2 * math.log(6 / 4) * math.log(1 + 2)
    assert [found.names.word(int(id)) for id in agreed.names] == ["hide", "log"]
    assert agreed.lifts == pytest.approx([hide, log])
    assert agreed.support == 2
    assert agreed.scores(found, np.array([2, 0, 3])) == pytest.approx([log / (hide + log), 1, 0])


def test_one_repository_alone_is_no_consensus() -> None:
    found = references(("hide",), ("hide",), ("x",))
    rows, weights = np.array([0, 1]), np.array([1.0, 1.0])
    assert consensus.agree(found, np.array([4, 4]), rows, weights).gate == 0
    assert 0 < consensus.agree(found, np.array([4, 5]), rows, weights).gate < 0.2


def test_documents_that_use_no_names_agree_on_nothing() -> None:
    found = references((), ())
    agreed = consensus.agree(found, np.array([0, 1]), np.array([0, 1]), np.array([1.0, 1.0]))
    assert agreed.gate == 0
    assert agreed.scores(found, np.array([0, 1])).tolist() == [0, 0]


def test_documents_that_score_nothing_agree_on_nothing() -> None:
    found = references(("hide",), ("hide",))
    agreed = consensus.agree(found, np.array([0, 1]), np.array([0, 1]), np.zeros(2))
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
    assert diversity.saturated(scores, files, k, factor=factor) == want


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
    assert ways(["how", "to", "restart"]) == []
    assert all(OPPOSITES[OPPOSITES[stem]] == stem for stem in OPPOSITES)
