"""The two-field ranker beside tantivy, an engine of Lucene's family, and its analyser beside the regex library."""

from __future__ import annotations

import math
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.extract import extract
from ncs.index import Index
from ncs.search.baselines.two_field import TwoFieldRanker, one_byte_lengths, standard_tokens
from ncs.text.tokens import tokenize
from ncs.types import Document

QUESTIONS = (
    "how do I read a text file line by line",
    "parse command line arguments",
    "open a socket connection with timeout",
    "remove directory tree",
    "self.assertEqual os.path.join",
    "iterate over sorted sorted keys",
    "getaddrinfo",
)


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """Functions of some modules of the standard library, in path order."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[s-u]*.py"))
    return [document for file in files for document in extract(file.read_bytes(), "python", path=file.name)]


@pytest.fixture(scope="module")
def index(documents: Sequence[Document], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with indexed(documents, tmp_path_factory.mktemp("index")) as opened:
        yield opened


@pytest.fixture(scope="module")
def ranker(index: Index) -> TwoFieldRanker:
    return fitted(index)


def indexed(documents: Sequence[Document], folder: Path, **config: Any) -> Index:
    return Index.of(documents, folder, config=BuildConfig(deduplicate=False, embeddings="lsa", **config))


def fitted(index: Index, **config: Any) -> TwoFieldRanker:
    ranker = index.fitted("two_field", **config)
    assert isinstance(ranker, TwoFieldRanker)
    return ranker


def tantivy_scores(documents: Sequence[Document], text: str) -> dict[int, float]:
    """Row -> score of tantivy's BM25 over both fields, given our tokens (it has no UAX #29 analyser)."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("name", tokenizer_name="whitespace")
    builder.add_text_field("text", tokenizer_name="whitespace")
    builder.add_unsigned_field("row", stored=True)
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(heap_size=50_000_000, num_threads=1)
    for row, document in enumerate(documents):
        name, code = " ".join(tokenize(document.name)), " ".join(standard_tokens(document.code))
        writer.add_document(tantivy.Document(row=row, name=name, text=code))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    terms = [
        (tantivy.Occur.Should, tantivy.Query.term_query(schema, field, token))
        for token in standard_tokens(text)
        for field in ("name", "text")
    ]
    hits = searcher.search(tantivy.Query.boolean_query(terms), limit=len(documents)).hits
    return {searcher.doc(address)["row"][0]: score for score, address in hits}


@pytest.mark.slow
def test_scores_are_tantivys_without_its_constant_factor(documents: list[Document], ranker: TwoFieldRanker) -> None:
    """tantivy multiplies by k1 + 1 as Lucene did before version 8; lengths are quantised alike.

    It counts documents without a field too, which Lucene and we do not: here every function has a name and a text.
    """
    assert len(documents) > 1000
    assert all(tokenize(document.name) for document in documents)
    for text in QUESTIONS:
        want = tantivy_scores(documents, text)
        got = dict(ranker.search(text, len(documents)))
        assert got.keys() == want.keys()
        rows = sorted(want)
        np.testing.assert_allclose([got[row] * 2.2 for row in rows], [want[row] for row in rows], rtol=2e-6)


def test_the_formula_holds_where_a_document_has_no_name(tmp_path: Path) -> None:
    """By hand: N and the mean length of a field are over the documents that have it."""
    documents = [document("open_file", "open open file"), document("", "file"), document("read", "read the file")]
    with indexed(documents, tmp_path / "index") as index:
        ranker = fitted(index, k1=1.5, b=0.5)

    def part(n: int, df: int, tf: int, length: float, mean: float) -> float:
        return math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf / (tf + 1.5 * (1 - 0.5 + 0.5 * length / mean))

    want = part(2, 1, 1, 2, 1.5) + part(3, 1, 2, 3, 7 / 3)
    assert dict(ranker.search("OPEN", 3)) == {0: pytest.approx(want, rel=1e-6)}
    assert [row for row, _ in ranker.search("file", 3)] == [0, 1, 2]
    assert dict(ranker.search("file", 3))[1] == pytest.approx(part(3, 3, 1, 1, 7 / 3), rel=1e-6)


def document(name: str, code: str, id: str = "x:1") -> Document:
    return Document(id, "r", "x", 1, 1, "python", "function", name, name, {}, code)


def test_lengths_are_exact_to_40_and_then_lose_what_four_binary_digits_cannot_say() -> None:
    lengths = np.arange(5000)
    kept = one_byte_lengths(lengths)
    assert kept[:41].tolist() == list(range(41))
    assert np.unique(kept[40:90]).tolist() == [40, 42, 44, 46, 48, 50, 52, 54, 56, 60, 64, 68, 72, 76, 80, 84, 88]
    assert (kept <= lengths).all()
    assert (kept[24:] - 24 > (lengths[24:] - 24) * 8 / 9 - 1).all()
    assert one_byte_lengths(kept).tolist() == kept.tolist()
    assert len(np.unique(one_byte_lengths(np.arange(2**20)))) < 256


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("getFileName(a_b, x1y2)", ["getfilename", "a_b", "x1y2"]),
        ("foo.bar.baz() foo..bar 3.14f a.1", ["foo.bar.baz", "foo", "bar", "3.14f", "a", "1"]),
        ("don't 'quoted' 1,000 1;2 a,b", ["don't", "quoted", "1,000", "1;2", "a", "b"]),
        ("K:A std::map", ["k:a", "std", "map"]),
        ("___ __init__ _", ["__init__"]),
        ("na\u00efve na\u0069\u0308ve \u00c4RGER", ["na\u00efve", "nai\u0308ve", "\u00e4rger"]),
        ("\u6771\u4eac \u30ab\u30e1\u30e9 \u3072\u3089 \ud55c\uad6d\uc5b4", ["\u6771", "\u4eac", "\u30ab\u30e1\u30e9", "\u3072", "\u3089", "\ud55c\uad6d\uc5b4"]),  # noqa: E501
        ("\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 x\u00b2", ["\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22", "x"]),
        ("a" * 300, ["a" * 255, "a" * 45]),
        ("", []),
    ],
)  # fmt: skip
def test_the_analyser_breaks_text_as_lucenes_does(text: str, tokens: list[str]) -> None:
    assert standard_tokens(text) == tokens


ALPHABET = "aZ\u00e9\u03c9\u0434\u05d0\u0661\u09050\u00379_.,;()+- \n\u2024\u6f22\u3042\u00b7"


@given(st.text(st.sampled_from(ALPHABET), max_size=30))
def test_tokens_are_the_word_segments_of_the_regex_library(text: str) -> None:
    """Without the colon, which Unicode 15.1 took out of the rules and Lucene has in them; without quotes and
    combining marks, which that library treats in its own way."""
    segments = regex.split(r"(?w)\b", text, flags=regex.V1)
    words = [s.lower() for s in segments if regex.search(r"[\p{L}\p{Nd}]", s)]
    assert standard_tokens(text) == words


def test_an_index_without_code_is_refused_in_one_line(documents: list[Document], tmp_path: Path) -> None:
    with Index.of(documents[:20], tmp_path / "index", config=BuildConfig(store_code=False)) as index:
        with pytest.raises(BadInput, match="keeps no code, which 'two_field' reads") as caught:
            index.fitted("two_field")
        assert "\n" not in str(caught.value)


def test_ascii_text_is_broken_alike_on_the_fast_and_the_slow_path(documents: list[Document]) -> None:
    for code in (each.code for each in documents[:500] if each.code.isascii()):
        assert standard_tokens(code + " \u00b2") == standard_tokens(code)


def test_a_build_fits_it_on_request_as_an_open_index_can(documents: list[Document], tmp_path: Path) -> None:
    with indexed(documents[:60], tmp_path / "built", rankers=("two_field:b=0.5",)) as built:
        hits = [(hit.document.id, hit.score) for hit in built.search("get socket", ranker="two_field")]
        assert built.ranker("two_field").config == {"k1": 1.2, "b": 0.5}
        assert "two_field" in built.description.counts["seconds"]
    with indexed(documents[:60], tmp_path / "plain") as plain:
        assert not plain.has_ranker("two_field")
        with pytest.raises(BadInput, match=r"built without 'two_field'.*ncs build --ranker two_field"):
            plain.search("get socket", ranker="two_field")
        again = plain.fitted("two_field", b=0.5).search("get socket", 10)
        assert [(plain.documents.ids([row])[0], score) for row, score in again] == hits
