"""Training: losses by hand, toy sets learned by heart, and the same result however often it was killed."""

from __future__ import annotations

import doctest
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

import numpy as np
import pytest

from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.extract import extract
from ncs.index import Index
from ncs.search.unif import UnifRanker
from ncs.types import Document
from unif.__main__ import main
from unif.config import Encoder, Stage, TrainConfig
from unif.sources import PairFile, Sources

torch = pytest.importorskip("torch", reason="needs the extra unif")

from tests.waiting import LONG  # noqa: E402
from unif import losses  # noqa: E402
from unif.losses import find_twins  # noqa: E402
from unif.step import choose_device  # noqa: E402
from unif.training import train  # noqa: E402

TOPICS = 40
torch.set_num_threads(1)  # networks this small are slower on more


def test_equal_questions_and_equal_codes_are_no_negatives() -> None:
    query, code = torch.tensor([[1, 2], [1, 2], [2, 1]]), torch.tensor([[4, 0], [5, 0], [4, 0]])
    expected = [[True, True, True], [True, True, False], [True, False, True]]
    assert find_twins(query, code).tolist() == expected
    hard = torch.tensor([[5, 0, 0], [4, 0, 0], [0, 0, 0]])
    twins = find_twins(query, code, hard)[:, 3:].tolist()
    assert twins == [[False, True, True], [True, False, True], [False, True, True]]
    assert doctest.testmod(losses, extraglobs={"torch": torch}).failed == 0


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
    wordings = ("ask{0}", "how{0}", "ask{0} how{0}", "ask{0} open", "how{0} open", "open ask{0} how{0}")
    rows = [
        {
            "query": wording.format(letters(i)),
            "code": "call{0}(); use{0}(); open()".format(letters(i)),
            "language": "python",
        }
        for i in range(TOPICS)
        for wording in wordings
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["softmax", "margin"])
def test_a_toy_set_is_learned_by_heart(index: Index, pairs: Path, tmp_path: Path, loss: str) -> None:
    config = TrainConfig(loss=loss, epochs=60, batch=40, rate=0.02, margin=0.4, patience=60, valid=0.1)  # type: ignore[arg-type]
    trained = train(index, tmp_path / "run", Sources((PairFile(pairs),)), config, device="cpu")
    assert trained.best_mrr == 1
    assert trained.curve[0]["mrr"] < 0.9
    ranker = index.fitted("unif", head=str(tmp_path / "run"))
    right = [ranker.search(f"how{letters(i)}", 1)[0][0] == i for i in range(TOPICS)]
    assert sum(right) >= 0.85 * TOPICS  # the first epoch with every validation question right is exported


def test_the_best_epoch_is_exported_and_patience_ends_a_training(index: Index, pairs: Path, tmp_path: Path) -> None:
    config = TrainConfig(epochs=30, batch=40, rate=0.02, patience=2, valid=0.2)
    trained = train(index, tmp_path / "run", Sources((PairFile(pairs),)), config, device="cpu")
    mrr = [row["mrr"] for row in trained.curve]
    assert trained.best_epoch == mrr.index(max(mrr))
    assert len(mrr) - 1 == min(30, trained.best_epoch + 2)
    assert [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()] == trained.curve


def test_a_curriculum_ends_on_its_last_sources_from_the_best_so_far(index: Index, pairs: Path, tmp_path: Path) -> None:
    lines = pairs.read_text().splitlines(keepends=True)
    few = tmp_path / "few.v1.jsonl"
    few.write_text("".join(line for at, line in enumerate(lines) if at % 6 < 2))
    stages = (Stage(4), Stage(3, ("few",), 1e-9))
    config = TrainConfig(stages=stages, batch=40, rate=0.02, patience=9, valid=0.2, query_words=5)
    sources = Sources((PairFile(pairs), PairFile(few, 2.0)))
    trained = train(index, tmp_path / "run", sources, config, device="cpu")
    assert [row.get("stage") for row in trained.curve] == [None, 1, 1, 1, 1, 2, 2, 2]
    best = max(row["mrr"] for row in trained.curve[1:5])
    assert [row["mrr"] for row in trained.curve[5:]] == pytest.approx([best] * 3)  # a rate of nothing moves nothing


def test_a_head_trained_centred_serves_centred(index: Index, pairs: Path, tmp_path: Path) -> None:
    config = TrainConfig(epochs=2, batch=20, rate=0.01, valid=0.4, centre=True)
    train(index, tmp_path / "run", Sources((PairFile(pairs),)), config, device="cpu")
    run = str(tmp_path / "run")
    rankers = index.fitted("unif", head=run), index.fitted("unif", head=run, centre=False)
    served, raw = (cast(UnifRanker, each).vectors.vectors(np.arange(len(index))).astype(np.float64) for each in rankers)
    moved = raw - raw.mean(axis=0)
    np.testing.assert_allclose(served, moved / np.linalg.norm(moved, axis=1, keepdims=True), atol=1e-5)


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
@pytest.mark.parametrize("encoder", get_args(Encoder))
def test_every_encoder_learns_what_a_word_of_a_query_means_and_answers(tmp_path: Path, encoder: Encoder) -> None:
    pytest.importorskip("tokenizers", reason="needs the extra unif")
    both = [(verb, thing) for verb in VERBS for thing in THINGS]
    rows = [
        {"query": f"{said} {VERBS[verb]} {thing}", "code": code(verb, thing), "language": "python"}
        for verb, thing in both
        for said in ("how to", "i want to", "please", "can you", "a way to", "let me")
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = TrainConfig(
        encoder=encoder, dropout=0.0, epochs=12, batch=20, patience=12, valid=0.15,
        rate=0.02 if encoder in ("unif", "nbow") else 0.002,
    )  # fmt: skip
    source = "\n\n".join(code(*each) for each in both)
    documents = extract(source.encode(), "python")
    with Index.of(documents, tmp_path / "index", config=BuildConfig(outside=False)) as index:
        trained = train(index, tmp_path / "run", Sources((PairFile(path),)), config, device="cpu")
        ranker = index.fitted("unif", head=str(tmp_path / "run"))
        names = [index.documents.document(row).name for row in range(len(index))]
        right = [names[ranker.search(f"please {VERBS[v]} {t}", 1)[0][0]] == f"{v}_{t}" for v, t in both]
    assert trained.curve[-1]["loss"] < 0.8 * trained.curve[1]["loss"]
    assert trained.best_mrr >= trained.curve[0]["mrr"]
    assert np.mean(right) >= 0.3  # by chance 0.05


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


EVERYTHING = ["--word-dropout", "0.1", "--rate", "0.003", "--mine-every", "2", "--mined", "3", "--accumulate", "2",
              "--precision", "bfloat16", "--stage", "5", "--stage", "3:pairs@0.001"]  # fmt: skip
OTHERS = ["--own", "--loss", "margin", "--mine-every", "3", "--centre", "--epochs", "8"]


@pytest.mark.slow
@pytest.mark.parametrize("more", [EVERYTHING, OTHERS], ids=["everything", "others"])
def test_a_training_killed_at_any_time_gives_the_same_bytes(
    index: Index, pairs: Path, tmp_path: Path, more: list[str]
) -> None:
    def run(out: Path, script: str = COMMAND) -> int:
        options = ["--pairs", f"{pairs}:1.5", "--out", str(out), "--batch", "32", "--patience", "12", "-q", *more]
        command = [sys.executable, "-W", "error", "-c", script, *UNIF, str(index.folder), "--device", "cpu", *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, timeout=5 * LONG).returncode

    assert run(tmp_path / "whole") == 0
    out = tmp_path / "killed"
    for epochs, operations in (2, 0), (4, 3), (6, 1):
        script = f"path, least, left = {str(out / 'curve.jsonl')!r}, {epochs}, {operations}\n{DIE}\n{COMMAND}"
        assert run(out, script) == -signal.SIGKILL
        assert not (out / "head").exists() or len(curve(out)) == 9
    assert run(out) == 0
    whole = tmp_path / "whole" / "head"
    for path in sorted(path for path in whole.rglob("*") if path.is_file()):
        assert (out / "head" / path.relative_to(whole)).read_bytes() == path.read_bytes(), path.name
    assert curve(out) == curve(tmp_path / "whole")
    assert {row["mined"] for row in curve(out)[1:]} == ({0, 3, 5, 7} if "--stage" in more else {0, 4, 7})


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

    wordless = tmp_path / "wordless.jsonl"
    wordless.write_text('{"query": "zzz", "code": "zzz()"}\n')
    with_pairs = ("--pairs", str(pairs))
    assert "no pair has known words on both sides" in error("--pairs", str(wordless))
    assert main([*UNIF, str(index.folder), "--out", str(tmp_path / "run"), "-q", "--epochs", "1", *with_pairs]) == 0
    capsys.readouterr()
    assert "holds a training with other settings" in error("--seed", "5", *with_pairs)
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"PK\x03\x04 no checkpoint")
    assert "cannot resume from" in error(*with_pairs)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert "exists and holds no training" in error(out=tmp_path / "full")


def test_a_device_that_is_not_here_is_refused() -> None:
    assert choose_device("cpu").type == "cpu"
    for wrong in ("cuda:99", "toaster"):
        with pytest.raises(BadInput, match=f"cannot train on '{wrong}'"):
            choose_device(wrong)
