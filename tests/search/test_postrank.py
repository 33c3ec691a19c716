"""NCS's post-ranking: its keys by hand, and the ranker around it against a sort of our own."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.config import BuildConfig
from ncs.errors import BadInput, IndexDamaged
from ncs.extract import extract
from ncs.index import Index
from ncs.search.baselines.postrank import Facts, grades, postrank
from ncs.search.rankers import create_ranker
from ncs.text.stopwords import content_words
from ncs.text.tokens import field_tokens, tokenize
from ncs.types import NCS_FIELDS, Document
from tests.search.saving import save


def facts(*documents: tuple[int, int, int, int]) -> Facts:
    """(lines, tokens, words, spellings) of each document."""
    columns = np.array(documents, np.int64).reshape(-1, 4).T
    return Facts(*columns)


@pytest.mark.parametrize(
    ("document", "grade"),
    [
        ((2, 9, 0, 0), 0b000000),
        ((3, 9, 0, 0), 0b000001),
        ((2, 10, 0, 0), 0b000010),
        ((2, 9, 3, 0), 0b000100),
        ((2, 9, 4, 0), 0b001100),
        ((2, 9, 0, 2), 0b010000),
        ((2, 9, 0, 3), 0b110000),
        ((30, 99, 4, 3), 0b111111),
    ],
)
def test_each_key_is_a_bit_from_the_least_important_one(document: tuple[int, int, int, int], grade: int) -> None:
    assert grades(facts(document), n=4, m=3).tolist() == [grade]


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 4), max_size=30), st.integers(0, 4), st.integers(0, 4))
def test_the_order_is_that_of_a_stable_sort_by_the_tuple_of_keys(
    documents: list[tuple[int, int, int, int]], n: int, m: int
) -> None:
    rows = np.random.default_rng(len(documents)).permutation(len(documents))

    def keys(position: int) -> tuple[bool, ...]:
        lines, tokens, words, typed = documents[position]
        return (typed >= m, typed >= m - 1, words >= n, words >= n - 1, tokens >= 10, lines >= 3)

    want = sorted(range(len(documents)), key=lambda position: tuple(not key for key in keys(position)))
    found = postrank(rows, grades(facts(*documents), n, m))
    assert found.tolist() == [rows[position] for position in want]


QUICK = BuildConfig(deduplicate=False, fasttext=replace(BuildConfig().fasttext, dim=16, least_words=50_000))


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    names = ("shutil.py", "tarfile.py", "socketserver.py", "queue.py")
    return [d for name in names for d in extract((folder / name).read_bytes(), "python", path=name)]


@pytest.fixture(scope="module")
def index(documents: Sequence[Document], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.of(documents, tmp_path_factory.mktemp("index"), config=QUICK) as built:
        yield built


def slowly(ranking: Sequence[tuple[int, float]], documents: Sequence[Document], text: str, depth: int) -> list[int]:
    """The rows in the order of the keys, from the documents themselves."""
    words = set(content_words(tokenize(text)))
    typed = set(content_words(re.findall(r"\w+", text.lower())))

    def keys(row: int) -> tuple[bool, ...]:
        d = documents[row]
        own = [word for field in NCS_FIELDS for word in field_tokens(field, d.words.get(field, ()))]
        spelled = {
            token
            for field in NCS_FIELDS
            for each in d.words.get(field, ())
            for token in re.findall(r"\w+", each.lower())
        }
        lines, has_words, has_typed = d.end_line - d.start_line + 1, len(words & set(own)), len(typed & spelled)
        n, m = len(words), len(typed)
        return (has_typed < m, has_typed < m - 1, has_words < n, has_words < n - 1, len(own) < 10, lines < 3)

    rows = [row for row, _ in ranking]
    return sorted(rows[:depth], key=keys) + rows[depth:]


@pytest.mark.parametrize("part", ["ncs", "bm25"])
@pytest.mark.parametrize("depth", [500, 20])
@pytest.mark.parametrize(
    "text", ["how do I copy a file", "ThreadingMixIn process_request", "put item queue", "tarfile extractall members"]
)
def test_a_ranking_is_sorted_by_what_its_documents_are_and_contain(
    index: Index, documents: list[Document], part: str, depth: int, text: str
) -> None:
    ranker = index.fitted("ncs_postrank", part=part, depth=depth)
    ranking = index.ranker(part).search(text, 500)
    found = ranker.search(text, 500)
    assert [row for row, _ in found] == slowly(ranking, documents, text, depth)
    assert [row for row, _ in ranker.search(text, 7)] == [row for row, _ in found[:7]]


def test_a_score_tells_the_grade_and_the_rank_before(index: Index) -> None:
    ranker = index.fitted("ncs_postrank")
    before = {row: rank for rank, (row, _) in enumerate(index.ranker("ncs").search("copy a file", 500), 1)}
    for row, score in ranker.search("copy a file", 500):
        grade, rest = divmod(score, 1)
        assert 0 <= grade <= 63
        assert 1 / rest - 1 == pytest.approx(before[row])


def test_grammar_counts_only_where_it_is_asked_for(index: Index) -> None:
    plain, with_all = index.fitted("ncs_postrank"), index.fitted("ncs_postrank", stop_words=True)
    assert max(score for _, score in plain.search("how do I copy a file", 50)) >= 32
    assert max(score for _, score in with_all.search("how do I copy a file", 50)) < 32


@pytest.mark.slow
def test_without_code_the_typed_tokens_tell_nothing_and_the_rest_holds(
    documents: list[Document], index: Index, tmp_path: Path
) -> None:
    with Index.of(documents, tmp_path / "bare", config=replace(QUICK, store_code=False)) as bare:
        found = bare.fitted("ncs_postrank").search("copy a file", 50)
    low = [divmod(score, 1)[0] % 16 for _, score in found]
    assert max(score for _, score in found) < 16
    whole = dict(index.fitted("ncs_postrank").search("copy a file", 500))
    assert low == [divmod(whole[row], 1)[0] % 16 for row, _ in found]


def test_settings_are_saved_and_files_that_do_not_fit_are_refused(index: Index, tmp_path: Path) -> None:
    snapshot = save(index.fitted("ncs_postrank", part="bm25", depth=9), index, tmp_path / "copy")
    loaded = create_ranker("ncs_postrank")
    loaded.load(snapshot)
    assert (loaded.config["part"], loaded.config["depth"]) == ("bm25", 9)
    (snapshot.statistics / "ncs_postrank" / "config.json").write_text("{}")
    with pytest.raises(IndexDamaged, match="build the index again"):
        create_ranker("ncs_postrank").load(snapshot)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(BadInput, match="depth is 0"):
        create_ranker("ncs_postrank", depth=0)
    with pytest.raises(BadInput, match="'ncs_postrank' cannot be a part of another ranker"):
        create_ranker("ncs_postrank", part="ncs_postrank")
