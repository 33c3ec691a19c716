"""Judgments by people: queries, the pool, the order, answers through kills, exports, agreement."""

from __future__ import annotations

import csv
import re
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from corpora.codesearchnet.challenge import read_annotations
from corpora.codesearchnet.challenge import read_queries as read_challenge_queries
from corpora.corpus import read_beir
from corpora.trec import read_qrels, read_run
from evaluation.__main__ import main as evaluation
from evaluation.annotation.command import Request, agreements, open_session
from evaluation.annotation.judgments import (
    Answer,
    JudgedAlready,
    Judgments,
    grades_of,
    next_pair,
    qrels_of,
)
from evaluation.annotation.pool import Pair, Recipe, make_pool, read_queries, runs
from evaluation.annotation.session import MAX_SHOWN, highlight
from ncs.errors import BadInput
from ncs.index import Index
from ncs.types import Document, Query
from tests.command import invoke
from tests.evaluation.annotating import QUERIES


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


@pytest.mark.parametrize(
    ("name", "text", "ids"),
    [
        ("q.txt", "\ufeffread file\r\n\r\n  hide keyboard \n", "12"),
        ("q.tsv", "a\tread file\n\nb\thide keyboard\n", "ab"),
        ("q.jsonl", '{"_id": "a", "text": "read file"}\n\n{"id": 7, "query": "hide keyboard"}\n', "a7"),
        ("queries.csv", 'query\nread file\n"hide keyboard"\n', "12"),
    ],
)
def test_queries_are_read_from_every_form(tmp_path: Path, name: str, text: str, ids: str) -> None:
    queries = read_queries(write(tmp_path / name, text))
    assert queries == (Query(ids[0], "read file"), Query(ids[1], "hide keyboard"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.txt", " \n\n", "q.txt has no queries; write one per line"),
        ("q.txt", "a b\n\nA B\n", "q.txt:3: the query 'a b' is already at {}/q.txt:1; keep one of them"),
        ("q.tsv", "1\ta\n1\tb\n", "q.tsv:2: the id '1' is already at {}/q.tsv:1; keep one of them"),
        ("q.tsv", "1\ta\nb\n", "q.tsv:2: no tab; write the id, a tab and the query"),
        ("q.tsv", "1 2\ta\n", "q.tsv:1: the id '1 2' is empty or holds white space, as no qrels can; rename it"),
        ("q.jsonl", '{"text": "\\ud800"}', "q.jsonl:1: half a surrogate pair, which is not Unicode; correct that line"),
        ("q.csv", "text\na\n", "q.csv:1: the only column must be called query"),
        ("q.txt", "x" * 2001, "q.txt:1: a query of 2,001 characters; shorten it to 2,000"),
    ],
)
def test_a_query_that_cannot_be_judged_is_refused_at_its_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(BadInput) as raised:
        read_queries(write(tmp_path / name, text))
    assert str(raised.value).startswith(f"{tmp_path}/{message.format(tmp_path)}")


def test_the_pool_is_every_rankers_first_hits_once(at: Request) -> None:
    recipe = Recipe(("bm25", "ncs"), k=2)
    with Index.load(at.index) as index:
        queries = read_queries(at.queries)
        pairs = make_pool(index, queries, recipe)
        hits = {
            (query.id, hit.document.id, ranker): hit
            for query in queries
            for ranker in ("bm25", "ncs")
            for hit in index.search(query.text, 2, ranker=ranker, functions_only=True)
        }
    ranks = {key: hit.rank for key, hit in hits.items()}
    assert {(p.query, p.document, ranker): rank for p in pairs for ranker, rank in p.ranks.items()} == ranks
    assert [pair.number for pair in pairs] == list(range(1, len(pairs) + 1))
    assert len({(pair.query, pair.document) for pair in pairs}) == len(pairs) < len(ranks)
    assert "class" not in {hit.document.kind for hit in hits.values()}
    for ranker, run in runs(pairs, recipe).items():
        for query, scores in run.items():
            assert {id: 3 - ranks[query, id, ranker] for id in scores} == scores


PAIRS = tuple(Pair(n, str((n + 1) // 2), f"d{n}", b"", "java", {"bm25": 1}) for n in range(1, 9))


def order(annotator: str, seed: int, answers: list[Answer]) -> list[int]:
    """The pairs in the order in which an annotator who judges all sees them."""
    answers, numbers = list(answers), list[int]()
    while (pair := next_pair(PAIRS, answers, annotator, seed)) is not None:
        numbers.append(pair.number)
        answers.append(Answer(annotator, pair.number, 1))
    return numbers


def test_the_order_is_random_repeats_and_differs_between_people_and_seeds() -> None:
    orders = [order(name, seed, []) for name in ("ada", "bob", "eve") for seed in (0, 1)]
    assert all(sorted(each) == list(range(1, 9)) for each in orders)
    assert len({tuple(each) for each in [*orders, list(range(1, 9))]}) == 7
    assert order("ada", 0, []) == orders[0]


def test_pairs_with_fewest_judgments_come_first_and_skipped_ones_last() -> None:
    others = [Answer("bob", n, 2) for n in (1, 2, 3, 4)] + [Answer("eve", n, 2) for n in (3, 4)]
    numbers = order("ada", 0, [*others, Answer("bob", 5, None), Answer("ada", 7, None)])
    assert [set(numbers[:3]), set(numbers[3:5]), set(numbers[5:7]), numbers[7]] == [{5, 6, 8}, {1, 2}, {3, 4}, 7]


def test_grades_of_several_people_are_averaged_and_halves_go_up() -> None:
    answers = [Answer("ada", 1, 1), Answer("bob", 1, 2), Answer("ada", 2, 0), Answer("bob", 2, None)]
    answers += [Answer("ada", 3, 0), Answer("bob", 3, 0), Answer("eve", 3, 1)]
    assert qrels_of(PAIRS, answers) == {"1": {"d1": 2, "d2": 0}, "2": {"d3": 0}}


def test_agreement_is_that_of_each_two_people_and_of_everybody() -> None:
    people = {"ada": {1: 0, 2: 3, 3: 2, 4: 1}, "bob": {1: 0, 2: 2, 3: 2}, "eve": {4: 1, 5: 3}}
    answers = [Answer(name, pair, grade) for name, grades in people.items() for pair, grade in grades.items()]
    lines = agreements(grades_of([*answers, Answer("eve", 1, None)]))
    assert [(line.names, line.pairs, line.same) for line in lines] == [
        ("ada and bob", 3, 2 / 3), ("ada and eve", 1, 1.0), ("everybody", 4, 0.75),
    ]  # fmt: skip
    assert [line.kappa for line in lines] == [pytest.approx(20 / 23), None, pytest.approx(55 / 63)]
    with pytest.raises(BadInput, match="needs a second annotator"):
        agreements(grades_of(answers[:4]))


def test_a_pool_with_names_that_are_no_unicode_comes_back_from_its_database(tmp_path: Path) -> None:
    odd = Pair(1, "1", "a\udcff\u202e.py:3", b"\x00\xff", "java", {"ncs": 3, "bm25": 1})
    recipe, path = Recipe(("ncs",), 3, ("java",), 9), tmp_path / "odd.sqlite"
    Judgments.create(path, recipe, [Query("1", "é")], [odd]).close()
    again = Judgments(path)
    assert (again.recipe, again.queries, again.pairs) == (recipe, (Query("1", "é"),), (odd,))
    again.close()


def test_undo_deletes_the_last_answer_and_a_lost_reply_is_no_second_answer(tmp_path: Path) -> None:
    queries = [Query(str(n), f"q{n}") for n in range(1, 5)]
    answers = [Answer("ada", 1, 3, "note"), Answer("bob", 1, 0), Answer("ada", 2, None), Answer("ada", 2, 1)]
    with closing(Judgments.create(tmp_path / "j.sqlite", Recipe(), queries, PAIRS)) as judgments:
        for answer in [answers[0], *answers]:
            judgments.add(answer)
        with pytest.raises(JudgedAlready, match="you gave this one a 3 already"):
            judgments.add(Answer("ada", 1, 2, "note"))
        assert judgments.answers() == answers
        assert [judgments.undo("ada") for _ in range(3)] == [answers[3], answers[2], answers[0]]
        with pytest.raises(BadInput, match="nothing to undo"):
            judgments.undo("ada")
        assert judgments.answers() == [answers[1]]


def function(code: str, language: str = "python") -> Document:
    return Document("d", "r", "p", 1, 2, language, "function", "f", "f", {}, code)


def test_pieces_put_together_are_the_code_and_hidden_characters_are_named() -> None:
    pieces, cut = highlight(function("def f(a):\r\n\treturn \"\u202e\u2066x\x07\" + '<b>&amp;'  # note\n"))
    assert [text for kind, text in pieces if kind == "hidden"] == ["U+202E", "U+2066", "U+0007"]
    visible = "".join(text for kind, text in pieces if kind != "hidden")
    assert (visible, cut) == ("def f(a):\n\treturn \"x\" + '<b>&amp;'  # note\n", False)
    kinds = {(text.strip(), kind) for kind, text in pieces}
    assert kinds >= {("def", "keyword"), ("f", "name"), ("# note", "comment"), ("'<b>&amp;'", "string")}
    pieces, cut = highlight(function("x" * (MAX_SHOWN + 1)))
    assert (sum(len(text) for _, text in pieces), cut) == (MAX_SHOWN, True)


def annotate(*arguments: object) -> subprocess.CompletedProcess[str]:
    return invoke("annotate", *map(str, arguments), cwd=Path.cwd())


def judge(at: Request) -> set[tuple[str, str, int]]:
    """Make the pool; ada and bob judge six pairs: (query, document, mean rounded)."""
    with open_session(replace(at, k=2), make=True) as session:
        pairs = session.judgments.pairs
        others = [next(pair for pair in pairs[4:] if pair.document.startswith(name)) for name in ("known/", "my evil/")]
        judged = list(zip((*pairs[:4], *others), (3, 0, 1, 2, 1, 2), (2, 0, 3, 2, 1, 1), strict=True))
        for pair, ours, theirs in judged:
            session.judgments.add(Answer("ada", pair.number, ours, 'fine, but\n"slow"'))
            session.judgments.add(Answer("bob", pair.number, theirs))
        session.judgments.add(Answer("eve", pairs[-1].number, None, "no idea"))
        return {(pair.query, pair.document, (ours + theirs + 1) // 2) for pair, ours, theirs in judged}


def test_every_form_of_export_is_read_by_its_reader_and_only_qrels_and_runs_escape_white_space(
    at: Request, tmp_path: Path
) -> None:
    expected, escaped = judge(at), "my%20evil/src/ba<b>ré.py:1"
    assert escaped.replace("%20", " ") in {id for _, id, _ in expected}
    file, folder, compared = tmp_path / "judged.qrels", tmp_path / "runs", tmp_path / "compared.json"
    done = annotate(at.index, at.queries, "--export", file, "--runs", folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert "6 of " in done.stderr
    qrels = {(query, id, grade) for query, grades in read_qrels(file).items() for id, grade in grades.items()}
    assert qrels == {(query, id.replace(" ", "%20"), grade) for query, id, grade in expected}
    assert sorted(path.name for path in folder.iterdir()) == ["bm25.run", "hybrid.run", "ncs.run"]
    assert any(escaped in scores for scores in read_run(folder / "hybrid.run").values())
    assert evaluation(["--compare", str(folder / "hybrid.run"), str(folder / "bm25.run"), "--qrels", str(file),
                       "--measure", "ndcg@10", "--json", str(compared)]) == 0  # fmt: skip
    (tmp_path / "beir").mkdir()
    assert annotate(at.index, at.queries, "--export", tmp_path / "beir").returncode == 0
    beir = read_beir(tmp_path / "beir")
    assert {(query, id, grade) for query, grades in beir.qrels.items() for id, grade in grades.items()} == expected
    with Index.load(at.index) as index:
        assert len(list(beir.documents())) == len(index)
    assert annotate(at.index, at.queries, "--export", tmp_path / "store.csv").returncode == 0
    with (tmp_path / "store.csv").open(newline="") as opened_file:
        rows = list(csv.DictReader(opened_file))
    assert list(rows[0]) == ["Language", "Query", "GitHubUrl", "Relevance", "Notes"]
    assert (rows[0]["Query"], rows[0]["Relevance"], rows[0]["Notes"]) == (QUERIES[0], "3", 'fine, but\n"slow"')
    assert {row["Language"] for row in rows} == {"Python", "Java"}
    places = {row["GitHubUrl"] for row in rows}
    assert escaped.replace("%20", " ") in places
    (url,) = {place for place in places if place.startswith("https:")}
    assert re.fullmatch(r"https://github.com/owner/known/blob/[0-9a-f]{40}/lib/a%231.py#L1-L2", url)
    queries = write(tmp_path / "queries.csv", "query\n" + "\n".join(QUERIES) + "\n")
    means = read_annotations(tmp_path / "store.csv", read_challenge_queries(queries))
    assert sum(len(urls) for by_query in means.values() for urls in by_query.values()) == 6


def refused(*arguments: object) -> str:
    done = annotate(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    return done.stderr


def test_wrong_input_is_one_line(at: Request, tmp_path: Path) -> None:
    place = (at.index, at.queries)
    assert "nothing is judged yet" in refused(*place, "--export", tmp_path / "x")
    assert not at.file.exists()
    assert "no ranker 'nope'; choose from " in refused(*place, "--rankers", "bm25,nope")
    assert "no language 'cobol' in this index; choose from java, python" in refused(*place, "--language", "cobol")
    write(at.file, "no database\n" * 99)
    assert "is no database of judgments (file is not a database)" in refused(*place, "--agreement")
    at.file.unlink()
    sqlite3.connect(at.file).execute("CREATE TABLE mine (x)").connection.close()
    assert "is no database of judgments (it is something else)" in refused(*place)
    at.file.unlink()
    judge(at)
    assert "was made with --rankers bm25,ncs,hybrid -k 2 --seed 0, not" in refused(*place, "--seed", 5)
    other = write(tmp_path / "other.txt", "something else\n")
    assert "has other queries than" in refused(at.index, other, "--database", at.file, "--agreement")


def test_a_database_of_another_index_is_refused_and_an_index_that_only_grew_is_not(at: Request, tmp_path: Path) -> None:
    judge(at)
    with Index.load(at.index) as index:
        documents = list(index.documents.documents(index.documents.rows().tolist()))
    Index.of([*documents, replace(documents[0], id="new:1")], tmp_path / "grown").close()
    assert annotate(tmp_path / "grown", at.queries, "--agreement").returncode == 0
    Index.of([replace(d, code=d.code + " ", digest=b"") for d in documents], tmp_path / "other").close()
    assert f"{at.file} is of another index: " in refused(tmp_path / "other", at.queries, "--agreement")
