"""Query enhancement: the matrix beside one counted by hand, and what it adds to questions."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from corpora.jsonl import write_rows
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.baselines.enhanced import Cooccurrence, EnhancedRanker, code_words, read_pairs
from ncs.search.rankers import create_ranker
from ncs.types import Document

PAIRS = [
    ("hide soft keyboard", "void f() { imm.hideSoftInput(view); }"),
    ("Show the keyboard!", "imm.showSoftInput(view);"),
    ("how to hide a view", "void g() { view.setVisibility(GONE); }"),
    ("read file", "Files.readAllBytes(path);"),
]


def write(path: Path) -> Path:
    write_rows(path, ({"query": query, "code": code, "language": "java", "id": "x"} for query, code in PAIRS))
    return path


def best_of(matrix: Cooccurrence, word: str) -> tuple[str, float]:
    """The best code word and its weight to six decimals."""
    found = matrix.best(word)
    assert found is not None
    return found[0], round(found[1], 6)


def test_rows_are_the_shares_of_pairs_that_hold_both_words() -> None:
    words = np.random.default_rng(1)
    letters = list("abcdefgh")
    pairs = [(list(words.choice(letters, 3)), list(words.choice(letters, 4))) for _ in range(50)]
    counted: dict[str, Counter[str]] = {letter: Counter() for letter in letters}
    for question, code in pairs:
        for word in set(question):
            counted[word].update(set(code))
    found = Cooccurrence.of(pairs)
    for word, row in counted.items():
        id = found.questions.id(word)
        assert id is not None
        here = slice(found.offsets[id], found.offsets[id + 1])
        got = {found.code.word(at): weight for at, weight in zip(found.ids[here], found.weights[here], strict=True)}
        assert got == {code: pytest.approx(count / row.total(), rel=1e-6) for code, count in row.items()}
        best = min(row, key=lambda code: (-row[code], code))
        assert best_of(found, word) == (best, round(row[best] / row.total(), 6))


def test_with_idf_a_word_that_all_code_holds_weighs_nothing() -> None:
    pairs = [(["hide"], ["get", "input"]), (["show"], ["get", "view"]), (["hide"], ["get", "view"])]
    assert best_of(Cooccurrence.of(pairs), "hide") == ("get", 0.5)
    found = Cooccurrence.of(pairs, idf=True)
    input_, view = np.log(3), np.log(1.5)
    assert best_of(found, "hide") == ("input", round(input_ / (input_ + view), 6))
    assert found.best("nothing") is None


@pytest.mark.parametrize(
    ("code", "language", "words"),
    [
        ("int f(int x) { return g.hideAll(x); }", "java", ["f", "hide", "all"]),
        ("manager.hideAll(x);", "java", ["hide", "all"]),
        ("int size; void f() { clear(); }", "java", ["f", "clear"]),
        ("shutil.rmtree(path)\nprint('done')", "python", ["rmtree", "print", "done"]),
        ("def f():\n    return g()", "python", ["f", "g"]),
        ("func hideAll(x int) {}", "brainfuck", ["func", "hide", "all", "x", "int"]),
        ("", "java", []),
    ],
)
def test_words_of_code_are_those_ncs_reads_whatever_stands_around(code: str, language: str, words: list[str]) -> None:
    assert code_words(code, language) == words


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    texts = ("hide soft input window", "show soft input", "read all bytes", "set visibility gone", "keyboard layout")
    documents = [
        Document(f"r/x:{n}", "r", "x", n, n, "java", "method", "f", "f", {"doc": (text,)}, text)
        for n, text in enumerate(texts * 3, 1)
    ]
    config = BuildConfig(deduplicate=False)
    with Index.of(documents, tmp_path_factory.mktemp("index"), config=config) as built:
        yield built


def fitted(index: Index, path: Path, **config: Any) -> EnhancedRanker:
    return cast(EnhancedRanker, index.fitted("ncs_enhanced", pairs=str(path), **config))


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.jsonl.gz"])
def test_the_best_code_word_of_each_word_is_added_once_where_it_is_new(index: Index, tmp_path: Path, name: str) -> None:
    ranker = fitted(index, write(tmp_path / name))
    # keyboard: input and soft in 2 of its 2 pairs (of 6 words), the first in the alphabet is taken
    assert ranker.added("keyboard") == ["input"]
    assert ranker.added("keyboard keyboard input") == []
    assert ranker.added("how to the of unknown") == []
    assert ranker.added("read") == ["all"]


def test_questions_of_an_evaluation_are_not_learnt_from_however_they_are_written(index: Index, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.jsonl")
    questions = tmp_path / "evaluation.jsonl"
    questions.write_text('{"id": "1", "query": "Hide soft-keyboard?"}\n\n{"id": "2", "query": "show THE keyboard"}\n')
    assert fitted(index, path, leave_out=str(questions)).added("keyboard") == []
    assert fitted(index, path, leave_out=str(questions)).added("read") == ["all"]


def test_the_matrix_is_saved_with_its_settings_and_pairs_are_not_read_again(index: Index, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.jsonl")
    config = BuildConfig(deduplicate=False, rankers=(f"ncs_enhanced:pairs={path},least_weight=0.1,part=bm25",))
    documents = index.documents.documents(range(len(index)))
    with Index.of(documents, tmp_path / "index", config=config) as built:
        path.unlink()
        loaded = cast(EnhancedRanker, built.ranker("ncs_enhanced"))
        assert loaded.added("keyboard") == ["input"]
        assert (loaded.config["least_weight"], loaded.config["part"]) == (0.1, "bm25")


def test_a_query_is_searched_with_its_added_words_of_enough_weight(index: Index, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.jsonl")
    for part in ("ncs", "bm25"):
        enhanced = fitted(index, path, part=part)
        assert enhanced.search("keyboard", 9) == index.ranker(part).search("keyboard input", 9)
    weight = Cooccurrence.of([(["keyboard"], code_words(code, "java")) for _, code in PAIRS[:2]]).best("keyboard")
    assert weight is not None
    assert fitted(index, path, least_weight=weight[1] - 0.01).added("keyboard") == ["input"]
    assert fitted(index, path, least_weight=weight[1] + 0.01).added("keyboard") == []
    assert Cooccurrence.of([]).best("keyboard") is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"query": "a", "code": "b"}\n{"query": "a"}\n', "a.jsonl:2: a pair is an object with"),
        ("a.jsonl", b'\n{"query": "a", "code": 5}\n', "a.jsonl:2: a pair"),
        ("a.jsonl", b"[1]\n", "a.jsonl:1: a pair"),
        ("a.jsonl", b"{nonsense\n", "a.jsonl:1: not JSON"),
        ("a.jsonl", b"\xff\xfe\n", "is damaged"),
        ("cut.jsonl.gz", gzip.compress(b"{}" * 999, mtime=0)[:20], "is damaged"),
        ("plain.jsonl.gz", b"{}", "cannot read"),
        ("none.jsonl", None, "cannot read"),
    ],
)
def test_a_bad_line_or_file_is_named_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=message) as error:
        list(read_pairs(tmp_path / name))
    assert "\n" not in str(error.value)


def test_wrong_settings_are_refused_with_the_remedy(index: Index, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"learns from \(question, code\) pairs; name a file: ncs_enhanced:pairs=FILE"):
        index.fitted("ncs_enhanced")
    (tmp_path / "q.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(BadInput, match=r"q.jsonl:1: no object with a query"):
        fitted(index, write(tmp_path / "pairs.jsonl"), leave_out=str(tmp_path / "q.jsonl"))
    with pytest.raises(BadInput, match="'hybrid' cannot be a part of another ranker; these can: bm25, ncs"):
        create_ranker("ncs_enhanced", part="hybrid")
