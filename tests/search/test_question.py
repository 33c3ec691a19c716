"""How queries are read, pasted code among them, and how a corpus spells their words."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ncs.answer import ask
from ncs.errors import BadInput
from ncs.index import UNKNOWN_WORDS, Index
from ncs.learn.general import general_head
from ncs.search.hybrid import Settings, Weights, of_kind
from ncs.search.question import (
    MAX_QUERY,
    Expansion,
    Kind,
    expand,
    names_alone,
    read_intent,
    without_filters,
    without_request,
)
from ncs.storage.postings import build
from ncs.text.stems import stem, stem_all
from ncs.types import FIELDS
from tests.words import table

PASTED = """    text = read_text_file(path)
    return len(text.splitlines())"""


@pytest.mark.parametrize(
    ("query", "name"),
    [
        (PASTED, "count_lines"),
        *((query, "read_text_file") for query in ("read_text_file", "read_text_file(path)")),
        ("where is read_text_file( called", "read_text_file"),
    ],
)
def test_pasted_lines_find_their_function_and_a_name_or_a_call_its_definition(
    demo_index: Index, query: str, name: str
) -> None:
    assert demo_index.search(query, 1)[0].document.name == name


@pytest.mark.parametrize(
    ("query", "kind", "symbols"),
    [
        (PASTED, "code", []),
        ("  register(handle)\n  return handle", "code", []),  # by its indentation
        ("x = parse_header(a); read_body(x);", "code", ["parse_header", "read_body"]),
        ("how does parse_header\nfind the colon", "how-to", ["parse_header"]),
        ("why do run_all, stop_all and kill_all differ", "how-to", ["run_all", "stop_all", "kill_all"]),
        ("why do run_all, stop_all, kill_all and end_all differ", "how-to", []),  # too many
        ("given an array of n numbers where 1 <= n <= 100 and a sum that is >= k find the pairs in it", "how-to", []),
        ("n = len(a); pairs = [x for x in a if x >= k]", "code", None),
        # reports that quote code
        ("Error: Invalid value for '--workers': 40 is not in the range 1<=x<=16.", "message", None),
        ("terminate called after throwing an instance of 'std::system_error'\n  what():  no file (3)", "message", None),
        ("Uncaught TypeError: x.map(...) is not a function\n    items = x.map(y);", "message", None),
        ("fatal: ambiguous argument 'a == b': unknown revision; a != b", "message", None),
        # code about errors
        ("error:\n  free(x);\n  return -1;", "code", None),
        ("except ValueError:\n    x = f(1)\n    y = 2", "code", None),
        ("let error: Error? = nil; f(&error);", "code", None),
    ],
)
def test_the_kind_of_a_query_and_the_symbols_whose_definitions_it_asks_for(
    query: str, kind: Kind, symbols: list[str] | None
) -> None:
    intent = read_intent(query)
    assert intent.kind == kind
    if symbols is not None:
        assert [symbol.name for symbol in intent.symbols][: max(len(symbols), 1)] == symbols


@pytest.mark.parametrize(
    "request_for",
    [
        "Please find the function that {}", "which function is responsible for: {}",
        "where in the code do we {}", "show me the part of the code base where we {}", "relevant code: {}",
        "hey, can somebody tell me how to {}", "I'm looking for something that lets me {}", "list all methods that {}",
        "{} in this project", "how does this repo {}",
    ],
)  # fmt: skip
def test_a_request_is_searched_for_like_what_it_asks_for(demo_index: Index, request_for: str) -> None:
    query = "hide the soft keyboard"
    assert without_request(request_for.format(query)).strip() == query
    request = ask(demo_index, request_for.format(query), ranker="hybrid")
    assert [(hit["id"], hit["score"]) for hit in request["hits"]] == [
        (hit["id"], hit["score"]) for hit in ask(demo_index, query, ranker="hybrid")["hits"]
    ]
    assert request["unknown_words"] == {}


@pytest.mark.parametrize(
    "query",
    [
        "find code blocks", "get the class of an object", "list users", "search for files", "show: no such option",
        "class not found: Foo", "code: 404", "find all that match", "the code", "function that", "set me as owner",
        "Error: no handler in the project", "option --verbose given twice:",
    ],
)  # fmt: skip
def test_a_question_about_such_words_keeps_them(query: str) -> None:
    assert without_request(query) == query


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("where is the `read_text_file` function defined?", "read_text_file"), ("def read_text_file", "read_text_file"),
        ("definition of read_text_file", "read_text_file"), ("how does read_text_file work", "read_text_file"),
        ("count_lines method", "count_lines"), ("find count_lines", "count_lines"),
    ],
)  # fmt: skip
def test_a_question_for_nothing_but_a_name_is_that_name(demo_index: Index, query: str, name: str) -> None:
    asked, bare = (ask(demo_index, text, ranker="hybrid") for text in (query, name))
    assert asked["kind"] == "symbol"
    assert asked["hits"] == bare["hits"]
    assert asked["notes"] == bare["notes"]


@pytest.mark.parametrize(
    "query", ["where is read_text_file used", "bug in read_text_file", "the read_file_text method"]
)
def test_a_question_about_a_name_or_for_an_unknown_one_is_more_than_that_name(demo_index: Index, query: str) -> None:
    assert ask(demo_index, query, ranker="hybrid")["kind"] != "symbol"


@pytest.mark.parametrize(
    "query",
    [
        "function name", "get class name", "hash function", "method arguments", "function is not defined",
        "option `help` already defined", "size of class",
    ],
)  # fmt: skip
def test_a_common_word_beside_the_word_for_a_kind_is_no_name(query: str) -> None:
    assert names_alone(query) == []


@pytest.mark.parametrize(
    "query", ["read-text-file", "read text file function", "read_text_file|no_such_name", "read_text_file,"]
)
def test_words_of_a_name_find_it_whatever_stands_between_them(demo_index: Index, query: str) -> None:
    hit = demo_index.search(query, 1)[0]
    assert hit.document.name == "read_text_file"
    assert hit.score == pytest.approx(demo_index.search("read text file", 1)[0].score, rel=0.5)


@pytest.mark.parametrize(
    "form",
    [
        "{} (not in tests)", "{}, excluding test files", "{}, without unit tests", "{} -test", "{} -path:test",
        '{{"level":"warn","n":3,"msg":"{}"}}', 'time="12:00:01" level=warn msg="{}" code=3',
    ],
)  # fmt: skip
def test_filters_and_what_surrounds_the_message_of_a_log_are_no_words(demo_index: Index, form: str) -> None:
    query = "hide the soft keyboard"
    assert (
        ask(demo_index, form.format(query), ranker="hybrid")["hits"]
        == (ask(demo_index, query, ranker="hybrid")["hits"])
    )


@pytest.mark.parametrize(
    "query",
    [
        "run the tests", "skip tests", "how are tests not run", "log(msg='a b', level=2)", "type:string schema",
        "-test", "run without tests", "add the option --no-tests",
    ],
)  # fmt: skip
def test_questions_about_tests_and_code_that_logs_are_whole(query: str) -> None:
    assert without_filters(query) == query


def test_a_message_of_grammar_and_values_is_searched_for_with_its_grammar() -> None:
    assert read_intent("'x' is not one of 'a', 'b'.").words == ("x", "is", "not", "one", "of", "a", "b")
    assert read_intent("choice 'x' is unknown").words == ("choice", "x", "unknown")


def test_code_is_ranked_by_its_words_and_half_its_vector_alone() -> None:
    weights, settings = Weights(meaning=0.6, head=0.3), Settings(role=0.4)
    assert of_kind(weights, settings, "code") == (
        Weights(0.3, naming=0, consensus=0, title=0, neighbours=0, general=0, head=0.3),
        Settings(spelling=0, role=1, unfinished=1, saturation=1),
    )
    kinds: tuple[Kind, ...] = ("symbol", "how-to", "keywords")
    assert all(of_kind(weights, settings, kind) == (weights, settings) for kind in kinds)


def test_what_many_projects_share_is_not_ranked_above_the_pasted_code(tmp_path: Path) -> None:
    roots = [tmp_path / f"r{number}" for number in range(8)]
    for number, root in enumerate(roots):
        root.mkdir()
        shared = f"def open_{number}(paths):\n    handle = connect(paths)\n    register(handle)\n"
        rest = "    audit(handle)\n    publish(handle)\n" if number else "    return handle, paths, size\n"
        (root / "a.py").write_text(shared + rest)
    with Index.build(roots, tmp_path / "index") as built:
        hits = built.search("    register(handle)\n    return handle, paths, size", 1)
    assert hits[0].document.repository == "r0"


WORDS = table(
    "name: lowercase text; doc: handy string",
    "name: lowercase name; calls: string; doc: handy",
    "calls: lower initialize; comments: string case",
    "calls: lower case initialize; literals: string",
    "identifiers: inlist case money; types: kind; parameters: size; enums: big; scope: outer",
)
POSTINGS = build(WORDS, weights=dict.fromkeys(FIELDS, 1))


def expansion(query: str, **settings: Any) -> Expansion:
    return expand(query.split(), POSTINGS, lambda: list(WORDS.vocabulary), **settings)


@pytest.mark.parametrize(
    ("query", "settings", "weights"),
    [
        # handy: in two comments; string: in code in one of its four documents; lower: always in code
        ("handy string lower", {}, {"handy": 0.5, "string": 0.5 + 0.5 / 4, "lower": 1.0}),
        ("kind size big outer", {}, {"kind": 1.0, "size": 1.0, "big": 1.0, "outer": 0.5}),
        ("handy", {"prose": 0.2}, {"handy": 0.2}),
        ("handy string", {"prose": 1.0}, {"handy": 1.0, "string": 1.0}),
        # c times count 3c / (c + 2): 1, 1.5, 1.8 ...
        ("handy lower handy", {}, {"handy": 0.5 * 1.5, "lower": 1.0}),
        ("lower " * 3, {}, {"lower": 1.8}),
        ("lower " * 500, {}, {"lower": 1500 / 502}),
    ],
)
def test_a_word_counts_by_its_share_in_code_and_less_each_time_it_is_repeated(
    query: str, settings: dict[str, float], weights: dict[str, float]
) -> None:
    assert expansion(query, **settings).query == pytest.approx({stem(word): each for word, each in weights.items()})


def test_words_written_as_one_count_for_both_words() -> None:
    both = sum(POSTINGS.idf(["lower", "case"]).values())
    assert expansion("lower case", spelling=0.5).other_spellings["lowercas"] * POSTINGS.idf_of("lowercas") == (
        pytest.approx(0.5 * both)
    )


@pytest.mark.parametrize(
    ("often", "known", "words"), [(400, [], ("volume",)), (399, [], ()), (400, ["volm"], ()), (400, None, ())]
)
def test_a_word_that_others_mistyped_too_is_corrected_where_another_has_200_times_its_documents(
    often: int, known: list[str] | None, words: tuple[str, ...]
) -> None:
    corpus = table(*["attach volume"] * often, "attach volme", "detach volme", "attach")
    postings = build(corpus, weights=dict.fromkeys(FIELDS, 1))
    is_known = None if known is None else known.__contains__
    found = expand(["attach", "volme"], postings, lambda: list(corpus.vocabulary), known=is_known)
    assert found.words == words
    assert "volm" in found.query  # a corrected word is searched for, too


def test_a_hit_has_a_confidence_where_a_word_is_corrected_that_the_corpus_mistyped_too(tmp_path: Path) -> None:
    often = "".join(f"def quiet_{n}():\n    suppress(warning_{n})\n\n\n" for n in range(250))
    (tmp_path / "code.py").write_text(often + 'def other():\n    """Supress it."""\n')
    with Index.build(tmp_path, tmp_path / "index") as index:
        found = index.results("supress the warning", 3)
    assert list(found.ranking.words) == ["suppress", "warning"]
    assert found.hits[0].document.name == "other"
    assert [0 < confidence < 1 for confidence in found.ranking.confidences or ()] == [True] * 3
    assert [impact > 0 for impact in found.ranking.impacts[stem("suppress")]] == [False, True, True]


@pytest.mark.parametrize(
    ("further", "known", "words"),
    [
        ("doc: trim", [], ("sdstrim", "trimsds")),
        ("doc: trim", ["sdstrim"], ("trimsds",)),  # public code knows it: a word of its own, as `profile`
        ("calls: trim", [], ()),  # code has the word by itself
    ],
)
def test_a_word_that_no_code_has_is_looked_for_in_names_that_join_it_to_another_word(
    further: str, known: list[str], words: tuple[str, ...]
) -> None:
    names = ("name: sdstrim; types: sds", "name: sdstrim; types: sds", "name: trimsds", "name: retrim", "doc: trims")
    corpus = table(*names, further)
    postings = build(corpus, weights=dict.fromkeys(FIELDS, 1))
    found = expand(
        ["trim"], postings, lambda: list(corpus.vocabulary), known=known.__contains__, longer=corpus.vocabulary.longer
    )
    assert found.words == words  # without retrim: "re" is no word; without trims: the same stem


@pytest.mark.parametrize(
    ("query", "words"),
    [("cred", ("credential",)), ("credential", ("cred",)), ("desc", ("description", "descriptor")), ("credit", ())],
)
def test_abbreviations_and_what_they_abbreviate_find_each_other(query: str, words: tuple[str, ...]) -> None:
    corpus = table("name: get credentials", "name: cred store", "doc: description", "types: descriptor")
    postings = build(corpus, weights=dict.fromkeys(FIELDS, 1))
    assert expand([query], postings, lambda: list(corpus.vocabulary)).words == words


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("lower case", ("lowercase",)),  # neighbors that the corpus writes as one word
        ("money in list", ()),  # a preposition is not joined to what follows it
        ("stringlower", ("string", "lower")),
        ("stringmoney", ()),  # `money` is in one document only: not enough for a part
        ("intialize", ("initialize",)),
        ("honey", ()),  # another first letter
        ("mony", ()),  # too short for a typo
        ("lowrr", ("lower",)),
        ("lwwrr", ()),  # two edits are too many below eight letters
        ("initialize string", ()),
        ("lower case lowercase", ()),  # is in the query already
        ("aaqqqqqq bbqqqqqq ccqqqqqq ddqqqqqq intialize", ("initialize",)),
        ("aaqqqqqq bbqqqqqq ccqqqqqq ddqqqqqq eeqqqqqq intialize", ()),  # only five unknown words are looked up
    ],
)
def test_other_spellings_are_joined_split_or_corrected_words(query: str, words: tuple[str, ...]) -> None:
    assert expansion(query).words == words
    others = expansion(query, spelling=0.25).other_spellings
    assert list(others) == stem_all(words)
    assert "lowercas" in others or set(others.values()) <= {0.25}
    assert expansion(query, spelling=0.0).other_spellings == {}


@pytest.mark.parametrize(("query", "words"), [("erase", ()), ("recieve", ("receive",)), ("receeve", ("receive",))])
def test_a_word_that_public_code_has_for_something_else_is_no_typing_error(query: str, words: tuple[str, ...]) -> None:
    corpus = table("name: ease in", "name: ease out", "name: receive")
    postings = build(corpus, weights=dict.fromkeys(FIELDS, 1))
    found = expand([query], postings, lambda: list(corpus.vocabulary), unlike=general_head().unlike)
    assert found.words == words


def letters(n: int) -> str:
    """Five letters, others for each number."""
    return "".join("abcdefghij"[int(digit)] for digit in f"{n * 7919 % 100_000:05}")


PATTERNS: dict[str, Callable[[int], str]] = {
    "known words": lambda n: "hide keyboard ",
    "unknown words": lambda n: f"zq{letters(n)} ",
    "symbols": lambda n: f"View.set{letters(n)}() ",
    "humps": lambda n: letters(n).title(),
    "brackets": lambda n: "a(",
    "code": lambda n: f"x = {letters(n)}(y);\n",
    "conversions": lambda n: "file to key ",
    "one word": lambda n: "a",
    "no word": lambda n: "\t?",
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_longest_query_takes_seconds_and_a_longer_one_is_refused(demo_index: Index, pattern: str) -> None:
    text = ""
    for n in count():
        text += PATTERNS[pattern](n)
        if len(text) > MAX_QUERY:
            break
    began = time.process_time()
    answer = ask(demo_index, text[:MAX_QUERY], ranker="hybrid", explain=True)
    assert time.process_time() - began < 40  # (1 to 8 on an idle machine; without bounds 4 MB took a minute)
    assert len(answer["unknown_words"]) <= UNKNOWN_WORDS
    with pytest.raises(BadInput, match="the query has 32,769 characters; shorten it to 32,768"):
        ask(demo_index, text[: MAX_QUERY + 1], ranker="hybrid")
