"""One step of training: the same as the plain network's, however few rows, parts, bits and processes it takes."""

from __future__ import annotations

import doctest
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncs.text.vocabulary import Vocabulary
from unif.beginning import Beginning
from unif.data import Pair, Pairs, Reading, prepare
from unif.settings import ModelConfig, TrainConfig
from unif.tokenization import Words

torch = pytest.importorskip("torch", reason="needs the extra unif")

from torch.nn import functional as F  # noqa: E402, N812

from tests.waiting import LONG  # noqa: E402
from unif import losses  # noqa: E402
from unif.batches import Batch, Padded, Source, dropped  # noqa: E402
from unif.losses import alike  # noqa: E402
from unif.mining import mine, similarities  # noqa: E402
from unif.model import Towers, create  # noqa: E402
from unif.step import Learner, seeded  # noqa: E402
from unif.touched import RowOptimiser, compact  # noqa: E402
from unif.world import World  # noqa: E402

torch.set_num_threads(1)
SIZE, DIM = 50, 8


def towers(model: ModelConfig = ModelConfig(), seed: int = 0) -> Towers:  # noqa: B008  (frozen)
    draw = np.random.default_rng(seed)
    tokens = Words(Vocabulary.of(f"w{i:02}" for i in range(SIZE)))
    vectors = draw.normal(size=(SIZE, DIM)).astype(np.float32)
    beginning = Beginning(tokens, tokens, "fields", vectors, draw.normal(size=SIZE).astype(np.float32))
    return create(model, beginning, seed=seed)


def batch(n: int = 12, seed: int = 0, *, hard: bool = False) -> Batch:
    draw = np.random.default_rng(seed)
    ids = [torch.from_numpy(draw.integers(0, SIZE // 2, (n, length))) for length in (4, 9, 7)]
    return Batch(ids[0], ids[1], ids[2] if hard else None)


def learnt(config: TrainConfig, network: Towers, *batches: Batch) -> tuple[list[float], dict[str, Any]]:
    """The losses of these steps, and the network after them."""
    learner = Learner(network, config, World())
    if config.precision == "float16":  # from 65,536 it would find its scale by leaving out the first steps
        learner.scaler.load_state_dict({**learner.scaler.state_dict(), "scale": 64.0})
    losses = [learner.learn(each, seeded(torch.device("cpu"), 1, i)).item() for i, each in enumerate(batches)]
    learner.settle()
    return losses, {name: tensor.clone() for name, tensor in network.state_dict().items()}


def close(one: dict[str, Any], other: dict[str, Any], **tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], **(tolerance or {"rtol": 1e-5, "atol": 1e-6}), msg=name)


MODELS = [ModelConfig(), ModelConfig(query_weights="words", prior="idf"), ModelConfig(shared=True)]


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_loss_and_its_first_step_are_those_of_the_whole_network(model: ModelConfig, hard: bool) -> None:
    given, network = batch(hard=hard), towers(model)
    questions, codes = network.query(given.query), network.code(given.code)
    if given.negatives is not None:
        codes = torch.cat([codes, network.code(given.negatives)])
    twins = alike(given.query, given.code, given.negatives).fill_diagonal_(False)
    scores = (network.scale * questions @ codes.T).masked_fill(twins, -torch.inf)
    loss = F.cross_entropy(scores, torch.arange(12))
    loss.backward()  # type: ignore[no-untyped-call]
    torch.optim.Adam(network.parameters(), lr=0.01).step()
    losses, after = learnt(TrainConfig(rate=0.01), towers(model), given)
    assert losses[0] == pytest.approx(loss.item(), abs=1e-5)
    close(after, dict(network.state_dict()), rtol=1e-4, atol=1e-5)


def test_rows_touched_in_every_step_move_as_dense_adam_moves_them() -> None:
    same = [batch(seed=3)] * 5
    _, rows = learnt(TrainConfig(rate=0.01), towers(), *same)
    _, dense = learnt(TrainConfig(rate=0.01, optimiser="dense"), towers(), *same)
    close(rows, dense, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_moments_and_decay_of_rows_are_those_of_dense_adam_however_seldom_they_are_touched(decay: float) -> None:
    draw = np.random.default_rng(0)
    first = torch.from_numpy(draw.normal(size=(20, 3)).astype(np.float32))
    lazy, dense = first.clone(), first.clone().requires_grad_()
    ours = RowOptimiser({"t": lazy}, "adam", 0.01, decay)
    theirs = torch.optim.AdamW([dense], lr=0.01, weight_decay=decay)
    for _ in range(30):
        rows = torch.tensor([0, *sorted(draw.choice(np.arange(1, 20), 4, replace=False).tolist())])
        gradient = torch.from_numpy(draw.normal(size=(5, 3)).astype(np.float32))
        taken = ours.take({"t": rows})["t"]
        taken.grad = gradient.clone()
        ours.step()
        gradient[0] = 0  # no word learns nothing
        dense.grad = torch.zeros(20, 3).index_copy_(0, rows, gradient)
        theirs.step()
    ours.settle()
    moments = theirs.state[dense]
    torch.testing.assert_close(ours.memory["t"]["first"], moments["exp_avg"], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(ours.memory["t"]["second"], moments["exp_avg_sq"], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(lazy[0], first[0] * (1 - 0.01 * decay) ** 30, rtol=1e-4, atol=1e-6)


def test_row_wise_adagrad_is_the_published_rule() -> None:
    table, before = torch.ones(4, 2), np.ones((4, 2))
    optimiser, total = RowOptimiser({"t": table}, "adagrad", 0.1), np.zeros(4)
    for rows, gradient in (([0, 2], [[9.0, 9.0], [1.0, 3.0]]), ([0, 1, 2], [[9.0, 9.0], [2.0, 0.0], [2.0, 2.0]])):
        optimiser.take({"t": torch.tensor(rows)})["t"].grad = torch.tensor(gradient)
        optimiser.step()
        for row, slope in list(zip(rows, gradient, strict=True))[1:]:
            total[row] += np.square(slope).mean()
            before[row] -= 0.1 * np.array(slope) / np.sqrt(total[row])
    np.testing.assert_allclose(table.numpy(), before, atol=1e-6)


def test_the_doctests_of_losses_pass() -> None:
    assert doctest.testmod(losses, extraglobs={"torch": torch}).failed == 0


def test_compact_ids_are_places_among_the_distinct_ones() -> None:
    rows, (one, other) = compact(10, torch.tensor([[7, 0], [2, 7]]), torch.tensor([[9]]))
    assert (rows.tolist(), one.tolist(), other.tolist()) == ([0, 2, 7, 9], [[2, 0], [1, 2]], [[3]])
    assert compact(4, torch.tensor([[2]]))[0].tolist() == [0, 2]


@pytest.mark.parametrize("loss", ["softmax", "margin"])
def test_a_batch_in_parts_is_the_whole_batch_with_all_its_negatives(loss: str) -> None:
    given = [batch(seed=seed, hard=True) for seed in range(3)]
    config = TrainConfig(rate=0.01, loss=loss, margin=0.5, word_dropout=0.2)  # type: ignore[arg-type]
    whole_losses, whole = learnt(config, towers(), *given)
    losses, parts = learnt(replace(config, accumulate=5), towers(), *given)
    assert losses == pytest.approx(whole_losses, abs=1e-5)
    close(parts, whole, rtol=1e-4, atol=1e-5)


def test_margin_looks_at_the_next_code_or_at_the_hard_negative() -> None:
    for hard in (False, True):
        given, network = batch(hard=hard), towers()
        questions, codes = (F.normalize(x) for x in (network.query(given.query), network.code(given.code)))
        wrong = codes.roll(-1, 0) if given.negatives is None else network.code(given.negatives)
        losses = (0.5 - (questions * codes).sum(1) + (questions * wrong).sum(1)).clamp(min=0)
        found, _ = learnt(TrainConfig(loss="margin", margin=0.5), network, given)
        assert found[0] == pytest.approx(losses.mean().item(), abs=1e-5)


@pytest.mark.parametrize(("precision", "tolerance"), [("bfloat16", 0.1), ("float16", 0.01)])
def test_half_precision_learns_the_same_in_float32_tables(precision: str, tolerance: float) -> None:
    given = [batch(seed=seed) for seed in range(4)]
    whole, _ = learnt(TrainConfig(rate=0.01), towers(), *given)
    half, after = learnt(TrainConfig(rate=0.01, precision=precision), towers(), *given)  # type: ignore[arg-type]
    assert half == pytest.approx(whole, abs=tolerance)
    assert {tensor.dtype for tensor in after.values()} == {torch.float32}


def test_what_overflows_in_float16_is_passed_over_and_scaled_down() -> None:
    network = towers()
    learner = Learner(network, TrainConfig(precision="float16"), World())
    learner.scaler.load_state_dict({**learner.scaler.state_dict(), "scale": 1e30})
    before = network.code.table.weight.detach().clone()
    learner.learn(batch(), seeded(torch.device("cpu"), 1))
    assert torch.equal(network.code.table.weight, before)
    assert learner.state()["scaler"]["scale"] == pytest.approx(0.5e30)


def test_staying_near_the_start_adds_the_mean_squared_distance_of_the_batchs_words() -> None:
    network, given = towers(), batch()
    learner = Learner(network, TrainConfig(stay=3.0), World())
    plain = Learner(towers(), TrainConfig(), World()).learn(given, seeded(torch.device("cpu"), 0))
    assert learner.learn(given, seeded(torch.device("cpu"), 0)).item() == pytest.approx(plain.item(), abs=1e-6)
    far = 0.0
    for name, ids in (("query.table.weight", given.query), ("code.table.weight", given.code)):
        words = sorted(set(ids.flatten().tolist()) - {0})
        moved = network.state_dict()[name] - learner.start[name]
        far += moved[words].square().sum(dim=1).mean().item()
    same = towers()
    same.load_state_dict(network.state_dict())
    bare = Learner(same, TrainConfig(), World()).learn(given, seeded(torch.device("cpu"), 0)).item()
    second = learner.learn(given, seeded(torch.device("cpu"), 0)).item()
    assert far > 0
    assert second == pytest.approx(bare + 3 * far, rel=1e-5)


SCRIPT = """
import sys, torch
sys.path.insert(0, {project!r})
from unif.world import joined
from tests.test_unif_step import *
with joined(torch.device("cpu")) as world:
    network = towers()
    config = TrainConfig(rate=0.01, word_dropout=0.1, stay=0.1, loss={loss!r}, margin=0.5)
    learner, losses = Learner(network, config, world), []
    for step, n in enumerate((12, 7, 3)):
        loss = learner.learn(batch(n, seed=step, hard=step > 0), seeded(torch.device("cpu"), step))
        world.averaged([loss])
        losses.append(loss.item())
    if world.first:
        torch.save({{"losses": losses, **network.state_dict()}}, {out!r})
    sys.stdout.write(f"{{world.size}}\\n")
"""


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["softmax", "margin"])
def test_two_processes_learn_what_one_learns(tmp_path: Path, loss: str) -> None:
    project, found = str(Path(__file__).parents[1]), []
    for processes in (1, 2):
        out = tmp_path / f"{processes}.pt"
        (tmp_path / "script.py").write_text(SCRIPT.format(project=project, out=str(out), loss=loss))
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [sys.executable, *(torchrun if processes > 1 else []), str(tmp_path / "script.py")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, cwd=project, check=False)
        assert "".join(done.stdout.split()) == str(processes) * processes, done.stderr
        found.append(torch.load(out, weights_only=True))
    alone, together = found
    assert together.pop("losses") == pytest.approx(alone.pop("losses"), abs=1e-5)
    close(together, alone, rtol=1e-4, atol=1e-5)


def pairs(folder: Path, *texts: tuple[str, str]) -> Pairs:
    """Pairs of words w00 ...; every pair is a question of its own."""
    tokens = Words(Vocabulary.of(f"w{i:02}" for i in range(SIZE)))
    rows = (Pair(query.split(), code.split(), [str(i)]) for i, (query, code) in enumerate(texts))
    return prepare(rows, folder, Reading(), tokens.ids, tokens.ids)


def test_rows_are_padded_cut_and_freed_of_repetitions(tmp_path: Path) -> None:
    texts = pairs(tmp_path, ("w00", "w05 w03 w05 w05 w02"), ("w01", "w04")).code
    padded = Padded(texts, torch.device("cpu"))
    assert padded(np.array([1, 0]), 4).tolist() == [[5, 0, 0, 0], [6, 4, 6, 6]]
    assert padded(np.array([0, 1]), 9, unique=True).tolist() == [[6, 4, 0, 0, 3], [5, 0, 0, 0, 0]]


def test_dropped_words_are_as_many_as_asked_for_and_the_same_for_the_same_seed() -> None:
    ids = torch.ones(200, 200, dtype=torch.int64)
    one, again = (dropped(ids, 0.3, seeded(torch.device("cpu"), 5)) for _ in range(2))
    assert torch.equal(one, again)
    assert (one == 0).float().mean().item() == pytest.approx(0.3, abs=0.02)
    assert dropped(ids, 0, seeded(torch.device("cpu"), 5)) is ids


def test_similarity_is_jaccards_over_sets_of_words(tmp_path: Path) -> None:
    texts = pairs(tmp_path, ("w00", "w01 w02 w01"), ("w00", "w02 w03"), ("w00", "w01 w02"), ("w00", "w09")).code
    found = similarities(texts, np.array([0, 3]), texts, np.array([[1, 2, 0], [0, 3, 1]]), 9)
    np.testing.assert_allclose(found, np.array([[1 / 3, 1, 1], [0, 1, 0]]))


def test_hard_negatives_are_the_nearest_codes_that_are_no_answers(tmp_path: Path) -> None:
    """Every word is an axis of its own, so that the cosine of a question and a code is easily counted."""
    found = pairs(
        tmp_path,
        ("w01 w02", "w01 w02"),  # its answer
        ("w05", "w01 w02"),  # the same words: a near duplicate
        ("w06", "w01 w02 w03"),  # cosine 2 / sqrt(6), similarity 2/3
        ("w07", "w01 w04 w08 w09"),  # cosine 1 / sqrt(8)
        ("w09", "w01 w06"),  # cosine 1 / 2
    )
    config, tokens = TrainConfig(mined=2), Words(Vocabulary.of(f"w{i:02}" for i in range(SIZE)))
    axes = np.eye(SIZE, dtype=np.float32)
    network = create(ModelConfig(), Beginning(tokens, tokens, "fields", axes, np.zeros(SIZE, np.float32)))
    network.get_parameter("code.attention").data.zero_()
    source = Source(found, config, torch.device("cpu"))
    mined = mine(network, source, found, None, np.arange(4), np.random.default_rng(0))
    assert mined[0].tolist() == [2, 3]  # row 4 is not learnt from
    assert mined[4].tolist() == [-1, -1]
    mined = mine(network, source, found, found.code, np.arange(5), np.random.default_rng(0))
    assert mined[0].tolist() == [2, 4]
    source.hard = np.array([[3, 3], [-1, -1], [4, 4], [0, 0], [0, 0]])
    given = source.batch(np.array([1, 0]), np.random.default_rng(0)).negatives
    assert given is not None
    assert given.tolist() == [[0, 0, 0, 0], [2, 5, 9, 10]]
