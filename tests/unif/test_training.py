"""Training: one step against dense Adam, toy sets learned by heart, the same bytes however often it was killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest

from corpora.jsonl import write_rows
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.extract import extract
from ncs.index import Index
from ncs.learn.tokenization import WordTokenizer
from ncs.search.unif import UnifRanker
from ncs.text.vocabulary import Vocabulary
from ncs.types import Document
from unif.__main__ import main
from unif.config import Encoder, Loss, Stage, TrainConfig
from unif.data import Inputs, PairFile, Sources

torch = pytest.importorskip("torch", reason="needs the extra unif")

from torch import Tensor  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from tests.waiting import LONG  # noqa: E402
from unif.networks import Towers, create  # noqa: E402
from unif.training import (  # noqa: E402
    Learner,
    RowAdam,
    center,
    drop_words,
    find_twins,
    seeded,
    train,
)

TOPICS = 40
SIZE, DIM = 50, 8
CPU = torch.device("cpu")
TOKENS = WordTokenizer(Vocabulary.of(f"w{i:02}" for i in range(SIZE)))
torch.set_num_threads(1)  # networks this small are slower on more


def towers() -> Towers:
    start = np.random.default_rng(0).normal(size=(SIZE, DIM)).astype(np.float32)
    return create(TrainConfig(), Inputs(TOKENS, TOKENS, "fields", start))


def batch(seed: int = 0) -> tuple[Tensor, Tensor]:
    draw = np.random.default_rng(seed)
    query, code = (torch.from_numpy(draw.integers(0, SIZE // 2, (12, length))) for length in (4, 9))
    return query, code


def trained(
    config: TrainConfig, network: Towers, *batches: tuple[Tensor, Tensor]
) -> tuple[list[float], dict[str, Any]]:
    """The losses of these steps, and the network after them."""
    learner = Learner(network, config)
    losses = [learner.learn(*each, seeded(CPU, 1, i)).item() for i, each in enumerate(batches)]
    return losses, {name: tensor.clone() for name, tensor in network.state_dict().items()}


def test_equal_questions_and_equal_codes_are_no_negatives() -> None:
    query, code = torch.tensor([[1, 2], [1, 2], [2, 1]]), torch.tensor([[4, 0], [5, 0], [4, 0]])
    assert find_twins(query, code).tolist() == [[True, True, True], [True, True, False], [True, False, True]]


def test_steps_are_those_of_dense_adam_over_the_whole_network() -> None:
    (query, code), network = batch(), towers()
    adam, losses = torch.optim.Adam(network.parameters(), lr=0.01), []
    for _ in range(5):
        twins = find_twins(query, code).fill_diagonal_(False)
        scores = (network.scale * network.query(query) @ network.code(code).T).masked_fill(twins, -torch.inf)
        loss = F.cross_entropy(scores, torch.arange(12))
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        losses.append(loss.item())
    ours, after = trained(TrainConfig(rate=0.01), towers(), *[(query, code)] * 5)
    assert ours == pytest.approx(losses, abs=1e-5)
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(after[name], tensor, rtol=1e-4, atol=1e-5, msg=name)


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


def test_the_margin_loss_compares_with_the_next_code() -> None:
    (query, code), network = batch(), towers()
    queries, codes = network.query(query), network.code(code)
    expected = (0.5 - (queries * codes).sum(1) + (queries * codes.roll(-1, 0)).sum(1)).clamp(min=0).mean().item()
    losses, _ = trained(TrainConfig(loss="margin", margin=0.5), network, (query, code))
    assert losses == pytest.approx([expected], abs=1e-5)


def test_bfloat16_learns_nearly_the_same_in_float32_tables() -> None:
    given = [batch(seed) for seed in range(4)]
    whole, _ = trained(TrainConfig(rate=0.01), towers(), *given)
    half, after = trained(TrainConfig(rate=0.01, precision="bfloat16"), towers(), *given)
    assert half == pytest.approx(whole, abs=0.1)
    assert {tensor.dtype for tensor in after.values()} == {torch.float32}


def test_centered_vectors_are_unit_vectors_without_the_mean_and_zeros_stay() -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    moved = torch.tensor([[2.0, -1.0], [-1.0, 2.0]]) / 5**0.5
    torch.testing.assert_close(center(vectors), torch.cat([moved, torch.zeros(1, 2)]))


def test_dropped_words_are_the_share_asked_for_and_the_same_for_the_same_seed() -> None:
    ids = torch.ones(200, 200, dtype=torch.int64)
    one, again = (drop_words(ids, 0.3, seeded(CPU, 5)) for _ in range(2))
    assert torch.equal(one, again)
    assert (one == 0).float().mean().item() == pytest.approx(0.3, abs=0.02)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Forty functions, each with three words of its own and one that all have."""
    documents = [
        Document(
            f"{i}", "r", "p", i + 1, i + 1, "python", "function", f"f{letters(i)}", f"f{letters(i)}",
            {"calls": (f"call{letters(i)}", f"use{letters(i)}", "open"), "doc": (f"ask{letters(i)} how{letters(i)}",)},
        )
        for i in range(TOPICS)
    ]  # fmt: skip
    config = BuildConfig(fasttext=replace(BuildConfig().fasttext, dim=24, min_count=1, least_words=2_000))
    with Index.of(documents, tmp_path_factory.mktemp("index"), config=config) as built:
        yield built


def letters(i: int) -> str:
    """A number as letters, so that it stays part of its word."""
    return chr(97 + i // 26) + chr(97 + i % 26)


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> Path:
    write_rows(path, ({"query": query, "code": code, "language": "python"} for query, code in pairs))
    return path


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every question in six wordings, so that both halves of a split know all words."""
    wordings = ("ask{0}", "how{0}", "ask{0} how{0}", "ask{0} open", "how{0} open", "open ask{0} how{0}")
    both = ((text.format(letters(i)), letters(i)) for i in range(TOPICS) for text in wordings)
    rows = ((query, f"call{topic}(); use{topic}(); open()") for query, topic in both)
    return write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.jsonl", rows)


def test_patience_ends_a_training_and_its_best_head_serves_centred(index: Index, pairs: Path, tmp_path: Path) -> None:
    config = TrainConfig(epochs=30, batch=40, rate=0.02, patience=2, valid=0.2, centre=True)
    trained = train(tmp_path / "run", Sources((PairFile(pairs),)), config, index=index, device="cpu")
    mrr = [row["mrr"] for row in trained.curve]
    assert trained.best_epoch == mrr.index(max(mrr))
    assert len(mrr) - 1 == min(30, trained.best_epoch + 2)
    assert [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()] == trained.curve
    run = str(tmp_path / "run")
    rankers = index.fitted("unif", head=run), index.fitted("unif", head=run, centre=False)
    served, raw = (cast(UnifRanker, each).vectors.vectors(np.arange(len(index))).astype(np.float64) for each in rankers)
    moved = raw - raw.mean(axis=0)
    np.testing.assert_allclose(served, moved / np.linalg.norm(moved, axis=1, keepdims=True), atol=1e-5)


def test_a_curriculum_ends_on_its_last_sources_from_the_best_so_far(index: Index, pairs: Path, tmp_path: Path) -> None:
    lines = pairs.read_text().splitlines(keepends=True)
    few = tmp_path / "few.v1.jsonl"
    few.write_text("".join(line for at, line in enumerate(lines) if at % 6 < 2))
    stages = (Stage(4), Stage(3, ("few",), 1e-9))
    config = TrainConfig(stages=stages, batch=40, rate=0.02, patience=9, valid=0.2, query_words=5)
    sources = Sources((PairFile(pairs), PairFile(few, 2.0)))
    trained = train(tmp_path / "run", sources, config, index=index, device="cpu")
    assert [row.get("stage") for row in trained.curve] == [None, 1, 1, 1, 1, 2, 2, 2]
    best = max(row["mrr"] for row in trained.curve[1:5])
    assert [row["mrr"] for row in trained.curve[5:]] == pytest.approx([best] * 3)  # a rate of nothing moves nothing


VERBS = {"open": "start", "close": "end", "read": "load", "write": "store"}
THINGS = ("file", "socket", "window", "queue", "image")


def code(verb: str, thing: str) -> str:
    lines = (
        f"def {verb}_{thing}(handle, options):",
        f'    """{VERBS[verb].title()} it."""',  # for UNIF, whose words are those of the index
        f"    driver = {thing}_driver(handle)",
        f"    return driver.{verb}(options)",
    )
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "loss"), [*((each, "softmax") for each in get_args(Encoder)), ("unif", "margin")])
def test_every_encoder_learns_what_a_word_of_a_query_means_and_answers(
    tmp_path: Path, encoder: Encoder, loss: Loss
) -> None:
    pytest.importorskip("tokenizers", reason="needs the extra unif")
    both = [(verb, thing) for verb in VERBS for thing in THINGS]
    asking = ("how to", "i want to", "please", "can you", "a way to", "let me")
    rows = ((f"{words} {VERBS[verb]} {thing}", code(verb, thing)) for verb, thing in both for words in asking)
    sources = Sources((PairFile(write_pairs(tmp_path / "pairs.jsonl", rows)),))
    config = TrainConfig(
        encoder=encoder, dropout=0.0, epochs=12, batch=20, patience=12, valid=0.15, loss=loss, margin=0.4,
        rate=0.02 if encoder in ("unif", "nbow") else 0.002,
    )  # fmt: skip
    documents = extract("\n\n".join(code(*each) for each in both).encode(), "python")
    with Index.of(documents, tmp_path / "index", config=BuildConfig(outside=False)) as index:
        words = index if encoder == "unif" else None
        trained = train(tmp_path / "run", sources, config, index=words, device="cpu")
        ranker = index.fitted("unif", head=str(tmp_path / "run"))
        names = [index.documents.document(row).name for row in range(len(index))]
        right = [names[ranker.search(f"please {VERBS[v]} {t}", 1)[0][0]] == f"{v}_{t}" for v, t in both]
    assert trained.curve[-1]["loss"] < 0.8 * trained.curve[1]["loss"]
    assert trained.curve[trained.best_epoch]["mrr"] >= trained.curve[0]["mrr"]
    assert np.mean(right) >= 0.3  # by chance 0.05


UNIF = ("train", "unif", "-i")
COMMAND = "import sys; from unif.__main__ import main; sys.exit(main(sys.argv[1:]))"
DIE = """
import os, signal, sys
def hook(event, arguments):
    global left
    if event in ("open", "os.rename") and ".part'" in str(arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""
"""Dies by kill -9 before operation number `left` on files that are not complete yet."""


@pytest.mark.parametrize(("encoder", "own"), [("unif", 0.0), ("nbow", 1.0)])
def test_words_or_functions_of_no_index_are_refused(pairs: Path, tmp_path: Path, encoder: Encoder, own: float) -> None:
    sources = Sources((PairFile(pairs),), own)
    with pytest.raises(BadInput, match="words of an index"):
        train(tmp_path / "run", sources, TrainConfig(encoder=encoder), device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "left"),  # at a checkpoint, at a curve
    [
        ("unif --own --word-dropout 0.1 --rate 0.003 --precision bfloat16 --stage 5 --stage 3:pairs@0.001", 12),
        ("nbow --loss margin --centre --epochs 8", 13),
    ],
)
def test_a_training_killed_at_any_time_gives_the_same_bytes(
    index: Index, pairs: Path, tmp_path: Path, arguments: str, left: int
) -> None:
    pytest.importorskip("tokenizers", reason="needs the extra unif")
    own = ["-i", str(index.folder)] if "unif" in arguments else []  # others need no index
    pairs = Path(shutil.copy(pairs, tmp_path))

    def command(out: Path) -> list[str]:
        options = ["--pairs", f"{pairs}:1.5", "--out", str(out), "--batch", "32", "--patience", "12", "-q"]
        return ["train", *arguments.split(), *own, "--device", "cpu", *options]

    assert main(command(tmp_path / "whole")) == 0
    out = tmp_path / "killed"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed = [sys.executable, "-W", "error", "-c", f"left = {left}\n{DIE}\n{COMMAND}", *command(out)]
    done = subprocess.run(killed, env=environment, stdout=subprocess.DEVNULL, timeout=LONG, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (out / "head").exists() or len(curve(out)) == 9
    pairs.unlink()  # they were read once and for all
    assert main(command(out)) == 0
    whole = tmp_path / "whole" / "head"
    for path in sorted(path for path in whole.rglob("*") if path.is_file()):
        assert (out / "head" / path.relative_to(whole)).read_bytes() == path.read_bytes(), path.name
    assert curve(out) == curve(tmp_path / "whole")


def curve(out: Path) -> list[dict[str, float]]:
    """Without what the clock says."""
    rows = [json.loads(line) for line in (out / "curve.jsonl").read_text().splitlines()]
    return [{key: row[key] for key in row if key not in ("seconds", "pairs_per_s")} for row in rows]


def test_the_command_reports_what_it_read_and_the_best_epoch(
    index: Index, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pairs.open() as lines:
        (tmp_path / "some.jsonl").write_text("{\n" + "".join(list(lines)[:30]))
    (tmp_path / "left.jsonl").write_text('{"query": "Askaa, howaa?"}\n')
    run = tmp_path / "run"
    command = [*UNIF, str(index.folder), "--pairs", str(tmp_path / "some.jsonl"), "--out", str(run), "-q", "--epochs",
               "2", "--leave-out", str(tmp_path / "left.jsonl")]  # fmt: skip
    assert main(command) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "29 pairs of 29 questions; skipped: 0 without known words, 1 to leave out, 1 bad lines"
    assert "some.jsonl:1: not JSON" in shown[1]
    assert sum("<- best" in line for line in shown) == 1
    assert shown[-1] == f"use it: ncs build --add unif:head={run}"
    assert main(command) == 0  # it is done already
    assert capsys.readouterr().out.splitlines() == shown


def test_what_cannot_be_trained_is_an_error_of_one_line(
    index: Index, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def error(*options: str, out: Path = tmp_path / "run") -> str:
        assert main([*UNIF, str(index.folder), "--out", str(out), "-q", "--epochs", "1", *options]) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        return message

    for device in ("cuda:99", "toaster"):
        assert f"cannot train on '{device}'" in error("--device", device)
    with_pairs = ("--pairs", str(pairs))
    assert main([*UNIF, str(index.folder), "--out", str(tmp_path / "run"), "-q", "--epochs", "1", *with_pairs]) == 0
    capsys.readouterr()
    assert "holds a training with other settings" in error("--seed", "5", *with_pairs)
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"PK\x03\x04 no checkpoint")
    assert "cannot resume from" in error(*with_pairs)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert "exists and holds no training" in error(out=tmp_path / "full")
