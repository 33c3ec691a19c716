"""Notebooks: which documents their cells give, where they stand in the file, and what any file may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ncs.config import BuildConfig
from ncs.errors import SourceError
from ncs.extract.notebooks import comment_out_magics
from ncs.extract.readers import read
from ncs.index import Index
from ncs.types import Document

SAMPLE = Path(__file__).parents[1] / "data" / "notebooks" / "keyboard.ipynb"


def documents(notebook: bytes, outside: bool = True) -> list[Document]:
    return read(notebook, "r", "n/keyboard.ipynb", outside=outside)[0]


def notebook(*cells: tuple[str, str], indent: int | None = 1, **metadata: Any) -> bytes:
    """A notebook of (kind, text) cells as Jupyter writes it."""
    listed = [
        {
            "cell_type": kind,
            "metadata": {},
            "source": text.splitlines(keepends=True),
            **({"outputs": []} if kind == "code" else {}),
        }
        for kind, text in cells
    ]
    whole = {"cells": listed, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=indent, ensure_ascii=False).encode()


def test_every_document_stands_on_the_line_of_the_file_where_a_person_finds_it() -> None:
    lines = SAMPLE.read_text("utf-8").split("\n")
    found = [(d.kind, d.name, d.language, lines[d.start_line - 1].strip()) for d in documents(SAMPLE.read_bytes())]
    assert found == [
        ("block", "Keyboards", "python", '"MAX_SIZE = 3\\n",'),
        ("function", "hide", "python", '"def hide(view, größe=1):\\n",'),
        ("function", "show", "python", '"    def show(self):\\n",'),
        ("class", "Keyboard", "python", '"class Keyboard:\\n",'),
        ("function", "show", "bash", '"show() {\\n",'),
        ("function", "broken", "python", '"def broken(:\\n",'),
        ("block", "Hiding", "python", '"print(\\"%s\\"\\n",'),
    ]
    hide = documents(SAMPLE.read_bytes())[1]
    assert (hide.id, hide.start_line, hide.end_line) == ("r/n/keyboard.ipynb:49", 49, 53)
    assert lines[hide.end_line - 1].strip() == '"    return service(view)\\n",'


def test_text_cells_are_comments_of_the_code_below_and_headings_its_name() -> None:
    block, hide = documents(SAMPLE.read_bytes())[:2]
    assert block.words["comments"] == ("Keyboards", "We hide *soft* keyboards.", "%matplotlib inline")
    assert hide.words["doc"] == ("Hiding", "Ask the system to hide it.", "Hides it.")


def test_nothing_that_cells_printed_is_read() -> None:
    said = " ".join([document.code + str(dict(document.words)) for document in documents(SAMPLE.read_bytes())])
    assert "secret_output" not in said
    assert "AAAA" not in said


def test_without_what_stands_outside_functions_only_functions_are_left() -> None:
    assert [d.name for d in documents(SAMPLE.read_bytes(), outside=False)] == ["hide", "show", "show", "broken"]


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_a_notebook_on_one_line_has_the_same_functions(indent: int | None) -> None:
    written = notebook(("code", "def a():\n    pass\ndef b():\n    pass\n"), ("code", "def c(): pass"), indent=indent)
    found = documents(written)
    assert [document.name for document in found] == ["a", "b", "c"]
    assert len({document.id for document in found}) == 3
    lines = written.decode().split("\n")
    assert all(f"def {document.name}" in lines[document.start_line - 1] for document in found)


def test_a_source_that_is_one_string_stands_where_the_string_does() -> None:
    written = b'{"cells": [\n{"cell_type": "code",\n "source": "x = 1\\n\\ndef hide():\\n    pass"}]}'
    assert [(d.name, d.start_line, d.end_line) for d in documents(written, outside=False)] == [("hide", 3, 3)]


def test_a_line_in_two_strings_stands_where_it_begins() -> None:
    written = b'{"cells": [{"cell_type": "code", "source": [\n"x = ",\n"1\\n",\n"",\n"def hide():\\n",\n"    pass"]}]}'
    assert [(d.name, d.start_line, d.end_line) for d in documents(written, outside=False)] == [("hide", 5, 6)]


def test_the_format_of_2013_is_read() -> None:
    cell = {"cell_type": "code", "input": ["def hide():\n", "    pass"], "language": "python", "outputs": []}
    written = json.dumps({"nbformat": 3, "metadata": {"name": ""}, "worksheets": [{"cells": [cell]}]}, indent=1)
    (hide,) = documents(written.encode())
    assert (hide.name, written.split("\n")[hide.start_line - 1].strip()) == ("hide", '"def hide():\\n",')


@pytest.mark.parametrize(
    ("metadata", "code", "language"),
    [
        ({"kernelspec": {"name": "ir", "language": "R"}}, "hide <- function(view) {\n  close(view)\n}", "r"),
        ({"kernelspec": {"name": "julia-1.9"}}, "function hide(view)\n  close(view)\nend", "julia"),
        ({"kernelspec": {"language": "typescript"}}, "function hide(view: View) { close(view) }", "typescript"),
        ({"language_info": {"name": "C++17"}}, "int hide(int v) { return v; }", "cpp"),
        ({"language_info": {"name": "scala"}}, "def hide(v: View) = v.close()", "scala"),
        ({}, "def hide(view): pass", "python"),
    ],
)
def test_the_kernel_says_which_language_the_cells_are_in(metadata: dict[str, Any], code: str, language: str) -> None:
    (hide,) = documents(notebook(("code", code), **metadata))
    assert (hide.name, hide.language) == ("hide", language)


def test_a_kernel_that_nobody_knows_gives_nothing() -> None:
    assert documents(notebook(("code", "hide it"), kernelspec={"name": "brain", "language": "brainstorm"})) == []


@pytest.mark.parametrize(
    ("code", "plainly"),
    [
        ("%matplotlib inline\nf()", "#%matplotlib inline\nf()"),
        ("!ls (\nf()", "#!ls (\nf()"),
        ("!ls \\\n  -l\nf()", "#!ls \\\n#  -l\nf()"),
        ("x = !ls\nf()", "x = None  # !ls\nf()"),
        ("t = %timeit -o f()\n", "t = None  # %timeit -o f()\n"),
        ("f?\nf.g??\n", "#f?\n#f.g??\n"),
        ("if x:\n    !ls\n", "if x:\n    pass  #!ls\n"),
        ("print('%s'\n  % x)\n", "print('%s'\n  % x)\n"),
        ('s = """\n%d\n!no\n"""\n', 's = """\n%d\n!no\n"""\n'),
        ("x = y \\\n  % 3\n", "x = y \\\n  % 3\n"),
        ("# it's (\n%time f()\n", "# it's (\n#%time f()\n"),
    ],
)
def test_what_only_ipython_understands_becomes_comments(code: str, plainly: str) -> None:
    assert comment_out_magics(code) == plainly


@pytest.mark.parametrize(
    ("magic", "language"),
    [("%%bash", "bash"), ("%%javascript", "javascript"), ("%%writefile a/b.py", "python"), ("%%time", "python")],
)
def test_a_cell_magic_changes_the_language_of_its_cell(magic: str, language: str) -> None:
    code = {"bash": "hide() { close; }", "javascript": "function hide() { close() }"}.get(
        language, "def hide(): close()"
    )
    (hide,) = documents(notebook(("code", f"{magic}\n{code}\n")))
    assert (hide.name, hide.language) == ("hide", language)


@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"[]", b'{"cells": 1}', b"\0" * 100, b"[" * 100_000, b'{"cells": [' + b"[" * 5000, b'"x"', b"null"],
)
def test_what_is_no_notebook_is_refused(broken: bytes) -> None:
    with pytest.raises(SourceError, match=r"keyboard\.ipynb .*save it again with Jupyter"):
        documents(broken)


@pytest.mark.parametrize(
    "odd",
    [
        b'{"cells": [1, null, {}, {"cell_type": "code"}, {"cell_type": "code", "source": [1, null]}]}',
        b'{"cells": []}',
        b'{"cells": [{"cell_type": "code", "source": 3, "metadata": 4}], "metadata": 5}',
        b'{"worksheets": [1, {"cells": 2}]}',
    ],
)
def test_cells_of_another_shape_give_nothing(odd: bytes) -> None:
    assert documents(odd) == []


@pytest.mark.slow
def test_a_broken_notebook_is_counted_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.ipynb").write_bytes(SAMPLE.read_bytes())
    (tmp_path / "sources" / "b.ipynb").write_bytes(SAMPLE.read_bytes()[:500])
    with Index.build(tmp_path / "sources", tmp_path / "index", config=BuildConfig(), workers=1) as built:
        assert built.description.counts["failed_files"] == ["sources/b.ipynb"]
        assert built.search("hide", 1)[0].document.path == "a.ipynb"
