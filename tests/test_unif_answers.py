"""Lists judged by known answers: what is read, what is judged, and that a head learns what the lists lack."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.index import BuildConfig, Index
from ncs.search.aroma import features, similarity
from unif.answers import FEWEST, Asked, judged_lists, read_answers
from unif.ranker import UnifRanker
from unif.settings import TranslationConfig
from unif.sources import PairFile, Sources

ANSWER = "imm.hideSoftInputFromWindow(view.getWindowToken(), 0); view.clearFocus(); done.set(true);"
WORDS = ("Alpha", "Beta", "Gamma", "Delta", "Kappa", "Sigma")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """All names say keyboard; every fourth function does what the answer does."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "src").mkdir()
    for at in range(40):
        word = f"{WORDS[at % len(WORDS)]}{WORDS[at // len(WORDS) % len(WORDS)]}"
        body = ANSWER if at % 4 == 0 else f"keyboard.draw{word}(canvas, {at}); keyboard.show{word}();"
        code = f"class C{at} {{\n  void keyboardHide{word}() {{\n    {body}\n    log.write{word}({at});\n  }}\n}}\n"
        (folder / "src" / f"C{at}.java").write_text(code)
    return Index.build(folder / "src", folder / "index", config=BuildConfig(deduplicate=False))


def lines(path: Path, *rows: tuple[str, str]) -> Path:
    rendered = (json.dumps({"query": query, "code": code, "language": "java"}) for query, code in rows)
    path.write_text("\n".join(rendered) + "\n\n")
    return path


def test_answers_of_one_question_come_together_and_short_ones_are_left_out(tmp_path: Path) -> None:
    other = ANSWER.replace("view", "field")
    rows = [("Hide keyboard", ANSWER), ("hide  Keyboard!", other), ("Exit", "finish();"), ("Left out", ANSWER)]
    found = read_answers([lines(tmp_path / "a.jsonl", *rows)], frozenset({"left out"}))
    assert found == [Asked("Hide keyboard", ((ANSWER, "java"), (other, "java")))]
    (tmp_path / "bad.jsonl").write_text('{"query": 1}\n')
    with pytest.raises(BadInput, match=r"bad\.jsonl:1"):
        read_answers([tmp_path / "bad.jsonl"])


def test_functions_are_judged_by_what_they_hold_of_the_answer(index: Index) -> None:
    (found,) = judged_lists(index, [Asked("hide keyboard", ((ANSWER, "java"),))])
    assert len(found.rows) == len(found.scores) == len(found.held) >= FEWEST
    for document, held in zip(index.store.documents(found.rows.tolist()), found.held, strict=True):
        assert held == pytest.approx(similarity(features(document.code, "java"), features(ANSWER, "java")))
        assert (held > 0.8) == ("hideSoftInputFromWindow" in document.code)
    assert (np.diff(found.scores) <= 1e-9).sum() > 0


def test_lists_that_tell_nothing_apart_are_refused(index: Index) -> None:
    unlike = (
        "long[] a = {1L, 2L}; do { a[0] <<= 1; } while (a[0] < a[1] ? a[1] > 7L : a.length == 2); assert a[0] != 3L;"
    )
    with pytest.raises(BadInput, match="2 questions"):
        judged_lists(index, [Asked("hide keyboard", ((unlike, "java"),)), Asked("zzz", ((ANSWER, "java"),))])


def test_a_head_learns_what_the_lists_lack(index: Index, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from unif.translating import train

    pairs = [(f"how to {word.lower()} the thing", f"void make{word}() {{ thing.{word.lower()}(); }}") for word in WORDS]
    asked = [(f"{verb} keyboard {word.lower()}", ANSWER) for verb in ("hide", "show", "remove") for word in WORDS]
    files = [PairFile(lines(tmp_path / "pairs.jsonl", *pairs * 4, *asked))]
    config = TranslationConfig(dim=8, batch=8, epochs=1, rounds=20)
    right = {row for row in range(len(index)) if "hideSoft" in index.store.document(row).code}
    found = []
    for name, answered in (("plain", ()), ("taught", (lines(tmp_path / "answers.jsonl", *asked),))):
        train(tmp_path / name, Sources(files, answered=answered), config, index=index)
        head = UnifRanker(head=str(tmp_path / name))
        head.fit(index.words())
        assert not head.taught
        found.append(sum(row in right for row, _ in head.search("close keyboard", 10)))
    assert found[1] > found[0] + 2
    about = json.loads((tmp_path / "taught" / "config.json").read_bytes())
    assert about["answers"] == [str(tmp_path / "answers.jsonl")]
    curve = (tmp_path / "taught" / "curve.jsonl").read_text().splitlines()
    assert len(curve) == 1 + config.epochs + config.passes + config.rounds
