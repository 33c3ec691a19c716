"""The encoder that reads words in context: what it reads of a function, and its place in the default ranker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import cast

import numpy as np
import pytest

from ncs.index import Index
from ncs.learn.context_encoder import LONGEST_FIELD, LONGEST_FUNCTION, READ_IN_CONTEXT, distinct_words
from ncs.learn.general import GeneralScorer, general_head
from ncs.search.hybrid import CONTEXT_CANDIDATES, HybridRanker
from ncs.search.rankers import load_ranker
from tests import corpus

CODE = """
def quit_program(code):
    '''Leave.'''
    sys.exit(code)


def read_settings(path):
    return json.loads(open(path).read())


def draw_circle(canvas, radius):
    canvas.ellipse(radius, radius)


def empty():
    pass
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("context")
    (root / "a.py").write_text(CODE)
    with Index.build(root, root / ".ncs", config=corpus.QUICK) as opened:
        yield opened


def scorer_of(index: Index) -> GeneralScorer:
    return GeneralScorer(general_head(), index.facts.words, 10.0)


def test_of_a_function_each_stem_is_read_once_a_field_in_order_and_unknown_ones_not() -> None:
    stems = np.array([4, 2, 4, -1, 2, 7, 7, 5])
    lengths = np.array([[3, 1, 1], [0, 0, 0], [0, 2, 1]])
    words, fields, offsets = distinct_words(stems, lengths, known=8)
    assert words.tolist() == [4, 2, 2, 7, 5]
    assert fields.tolist() == [0, 0, 2, 1, 2]
    assert offsets.tolist() == [0, 3, 3, 5]
    many = np.arange(LONGEST_FIELD + 5)
    words, _, offsets = distinct_words(many, np.array([[len(many)]]), known=1_000)
    assert words.tolist() == many[:LONGEST_FIELD].tolist()
    assert offsets.tolist() == [0, LONGEST_FIELD]


def test_functions_are_encoded_alike_alone_and_together_and_up_to_the_longest() -> None:
    encoder, draw = general_head().context, np.random.default_rng(0)
    sizes = np.array([3, 0, 70, 12, 64, 1, 9, 30, 2, 5, 41])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    stems, fields = draw.integers(0, 12_000, offsets[-1]), draw.integers(0, len(READ_IN_CONTEXT), offsets[-1])
    together = encoder.encode_functions(stems, fields, offsets)
    for row, (start, end) in enumerate(pairwise(offsets)):
        end = min(end, start + LONGEST_FUNCTION)
        alone = encoder.encode_functions(stems[start:end], fields[start:end], np.array([0, end - start]))[0]
        np.testing.assert_allclose(together[row], alone, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), sizes > 0, atol=1e-5)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("terminate the process", "quit_program"),
        ("parse a config file", "read_settings"),
        ("paint shape", "draw_circle"),
    ],
)
def test_the_encoder_of_the_package_knows_what_functions_are_about(index: Index, query: str, name: str) -> None:
    rows = index.documents.rows()[index.functions()[index.documents.rows()]]
    scores = scorer_of(index).contexts(query.split(), rows)
    assert index.documents.document(int(rows[np.argmax(scores)])).name == name
    assert scores.min() >= 0


def test_what_the_words_of_a_function_add_is_its_cosine(index: Index) -> None:
    rows = index.documents.rows()[index.functions()[index.documents.rows()]]
    scorer, query = scorer_of(index), ["terminate", "process"]
    shares = [scorer.explain_context(query, row) for row in rows.tolist()]
    positive = [max(0.0, sum(own.values())) for own in shares]
    np.testing.assert_allclose(positive, scorer.contexts(query, rows), atol=1e-5)
    assert set(shares[0]) == {"quit", "program", "code", "sys", "exit"}


def test_it_says_nothing_without_two_known_words(index: Index) -> None:
    rows = index.documents.rows()
    for query in (["qqzzq"], ["program"], ["program", "programs", "qqzzq"]):
        assert not scorer_of(index).contexts(query, rows).any()
    assert scorer_of(index).contexts(["program", "leave"], rows).any()
    assert scorer_of(index).contexts(["file"], rows[:0]).shape == (0,)


def test_the_default_ranker_lifts_leading_candidates_and_loses_none(index: Index) -> None:
    query = "terminate program or path"
    rankers = (load_ranker("hybrid", index.snapshot, context=weight) for weight in (1.5, 0))
    own, without = (cast(HybridRanker, ranker).rank(query, 10) for ranker in rankers)
    assert len(own.rows) <= CONTEXT_CANDIDATES
    differences = dict(zip(own.rows, own.signals["context"], strict=True))
    assert not any(without.signals["context"])
    assert min(differences.values()) >= 0
    assert set(own.rows) == set(without.rows)
    best = max(differences, key=lambda row: differences[row])
    assert index.documents.document(best).name == "quit_program"
    assert differences[best] > 0.05
