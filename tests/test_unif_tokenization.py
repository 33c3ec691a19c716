"""Words, n-gram buckets, byte pairs and sub-tokens: against the library that learns them, and by hand."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from ncs.text.vocabulary import Vocabulary
from unif.source_words import source_words
from unif.tokenization import Bpe, Tokens, Words, learn_bpe, learn_words, load_tokens, n_grams

TEXTS = [
    ["low", "lower", "lowest", "newer", "newest", "wider", "widest", "slow", "slower"],
    ["how", "to", "open", "a", "file", "and", "read", "lines", "of", "it", "lowest", "new"],
    ["read", "the", "newest", "file", "slowly", "lower", "the", "new", "window", "ümlaut", "64"],
] * 3


def test_byte_pairs_are_applied_as_the_library_that_learnt_them_does() -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra unif")
    bpe = learn_bpe(TEXTS, size=60)
    model = tokenizers.models.BPE(
        vocab={piece: id for id, piece in enumerate(bpe.pieces)}, merges=bpe.merges, end_of_word_suffix="</w>"
    )
    theirs = tokenizers.Tokenizer(model)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    assert len(bpe) == 60
    some = [*TEXTS[0], *TEXTS[1], *TEXTS[2], "lowlowlow", "w", "newish", "rereread", "eseseses"]
    for word in some:
        found = bpe.ids([word])
        assert found == [id + 1 for id in theirs.encode(word).ids], word
        assert len(found) == len(theirs.encode(word).tokens)
    assert any(len(bpe.ids([word])) == 1 for word in some)
    assert any(len(bpe.ids([word])) > 2 for word in some)


def test_byte_pairs_join_the_first_learnt_pair_first() -> None:
    bpe = Bpe(["a", "b", "c</w>", "ab", "bc</w>"], [("b", "c</w>"), ("a", "b")])
    assert bpe.split("abc") == ["a", "bc</w>"]
    assert bpe.split("abab") == ["ab", "a", "b</w>"]
    assert bpe.ids(["abc", "xc", ""]) == [1, 5, 3]  # x was never seen, and an empty word has no letters


def test_the_most_frequent_words_are_learnt_and_rare_ones_are_not() -> None:
    words = learn_words([["a", "a", "a", "b", "b", "b", "c", "c"], ["b", "d"]], size=2, least=2)
    assert list(words.vocabulary) == ["a", "b"]
    assert list(learn_words([["x", "y", "y"]], least=2).vocabulary) == ["y"]
    assert words.ids(["c", "b", "a", "d", "b"]) == [2, 1, 2]
    assert words.ids(["b", "zzz"]) == [2]


def test_an_unknown_word_becomes_the_buckets_of_its_n_grams() -> None:
    words = Words(Vocabulary.of(["file", "open"]), buckets=7)
    grams = ["<fi", "fil", "il>", "<fil", "fil>", "<fil>"]
    assert n_grams("fil") == grams
    assert words.ids(["open", "fil"]) == [2, *(3 + zlib.crc32(gram.encode()) % 7 for gram in grams)]
    assert len(words) == 9
    assert words.ids(["\ud800"])  # half a surrogate pair, as broken text has it


def test_what_was_saved_says_the_same(tmp_path: Path) -> None:
    both: list[Tokens] = [Words(Vocabulary.of(["file", "open"]), 5), Bpe(["a", "b", "ab"], [("a", "b")])]
    for at, tokens in enumerate(both):
        (tmp_path / str(at)).mkdir()
        tokens.save(tmp_path / str(at))
        loaded = load_tokens(tmp_path / str(at))
        assert (loaded.kind, len(loaded)) == (tokens.kind, len(tokens))
        assert loaded.ids(["open", "ab", "zab"]) == tokens.ids(["open", "ab", "zab"])
    for wrong in ("[]", '{"kind": "pickle"}', '{"kind": "bpe", "pieces": 3, "merges": []}'):
        (tmp_path / "0" / "tokens.json").write_text(wrong)
        with pytest.raises(ValueError, match=r"tokens\.json"):
            load_tokens(tmp_path / "0")
    assert json.loads((tmp_path / "1" / "tokens.json").read_text())["merges"] == [["a", "b"]]


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
        ("java", "", ""),
    ],
)
def test_comments_are_no_sub_tokens_and_strings_are(language: str, code: str, words: str) -> None:
    assert source_words(code, language) == words.split()
