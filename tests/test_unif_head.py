"""A head of plain arrays, made by hand: its arithmetic, its files, and the ranker that serves it without torch."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import BadInput, IndexDamaged
from ncs.extract import extract
from ncs.index import BuildConfig, Index
from ncs.vocabulary import Vocabulary
from tests.heads import WORDS, head
from tests.words import table
from unif.__main__ import main
from unif.attention import attention
from unif.head import Head, Side
from unif.ranker import UnifRanker


def expected(side: Side, ids: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The weighted mean by the definition: a softmax of the words' scores."""
    weights = np.exp(side.scores[ids].astype(np.float64))
    mean = (weights / weights.sum()) @ side.table[ids]
    return np.asarray(mean / np.linalg.norm(mean))


@pytest.mark.parametrize(("unique", "counted"), [(False, [2, 1, 1]), (True, [2, 1])])
def test_a_document_is_the_softmax_weighted_mean_of_its_words(unique: bool, counted: list[int]) -> None:
    made, words = head(unique=unique), table("open file file", "", "other words", "close; calls: socket open")
    code = made.code.aligned(made.vocabulary, words.vocabulary)
    found = made.documents(words, 0, 4, code)
    np.testing.assert_allclose(found[0], expected(made.code, counted), atol=1e-6)
    np.testing.assert_allclose(found[3], expected(made.code, [0, 3, 2]), atol=1e-6)
    assert not found[1:3].any()
    np.testing.assert_array_equal(made.documents(words, 3, 4, code), found[3:])


def test_a_question_uses_the_other_table_and_all_words_of_the_head() -> None:
    made = head()
    np.testing.assert_allclose(made.question("closeFile, please"), expected(made.query, [0, 1]), atol=1e-6)
    assert not made.question("nothing known").any()
    assert not made.question("").any()


def test_scores_of_any_size_give_numbers() -> None:
    side = Side(np.eye(4, 5, dtype=np.float32), np.array([3000, -3000, -3000, 0], np.float32))
    made, words = Head(Vocabulary.of(WORDS), side, side), table("file open", "close file")
    found = made.documents(words, 0, 2, side.aligned(made.vocabulary, words.vocabulary))
    np.testing.assert_allclose(found, [[0, 0.5**0.5, 0.5**0.5, 0, 0], [1, 0, 0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(made.question("file open"), [0, 0.5**0.5, 0.5**0.5, 0, 0], atol=1e-6)


@pytest.mark.parametrize("unique", [False, True])
def test_attention_is_the_share_of_each_word_beside_tfidfs(unique: bool) -> None:
    made, words = head(unique=unique), table("open file file unknown", "open", "open close")
    found = attention(made, words, 0)
    exp = {word: math.exp(made.code.scores[WORDS.index(word)]) for word in ("open", "file")}
    learnt = {"open": exp["open"], "file": exp["file"] * (1 if unique else 2), "unknown": 0}
    tfidf = {"open": 0, "file": (1 + math.log(2)) * math.log(3), "unknown": math.log(3)}  # open stands everywhere
    assert [each.word for each in found] == sorted(learnt, key=lambda word: -learnt[word])
    for each in found:
        assert each.learnt == pytest.approx(learnt[each.word] / sum(learnt.values()), rel=1e-5)
        assert each.tfidf == pytest.approx(tfidf[each.word] / sum(tfidf.values()), rel=1e-5)
        assert each.count == (2 if each.word == "file" else 1)


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
    made = head(unique=True)
    made.save(tmp_path / "head")
    loaded = Head.load(tmp_path / "head")
    assert list(loaded.vocabulary) == list(WORDS)
    assert loaded.about == {"unique": True}
    for ours, theirs in ((made.query, loaded.query), (made.code, loaded.code)):
        np.testing.assert_array_equal(ours.table, theirs.table)
        np.testing.assert_array_equal(ours.scores, theirs.scores)


def test_a_missing_head_and_damaged_files_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no trained head.*python -m unif train"):
        Head.load(tmp_path)
    head().save(tmp_path)
    np.save(tmp_path / "code.npy", np.zeros((4, 6), np.float32))
    with pytest.raises(IndexDamaged, match="do not fit each other; train"):
        Head.load(tmp_path)
    (tmp_path / "code.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(IndexDamaged, match="cannot read the head"):
        Head.load(tmp_path)


def test_an_index_built_with_a_head_answers_without_its_run_and_without_torch(tmp_path: Path) -> None:
    source = b"def open_file(path):\n    return open(path)\n\n\ndef close_socket(sock):\n    sock.close()\n"
    head().save(tmp_path / "run" / "head")
    config = BuildConfig(rankers=(f"unif:model={tmp_path / 'run'}",))
    with Index.of(extract(source, "python"), tmp_path / "index", config=config) as index:
        before = index.search("close the socket", ranker="unif", functions_only=True)
    assert [hit.document.name for hit in before]
    for path in (tmp_path / "run" / "head").iterdir():
        path.unlink()
    script = (
        "import sys; sys.modules['torch'] = None; from ncs.index import Index\n"
        f"index = Index.load({str(tmp_path / 'index')!r}, verify=True)\n"
        "print([(h.document.name, h.score) for h in"
        " index.search('close the socket', ranker='unif', functions_only=True)])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([(hit.document.name, hit.score) for hit in before])


def test_the_attention_command_shows_the_words_of_the_first_hit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = b"def open_file(path):\n    return open(path)\n\n\ndef close_socket(sock):\n    sock.close()\n"
    Index.of(extract(source, "python", path="io.py"), tmp_path / "index").close()
    head().save(tmp_path / "run" / "head")
    assert main(["attention", str(tmp_path / "index"), str(tmp_path / "run"), "open file", "-n", "2"]) == 0
    place, title, *lines = capsys.readouterr().out.splitlines()
    assert (place, title) == ("open_file  io.py:1", "learnt  tf-idf  word")
    assert {line.split("  ")[-1] for line in lines} == {"open x 2", "file"}
    assert main(["attention", str(tmp_path / "index"), str(tmp_path / "run"), "zzz"]) == 1
    assert main(["attention", str(tmp_path / "index"), str(tmp_path), "open"]) == 2
    assert "no trained head" in capsys.readouterr().err


def test_wrong_use_of_the_ranker_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'unif' needs a trained model; name its run: unif:model=RUN"):
        UnifRanker().prepare()
    with pytest.raises(BadInput, match="there is no trained head in"):
        UnifRanker(model=str(tmp_path)).prepare()
    head().save(tmp_path / "head")
    ranker = UnifRanker(model=str(tmp_path))
    ranker.fit(table("open file", "close socket"))
    ranker.save(tmp_path)
    (tmp_path / "unif" / "head" / "code.npy").unlink()
    with pytest.raises(IndexDamaged, match=r"cannot read .*unif .*code.npy.*; build the index again"):
        UnifRanker().load(tmp_path)
