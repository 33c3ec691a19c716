"""Files without a grammar: which are read as text, where their documents begin and end, what their words are."""

from __future__ import annotations

import random
from configparser import ConfigParser
from dataclasses import replace
from pathlib import Path

import pytest

from ncs.extract import LANGUAGES
from ncs.extract.readers import read, readable, reader_of
from ncs.extract.text_files import MAX_BLOCK, TEXT_KINDS, text_kind
from ncs.extract.text_files import read as read_text
from ncs.index import Index
from ncs.types import Document
from tests.extract.test_languages import assert_sound
from tests.gitrepo import write

every_kind = pytest.mark.parametrize("kind", TEXT_KINDS)

# Of every kind of code two definitions: hide, with a comment above, on the third line; show below it.
TWO = {
    "ada": "procedure {0} (View : in out V) is\nbegin\n   Close (View);\nend {0};\n",
    "apex": "public static void {0}(View v) {{\n    v.close();\n    log();\n}}\n",
    "applescript": "on {0}(view)\n  close view\n  log view\nend {0}\n",
    "assembly": "{0}:\n    mov eax, 1\n    int 0x80\n    ret\n",
    "awk": "function {0}(view) {{\n  close(view)\n  print view\n}}\n",
    "bash": "{0}() {{\n  close_view\n  log\n}}\n",
    "batch": ":{0}\necho %1\nclose %1\nexit /b\n",
    "c": "static int {0}(struct view *v)\n{{\n    close(v);\n}}\n",
    "clojure": "(defn {0}\n  [view]\n  (close view)\n  (log view))\n",
    "cobol": "       {0} SECTION.\n           MOVE 1 TO X.\n           DISPLAY X.\n           EXIT.\n",
    "coffeescript": "{0} = (view) ->\n  close view\n  log view\n  true\n",
    "cpp": "bool View::{0}(Flags flags) {{\n    close();\n    log();\n}}\n",
    "crystal": "def {0}(view)\n  close view\n  log view\nend\n",
    "csharp": "public async Task<int> {0}(View view)\n{{\n    await Close(view);\n}}\n",
    "cython": "cdef inline int {0}(View view):\n    close(view)\n    log(view)\n    return 1\n",
    "d": "void {0}(View view) {{\n    close(view);\n    log();\n}}\n",
    "dart": "Future<void> {0}(View view) async {{\n  await view.close();\n  log();\n}}\n",
    "elisp": "(defun {0} (view)\n  (close view)\n  (message view)\n  t)\n",
    "elixir": "def {0}(view) do\n  close(view)\n  log()\nend\n",
    "elm": "{0} : View -> Bool\n{0} view =\n    close\n        view\n",
    "erlang": "{0}([]) ->\n    ok;\n{0}([View]) ->\n    close(View).\n",
    "fish": "function {0}\n  close $argv\n  log\nend\n",
    "fortran": "subroutine {0}(view)\n  call close(view)\n  call log(view)\nend subroutine\n",
    "fsharp": "let rec {0} view =\n    close view\n    log view\n    true\n",
    "gdscript": "func {0}(view):\n\tclose(view)\n\tprint(view)\n\tpass\n",
    "gleam": "pub fn {0}(view) {{\n  close(view)\n  log(view)\n}}\n",
    "graphql": "type {0} implements Node {{\n  id: ID!\n  view: View\n}}\n",
    "groovy": "def {0}(View view) {{\n    view.close()\n    log()\n}}\n",
    "haskell": "{0} :: View -> Bool\n{0} view =\n  close\n    view\n",
    "haxe": "public static function {0}(view:View):Void {{\n\tview.close();\n\ttrace(view);\n}}\n",
    "idl": "struct {0} {{\n  1: i32 id\n  2: string view\n}}\n",
    "julia": "function {0}(view::View)\n    close(view)\n    log(view)\nend\n",
    "kotlin": "private suspend fun <T> View.{0}(flags: Int): Boolean {{\n    close()\n    log()\n}}\n",
    "lisp": "(defun {0} (view)\n  (close view)\n  (print view)\n  t)\n",
    "lua": "local function {0}(view)\n  view:close()\n  print(view)\nend\n",
    "matlab": "function ok = {0}(view)\n  close(view)\n  disp(view)\nend\n",
    "nim": "proc {0}*(view: View): bool =\n  close(view)\n  echo view\n  true\n",
    "nix": "{0} = {{ view }}:\n  close\n  view\n  ;\n",
    "objective-c": "- (BOOL){0}:(View *)view {{\n    [view close];\n    NSLog(@\"x\");\n}}\n",
    "ocaml": "let rec {0} view =\n  close view;\n  print view;\n  true\n",
    "odin": "{0} :: proc(view: ^View) -> bool {{\n    close(view)\n    return true\n}}\n",
    "pascal": "procedure TView.{0}(Flags: Integer);\nbegin\n  Close;\nend;\n",
    "perl": "sub {0} {{\n    my ($view) = @_;\n    $view->close();\n}}\n",
    "plsql": "CREATE OR REPLACE PROCEDURE {0} (v NUMBER) AS\nBEGIN\n  close(v);\nEND;\n",
    "powershell": "function {0} {{\n    param($View)\n    Close $View\n}}\n",
    "prolog": "{0}(View) :-\n    close(View),\n    log(View),\n    true.\n",
    "proto": "message {0} {{\n  int32 id = 1;\n  string view = 2;\n}}\n",
    "purescript": "{0} :: View -> Boolean\n{0} view =\n  close\n    view\n",
    "qml": "function {0}(view) {{\n    view.close()\n    console.log(view)\n}}\n",
    "r": "{0} <- function(view) {{\n  close(view)\n  print(view)\n}}\n",
    "racket": "(define ({0} view)\n  (close view)\n  (display view)\n  #t)\n",
    "raku": "multi sub {0}($view) {{\n    close($view);\n    say $view;\n}}\n",
    "rust": "pub(crate) async fn {0}(view: &View) -> bool {{\n    view.close();\n    true\n}}\n",
    "sas": "%macro {0}(view);\n  data x; set &view; run;\n  %put x;\n%mend;\n",
    "scala": "override def {0}(view: View): Boolean = {{\n  view.close()\n  true\n}}\n",
    "shader": "vec4 {0}(vec2 view) {{\n    vec4 c = texture(t, view);\n    return c;\n}}\n",
    "smalltalk": "View >> {0}\n    self close.\n    Transcript show: 1.\n    ^ true\n",
    "solidity": "function {0}(address view_) public returns (bool) {{\n    close(view_);\n    return true;\n}}\n",
    "sql": "CREATE TABLE IF NOT EXISTS {0} (\n  id INT,\n  view TEXT\n);\n",
    "stata": "program define {0}\n  args view\n  display 1\nend\n",
    "swift": "public func {0}(_ view: View) -> Bool {{\n    view.close()\n    return true\n}}\n",
    "tcl": "proc {0} {{view}} {{\n    close $view\n    puts $view\n}}\n",
    "terraform": 'resource "aws_vpc" "{0}" {{\n  cidr = var.view\n  name = "x"\n}}\n',
    "verilog": "module {0} (input clk, output q);\n  assign q = clk;\n  wire w;\nendmodule\n",
    "vhdl": "entity {0} is\n  port (clk : in bit);\n  signal s : bit;\nend entity;\n",
    "vim": "function! {0}(view) abort\n  call close(a:view)\n  echo 1\nendfunction\n",
    "visualbasic": "Public Function {0}(view As View) As Boolean\n    view.Close()\n    Return True\nEnd Function\n",
    "zig": "pub fn {0}(view: *View) bool {{\n    view.close();\n    return true;\n}}\n",
    "zsh": "{0}() {{\n  close_view\n  log\n}}\n",
}  # fmt: skip
MARKS = {
    "#": "# {}", "//": "// {}", "/*": "/* {} */", "--": "-- {}", ";": "; {}", "%": "% {}", "!": "! {}", "'": "' {}",
    '"': '" {}', "(*": "(* {} *)", "{": "{{ {} }}", "{-": "{{- {} -}}", "<#": "<# {} #>", "#=": "#= {} =#",
    "#|": "#| {} |#", "=pod": "=pod\n{}\n=cut", "<!": "<!-- {} -->", "rem": "REM {}", "dnl": "dnl {}",
}  # fmt: skip


def file_of(kind: str) -> str:
    """A name that is read as this kind."""
    names = LANGUAGES[kind].extensions if kind in LANGUAGES else TEXT_KINDS[kind].files
    return names[0] if not names[0].startswith(".") else f"view{names[0]}"


def checked(source: bytes, kind: str, outside: bool = True) -> list[Document]:
    documents, _ = read_text(source, kind, "r", file_of(kind), outside=outside)
    without = [replace(d, words={field: d.words[field] for field in d.words if field != "declared"}) for d in documents]
    assert_sound(without, source, documents[0].language if documents else kind)
    assert {document.language for document in documents} <= {kind, "matlab"}
    assert all(document.end_line - document.start_line < MAX_BLOCK for document in documents)
    return documents


@every_kind
def test_the_names_of_a_file_say_its_kind(kind: str) -> None:
    for file in TEXT_KINDS[kind].files:
        path = f"a/{file}" if not file.startswith(".") else f"a/b{file.upper()}"
        assert text_kind(path) == reader_of(path) == kind
    assert readable(f"a/{file_of(kind)}")


def test_every_language_of_the_extra_is_read_as_text_where_its_grammar_is_not_installed() -> None:
    setup = ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg", "utf-8")
    extra = setup["options.extras_require"]["languages"]
    of_extra = {row.name for row in LANGUAGES.values() if f"{row.grammar.replace('_', '-')}==" in extra}
    assert len(of_extra) == len(extra.split())
    assert of_extra - set(TEXT_KINDS) == set()


@pytest.mark.parametrize("kind", [name for name, kind in TEXT_KINDS.items() if not kind.configuration])
def test_every_definition_of_code_is_a_document_with_the_comment_above_as_documentation(kind: str) -> None:
    name, other = ("HIDE", "SHOW") if kind == "cobol" else ("hide", "show")
    sign = next(iter(TEXT_KINDS[kind].comments.split()), "")
    above = MARKS[sign].format("Hides the keyboard.") if sign else ""
    source = f"\n{above}\n{TWO[kind].format(name)}\n{TWO[kind].format(other)}"
    first, scope = 3 + above.count("\n"), {"pascal": ("TView",), "terraform": ("aws_vpc",)}.get(kind, ())
    hide, show = checked(source.encode(), kind)
    assert [(d.kind, d.name, d.qualified_name, d.start_line, d.end_line) for d in (hide, show)] == [
        ("definition", name, ".".join((*scope, name)), first, first + 3),
        ("definition", other, ".".join((*scope, other)), first + 5, first + 8),
    ]
    assert hide.words.get("scope", ()) == scope
    assert ("Hides the keyboard." in " ".join(hide.words.get("doc", ()))) == bool(sign)
    assert "doc" not in show.words


@every_kind
def test_whatever_stands_in_a_file_does_no_harm(kind: str) -> None:
    for source in (b"", b"\n", b" ", b"\0" * 5000, b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"{}()"):
        assert checked(source, kind) == [], source
    random_ = random.Random(1)
    source = TWO.get(kind, "a: 1\n").format("hide").encode() * 20
    for _ in range(5):
        broken = bytearray(source)
        for _ in range(20):
            broken[random_.randrange(len(broken))] = random_.randrange(256)
        if bytes(broken[:2]) not in (b"\xff\xfe", b"\xfe\xff"):
            checked(bytes(broken), kind)
        checked(random_.randbytes(2000), kind)


@pytest.mark.slow
@every_kind
def test_long_lines_deep_nesting_and_many_definitions_do_no_harm(kind: str) -> None:
    for unit in (b"x ", b"a(", b"{", b'"', b"'", b"/*", b"automatic ", b"#", b"(*"):
        checked(unit * (19_000 // len(unit)), kind)
        checked((unit * 20 + b"\n") * 200, kind)
    text = TWO.get(kind, "a: 1\n  b: 2\n  c: 3\n  d: 4\n") + "\n"
    texts = [text.format(f"hide{i}") for i in range(4_000 // text.count("\n"))]
    documents = checked("".join(texts).encode(), kind)
    assert len(documents) == len(texts) or kind not in TWO
    assert checked(b"x" * 1_000_000, kind) == []


def test_configuration_is_cut_at_empty_lines_and_named_by_its_first_key() -> None:
    source = b"""# Workflow
name: ci
on: [push]

jobs:
  hide:
    runs-on: x
    steps:
      - run: make

  show:
    runs-on: "linux box"  # why
    steps: []
    a: b
    c: d
"""
    documents = checked(source, "yaml")
    assert [(d.kind, d.name, d.start_line, d.end_line) for d in documents] == [
        ("block", "name", 1, 9),
        ("block", "show", 11, 15),
    ]
    assert documents[0].words["comments"] == ("Workflow",)
    assert (documents[1].words["literals"], documents[1].words["comments"]) == (("linux box",), ("why",))
    assert checked(source, "yaml", outside=False) == []


def test_a_long_block_is_cut_where_its_indentation_is_least() -> None:
    source = "".join(f"k{i}:\n" + "".join(f"  a{j}: 1\n" for j in range(7)) for i in range(20))
    documents = checked(source.encode(), "yaml")
    assert [(d.start_line, d.end_line) for d in documents] == [(1, 56), (57, 112), (113, 160)]
    assert [d.name for d in documents] == ["k0", "k7", "k14"]


def test_words_go_to_their_fields() -> None:
    source = (
        b'use strict;\n\nmy $MAX_SIZE = 3;\nsub hide {\n  my $view = Keyboard->new("soft");\n  close($view); # now\n}\n'
    )
    block, hide = checked(source, "perl")
    assert (block.kind, block.name) == ("block", "view")
    assert block.words == {"identifiers": ("strict",), "enums": ("MAX_SIZE",), "name": ("view",), "path": ("view.pl",)}
    assert hide.words == {
        "identifiers": ("hide", "view", "view"), "types": ("Keyboard",), "calls": ("close",), "literals": ("soft",),
        "comments": ("now",), "name": ("hide",), "path": ("view.pl",),
    }  # fmt: skip


def test_a_keyword_of_other_languages_is_a_name_behind_a_dot(tmp_path: Path) -> None:
    vpc, subnet = 'resource "aws_vpc" "this" {\n  count = true\n}\n', "vpc_id = aws_vpc.this[0].id\n}\n"
    write(tmp_path, {"src/main.tf": f'{vpc}resource "aws_subnet" "private" {{\n  {subnet}'})
    documents = checked((tmp_path / "src/main.tf").read_bytes(), "terraform")
    assert [each.words["identifiers"] for each in documents] == [
        ("resource", "count"),
        ("resource", "vpc_id", "aws_vpc", "this", "id"),
    ]
    with Index.build(tmp_path / "src", tmp_path / ".ncs") as index:
        assert [use.document.name for use in index.references("aws_vpc.this").found] == ["private"]


def test_what_a_class_of_dart_has_is_found_by_its_name_with_the_comment_above_its_annotations() -> None:
    source = b"""/// Makes one.
typedef Maker<T> = T Function(String);

sealed class Store {
  final int size;

  /// Whether nothing is left.
  @override
  @Deprecated('use size')
  bool get isEmpty => size == 0;
  bool get isFull => size == 9;

  Map<String, int> get sizes {
    return {};
  }

  T read<T extends Object>(String name) {
    return at(name);
  }
}

extension type Id(int id) {}
"""
    documents = checked(source, "dart")
    assert [(d.name, d.start_line, d.end_line, d.words.get("doc")) for d in documents] == [
        ("Maker", 2, 2, ("Makes one.",)),
        ("Store", 4, 5, None),
        ("isEmpty", 10, 11, ("Whether nothing is left.",)),
        ("sizes", 13, 15, None),
        ("read", 17, 20, None),
        ("Id", 22, 22, None),
    ]
    assert [d.words.get("declared") for d in documents] == [None, None, ("isFull",), None, None, None]


def test_an_apostrophe_does_not_swallow_the_comment_below() -> None:
    source = b"' it's hidden\nSub hide()\n  Dim x = \"it's\" ' why\n  close\nEnd Sub\n"
    (hide,) = checked(source, "visualbasic")
    assert [hide.words[field] for field in ("doc", "literals", "comments")] == [("it's hidden",), ("it's",), ("why",)]


@pytest.mark.parametrize(
    ("path", "source", "places"),
    [
        ("a.m", "function ok = hide(view)\n  close(view)\nend\n", {"matlab hide"}),
        ("a.m", "#import <A.h>\n\n- (void)hide:(View *)v {\n  [v close];\n}\n", {"objective-c a", "objective-c hide"}),
        ("a.h", "@interface View : NSObject\n@end\n\n- (void)hide:(int)a;\n", {"objective-c View", "objective-c hide"}),
        ("a.h", "int hide(int a) { return a; }\n", {"cpp hide"}),
    ],
)  # fmt: skip
def test_objective_c_is_told_from_matlab_and_cpp_by_its_content(path: str, source: str, places: set[str]) -> None:
    assert {f"{d.language} {d.name}" for d in read(source.encode(), "r", path, outside=True)[0]} == places


@pytest.mark.slow
def test_settings_stand_behind_the_function_that_says_the_same(tmp_path: Path) -> None:
    settings = "hide_keyboard: soft\nhide_view: keyboard\nkeyboard_hide: hide keyboard\n"
    function = "def hide_keyboard(keyboard):\n    return keyboard.hide(1)\n"
    sources = write(tmp_path / "sources", {"a.yaml": settings, "b.py": function})
    with Index.build(sources, tmp_path / "index", workers=1) as built:
        assert [hit.document.language for hit in built.search("hide keyboard", 2)] == ["python", "yaml"]
        assert built.search("hide keyboard yaml", 1)[0].document.language == "yaml"
