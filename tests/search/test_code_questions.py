"""Code as a question: pasted lines find the function that holds them, not the definitions of what they call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ncs.index import Index
from ncs.search.hybrid import Settings, Weights, of_kind
from ncs.search.question import Kind, read_intent

SOURCE = """
def parse_header(line):
    name, value = line.split(":", 1)
    return name, value


def read_body(stream, length):
    return stream.read(length)


def receive(connection):
    headers = {}
    while line := connection.readline():
        name, value = parse_header(line)
        headers[name] = value
    size = int(headers["length"])
    return headers, read_body(connection, size)


def send(connection, headers, body):
    for name, value in headers.items():
        connection.write(f"{name}: {value}")
    connection.write(body)
"""
PASTED = """    while line := connection.readline():
        name, value = parse_header(line)
        headers[name] = value
    return read_body(connection, size)"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("code")
    (root / "src").mkdir()
    (root / "src" / "http.py").write_text(SOURCE)
    with Index.build(root / "src", root / "index") as built:
        yield built


def first(index: Index, question: str) -> str:
    return index.search(question, 1)[0].document.name


def test_pasted_lines_find_the_function_that_holds_them(index: Index) -> None:
    assert first(index, PASTED) == "receive"


@pytest.mark.parametrize("name", ["parse_header", "read_body"])
def test_a_name_and_a_call_of_it_still_find_its_definition(index: Index, name: str) -> None:
    assert first(index, name) == first(index, f"{name}(line)") == first(index, f"where is {name}( called") == name


def test_lines_of_code_ask_for_no_definition_and_one_line_may() -> None:
    asked = read_intent(PASTED)
    assert (asked.kind, asked.symbols) == ("code", ())
    assert read_intent("  register(handle)\n  return handle").kind == "code"  # by its indentation
    assert [symbol.name for symbol in read_intent("x = parse_header(a); read_body(x);").symbols][:2] == [
        "parse_header",
        "read_body",
    ]


def test_a_question_of_two_lines_is_no_code() -> None:
    asked = read_intent("how does parse_header\nfind the colon")
    assert (asked.kind, [symbol.name for symbol in asked.symbols]) == ("how-to", ["parse_header"])


def test_who_spells_many_names_asks_for_none_of_them() -> None:
    three, four = (
        "why do run_all, stop_all and kill_all differ",
        "why do run_all, stop_all, kill_all and end_all differ",
    )
    assert [symbol.name for symbol in read_intent(three).symbols] == ["run_all", "stop_all", "kill_all"]
    assert read_intent(four).symbols == ()


def test_prose_with_formulas_is_no_code() -> None:
    told = "given an array of n numbers where 1 <= n <= 100 and a sum that is >= k find the pairs that are in it"
    assert read_intent(told).kind == "how-to"
    assert read_intent("n = len(a); pairs = [x for x in a if x >= k]").kind == "code"


def test_code_is_asked_by_its_words_and_half_its_vector_alone() -> None:
    weights, settings = Weights(meaning=0.6, head=0.3), Settings(role=0.4)
    said, plain = of_kind(weights, settings, "code")
    assert (said.meaning, said.head, said.naming, said.consensus, said.title, said.neighbours) == (0.3, 0.3, 0, 0, 0, 0)
    assert (plain.spelling, plain.role, plain.outline, plain.body, plain.unfinished, plain.saturation) == (0, *[1] * 5)
    assert (plain.prose, plain.fold) == (settings.prose, settings.fold)
    kinds: tuple[Kind, ...] = ("symbol", "how-to", "keywords")
    assert all(of_kind(weights, settings, kind) == (weights, settings) for kind in kinds)


def test_what_many_projects_share_does_not_stand_above_the_pasted_code(tmp_path: Path) -> None:
    roots = [tmp_path / f"r{number}" for number in range(8)]
    for number, root in enumerate(roots):
        root.mkdir()
        shared = f"def open_{number}(paths):\n    handle = connect(paths)\n    register(handle)\n"
        rest = "    audit(handle)\n    publish(handle)\n" if number else "    return handle, paths, size\n"
        (root / "a.py").write_text(shared + rest)
    with Index.build(roots, tmp_path / "index") as built:
        found = built.search("    register(handle)\n    return handle, paths, size", 1)
    assert found[0].document.repository == "r0"
