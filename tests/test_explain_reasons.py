"""What explanations say of scores, against sums and counts made in other ways."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncs.answer import ask, hit_as_dict
from ncs.extract import extract
from ncs.index import BuildConfig, Index
from ncs.config import FastTextConfig
from ncs.search.bm25 import Bm25Ranker
from ncs.search.excerpt import numbered
from ncs.search.expansion import K3
from ncs.search.explain.explanation import Reasons
from ncs.search.explain.meeting import meet, query_parts
from ncs.search.explain.reasons import explain
from ncs.search.explain.table import reading_lines, reasons_lines
from ncs.search.hybrid import HybridRanker
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import Ranker
from ncs.storage.document_facts import Structure
from ncs.storage.file_roles import OUTLINES
from ncs.storage.postings import stem
from ncs.text.stopwords import content_words
from ncs.text.tokens import field_tokens, tokenize
from ncs.types import FIELDS, NCS_FIELDS, Field, Hit
from tests import corpus

HERE = Path(__file__).parents[1]
REPOSITORIES = 7
QUESTIONS = (
    "how do I read a file line by line",
    "Postings.search",
    "write the index into a folder in python",
    "tokenize",
    "the stem of a word",
    "find tests of the ranker",
    "consensus of repositories",
    "x = load(folder); x.save(folder)",
    "what is this",
    "zzzyx unknown words only",
    "save save save the words, saved",
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """This project's own source, spread over repositories so that they have something to agree on."""
    root = tmp_path_factory.mktemp("reasons")
    files = [*sorted((HERE / "ncs").rglob("*.py")), *sorted((HERE / "tests").glob("test_r*.py"))]
    for at, path in enumerate(files):
        place = root / "repos" / f"r{at % REPOSITORIES}" / path.relative_to(HERE)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    for repository in (root / "repos").iterdir():
        for part in ("objects", "refs"):
            (repository / ".git" / part).mkdir(parents=True)
        (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    config = BuildConfig(fasttext=FastTextConfig(dim=24, epochs=1, least_words=150_000))
    return Index.build(root / "repos", root / "index", config=config)


@pytest.fixture(scope="module")
def vocabulary(index: Index) -> list[str]:
    return list(index.words().vocabulary)


def hybrid(index: Index) -> tuple[HybridRanker, Bm25Ranker, NcsRanker, Structure]:
    ranker = index.ranker("hybrid")
    assert isinstance(ranker, HybridRanker)
    lexical, dense = ranker.rankers
    assert isinstance(lexical, Bm25Ranker)
    assert isinstance(dense, NcsRanker)
    assert ranker.structure is not None
    return ranker, lexical, dense, ranker.structure


def near(sum_of: object, total: float) -> bool:
    return math.isclose(math.fsum(sum_of), total, rel_tol=1e-9, abs_tol=1e-9)  # type: ignore[arg-type]


def check_adds_up(one: Reasons) -> None:
    shares = one.shares
    assert shares is not None
    assert near(shares.values(), one.score)
    for signal in ("lexical", "meaning"):
        if one.words and signal in one.words[0].shares:
            assert near((met.shares[signal] for met in one.words), shares[signal]), signal
    if "consensus" in shares:
        assert near((used.share for used in one.names), shares["consensus"])
        assert -1e-12 <= one.title_share <= shares["file"] + 1e-9


def some_questions() -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(QUESTIONS),
        st.lists(st.integers(0, 10**6), min_size=1, max_size=6).map(lambda ids: " ".join(f"#{id}" for id in ids)),
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_questions(), st.sampled_from(["hybrid", "bm25", "ncs", "ncs_centred", "rrf"]), st.integers(1, 25))
def test_shares_add_up_to_the_scores_of_the_search_whatever_is_asked(
    index: Index, vocabulary: list[str], drawn: str, name: str, k: int
) -> None:
    words = [vocabulary[int(w[1:]) % len(vocabulary)] if w.startswith("#") else w for w in drawn.split()]
    question, ranker = " ".join(words), index.ranker(name)
    found = explain(ranker, question, k, index.words())
    assert [(one.row, one.score) for one in found.reasons] == ranker.search(question, k)
    for one in found.reasons:
        check_adds_up(one) if name != "rrf" else None
        assert near((one.shares or {}).values(), one.score)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_share_of_a_word_is_what_bm25_gives_it_alone(index: Index, question: str) -> None:
    ranker, lexical, _, _ = hybrid(index)
    plain = explain(lexical, question, 10, index.words())
    for one in plain.reasons:
        for met in one.words:
            times = [stem(word) for word in content_words(tokenize(question))].count(stem(met.word))
            alone = dict(lexical.search(met.word, len(index)))
            assert met.shares["lexical"] == pytest.approx(times * alone.get(one.row, 0.0), abs=1e-9)
    if "python" in question:  # which is left out of a question to this index
        return
    counts = {stem(word): 0.5 + 0.5 * said_in_code(index, stem(word)) for word in content_words(tokenize(question))}
    for one in explain(ranker, question, 10, index.words()).reasons:
        total = sum(met.shares["lexical"] for met in one.words)
        apart: dict[str, float] = {}
        for met in one.words:
            times = [stem(word) for word in content_words(tokenize(question))].count(stem(met.word))
            share = dict(lexical.search(met.word, len(index))).get(one.row, 0.0)
            apart[met.word] = counts[stem(met.word)] * times * (K3 + 1) / (times + K3) * share
        for met in one.words:
            if sum(apart.values()):
                expected = apart[met.word] / sum(apart.values())
                assert met.shares["lexical"] / max(total, 1e-12) == pytest.approx(expected, rel=1e-5)


def said_in_code(index: Index, stemmed: str) -> float:
    """The share of a stem's documents that have it in code, counted document by document."""
    code: tuple[Field, ...] = ("name", "calls", "enums", "identifiers", "types", "parameters")
    prose: tuple[Field, ...] = ("scope", "literals", "doc", "comments")
    words, there, coded = index.words(), 0, 0
    for row in range(len(index)):
        stems = {field: [stem(words.vocabulary.word(i)) for i in words.ids_of(row, field)] for field in (*code, *prose)}
        there += any(stemmed in found for found in stems.values())
        coded += any(stemmed in stems[field] for field in code)
    return coded / max(there, 1)


@pytest.mark.parametrize("name", ["ncs", "ncs_centred"])
def test_a_words_share_of_a_cosine_is_the_product_of_its_part_of_the_question(index: Index, name: str) -> None:
    ranker = index.ranker(name)
    assert isinstance(ranker, NcsRanker)
    words, parts = query_parts("how to read the words of a file", ranker.encoder)
    assert parts.sum(axis=0) == pytest.approx(ranker.encoder.query("how to read the words of a file"), abs=1e-5)
    found = explain(ranker, "how to read the words of a file", 5, index.words()).reasons[0]
    for met in found.words:
        at = words.index(met.word)
        alone = float(ranker.index.similarities(parts[at], np.array([found.row]))[0])
        assert met.shares["meaning"] == pytest.approx(alone, abs=1e-5)


def test_the_nearest_word_is_the_one_of_the_highest_cosine_among_all_the_documents_words(index: Index) -> None:
    _, _, dense, _ = hybrid(index)
    table, vectors = index.words(), np.asarray(dense.encoder.vectors, np.float64)
    length = np.linalg.norm(vectors, axis=1)
    seen = 0
    for row in range(0, len(index), 37):
        document = index.store.document(row)
        held = {word for field in NCS_FIELDS for word in field_tokens(field, document.words.get(field, ()))}
        everywhere = {word for field in FIELDS for word in field_tokens(field, document.words.get(field, ()))}
        for met in meet(["index", "folder", "zzz"], table, row, dense.encoder):
            same = {word for word in everywhere if stem(word) == stem(met.word)}
            if same:
                assert (met.met in same, met.similarity) == (True, 1.0)
                at = {f for f in FIELDS if same & set(field_tokens(f, document.words.get(f, ())))}
                assert set(met.fields) == at
                continue
            asked = table.vocabulary.id(met.word)
            if asked is None or not length[asked]:
                assert (met.met, met.similarity) == (None, None)
                continue
            ids = [id for word in held if (id := table.vocabulary.id(word)) is not None and length[id] > 0]
            if ids:
                best = max(float(vectors[id] @ vectors[asked] / length[id] / length[asked]) for id in ids)
                assert met.similarity == pytest.approx(best, abs=1e-5)
                seen += 1
    assert seen > 5


def test_shared_names_are_used_by_the_hit_and_counted_in_the_repositories_of_the_pool(index: Index) -> None:
    ranker, *_ = hybrid(index)
    question = "read the words of a folder"
    evidence = ranker.rank(question, 5).evidence
    assert evidence is not None
    pool = index.store.documents(evidence.pool.tolist())
    found = explain(ranker, question, 5, index.words())
    assert found.gates is not None
    assert found.gates.candidates == len(pool)
    assert found.gates.repositories == len({document.repository for document in pool})
    assert found.gates.effective == pytest.approx(1 / found.gates.inside)
    assert 0 < found.gates.consensus < 1
    assert any(one.names for one in found.reasons)
    for one in found.reasons:
        used = index.store.document(one.row).words
        for name in one.names:
            assert any(name.name in used.get(field, ()) for field in ("calls", "types", "enums"))
            users = {
                d.repository for d in pool if any(name.name in d.words.get(f, ()) for f in ("calls", "types", "enums"))
            }
            assert name.repositories == len(users)


def test_a_test_stands_back_by_its_role_and_a_second_hit_of_a_file_by_saturation(index: Index) -> None:
    found = explain(index.ranker("hybrid"), "rankers ordered by score and row", 200, index.words()).reasons
    paths = [index.store.document(one.row).path for one in found]
    assert any(path.startswith("tests/") for path in paths)
    best: dict[tuple[str, str], int] = {}
    for one in found:
        document = index.store.document(one.row)
        assert one.factors["role"] == (0.5 if document.path.startswith("tests/") else 1.0)
        before = best.get((document.repository, document.path), 0)
        assert one.factors["saturation"] == pytest.approx(0.5**before)
        best[document.repository, document.path] = before + 1


def test_languages_that_nearly_all_documents_are_in_are_left_out_and_named(index: Index) -> None:
    found = explain(index.ranker("hybrid"), "how to write a file in python", 3, index.words())
    assert (found.kind, found.words) == ("how-to", ("write", "file", "in"))
    assert (found.grammar, found.languages) == (("how", "to", "a"), ("python",))


def test_rrf_says_the_ranks_of_its_parts(index: Index) -> None:
    ranker = index.ranker("rrf")
    ranks = {
        part: [row for row, _ in index.ranker(part).search("read a file", 1000)] for part in ("bm25", "ncs_centred")
    }
    for one in explain(ranker, "read a file", 10, index.words()).reasons:
        assert one.shares is not None
        for part, rows in ranks.items():
            want = 1 / (61 + rows.index(one.row)) if one.row in rows else 0
            assert one.shares[part] == pytest.approx(want)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("reasons_demo")
    return Index.build(corpus.write(folder / "repos"), folder / "index")


def others(demo: Index, tmp_path: Path) -> list[Ranker]:
    pairs = tmp_path / "pairs.jsonl"
    line = {"query": "hide keyboard", "code": "void f() { manager.hideSoftInput(); }", "language": "java"}
    pairs.write_text("\n".join(json.dumps(line) for _ in range(3)) + "\n")
    return [demo.fitted("two_field"), demo.fitted("ncs_enhanced", pairs=str(pairs), part="bm25")]


def test_a_ranker_that_cannot_tell_gives_no_shares_but_the_words_that_stand_there(demo: Index, tmp_path: Path) -> None:
    two_field, enhanced = others(demo, tmp_path)
    found = explain(two_field, "hide the soft keyboard", 3, demo.words())
    hiding = next(one for one in found.reasons if demo.store.document(one.row).name == "hideSoftKeyboard")
    assert hiding.shares is None
    assert [(met.word, met.met, met.fields[0]) for met in hiding.words] == [
        ("hide", "hide", "name"), ("soft", "soft", "name"), ("keyboard", "keyboard", "name"),
    ]  # fmt: skip
    assert hiding.words[0].shares == {}
    added = explain(enhanced, "hide the keyboard", 1, demo.words())
    assert added.added == tuple(enhanced.added("hide the keyboard"))  # type: ignore[attr-defined]
    assert added.added
    check_adds_up(added.reasons[0])


def test_a_symbol_is_defined_and_a_file_is_named_like_the_question(demo: Index) -> None:
    answer = ask(demo, "Keyboards.hideSoftKeyboard", 1, ranker="hybrid", explain=True)
    assert answer["kind"] == "symbol"
    assert answer["explanation"]["symbols"] == ("Keyboards.hideSoftKeyboard",)
    reasons = answer["hits"][0]["explanation"]
    assert reasons["defines"] == ("Keyboards.hideSoftKeyboard",)
    assert set(reasons["title"]) == {"keyboards"} or set(reasons["title"]) == {"keyboard"}
    assert reasons["title_share"] > 0
    assert json.loads(json.dumps(answer))["hits"][0]["explanation"]["shares"] == reasons["shares"]


def test_nothing_is_explained_that_was_not_asked_for(demo: Index) -> None:
    answer = ask(demo, "hide keyboard", 1, ranker="hybrid")
    assert "explanation" not in answer
    assert "explanation" not in answer["hits"][0]
    assert "kind" not in ask(demo, "hide keyboard", 1, ranker="bm25")
    explained = ask(demo, "hide keyboard", 1, ranker="hybrid", explain=True)
    for with_reasons, hit in zip(explained["hits"], answer["hits"], strict=True):
        del with_reasons["explanation"]
        assert with_reasons == hit


@pytest.mark.parametrize("name", ["hybrid", "bm25", "ncs", "rrf"])
@pytest.mark.parametrize("width", [40, 50, 64, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_share_is_cut(index: Index, name: str, width: int) -> None:
    question = "read tokenized internationalization words of the Postings.load folder by dictionary"
    answer = ask(index, question, 3, ranker=name, explain=True)
    assert max(map(len, reading_lines(answer, width))) <= width
    for hit in answer["hits"]:
        lines = reasons_lines(hit["explanation"], width)
        assert max(map(len, lines)) <= width
        said = " ".join(lines)
        assert f"{hit['score']:.4f} = " in said
        for word in hit["explanation"]["words"]:
            for share in word["shares"].values():
                assert not share or f"{share:.4f}" in said


def test_lines_with_numbers_are_the_files_own_and_only_outlines_have_none(index: Index) -> None:
    numbered_kinds, plain_kinds = set(), set()
    for document in index.store.documents(range(len(index))):
        hit = hit_as_dict(Hit(1, 1.0, document), "")
        if not numbered(hit):
            plain_kinds.add(document.kind)
            continue
        numbered_kinds.add(document.kind)
        path = index.folder.parent / "repos" / document.repository / document.path
        lines = path.read_text("utf-8").split("\n")[document.start_line - 1 : document.end_line]
        shown = document.code.split("\n")
        assert [line.strip() for line in shown[1:-1]] == [line.strip() for line in lines[1:-1]]  # code is dedented
        assert shown[0].strip() in lines[0]
        assert shown[-1].strip() in lines[-1]
    assert {"class", "function"} <= numbered_kinds
    assert plain_kinds <= OUTLINES
    assert "class" in plain_kinds


def test_pieces_of_a_file_that_only_happen_to_have_as_many_lines_get_no_numbers() -> None:
    source = b"const a = 1; function f() {\n} const b = 2;\nfunction g() {\n}\nconst c = 3;\n"
    found = extract(source, "javascript", path="a.js", outside=True)
    module = next(document for document in found if document.kind == "module")
    assert module.code.split("\n")[2] == "const b = 2;"  # which stands in line 2, not 3
    assert module.code.count("\n") == module.end_line - module.start_line
    assert not numbered(hit_as_dict(Hit(1, 1.0, module), ""))
