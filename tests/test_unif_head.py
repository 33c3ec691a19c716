"""A head of plain arrays, made by hand: its arithmetic, its files, and the ranker that serves it without torch."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncs.build.add_ranker import add_rankers
from ncs.errors import BadInput, IndexDamaged
from ncs.extract import extract
from ncs.index import BuildConfig, Index
from ncs.text.vocabulary import Vocabulary
from tests.heads import WORDS, head, side
from tests.words import table
from unif.__main__ import main
from unif.attention import attention
from unif.encoding_speed import measure, report
from unif.head import Head, Side, opened, tokens_of
from unif.ranker import UnifRanker
from unif.tokenization import Words

SOURCE = b"def open_file(path):\n    return open(path)\n\n\ndef close_socket(sock):\n    sock.close()\n"


def expected(side: Side, ids: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The weighted mean by the definition: a softmax of the words' scores, averaged over heads; ids from 0."""
    rows = np.array(ids) + 1
    weights = np.exp(side.arrays["scores"][rows].astype(np.float64))
    mean = (weights / weights.sum(axis=0)).mean(axis=1) @ side.arrays["table"][rows]
    return np.asarray(mean / np.linalg.norm(mean))


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize(("unique", "counted"), [(False, [2, 1, 1]), (True, [2, 1])])
def test_a_document_is_the_softmax_weighted_mean_of_its_words(unique: bool, counted: list[int], heads: int) -> None:
    made = head(unique=unique, heads=heads)
    words = table("open file file", "", "other words", "close; calls: socket open")
    mapped = tokens_of(made.code, words.vocabulary)
    found = made.documents(words, 0, 4, mapped)
    np.testing.assert_allclose(found[0], expected(made.code, counted), atol=1e-6)
    np.testing.assert_allclose(found[3], expected(made.code, [0, 3, 2]), atol=1e-6)
    assert not found[1:3].any()
    np.testing.assert_array_equal(made.documents(words, 3, 4, mapped), found[3:])


def test_a_question_uses_the_other_table_and_all_words_of_the_head() -> None:
    made = head()
    np.testing.assert_allclose(made.question("closeFile, please"), expected(made.query, [0, 1]), atol=1e-6)
    assert not made.question("nothing known").any()
    assert not made.question("").any()


def test_scores_of_any_size_give_numbers() -> None:
    one = side(np.eye(4, 5, dtype=np.float32), [3000, -3000, -3000, 0], Words(Vocabulary.of(WORDS)))
    made, words = Head(one, one), table("file open", "close file")
    found = made.documents(words, 0, 2, tokens_of(one, words.vocabulary))
    np.testing.assert_allclose(found, [[0, 0.5**0.5, 0.5**0.5, 0, 0], [1, 0, 0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(made.question("file open"), [0, 0.5**0.5, 0.5**0.5, 0, 0], atol=1e-6)


def test_a_word_the_head_lacks_is_the_mean_of_its_n_grams() -> None:
    tokens = Words(Vocabulary.of(WORDS), buckets=50)
    numbers = np.random.default_rng(0).normal(size=(54, 5)).astype(np.float32)
    one = side(numbers, np.zeros(54), tokens)
    made, words = Head(one, one), table("opened", "open", "zu")
    grams = "<op ope pen ene ned ed> <ope open pene ened ned> <open opene pened ened> <opene opened pened>"
    assert sorted(tokens.ids(["opened"])) == sorted(map(bucket, grams.split()))
    found = made.documents(words, 0, 3, tokens_of(one, words.vocabulary))
    mean = numbers[[bucket(gram) - 1 for gram in grams.split()]].mean(axis=0)
    np.testing.assert_allclose(found[0], mean / np.linalg.norm(mean), atol=1e-6)
    np.testing.assert_allclose(found[1], numbers[2] / np.linalg.norm(numbers[2]), atol=1e-6)
    np.testing.assert_allclose(made.question("opened"), found[0], atol=1e-6)


def bucket(gram: str) -> int:
    """The id of an n-gram behind four words, of fifty."""
    return 5 + zlib.crc32(gram.encode()) % 50


@pytest.mark.parametrize("unique", [False, True])
def test_attention_is_the_share_of_each_word_beside_tfidfs(unique: bool) -> None:
    made, words = head(unique=unique), table("open file file unknown", "open", "open close")
    found = attention(made, words, 0)
    exp = {word: math.exp(made.code.arrays["scores"][1 + WORDS.index(word), 0]) for word in ("open", "file")}
    learnt = {"open": exp["open"], "file": exp["file"] * (1 if unique else 2), "unknown": 0}
    tfidf = {"open": 0, "file": (1 + math.log(2)) * math.log(3), "unknown": math.log(3)}  # open stands everywhere
    assert [each.word for each in found] == sorted(learnt, key=lambda word: -learnt[word])
    for each in found:
        assert each.learnt == pytest.approx(learnt[each.word] / sum(learnt.values()), rel=1e-5)
        assert each.tfidf == pytest.approx(tfidf[each.word] / sum(tfidf.values()), rel=1e-5)
        assert each.count == (2 if each.word == "file" else 1)


def test_attention_of_several_heads_is_the_mean_of_their_shares() -> None:
    made, words = head(heads=2), table("open file file", "socket")
    found = {each.word: each.learnt for each in attention(made, words, 0)}
    exp = np.exp(made.code.arrays["scores"].astype(np.float64))
    shares = [exp[3, at] / (exp[3, at] + 2 * exp[2, at]) for at in (0, 1)]
    assert found["open"] == pytest.approx(sum(shares) / 2, rel=1e-5)
    assert sum(found.values()) == pytest.approx(1)


def test_attention_is_not_shown_where_words_have_no_weight_of_their_own() -> None:
    made = head()
    other = replace(made, reads="source")
    with pytest.raises(BadInput, match="does not weigh words"):
        attention(other, table("open"), 0)


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
    made = head(unique=True, heads=2)
    made.save(tmp_path / "head")
    for loaded in (Head.load(tmp_path / "head"), opened(tmp_path), opened(tmp_path / "head")):
        assert loaded.about == {"unique": True}
        for ours, theirs in ((made.query, loaded.query), (made.code, loaded.code)):
            assert ours.settings == theirs.settings
            assert theirs.tokens.ids(["zzz", *WORDS]) == [1, 2, 3, 4]
            for name, array in ours.arrays.items():
                np.testing.assert_array_equal(array, theirs.arrays[name])


def test_a_missing_head_and_damaged_files_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no trained head.*ncs train unif"):
        Head.load(tmp_path)
    head().save(tmp_path)
    np.save(tmp_path / "code" / "table.npy", np.zeros((4, 6), np.float32))
    with pytest.raises(IndexDamaged, match=r"table.npy holds other numbers.*train it again"):
        Head.load(tmp_path)
    (tmp_path / "code" / "table.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(IndexDamaged, match="cannot read the head"):
        Head.load(tmp_path)
    about = json.loads((tmp_path / "head.json").read_text())
    (tmp_path / "head.json").write_text(json.dumps({**about, "format": 1}))
    with pytest.raises(IndexDamaged, match="of another version of ncs; train it again"):
        Head.load(tmp_path)
    (tmp_path / "head.json").write_text(json.dumps({"format": about["format"]}))
    with pytest.raises(IndexDamaged, match="cannot read the head"):
        Head.load(tmp_path)


def test_an_index_built_with_a_head_answers_without_its_run_and_without_torch(tmp_path: Path) -> None:
    head().save(tmp_path / "run" / "head")
    config = BuildConfig(rankers=(f"unif:head={tmp_path / 'run'}",))
    with Index.of(extract(SOURCE, "python"), tmp_path / "index", config=config) as index:
        before = index.search("close the socket", ranker="unif", functions_only=True)
    assert [hit.document.name for hit in before]
    for path in (tmp_path / "run" / "head").rglob("*.*"):
        path.unlink()
    script = (
        "import sys; sys.modules['torch'] = sys.modules['tokenizers'] = None; from ncs.index import Index\n"
        f"index = Index.load({str(tmp_path / 'index')!r}, verify=True)\n"
        "print([(h.document.name, h.score) for h in"
        " index.search('close the socket', ranker='unif', functions_only=True)])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([(hit.document.name, hit.score) for hit in before])


def test_a_head_over_the_source_reads_the_code_and_needs_it(tmp_path: Path) -> None:
    replace(head(), reads="source").save(tmp_path / "head")
    documents = list(extract(SOURCE, "python"))
    with Index.of(documents, tmp_path / "index") as index:
        ranker = index.fitted("unif", head=str(tmp_path))
        row = next(row for row in range(len(index)) if index.store.document(row).name == "open_file")
        made = head()
        cosine = expected(made.query, [1]) @ expected(made.code, [2, 1, 2])  # open file path open path
        assert dict(ranker.search("file", 5))[row] == pytest.approx(cosine, abs=1e-6)
        once = replace(made, about={"unique": True}).sources([("open file path open path", "python")])
        np.testing.assert_allclose(once[0], expected(made.code, [2, 1]), atol=1e-6)
    bare = Index.of(documents, tmp_path / "bare", config=BuildConfig(store_code=False))
    with bare, pytest.raises(BadInput, match="keeps no code"):
        bare.fitted("unif", head=str(tmp_path))


def test_the_attention_command_shows_the_words_of_the_first_hit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Index.of(extract(SOURCE, "python", path="io.py"), tmp_path / "index").close()
    head().save(tmp_path / "run" / "head")
    asked, run = ["attention", "-i", str(tmp_path / "index")], str(tmp_path / "run")
    assert main([*asked, "--head", run, "open file", "-n", "2"]) == 0
    place, title, *lines = told = capsys.readouterr().out.splitlines()
    assert (place, title) == ("open_file  io.py:1", "learnt  tf-idf  word")
    assert {line.split("  ")[-1] for line in lines} == {"open x 2", "file"}
    assert main([*asked, "--head", run, "zzz"]) == 1
    assert main([*asked, "open"]) == 2
    assert "built without 'unif'" in capsys.readouterr().err
    add_rankers(tmp_path / "index", [f"unif:head={run}"])
    shutil.rmtree(run)
    assert main([*asked, "open file", "-n", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == told
    assert main([*asked, "--head", str(tmp_path / "index"), "open"]) == 2
    assert "no trained head" in capsys.readouterr().err


def test_wrong_use_of_the_ranker_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'unif' needs a trained head; name its folder: unif:head=HEAD"):
        UnifRanker().prepare()
    with pytest.raises(BadInput, match="there is no trained head in"):
        UnifRanker(head=str(tmp_path)).prepare()
    head().save(tmp_path / "head")
    ranker = UnifRanker(head=str(tmp_path))
    ranker.fit(table("open file", "close socket"))
    ranker.save(tmp_path)
    (tmp_path / "unif" / "head" / "code" / "table.npy").unlink()
    with pytest.raises(IndexDamaged, match=r"cannot read .*unif .*table.npy.*; build the index again"):
        UnifRanker().load(tmp_path)


def test_the_speed_of_encoding_counts_the_tokens_that_were_read(tmp_path: Path) -> None:
    head().save(tmp_path)
    replace(head(), reads="source").save(tmp_path / "source")
    with Index.of(extract(SOURCE, "python"), tmp_path / "index") as index:
        functions = [row for row in range(len(index)) if index.store.document(row).kind == "function"]
        assert functions[:2] == [0, 1]
        fields = measure(index, Head.load(tmp_path), functions=2)
        # open file open; close socket close
        assert (fields.functions, fields.tokens, fields.reading_s) == (2, 6, 0.0)
        assert fields.per_minute == pytest.approx(120 / fields.encoding_s)
        source = report(measure(index, Head.load(tmp_path / "source"), functions=2))
        # of "def open file path return open path" and "def close socket sock sock close" those of the head
        assert (source["functions"], source["tokens"], source["reads"]) == (2, 6, "source")
