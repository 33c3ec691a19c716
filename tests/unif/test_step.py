"""One step of training: the same as the plain network's, however few rows, parts, bits and processes it takes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncs.learn.tokenization import WordTokenizer
from ncs.text.vocabulary import Vocabulary
from unif.config import TrainConfig
from unif.data import Pair, Pairs, ReadStats, write_pairs
from unif.tokenization import Inputs

torch = pytest.importorskip("torch", reason="needs the extra unif")

from torch.nn import functional as F  # noqa: E402, N812

from tests.waiting import LONG  # noqa: E402
from unif.losses import find_twins  # noqa: E402
from unif.networks import Towers, create  # noqa: E402
from unif.step import (  # noqa: E402
    Batch,
    Batches,
    Learner,
    RowAdam,
    World,
    center,
    drop_words,
    seeded,
)
from unif.training import mine  # noqa: E402

torch.set_num_threads(1)
SIZE, DIM = 50, 8
CPU = torch.device("cpu")
TOKENS = WordTokenizer(Vocabulary.of(f"w{i:02}" for i in range(SIZE)))


def towers(vectors: np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None = None) -> Towers:
    start = np.random.default_rng(0).normal(size=(SIZE, DIM)).astype(np.float32) if vectors is None else vectors
    return create(TrainConfig(), Inputs(TOKENS, TOKENS, "fields", start))


def batch(n: int = 12, seed: int = 0, *, hard: bool = False) -> Batch:
    draw = np.random.default_rng(seed)
    ids = [torch.from_numpy(draw.integers(0, SIZE // 2, (n, length))) for length in (4, 9, 7)]
    return Batch(ids[0], ids[1], ids[2] if hard else None)


def trained(config: TrainConfig, network: Towers, *batches: Batch) -> tuple[list[float], dict[str, Any]]:
    """The losses of these steps, and the network after them."""
    learner = Learner(network, config, World())
    losses = [learner.learn(each, seeded(CPU, 1, i)).item() for i, each in enumerate(batches)]
    return losses, {name: tensor.clone() for name, tensor in network.state_dict().items()}


def close(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("hard", [False, True])
def test_steps_are_those_of_dense_adam_over_the_whole_network(hard: bool) -> None:
    given, network = batch(hard=hard), towers()
    adam, losses = torch.optim.Adam(network.parameters(), lr=0.01), []
    for _ in range(5):
        queries, codes = network.query(given.query), network.code(given.code)
        if given.negatives is not None:
            codes = torch.cat([codes, network.code(given.negatives)])
        twins = find_twins(given.query, given.code, given.negatives).fill_diagonal_(False)
        scores = (network.scale * queries @ codes.T).masked_fill(twins, -torch.inf)
        loss = F.cross_entropy(scores, torch.arange(12))
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        losses.append(loss.item())
    ours, after = trained(TrainConfig(rate=0.01), towers(), *[given] * 5)
    assert ours == pytest.approx(losses, abs=1e-5)
    close(after, dict(network.state_dict()))


def test_moments_of_rows_are_those_of_dense_adam_however_seldom_they_are_touched() -> None:
    draw = np.random.default_rng(0)
    start = torch.from_numpy(draw.normal(size=(20, 3)).astype(np.float32))
    table, dense = start.clone(), start.clone().requires_grad_()
    ours, theirs = RowAdam(table), torch.optim.Adam([dense], lr=0.01)
    for step in range(30):
        few = sorted(draw.choice(np.arange(1, 20), 4, replace=False).tolist())
        rows = torch.tensor([0, *few] if step < 29 else range(20))  # the last step brings all up to date
        gradient = torch.from_numpy(draw.normal(size=(len(rows), 3)).astype(np.float32))
        ours.take(rows).grad = gradient.clone()
        ours.step(0.01)
        gradient[0] = 0  # padding learns nothing
        dense.grad = torch.zeros(20, 3).index_copy_(0, rows, gradient)
        theirs.step()
    moments = theirs.state[dense]
    torch.testing.assert_close(ours.first, moments["exp_avg"], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(ours.second, moments["exp_avg_sq"], rtol=1e-4, atol=1e-6)
    assert torch.equal(table[0], start[0])


@pytest.mark.parametrize("loss", ["softmax", "margin"])
def test_a_batch_in_parts_is_the_whole_batch_with_all_its_negatives(loss: str) -> None:
    given = [batch(seed=seed, hard=True) for seed in range(3)]
    config = TrainConfig(rate=0.01, loss=loss, margin=0.5, word_dropout=0.2)  # type: ignore[arg-type]
    whole_losses, whole = trained(config, towers(), *given)
    losses, parts = trained(replace(config, accumulate=5), towers(), *given)
    assert losses == pytest.approx(whole_losses, abs=1e-5)
    close(parts, whole)


@pytest.mark.parametrize("hard", [False, True])
def test_the_margin_loss_compares_with_the_next_code_or_the_hard_negative(hard: bool) -> None:
    given, network = batch(hard=hard), towers()
    queries, codes = network.query(given.query), network.code(given.code)
    wrong = codes.roll(-1, 0) if given.negatives is None else network.code(given.negatives)
    expected = (0.5 - (queries * codes).sum(1) + (queries * wrong).sum(1)).clamp(min=0).mean().item()
    assert trained(TrainConfig(loss="margin", margin=0.5), network, given)[0][0] == pytest.approx(expected, abs=1e-5)


def test_bfloat16_learns_nearly_the_same_in_float32_tables() -> None:
    given = [batch(seed=seed) for seed in range(4)]
    whole, _ = trained(TrainConfig(rate=0.01), towers(), *given)
    half, after = trained(TrainConfig(rate=0.01, precision="bfloat16"), towers(), *given)
    assert half == pytest.approx(whole, abs=0.1)
    assert {tensor.dtype for tensor in after.values()} == {torch.float32}


def test_centered_vectors_are_unit_vectors_without_the_mean_and_zeros_stay() -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    moved = torch.tensor([[2.0, -1.0], [-1.0, 2.0]]) / 5**0.5
    torch.testing.assert_close(center(vectors), torch.cat([moved, torch.zeros(1, 2)]))


SCRIPT = """
import sys, torch
sys.path.insert(0, {project!r})
from unif.step import join_world
from tests.unif.test_step import *
with join_world(torch.device("cpu")) as world:
    network = towers()
    config = TrainConfig(rate=0.01, word_dropout=0.1, loss={loss!r}, margin=0.5)
    learner, losses = Learner(network, config, world), []
    for step, n in enumerate((12, 7, 3)):
        loss = learner.learn(batch(n, seed=step, hard=step > 0), seeded(torch.device("cpu"), step))
        world.sum([loss])
        losses.append(loss.item())
    if world.first:
        torch.save({{"losses": losses, **network.state_dict()}}, {out!r})
    sys.stdout.write(f"{{world.size}}\\n")
"""


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["softmax", "margin"])
def test_two_processes_learn_what_one_learns(tmp_path: Path, loss: str) -> None:
    project, states = str(Path(__file__).parents[2]), []
    for processes in (1, 2):
        out = tmp_path / f"{processes}.pt"
        (tmp_path / "script.py").write_text(SCRIPT.format(project=project, out=str(out), loss=loss))
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [sys.executable, *(torchrun if processes > 1 else []), str(tmp_path / "script.py")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, cwd=project, check=False)
        assert "".join(done.stdout.split()) == str(processes) * processes, done.stderr
        states.append(torch.load(out, weights_only=True))
    alone, together = states
    assert together.pop("losses") == pytest.approx(alone.pop("losses"), abs=1e-5)
    close(together, alone)


def pairs(folder: Path, *texts: tuple[str, str]) -> Pairs:
    """Pairs of words w00 ...; every pair is a question of its own."""
    rows = (Pair(query.split(), code.split(), [str(i)]) for i, (query, code) in enumerate(texts))
    return write_pairs(rows, folder, ReadStats(), TOKENS.ids, TOKENS.ids)


def test_dropped_words_are_the_share_wanted_and_the_same_for_the_same_seed() -> None:
    ids = torch.ones(200, 200, dtype=torch.int64)
    one, again = (drop_words(ids, 0.3, seeded(CPU, 5)) for _ in range(2))
    assert torch.equal(one, again)
    assert (one == 0).float().mean().item() == pytest.approx(0.3, abs=0.02)


def test_hard_negatives_are_the_nearest_codes_that_are_no_answers(tmp_path: Path) -> None:
    """Every word is an axis of its own, so that cosines are easily computed by hand."""
    found = pairs(
        tmp_path,
        ("w01 w02", "w01 w02"),  # its answer
        ("w05", "w01 w02"),  # the same words: a near duplicate
        ("w06", "w01 w02 w03"),  # cosine 2 / sqrt(6), similarity 2/3
        ("w07", "w01 w04 w08 w09"),  # cosine 1 / sqrt(8)
        ("w09", "w01 w06"),  # cosine 1 / 2
    )
    network = towers(np.eye(SIZE, dtype=np.float32))
    network.get_parameter("code.attention").data.zero_()
    source = Batches(found, TrainConfig(mined=2), CPU)
    mined = mine(network, source, found, np.arange(4), np.random.default_rng(0))
    assert mined[0].tolist() == [2, 3]  # row 4 is not trained on
    assert mined[4].tolist() == [-1, -1]
    assert mine(network, source, found, np.arange(5), np.random.default_rng(0))[0].tolist() == [2, 4]
    source.hard = np.array([[3, 3], [-1, -1], [4, 4], [0, 0], [0, 0]])
    negatives = source.batch(np.array([1, 0]), np.random.default_rng(0)).negatives
    assert negatives is not None
    assert negatives.tolist() == [[0, 0, 0, 0], [2, 5, 9, 10]]
