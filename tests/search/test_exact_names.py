"""A name spelled exactly leads with its definition: the product's, the class before its constructors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
