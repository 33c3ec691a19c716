"""Functions cut in two: what is cut, what is asked, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora import load_corpora
from corpora.__main__ import main
from corpora.corpus import read_beir, write_beir
from corpora.halves import halves
from ncs.errors import BadInput


def function(name: str, lines: int) -> str:
    """A Python function of so many lines, each of which says its number."""
    return "\n".join([f"def {name}(value):", *(f"    value.{name}_{number}()" for number in range(1, lines))]) + "\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "proj"
    root.mkdir()
    (root / "a.py").write_text(f"{function('first', 9)}\n\n{function('short', 7)}\n\n{function('long', 81)}")
    (root / "b.py").write_text(f"{function('second', 8)}\n\n{function('first', 9)}")
    (root / "c.js").write_text("function other() {\n" + "  call();\n" * 9 + "}\n")
    return root


def test_the_first_half_asks_for_the_second_and_the_longer_one_answers(tree: Path) -> None:
    corpus = halves([tree], "python")
    documents = {document.id: document for document in corpus.documents()}
    asked = {query.id: query.text for query in corpus.queries}
    # too short, too long, of another language, and twice the same function are no questions
    assert {id.partition(":")[0] for id in documents} == {"proj/b.py"}
    assert len(documents) == 2
    second = next(id for id, text in asked.items() if text.startswith("def second"))
    lines = function("second", 8).rstrip().split("\n")
    assert asked[second].split("\n") == lines[:4]
    assert documents[second].code.split("\n") == lines[4:]
    first = next(id for id in asked if id != second)
    assert (len(asked[first].split("\n")), len(documents[first].code.split("\n"))) == (4, 5)
    assert corpus.qrels == {id: {id: 1} for id in asked}


def test_the_command_writes_a_folder_that_is_read_back(tree: Path, tmp_path: Path) -> None:
    assert main(["halves", str(tree), str(tmp_path / "out"), "--language", "python", "--queries", "1"]) == 0
    read = read_beir(tmp_path / "out" / "halves-python")
    corpus = halves([tree], "python", queries=1)
    assert list(read.queries) == list(corpus.queries)
    assert [dict(document.words) for document in read.documents()] == [
        dict(document.words) for document in corpus.documents()
    ]


def test_a_folder_of_such_folders_is_all_of_them(tree: Path, tmp_path: Path) -> None:
    for language in ("python", "javascript"):
        write_beir(halves([tree], language), tmp_path / "all" / f"halves-{language}")
    found = load_corpora(str(tmp_path / "all"))
    assert [(corpus.name, len(corpus.queries)) for corpus in found] == [("halves-javascript", 1), ("halves-python", 2)]


def test_a_language_that_is_not_read_and_a_tree_without_functions_are_said_in_a_line(tree: Path) -> None:
    with pytest.raises(BadInput, match="no language called 'klingon'; choose from "):
        halves([tree], "klingon")
    with pytest.raises(BadInput, match="no function of 8 to 80 lines of ruby in "):
        halves([tree], "ruby")
