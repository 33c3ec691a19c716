"""Reciprocal ranks among distractors and heads in tables, against counts by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from evaluation import csn_mrr, learnt_heads
from evaluation.distractors import drawn
from evaluation.reciprocal_ranks import Ranks
from ncs.extract import extract
from ncs.index import BuildConfig, Index
from ncs.learn.heads import Head
from tests.heads import WORDS, head
from unif.config import Encoder


def test_a_rank_counts_the_distractors_that_score_as_high(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, held = np.random.default_rng(0), []
    for _ in range(12):
        said, body = draw.choice(WORDS, 3), draw.choice(WORDS, 4)
        held.append((" ".join(said), f"def {body[0]}({body[1]}):\n    return {body[2]}({body[3]})", "python"))
    reader = head()
    monkeypatch.setattr(csn_mrr, "drawn", lambda relevant, n, seed: drawn(relevant, n, count=5, seed=seed))
    found = csn_mrr.reciprocal_ranks(reader, held, seed=3)
    among = drawn({str(at): [at] for at in range(12)}, 12, count=5, seed=3)
    from unif.sources import code_words

    rows = [reader.code.tokens.ids(code_words(code, "python", doc=False)) for _, code, _ in held]
    cosines = reader.encode_queries([said for said, _, _ in held]) @ reader.code.vectors(rows).T
    for at, others in enumerate(among.values()):
        assert found[at] == pytest.approx(1 / sum(cosines[at, other] >= cosines[at, at] - 1e-6 for other in others))


def made(corpus: Path, language: str, partition: str, pairs: list[tuple[str, str, str]]) -> None:
    folder = corpus / language / "final" / "jsonl" / partition
    folder.mkdir(parents=True)
    rows = [{"docstring": said, "code": code, "language": language, "repo": repo} for said, code, repo in pairs]
    lines = [json.dumps({**row, "partition": partition, "url": str(at)}) for at, row in enumerate(rows)]
    (folder / f"{language}_{partition}_0.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def some(seed: int, repositories: int) -> list[tuple[str, str, str]]:
    """Questions that say two words of their function, which has a third."""
    draw, found = np.random.default_rng(seed), []
    for at in range(40 * repositories):
        one, two, other = draw.choice(12, 3, replace=False)
        code = f"def w{chr(97 + one)}_w{chr(97 + two)}(w{chr(97 + other)}):\n    return w{chr(97 + one)}"
        found.append((f"the w{chr(97 + one)} of w{chr(97 + two)} number {at}", code, f"r{at % repositories}"))
    return found


def test_one_command_goes_from_a_corpus_to_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="needs the extra unif")
    encoder: Encoder = "nbow"
    for partition, seed, repositories in (("train", 0, 8), ("valid", 1, 1), ("test", 2, 1)):
        made(tmp_path / "corpus", "python", partition, some(seed, repositories))
    monkeypatch.setattr(csn_mrr, "drawn", lambda relevant, n, seed: drawn(relevant, n, count=20, seed=seed))
    told = ["--encoder", encoder, "--epochs", "20", "--batch", "32", "--rate", ".01", "--code-words", "6"]
    command = [str(tmp_path / "corpus"), *told, "--out", str(tmp_path / "runs"), "--json", str(tmp_path / "found.json")]
    assert csn_mrr.main(command) == 0
    found = json.loads((tmp_path / "found.json").read_bytes())["python"]
    figures, lesson = found["heads"][encoder], found["heads"][encoder]["lesson"]
    assert (found["held_out_pairs"], found["train_pairs"], len(figures["ranks"])) == (80, 320, 80)
    assert figures["mrr"] == pytest.approx(np.mean([1 / rank for rank in figures["ranks"]]), abs=1e-4)
    assert figures["mrr"] > 0.4  # by chance the mean of 1 / 1 .. 1 / 21 is .17
    assert lesson["epochs"] == pytest.approx(20, abs=1)
    assert lesson["best"] == max(mrr for *_, mrr in lesson["curve"])
    head = Head.load(tmp_path / "runs" / "python" / encoder)
    assert head.code.settings["longest"] == 6  # served as it was learnt
    printed = capsys.readouterr().out
    assert f"| {encoder} | {lesson['seen']:,} | {lesson['epochs']:.1f} |" in printed
    assert f"| {csn_mrr.PUBLISHED[encoder]} |" in printed
    assert csn_mrr.main(command) == 0  # trained before: not again
    assert json.loads((tmp_path / "found.json").read_bytes())["python"]["heads"][encoder]["lesson"] == lesson
    assert csn_mrr.main([*command, "--rate", ".02"]) == 2
    assert "was trained otherwise" in capsys.readouterr().err


def test_a_corpus_without_the_language_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="needs the extra unif")
    assert csn_mrr.main([str(tmp_path), "--out", str(tmp_path / "runs"), "--json", str(tmp_path / "x.json")]) == 2
    assert "has no pairs of python" in capsys.readouterr().err


def test_settings_of_a_run_name_no_folders(tmp_path: Path) -> None:
    told = {"pairs": {"/somewhere/so.jsonl.gz": 2.0}, "leave_out": "/somewhere/dev.jsonl", "rate": 0.001}
    (tmp_path / "config.json").write_text(json.dumps(told))
    expected = {"pairs": {"so.jsonl.gz": 2.0}, "leave_out": "dev.jsonl", "rate": 0.001}
    assert learnt_heads.trained_by(tmp_path) == expected


def test_a_table_gives_heads_beside_words_and_fusions_beside_the_fusion_without() -> None:
    ranks = {"bm25": [1.0, 0.0], "hybrid": [1.0, 0.5], "so": [0.0, 0.0], "hybrid with so": [1.0, 1.0]}
    found = {label: {"mrr": {str(at): value for at, value in enumerate(each)}} for label, each in ranks.items()}
    lines = learnt_heads.table(found).splitlines()
    assert lines[:3] == ["| ranker | mrr |", "|---|---|", "| bm25 | 0.500 |"]
    assert lines[3].startswith("| hybrid | 0.750 (+0.250 [")
    assert lines[4].startswith("| so | 0.000 (-0.500 [")
    assert lines[5].startswith("| hybrid with so | 1.000 (+0.250 [")


def test_heads_are_ranked_alone_centred_and_in_the_fusion(tmp_path: Path) -> None:
    source = b"def open_file(path):\n    return open(path)\n\n\ndef close_socket(sock):\n    sock.close()\n"
    head().save(tmp_path / "run" / "head")
    with Index.of(extract(source, "python"), tmp_path / "index", config=BuildConfig()) as index:

        def first(ranker: object) -> Ranks:
            hits = ranker.search("close the file", 1)  # type: ignore[attr-defined]
            return {"row": {"q": float(hits[0][0])}}

        found = learnt_heads.rows_of(index, {"mine": tmp_path / "run"}, 0.3, first)
        assert list(found) == [*learnt_heads.BASES, "mine", "mine, centred", "hybrid with mine"]
        unif = index.fitted("unif", head=str(tmp_path / "run"))
        assert found["mine"]["row"]["q"] == unif.search("close the file", 1)[0][0]
