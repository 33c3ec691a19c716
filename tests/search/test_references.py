"""Definitions and uses of names: which functions, in which order, at which lines, and what a name narrows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncs.answer import ask, definitions_of, references_to
from ncs.errors import BadInput
from ncs.index import Index
from tests import gitrepo
from tests.corpus import QUICK

CORE = '''"""Core."""
from typing import overload

LIMIT = 3


class Reader:
    next: "Reader"

    def read(self, path):
        data = open(path).read()
        return self.parse(data)

    def parse(self, data):
        return parse_json(data, LIMIT)


@overload
def parse_json(text: str) -> int: ...
def parse_json(text, limit=None):
    """No parse_json of old."""
    def inner(x):
        return helper(x)
    if limit:
        return parse_json(text)
    return inner(text)


def helper(x):
    return x


if __name__ == "__main__":
    print(
        parse_json("1"))
'''
APP = '''from app.core import parse_json, Reader

def run(pool, reader):
    pool.map(parse_json, [1])
    return reader.read("x")

def count(parse_json):
    return parse_json + 1

def other(file):
    return file.read()

def noise(file):
    """Not the helper."""
    from app.helper import other
    helper = file.helper
    return other(file.run)

class Child(Reader):
    pass
'''
FILES = {
    "app/core.py": CORE,
    "app/app.py": APP,
    "lib/text.py": "def helper(x):\n    return x.strip()\n\n\ndef fold(x):\n    return helper(x)\n",
    "tests/test_core.py": "def test_parse():\n    assert parse_json('x') == 1\n",
    "wall/paint.py": "def paint_wall(x):\n    return x\n",
    "wall/README.md": "# Walls\n\n```python\npaint_wall(2)\n```\n",
    "app/house.py": "def build_house():\n    return paint_wall(1)\n",
    "tests/test_paint.py": "def test_paint():\n    assert paint_wall(3) == 3\n",
    "web/x.js": "function show() {\n  button.addEventListener('x', parseJson);\n}\n",
}
ELSEWHERE = {"main.py": "def start():\n    return parse_json(1)\n"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("names")
    for name, files in {"one": FILES, "two": ELSEWHERE}.items():
        gitrepo.git(gitrepo.write(folder / "repos" / name, files), "init", "-q")
    with Index.build(folder / "repos", folder / ".ncs", config=QUICK) as built:
        yield built


def uses(index: Index, name: str, k: int = 50, **options: Any) -> list[tuple[str, str, list[int]]]:
    """Group, name and lines of each use."""
    hits = references_to(index, name, k, **options)["references"]
    return [(hit["group"], hit["qualified_name"], hit["lines"]) for hit in hits]


def places(index: Index, name: str, **options: Any) -> list[str]:
    """path:line of each definition."""
    hits = definitions_of(index, name, **options)["definitions"]
    return [f"{hit['path']}:{hit['start_line']}" for hit in hits]


def test_uses_come_by_distance_from_the_definition_and_tests_last(index: Index) -> None:
    assert uses(index, "parse_json") == [
        ("same file", "Reader.parse", [15]),
        ("same file", "parse_json", [25]),
        ("same file", "core", [35]),
        ("same folder", "run", [4]),  # passed on, not called; `count` has a parameter of this name
        ("elsewhere", "start", [2]),
        ("tests", "test_parse", [2]),
    ]


def test_documents_that_use_a_name_come_last(index: Index) -> None:
    assert uses(index, "paint_wall") == [
        ("same repository", "build_house", [2]),
        ("tests", "test_paint", [2]),
        ("documents", "Walls", [4]),
    ]


def test_a_hit_of_uses_is_one_of_a_search_with_its_lines(index: Index) -> None:
    (hit,) = references_to(index, "parse_json", path="app.py")["references"]
    assert set(ask(index, "parse json", 1, ranker="bm25")["hits"][0]) < set(hit)
    assert hit["texts"] == ["    pool.map(parse_json, [1])"]
    assert hit["code"].startswith("def run")


def test_the_lines_of_an_inner_function_are_not_those_of_the_outer_one(index: Index) -> None:
    assert uses(index, "app/core.py::helper") == [("same file", "parse_json.inner", [23])]


def test_the_second_name_of_a_function_expression_is_no_use(tmp_path: Path) -> None:
    code = "app.render = function render(n) {\n  // render\n};\napp.show = function show(n) {\n  app.render(n);\n};\n"
    with Index.build(gitrepo.write(tmp_path, {"app.js": code}), tmp_path / ".ncs", config=QUICK) as index:
        assert uses(index, "render") == [("same file", "app.show", [5])]


def test_a_line_of_documentation_with_a_tag_is_no_use(tmp_path: Path) -> None:
    code = '''class Store:
    def read(self): ...

    def all(self, mode):
        """All of it.

        :meth:`read` is called once.

        :param mode: how to read it
        """
        return self.read(mode)
'''
    with Index.build(gitrepo.write(tmp_path / "r", {"a.py": code}), tmp_path / "i", config=QUICK) as index:
        assert [use["lines"] for use in references_to(index, "read")["references"]] == [[11]]


def test_code_outside_functions_does_not_use_what_only_a_class_below_it_does(tmp_path: Path) -> None:
    code = "from a import Reader\n\nstart(1)\n\n\nclass Child(Reader):\n    pass\n"
    files = {"a.py": "class Reader:\n    pass\n", "b.py": code}
    with Index.build(gitrepo.write(tmp_path, files), tmp_path / ".ncs", config=QUICK) as index:
        assert uses(index, "Reader") == [("same folder", "Child", [6])]


def test_a_class_does_not_use_itself_by_its_definition(index: Index) -> None:
    assert uses(index, "Reader") == [("same file", "Reader", [8]), ("same folder", "Child", [19])]


def test_an_owner_leaves_the_functions_that_have_its_words(index: Index) -> None:
    assert [name for _, name, _ in uses(index, "read")] == ["Reader.read", "run", "other"]
    assert [name for _, name, _ in uses(index, "Reader.read")] == ["Reader.read", "run"]
    assert [name for _, name, _ in uses(index, "app/core.py::Reader#read()")] == ["Reader.read", "run"]
    (note,) = references_to(index, "Reader::read")["notes"]
    assert note == "1 more use of read in functions that do not name Reader; to see all, ask for read alone"


def test_a_file_leaves_out_files_with_a_definition_of_their_own(index: Index) -> None:
    assert [name for _, name, _ in uses(index, "helper")] == ["parse_json.inner", "fold"]
    for name, file in (("lib/text.py::helper", None), ("one/lib/text.py::helper", None), ("helper", "lib/text.py")):
        assert [found for _, found, _ in uses(index, name, file=file)] == ["fold"]
    assert [found for _, found, _ in uses(index, "text.helper")] == ["fold"]
    assert "in files that define a helper of their own" in references_to(index, "text.helper")["notes"][0]


def test_filters_and_the_limit_say_what_they_leave_out(index: Index) -> None:
    assert [name for _, name, _ in uses(index, "parse_json", path="tests")] == ["test_parse"]
    answer = references_to(index, "parse_json", 2)
    assert (len(answer["references"]), answer["notes"]) == (2, ["about 6 functions use parse_json; not all are shown"])
    assert references_to(index, "parse_json", path="web")["notes"] == [
        "parse_json is used, but not in what the filters leave"
    ]


def test_a_name_in_another_style_finds_what_is_defined_in_its_own(index: Index) -> None:
    answer = references_to(index, "ParseJSON")
    assert answer["spelled"] == ["parse_json"]
    assert len(answer["references"]) == 6


def test_a_name_that_is_no_definition_is_not_said_to_be_nowhere(tmp_path: Path) -> None:
    code = "def read(box, strict):\n    box.wall_width = 3\n    return box['TRAP_ERRORS'] if strict else None\n"
    with Index.build(gitrepo.write(tmp_path, {"box.py": code}), tmp_path / ".ncs", config=QUICK) as index:
        assert definitions_of(index, "wall_width")["notes"] == ["'wall_width' is not defined here; 1 function uses it"]
        for name in ("TRAP_ERRORS", "strict"):
            notes = definitions_of(index, name)["notes"]
            assert notes == [f"{name!r} is here only in text, or as a parameter or local variable; a regexp finds it"]
            assert notes == references_to(index, name)["notes"]
        assert definitions_of(index, "TRAP")["notes"] == ["no match for 'TRAP'"]
        assert definitions_of(index, "box.py")["notes"][0].startswith("'box.py' is not a name in code; write NAME")


def test_a_field_is_used_where_it_is_read_and_where_a_parameter_of_its_name_is_assigned_to_it(tmp_path: Path) -> None:
    files = {
        "app/box.py": "class Box:\n    max_depth: int = 3\n\n    def __init__(self, max_depth):\n"
        "        self.max_depth = max_depth\n\n    def is_deep(self, n):\n        return n < self.max_depth\n",
        "app/use.py": "def grow(max_depth):\n    return max_depth + 1\n\n\ndef tall(box):\n    return box.max_depth\n",
    }
    with Index.build(gitrepo.write(tmp_path, files), tmp_path / ".ncs", config=QUICK) as index:
        assert uses(index, "max_depth") == [
            ("same file", "Box.__init__", [4, 5]),
            ("same file", "Box.is_deep", [8]),
            ("same folder", "tall", [6]),
        ]


def test_a_name_that_is_only_used_has_uses_and_no_definition(index: Index) -> None:
    assert uses(index, "addEventListener") == [("uses", "show", [2])]
    answer = definitions_of(index, "addEventListener")
    assert answer["definitions"] == []
    assert answer["notes"] == ["'addEventListener' is not defined here; 1 function uses it"]


def test_what_code_outside_functions_declares_is_defined_at_its_line(tmp_path: Path) -> None:
    files = {
        "app/limits.py": '"""Limits."""\n\nMAX_SIZE = (\n    3 *\n    4\n)\n\n\nclass Box:\n    BOX_SIZE: int = 4\n',
        "app/use.py": "def check(size):\n    return size < MAX_SIZE and size < Box.BOX_SIZE\n",
        "app/size.py": "def check_max_size(value, size):\n    return size\n\n\ndef box_size():\n    pass\n",
        "web/t.ts": "export const someSchema = object({\n  A_B: 1,\n});\nexport function size() {\n  return 1;\n}\n",
        "Main.java": "class Main {\n  { int x = 1; }\n}\n",
    }
    with Index.build(gitrepo.write(tmp_path, files), tmp_path / ".ncs", config=QUICK) as index:
        (limit,) = definitions_of(index, "MAX_SIZE")["definitions"]
        assert (limit["kind"], limit["qualified_name"], limit["match"]) == ("declaration", "MAX_SIZE", "exact")
        assert (limit["start_line"], limit["end_line"]) == (3, 6)
        assert limit["code"] == "MAX_SIZE = (\n    3 *\n    4\n)"
        assert places(index, "BOX_SIZE") == places(index, "Box.BOX_SIZE") == ["app/limits.py:10"]
        assert definitions_of(index, "BOX_SIZE")["definitions"][0]["qualified_name"] == "Box.BOX_SIZE"
        assert places(index, "box_size") == ["app/size.py:5"]
        assert places(index, "someSchema") == ["web/t.ts:1"]
        assert places(index, "initializer") == places(index, "someschema") == []
        assert uses(index, "MAX_SIZE") == [("same file", "limits", [3]), ("same folder", "check", [2])]
        assert [hit.document.path for hit in index.search("MAX_SIZE", k=1)] == ["app/limits.py"]


def test_short_definitions_that_stand_together_are_each_found_at_their_line(tmp_path: Path) -> None:
    source = "let twice x = x + x\nlet thrice x = x + twice x\nlet four = thrice 1\n"
    root = gitrepo.write(tmp_path / "src", {"a.fs": source, "b.py": "def b():\n    return 1\n"})
    with Index.build(root, tmp_path / ".ncs", config=QUICK) as index:
        assert [places(index, name) for name in ("twice", "thrice", "four")] == [["a.fs:1"], ["a.fs:2"], ["a.fs:3"]]


def test_a_function_without_a_body_is_defined_where_its_type_declares_it(tmp_path: Path) -> None:
    files = {
        "Api.java": 'interface Api {\n  // see getUser(id)\n  @GET("u")\n  Call<User> getUser(\n    String id);\n}\n',
        "store.kt": "interface Dao {\n  fun findAll(): List<User>\n\n  fun close()\n}\n\n"
        "class Real : Dao {\n  override fun close() {\n    api.getUser(findAll())\n  }\n}\n",
        "box.ts": "export interface Box {\n  sizeOf(key: string): number;\n}\nconst made = sizeOf(1);\n",
        "one.rs": "pub trait One { fn first_one(&self) -> u8; }\n",
        "model.py": "class Model:\n    name = text_field(1)\n    register(name)\n",
    }
    with Index.build(gitrepo.write(tmp_path, files), tmp_path / ".ncs", config=QUICK) as index:
        (user,) = definitions_of(index, "getUser")["definitions"]
        assert (user["kind"], user["qualified_name"], user["path"]) == ("declaration", "Api.getUser", "Api.java")
        assert (user["start_line"], user["end_line"]) == (4, 5)
        assert places(index, "findAll") == places(index, "Dao.findAll") == ["store.kt:2"]
        assert places(index, "first_one") == ["one.rs:1"]
        assert places(index, "sizeOf") == ["box.ts:2"]
        assert (places(index, "close"), places(index, "Dao.close")) == (["store.kt:8"], ["store.kt:4"])
        assert definitions_of(index, "Dao.close")["notes"] == []
        assert places(index, "text_field") == places(index, "register") == []
        assert definitions_of(index, "Api.close")["notes"] == ["no close in Api; elsewhere:"]


def test_owners_and_copies_of_what_is_declared_are_told_apart(tmp_path: Path) -> None:
    below = "class Light:\n    RED = 1\n    Red = 2\n\n\nclass Color:\n    RED = 3\n\n\nclass Red:\n    pass\n"
    files = {
        "a/one.py": f"def first(v):\n    LOCAL_MAX = v\n    return v\n\n\n{below}\n\nTOP_LIMIT = 10\n",
        "b/two.py": f"# again\n{below}",
        "c.go": "package c\n\nconst (\n\tIdle State = iota\n\tBusy\n)\n\nvar Level LogLevel = 3\n",
        "d.ts": "import {\n  type ParseParams,\n} from './x';\nexport const SomeCode = 1;\n",
    }
    with Index.build(gitrepo.write(tmp_path, files), tmp_path / ".ncs", config=QUICK) as index:
        (color,) = definitions_of(index, "Color.RED")["definitions"]
        assert (color["path"], color["start_line"], color["code"]) == ("a/one.py", 12, "    RED = 3")
        assert [(each["path"], each["start_line"]) for each in color["copies"]] == [("b/two.py", 8)]
        assert [each["qualified_name"] for each in definitions_of(index, "Red")["definitions"]] == ["Red", "Light.Red"]
        assert places(index, "LOCAL_MAX") == places(index, "ParseParams") == places(index, "LogLevel") == []
        assert places(index, "TOP_LIMIT") == ["a/one.py:19"]
        assert (places(index, "Busy"), places(index, "Level")) == (["c.go:5"], ["c.go:8"])


def test_declarations_follow_an_update(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("OLD_NAME = 1\n\n\ndef use():\n    return OLD_NAME\n")
    (tmp_path / "b.py").write_text("def other():\n    return 1\n")
    Index.build(tmp_path, tmp_path / ".ncs", config=QUICK).close()
    (tmp_path / "a.py").write_text("\nNEW_NAME = 1\n\n\ndef use():\n    return NEW_NAME\n")
    with Index.update(tmp_path / ".ncs")[0] as index:
        assert places(index, "NEW_NAME") == ["a.py:2"]
        assert places(index, "OLD_NAME") == []
        assert definitions_of(index, "OLD_NAME")["notes"] == ["no match for 'OLD_NAME'"]


def test_definitions_with_a_body_come_first_and_owners_and_files_choose(index: Index) -> None:
    assert places(index, "parse_json") == ["app/core.py:20"]  # not its overload
    assert places(index, "helper") == ["app/core.py:29", "lib/text.py:1"]
    assert places(index, "text.helper") == places(index, "lib/text.py::helper") == ["lib/text.py:1"]
    assert places(index, "Reader.parse") == ["app/core.py:14"]
    assert places(index, "helper", path="lib") == ["lib/text.py:1"]
    answer = definitions_of(index, "Writer.parse")
    assert answer["notes"] == ["no parse in Writer; elsewhere:"]
    assert len(answer["definitions"]) == 1


def test_what_nothing_uses_says_where_it_is_defined(index: Index) -> None:
    answer = references_to(index, "fold")
    assert (answer["references"], answer["total"]) == ([], 0)
    assert answer["notes"] == ["nothing found that uses fold, defined at one/lib/text.py:5"]


def test_an_unknown_name_is_one_sentence_with_names_of_nearly_its_spelling(index: Index) -> None:
    expected = ["no match for 'parse_jsn'; similar: parse_json"]
    assert references_to(index, "parse_jsn")["notes"] == definitions_of(index, "parse_jsn")["notes"] == expected
    assert definitions_of(index, "zzyzx")["notes"] == ["no match for 'zzyzx'"]


@pytest.mark.parametrize("name", ["", "::", "a/b", "a/b.c", "/1", "()"])
def test_what_is_no_name_is_refused_with_its_remedy(index: Index, name: str) -> None:
    with pytest.raises(BadInput, match="is not a name in code; write NAME"):
        index.references(name)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("nowhere.py::helper", ": one/app/core.py::helper, one/lib/text.py::helper"),
        ("app/nowhere::Reader.read", ": one/app/core.py::read"),
        ("nowhere.js::zzyzx", ""),
    ],
)
def test_a_file_that_is_not_here_is_refused_with_those_that_define_the_name(
    index: Index, name: str, files: str
) -> None:
    line = f"no file '{name.partition('::')[0]}' in this index; name it as hits do{files}"
    for asked in (index.references, index.definitions):
        with pytest.raises(BadInput, match=f"^{re.escape(line)}$"):
            asked(name)


@pytest.mark.parametrize(
    "name",
    [
        "Reader.read", "Reader::read", "Reader#read", "Reader->read", "app.core.Reader.read", "(*Reader).read",
        "(Reader).read()", "core.(*Reader).read", "x.com/app/core.(*Reader[...]).read", "(r *Reader) read(x int) error",
        "func (r Reader) read()", "one/app/core.py::(*Reader).read", "public static int Reader::read(int n) {",
        r"\Reader::read", r"core\Reader->read()", "Reader.read/1",
        "app/core.py::async def Reader.read(self)",
    ],
)  # fmt: skip
def test_a_method_is_found_as_each_language_writes_it(index: Index, name: str) -> None:
    answer = definitions_of(index, name)
    assert [hit["qualified_name"] for hit in answer["definitions"]] == ["Reader.read"]
    assert answer["notes"] == []
    assert uses(index, name) == uses(index, "Reader.read")


def test_elsewhere_the_type_counts_before_the_rest_of_the_owner(index: Index) -> None:
    answer = definitions_of(index, "crate::core::Reader::read")
    assert [hit["qualified_name"] for hit in answer["definitions"]] == ["Reader.read"]
    assert answer["notes"] == ["no read in crate.core.Reader; elsewhere:"]


def test_after_an_update_uses_are_those_of_the_new_files(tmp_path: Path) -> None:
    root = gitrepo.write(
        tmp_path / "src", {**FILES, "filler.py": "".join(f"def f{n}():\n    pass\n" for n in range(90))}
    )
    Index.build(root, tmp_path / ".ncs", config=QUICK).close()
    (root / "app" / "app.py").write_text(APP.replace("pool.map(parse_json, [1])", "pool.map(helper, [1])"))
    (root / "new.py").write_text("def fresh():\n    parse_json(1)\n")
    updated, _ = Index.update(tmp_path / ".ncs")
    with updated:
        names = [name for _, name, _ in uses(updated, "parse_json")]
        assert "run" not in names
        assert "fresh" in names
        assert ("same folder", "run", [4]) in uses(updated, "helper")


def test_a_name_of_more_words_than_the_functions_with_them_have_variables_is_found(tmp_path: Path) -> None:
    source = "def fill(left, right):\n    return expressible_by_array_literal(left, right)\n"
    with Index.build(gitrepo.write(tmp_path, {"a.py": source}), tmp_path / ".ncs", config=QUICK) as index:
        assert uses(index, "expressible_by_array_literal") == [("uses", "fill", [2])]


def test_heads_of_members_and_types_of_functions_are_no_uses(tmp_path: Path) -> None:
    files = {
        "Box.java": "class Box {\n  int made = open_box(1);\n\n  int open_box(int n) {\n    return n;\n  }\n}\n",
        "a.ex": "defmodule A do\n  @spec fold_up(t) :: t\n  def fold_up(x) do\n    x\n  end\n\n"
        "  @spec cut(a) :: a when a: fold_up(t)\n  def cut(x), do: fold_up(x)\nend\n",
    }
    with Index.build(gitrepo.write(tmp_path, files), tmp_path / ".ncs", config=QUICK) as index:
        assert uses(index, "open_box") == [("same file", "Box", [2])]
        assert uses(index, "fold_up") == [("same file", "A.cut", [7, 8])]


def test_the_call_operator_is_told_from_the_other_operators(tmp_path: Path) -> None:
    source = "struct F {\n  int operator!() { return 0; }\n  int operator()(int n) { return n; }\n};\n"
    with Index.build(gitrepo.write(tmp_path, {"f.cpp": source}), tmp_path / ".ncs", config=QUICK) as index:
        for name in ("F::operator()", "operator()(int n)", "int F::operator()(int n) {"):
            assert places(index, name) == ["f.cpp:3"]
