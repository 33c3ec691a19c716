"""Judgments by people: queries in, the pool, the order, what is kept through kills, what is written, agreement."""

from __future__ import annotations

import csv
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from corpora.codesearchnet import read_annotations
from corpora.codesearchnet import read_queries as read_challenge_queries
from corpora.corpus import read_beir
from corpora.trec import read_qrels, read_run
from evaluation.__main__ import main as evaluation
from evaluation.annotation.command import Request, open_session
from evaluation.annotation.judgments import (
    SCHEMA,
    Agreement,
    Answer,
    JudgedAlready,
    Judgments,
    agreements,
    is_new,
    kappa,
    mean_grades,
    next_pair,
    qrels_of,
)
from evaluation.annotation.pool import Pair, Recipe, pool, read_queries, runs
from evaluation.annotation.session import MAX_HIGHLIGHTED, MAX_SHOWN, highlight
from ncs.cli.main import app, main
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.extract.languages import LANGUAGES
from ncs.index import Index
from ncs.types import Document, Query
from tests import corpus
from tests.annotating import QUERIES, Place


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


ASKED = (Query("1", "read file"), Query("2", "hide keyboard"))


@pytest.mark.parametrize(
    ("name", "text", "ids"),
    [
        ("q.txt", "\ufeffread file\r\n\r\n  hide keyboard \n", "12"),
        ("q", "read file\nhide keyboard", "12"),
        ("q.tsv", "a\tread file\n\nb\thide keyboard\n", "ab"),
        ("q.jsonl", '{"_id": "a", "text": "read file"}\n\n{"id": 7, "query": "hide keyboard"}\n', "a7"),
        ("q.jsonl", '{"query": "read file"}\n{"query": "hide keyboard"}\n', "12"),
        ("queries.csv", 'query\nread file\n"hide keyboard"\n', "12"),
    ],
)
def test_queries_are_read_from_every_form(tmp_path: Path, name: str, text: str, ids: str) -> None:
    found = read_queries(write(tmp_path / name, text))
    assert found == tuple(Query(id, query.text) for id, query in zip(ids, ASKED, strict=True))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("q.txt", " \n\n", "q.txt has no queries; write one per line"),
        ("q.txt", "a b\n\nA B\n", "q.txt:3: the query 'a b' is already at {}/q.txt:1; keep one of them"),
        ("q.tsv", "1\ta\n1\tb\n", "q.tsv:2: the id '1' is already at {}/q.tsv:1; keep one of them"),
        ("q.tsv", "1\ta\nb\n", "q.tsv:2: no tab; write the id, a tab and the query"),
        ("q.tsv", "1 2\ta\n", "q.tsv:1: the id '1 2' is empty or holds white space, as no qrels can; rename it"),
        ("q.jsonl", '{"text": "\\ud800"}', "q.jsonl:1: half a surrogate pair, which is not Unicode; correct that line"),
        ("q.csv", "text\na\n", "q.csv:1: the only column must be called query"),
        ("q.txt", "x" * 2001, "q.txt:1: a query of 2,001 characters; shorten it to 2,000"),
        ("q.txt", "\udcff", "q.txt is damaged"),
    ],
)
def test_queries_that_cannot_be_judged_are_named_with_their_line(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    with pytest.raises(BadInput) as raised:
        read_queries(write(tmp_path / name, text))
    assert str(raised.value).startswith(f"{tmp_path}/{said.format(tmp_path)}")


def test_the_pool_is_every_rankers_first_hits_once(at: Place) -> None:
    recipe = Recipe(("bm25", "ncs"), k=2)
    with Index.load(at.index) as index:
        queries = read_queries(at.queries)
        pairs = pool(index, queries, recipe)
        expected = {
            (query.id, hit.document.id, ranker): hit.rank
            for query in queries
            for ranker in ("bm25", "ncs")
            for hit in index.search(query.text, 2, ranker=ranker, functions_only=True)
        }
        kinds = {hit.document.kind for query in queries for hit in index.search(query.text, 2, functions_only=True)}
    assert {(p.query, p.document, ranker): rank for p in pairs for ranker, rank in p.ranks.items()} == expected
    assert [pair.number for pair in pairs] == list(range(1, len(pairs) + 1))
    assert len({(pair.query, pair.document) for pair in pairs}) == len(pairs) < len(expected)
    assert "class" not in kinds
    for ranker, run in runs(pairs, recipe).items():
        for query, scores in run.items():
            assert {id: 3 - expected[query, id, ranker] for id in scores} == scores


def test_languages_are_pooled_each_by_itself(at: Place) -> None:
    with Index.load(at.index) as index:
        pairs = pool(index, read_queries(at.queries), Recipe(("bm25",), k=1, languages=("java", "python")))
        alone = pool(index, read_queries(at.queries), Recipe(("bm25",), k=1))
    assert Counter(pair.query for pair in pairs).most_common(1)[0][1] == 2
    assert {pair.language for pair in pairs} == {"java", "python"}
    assert len(alone) == len(QUERIES)


PAIRS = tuple(Pair(n, str((n + 1) // 2), f"d{n}", b"", "java", {"bm25": 1}) for n in range(1, 9))


def answered(annotator: str, pair: int, grade: int | None, notes: str = "") -> Answer:
    return Answer(annotator, pair, grade, notes, "2026-01-01T00:00:00+00:00")


def order(annotator: str, seed: int, answers: list[Answer]) -> list[int]:
    """The pairs in the order in which one sees them, judging all."""
    given, found = list(answers), list[int]()
    while (pair := next_pair(PAIRS, given, annotator, seed)) is not None:
        found.append(pair.number)
        given.append(answered(annotator, pair.number, 1))
    return found


def test_the_order_is_random_repeats_and_differs_between_people_and_seeds() -> None:
    orders = [order(name, seed, []) for name in ("ada", "bob", "eve") for seed in (0, 1)]
    assert all(sorted(each) == list(range(1, 9)) for each in orders)
    assert len({tuple(each) for each in [*orders, list(range(1, 9))]}) == 7
    assert order("ada", 0, []) == orders[0]
    firsts = Counter(order(f"annotator {n}", 0, [])[0] for n in range(800))
    assert set(firsts) == set(range(1, 9))
    assert max(firsts.values()) < 150  # 100 each expected; 150 is over five standard deviations away


def test_pairs_with_fewest_judgments_come_first_and_skipped_ones_last() -> None:
    others = [answered("bob", n, 2) for n in (1, 2, 3, 4)] + [answered("eve", n, 2) for n in (3, 4)]
    found = order("ada", 0, [*others, answered("bob", 5, None), answered("ada", 7, None)])
    assert [set(found[:3]), set(found[3:5]), set(found[5:7]), found[7]] == [{5, 6, 8}, {1, 2}, {3, 4}, 7]


def test_grades_of_several_people_are_averaged_and_halves_go_up() -> None:
    answers = [answered("ada", 1, 1), answered("bob", 1, 2), answered("ada", 2, 0), answered("bob", 2, None)]
    answers += [answered("ada", 3, 0), answered("bob", 3, 0), answered("eve", 3, 1)]
    assert mean_grades(PAIRS, answers) == {"1": {"d1": 1.5, "d2": 0.0}, "2": {"d3": 1 / 3}}
    assert qrels_of(PAIRS, answers) == {"1": {"d1": 2, "d2": 0}, "2": {"d3": 0}}


def test_kappa_equals_scikit_learns() -> None:
    draw = np.random.default_rng(0)
    for size in (2, 5, 50, 891):
        for _ in range(10):
            ours = draw.integers(0, 4, size)
            theirs = np.clip(ours + draw.integers(-1, 2, size), 0, 3)
            if len({*ours, *theirs}) > 1:
                expected = cohen_kappa_score(ours, theirs, labels=[0, 1, 2, 3], weights="quadratic")
                assert kappa(ours.tolist(), theirs.tolist()) == pytest.approx(expected, abs=1e-12)


def test_agreement_is_told_of_each_two_people_and_of_everybody() -> None:
    ada, bob, eve = {1: 0, 2: 3, 3: 2, 4: 1}, {1: 0, 2: 2, 3: 2}, {4: 1, 5: 3}
    people = {"ada": ada, "bob": bob, "eve": eve}
    answers = [answered(name, pair, grade) for name, grades in people.items() for pair, grade in grades.items()]
    found = agreements([*answers, answered("eve", 1, None)])
    expected = cohen_kappa_score([0, 3, 2], [0, 2, 2], labels=[0, 1, 2, 3], weights="quadratic")
    everybody = cohen_kappa_score([0, 3, 2, 1, 0, 2, 2, 1], [0, 2, 2, 1, 0, 3, 2, 1], weights="quadratic")
    assert [replace(each, kappa=None) for each in found] == [
        Agreement("ada", "bob", 3, 2 / 3, None),
        Agreement("ada", "eve", 1, 1.0, None),
        Agreement("everybody", "", 4, 0.75, None),
    ]
    assert [each.kappa for each in found] == [pytest.approx(expected), None, pytest.approx(everybody)]
    with pytest.raises(BadInput, match="needs a second annotator"):
        agreements(answers[:4])


@pytest.fixture
def judgments(tmp_path: Path) -> Iterator[Judgments]:
    made = Judgments.create(tmp_path / "j.sqlite", Recipe(), [Query(str(n), f"q{n}") for n in range(1, 5)], PAIRS)
    yield made
    made.close()


def test_a_pool_comes_back_as_it_was_made(judgments: Judgments) -> None:
    odd = Pair(1, "1", "a\udcff\u202e.py:3", b"\x00\xff", "java", {"ncs": 3, "bm25": 1})
    path = judgments.path.with_name("odd.sqlite")
    Judgments.create(path, Recipe(("ncs",), 3, ("java",), 9), [Query("1", "é")], [odd]).close()
    again = Judgments(path)
    assert (again.recipe, again.queries, again.pairs) == (Recipe(("ncs",), 3, ("java",), 9), (Query("1", "é"),), (odd,))
    again.close()


def test_the_last_answer_is_taken_back_and_a_lost_reply_is_no_second_answer(judgments: Judgments) -> None:
    for _ in range(2):
        judgments.add("ada", 1, 3, "note")
    judgments.add("bob", 1, 0, "")
    judgments.add("ada", 2, None, "")
    judgments.add("ada", 2, 1, "")
    with pytest.raises(JudgedAlready, match="you gave this one a 3 already"):
        judgments.add("ada", 1, 2, "note")
    told = [(answer.annotator, answer.pair, answer.grade, answer.notes) for answer in judgments.answers()]
    assert told == [("ada", 1, 3, "note"), ("bob", 1, 0, ""), ("ada", 2, None, ""), ("ada", 2, 1, "")]
    undone = [judgments.undo("ada") for _ in range(4)]
    assert [answer and (answer.pair, answer.grade) for answer in undone] == [(2, 1), (2, None), (1, 3), None]
    assert [answer.annotator for answer in judgments.answers()] == ["bob"]


def test_a_creation_that_was_killed_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    assert is_new(path)
    path.touch()
    assert is_new(path)
    child = os.fork()
    if child == 0:  # writes more than its cache holds, so that half of it is in the file, and dies
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        for statement in SCHEMA.split(";"):
            db.execute(statement)
        db.executemany("INSERT INTO queries VALUES (?, ?, ?)", [(n, str(n), "x" * 900) for n in range(500)])
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert path.stat().st_size > 100_000
    assert is_new(path)
    Judgments.create(path, Recipe(), [Query("1", "q")], PAIRS[:2]).close()
    assert not is_new(path)


def test_pieces_put_together_are_the_code_and_hidden_characters_are_named() -> None:
    code = "def f(a):\r\n\treturn \"\u202ex\x07\" + '<b>&amp;'  # note\n"
    document = Document("d", "r", "p", 1, 2, "python", "function", "f", "f", {}, code)
    found, cut = highlight(document)
    assert not cut
    assert [text for kind, text in found if kind == "hidden"] == ["U+202E", "U+0007"]
    assert (
        "".join(text for kind, text in found if kind != "hidden") == "def f(a):\n\treturn \"x\" + '<b>&amp;'  # note\n"
    )
    kinds = {text.strip(): kind for kind, text in found}
    assert (kinds["def"], kinds["f"], kinds["# note"]) == ("keyword", "name", "comment")
    assert kinds["'<b>&amp;'"] == "string"


@pytest.mark.parametrize("language", [*LANGUAGES, "nothing", ""])
@pytest.mark.parametrize("code", ["", "\n\n", "\x00", "'\"`(", "f(x)\n" * 5_000, "\ud800é"])
def test_no_code_is_lost_in_any_language(language: str, code: str) -> None:
    found, _ = highlight(Document("d", "r", "p", 1, 2, language, "function", "f", "f", {}, code))
    assert "".join(chr(int(text[2:], 16)) if kind == "hidden" else text for kind, text in found) == code


def test_code_without_end_is_cut() -> None:
    code = "x" * (MAX_SHOWN + 1)
    found, cut = highlight(Document("d", "r", "p", 1, 2, "python", "function", "f", "f", {}, code))
    assert cut
    assert sum(len(text) for _, text in found) == MAX_SHOWN > MAX_HIGHLIGHTED


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of `ncs annotate`."""
    with pytest.raises(SystemExit) as ended:
        main(lambda: app(["annotate", *map(str, arguments)]))
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def judged(at: Place, **options: object) -> list[tuple[str, str, int]]:
    """Make the pool; ada and bob judge its first pairs: (query, document, their mean rounded)."""
    with open_session(Request(at.index, at.queries, k=2, **options), make=True) as (session, _):  # type: ignore[arg-type]
        for pair, (ours, theirs) in zip(session.judgments.pairs, ((3, 2), (0, 0), (1, 3), (2, 2)), strict=False):
            session.answer("ada", pair.number, ours, 'fine, but\n"slow"')
            session.answer("bob", pair.number, theirs, "")
        session.answer("eve", session.judgments.pairs[-1].number, None, "no idea")
        return [
            (pair.query, pair.document, grade)
            for pair, grade in zip(session.judgments.pairs, (3, 0, 2, 2), strict=False)
        ]


def test_exports_are_judged_by_the_evaluation_and_a_folder_is_a_corpus_with_every_document(
    at: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = judged(at)
    file, folder = tmp_path / "judged.qrels", tmp_path / "runs"
    status, out, err = said(capsys, at.index, at.queries, "--export", file, "--runs", folder)
    assert (status, out) == (0, "")
    assert "4 of " in err
    found = read_qrels(file)
    assert [(query, id, grade) for query, grades in found.items() for id, grade in grades.items()] == expected
    assert sorted(path.name for path in folder.iterdir()) == ["bm25.run", "hybrid.run", "ncs.run"]
    (tmp_path / "beir").mkdir()
    assert said(capsys, at.index, at.queries, "--export", tmp_path / "beir")[0] == 0
    beir = read_beir(tmp_path / "beir")
    assert beir.qrels == found
    with Index.load(at.index) as index:
        assert len(list(beir.documents())) == len(index)
    compared = tmp_path / "compared.json"
    assert evaluation(["--compare", str(folder / "hybrid.run"), str(folder / "bm25.run"), "--qrels", str(file),
                       "--measure", "ndcg@10", "--json", str(compared)]) == 0  # fmt: skip
    assert "ndcg@10" in compared.read_text()


def test_white_space_in_an_id_is_written_alike_in_qrels_and_runs_and_kept_by_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "def read_text_file(path): return 1"
    document = Document("my folder/a.py:1", "", "a.py", 1, 1, "python", "function", "read_text_file", "f",
                        {"name": ("read_text_file",)}, code)  # fmt: skip
    Index.of([document], tmp_path / "index").close()
    at = Place(tmp_path / "index", write(tmp_path / "q.tsv", "7\tread_text_file\n"))
    with open_session(Request(at.index, at.queries, rankers=("bm25",)), make=True) as (session, _):
        session.answer("ada", 1, 3, "")
    (tmp_path / "beir").mkdir()
    for option, name in (("--export", "a.qrels"), ("--runs", "runs"), ("--export", "beir"), ("--export", "a.csv")):
        assert said(capsys, at.index, at.queries, option, tmp_path / name)[0] == 0
    assert read_qrels(tmp_path / "a.qrels") == {"7": {"my%20folder/a.py:1": 3}}
    assert set(read_run(tmp_path / "runs" / "bm25.run")["7"]) == {"my%20folder/a.py:1"}
    assert dict(read_beir(tmp_path / "beir").qrels) == {"7": {"my folder/a.py:1": 3}}
    assert "Python,read_text_file,my folder/a.py:1,3,\n" in (tmp_path / "a.csv").read_text()


def test_the_csv_has_annotationstores_columns_and_links_where_they_are_known(
    at: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged(at)
    with open_session(Request(at.index, at.queries), make=False) as (session, _):
        number = next(pair.number for pair in session.judgments.pairs if pair.document.startswith("known/"))
        if number > 4:
            session.answer("ada", number, 3, "")
    file = tmp_path / "annotationStore.csv"
    assert said(capsys, at.index, at.queries, "--export", file)[0] == 0
    with file.open(newline="") as opened_file:
        rows = list(csv.DictReader(opened_file))
    assert list(rows[0]) == ["Language", "Query", "GitHubUrl", "Relevance", "Notes"]
    assert (rows[0]["Query"], rows[0]["Relevance"], rows[0]["Notes"]) == (QUERIES[0], "3", 'fine, but\n"slow"')
    assert {row["Language"] for row in rows} <= {"Python", "Java"}
    urls = {row["GitHubUrl"] for row in rows if row["GitHubUrl"].startswith("https:")}
    assert len(urls) == 1
    url = urls.pop()
    assert url.startswith("https://github.com/owner/known/blob/")
    assert url.endswith("/lib/a%231.py#L1-L2")
    assert len(url.split("/")[6]) == 40
    queries = write(tmp_path / "queries.csv", "query\n" + "\n".join(QUERIES) + "\n")
    means = read_annotations(file, read_challenge_queries(queries))
    assert sum(len(urls) for by_query in means.values() for urls in by_query.values()) in (4, 5)


def test_wrong_input_is_one_line(at: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def line(*arguments: object) -> str:
        status, out, err = said(capsys, *arguments)
        assert (status, out) == (2, "")
        assert err.count("\n") == 1
        return err.removeprefix("ncs: ")

    empty = write(tmp_path / "empty.txt", "\n")
    assert line(at.index, empty).startswith(f"{empty} has no queries")
    assert "nothing is judged yet" in line(at.index, at.queries, "--export", tmp_path / "x")
    assert not at.database.exists()
    assert line(at.index, at.queries, "--rankers", "bm25,nope").startswith("no ranker called 'nope'; choose one of: ")
    assert "has no cobol; it has: java, python" in line(at.index, at.queries, "--language", "cobol")
    write(at.database, "no database\n" * 99)
    assert "is no database of judgments (file is not a database)" in line(at.index, at.queries, "--agreement")
    at.database.unlink()
    sqlite3.connect(at.database).execute("CREATE TABLE mine (x)").connection.close()
    assert "is no database of judgments (it is something else)" in line(at.index, at.queries)
    at.database.unlink()
    judged(at)
    assert "was made with --rankers bm25,ncs,hybrid -k 2 --seed 0, not" in line(at.index, at.queries, "--seed", 5)
    other = write(tmp_path / "other.txt", "something else\n")
    assert "has other queries than" in line(at.index, other, "--database", at.database, "--agreement")


def test_a_database_of_another_index_is_refused_and_an_index_that_only_grew_is_not(
    at: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged(at)
    with Index.load(at.index) as index:
        documents = list(index.documents.documents(index.documents.rows().tolist()))
    more = Document("new:1", "new", "new", 1, 1, "python", "function", "new", "new", {}, "def new(): pass")
    Index.of([*documents, more], tmp_path / "grown").close()
    assert said(capsys, tmp_path / "grown", at.queries, "--agreement")[0] == 0
    changed = [Document(d.id, d.repository, d.path, d.start_line, d.end_line, d.language, d.kind, d.name,
                        d.qualified_name, d.words, d.code + " ") for d in documents]  # fmt: skip
    for found in ([more], changed):
        Index.of(found, tmp_path / "other").close()
        status, _, err = said(capsys, tmp_path / "other", at.queries, "--agreement")
        assert status == 2
        assert f"{at.database} is of another index: " in err
        assert err.count("\n") == 1


def test_an_index_without_code_cannot_be_judged(tmp_path: Path, at: Place, capsys: pytest.CaptureFixture[str]) -> None:
    Index.build(corpus.write(tmp_path / "repos"), tmp_path / "bare", config=BuildConfig(store_code=False)).close()
    status, _, err = said(capsys, tmp_path / "bare", at.queries)
    assert (status, "holds no code to judge; build it without --no-store-code" in err) == (2, True)
