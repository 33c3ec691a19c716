"""What explanations say of scores, against sums and counts made in other ways."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncs.answer import ask, hit_as_dict
from ncs.config import BuildConfig, LsaConfig
from ncs.extract import extract
from ncs.index import Index
from ncs.search.explain import explain, match_words, query_lines, query_parts, reasons_lines
from ncs.search.highlight import has_file_lines
from ncs.search.hybrid import HybridRanker
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import Ranker
from ncs.text.stems import stem
from ncs.text.tokens import content_words, field_tokens, tokenize
from ncs.types import FIELDS, NCS_FIELDS, Document, Hit
from tests import gitrepo

pytestmark = pytest.mark.slow  # they ask an index of a part of this project

HERE = Path(__file__).parents[2]
REPOSITORIES = 7
QUERIES = (
    "how do I read a file line by line",
    "Postings.search",
    "write the index into a folder in python",
    "tokenize",
    "the stem of a word",
    "find tests of the ranker",
    "consensus of repositories",
    "x = load(folder); x.save(folder)",
    "what is this",
    "qwxqzv unknown words only",
    "save save save the words, saved",
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """This project's own source, spread over repositories so that they have something to agree on."""
    root = tmp_path_factory.mktemp("reasons")
    files = [*sorted((HERE / "ncs").glob("s*/*.py")), *sorted((HERE / "tests" / "search").glob("test_r*.py"))]
    for at, path in enumerate(files):
        place = root / "repos" / f"r{at % REPOSITORIES}" / path.relative_to(HERE)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    config = BuildConfig(embeddings="lsa", lsa=LsaConfig(dim=24))
    with Index.build(sorted((root / "repos").iterdir()), root / "index", config=config) as index:
        yield index


def explained(index: Index, ranker: Ranker, query: str, k: int) -> list[tuple[int, dict[str, Any]]]:
    """(row, explanation) of each hit."""
    ranking = ranker.rank(query, k, fold=True)
    return list(zip(ranking.rows, explain(ranker, query, ranking, index.words()).hits, strict=True))


def near(sum_of: Iterable[float], total: float) -> bool:
    return math.isclose(math.fsum(sum_of), total, rel_tol=1e-9, abs_tol=1e-9)


def check_adds_up(hit: dict[str, Any]) -> None:
    shares = hit["shares"]
    assert near(shares.values(), hit["score"])
    for signal in ("lexical", "meaning"):
        if hit["words"] and signal in hit["words"][0]["shares"]:
            assert near((word["shares"][signal] for word in hit["words"]), shares[signal]), signal
    if "consensus" in shares:
        assert near((name["share"] for name in hit["names"]), shares["consensus"])
        assert -1e-12 <= hit["title_share"] <= shares["file"] + 1e-9
    assert near((word["share"] for word in hit["context"]), shares.get("context", 0.0))
    assert near((hit["together"], *(word["share"] for word in hit["general"])), shares.get("general", 0.0))
    assert hit["together"] >= -1e-9


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(QUERIES) | st.lists(st.integers(0, 10**6), min_size=1, max_size=6),
    st.sampled_from(["hybrid", "bm25", "ncs", "ncs_centred", "rrf"]),
    st.integers(1, 25),
)
def test_shares_add_up_to_the_scores_of_the_search_for_any_query(
    index: Index, words: str | list[int], name: str, k: int
) -> None:
    vocabulary, ranker = index.words().vocabulary, index.ranker(name)
    query = words if isinstance(words, str) else " ".join(vocabulary.word(id % len(vocabulary)) for id in words)
    hits = explained(index, ranker, query, k)
    assert [(row, hit["score"]) for row, hit in hits] == ranker.search(query, k)
    for _, hit in hits:
        check_adds_up(hit)


@pytest.mark.parametrize("query", QUERIES)
def test_the_share_of_a_word_is_what_bm25_gives_it_alone(index: Index, query: str) -> None:
    lexical, content = index.ranker("bm25"), content_words(tokenize(query))
    times = Counter(map(stem, content))
    alone = {word: dict(lexical.search(word, len(index))) for word in content}
    for row, hit in explained(index, lexical, query, 10):
        for word in hit["words"]:
            expected = times[stem(word["word"])] * alone[word["word"]].get(row, 0.0)
            assert word["shares"]["lexical"] == pytest.approx(expected, abs=1e-9)
    analysis = index.ranker("hybrid").rank(query, 1).analysis
    assert analysis is not None
    weights = {each: analysis.expansion.query.get(each, 0.0) for each in times}
    for row, hit in explained(index, index.ranker("hybrid"), query, 10):
        shares = {word["word"]: word["shares"]["lexical"] for word in hit["words"] if stem(word["word"]) in weights}
        scores = {word: weights[stem(word)] * alone[word].get(row, 0.0) for word in shares}
        for word, score in scores.items():
            if sum(scores.values()):
                expected = score / sum(scores.values())
                assert shares[word] / max(sum(shares.values()), 1e-12) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["ncs", "ncs_centred"])
def test_a_words_share_of_a_cosine_is_the_product_of_its_part_of_the_query(index: Index, name: str) -> None:
    ranker, query = index.ranker(name), "how to read the words of a file"
    assert isinstance(ranker, NcsRanker)
    words, parts = query_parts(query, ranker.encoder)
    assert parts.sum(axis=0) == pytest.approx(ranker.encoder.query(query), abs=1e-5)
    row, hit = explained(index, ranker, query, 5)[0]
    for word in hit["words"]:
        alone = float(ranker.vectors.similarities(parts[words.index(word["word"])], np.array([row]))[0])
        assert word["shares"]["meaning"] == pytest.approx(alone, abs=1e-5)


def test_the_nearest_word_is_the_one_of_the_highest_cosine_among_all_the_documents_words(index: Index) -> None:
    hybrid = index.ranker("hybrid")
    assert isinstance(hybrid, HybridRanker)
    encoder, table = hybrid.open_parts.dense.encoder, index.words()
    vectors = np.asarray(encoder.vectors, np.float64)
    length = np.linalg.norm(vectors, axis=1)
    compared = 0
    for row in range(0, len(index), 37):
        document = index.documents.document(row)
        spellings = {field: field_tokens(field, document.words.get(field, ())) for field in FIELDS}
        for word in match_words(["index", "folder", "zzz"], table, row, encoder):
            same = {each for words in spellings.values() for each in words if stem(each) == stem(word["word"])}
            query = table.vocabulary.id(word["word"])
            read = {each for field in NCS_FIELDS for each in spellings[field]}
            ids = [id for each in read if (id := table.vocabulary.id(each)) is not None and length[id] > 0]
            if same:
                assert (word["met"] in same, word["similarity"]) == (True, 1.0)
                assert set(word["fields"]) == {field for field in FIELDS if same & set(spellings[field])}
            elif query is None or not length[query]:
                assert (word["met"], word["similarity"]) == (None, None)
            elif ids:
                best = max(float(vectors[id] @ vectors[query] / length[id] / length[query]) for id in ids)
                assert word["similarity"] == pytest.approx(best, abs=1e-5)
                compared += 1
    assert compared > 5


def test_a_function_with_words_newer_than_the_word_vectors_is_explained(tmp_path: Path) -> None:
    source = gitrepo.write(tmp_path / "src", {"old.py": "def open_file(path):\n    return read(path)\n"})
    Index.build(source, tmp_path / "index").close()
    (source / "new.py").write_text("def zebra(quokka):\n    return quokka.read()\n")
    updated, _ = Index.update(tmp_path / "index")
    with updated as index:
        explanation = index.results("zebra quokka opens", 1, explain=True).explanation
    assert explanation is not None
    (hit,) = explanation.hits
    assert [(word["word"], word["met"]) for word in hit["words"]] == [
        ("zebra", "zebra"),
        ("quokka", "quokka"),
        ("opens", None),
    ]


def test_shared_names_are_used_by_the_hit_and_counted_in_the_repositories_of_the_pool(index: Index) -> None:
    results = index.results("read the words of a folder", 5, explain=True)
    evidence, explanation = results.ranking.evidence, results.explanation
    assert evidence is not None
    assert explanation is not None
    pool = index.documents.documents(evidence.pool.tolist())
    gates = explanation.query["gates"]
    assert (gates["candidates"], gates["repositories"]) == (len(pool), len({each.repository for each in pool}))
    assert gates["effective"] == pytest.approx(1 / gates["inside"], rel=1e-5)
    assert 0 < gates["consensus"] < 1
    assert any(hit["names"] for hit in explanation.hits)
    for hit, reasons in zip(results.hits, explanation.hits, strict=True):
        for name in reasons["names"]:
            assert uses(hit.document, name["name"])
            assert name["repositories"] == len({each.repository for each in pool if uses(each, name["name"])})


def uses(document: Document, name: str) -> bool:
    return any(name in document.words.get(field, ()) for field in ("calls", "types", "enums"))


def test_a_test_counts_less_by_its_role_and_a_second_hit_of_a_file_by_saturation(index: Index) -> None:
    query, ranker = "rankers ordered by score and row", index.ranker("hybrid")
    hits = explained(index, ranker, query, 200)
    inside = explain(ranker, query, ranker.rank(query, 1), index.words()).query["gates"]["inside"]
    assert 0 < inside < 1
    role = pytest.approx(1 - 0.5 * (1 + inside) / 2, rel=1e-4)
    documents = index.documents.documents([row for row, _ in hits])
    assert any(document.path.startswith("tests/") for document in documents)
    before: Counter[tuple[str, str]] = Counter()
    for document, (_, hit) in zip(documents, hits, strict=True):
        assert hit["factors"]["role"] == (role if document.path.startswith("tests/") else 1.0)
        assert hit["factors"]["saturation"] == pytest.approx(0.9 ** before[document.repository, document.path])
        before[document.repository, document.path] += 1


def test_languages_that_nearly_all_documents_are_in_are_left_out_and_named(index: Index) -> None:
    query = ask(index, "how to write a file in python", 3, ranker="hybrid", explain=True)["explanation"]
    assert (query["kind"], query["words"]) == ("how-to", ("write", "file", "in"))
    assert (query["grammar"], query["languages"]) == (("how", "to", "a"), ("python",))


def test_the_shares_of_rrf_are_the_ranks_of_its_parts(index: Index) -> None:
    for part in ("bm25", "ncs_centred"):
        rows = [row for row, _ in index.ranker(part).search("read a file", 1000)]
        for row, hit in explained(index, index.ranker("rrf"), "read a file", 10):
            assert hit["shares"][part] == pytest.approx(1 / (61 + rows.index(row)) if row in rows else 0)


def test_other_rankers_have_no_shares_but_the_words_that_are_in_the_document(demo_index: Index) -> None:
    hits = explained(demo_index, demo_index.fitted("two_field"), "hide the soft keyboard", 3)
    hit = next(hit for row, hit in hits if demo_index.documents.document(row).name == "hideSoftKeyboard")
    assert hit["shares"] is None
    words = [(word["word"], word["met"], word["fields"][0], word["shares"]) for word in hit["words"]]
    assert words == [(word, word, "name", {}) for word in ("hide", "soft", "keyboard")]


def test_words_that_a_ranker_adds_are_explained_with_the_shares_of_its_part(demo_index: Index, tmp_path: Path) -> None:
    pair = {"query": "hide keyboard", "code": "void f() { manager.hideSoftInput(); }", "language": "java"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
    enhanced = demo_index.fitted("ncs_enhanced", pairs=str(tmp_path / "pairs.jsonl"), part="bm25")
    explanation = explain(enhanced, "hide the keyboard", enhanced.rank("hide the keyboard", 1), demo_index.words())
    assert explanation.query["added"]
    assert {"hide", "keyboard", *explanation.query["added"]} == set(explanation.query["words"])
    check_adds_up(explanation.hits[0])


def test_a_symbol_is_defined_and_a_file_is_named_like_the_query(demo_index: Index) -> None:
    answer = ask(demo_index, "Keyboards.hideSoftKeyboard", 1, ranker="hybrid", explain=True)
    assert (answer["kind"], answer["explanation"]["symbols"]) == ("symbol", ("Keyboards.hideSoftKeyboard",))
    reasons = answer["hits"][0]["explanation"]
    assert reasons["defines"] == ("Keyboards.hideSoftKeyboard",)
    assert reasons["title"] in (("keyboards",), ("keyboard",))
    assert reasons["title_share"] > 0
    assert json.loads(json.dumps(answer))["hits"][0]["explanation"]["shares"] == reasons["shares"]
    plain = ask(demo_index, "Keyboards.hideSoftKeyboard", 1, ranker="hybrid")
    assert plain == {
        **{key: value for key, value in answer.items() if key != "explanation"},
        "hits": [{key: value for key, value in hit.items() if key != "explanation"} for hit in answer["hits"]],
    }


@pytest.mark.parametrize("name", ["hybrid", "bm25", "ncs", "rrf"])
@pytest.mark.parametrize("width", [40, 64, 120])
def test_no_line_is_wider_than_the_terminal_and_no_share_is_cut(index: Index, name: str, width: int) -> None:
    query = "read tokenized internationalization words of the Postings.load folder by dictionary"
    answer = ask(index, query, 3, ranker=name, explain=True)
    assert max(map(len, query_lines(answer, width))) <= width
    for hit in answer["hits"]:
        lines = reasons_lines(hit["explanation"], width)
        assert max(map(len, lines)) <= width
        text = " ".join(lines)
        assert f"{hit['score']:.4f} = " in text
        shares = [share for word in hit["explanation"]["words"] for share in word["shares"].values()]
        assert all(f"{share:.4f}" in text for share in shares if share)


def test_the_lines_of_a_hit_are_those_of_its_file_and_what_an_outline_leaves_out_is_empty(index: Index) -> None:
    kinds = set()
    for document in index.documents.documents(range(len(index))):
        assert has_file_lines(hit_as_dict(Hit(1, 1.0, document), ""))
        kinds.add(document.kind)
        path = index.folder.parent / "repos" / document.repository / document.path
        lines = path.read_text("utf-8").split("\n")[document.start_line - 1 : document.end_line]
        for shown, line in zip(document.code.split("\n"), lines, strict=True):
            assert not shown or shown.strip().removesuffix(" ...") in line  # code is dedented
    assert {"class", "function"} <= kinds


def test_pieces_of_a_file_keep_their_lines() -> None:
    source = b"const a = 1; function f() {\n} const b = 2;\nfunction g() {\n}\nconst c = 3;\n"
    documents = extract(source, "javascript", path="a.js", outside=True)
    module = next(document for document in documents if document.kind == "module")
    assert module.code.split("\n") == ["const a = 1;", "const b = 2;", "", "", "const c = 3;"]
    assert has_file_lines(hit_as_dict(Hit(1, 1.0, module), ""))
