"""Measures against ir_measures and hand counts; intervals and p-values against what is known by counting."""

from __future__ import annotations

import math
import random
from itertools import product

import ir_measures
import numpy as np
import pytest

from evaluation.measures import MEASURES, challenge_ndcg, check, compare, evaluate, interval, parse_measure, ranking
from ncs.errors import BadInput
from ncs.types import Qrels, Run

THEIRS = {
    "answered@k": "Success@{k}",
    "mrr": "RR",
    "mrr@k": "RR@{k}",
    "ndcg": "nDCG",
    "ndcg@k": "nDCG@{k}",
    "map": "AP",
    "map@k": "AP@{k}",
    "recall@k": "R@{k}",
    "precision@k": "P@{k}",
}


def random_judgments(seed: int) -> tuple[Qrels, Run]:
    """40 queries over 60 documents: some without hits, some without relevant documents, no equal scores."""
    rng = random.Random(seed)
    documents = [f"d{i}" for i in range(60)]
    qrels, run = {}, {}
    for i in range(40):
        judged = rng.sample(documents, rng.randint(1, 12))
        grades = {document: rng.choice([-1, 0, 0, 1, 1, 2, 3]) for document in judged}
        if max(grades.values()) <= 0:  # pytrec_eval 0.5.11 sometimes never ends where all grades are 0 and -1
            grades = dict.fromkeys(grades, 0)
        qrels[f"q{i}"] = grades
        if rng.random() < 0.85:
            found = rng.sample(documents, rng.randint(1, 40))
            scores = rng.sample(range(-1000, 1000), len(found))
            run[f"q{i}"] = {document: score / 8 for document, score in zip(found, scores, strict=True)}
    return qrels, run


def theirs(qrels: Qrels, run: Run, measure: str) -> dict[str, float]:
    parsed = ir_measures.parse_measure(measure)
    judgments = [ir_measures.Qrel(q, d, grade) for q, grades in qrels.items() for d, grade in grades.items()]
    scored = [ir_measures.ScoredDoc(q, d, score) for q, scores in run.items() for d, score in scores.items()]
    return {metric.query_id: metric.value for metric in ir_measures.iter_calc([parsed], judgments, scored)}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 5, 10, 100])
@pytest.mark.parametrize("measure", sorted(THEIRS))
def test_every_measure_agrees_with_ir_measures_query_by_query(measure: str, k: int, seed: int) -> None:
    qrels, run = random_judgments(seed)
    ours = evaluate(qrels, run, measure.replace("@k", f"@{k}"))
    assert list(ours) == list(qrels)
    assert ours == pytest.approx(theirs(qrels, run, THEIRS[measure].format(k=k)), abs=1e-6)


def test_every_measure_is_compared_with_ir_measures_one_way_or_another() -> None:
    assert set(MEASURES) - set(THEIRS) == {"first_rank", "ndcg_within", "ndcg_all"}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("within", [True, False])
def test_the_ndcg_of_codesearchnet_is_trec_evals_with_gains_for_grades(within: bool, seed: int) -> None:
    """trec_eval's gain is the grade, so 2^grade - 1 is put in its place; within: only annotated documents are run."""
    signed, run = random_judgments(seed)
    qrels = {query: {id: max(grade, 0) for id, grade in grades.items()} for query, grades in signed.items()}
    gains = {query: {id: 2**grade - 1 for id, grade in grades.items()} for query, grades in qrels.items()}
    annotated = {query: {id: s for id, s in scores.items() if id in qrels[query]} for query, scores in run.items()}
    expected = theirs(gains, annotated if within else run, "nDCG")
    counted = [query for query, grades in qrels.items() if any(grades.values())]
    ours = evaluate(qrels, run, "ndcg_within" if within else "ndcg_all")
    assert list(ours) == counted
    assert len(counted) < len(qrels)
    assert ours == pytest.approx({query: expected[query] for query in counted}, abs=1e-6)


def test_the_hand_count_of_codesearchnets_ndcg_holds_for_mean_grades() -> None:
    """Grades are means over annotators: 2.5 and 1; x is not annotated and takes a rank only over the whole corpus."""
    qrels = {"q": {"a": 2.5, "b": 1.0, "c": 0.0}, "nothing": {"a": 0.0}}
    run = {"q": {"x": 4.0, "b": 3.0, "c": 2.0, "a": 1.0}}
    ideal = (2**2.5 - 1) + 1 / math.log2(3)
    within = 1 + (2**2.5 - 1) / math.log2(4)
    everything = 1 / math.log2(3) + (2**2.5 - 1) / math.log2(5)
    assert challenge_ndcg(qrels, run, within=True) == pytest.approx({"q": within / ideal})
    assert challenge_ndcg(qrels, run, within=False) == pytest.approx({"q": everything / ideal})


def test_codesearchnets_ndcg_looks_at_300_documents() -> None:
    run = {"q": {f"x{i}": 1000.0 - i for i in range(300)} | {"a": 1.0}}
    assert evaluate({"q": {"a": 1}}, run, "ndcg_all") == {"q": 0.0}
    assert evaluate({"q": {"a": 1, "x299": 1}}, run, "ndcg_all")["q"] > 0


def test_first_rank_is_the_inverse_of_the_reciprocal_rank() -> None:
    qrels, run = random_judgments(0)
    inverse = {query: 1 / value if value else 0.0 for query, value in evaluate(qrels, run, "mrr").items()}
    assert evaluate(qrels, run, "first_rank") == pytest.approx(inverse)


# Where the tools differ from us. A third case cannot be tested: pytrec_eval 0.5.11 sometimes loops for ever
# over a query whose grades are 0 and -1 only; here such a query has no relevant document and counts 0.


def test_a_query_with_only_negative_grades_counts_zero() -> None:
    for measure in THEIRS:
        assert evaluate({"q": {"a": -1}}, {"q": {"a": 1.0}}, measure.replace("@k", "@5")) == {"q": 0.0}


def test_equal_scores_keep_the_order_of_the_run_while_trec_eval_takes_the_last_id_first() -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}
    assert ranking(run["q"]) == ["a", "b"]
    assert evaluate(qrels, run, "mrr")["q"] == 1.0
    assert theirs(qrels, run, "RR")["q"] == 0.5


def test_scores_that_differ_by_less_than_a_float32_are_different_here_and_equal_in_trec_eval() -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"b": 1.0, "a": 1.0 + 1e-12}}
    assert evaluate(qrels, run, "mrr")["q"] == 1.0
    assert theirs(qrels, run, "RR")["q"] == 0.5


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ({}, {"q": {"d": 1.0}}, "qrels are empty"),
        ({"q": {"d": 1}}, {}, "run is empty"),
        ({"q": {"d": 1}}, {"q": {"d": 1.0}, "x": {"d": 1.0}}, "1 of the run's 2 queries are not judged, first 'x'"),
        ({"q": {"d": 1}}, {"q": {"d": math.nan}}, "score of document 'd' is NaN"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_one_line(qrels: Qrels, run: Run, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        check(qrels, run)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("measure", ["f1", "mrr@0", "recall", "ndcg@ten", "first_rank@3", ""])
def test_an_unknown_measure_is_refused_with_the_known_ones(measure: str) -> None:
    with pytest.raises(BadInput, match=r"there are: answered@k"):
        parse_measure(measure)


def test_the_p_value_of_few_queries_is_the_share_of_all_exchanges_at_least_as_uneven() -> None:
    ours = {"a": 0.9, "b": 0.5, "c": 0.4, "d": 1.0, "e": 0.2}
    theirs = {"e": 0.3, "d": 0.25, "c": 0.1, "b": 0.5, "a": 0.1}
    differences = np.array([ours[query] - theirs[query] for query in ours])
    sums = np.array([differences @ signs for signs in product([1, -1], repeat=5)])
    counted = (np.abs(sums) >= abs(differences.sum()) - 1e-12).mean()
    found = compare(ours, theirs)
    assert found.p == pytest.approx(counted)
    assert found.difference == pytest.approx(differences.mean())
    assert found.queries == 5


def test_the_interval_of_a_mean_is_the_normal_one_for_many_queries() -> None:
    rng = random.Random(3)
    values = {str(i): rng.random() for i in range(2000)}
    sample = np.array(list(values.values()))
    half = 1.96 * sample.std(ddof=1) / np.sqrt(len(sample))
    assert interval(values) == pytest.approx((sample.mean() - half, sample.mean() + half), abs=half / 10)


def test_pairing_makes_the_interval_narrower_than_the_runs_own_ones() -> None:
    rng = random.Random(4)
    hard = {str(i): rng.random() for i in range(300)}
    better = {query: value + 0.01 * rng.random() for query, value in hard.items()}
    found = compare(better, hard)
    assert 0 < found.low < found.difference < found.high
    low, high = interval(hard)
    assert found.high - found.low < (high - low) / 20
    assert found.p < 0.001


def test_equal_runs_differ_by_nothing() -> None:
    values = {"a": 0.5, "b": 0.0}
    found = compare(values, dict(reversed(values.items())))
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_the_same_seed_gives_the_same_interval() -> None:
    rng = random.Random(5)
    ours, theirs = ({str(i): rng.random() for i in range(50)} for _ in range(2))
    assert compare(ours, theirs, seed=1) == compare(ours, theirs, seed=1)
    assert compare(ours, theirs, seed=1) != compare(ours, theirs, seed=2)


def test_runs_over_different_queries_are_refused() -> None:
    with pytest.raises(BadInput, match="'b' is in one only"):
        compare({"a": 1.0, "b": 1.0}, {"a": 1.0})
    with pytest.raises(BadInput, match="no queries"):
        compare({}, {})
