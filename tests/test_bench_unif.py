"""The benchmark of training: floors by hand, loops that do the same work, a JSON that can be read back."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import numpy as np
import pytest

from unif import floor

torch = pytest.importorskip("torch", reason="needs the extra unif")

from evaluation import bench_unif, unif_speed  # noqa: E402
from evaluation.unif_made import QUERY, made, network  # noqa: E402
from unif.batches import Source  # noqa: E402
from unif.settings import TrainConfig  # noqa: E402


def test_the_doctest_of_the_floor_passes() -> None:
    assert doctest.testmod(floor) == (0, 1)


def test_a_floor_is_what_hand_counts_give() -> None:
    """Two pairs, three numbers a word; four words of questions, five of codes; three and four distinct ones."""
    parts = {part.part: (part.bytes, part.operations) for part in floor.floor(2, 3, (4, 5), (3, 4))}
    assert parts["ids"] == (9 * 4, 0)
    assert parts["means of word vectors"] == parts["gradients of rows"] == (0, 9 * 3 * 2)
    assert parts["cosines, there and back"] == (0, 3 * (2 * 2 * 2 * 3))  # one product there, two back
    assert parts["rows and moments, in and out"][0] == 7 * 3 * 4 * 3 * 2  # row, two moments; read, written
    assert floor.gathered(3, (4, 5)) == 9 * 3 * 4 * 4
    assert floor.dense(3, (10, 10)) == 20 * 3 * 4 * 9


def test_made_pairs_have_partners_and_are_the_same_again(tmp_path: Path) -> None:
    pairs, again = (made(50, 40, tmp_path / name) for name in "ab")
    np.testing.assert_array_equal(pairs.code.ids, again.code.ids)
    for row in range(50):
        said, code = (texts.cut(np.array([row]), 999)[0].tolist() for texts in (pairs.query, pairs.code))
        assert {word + 20 for word in said[: QUERY // 2]} <= set(code)


def test_both_plain_loops_learn_the_same(tmp_path: Path) -> None:
    pairs = made(32, 40, tmp_path)
    source, drawn = Source(pairs, TrainConfig(), torch.device("cpu")), [np.arange(16), np.arange(16, 32)]
    found = []
    for encode in (unif_speed.direct, unif_speed.textbook):
        towers = network(40, torch.device("cpu"))
        unif_speed.plain(towers, source.batch, drawn, encode)()
        found.append(towers.state_dict())
    for name in found[0]:
        torch.testing.assert_close(found[0][name], found[1][name], rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_sections_are_written_and_the_others_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.json"
    path.write_text('{"memory": 7}')
    assert bench_unif.main(["--device", "cpu", "--small", "--only", "speed", "--json", str(path)]) == 0
    report = json.loads(path.read_text())
    assert report["memory"] == 7
    (row,) = report["speed"]["found"]
    ours = row["pairs_per_s"]["ours, Adam"]
    for name, ratio in row["ours_to_plain"].items():
        assert ratio == pytest.approx(ours / row["pairs_per_s"][name])
    assert row["published_training_s"] == pytest.approx(451_000 * 20 / ours)
    assert "451,000 pairs x 20 epochs at that speed" in capsys.readouterr().out
    assert bench_unif.main(["--device", "toaster", "--only", "speed"]) == 2
