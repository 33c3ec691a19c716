"""Notebooks: the code cells of an .ipynb file, each read by itself, on the lines where they stand in that file.

Jupyter writes every line of a cell on a line of the file, so `path:line` opens where the function is; in a notebook
that is written on one line everything stands there. Text cells are comments of the code cell below them, their last
heading names what of it stands outside functions. What cells print (tables, images in base64) is never read.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace
from json import scanner
from typing import Any, NamedTuple

from ncs.errors import SourceError
from ncs.extract.bytewise import as_utf8
from ncs.extract.embedded import Piece, distinct, read_piece
from ncs.extract.languages import LANGUAGES, language_of
from ncs.extract.magics import cell_language, plain
from ncs.extract.texts import TEXTS, text_kind
from ncs.types import Document

MOST_TEXT = 2_000
"""Characters of text cells that are comments of the code below: its last ones, without embedded images."""
LONGEST_HEADING = 80

_ALIASES = {
    **{"python3": "python", "python2": "python", "ipython": "python", "ipython3": "python", "xpython": "python"},
    **{"pyspark": "python", "sagemath": "python", "ir": "r", "c++": "cpp", "c#": "csharp", "f#": "fsharp"},
    **{"node": "javascript", "node.js": "javascript", "sh": "bash", "shell": "bash", "deno": "typescript"},
    **{"pwsh": "powershell", "octave": "matlab", "gophernotes": "go", "ihaskell": "haskell", "evcxr": "rust"},
    **{"emacs-lisp": "elisp", "common-lisp": "lisp", "spark": "scala", "tslab": "typescript", "jslab": "javascript"},
}
_IMAGE = re.compile(r"!?\[[^\]\n]*\]\((?:data|attachment):[^)\n]*\)|\S{200,}")
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t#]*$|^<h\d[^>\n]*>(.+?)</h\d>", re.MULTILINE)
_SIGNS = {"sql": "--", "lua": "--", "haskell": "--", "matlab": "%", "clojure": ";", "elisp": ";", "lisp": ";"}
_HASHES = frozenset("python ruby bash elixir r julia perl powershell nim tcl raku crystal coffeescript".split())  # noqa: SIM905


class _Placed(str):
    """A string that knows where it starts in the JSON that it was read from."""

    at: int = 0


class _Cell(NamedTuple):
    kind: str
    text: str
    lines: tuple[int, ...]
    """The line of the file, 1-based, of each line of the text."""
    language: str


def read(source: bytes, repository: str, path: str, *, outside: bool) -> tuple[list[Document], bool]:
    """Documents of a notebook, cell by cell: functions first, then what stands outside them; are there syntax errors?

    outside=False: functions only. Versions 3 and 4 of the format are read.
    Raises SourceError for what is no JSON, or no notebook.
    """
    text = as_utf8(source).decode("utf-8", "replace")
    notebook = _parsed(text, path)
    ends = [match.start() for match in re.finditer("\n", text)]
    said: list[str] = []
    heading = ""
    documents: list[Document] = []
    broken = False
    for cell in _cells(notebook, ends):
        if cell.kind in ("markdown", "heading"):
            said.append(_IMAGE.sub(" ", cell.text))
            headings = [first or second for first, second in _HEADING.findall(cell.text)]
            heading = headings[-1][:LONGEST_HEADING].strip() if headings else heading
        elif cell.kind == "code" and cell.text.strip():
            found, errors = _read_cell(cell, "\n".join(said)[-MOST_TEXT:].strip(), repository, path, outside)
            documents += [_titled(document, heading) for document in found]
            broken |= errors
            said = []
    return distinct(documents), broken


def _parsed(text: str, path: str) -> Mapping[str, Any]:
    """The notebook with strings that know their place."""
    decoder: Any = json.JSONDecoder(strict=False)
    read_string = decoder.parse_string

    def parse_string(text: str, at: int, strict: bool) -> tuple[_Placed, int]:
        value, end = read_string(text, at, strict)
        placed = _Placed(value)
        placed.at = at
        return placed, end

    decoder.parse_string = parse_string
    decoder.scan_once = scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    try:
        notebook = decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path or 'the notebook'} is no JSON ({error}); save it again with Jupyter") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells", notebook.get("worksheets")), list):
        raise SourceError(f"{path or 'the file'} is no notebook: it has no cells; save it again with Jupyter")
    return notebook


def _cells(notebook: Mapping[str, Any], ends: list[int]) -> Iterator[_Cell]:
    usual = _language(notebook)
    sheets = notebook.get("worksheets", ())
    groups = [notebook.get("cells", ())] + [sheet.get("cells", ()) for sheet in sheets if isinstance(sheet, dict)]
    for cell in (cell for group in groups if isinstance(group, list) for cell in group if isinstance(cell, dict)):
        source = cell.get("source", cell.get("input", ""))
        strings = source if isinstance(source, list) else [source]
        text, lines = "", []
        for string in strings:
            if not isinstance(string, _Placed) or not string:
                continue
            goes_on = text != "" and text[-1] != "\n"
            text += string
            new = string.count("\n") + (string[-1] != "\n") - goes_on
            lines += [bisect_left(ends, string.at) + 1] * new
        yield _Cell(
            str(cell.get("cell_type", "")),
            text.replace("\r", ""),
            (*lines, lines[-1] if lines else 1),
            _of(cell) or usual,
        )


def _of(cell: Mapping[str, Any]) -> str:
    """The language that a single cell names; "" where it does not."""
    metadata = cell.get("metadata")
    vscode = metadata.get("vscode") if isinstance(metadata, dict) else None
    named = vscode.get("languageId") if isinstance(vscode, dict) else cell.get("language")
    return _known(named)


def _language(notebook: Mapping[str, Any]) -> str:
    """What the kernel speaks; Python where nothing is said."""
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for where, key in (("kernelspec", "language"), ("language_info", "name"), ("kernelspec", "name")):
        said = metadata.get(where)
        if isinstance(said, dict) and (language := _known(said.get(key))):
            return language
    return "python" if not metadata.get("kernelspec") else ""


def _known(name: object) -> str:
    """A key of LANGUAGES or TEXTS for a kernel's name; "" for others."""
    said = re.sub(r"[-_ ]?v?\d[\d.]*$", "", name.lower().strip()) if isinstance(name, str) else ""
    said = _ALIASES.get(said, said)
    return said if said in LANGUAGES or said in TEXTS else ""


def _read_cell(cell: _Cell, said: str, repository: str, path: str, outside: bool) -> tuple[list[Document], bool]:
    language, file = cell_language(cell.text)
    if language == "writefile":
        language = language_of(file) or text_kind(file) or ""
    language = language or cell.language
    if language not in LANGUAGES and language not in TEXTS:
        return [], False
    code = plain(cell.text) if language == "python" else _without_magic(cell.text)
    sign = "#" if language in _HASHES else _SIGNS.get(language, "//")
    above = [f"{sign} {line}" for line in said.split("\n") if line.strip()]
    lines = (*[cell.lines[0]] * len(above), *cell.lines)
    return read_piece(
        Piece("\n".join([*above, code]).encode("utf-8", "replace"), language, lines), repository, path, outside=outside
    )


def _without_magic(code: str) -> str:
    """Without the line of a cell magic, which stays as an empty one."""
    return re.sub(r"^\s*%%[^\n]*", lambda match: "\n" * match.group().count("\n"), code)


def _titled(document: Document, heading: str) -> Document:
    """Of what stands outside functions the heading above is the name."""
    if document.kind not in ("module", "block"):
        return document
    name = heading or document.name
    words = {**document.words, "name": (name,)}
    id = document.id.replace(".module", ".block") if document.id.endswith(".module") else document.id
    return replace(document, id=id, kind="block", name=name, qualified_name=name, words=words)
