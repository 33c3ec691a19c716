"""The model of confidence against scikit-learn, and the files that keep it and tuned weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ncs.errors import BadInput, IndexDamaged
from ncs.learn import confidence
from ncs.learn.confidence import DEFAULT, FEATURES, Model, load_model, load_weights, save_model, save_weights


def test_the_model_is_the_one_scikit_learn_fits_to_weighted_hits() -> None:
    rng = np.random.default_rng(0)
    features = rng.random((600, len(FEATURES)))
    true = np.array([2.0, 1.0, 3.0, 1.5, 2.5, 1.0, 2.0, 3.0])
    right = rng.random(600) < 1 / (1 + np.exp(8 - features @ true))
    weights = np.where(right, 5.0, 1.0)
    ours = confidence.fit(features, right, weights, prior=Model(0.0, (0.0,) * len(FEATURES)), strength=2.0)
    theirs = LogisticRegression(C=0.5, tol=1e-8, max_iter=1000).fit(features, right, weights)
    np.testing.assert_allclose(ours.coefficients, theirs.coef_[0], atol=1e-2)
    np.testing.assert_allclose(ours.probabilities(features), theirs.predict_proba(features)[:, 1], atol=1e-3)
    assert confidence.fit(features, features[:, 0] < 0.5, weights, strength=0.01).coefficients[0] == 0  # never negative


def test_a_model_and_tuned_weights_come_back_and_are_defaults_where_there_are_none(tmp_path: Path) -> None:
    assert load_model(tmp_path) == DEFAULT
    assert load_weights(tmp_path) == {}
    model = Model(-3.0, tuple(map(float, range(len(FEATURES)))))
    save_model(model, tmp_path)
    save_weights({"meaning": 0.4}, tmp_path)
    assert (load_model(tmp_path), load_weights(tmp_path)) == (model, {"meaning": 0.4})


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"weights": {"meaning": "x"}, "model": {"coefficients": [1]}}'])
def test_damaged_files_are_refused_with_their_remedy(tmp_path: Path, content: str) -> None:
    for name in (confidence.BUILT, confidence.TUNED):
        (tmp_path / name).write_text(content)
    with pytest.raises(IndexDamaged, match="build the index again"):
        load_model(tmp_path)
    with pytest.raises(IndexDamaged, match="ncs tune --reset"):
        load_weights(tmp_path)


def test_a_least_confidence_must_be_one_and_the_ranker_must_give_one() -> None:
    assert confidence.is_confident(0.5, 0.5)
    assert not confidence.is_confident(0.4, 0.5)
    with pytest.raises(BadInput, match="from 0 to 1"):
        confidence.is_confident(0.5, 50)
    with pytest.raises(BadInput, match="gives no confidence"):
        confidence.is_confident(None, 0.5)
