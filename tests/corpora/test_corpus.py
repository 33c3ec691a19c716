"""Corpora: one shape, in and out of BEIR and TREC files, every wrong line reported."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from corpora import CORPORA, data_folder, load_corpora
from corpora.catalog import read_catalog
from corpora.corpus import Corpus, digest, read_beir, write_beir
from corpora.jsonl import read_rows, write_rows
from corpora.ncs287 import read_links, read_score_sheet
from corpora.program import read_program
from corpora.stackoverflow import read_posts
from corpora.trec import read_qrels, read_run, write_qrels, write_run
from ncs.errors import BadInput
from ncs.types import Document, Query
from tests.gitrepo import write

METHOD = 'public void hideKeyboard(View v) {\n  manager.hideSoftInput(v);\n  log("hidden");\n}'


def small() -> Corpus:
    def documents() -> Iterator[Document]:
        yield read_program(METHOD, "java", id="repo/A.java:3")
        yield read_program("def read(path):\n    return open(path)", "python", id="b c", title="Büro")
        yield read_program("just words, héllo", "", id="d")

    queries = (Query("q1", "hide the keyboard"), Query("q 2", "read\ta file"))
    return Corpus("small", queries, {"q1": {"repo/A.java:3": 2, "d": 0}, "q 2": {"b c": 1}}, documents)


def test_a_beir_folder_gives_back_its_corpus_whose_digest_changes_with_each_part(tmp_path: Path) -> None:
    corpus, folder = small(), tmp_path / "small"
    write_beir(corpus, folder)
    again = read_beir(folder)
    assert (again.name, again.queries, again.qrels) == (corpus.name, corpus.queries, corpus.qrels)
    assert list(again.documents()) == list(corpus.documents())
    documents, queries, qrels = list(corpus.documents()), corpus.queries, corpus.qrels
    assert digest(again.documents(), again.queries, again.qrels) == digest(documents, queries, qrels)
    other_documents = digest(documents[:-1], queries, qrels), digest(documents[::-1], queries, qrels)
    others = digest(documents, queries[:1], qrels), digest(documents, queries, {"q1": {"d": 1}})
    assert len({digest(documents, queries, qrels), *other_documents, *others}) == 5


def test_trec_files_give_back_runs_with_their_ties_and_scores(tmp_path: Path) -> None:
    run = {"q1": {"b": 0.1 + 0.2, "a": 5.0, "c": 0.1 + 0.2}, "q2": {"x": -1e-17}}
    write_run(run, tmp_path / "run")
    again = read_run(tmp_path / "run")
    assert again == run
    assert list(again["q1"]) == ["a", "b", "c"]
    qrels = {"q1": {"a": 3, "b": 0}, "q2": {"x": -1}}
    write_qrels(qrels, tmp_path / "qrels")
    assert read_qrels(tmp_path / "qrels") == qrels


def test_ids_with_white_space_meet_again_in_trec_files_and_none_is_lost(tmp_path: Path) -> None:
    section = "docs/shell-completion.md::Shell Completion"
    write_run({"q 1": {section: 2.0, "a%b": 1.0}}, tmp_path / "run")
    write_qrels({"q 1": {section: 1}}, tmp_path / "qrels")
    assert read_run(tmp_path / "run") == {"q%201": {section.replace(" ", "%20"): 2.0, "a%b": 1.0}}
    assert read_qrels(tmp_path / "qrels") == {"q%201": {section.replace(" ", "%20"): 1}}
    with pytest.raises(BadInput, match="no two that differ in white space"):
        write_run({"q": {"a b": 2.0, "a%20b": 1.0}}, tmp_path / "run")
    with pytest.raises(BadInput, match="hold no empty id"):
        write_run({"q": {"": 1.0}}, tmp_path / "run")


SHEET_HEADER = "No.,StackOverflow ID,a FRank"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_run, "q Q0 d 1 0.5 tag\nq Q0 d 2 0.4 tag\n", r":2: 'd' is repeated for query 'q'"),
        (read_run, "q Q0 d 1 high tag\n", r":1: the score 'high' is not a number"),
        (read_run, "", "is an empty run"),
        (read_qrels, "q 0 d 1\nq 0 d 0\n", r":2: 'd' is judged twice for 'q'"),
        (read_qrels, "q 0 d much\n", r":1: the grade 'much' is not a whole number"),
        (read_catalog, "# a comment\n\na b c\n", ":3: not 'corpus path bytes checksum address'"),
        (read_catalog, "a b 12x - http://127.0.0.1/\n", ":1: not 'corpus path bytes checksum address'"),
        (read_links, "\nhttps://x.org/x/y/archive/main.zip\n", ":2: .* is no link"),
        (read_links, "x/y\n", ":1: .* is no link"),
        (read_links, "https://x.org/../y/archive/1234567.zip\n", ":1: .* is no link"),
        (read_score_sheet, "", ":1: the columns must be No., StackOverflow ID"),
        (read_score_sheet, f"{SHEET_HEADER},a FRank\r\n1,2,3,4\r\n", ":1: a system has two columns"),
        (read_score_sheet, f"{SHEET_HEADER}\r\n1,2,3\r\n1,2\r\n", ":3: 2 columns instead of 3"),
        (read_score_sheet, f"{SHEET_HEADER}\r\n1,2,0\r\n", ":2: the rank '0' is neither NF"),
        (read_posts, "<posts>\n<row Id='1' Body='&broken;'/></posts>", ":2: "),
        (read_posts, "<comments><row/></comments>", "its root is <comments>, not <posts>"),
        (read_posts, '<!DOCTYPE posts [<!ENTITY a "b">]><posts/>', "declares entities"),
    ],
)
def test_a_wrong_line_of_a_file_is_reported_with_its_number(
    tmp_path: Path, read: Callable[[Path], Iterable[object]], text: str, message: str
) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        list(read(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("corpus.jsonl", '{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}\n', "two documents have the id '1'"),
        ("corpus.jsonl", '{"_id": "1", "text": "a"}\n{"_id": oops}\n', r"corpus\.jsonl:2: not JSON"),
        ("corpus.jsonl", '{"_id": "1", "text": "", "metadata": {"words": {"title": []}}}\n', "'words' must map"),
        (
            "corpus.jsonl",
            '{"_id": "1", "text": "", "metadata": {"words": {"name": [1]}}}\n',
            "'name' is not a list of str",
        ),
        (
            "corpus.jsonl",
            '{"_id": "1", "text": "", "metadata": {"words": {"name": "a"}}}\n',
            "'name' is not a list of str",
        ),
        ("queries.jsonl", '{"_id": "q", "text": "a"}\n{"_id": "q", "text": "b"}\n', "two queries have the id 'q'"),
        ("queries.jsonl", '{"_id": "other", "text": "a"}\n', "judge 'q', which is not among the queries"),
        ("qrels/test.tsv", "q\t1\t1\nq\t1\t2\n", r"test\.tsv:2: '1' is judged twice"),
        ("qrels/test.tsv", None, r"there is no .*test\.tsv"),
    ],
)
def test_a_wrong_beir_file_is_an_error_of_one_line(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    whole = {"corpus.jsonl": '{"_id": "1", "text": "a"}\n', "queries.jsonl": '{"_id": "q", "text": "a"}\n'}
    write(tmp_path, {**whole, "qrels/test.tsv": "q\t1\t1\n", name: text or ""})
    if text is None:
        (tmp_path / name).unlink()
    with pytest.raises(BadInput, match=message) as caught:
        list(read_beir(tmp_path).documents())
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_the_first_line_and_null_is_no_title(tmp_path: Path) -> None:
    document, query = '{"_id": "1", "title": null, "text": "a"}\n', '{"_id": "q", "text": "a"}\n'
    files = {
        "corpus.jsonl": document,
        "queries.jsonl": query,
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\t1\t1\n",
    }
    write(tmp_path, {name: f"\ufeff{text}" for name, text in files.items()})
    corpus = read_beir(tmp_path)
    assert (corpus.qrels, [each.code for each in corpus.documents()]) == ({"q": {"1": 1}}, ["a"])
    (tmp_path / "qrels.gz").write_bytes(gzip.compress("\ufeffq 0 1 1\r\n".encode()))
    assert read_qrels(tmp_path / "qrels.gz") == {"q": {"1": 1}}


def test_a_file_in_another_encoding_is_to_be_saved_as_utf_8(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_bytes("q 0 caf\u00e9 1\n".encode("latin-1"))
    with pytest.raises(BadInput, match=r"qrels is not UTF-8 \(.*\); save it as UTF-8$"):
        read_qrels(tmp_path / "qrels")


def test_a_truncated_gzip_file_is_reported_as_damaged(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": "' + bytes(range(65, 91)) * 2000 + b'"}\n')[:60])
    with pytest.raises(BadInput, match=r"rows\.jsonl\.gz is damaged"):
        list(read_rows(path))


def test_a_whole_file_keeps_its_names_and_leaves_imports_out() -> None:
    file = f"import android.view.View;\n\n/** Helps. */\npublic class Keyboards {{\n  int count = 3;\n  {METHOD}\n}}\n"
    document = read_program(file, "java", id="x")
    assert (document.words["name"], document.words["scope"]) == (("hideKeyboard",), ("Keyboards",))
    assert document.qualified_name == "Keyboards.hideKeyboard"
    assert "android" not in document.words["identifiers"]
    assert document.code == file


def test_members_and_statements_are_joined_in_source_order() -> None:
    bare = read_program('with open(path) as file:\n    print(file.read(), "done")', "python", id="x").words
    assert bare["calls"] == ("open", "print", "read")
    assert not {"name", "scope"} & bare.keys()
    assert "__program__" not in str(bare)
    members = read_program(f"{METHOD}\nint two() {{ return twice(1); }}", "java", id="x")
    assert members.words["name"] == ("hideKeyboard", "two")
    assert members.words["calls"] == ("hideSoftInput", "log", "twice")
    assert (members.start_line, members.end_line) == (1, 5)
    mixed = read_program(f"View v = find();\nv.show();\nv.focus();\nv.grow();\nv.shrink();\n{METHOD}", "java", id="x")
    calls = [name for name in mixed.words["calls"] if name != "hideKeyboard"]  # in statements it looks like one
    assert calls == ["find", "show", "focus", "grow", "shrink", "hideSoftInput", "log"]


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("php", "public static function hideKeyboard($view)\n{\n    return self::close($view);\n}"),
        ("php", "function hideKeyboard($view)\n{\n    return close($view);\n}"),
        ("javascript", "hideKeyboard(view) {\n  return this.close(view);\n}"),
        ("typescript", "private hideKeyboard(view: View): void {\n  this.close(view);\n}"),
        ("csharp", "public void HideKeyboard(View view)\n{\n    view.Close();\n}"),
    ],
)
def test_a_member_of_a_class_has_its_name_and_calls(language: str, code: str) -> None:
    words = read_program(code, language, id="x").words
    assert [name.lower() for name in words["name"]] == ["hidekeyboard"]
    assert [name.lower() for name in words["calls"]] == ["close"]


def test_what_is_no_program_becomes_one_text() -> None:
    assert read_program("} not java {{", "java", id="x").words == {"doc": ("} not java {{",)}
    assert read_program("a docstring", "", id="x", title="Title").words == {"doc": ("Title a docstring",)}


# The data sets themselves, in the form they are given out


def nlp2api(folder: Path) -> None:
    codes = [METHOD, "int a = b();", METHOD]
    rows = [{"id": str(n), "query": f"how {n}", "code": code} for n, code in enumerate(codes)]
    write_rows(folder / "eval_java_nlp2api.jsonl.gz", rows)


def test_cosqa_and_nlp2api_judge_the_answers_in_them_and_a_copy_of_a_gold_program_answers_too(tmp_path: Path) -> None:
    codes = [{"id": f"c{n}", "code": f"def f{n}():\n    pass"} for n in (1, 2)]
    write_rows(tmp_path / "eval_cosqa_corpus.jsonl.gz", codes)
    write_rows(tmp_path / "eval_cosqa_dev.jsonl.gz", [{"id": "q1", "query": "do g", "gold": "c2"}])
    nlp2api(tmp_path)
    [cosqa], [java] = load_corpora("cosqa", tmp_path), load_corpora("nlp2api", tmp_path)
    assert (cosqa.queries, cosqa.qrels) == ((Query("q1", "do g"),), {"q1": {"c2": 1}})
    assert [{"id": each.id, "code": each.code} for each in cosqa.documents()] == codes
    assert java.qrels == {"0": {"0": 1, "2": 1}, "1": {"1": 1}, "2": {"0": 1, "2": 1}}
    assert [document.id for document in java.documents()] == ["0", "1", "2"]


@pytest.mark.parametrize("name", CORPORA)
def test_missing_data_is_reported_with_its_remedy(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=r"there is no .*(--data or NCS_DATA|python -m corpora fetch)"):
        load_corpora(name, tmp_path)


def test_the_data_folder_is_the_one_given_else_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCS_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder(Path("/")) == Path("/")
    monkeypatch.setenv("NCS_DATA", str(tmp_path / "missing"))
    with pytest.raises(BadInput, match=r"--data or NCS_DATA"):
        data_folder()
