"""Files without a grammar: which are read as text, where their documents begin and end, what their words are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ncs.config import BuildConfig
from ncs.extract import LANGUAGES
from ncs.extract.readers import read, readable, readable_code, reader_of
from ncs.extract.text_files import MAX_BLOCK
from ncs.extract.text_kinds import TEXT_KINDS, text_kind
from ncs.index import Index
from ncs.types import FIELDS, Document

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
    "erlang": "{0}(View) ->\n    close(View),\n    log(View),\n    ok.\n",
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
    known = LANGUAGES[kind].extensions if kind in LANGUAGES else TEXT_KINDS[kind].files
    return known[0] if not known[0].startswith(".") else f"view{known[0]}"


def checked(source: bytes, kind: str, outside: bool = True) -> list[Document]:
    """The documents of a kind, after a look at what every reader of documents relies on."""
    from ncs.extract.text_files import read as read_text

    documents, _ = read_text(source, kind, "r", file_of(kind), outside=outside)
    lines = source.count(b"\n") + source.count(b"\r") + 1
    assert len({document.id for document in documents}) == len(documents)
    assert [d.start_line for d in documents] == sorted(d.start_line for d in documents)
    for document in documents:
        assert 1 <= document.start_line <= document.end_line <= lines
        assert document.language in (kind, "matlab")
        assert document.name
        assert document.code
        assert len(document.digest) == 16
        assert set(document.words) <= set(FIELDS)
        assert all(words and all(words) for words in document.words.values())
    return documents


@every_kind
def test_a_kind_is_told_by_the_names_of_its_files(kind: str) -> None:
    for file in TEXT_KINDS[kind].files:
        path = f"a/{file}" if not file.startswith(".") else f"a/b{file.upper()}"
        assert text_kind(path) == kind
        if reader_of(path) != kind:
            assert file in ("build",)
    assert readable(f"a/{file_of(kind)}")


@every_kind
def test_of_code_every_definition_is_a_document_with_the_comment_above_as_documentation(kind: str) -> None:
    if TEXT_KINDS[kind].configuration:
        assert kind not in TWO
        return
    name, other = ("HIDE", "SHOW") if kind == "cobol" else ("hide", "show")
    sign = next(iter(TEXT_KINDS[kind].comments.split()), "")
    above = MARKS[sign].format("Hides the keyboard.") if sign else ""
    source = f"\n{above}\n{TWO[kind].format(name)}\n{TWO[kind].format(other)}"
    first = 2 + above.count("\n")
    hide, show = checked(source.encode(), kind)
    assert [(d.kind, d.name, d.start_line, d.end_line) for d in (hide, show)] == [
        ("definition", name if kind != "pascal" else f"TView.{name}", first + 1, first + 4),
        ("definition", other if kind != "pascal" else f"TView.{other}", first + 6, first + 9),
    ]
    said = " ".join(hide.words.get("doc", ()))
    assert ("Hides the keyboard." in said) == bool(sign)
    assert "doc" not in show.words


@every_kind
def test_next_to_nothing_gives_no_documents(kind: str) -> None:
    for source in (b"", b"\n", b" ", b"\0", b"\0" * 5000, b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"{}()"):
        assert checked(source, kind) == [], source


@every_kind
def test_whatever_stands_in_a_file_does_no_harm(kind: str) -> None:
    random_ = random.Random(1)
    source = bytearray(TWO.get(kind, "a: 1\n").format("hide").encode() * 20)
    for _ in range(5):
        broken = bytearray(source)
        for _ in range(20):
            broken[random_.randrange(len(broken))] = random_.randrange(256)
        if bytes(broken[:2]) not in (b"\xff\xfe", b"\xfe\xff"):
            checked(bytes(broken), kind)
        checked(random_.randbytes(2000), kind)


@pytest.mark.slow
@every_kind
def test_long_lines_and_deep_nesting_do_no_harm(kind: str) -> None:
    for unit in (b"x ", b"a(", b"{", b'"', b"'", b"/*", b"automatic ", b"#", b"(*"):
        checked(unit * (19_000 // len(unit)), kind)
        checked((unit * 20 + b"\n") * 200, kind)


@pytest.mark.slow
@every_kind
def test_twenty_thousand_lines_and_a_line_of_a_megabyte(kind: str) -> None:
    unit = TWO.get(kind, "a: 1\n  b: 2\n  c: 3\n  d: 4\n") + "\n"
    units = [unit.format(f"hide{i}") for i in range(20_000 // unit.count("\n"))]
    documents = checked("".join(units).encode(), kind)
    if kind in TWO:
        assert len(documents) == len(units)
    assert all(document.end_line - document.start_line < MAX_BLOCK for document in documents)
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
    found = checked(source, "yaml")
    assert [(d.kind, d.name, d.start_line, d.end_line) for d in found] == [
        ("block", "name", 1, 9),
        ("block", "show", 11, 15),
    ]
    assert found[0].words["comments"] == ("Workflow",)
    assert (found[1].words["literals"], found[1].words["comments"]) == (("linux box",), ("why",))
    assert checked(source, "yaml", outside=False) == []


def test_a_long_block_is_cut_where_its_indentation_is_least() -> None:
    source = "".join(f"k{i}:\n" + "".join(f"  a{j}: 1\n" for j in range(7)) for i in range(20))
    found = checked(source.encode(), "yaml")
    assert [(d.start_line, d.end_line) for d in found] == [(1, 56), (57, 112), (113, 160)]
    assert [d.name for d in found] == ["k0", "k7", "k14"]


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


def test_an_apostrophe_does_not_swallow_the_comment_below() -> None:
    source = b"' it's hidden\nSub hide()\n  Dim x = \"it's\" ' why\n  close\nEnd Sub\n"
    (hide,) = checked(source, "visualbasic")
    assert (hide.words["doc"], hide.words["literals"], hide.words["comments"]) == (
        ("it's hidden",),
        ("it's",),
        ("why",),
    )


def test_files_that_end_in_m_are_matlab_but_for_objective_c() -> None:
    matlab = read(b"function ok = hide(view)\n  close(view)\nend\n", "r", "a.m", outside=True)[0]
    objective = read(b"#import <A.h>\n\n- (void)hide:(View *)view {\n  [view close];\n}\n", "r", "a.m", outside=True)[0]
    assert [(d.language, d.name) for d in matlab] == [("matlab", "hide")]
    assert ("objective-c", "hide") in [(d.language, d.name) for d in objective]


def test_a_header_of_objective_c_is_not_read_as_cpp() -> None:
    header = b"@interface View : NSObject\n@property int a;\n@end\n\n- (void)hide:(int)a;\n"
    assert {(d.language, d.name) for d in read(header, "r", "a.h", outside=True)[0]} == {
        ("objective-c", "View"),
        ("objective-c", "hide"),
    }
    assert [d.language for d in read(b"int hide(int a) { return a; }\n", "r", "a.h")[0]] == ["cpp"]


def test_several_clauses_of_one_name_are_one_definition() -> None:
    source = b"hide([]) ->\n    ok;\nhide([View]) ->\n    close(View).\n\nshow(View) ->\n    open(View).\n"
    assert [(d.name, d.start_line, d.end_line) for d in checked(source, "erlang")] == [("hide", 1, 4), ("show", 6, 7)]


@pytest.mark.parametrize(
    "path",
    ["README.md", "a.txt", "notes.rst", "data.csv", "data.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock",
     "a.log", "a.svg", "strings.xml", ".env", "locales/de.yml", "i18n/fr.properties", "messages_de.properties",
     "tests/fixtures/a.yaml"],
)  # fmt: skip
def test_prose_data_lock_files_and_secrets_are_not_read(path: str) -> None:
    assert reader_of(path) is None


@pytest.mark.slow
def test_a_build_says_how_many_files_of_which_kind_were_text(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in ("a.pl", "b.pl", "c.toml", "d.md"):
        (sources / name).write_text(f"# {name}\n[hide]\nview = 'keyboard {name}'\n")
    with Index.build(sources, tmp_path / "index", config=BuildConfig(), workers=1) as built:
        assert built.description.counts["text_files"] == {"perl": 2, "toml": 1}
        assert built.description.counts["skipped"] == {"other language": 1}
    assert not readable_code("a.pl")


@pytest.mark.slow
def test_settings_stand_behind_the_function_that_says_the_same(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "a.yaml").write_text("hide_keyboard: soft\nhide_view: keyboard\nkeyboard_hide: hide keyboard\n")
    (sources / "b.py").write_text("def service(keyboard):\n    # hide keyboard\n    return keyboard.hide(1)\n")
    with Index.build(sources, tmp_path / "index", config=BuildConfig(), workers=1) as built:
        assert [hit.document.language for hit in built.search("hide keyboard", 2)] == ["python", "yaml"]
        assert built.search("hide keyboard yaml", 1)[0].document.language == "yaml"
