"""What hangs together by pairs: found here for few, by scipy's graphs for many."""

from __future__ import annotations

import numpy as np
import pytest

from ncs.storage import arrays


def test_few_pairs_part_things_as_many_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(1, 60))
        ends = rng.integers(0, n, (int(rng.integers(0, 80)), 2))
        few = arrays.connected_components(ends, n).tolist()
        with monkeypatch.context() as patched:
            patched.setattr(arrays, "FEW", -1)
            many = arrays.connected_components(ends, n).tolist()
        assert len(set(zip(few, many, strict=True))) == len(set(few)) == len(set(many))
