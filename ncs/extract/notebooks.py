"""Notebooks: the code cells of an .ipynb file, each read by itself, with the lines where they stand in that file.

Jupyter writes every line of a cell on a line of the file, so `path:line` opens the function; in a notebook written on
one line everything stands there. Text cells are comments of the code cell below them, and their last heading names its
top-level code. Outputs (tables, images in base64) are not read.
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
from ncs.extract.embedded import Piece, read_piece, with_distinct_ids
from ncs.extract.languages import LANGUAGES, language_of
from ncs.extract.source_bytes import as_utf8
from ncs.extract.text_kinds import TEXT_KINDS, text_kind
from ncs.types import Document

MAX_COMMENT = 2_000
"""Characters of text cells, the last before a code cell, that become its comments; without embedded images."""
MAX_HEADING = 80

_ALIASES = {
    **{"python3": "python", "python2": "python", "ipython": "python", "ipython3": "python", "xpython": "python"},
    **{"pyspark": "python", "sagemath": "python", "ir": "r", "c++": "cpp", "c#": "csharp", "f#": "fsharp"},
    **{"node": "javascript", "node.js": "javascript", "sh": "bash", "shell": "bash", "deno": "typescript"},
    **{"pwsh": "powershell", "octave": "matlab", "gophernotes": "go", "ihaskell": "haskell", "evcxr": "rust"},
    **{"emacs-lisp": "elisp", "common-lisp": "lisp", "spark": "scala", "tslab": "typescript", "jslab": "javascript"},
}
_IMAGE = re.compile(r"!?\[[^\]\n]*\]\((?:data|attachment):[^)\n]*\)|\S{200,}")
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t#]*$|^<h\d[^>\n]*>(.+?)</h\d>", re.MULTILINE)
_COMMENT_SIGNS = {"sql": "--", "lua": "--", "haskell": "--", "matlab": "%", "clojure": ";", "elisp": ";", "lisp": ";"}
_HASH_COMMENTS = frozenset("python ruby bash elixir r julia perl powershell nim tcl raku crystal coffeescript".split())  # noqa: SIM905


class _Located(str):
    """A string with its offset in the JSON that it was read from."""

    at: int = 0


class _Cell(NamedTuple):
    kind: str
    text: str
    lines: tuple[int, ...]
    """The line of the file, 1-based, of each line of the text."""
    language: str


def read(source: bytes, repository: str, path: str, *, outside: bool) -> tuple[list[Document], bool]:
    """Documents of a notebook, cell by cell, functions first; and whether it has syntax errors.

    outside=False: functions only. Versions 3 and 4 of the format are read.
    Raises SourceError for what is not JSON, or not a notebook.
    """
    text = as_utf8(source).decode("utf-8", "replace")
    notebook = _parse(text, path)
    ends = [match.start() for match in re.finditer("\n", text)]
    comments: list[str] = []
    heading = ""
    documents: list[Document] = []
    broken = False
    for cell in _cells(notebook, ends):
        if cell.kind in ("markdown", "heading"):
            comments.append(_IMAGE.sub(" ", cell.text))
            headings = [first or second for first, second in _HEADING.findall(cell.text)]
            heading = headings[-1][:MAX_HEADING].strip() if headings else heading
        elif cell.kind == "code" and cell.text.strip():
            cell_documents, errors = _read_cell(
                cell, "\n".join(comments)[-MAX_COMMENT:].strip(), repository, path, outside
            )
            documents += [_name_by_heading(document, heading) for document in cell_documents]
            broken |= errors
            comments = []
    return with_distinct_ids(documents), broken


def _parse(text: str, path: str) -> Mapping[str, Any]:
    """The notebook, with strings that know their offset."""
    decoder: Any = json.JSONDecoder(strict=False)
    read_string = decoder.parse_string

    def parse_string(text: str, at: int, strict: bool) -> tuple[_Located, int]:
        value, end = read_string(text, at, strict)
        located = _Located(value)
        located.at = at
        return located, end

    decoder.parse_string = parse_string
    decoder.scan_once = scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    try:
        notebook = decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path or 'the notebook'} is not JSON ({error}); save it again with Jupyter") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells", notebook.get("worksheets")), list):
        raise SourceError(f"{path or 'the file'} is not a notebook: it has no cells; save it again with Jupyter")
    return notebook


def _cells(notebook: Mapping[str, Any], ends: list[int]) -> Iterator[_Cell]:
    default = _language(notebook)
    sheets = notebook.get("worksheets", ())
    groups = [notebook.get("cells", ())] + [sheet.get("cells", ()) for sheet in sheets if isinstance(sheet, dict)]
    for cell in (cell for group in groups if isinstance(group, list) for cell in group if isinstance(cell, dict)):
        source = cell.get("source", cell.get("input", ""))
        strings = source if isinstance(source, list) else [source]
        text, lines = "", []
        for string in strings:
            if not isinstance(string, _Located) or not string:
                continue
            continues = text != "" and text[-1] != "\n"
            text += string
            new = string.count("\n") + (string[-1] != "\n") - continues
            lines += [bisect_left(ends, string.at) + 1] * new
        yield _Cell(
            str(cell.get("cell_type", "")),
            text.replace("\r", ""),
            (*lines, lines[-1] if lines else 1),
            _cell_language(cell) or default,
        )


def _cell_language(cell: Mapping[str, Any]) -> str:
    """The language that a single cell names; "" where it does not."""
    metadata = cell.get("metadata")
    vscode = metadata.get("vscode") if isinstance(metadata, dict) else None
    name = vscode.get("languageId") if isinstance(vscode, dict) else cell.get("language")
    return _known(name)


def _language(notebook: Mapping[str, Any]) -> str:
    """The kernel's language; Python where there is no kernel."""
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for where, key in (("kernelspec", "language"), ("language_info", "name"), ("kernelspec", "name")):
        section = metadata.get(where)
        if isinstance(section, dict) and (language := _known(section.get(key))):
            return language
    return "python" if not metadata.get("kernelspec") else ""


def _known(name: object) -> str:
    """A key of LANGUAGES or TEXT_KINDS for the name of a kernel; "" for others."""
    language = re.sub(r"[-_ ]?v?\d[\d.]*$", "", name.lower().strip()) if isinstance(name, str) else ""
    language = _ALIASES.get(language, language)
    return language if language in LANGUAGES or language in TEXT_KINDS else ""


def _read_cell(cell: _Cell, comment: str, repository: str, path: str, outside: bool) -> tuple[list[Document], bool]:
    language, file = cell_language(cell.text)
    if language == "writefile":
        language = language_of(file) or text_kind(file) or ""
    language = language or cell.language
    if language not in LANGUAGES and language not in TEXT_KINDS:
        return [], False
    code = comment_out_magics(cell.text) if language == "python" else _blank_magic(cell.text)
    sign = "#" if language in _HASH_COMMENTS else _COMMENT_SIGNS.get(language, "//")
    above = [f"{sign} {line}" for line in comment.split("\n") if line.strip()]
    lines = (*[cell.lines[0]] * len(above), *cell.lines)
    return read_piece(
        Piece("\n".join([*above, code]).encode("utf-8", "replace"), language, lines), repository, path, outside=outside
    )


def _blank_magic(code: str) -> str:
    """The code with the line of its cell magic empty."""
    return re.sub(r"^\s*%%[^\n]*", lambda match: "\n" * match.group().count("\n"), code)


def _name_by_heading(document: Document, heading: str) -> Document:
    """Top-level code is named by the heading above."""
    if document.kind not in ("module", "block"):
        return document
    name = heading or document.name
    words = {**document.words, "name": (name,)}
    id = document.id.replace(".module", ".block") if document.id.endswith(".module") else document.id
    return replace(document, id=id, kind="block", name=name, qualified_name=name, words=words)


_PYTHON_TOKEN = re.compile(
    r"(?P<string>\"{3}(?:\\.|[^\\])*?(?:\"{3}|\Z)|'{3}(?:\\.|[^\\])*?(?:'{3}|\Z)"
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<comment>#[^\n]*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<joined>\\\n)|(?P<line>\n)",
    re.DOTALL,
)
_MAGIC = re.compile(r"[ \t]*(?:[%!?]|,(?=\w)|;(?=\w)|[^\W\d][\w.]*\?{1,2}[ \t]*$)")
_ASSIGNMENT = re.compile(r"([ \t]*[\w.\[\]'\", ]+=[ \t]*)([!%].*)", re.DOTALL)
_CELL_MAGIC = re.compile(r"\s*%%(\w+)[ \t]*([^\n]*)(?:\n|\Z)")

CELL_LANGUAGES = {
    **dict.fromkeys(("bash", "sh", "script", "cmd"), "bash"),
    **dict.fromkeys(("javascript", "js"), "javascript"),
    **dict.fromkeys(("ruby", "perl", "sql", "r", "julia", "cython"), ""),
    **dict.fromkeys(("html", "svg", "latex", "markdown", "file", "writefile"), None),
}
"""Cell magics and the language of their cell; "": the magic's own name, None: by the file it names, or no code."""


def cell_language(code: str) -> tuple[str, str]:
    """The language of a cell by its cell magic ("" without one), and the argument of `%%writefile`.

    >>> cell_language("%%bash\\nls"), cell_language("%%time\\nf()"), cell_language("%%writefile a.py\\nx = 1")
    (('bash', ''), ('', ''), ('writefile', 'a.py'))
    """
    match = _CELL_MAGIC.match(code)
    if match is None:
        return "", ""
    magic = match[1].lower()
    language = CELL_LANGUAGES.get(magic, magic)
    if magic not in CELL_LANGUAGES:
        return "", ""
    if language is None:
        return ("writefile", match[2].split()[-1]) if magic in ("writefile", "file") and match[2] else ("none", "")
    return language or magic, ""


def comment_out_magics(code: str) -> str:
    """The same lines, with those of IPython (`%matplotlib inline`, `!pip install`, `hide?`) made comments, so that the
    cell parses; a name that the result of a command is assigned to stays.

    >>> comment_out_magics("%matplotlib inline\\nx = !ls\\nprint('a'\\n  % x)")
    "#%matplotlib inline\\nx = None  # !ls\\nprint('a'\\n  % x)"
    """
    return "".join(map(_statement, _statements(code)))


def _statements(code: str) -> Iterator[str]:
    """Pieces that begin where a statement may begin: at a line's start outside brackets and strings."""
    start = depth = 0
    at = 0
    while (match := _PYTHON_TOKEN.search(code, at)) is not None:
        at = match.end()
        if _MAGIC.match(code, start) and depth == 0:  # its quotes and brackets belong to a shell
            at = _end(code, start)
            yield code[start:at]
            start = at
        elif match.lastgroup == "open":
            depth += 1
        elif match.lastgroup == "close":
            depth = max(0, depth - 1)
        elif match.lastgroup == "line" and not depth:
            yield code[start:at]
            start = at
    yield code[start:]


def _end(code: str, start: int) -> int:
    """The end of a magic's line, which goes on after a backslash."""
    at = code.find("\n", start)
    while at > 0 and code[at - 1] == "\\":
        at = code.find("\n", at + 1)
    return len(code) if at < 0 else at + 1


def _statement(code: str) -> str:
    if _MAGIC.match(code):
        indent = len(code) - len(code.lstrip(" \t"))
        lines = code[indent:].split("\n")
        commented = "\n".join("#" + line if line else line for line in lines)
        return f"{code[:indent]}pass  {commented}" if indent else commented  # it may be the only statement of its block
    if (match := _ASSIGNMENT.match(code)) is not None:
        command, end, rest = match[2].partition("\n")
        return f"{match[1]}None  # {command}{end}{rest}"
    return code
