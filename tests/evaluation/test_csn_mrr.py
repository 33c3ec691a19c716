"""Reciprocal ranks of learnt heads among distractors, against counts by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from evaluation import csn_mrr
from evaluation.distractors import draw_distractors
from tests.heads import WORDS, head


def test_a_rank_counts_the_distractors_that_score_as_high(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, held = np.random.default_rng(0), []
    for _ in range(12):
        said, body = draw.choice(WORDS, 3), draw.choice(WORDS, 4)
        held.append((" ".join(said), f"def {body[0]}({body[1]}):\n    return {body[2]}({body[3]})", "python"))
    reader = head()
    monkeypatch.setattr(
        csn_mrr, "draw_distractors", lambda relevant, n, seed: draw_distractors(relevant, n, count=5, seed=seed)
    )
    found = csn_mrr.reciprocal_ranks(reader, held, seed=3)
    among = draw_distractors({str(at): [at] for at in range(12)}, 12, count=5, seed=3)
    from unif.sources import code_words

    rows = [reader.code.tokens.ids(code_words(code, "python", doc=False)) for _, code, _ in held]
    cosines = reader.encode_queries([said for said, _, _ in held]) @ reader.code.vectors(rows).T
    for at, others in enumerate(among.values()):
        assert found[at] == pytest.approx(1 / sum(cosines[at, other] >= cosines[at, at] - 1e-6 for other in others))


def test_one_command_goes_from_heads_to_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head().save(tmp_path / "run" / "head")
    config = {"encoder": "nbow", "pairs": {"/somewhere/a.jsonl.gz": 2.0}, "leave_out": "/somewhere/dev.jsonl"}
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    for partition in ("valid", "test"):
        folder = tmp_path / "corpus" / "python" / "final" / "jsonl" / partition
        folder.mkdir(parents=True)
        rows = [
            {"docstring": word, "code": f"def {word}(x):\n    return {word}(x)", "language": "python"} for word in WORDS
        ]
        (folder / "0.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    monkeypatch.setattr(
        csn_mrr, "draw_distractors", lambda relevant, n, seed: draw_distractors(relevant, n, count=3, seed=seed)
    )
    command = [str(tmp_path / "corpus"), "--head", f"mine={tmp_path / 'run'}", "--json", str(tmp_path / "found.json")]
    assert csn_mrr.main(command) == 0
    report = json.loads((tmp_path / "found.json").read_bytes())
    mine = report["heads"]["mine"]
    assert report["pairs"] == len(mine["ranks"]) == 2 * len(WORDS)
    assert mine["mrr"] == pytest.approx(np.mean([1 / rank for rank in mine["ranks"]]), abs=1e-4)
    assert mine["settings"]["pairs"] == {"a.jsonl.gz": 2.0}  # no folders of this machine
    assert mine["settings"]["leave_out"] == "dev.jsonl"
    assert f"| mine | nbow    | {mine['mrr']:.3f} [" in capsys.readouterr().out
