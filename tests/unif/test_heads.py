"""A head of plain arrays, made by hand: its tokens, its arithmetic, its files, and the ranker that serves it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncs.config import BuildConfig
from ncs.errors import BadInput, IndexDamaged
from ncs.extract import extract
from ncs.index import Index
from ncs.learn.heads import Head, Tower, tokens_of_words, word_weights
from ncs.learn.tokenization import BpeTokenizer, StemTokenizer, Tokenizer, WordTokenizer, load_tokenizer, source_words
from ncs.search.unif import UnifRanker
from ncs.text.vocabulary import Vocabulary
from tests.heads import SOURCE, WORDS, head, tower, translation
from tests.words import table
from unif.data import learn_bpe, learn_words

Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
TEXTS = [
    ["low", "lower", "lowest", "newer", "newest", "wider", "widest", "slow", "slower"],
    ["how", "to", "open", "a", "file", "and", "read", "lines", "of", "it", "lowest", "new"],
    ["read", "the", "newest", "file", "slowly", "lower", "the", "new", "window", "ümlaut", "64"],
] * 3
COUNTS = Counter(word for text in TEXTS for word in text)


def test_byte_pairs_are_learned_alike_every_time_and_applied_as_the_library_applies_them() -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra unif")
    bpe = learn_bpe(COUNTS, size=60)
    model = tokenizers.models.BPE(
        vocab={piece: id for id, piece in enumerate(bpe.pieces)}, merges=bpe.merges, end_of_word_suffix="</w>"
    )
    theirs = tokenizers.Tokenizer(model)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    assert len(bpe) == 60
    again = [learn_bpe(COUNTS, size=60) for _ in range(5)]
    assert all((each.pieces, each.merges) == (bpe.pieces, bpe.merges) for each in again)
    words = [*TEXTS[0], *TEXTS[1], *TEXTS[2], "lowlowlow", "w", "newish", "rereread", "eseseses"]
    for word in words:
        assert bpe.ids([word]) == [id + 1 for id in theirs.encode(word).ids], word
    assert {len(bpe.ids([word])) for word in words} >= {1, 2, 3}


def test_the_most_frequent_words_are_learned_and_rare_ones_are_not() -> None:
    words = learn_words({"c": 2, "a": 3, "b": 4, "d": 1}, size=2, min_count=2)
    assert list(words.vocabulary) == ["a", "b"]
    assert words.ids(["c", "b", "a", "d", "b"]) == [2, 1, 2]


def test_saved_tokens_are_read_back_and_damaged_ones_refused(tmp_path: Path) -> None:
    vocabulary = Vocabulary.of(["file", "open"])
    all_kinds: list[Tokenizer] = [
        WordTokenizer(vocabulary), StemTokenizer(vocabulary), BpeTokenizer(["a", "b", "ab"], [("a", "b")])
    ]  # fmt: skip
    for at, tokens in enumerate(all_kinds):
        (tmp_path / str(at)).mkdir()
        tokens.save(tmp_path / str(at))
        loaded = load_tokenizer(tmp_path / str(at))
        assert (loaded.kind, len(loaded)) == (tokens.kind, len(tokens))
        assert loaded.ids(["opened", "ab", "file"]) == tokens.ids(["opened", "ab", "file"])
    for wrong in ("[]", '{"kind": "pickle"}', '{"kind": "bpe", "pieces": 3, "merges": []}'):
        (tmp_path / "0" / "tokens.json").write_text(wrong)
        with pytest.raises(ValueError, match=r"tokens\.json"):
            load_tokenizer(tmp_path / "0")


@pytest.mark.parametrize(
    ("language", "code", "words"),
    [
        ("java", 'int a; // no\n/* not\nthis */ say("// yes"); /** doc */ c()', "int a say yes c"),
        ("python", 'def f(x):\n    """No: doc."""\n    return "#yes"  # no\n', "def f x return yes"),
        ("python", "x = '''no\n'no' '''; y", "x y"),
        ("ruby", 'puts "a # b" # no\n', "puts a b"),
        ("php", "f($a); # no\n// no\n#[Yes] g('/* yes */');", "f a yes g yes"),
        ("sql", "select a -- no\nfrom b /* no */", "select a from b"),
        ("haskell", "f x = y -- no\n{- no -} g", "f x y g"),
        ("javascript", "let s = `// yes ${a}`; // no", "let s yes a"),
        ("java", "a /* never closed", "a"),
    ],
)
def test_comments_are_no_sub_tokens_and_strings_are(language: str, code: str, words: str) -> None:
    assert source_words(code, language) == words.split()


def expected(tower: Tower, ids: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The mean weighted by a softmax of the words' scores, by the definition; ids from 0."""
    rows = np.array(ids) + 1
    weights = np.exp(tower.arrays["scores"][rows, 0].astype(np.float64))
    mean = weights @ tower.arrays["table"][rows]
    return np.asarray(mean / np.linalg.norm(mean))


def test_a_text_is_the_softmax_weighted_mean_of_its_words_in_its_own_table() -> None:
    made = head()
    words = table("open file file", "", "other words", "close; calls: socket open")
    tokens_of = tokens_of_words(made.code, words.vocabulary)
    vectors = made.encode_documents(words, 0, 4, tokens_of)
    np.testing.assert_allclose(vectors[0], expected(made.code, [2, 1, 1]), atol=1e-6)
    np.testing.assert_allclose(vectors[3], expected(made.code, [0, 3, 2]), atol=1e-6)
    assert not vectors[1:3].any()
    np.testing.assert_array_equal(made.encode_documents(words, 3, 4, tokens_of), vectors[3:])
    np.testing.assert_allclose(made.encode_queries(["closeFile, please"])[0], expected(made.query, [0, 1]), atol=1e-6)
    assert not made.encode_queries(["nothing known"])[0].any()


def test_scores_of_any_size_give_finite_vectors() -> None:
    one = tower(np.eye(4, 5, dtype=np.float32), [3000, -3000, -3000, 0], WordTokenizer(Vocabulary.of(WORDS)))
    made, words = Head(one, one), table("file open", "close file")
    vectors = made.encode_documents(words, 0, 2, tokens_of_words(one, words.vocabulary))
    np.testing.assert_allclose(vectors, [[0, 0.5**0.5, 0.5**0.5, 0, 0], [1, 0, 0, 0, 0]], atol=1e-6)


def test_word_weights_are_the_shares_of_the_softmax_and_of_tfidf() -> None:
    made, words = head(), table("open file file unknown", "open", "open close")
    weights = word_weights(made, words, 0)
    exp = {word: math.exp(made.code.arrays["scores"][1 + WORDS.index(word), 0]) for word in ("open", "file")}
    attention = {"open": exp["open"], "file": 2 * exp["file"], "unknown": 0}
    tfidf = {"open": 0, "file": (1 + math.log(2)) * math.log(3), "unknown": math.log(3)}  # open stands everywhere
    assert [each.word for each in weights] == sorted(attention, key=lambda word: -attention[word])
    for each in weights:
        assert each.attention == pytest.approx(attention[each.word] / sum(attention.values()), rel=1e-5)
        assert each.tfidf == pytest.approx(tfidf[each.word] / sum(tfidf.values()), rel=1e-5)
        assert each.count == (2 if each.word == "file" else 1)
    with pytest.raises(BadInput, match="does not weight words"):
        word_weights(replace(made, reads="source"), table("open"), 0)


def test_a_missing_head_and_damaged_files_are_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no trained head.*ncs train unif"):
        Head.load(tmp_path)
    replace(head(), code=head(dim=6).code).save(tmp_path)
    with pytest.raises(IndexDamaged, match="5 and 6 dimensions"):
        Head.load(tmp_path)
    head().save(tmp_path)
    np.save(tmp_path / "code" / "table.npy", np.zeros((4, 6), np.float32))
    with pytest.raises(IndexDamaged, match=r"table.npy has another shape.*train it again"):
        Head.load(tmp_path)
    (tmp_path / "code" / "table.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(IndexDamaged, match="cannot read the head"):
        Head.load(tmp_path)
    about = json.loads((tmp_path / "head.json").read_text())
    (tmp_path / "head.json").write_text(json.dumps({**about, "format": 1}))
    with pytest.raises(IndexDamaged, match="from another version of ncs; train it again"):
        Head.load(tmp_path)


def rewritten(file: str, change: Callable[[Array], Array]) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        np.save(folder / file, array := change(np.load(folder / file)))
        about = json.loads((folder / "head.json").read_text())
        tower, name = file.removesuffix(".npy").split("/")
        if tower in ("query", "code"):
            about[tower]["arrays"][name] = array.shape
        (folder / "head.json").write_text(json.dumps(about))

    return write


def said(file: str, old: str, new: str) -> Callable[[Path], object]:
    return lambda folder: (folder / file).write_text((folder / file).read_text().replace(old, new))


@pytest.mark.parametrize(
    "damage",
    [
        rewritten("code/table.npy", lambda table: np.where(table == table.max(), np.float32("nan"), table)),
        rewritten("query/scores.npy", lambda scores: np.full_like(scores, np.inf)),
        rewritten("query/scores.npy", lambda scores: scores[:-1]),
        rewritten("translation/asked.npy", lambda weights: weights * np.float32("nan")),
        rewritten("translation/asked.npy", lambda weights: weights[:3]),
        lambda folder: (folder / "code" / "vocabulary.txt").unlink(),
        said("translation/translation.json", '"half": 0.4', '"half": 0'),
        said("translation/translation.json", '"power": 3.0', '"power": NaN'),
        said("head.json", '"bag"', '"selfatt"'),
        said("head.json", '"bag"', '"mamba"'),
        said("head.json", '"fields"', '"pictures"'),
    ],
)
def test_a_head_that_cannot_be_computed_with_is_refused_before_an_index_is_made_with_it(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    replace(head(), translation=translation(len(WORDS))).save(tmp_path)
    assert Head.load(tmp_path).translation is not None
    damage(tmp_path)
    with pytest.raises(IndexDamaged, match=r"cannot read the head in .*; train it again"):
        UnifRanker(head=str(tmp_path)).prepare()


def test_a_head_over_the_source_reads_the_code_and_needs_it(tmp_path: Path) -> None:
    replace(head(), reads="source").save(tmp_path / "head")
    documents = list(extract(SOURCE, "python"))
    with Index.of(documents, tmp_path / "index") as index:
        ranker = index.fitted("unif", head=str(tmp_path))
        row = next(row for row in range(len(index)) if index.documents.document(row).name == "open_file")
        cosine = expected(head().query, [1]) @ expected(head().code, [2, 1, 2])  # open file path open path
        assert dict(ranker.search("file", 5))[row] == pytest.approx(cosine, abs=1e-6)
    bare = Index.of(documents, tmp_path / "bare", config=BuildConfig(store_code=False))
    with bare, pytest.raises(BadInput, match="build it again without --no-store-code"):
        bare.fitted("unif", head=str(tmp_path))
