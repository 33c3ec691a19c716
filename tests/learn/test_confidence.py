"""The model of confidence, the words for it, and the file of tuned weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput, IndexDamaged
from ncs.learn import confidence
from ncs.learn.confidence import FEATURES, MODEL, load_weights, save_weights


def test_a_hit_is_never_more_probable_than_the_one_before_it() -> None:
    features = np.linspace(0, 1, 5)[:, None].repeat(len(FEATURES), axis=1)
    sure, unsure = MODEL.probabilities(features[::-1]), MODEL.probabilities(features)
    assert (np.diff(sure) < 0).all()
    assert (np.diff(unsure) == 0).all()
    assert unsure[0] == sure[-1] < 0.1 < 0.6 < sure[0]


def test_tuned_weights_come_back_and_there_are_none_at_first(tmp_path: Path) -> None:
    assert load_weights(tmp_path) == {}
    save_weights({"meaning": 0.4}, tmp_path)
    assert load_weights(tmp_path) == {"meaning": 0.4}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"weights": {"meaning": "x"}}'])
def test_a_damaged_file_is_refused_with_its_remedy(tmp_path: Path, content: str) -> None:
    (tmp_path / confidence.TUNED).write_text(content)
    with pytest.raises(IndexDamaged, match="ncs tune --reset"):
        load_weights(tmp_path)


def test_a_least_confidence_must_be_one_and_the_ranker_must_give_one() -> None:
    assert confidence.is_confident(0.5, 0.5)
    assert not confidence.is_confident(0.4, 0.5)
    with pytest.raises(BadInput, match="from 0 to 1"):
        confidence.is_confident(0.5, 50)
    with pytest.raises(BadInput, match="gives no confidence"):
        confidence.is_confident(None, 0.5)
