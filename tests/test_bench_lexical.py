"""The lexical benchmark on a few real files: what it prints is true of our engine."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from evaluation import bench_lexical
from evaluation.lexical_corpus import redraw
from ncs.storage.words_builder import WordTableBuilder, batch_words
from ncs.types import FIELDS


def test_redrawn_documents_keep_their_words() -> None:
    builder = WordTableBuilder()
    builder.add(*batch_words([[[f"{field}{row}"] * row for field in FIELDS] for row in range(3)]))
    words = builder.finish()
    drawn = redraw(words, np.array([2, 0, 1, 2]))
    for row, origin in enumerate([2, 0, 1, 2]):
        for field in FIELDS:
            assert drawn.ids_of(row, field).tolist() == words.ids_of(origin, field).tolist()


@pytest.mark.slow
def test_our_engine_finds_the_exact_ranking_and_honours_the_mask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_lexical, "STARTS", 1)
    folder = tmp_path / "sources"
    folder.mkdir()
    for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("t*.py")):
        (folder / file.name).write_bytes(file.read_bytes())
    report = tmp_path / "report.json"
    assert bench_lexical.main([str(folder), "--documents", "1500", "--questions", "60", "--json", str(report)]) == 0
    figures = json.loads(report.read_text())
    ours = figures["engines"]["ncs postings"]
    assert figures["documents"] == 1500
    assert ours["same first ten %"] == 100
    assert ours["score error %"] < 1e-3
    assert ours["mask broken"] == 0
    assert "| ncs postings |" in capsys.readouterr().out
