"""Measures against ir_measures and hand counts; intervals and p-values against counts by hand."""

from __future__ import annotations

import math
import random
from itertools import product

import ir_measures
import numpy as np
import pytest

from evaluation import challenge
from evaluation.measures import MEASURES, Comparison, compare, evaluate, interval
from ncs.errors import BadInput
from ncs.types import Qrels, Run

THEIRS = {
    "answered@k": "Success@{k}", "mrr": "RR", "mrr@k": "RR@{k}", "ndcg": "nDCG", "ndcg@k": "nDCG@{k}", "map": "AP",
    "map@k": "AP@{k}", "recall@k": "R@{k}", "precision@k": "P@{k}",
}  # fmt: skip


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
            hits = rng.sample(documents, rng.randint(1, 40))
            scores = rng.sample(range(-1000, 1000), len(hits))
            run[f"q{i}"] = {document: score / 8 for document, score in zip(hits, scores, strict=True)}
    return qrels, run


def theirs(qrels: Qrels, run: Run, measure: str) -> dict[str, float]:
    name, _, k = measure.partition("@")
    known = getattr(ir_measures, name)  # its parser does not run on Python 3.14
    wanted = known @ int(k) if k else known
    judgments = [ir_measures.Qrel(q, d, grade) for q, grades in qrels.items() for d, grade in grades.items()]
    scored = [ir_measures.ScoredDoc(q, d, score) for q, scores in run.items() for d, score in scores.items()]
    return {metric.query_id: metric.value for metric in ir_measures.iter_calc([wanted], judgments, scored)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 10, 100])
@pytest.mark.parametrize("measure", sorted(set(MEASURES) - {"first_rank", "ndcg_within", "ndcg_all"}))
def test_every_measure_agrees_with_ir_measures_query_by_query(measure: str, k: int, seed: int) -> None:
    qrels, run = random_judgments(seed)
    ours = evaluate(qrels, run, measure.replace("@k", f"@{k}"))
    assert list(ours) == list(qrels)
    if measure == "acc@k":  # all relevant documents: a recall of 1
        assert ours == {query: float(value == 1) for query, value in theirs(qrels, run, f"R@{k}").items()}
        assert k == 1 or 0 < sum(ours.values()) < len(ours)
        return
    assert ours == pytest.approx(theirs(qrels, run, THEIRS[measure].format(k=k)), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("within", [True, False])
def test_the_ndcg_of_codesearchnet_is_trec_evals_with_gains_for_grades(within: bool, seed: int) -> None:
    """trec_eval's gain is the grade, so 2^grade - 1 is put in its place; within: only annotated documents are run."""
    signed, run = random_judgments(seed)
    qrels = {query: {id: max(grade, 0) for id, grade in grades.items()} for query, grades in signed.items()}
    gains = {query: {id: 2**grade - 1 for id, grade in grades.items()} for query, grades in qrels.items()}
    annotated = {query: {id: s for id, s in scores.items() if id in qrels[query]} for query, scores in run.items()}
    expected = theirs(gains, annotated if within else run, "nDCG")
    relevant = [query for query, grades in qrels.items() if any(grades.values())]
    ours = evaluate(qrels, run, "ndcg_within" if within else "ndcg_all")
    assert len(relevant) < len(qrels)
    assert ours == pytest.approx({query: expected[query] for query in relevant}, abs=1e-6)


def test_the_challenge_has_both_ndcgs_of_each_language_and_their_average() -> None:
    annotations = {"go": {"q": {"a": 3.0, "b": 0.0}}, "java": {"q": {"c": 1.0}, "p": {"c": 0.0}}}
    figures = challenge.judge(annotations, {"go": {"q": {"x": 2.0, "a": 1.0}}})
    second = 1 / math.log2(3)
    assert {language: tuple(each.values()) for language, each in figures.items()} == {
        "go": pytest.approx((1, 1.0, second, 0.5)),
        "java": (1, 0.0, 0.0, 0.0),
        "average": pytest.approx((2, 0.5, second / 2, 0.25)),
    }
    assert list(figures["go"]) == ["queries", "ndcg_within", "ndcg_all", "covered"]
    assert challenge.main(["none.csv", "none.csv", "none.csv"]) == 2


def test_codesearchnets_ndcg_looks_at_300_documents() -> None:
    run = {"q": {f"x{i}": 1000.0 - i for i in range(300)} | {"a": 1.0}}
    assert evaluate({"q": {"a": 1}}, run, "ndcg_all") == {"q": 0.0}
    assert evaluate({"q": {"a": 1, "x299": 1}}, run, "ndcg_all")["q"] > 0


@pytest.mark.parametrize(
    ("qrels", "run", "measure", "message"),
    [
        ({}, {"q": {"d": 1.0}}, "mrr", "qrels are empty"),
        ({"q": {"d": 1}}, {}, "mrr", "run is empty"),
        ({"q": {"d": 1}}, {"q": {"d": 1.0}, "x": {}}, "mrr", "1 of the run's 2 queries are not judged, first 'x'"),
        ({"q": {"d": 1}}, {"q": {"d": math.nan}}, "mrr", "score of document 'd' is NaN"),
        *(
            ({}, {}, name, "there are: answered@k")
            for name in ("f1", "mrr@0", "recall", "ndcg@ten", "first_rank@3", "")
        ),
    ],
)
def test_runs_and_measures_without_a_value_are_refused(qrels: Qrels, run: Run, measure: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        evaluate(qrels, run, measure)


def test_the_p_value_of_few_queries_is_the_share_of_all_exchanges_at_least_as_uneven() -> None:
    ours = {"a": 0.9, "b": 0.5, "c": 0.4, "d": 1.0, "e": 0.2}
    theirs = {"e": 0.3, "d": 0.25, "c": 0.1, "b": 0.5, "a": 0.1}
    differences = np.array([ours[query] - theirs[query] for query in ours])
    sums = np.array([differences @ signs for signs in product([1, -1], repeat=5)])
    p = (np.abs(sums) >= abs(differences.sum()) - 1e-12).mean()
    comparison = compare(ours, theirs)
    assert (comparison.p, comparison.difference) == pytest.approx((p, differences.mean()))
    assert comparison.queries == 5


def test_the_interval_of_a_mean_is_the_normal_one_for_many_queries() -> None:
    rng = random.Random(3)
    values = {str(i): rng.random() for i in range(2000)}
    sample = np.array(list(values.values()))
    half = 1.96 * sample.std(ddof=1) / np.sqrt(len(sample))
    assert interval(values) == pytest.approx((sample.mean() - half, sample.mean() + half), abs=half / 10)


def test_pairing_makes_the_interval_narrower_than_that_of_one_run() -> None:
    rng = random.Random(4)
    hard = {str(i): rng.random() for i in range(300)}
    better = {query: value + 0.01 * rng.random() for query, value in hard.items()}
    comparison = compare(better, hard)
    assert 0 < comparison.low < comparison.difference < comparison.high
    low, high = interval(hard)
    assert comparison.high - comparison.low < (high - low) / 20
    assert comparison.p < 0.001
    assert compare(better, hard) == comparison


def test_equal_runs_differ_by_nothing_and_runs_over_different_queries_are_refused() -> None:
    values = {"a": 0.5, "b": 0.0}
    assert compare(values, dict(reversed(values.items()))) == Comparison(0.0, 0.0, 0.0, 1.0, 2)
    with pytest.raises(BadInput, match="'b' is in one only"):
        compare(values, {"a": 1.0})
    with pytest.raises(BadInput, match="no queries"):
        compare({}, {})
