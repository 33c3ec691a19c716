"""Training: losses by hand, a toy set learnt by heart, and the same result however often it was killed."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.index import BuildConfig, Index
from ncs.types import Document
from unif.__main__ import main
from unif.curves import draw
from unif.head import Head
from unif.run import Start
from unif.settings import ModelConfig, Stage, TrainConfig
from unif.sources import PairFile, Sources

torch = pytest.importorskip("torch", reason="needs the extra unif")

from tests.waiting import LONG  # noqa: E402
from unif.losses import alike, margin_loss, softmax_loss  # noqa: E402
from unif.train import train  # noqa: E402
from unif.world import chosen  # noqa: E402

TOPICS = 40
torch.set_num_threads(1)  # networks this small are slower on more, and much slower on a busy machine


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


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every question in six wordings, so that both halves of a split know all words."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    rows = [
        {"query": query, "code": f"call{letters(i)}(); use{letters(i)}(); open()", "language": "python"}
        for i in range(TOPICS)
        for query in (
            f"ask{letters(i)}",
            f"how{letters(i)}",
            f"ask{letters(i)} how{letters(i)}",
            f"ask{letters(i)} open",
            f"how{letters(i)} open",
            f"open ask{letters(i)} how{letters(i)}",
        )
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_softmax_loss_is_cross_entropy_without_the_twins() -> None:
    scores, own = torch.tensor([[2.0, 1.0, 0.5], [0.0, 3.0, 1.0], [1.0, 1.0, 1.0]]), torch.arange(3)
    twins = torch.eye(3, dtype=torch.bool)
    rows = scores.tolist()
    plain = [math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(rows)]
    assert softmax_loss(scores, own, twins).tolist() == pytest.approx(plain, abs=1e-6)
    twins[0, 2] = twins[2, 0] = True
    without = [math.log(math.exp(2) + math.exp(1)) - 2, plain[1], math.log(2 * math.exp(1)) - 1]
    assert softmax_loss(scores, own, twins).tolist() == pytest.approx(without, abs=1e-6)
    assert softmax_loss(scores[1:], own[1:], twins[1:]).tolist() == pytest.approx(without[1:], abs=1e-6)


def test_margin_loss_is_the_papers_against_another_code() -> None:
    cosines = torch.tensor([[0.9, 0.2, 0.0], [0.0, 0.5, 0.6], [0.3, 0.0, 0.2]])
    # .05 - .9 + .2 < 0; .05 - .5 + .6 = .15; .05 - .2 + .3 = .15
    found = margin_loss(cosines, torch.arange(3), torch.tensor([1, 2, 0]), 0.05)
    assert found.tolist() == pytest.approx([0, 0.15, 0.15], abs=1e-6)


def test_equal_questions_and_equal_codes_are_no_negatives() -> None:
    query, code = torch.tensor([[1, 2], [1, 2], [2, 1]]), torch.tensor([[4, 0], [5, 0], [4, 0]])
    expected = [[True, True, True], [True, True, False], [True, False, True]]
    assert alike(query, code).tolist() == expected
    hard = torch.tensor([[5, 0, 0], [4, 0, 0], [0, 0, 0]])
    assert alike(query, code, hard)[:, 3:].tolist() == [[False, True, True], [True, False, True], [False, True, True]]


@pytest.mark.parametrize("loss", ["softmax", "margin"])
@pytest.mark.parametrize(
    "model", [ModelConfig(), ModelConfig(query_weights="words", prior="idf"), ModelConfig(heads=2)]
)
def test_a_toy_set_is_learnt_by_heart(index: Index, pairs: Path, tmp_path: Path, loss: str, model: ModelConfig) -> None:
    config = TrainConfig(loss=loss, model=model, epochs=60, batch=40, rate=0.02, margin=0.4, patience=60, valid=0.1)  # type: ignore[arg-type]
    trained = train(index, tmp_path / "run", Sources((pairs,)), config, device="cpu")
    assert trained.best_mrr == 1
    assert trained.curve[0]["mrr"] < 0.9
    ranker = index.fitted("unif", head=str(tmp_path / "run"))
    right = [ranker.search(f"how{letters(i)}", 1)[0][0] == i for i in range(TOPICS)]
    assert sum(right) >= 0.85 * TOPICS  # the first epoch with every held-out question right is kept, not the last one


def test_the_best_epoch_is_kept_and_no_patience_is_wasted(index: Index, pairs: Path, tmp_path: Path) -> None:
    config = TrainConfig(epochs=30, batch=40, rate=0.02, patience=2, valid=0.2)
    trained = train(index, tmp_path / "run", Sources((pairs,)), config, device="cpu")
    mrr = [row["mrr"] for row in trained.curve]
    assert trained.best_epoch == mrr.index(max(mrr))
    assert len(mrr) - 1 == min(30, trained.best_epoch + 2)
    lines = (tmp_path / "run" / "curve.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == trained.curve


def test_a_curriculum_ends_on_its_last_sources_from_the_best_so_far(index: Index, pairs: Path, tmp_path: Path) -> None:
    lines = pairs.read_text().splitlines(keepends=True)
    few = tmp_path / "few.v1.jsonl"
    few.write_text("".join(line for at, line in enumerate(lines) if at % 6 < 2))
    stages = (Stage(4), Stage(3, ("few",), 1e-9))
    config = TrainConfig(stages=stages, batch=40, rate=0.02, patience=9, valid=0.2, query_words=5)
    sources = Sources((pairs, PairFile(few, 2.0)))
    trained = train(index, tmp_path / "run", sources, config, device="cpu")
    assert [row.get("stage") for row in trained.curve] == [None, 1, 1, 1, 1, 2, 2, 2]
    best = max(row["mrr"] for row in trained.curve[1:5])
    assert [row["mrr"] for row in trained.curve[5:]] == pytest.approx([best] * 3)  # a rate of nothing moves nothing
    with pytest.raises(BadInput, match="a stage names 'many'; the sources are pairs, few"):
        train(index, tmp_path / "x", sources, replace(config, stages=(Stage(1, ("many",)),)), device="cpu")


def test_a_plot_shows_every_epoch_and_what_was_kept(tmp_path: Path) -> None:
    rows = [{"epoch": 0, "mrr": 0.2}] + [
        {"epoch": e, "mrr": 0.2 + 0.1 * (e % 3), "loss": 3 / e, "stage": 1 + e // 4, "mined": e // 3}
        for e in range(1, 7)
    ]
    draw(rows, 2, tmp_path / "curve.svg")
    svg = (tmp_path / "curve.svg").read_text()
    assert "kept: epoch 2, 0.4000" in svg
    draw(rows, 2, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == svg
    draw(rows, 2, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_staying_near_the_start_moves_words_less(index: Index, pairs: Path, tmp_path: Path) -> None:
    moved = []
    for stay in (0.0, 100.0):
        config = TrainConfig(epochs=5, batch=40, rate=0.02, patience=5, stay=stay, valid=0.2, seed=3)
        trained = train(index, tmp_path / str(stay), Sources((pairs,)), config, device="cpu")
        start = Head.load(tmp_path / str(stay) / "head").code.arrays["table"][1:]
        assert trained.best_epoch > 0
        vectors = np.load(index.data / "embeddings.npy")
        words = [index.words().vocabulary.id(word) for word in Start.of(index).vocabulary]
        moved.append(float(np.linalg.norm(start - vectors[words])))
    assert moved[1] < moved[0] / 3


def test_rare_words_are_dropped_or_start_from_random_vectors_as_long_as_the_others(index: Index) -> None:
    path = index.data / "embeddings.npy"
    learnt = np.load(path)
    some = learnt.copy()
    some[10:] = 0
    np.save(path, some)
    try:
        published, every = Start.of(index), Start.of(index, rare_words=True)
    finally:
        np.save(path, learnt)
    words = list(index.words().vocabulary)
    assert (list(published.vocabulary), list(every.vocabulary)) == (words[:10], words)
    np.testing.assert_array_equal(every.vectors[:10], published.vectors)
    lengths = np.linalg.norm(every.vectors, axis=1)
    assert lengths[10:].mean() == pytest.approx(np.sqrt(np.square(lengths[:10]).mean()), rel=0.1)


UNIF = ("train", "unif", "-i")
COMMAND = "import sys; from unif.__main__ import main; sys.exit(main(sys.argv[1:]))"
DIE = """
import os, signal, sys
inside = False
def hook(event, arguments):
    global inside, left
    if inside or event.partition(".")[0] not in ("open", "os") or event == "os.kill":
        return
    inside, noted = True, 0
    if os.path.exists(path):
        with open(path) as file:
            noted = sum(1 for line in file) - 1
    inside, left = False, left - (noted >= least)
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""
"""Dies by kill -9 before an operation on files, `left` operations after `least` epochs were noted at `path`."""


EVERYTHING = ["--word-dropout", "0.1", "--query-weights", "words", "--rate", "0.003", "--mine-every", "2",
              "--mined", "3", "--accumulate", "2", "--precision", "float16", "--weight-decay", "0.01", "--stay", "0.1",
              "--stage", "5", "--stage", "3:pairs@0.001"]  # fmt: skip
OTHERS = ["--own", "--optimiser", "adagrad", "--loss", "margin", "--mine-every", "3", "--mined-from", "pairs",
          "--precision", "bfloat16", "--epochs", "8"]  # fmt: skip


def arguments(index: Index, pairs: Path, out: Path, *more: str) -> list[str]:
    return [*UNIF, str(index.folder), "--pairs", f"{pairs}:1.5", "--out", str(out), "--batch", "32", "--patience",
            "12", "--device", "cpu", "-q", *more]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("more", [EVERYTHING, OTHERS], ids=["everything", "others"])
def test_a_training_killed_at_any_time_gives_the_same_bytes(
    index: Index, pairs: Path, tmp_path: Path, more: list[str]
) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def run(out: Path, code: str = COMMAND) -> int:
        command = [sys.executable, "-W", "error", "-c", code, *arguments(index, pairs, out, *more)]
        return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, timeout=5 * LONG).returncode

    assert run(tmp_path / "whole") == 0
    out = tmp_path / "killed"
    for epochs, operations in (2, 0), (4, 3), (6, 1):
        code = f"path, least, left = {str(out / 'curve.jsonl')!r}, {epochs}, {operations}\n{DIE}\n{COMMAND}"
        assert run(out, code) == -signal.SIGKILL
        assert not (out / "head").exists() or epochs_done(out) == 8
    assert run(out) == 0
    whole = tmp_path / "whole" / "head"
    for path in sorted(path for path in whole.rglob("*") if path.is_file()):
        assert (out / "head" / path.relative_to(whole)).read_bytes() == path.read_bytes(), path.name
    assert curve(out) == curve(tmp_path / "whole")
    assert (out / "curve.svg").read_bytes() == (tmp_path / "whole" / "curve.svg").read_bytes()
    mined = {0, 3, 5, 7} if "--stage" in more else {0, 4, 7}
    assert {row["mined"] for row in curve(out)[1:]} == mined


def epochs_done(out: Path) -> int:
    path = out / "curve.jsonl"
    return len(path.read_text().splitlines()) - 1 if path.is_file() else 0


def curve(out: Path) -> list[dict[str, float]]:
    """Without what the clock says."""
    rows = [json.loads(line) for line in (out / "curve.jsonl").read_text().splitlines()]
    return [{key: row[key] for key in row if key not in ("seconds", "pairs_per_s")} for row in rows]


def test_the_command_tells_what_it_read_and_what_it_kept(
    index: Index, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pairs.open() as lines:
        (tmp_path / "some.jsonl").write_text("{\n" + "".join(list(lines)[:30]))
    (tmp_path / "left.jsonl").write_text('{"query": "Askaa, howaa?"}\n')
    run = tmp_path / "run"
    command = [*UNIF, str(index.folder), "--pairs", str(tmp_path / "some.jsonl"), "--out", str(run), "-q", "--epochs",
               "2", "--leave-out", str(tmp_path / "left.jsonl")]  # fmt: skip
    assert main(command) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == ("29 pairs of 29 questions; passed over: 0 without known words, 1 to leave out, 1 bad lines")
    assert "some.jsonl:1: not JSON" in told[1]
    assert sum("<- kept" in line for line in told) == 1
    assert told[-1] == f"use it: ncs build --add unif:head={run}"
    assert main(command) == 0  # it is done already
    assert capsys.readouterr().out.splitlines() == told


def test_what_cannot_be_trained_is_told_in_one_line(
    index: Index, pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*options: str, out: Path = tmp_path / "run") -> str:
        assert main([*UNIF, str(index.folder), "--out", str(out), "-q", "--epochs", "1", *options]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    wordless = tmp_path / "wordless.jsonl"
    wordless.write_text('{"query": "zzz", "code": "zzz()"}\n')
    assert "there is no" in told("--pairs", str(tmp_path / "nowhere"), out=tmp_path / "other")
    with_pairs = ("--pairs", str(pairs))
    assert "no pair has known words on both sides" in told("--pairs", str(wordless), out=tmp_path / "run")
    assert main([*UNIF, str(index.folder), "--out", str(tmp_path / "run"), "-q", "--epochs", "1", *with_pairs]) == 0
    capsys.readouterr()
    assert "holds a training with other settings" in told("--seed", "5", *with_pairs)
    assert "batch is 1; it must be at least 2" in told("--batch", "1")
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"PK\x03\x04 no checkpoint")
    assert "cannot go on from" in told(*with_pairs)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert "is there and holds no training" in told(out=tmp_path / "full")


def test_without_torch_the_command_to_type_is_named(index: Index, tmp_path: Path) -> None:
    script = f"import sys; sys.modules['torch'] = None\n{COMMAND}"
    done = subprocess.run(
        [sys.executable, "-c", script, *UNIF, str(index.folder), "--out", str(tmp_path / "run")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "unif: training needs torch: pip install 'neural-code-search[unif]'\n"


def test_a_device_that_is_not_here_is_refused() -> None:
    assert chosen("cpu").type == "cpu"
    assert chosen("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(BadInput, match="cannot train on 'cuda:99'"):
        chosen("cuda:99")
    with pytest.raises(BadInput, match="cannot train on 'toaster'"):
        chosen("toaster")
