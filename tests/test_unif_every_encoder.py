"""Every encoder from pairs to answers: learnt by the one loop, exported, served over an index by the same ranker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from ncs.extract import extract
from ncs.index import BuildConfig, Index
from unif.settings import Encoder, ModelConfig, TrainConfig
from unif.sources import Sources

torch = pytest.importorskip("torch", reason="needs the extra unif")
pytest.importorskip("tokenizers", reason="needs the extra unif")

from unif.train import train  # noqa: E402

VERBS = ("open", "close", "read", "write")
THINGS = ("file", "socket", "window", "queue", "image")
ASKED = {"open": "start", "close": "end", "read": "load", "write": "store"}


def code(verb: str, thing: str) -> str:
    lines = (
        f"def {verb}_{thing}(handle, options):",
        f'    """{ASKED[verb].title()} it."""',  # for UNIF, whose words are those of the index
        f"    driver = {thing}_driver(handle)",
        f"    return driver.{verb}(options)",
    )
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    source = "\n\n".join(code(verb, thing) for verb in VERBS for thing in THINGS)
    config = BuildConfig(outside=False)
    with Index.of(extract(source.encode(), "python"), tmp_path_factory.mktemp("index"), config=config) as built:
        yield built


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions that name the verb by another word; often enough that every token is learnt."""
    rows = [
        {"query": f"{said} {ASKED[verb]} {thing}", "code": code(verb, thing), "language": "python"}
        for verb in VERBS
        for thing in THINGS
        for said in ("how to", "i want to", "please", "can you", "a way to", "let me")
    ]
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("encoder", get_args(Encoder))
def test_an_encoder_learns_what_a_word_of_a_question_means_and_answers(
    index: Index, pairs: Path, tmp_path: Path, encoder: Encoder
) -> None:
    config = TrainConfig(
        epochs=12, batch=20, rate=0.02 if encoder in ("unif", "nbow") else 0.002, patience=12, valid=0.15,
        model=ModelConfig(encoder=encoder, dropout=0.0),
    )  # fmt: skip
    trained = train(index, tmp_path / "run", Sources((pairs,)), config, device="cpu")
    losses = [row["loss"] for row in trained.curve[1:]]
    assert losses[-1] < 0.8 * losses[0]
    assert trained.best_mrr >= trained.curve[0]["mrr"]
    ranker = index.fitted("unif", head=str(tmp_path / "run"))
    names = [index.store.document(row).name for row in range(len(index))]
    found = [names[ranker.search(f"please {ASKED[v]} {t}", 1)[0][0]] == f"{v}_{t}" for v in VERBS for t in THINGS]
    assert np.mean(found) >= 0.3  # by chance 0.05
