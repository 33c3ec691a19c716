"""Stack traces and messages as queries: the functions that they run through, and the literal that was printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from ncs.answer import ask
from ncs.index import Index
from ncs.search.question import MAX_QUERY, names_alone, read_intent, without_filters, without_kind
from ncs.search.traces import read_trace
from tests import gitrepo
from tests.corpus import QUICK
from tests.linear import GROWTH, TIMES, growth

CORE = '''"""Opens things."""


class Opener:
    """Opens files of a name."""

    def open_stream(self, name, mode):
        if not name:
            raise ValueError(f"{name} cannot be opened in mode {mode!r}")
        return open(name, mode)


def main(name):
    return Opener().open_stream(name, "r")
'''
TEST = """def test_a_name_is_needed():
    with raises(ValueError, match="x cannot be opened in mode 'r'"):
        Opener().open_stream("", "r")
"""
FILES = {
    "src/things/core.py": CORE,
    "tests/test_core.py": TEST,
    "src/Reader.java": "class Reader {\n  int read(Source s) {\n    return s.next();\n  }\n}\n",
    "command.go": "package c\n\nfunc (c *Command) Execute() error {\n\treturn c.run()\n}\n\n"
    "func (c *Command) run() error {\n\treturn nil\n}\n",
    "lib/router.js": "function next (req) {\n  return handle(req)\n}\n",
    "lib/base.rb": "class Base\n  def route(n)\n    n\n  end\n\n  def route!(n)\n    route(n)\n  end\nend\n",
    "core/Logger.cs": "class Logger {\n  void Emit(Event e) {\n    sink.Emit(e);\n  }\n\n"
    "  Logger(Sink s) {\n    sink = s;\n  }\n}\n",
    **{
        f"{crate}/src/main.rs": f'fn main() {{\n    run_{crate}()\n        .expect("no plan")\n}}\n'
        for crate in ("one", "two", "six")
    },
    "src/things/disk.py": "class File:\n    def convert(self):\n        return self\n\n\n"
    "class Range:\n    def convert(self):\n        self.fail()\n\n\n"
    + "".join(f"def step_{n}():\n    return step_{n + 1}()\n\n\n" for n in range(8)),
    **{f"src/things/other{n}.py": f"def other_{n}(name, mode):\n    return opened(name, mode)\n" for n in range(8)},
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("traces")
    with Index.build(gitrepo.write(folder / "src", FILES), folder / "idx", config=QUICK, workers=1) as index:
        yield index


PYTHON = """Traceback (most recent call last):
  File "/home/ana/tool/core.py", line 3, in <module>
    main("")
  File "/usr/lib/python3/site-packages/things/core.py", line 14, in main
    return Opener().open_stream(name, "r")
  File "/usr/lib/python3/site-packages/things/core.py", line 9, in open_stream
    raise ValueError(...)
ValueError:  cannot be opened in mode 'r'"""
JAVA = "java.lang.NullPointerException\n\tat Reader.read(Reader.java:3)\n\tat Main.main(Main.java:9)"
GO = "panic: no flag\n\ngoroutine 1 [running]:\nc.(*Command).Execute(0xc0)\n\t/go/mod/x.com/c@v1/command.go:4 +0x1d"
NODE = "TypeError: handle is not a function\n    at next (/home/ana/node_modules/r/lib/router.js:2:10)\n    at a.js:1:1"
PYTEST = """    def test_open():
>       main("")

tests/test_main.py:3:
_ _ _ _
src/things/core.py:14: in main
    return Opener().open_stream(name, "r")
_ _ _ _
>           raise ValueError(...)
E           ValueError:  cannot be opened in mode 'r'

src/things/core.py:9: ValueError
=== 1 failed in 0.05s ==="""
DOTNET = "System.Exception: full\r\n   at Logger.Emit(Event e) in C:\\build\\core\\Logger.cs:line 3\r\n   at A.B()"


@pytest.mark.parametrize(
    ("trace", "names"),
    [
        (PYTHON, ["Opener.open_stream", "main"]),
        (PYTEST, ["Opener.open_stream", "main"]),
        (JAVA, ["Reader.read"]),
        (GO, ["Command.Execute"]),
        (NODE, ["next"]),
        (DOTNET, ["Logger.Emit"]),
        # built without debugging information: names alone, of generics, a constructor and gdb too
        ("System.Exception: full\n   at Acme.Logs.Logger.Emit[T](Event e)\n   at A.B()", ["Logger.Emit"]),
        ("System.Exception: full\n   at Acme.Logs.Logger..ctor(Sink s)\n   at A.B()", ["Logger.Logger"]),
        ("#1  0x00007ffff7ca90a1 in Reader::read (this=0x0) from /lib/r.so\n#2  0x01 in main ()", ["Reader.read"]),
        (PYTHON.replace("line 9, in open_stream", "line 99, in open_stream"), ["Opener.open_stream", "main"]),
        # an older release, whose lines are those of other functions here, or of the class around
        (PYTHON.replace("line 9, in open_stream", "line 15, in open_stream"), ["Opener.open_stream", "main"]),
        (PYTHON.replace("line 14, in main", "line 4, in main"), ["Opener.open_stream", "main"]),
        (JAVA.replace("Reader.java:3", "Reader.java:1"), ["Reader.read"]),
        (GO.replace("command.go:4", "command.go:1"), ["Command.Execute"]),
        (GO.replace("command.go:4", "command.go:8"), ["Command.Execute"]),  # the line before has its name
        ('File "/app/things/disk.py", line 8, in convert\nError', ["Range.convert"]),  # the class File has one, too
        ("NoMethodError\n\t/gems/lib/base.rb:7:in 'Base#route!'", ["Base.route!"]),
        (DOTNET.replace("line 3", "line 90"), ["Logger.Emit"]),  # the constructor is nearer, and called like the class
    ],
)
def test_the_functions_of_a_trace_lead_innermost_first(index: Index, trace: str, names: list[str]) -> None:
    hits = index.search(trace, len(names))
    assert [hit.document.qualified_name for hit in hits] == names


def test_all_frames_lead_in_their_order_though_one_file_has_them_and_others_have_the_message(index: Index) -> None:
    frames = "".join(f'  File "/app/things/disk.py", line {12 + 4 * n}, in step_{n}\n' for n in range(8))
    hits = index.search(f"Traceback (most recent call last):\n{frames}ValueError: x cannot be opened in mode 'r'", 9)
    names = [f"step_{n}" for n in reversed(range(8))]
    assert [hit.document.name for hit in hits] == [*names, "open_stream"]


def test_a_cause_ended_further_inside_than_what_it_caused(index: Index) -> None:
    outer, inner = "\tat Main.main(Main.java:1)\n\tat Logger.Emit(core/Logger.cs:3)", "\tat Reader.read(Reader.java:3)"
    again = '\n\nThe above exception was the direct cause of the following exception:\n\n  File "disk.py", line 8'
    for text, lines in [
        (
            f"Error: a\n{outer}\nCaused by: Error: b\n{inner}\n\t... 2 more\nCaused by: Error: c\n\tat a.js:5:1",
            [5, 3, 1, 3],
        ),
        (f"Error: a\n{outer} {{\n  [cause]: Error: b\n  {inner}\n}}", [3, 1, 3]),
        (PYTHON + again, [9, 14, 3, 8]),
    ]:
        assert [frame.line for frame in read_trace(text).frames] == lines


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("return what is opened with a name and a mode, in other5.py", "src/things/other5.py"),
        ("src/things/other5.py: return what is opened with a name", "src/things/other5.py"),
        ("opened by mode (`things/other5.py`)", "src/things/other5.py"),
        ("opened by mode in /home/ana/src/things/other5.py", "src/things/other5.py"),
        ("path:six/src run with no plan", "six/src/main.rs"),
        ("run with no plan under two/src/", "two/src/main.rs"),
        ("`main` in src/things/core.py", "src/things/core.py"), ("`main` in `two/src/main.rs`", "two/src/main.rs"),
    ],
)  # fmt: skip
def test_what_lies_in_the_file_or_folder_that_a_question_names_comes_first(index: Index, query: str, path: str) -> None:
    assert index.search(query, 1)[0].document.path == path


def test_a_name_in_a_file_is_found_there_and_is_no_typing_error(index: Index) -> None:
    answer = ask(index, "six/src/main.rs::main", ranker="hybrid")
    assert (answer["hits"][0]["path"], answer["hits"][0]["name"]) == ("six/src/main.rs", "main")
    assert answer["notes"] == []


@pytest.mark.parametrize(
    "query",
    [
        "opened and/or closed", "opened e.g. by other.py", "no such file: other5.py", "generate other5.py",
        "main.rs logs", "opened at /src",
    ],
)  # fmt: skip
def test_other_words_with_dots_and_slashes_and_paths_in_messages_are_no_places(index: Index, query: str) -> None:
    analysis = index.ranker("hybrid").rank(query, 1).analysis
    assert analysis is not None
    assert analysis.text == query
    assert not len(analysis.place)


@pytest.mark.parametrize(
    ("trace", "lines"),
    [
        (PYTHON, [9, 14]),
        (GO, [4]),
        (PYTHON.replace("line 9, in", "line 99, in"), [7, 14]),  # its function as it is here begins there
        (PYTHON.replace("line 9, in", "line 13, in"), [7, 14]),  # an older release
        ("System.Exception: full\n   at Acme.Logs.Logger..ctor(Sink s)\n   at A.B()", [6]),
    ],
)
def test_a_frame_has_its_own_line_where_that_is_in_its_function(index: Index, trace: str, lines: list[int]) -> None:
    assert [hit.get("line") for hit in ask(index, trace, 3, ranker="hybrid")["hits"]][: len(lines)] == lines
    assert not any("line" in hit for hit in ask(index, read_trace(trace).message, 3, ranker="hybrid")["hits"])


@pytest.mark.parametrize(
    "text",
    [
        "lib/router.js: line 2: handle: command not found",  # a shell
        "PHP Warning:  Undefined variable $req in /app/lib/router.js on line 2",
        "handle died at lib/router.js line 2.",  # Perl
        "Fatal error: Index out of range: file lib/router.js, line 2",  # Swift
    ],
)
def test_a_line_that_is_named_in_words_is_a_frame(text: str) -> None:
    assert [(frame.path[-2:], frame.line) for frame in read_trace(text).frames] == [(("lib", "router.js"), 2)]


def test_a_line_that_begins_like_a_frame_and_names_nothing_is_none(index: Index) -> None:
    assert read_trace("opened twice\n  at ...(x)\n#1 :::(").frames == ()
    assert index.search("opened\n  at ...(x)", 1)


def test_a_file_of_the_same_name_elsewhere_is_not_the_frames(index: Index) -> None:
    assert read_trace('  File "/home/ana/tool/core.py", line 3, in run').frames[0].path[-1] == "core.py"
    hits = index.search('File "/home/ana/tool/core.py", line 3, in run\nKeyError: sink emit', 1)
    assert hits[0].document.path != "src/things/core.py"


@pytest.mark.parametrize(
    "frame",
    ["at /home/ana/all/{}/src/main.rs:3:10", "1: {}::main\n             at ./src/main.rs:3:10"],
    ids=["path", "name"],
)
def test_of_files_whose_paths_end_alike_the_one_that_more_of_the_frame_names_is_its_file(
    index: Index, frame: str
) -> None:
    for crate in ("one", "two", "six"):
        hits = ask(index, f"no plan\n  {frame.format(crate)}", ranker="hybrid")["hits"]
        assert [(hit["path"], hit["line"]) for hit in hits if "line" in hit] == [(f"{crate}/src/main.rs", 3)]


def test_a_class_of_another_package_is_not_the_frames(index: Index) -> None:
    trace = "Error: no source\n\tat {}Reader.read(Reader.java:3)"
    for package, path, frame in (("", ("Reader.java",), 12), ("com.acme.", ("com", "acme", "Reader.java"), 0)):
        assert read_trace(trace.format(package)).frames[0].path == path
        assert index.results(trace.format(package), 1).ranking.signals["frame"].max() == frame


@pytest.mark.parametrize(
    "text", ["a", "a.", "a.b:1 ", "a.b:1\n", "a.b.c(d.java:1", "'", "'a", "E   ", 'level= msg="abc"\n', " not in the "]
)
@pytest.mark.parametrize("read", [read_trace, read_intent, names_alone, without_filters, without_kind])
def test_a_text_without_an_end_takes_no_more_than_its_length(read: Callable[[str], object], text: str) -> None:
    assert growth(lambda n: partial(read, text * n), MAX_QUERY // TIMES // len(text)) < GROWTH


def test_what_follows_a_trace_is_found_by_its_message(index: Index) -> None:
    assert read_trace(PYTHON).message == "ValueError:  cannot be opened in mode 'r'"
    assert read_trace(PYTEST).message == "ValueError:  cannot be opened in mode 'r'"
    assert read_trace(GO).message == "panic: no flag"


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ("lua: src/lapp.lua:12: no such flag\nstack traceback:\n\tsrc/lapp.lua:9: in main", "lua: : no such flag"),
        ("/app/base.rb:12:in `run': no such port (E)\n\tfrom /app/base.rb:9:in `go'", ":in `run': no such port (E)"),
        (
            "PHP Fatal error: no such route in /app/App.php:12\n#0 /app/App.php(9): run()",
            "PHP Fatal error: no such route in ",
        ),
        ("thread 'main' panicked at src/main.rs:10:5:\nno such plan", "no such plan"),
        ("src/things/core.py:12", ""),
    ],
)
def test_a_message_in_the_line_of_the_first_frame_is_the_traces(trace: str, message: str) -> None:
    assert read_trace(trace).message == message


def test_a_message_leads_to_the_literal_that_wrote_it_before_the_test_that_quotes_it(index: Index) -> None:
    first, *_ = index.search("ValueError: notes.txt cannot be opened in mode 'rw'", 3)
    assert first.document.qualified_name == "Opener.open_stream"
    ranking = index.results("ValueError: notes.txt cannot be opened in mode 'rw'", 1).ranking
    assert ranking.intent is not None
    assert (ranking.intent.kind, ranking.signals["verbatim"][0] > 1) == ("message", True)
    assert index.results("open a file in a mode", 1).ranking.signals["verbatim"].tolist() == [0.0]


def test_a_function_stands_before_the_class_that_has_its_words(index: Index) -> None:
    names = [hit.document.qualified_name for hit in index.search("open files of a name in a mode", 3)]
    assert names.index("Opener.open_stream") < names.index("Opener")
    assert index.search("Opener", 1)[0].document.qualified_name == "Opener"  # asked for by its name


def test_a_name_may_be_written_apart(index: Index) -> None:
    (first,) = index.search("open stream", 1)
    assert first.document.qualified_name == "Opener.open_stream"
    assert index.results("open stream", 1).ranking.signals["definition"][0] > 0
