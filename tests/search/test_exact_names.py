"""A name spelled exactly, or nearly, leads with its definition: the product's, the class before its constructors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ncs.answer import ask
from ncs.index import Index
from tests import gitrepo
from tests.corpus import QUICK

FILES = {
    "src/Reader.java": "/** Reads a source. */\npublic class Reader extends Base {\n  private final Source source;\n\n"
    + "  public Reader() {}\n\n  /** A reader. */\n  Reader(Reader reader) { reader.read(); }\n\n"
    + "".join(f"  int take{n}(Source s) {{\n    return s.next({n});\n  }}\n\n" for n in range(9))
    + "}\n",
    "src/parser.py": "class _Option:\n    option = 1\n\n    def run(self, option):\n        return option.option\n",
    "src/decorators.py": 'def option(*names, cls=None, **attributes):\n    """Attaches one to the command."""\n'
    "    def decorate(function):\n        attach(function, cls(names, **attributes))\n        return function\n"
    "    return decorate\n",
    "tests/test_sink.py": "class Memory:\n    def write_all(self, text):\n        self.write_all_of(text)\n",
    "src/sink.py": "def write_all(target, events, retries, delay):\n    for event in events:\n"
    "        for attempt in range(retries):\n            target.push(event)\n            sleep(delay)\n",
    "src/serve.py": "import serve\n\nserve = serve.serve\nserve(serve)\n\n\ndef serve(host, port):\n"
    "    listen(host, port)\n",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("exact")
    with Index.build(gitrepo.write(folder / "src", FILES), folder / "idx", config=QUICK, workers=1) as index:
        yield index


@pytest.mark.parametrize(
    ("query", "kind", "path"),
    [
        ("Reader", "class", "src/Reader.java"),
        ("option", "function", "src/decorators.py"),
        ("_Option", "class", "src/parser.py"),
        ("write_all", "function", "src/sink.py"),
        ("serve", "function", "src/serve.py"),
    ],
)
def test_the_definition_leads(index: Index, query: str, kind: str, path: str) -> None:
    first = index.search(query, 1)[0].document
    assert (first.kind, first.path) == (kind, path)


@pytest.mark.parametrize(
    ("query", "note", "first"),
    [
        ("write_alll", "'write_alll'; searching for 'write_all'", "write_all"),
        ("writeAlll", "'writeAlll'; searching for 'write_all'", "write_all"),
        ("Reader.taek3", "'Reader.taek3'; searching for 'Reader.take3'", "take3"),
        ("optoin", "'optoin'; searching for 'option'", "option"),
    ],
)
def test_a_name_that_nothing_is_called_is_read_as_one_of_nearly_its_spelling(
    index: Index, query: str, note: str, first: str
) -> None:
    answer = ask(index, query, ranker="hybrid")
    assert answer["hits"][0]["qualified_name"].rpartition(".")[2] == first
    assert answer["notes"] == [f"no match for {note}"]


@pytest.mark.parametrize("query", ["take33", "delayed", '"write_alll"', "sort write_alll", "self.Write_All"])
def test_a_number_a_used_name_and_a_name_among_words_are_read_as_written(index: Index, query: str) -> None:
    analysis = index.results(query, 1).ranking.analysis
    assert analysis is None or analysis.text == query


def test_more_names_than_are_looked_up_in_one_word_are_words(index: Index) -> None:
    assert index.search("write_all,takeIt,getSource,setTarget,readAll", 1)[0].document.name == "write_all"


def test_the_definition_of_a_class_stands_before_its_constructors(index: Index) -> None:
    assert [each.document.kind for each in index.definitions("Reader").found] == ["class", "constructor", "constructor"]
