"""Functions cut in two: what is cut, what is asked, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora import load_corpora
from corpora.__main__ import main
from corpora.halves import halves
from ncs.errors import BadInput
from tests.gitrepo import write


def function(name: str, lines: int) -> str:
    """A Python function of so many lines, each of which says its number."""
    return "\n".join([f"def {name}(value):", *(f"    value.{name}_{number}()" for number in range(1, lines))]) + "\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "a.py": f"{function('first', 9)}\n\n{function('short', 7)}\n\n{function('long', 81)}",
        "b.py": f"{function('second', 8)}\n\n{function('first', 9)}",
        "c.js": "function other() {\n" + "  call();\n" * 9 + "}\n",
    }
    return write(tmp_path / "proj", files)


def test_the_first_half_asks_for_the_second_and_the_longer_one_answers(tree: Path) -> None:
    corpus = halves([tree], "python")
    answers = {document.id: document.code.split("\n") for document in corpus.documents()}
    questions = {query.id: query.text.split("\n") for query in corpus.queries}
    # too short, too long, of another language, and twice the same function are no questions
    assert {id.partition(":")[0] for id in answers} == {"proj/b.py"}
    whole = {tuple(questions[id] + answers[id]): len(questions[id]) for id in answers}
    assert whole == {tuple(function(name, n).rstrip().split("\n")): 4 for name, n in (("first", 9), ("second", 8))}
    assert corpus.qrels == {id: {id: 1} for id in questions}


def test_the_command_writes_a_folder_that_is_read_back(tree: Path, tmp_path: Path) -> None:
    for language in ("python", "javascript"):
        assert main(["halves", str(tree), str(tmp_path / "out"), "--language", language, "--queries", "1"]) == 0
    javascript, python = load_corpora(str(tmp_path / "out"))
    assert (javascript.name, len(javascript.queries)) == ("halves-javascript", 1)
    corpus = halves([tree], "python", queries=1)
    assert list(python.queries) == list(corpus.queries)
    assert [dict(each.words) for each in python.documents()] == [dict(each.words) for each in corpus.documents()]


def test_an_unknown_language_and_a_tree_without_functions_are_reported_in_a_line(tree: Path) -> None:
    with pytest.raises(BadInput, match="no language called 'klingon'; choose from "):
        halves([tree], "klingon")
    with pytest.raises(BadInput, match="no function of 8 to 80 lines of ruby in "):
        halves([tree], "ruby")
