"""Signals and factors of the default ranker, against counts by hand."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.search import signals
from ncs.search.signals import OPPOSITES, UNFINISHED, agree, directions, select_hits
from ncs.storage.names import NameUses, batch_uses, name_uses
from ncs.storage.words import WordTableBuilder
from ncs.text.stems import Stems
from ncs.types import Document
from tests.words import table


def uses(*documents: tuple[str, ...]) -> NameUses:
    builder = WordTableBuilder()
    called = [Document("", "", "", 1, 1, "java", "method", "", "", {"calls": calls}) for calls in documents]
    builder.add(*batch_uses(called))
    return name_uses(builder.finish())


def test_lifts_are_share_times_rarity_times_repositories_whatever_a_document_repeats() -> None:
    names = uses(("hide", "log", "hide"), ("hide", "log"), ("log",), ("other",), ("other",))
    consensus = agree(names, np.array([0, 1, 1]), np.array([0, 1, 2]), np.array([1.0, 0.5, 0.5]))
    hide = 1.5 / 2 * math.log(6 / 3) * math.log(1 + 2)
    log = 2.0 / 2 * math.log(6 / 4) * math.log(1 + 2)
    assert [names.names.word(int(id)) for id in consensus.names] == ["hide", "log"]
    assert consensus.lifts == pytest.approx([hide, log])
    assert consensus.support == 2
    assert consensus.scores(names, np.array([2, 0, 3])) == pytest.approx([log / (hide + log), 1, 0])


def test_one_repository_alone_is_no_consensus() -> None:
    names, rows, weights = uses(("hide",), ("hide",), ("x",)), np.array([0, 1]), np.array([1.0, 1.0])
    assert agree(names, np.array([4, 4]), rows, weights).gate == 0
    assert 0 < agree(names, np.array([4, 5]), rows, weights).gate < 0.2


def test_few_good_candidates_among_many_are_no_consensus() -> None:
    names, repositories, rows = uses(*[("hide",)] * 12), np.arange(12, dtype=np.int32), np.arange(12)
    gates = [agree(names, repositories, rows, np.array([1.0] + [rest] * 11)).gate for rest in (0.2, 0.5, 0.8)]
    assert gates[0] < 0.01 < gates[1] < 0.5 < gates[2]


@pytest.mark.parametrize(("names", "score"), [((), 1.0), (("hide",), 0.0)])
def test_documents_without_names_or_scores_agree_on_nothing(names: tuple[str, ...], score: float) -> None:
    used, rows = uses(names, names), np.array([0, 1])
    consensus = agree(used, rows, rows, np.full(2, score))
    assert (consensus.gate, consensus.scores(used, rows).tolist()) == (0, [0, 0])


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
    expected: list[tuple[int, float]] = []
    while left and len(expected) < k:
        now = {at: scores[at] * factor ** (taken.get(int(files[at]), 0)) for at in left}
        best = min(left, key=lambda at: (-now[at], at))
        expected.append((best, float(now[best])))
        left.remove(best)
        if files[best] >= 0:
            taken[int(files[best])] = taken.get(int(files[best]), 0) + 1
    assert select_hits(scores, files, k, factor=factor) == expected


def test_a_name_agrees_where_it_has_the_query_with_its_scope_and_nothing_else() -> None:
    words = table(
        "name: hide soft keyboard", "name: hide", "name: hide soft keyboard when scrolled", "name: open", "doc: hide",
        "name: hide hide", "name: hide; scope: soft keyboard", "name: open; scope: hide soft keyboard",
        "name: hide softkeyboard",
    )  # fmt: skip
    idf = {"hide": 1.0, "soft": 2.0, "keyboard": 1.0}
    overlap = partial(signals.name_overlap, words, Stems(words.vocabulary), np.arange(9), idf)
    assert overlap({}) == pytest.approx([1, 1 / 16, 3 / 5, 0, 0, 1 / 16, 1, 0, 1 / 32])
    assert overlap({"softkeyboard": 3.0})[8] == 1


def test_a_short_function_stands_back_inside_one_project_unless_its_name_is_the_query() -> None:
    lengths, name = np.array([9, 9, 500]), np.array([0.0, 1.0, 0.0])
    assert signals.length_factors(lengths, 1.0, name) == pytest.approx([(1 / 9) ** 0.25, 1, 1])
    assert signals.length_factors(lengths, 0.0, name).tolist() == [1, 1, 1]


CONVERSIONS = ("int to string", "string to int", "string from int", "to string", "sort")
VISIBILITY = ("show keyboard", "hide keyboard", "toggle show hide", "hiding")


@pytest.mark.parametrize(
    ("names", "query", "expected"),
    [
        (CONVERSIONS, "convert int to string", [1, -1, 1, 0, 0]),
        (CONVERSIONS, "string from int", [1, -1, 1, 0, 0]),
        (VISIBILITY, "show soft keyboard", [0, -1, 0, -1]),
        (VISIBILITY, "show or hide", [0, 0, 0, 0]),
    ],
)
def test_a_name_of_the_other_direction_or_an_opposite_counts_against_it(
    names: tuple[str, ...], query: str, expected: list[int]
) -> None:
    words = table(*(f"name: {name}" for name in names))
    rows, stems = np.arange(len(names)), Stems(words.vocabulary)
    assert signals.name_direction(words, stems, rows, query.split()).tolist() == expected


def test_how_to_is_no_direction_and_every_opposite_has_one() -> None:
    assert directions(["how", "to", "restart"]) == []
    assert all(OPPOSITES[OPPOSITES[stem]] == stem for stem in OPPOSITES)


def test_a_small_body_that_says_it_is_not_implemented_counts_less() -> None:
    words = table(
        "calls: not implemented error",
        "types: unsupported operation exception",
        "calls: unimplemented",
        "calls: implemented error",  # which says the opposite
        "identifiers: not implemented",  # a value that Python's operators give back
        "doc: not implemented",  # a comment may speak of something else
        f"calls: not implemented error {'open read ' * 5}",  # one branch of many: thirteen words
    )
    factors = signals.quality_factors(words, Stems(words.vocabulary), np.arange(7))
    assert factors.tolist() == [UNFINISHED, UNFINISHED, UNFINISHED, 1, 1, 1, 1]
