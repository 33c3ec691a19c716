"""NCS's post-ranking: its keys by hand, and the ranker around it against a sort of our own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.baselines.postrank import grades
from ncs.search.rankers import create_ranker
from ncs.text.tokens import content_words, field_tokens, tokenize
from ncs.types import NCS_FIELDS, Document


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 4), max_size=30), st.integers(0, 4), st.integers(0, 4))
def test_grades_order_as_the_tuple_of_keys_does(documents: list[tuple[int, int, int, int]], n: int, m: int) -> None:
    columns = np.array(documents, np.int64).reshape(-1, 4).T
    keys = [
        (typed >= m, typed >= m - 1, words >= n, words >= n - 1, tokens >= 10, lines >= 3)
        for lines, tokens, words, typed in documents
    ]
    expected = [int("".join("01"[key] for key in each), 2) for each in keys]
    assert grades(columns[0], columns[1], columns[2], columns[3], n, m).tolist() == expected


def counts(document: Document, text: str) -> tuple[int, int, int, int]:
    """What `grades` takes, from the document itself."""
    spelled = [(field, each) for field in NCS_FIELDS for each in document.words.get(field, ())]
    own = [word for field, each in spelled for word in field_tokens(field, (each,))]
    typed = {token for _, each in spelled for token in re.findall(r"\w+", each.lower())}
    lines, words = document.end_line - document.start_line + 1, set(content_words(tokenize(text)))
    return lines, len(own), len(words & set(own)), len(set(content_words(text.lower().split())) & typed)


@pytest.mark.parametrize("part", ["ncs", "bm25"])
@pytest.mark.parametrize("depth", [500, 20])
@pytest.mark.parametrize(
    "text", ["how do I copy a file", "ReadError is_zipfile", "hidden glob pattern", "unpack_archive filename format"]
)
def test_a_ranking_is_sorted_by_what_its_documents_are_and_contain(
    library: Index, part: str, depth: int, text: str
) -> None:
    ranker = library.fitted("ncs_postrank", part=part, depth=depth)
    rows = [row for row, _ in library.ranker(part).search(text, 500)]
    columns = np.array([counts(document, text) for document in library.documents.documents(rows[:depth])]).T
    n, m = len(content_words(tokenize(text))), len(content_words(text.lower().split()))
    order = np.argsort(-grades(columns[0], columns[1], columns[2], columns[3], n, m), kind="stable")
    found = ranker.search(text, 500)
    assert [row for row, _ in found] == [*(rows[at] for at in order), *rows[depth:]]
    assert [row for row, _ in ranker.search(text, 7)] == [row for row, _ in found[:7]]


def test_grammar_counts_only_where_it_is_asked_for(library: Index) -> None:
    plain, with_all = library.fitted("ncs_postrank"), library.fitted("ncs_postrank", stop_words=True)
    assert max(score for _, score in plain.search("how do I copy a file", 50)) >= 32
    assert max(score for _, score in with_all.search("how do I copy a file", 50)) < 32


@pytest.mark.slow
def test_without_code_the_typed_tokens_tell_nothing_and_the_rest_holds(library: Index, tmp_path: Path) -> None:
    documents = library.documents.documents(range(len(library)))
    config = BuildConfig(deduplicate=False, embeddings="lsa", store_code=False)
    with Index.of(documents, tmp_path / "bare", config=config) as bare:
        found = bare.fitted("ncs_postrank").search("copy a file", 50)
    low = [divmod(score, 1)[0] % 16 for _, score in found]
    assert max(score for _, score in found) < 16
    whole = dict(library.fitted("ncs_postrank").search("copy a file", 500))
    assert low == [divmod(whole[row], 1)[0] % 16 for row, _ in found]


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(BadInput, match="depth is 0"):
        create_ranker("ncs_postrank", depth=0)
    with pytest.raises(BadInput, match="'ncs_postrank' cannot be a part of another ranker"):
        create_ranker("ncs_postrank", part="ncs_postrank")
