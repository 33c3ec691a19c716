"""Cells of notebooks and scripts of pages: their documents, and where these stand in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ncs.errors import SourceError
from ncs.extract import embedded
from ncs.extract.embedded import comment_out_magics
from ncs.extract.readers import read
from ncs.types import Document

SAMPLE = Path(__file__).parents[1] / "data" / "notebooks" / "keyboard.ipynb"


def cells(notebook: bytes, outside: bool = True) -> list[Document]:
    return read(notebook, "r", "n/keyboard.ipynb", outside=outside)[0]


def notebook(*texts: str, indent: int | None = 1, **metadata: Any) -> bytes:
    """A notebook of code cells as Jupyter writes it."""
    written = [
        {"cell_type": "code", "metadata": {}, "source": text.splitlines(keepends=True), "outputs": []} for text in texts
    ]
    return json.dumps({"cells": written, "metadata": metadata, "nbformat": 4}, indent=indent).encode()


def test_documents_of_a_notebook_stand_on_the_lines_of_the_file_where_a_person_finds_them() -> None:
    lines = SAMPLE.read_text("utf-8").split("\n")
    documents = cells(SAMPLE.read_bytes())
    assert [(d.kind, d.name, d.language, lines[d.start_line - 1].strip()) for d in documents] == [
        ("block", "Keyboards", "python", '"MAX_SIZE = 3\\n",'),
        ("function", "hide", "python", '"def hide(view, größe=1):\\n",'),
        ("function", "show", "python", '"    def show(self):\\n",'),
        ("class", "Keyboard", "python", '"class Keyboard:\\n",'),
        ("function", "show", "bash", '"show() {\\n",'),
        ("function", "broken", "python", '"def broken(:\\n",'),
        ("block", "Hiding", "python", '"print(\\"%s\\"\\n",'),
    ]
    block, hide = documents[:2]
    assert (hide.id, hide.start_line, hide.end_line) == ("r/n/keyboard.ipynb:49", 49, 53)
    assert block.words["comments"] == ("Keyboards", "We hide *soft* keyboards.", "%matplotlib inline")
    assert hide.words["doc"] == ("Hiding", "Ask the system to hide it.", "Hides it.")
    printed = " ".join([document.code + str(dict(document.words)) for document in documents])
    assert "secret_output" not in printed
    assert "AAAA" not in printed
    assert [d.name for d in cells(SAMPLE.read_bytes(), outside=False)] == ["hide", "show", "show", "broken"]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_notebook_on_one_line_has_the_same_functions(indent: int | None) -> None:
    written = notebook("def a():\n    pass\ndef b():\n    pass\n", "def c(): pass", indent=indent)
    documents = cells(written)
    assert [document.name for document in documents] == ["a", "b", "c"]
    assert len({document.id for document in documents}) == 3
    lines = written.decode().split("\n")
    assert all(f"def {document.name}" in lines[document.start_line - 1] for document in documents)


@pytest.mark.parametrize(
    ("written", "place"),
    [
        (b'{"cells": [\n{"cell_type": "code",\n "source": "x = 1\\n\\ndef hide():\\n    pass"}]}', (3, 3)),
        (
            b'{"cells": [{"cell_type": "code", "source": [\n"x = ",\n"1\\n",\n"",\n"def hide():\\n",\n"    pass"]}]}',
            (5, 6),
        ),
        (
            b'{"worksheets": [{"cells": [\n{"cell_type": "code",\n "input": ["def hide():\\n",\n" pass"]}]}]}',
            (3, 4),
        ),
    ],
    ids=["one string", "a line in two strings", "the format of 2013"],
)
def test_a_cell_of_another_form_stands_where_its_strings_do(written: bytes, place: tuple[int, int]) -> None:
    assert [(d.name, (d.start_line, d.end_line)) for d in cells(written, outside=False)] == [("hide", place)]


PYTHON, BRAIN = "def hide(view): pass", {"kernelspec": {"name": "brain", "language": "brainstorm"}}


@pytest.mark.parametrize(
    ("metadata", "code", "language"),
    [
        ({"kernelspec": {"name": "ir", "language": "R"}}, "hide <- function(view) {\n  close(view)\n}", "r"),
        ({"kernelspec": {"name": "julia-1.9"}}, "function hide(view)\n  close(view)\nend", "julia"),
        ({"language_info": {"name": "C++17"}}, "int hide(int v) { return v; }", "cpp"),
        ({}, PYTHON, "python"),
        ({}, f"%%time\n{PYTHON}", "python"),
        (BRAIN, PYTHON, None),
        ({}, "%%bash\nhide() { close; }", "bash"),
        (BRAIN, f"%%writefile a/b.py\n{PYTHON}", "python"),
        ({}, f"%%html\n{PYTHON}", None),
    ],
)
def test_the_cell_magic_or_else_the_kernel_says_the_language(
    metadata: dict[str, Any], code: str, language: str | None
) -> None:
    documents = cells(notebook(code, **metadata))
    assert [(d.name, d.language) for d in documents] == ([("hide", language)] if language else [])


@pytest.mark.parametrize(
    ("code", "python"),
    [
        ("!ls (\nf()", "#!ls (\nf()"),
        ("!ls \\\n  -l\nf()", "#!ls \\\n#  -l\nf()"),
        ("t = %timeit -o f()\n", "t = None  # %timeit -o f()\n"),
        ("f?\nf.g??\n", "#f?\n#f.g??\n"),
        ("if x:\n    !ls\n", "if x:\n    pass  #!ls\n"),
        ('s = """\n%d\n!no\n"""\n', 's = """\n%d\n!no\n"""\n'),
        ("x = y \\\n  % 3\n", "x = y \\\n  % 3\n"),
        ("# it's (\n%time f()\n", "# it's (\n#%time f()\n"),
    ],
)
def test_what_only_ipython_understands_becomes_comments(code: str, python: str) -> None:
    assert comment_out_magics(code) == python


def test_what_is_no_notebook_is_refused_and_cells_of_another_shape_give_nothing() -> None:
    for broken in (b"", b"[]", b'{"cells": 1}', b"\0" * 100, b"[" * 100_000, b'{"cells": [' + b"[" * 5000, b"null"):
        with pytest.raises(SourceError, match=r"keyboard\.ipynb .*save it again with Jupyter"):
            cells(broken)
    for odd in (
        b'{"cells": [1, null, {}, {"cell_type": "code"}, {"cell_type": "code", "source": [1, null]}]}',
        b'{"cells": [{"cell_type": "code", "source": 3, "metadata": 4}], "metadata": 5}',
        b'{"worksheets": [1, {"cells": 2}]}',
    ):
        assert cells(odd) == []


VUE = b"""<template>
  <button @click="hide" v-if="a > b && c < d">{{ "script" }}</button>
</template>

<script lang="ts">
import { View } from "./view";

/** Hides the keyboard. */
export function hide(view: View): boolean {
  return view.close("now");
}
</script>

<script setup lang="ts">
const props = defineProps<{ title: string }>();
function show() { hide(props.view); }
</script>
"""


def scripts(page: bytes, path: str = "a/Keyboard.vue", outside: bool = False) -> list[tuple[str, str, int, int]]:
    return [(d.name, d.language, d.start_line, d.end_line) for d in read(page, "r", path, outside=outside)[0]]


def test_functions_of_all_scripts_stand_on_the_lines_of_the_page() -> None:
    hide, show = ("hide", "typescript", 9, 11), ("show", "typescript", 16, 16)
    assert scripts(VUE) == [hide, show]
    assert scripts(VUE, outside=True) == [hide, show, ("Keyboard", "typescript", 15, 15)]
    first = read(VUE, "r", "a/Keyboard.vue")[0][0]
    assert first.id == "r/a/Keyboard.vue:9"
    assert (first.words["doc"], first.words["calls"]) == (("Hides the keyboard.",), ("close",))


@pytest.mark.parametrize(
    ("opening", "language"),
    [
        ("<script>", "javascript"),
        ("<SCRIPT TYPE='text/javascript; charset=utf-8'>", "javascript"),
        ('<script type="module" data-a="a > b">', "javascript"),
        ("<script type=text/babel>", "javascript"),
        ('<script context="module" lang="ts">', "typescript"),
        ('<script lang="tsx">', "tsx"),
        ("<script\n  setup\n  lang='ts'\n>", "typescript"),
        ('<script type="application/ld+json">', None),
        ('<script type="importmap">', None),
        ('<script type="text/x-handlebars-template" id="a">', None),
        ('<script type="x-shader/x-vertex">', None),
        ('<script src="a.js"/>', None),
        ("<scripting>", None),
    ],
)
def test_the_tag_says_whether_it_is_a_script_and_in_which_language(opening: str, language: str | None) -> None:
    page = f"<p>\n{opening}function hide() {{ close(); }}</script>".encode()
    line = page.count(b"\n") + 1
    assert scripts(page, "a.html") == ([("hide", language, line, line)] if language else [])


@pytest.mark.parametrize(
    ("path", "page", "places"),
    [
        ("a.html", b"<!-- <script>function a() {}</script> -->\n<script>function b() {}</script>\n<!--", ["b2"]),
        ("a.html", b"<p><script>\nfunction a() {}\nfunction b() {}", ["a2", "b3"]),
        ("a.html", b"<script>" + b"function a(){}" * 300 + b"</script>\n<script>\nfunction b() {}</script>", ["b3"]),
        ("a.html", b"<script>f('<b>') {{ if }} (</script>\n<script>\nfunction b() { '<b>x</b>'; }\n</script>", ["b3"]),
        ("a.svelte", b"<script>\nlet a = () => 1</script>\n\n{a < b}\n<script>\nlet b = () => 1", ["a2", "b6"]),
        ("a.astro", b"---\nconst a = (x: number) => x;\n---\n<p>{a(1)}</p>\n<script>\nfunction b() {}\n", ["a2", "b6"]),
    ],
    ids=["comments", "no end", "minified", "markup and errors", "svelte", "astro"],
)  # fmt: skip
def test_scripts_are_told_from_what_is_around_them(path: str, page: bytes, places: list[str]) -> None:
    assert [f"{name}{line}" for name, _, line, _ in scripts(page, path)] == places


def test_scripts_in_the_html_around_php_are_read() -> None:
    page = b"""<?php
function hide($view) { return '?><script>'; }
?>
<html><script type="text/template"><b></b></script>
<script>
  // <?php echo "no end here"; ?>
  const url = <?= $url ?>;
  function show(view) { open(view, "<?= $x ?>"); }
</script>
<?php foreach ($a as $b): /* ?> <script> */ ?>
<script lang="ts">const draw = (n: number) => n;</script>
<?php endforeach ?>
"""
    places = [("hide", "php", 2, 2), ("show", "javascript", 8, 8), ("draw", "typescript", 11, 11)]
    assert scripts(page, "page.php") == places
    documents, broken = read(page, "r", "page.php", outside=True)
    assert len({document.id for document in documents}) == len(documents)
    assert any("url" in d.words.get("identifiers", ()) for d in documents if d.language == "javascript")
    assert not broken


def test_a_page_without_scripts_gives_nothing_and_functions_on_one_line_have_ids_of_their_own() -> None:
    for page in (b"", b"\0" * 5000, b"<script", b"<script>", b"<script></script>", b"<!--", b'<script "', b"<p>a</p>"):
        assert scripts(page, "a.html", outside=True) == []
    documents, broken = read(b"<script>function a() {}</script>" * 3, "r", "a.html")
    assert ([d.id for d in documents], broken) == (["r/a.html:1", "r/a.html:1.2", "r/a.html:1.3"], False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [b"<script ", b"<script>", b'<script "', b"<script a='", b"<!--", b"<script></script>", b"<script>f()</script>\n"],
)
def test_a_megabyte_of_anything_is_read(unit: bytes) -> None:
    scripts(unit * (1_000_000 // len(unit)), "a.html", outside=True)


def test_cells_past_the_limits_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    written = notebook("def a(): pass", "def b(): pass", "def c(): pass")
    monkeypatch.setattr(embedded, "MAX_CELLS", 2)
    assert [document.name for document in cells(written)] == ["a", "b"]
    monkeypatch.setattr(embedded, "MAX_CODE", 20)
    assert [document.name for document in cells(written)] == ["a"]


def test_a_notebook_of_too_many_values_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Millions of empty strings in an output took 5 GB."""
    monkeypatch.setattr(embedded, "MAX_VALUES", 20)
    with pytest.raises(SourceError, match="holds more than 20 values"):
        cells(notebook("x = 1\n" * 20))
