"""Messages with values in them lead to the literals that wrote them: escapes, placeholders, joined strings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ncs.index import Index
from tests import gitrepo

SOURCES = {
    "open.c": 'int open_log(char *path) {\n  fprintf(stderr, "cannot open %s\\n", path);\n  return -1;\n}\n',
    "range.py": 'def check(x, n):\n    raise ValueError("%s is not in the range %d<=x\\n" % (x, n))\n',
    "expect.rs": 'fn expect(a: T, b: T) {\n    panic!("expected {} but got {:?}", a, b);\n}\n',
    "Beans.java": 'class Beans {\n  void fail(Type x) {\n    throw new E("No serializer found for class " + x\n'
    '        + " and no properties");\n  }\n}\n',
    "field.py": 'def field(name, kind):\n    raise ValueError(f"{name} is invalid for {kind}")\n',
    "quote.py": 'def parse(key):\n    raise KeyError("unknown key \\"%s\\" in\\tmanifest" % key)\n',
    "others.py": "def expected():\n    return open(found)\n\n\ndef invalid(range, key):\n    return range[key]\n"
    '\n\ndef report(path):\n    log("cannot find the range of a class", "open the log")\n',
    "Reader.java": 'class Reader {\n  void close(int c) {\n    if (c < 0) throw syntaxError("Unterminated object");\n'
    "    depth--;\n    stack[depth] = peek(c);\n  }\n}\n",
    "tests/ReaderTest.java": "class ReaderTest {\n  void testUnterminatedObject() {\n"
    '    assertEquals(e.getMessage(), "Unterminated object at line 1");\n  }\n}\n',
    "choice.py": "def complain(value, choices):\n    raise BadParameter(f'{value!r} is not one of {choices}.')\n",
    "tests/test_choice.py": "def test_choice():\n    assert \"'x' is not one of 'a', 'b'.\" in run(x, a, b).output\n",
    "args.go": 'func exactArgs(n int) {\n  fail("accepts %d arg(s), received %d", n, len(args))\n}\n'
    'func rangeArgs(a, b int) {\n  fail("accepts between %d and %d arg(s), received %d", a, b, len(args))\n}\n',
    "token.ts": "function unexpected(want, got, line) {\n  throw new Error(`It must be ${want} but was ${got}`);\n}\n",
    "object.py": 'def object_of(pairs):\n    """An object, not terminated."""\n    log("read a file", pairs)\n',
    "store.py": 'def has_space(path):\n    log("commit log disk full")\n',
}
MESSAGES = {
    "cannot open foo.txt": "open_log",
    "error: cannot open /var/log/foo.txt: no such file": "open_log",
    "ValueError: 40 is not in the range 1<=x": "check",
    "thread panicked: expected Some(3) but got None": "expect",
    "E: No serializer found for class com.acme.Order and no properties": "Beans.fail",
    "ValueError: email is invalid for user": "field",
    "Unterminated object": "Reader.close",
    "unterminated object": "Reader.close",
    "'x' is not one of 'a', 'b'.": "complain",
    "It must be value but was string at line 3": "unexpected",
    "KeyError: 'unknown key \"colour\" in manifest'": "parse",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("messages")
    with Index.build(gitrepo.write(root / "r", SOURCES), root / "i") as index:
        yield index


@pytest.mark.parametrize(("message", "name"), MESSAGES.items())
def test_a_message_leads_to_the_function_that_wrote_it_though_values_stand_in_it(
    index: Index, message: str, name: str
) -> None:
    results = index.results(message, 3)
    assert results.hits[0].document.qualified_name == name
    if name != "open_log":  # two words are too few to be told from others
        assert results.ranking.signals["verbatim"][0] > 1
        assert not results.ranking.signals["verbatim"][1:].any()


def test_a_text_without_a_sign_of_a_message_has_no_values_in_it(index: Index) -> None:
    assert not any(index.results("flush commit log to disk", 3).ranking.signals["verbatim"])
    assert index.results("commit log disk full", 3).ranking.signals["verbatim"][0] > 1


def test_values_have_no_share_in_a_message(index: Index) -> None:
    assert index.results("'x' is not one of 'a', 'b'.", 1).ranking.signals["verbatim"][0] == 3
    hits = index.results("accepts 2 arg(s), received 3", 2)
    assert [hit.document.name for hit in hits.hits] == ["exactArgs", "rangeArgs"]
    assert hits.ranking.signals["verbatim"][0] == 3


def test_two_words_that_say_nothing_is_wrong_are_no_message(index: Index) -> None:
    for question in ("read file", "Read a file", "log disk"):
        assert not any(index.results(question, 3).ranking.signals["verbatim"])


def test_three_words_are_what_somebody_looks_for_and_no_message(index: Index) -> None:
    assert not any(index.results("log disk full", 3).ranking.signals["verbatim"])
    assert index.results("error: log disk full", 3).ranking.signals["verbatim"][0] > 1
