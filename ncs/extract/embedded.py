"""Code inside files of another kind, with the lines of these: cells of notebooks, scripts of pages and components.

Jupyter writes every line of a cell on a line of the file, so `path:line` opens the function; in a notebook written on
one line everything stands there. Text cells are comments of the code cell below them, and their last heading names its
top-level code. Outputs (tables, images in base64) are not read. Markup of pages (HTML, Vue, Svelte, Astro, HTML in PHP)
makes no documents.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from json import scanner
from typing import Any, NamedTuple

from ncs.errors import SourceError
from ncs.extract import text_files, treesitter
from ncs.extract.documents import with_distinct_ids
from ncs.extract.languages import LANGUAGES, is_installed, language_of
from ncs.extract.source_bytes import as_utf8
from ncs.extract.text_files import TEXT_KINDS, language_called, text_kind
from ncs.sources.filters import reason_to_skip
from ncs.text.quotes import blank_openings, blank_quotes
from ncs.types import Document

MAX_COMMENT = 2_000
"""Characters of text cells, the last before a code cell, that become its comments; without embedded images."""
MAX_HEADING = 80
MAX_CELLS, MAX_CODE, MAX_VALUES = 10_000, 1 << 20, 2_000_000
"""Most cells of a notebook, characters of their code, and strings, lists and objects of its JSON; later cells and code
are not read."""
MAX_SCRIPTS = 500
"""Scripts of a page; later ones are not read."""


def _read_code(
    code: bytes, language: str, lines: Sequence[int], repository: str, path: str, *, outside: bool
) -> tuple[list[Document], bool]:
    """The documents of a piece of code, and whether it has syntax errors.

    language: a key of LANGUAGES or TEXT_KINDS. lines: the line in the file of each line of the code.
    """
    if is_installed(language):
        documents, broken = treesitter.read(code, LANGUAGES[language], repository, path, outside=outside)
    elif language in TEXT_KINDS:
        documents, broken = text_files.read(code, language, repository, path, outside=outside)
    else:
        return [], False
    return [_move(document, lines) for document in documents], broken


def _move(document: Document, lines: Sequence[int]) -> Document:
    first, last = (lines[min(line, len(lines)) - 1] for line in (document.start_line, document.end_line))
    place = f"{document.repository}/{document.path}:"
    suffix = document.id[len(f"{place}{document.start_line}") :]
    return replace(document, id=f"{place}{first}{suffix}", start_line=first, end_line=last)


_IMAGE = re.compile(  # {0,9}: linear where nothing closes
    r"!?\[[^\[\]\n]*(?:\[[^\[\]\n]*){0,9}\]\((?:data|attachment):[^()\n]*(?:\([^()\n]*){0,9}\)|(?<![^\s)])\S{200,}"
)
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.+)$|^<h\d[^>\n]*>(.+?)</h\d>", re.MULTILINE)
_COMMENT_SIGNS = {"sql": "--", "lua": "--", "haskell": "--", "matlab": "%", "clojure": ";", "elisp": ";", "lisp": ";"}
_HASH_COMMENTS = frozenset("python ruby bash elixir r julia perl powershell nim tcl raku crystal coffeescript".split())  # noqa: SIM905


class _Located(str):
    """A string with its offset in the JSON that it was read from."""

    __slots__ = ("at",)
    at: int


class _Cell(NamedTuple):
    kind: str
    text: str
    lines: tuple[int, ...]
    """The line of the file, 1-based, of each line of the text."""
    language: str


def read_notebook(source: bytes, repository: str, path: str, *, outside: bool) -> tuple[list[Document], bool]:
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
    characters = 0
    for cell in islice(_cells(notebook, ends), MAX_CELLS):
        if cell.kind in ("markdown", "heading"):
            comments.append(_IMAGE.sub(" ", cell.text))
            headings = [
                first[:1] + first[1:].rstrip(" \t#") if first else second
                for first, second in _HEADING.findall(cell.text)
            ]
            heading = headings[-1][:MAX_HEADING].strip() if headings else heading
        elif cell.kind == "code" and cell.text.strip():
            characters += len(cell.text)
            if characters > MAX_CODE:
                break
            comment = "\n".join(comments)[-MAX_COMMENT:].strip()
            cell_documents, errors = _read_cell(cell, comment, repository, path, outside)
            documents += [_name_by_heading(document, heading) for document in cell_documents]
            broken |= errors
            comments = []
    return with_distinct_ids(documents), broken


def _parse(text: str, path: str) -> Mapping[str, Any]:
    """The notebook, with strings that know their offset."""
    decoder: Any = json.JSONDecoder(strict=False)
    left = MAX_VALUES

    def counted(parse: Callable[..., Any]) -> Callable[..., Any]:
        def parse_one(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise SourceError(f"{path} holds more than {MAX_VALUES:,} values; clear the output of its cells")
            return parse(*arguments)

        return parse_one

    read_string = decoder.parse_string

    def parse_string(text: str, at: int, strict: bool) -> tuple[_Located, int]:
        value, end = read_string(text, at, strict)
        located = _Located(value)
        located.at = at
        return located, end

    decoder.parse_string = counted(parse_string)
    decoder.parse_array, decoder.parse_object = counted(decoder.parse_array), counted(decoder.parse_object)
    decoder.scan_once = scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    try:
        notebook = decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path or 'the notebook'} is not JSON ({error}); save it again with Jupyter") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells", notebook.get("worksheets")), list):
        raise SourceError(f"{path or 'the file'} is not a notebook: it has no cells; save it again with Jupyter")
    return notebook


def _cells(notebook: Mapping[str, Any], ends: list[int]) -> Iterator[_Cell]:
    default = _kernel_language(notebook)
    worksheets = notebook.get("worksheets")
    sheets = map(_mapping, [notebook, *(worksheets if isinstance(worksheets, list) else ())])
    groups = (sheet.get("cells") for sheet in sheets)
    for cell in (cell for group in groups if isinstance(group, list) for cell in map(_mapping, group)):
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
        vscode = _mapping(_mapping(cell.get("metadata")).get("vscode"))
        yield _Cell(
            str(cell.get("cell_type", "")),
            text.replace("\r", ""),
            (*lines, lines[-1] if lines else 1),
            _language_called(vscode.get("languageId", cell.get("language"))) or default,
        )


def _kernel_language(notebook: Mapping[str, Any]) -> str:
    """The kernel's language; Python where there is no kernel."""
    metadata = _mapping(notebook.get("metadata"))
    for where, key in (("kernelspec", "language"), ("language_info", "name"), ("kernelspec", "name")):
        if language := _language_called(_mapping(metadata.get(where)).get(key)):
            return language
    return "python" if not metadata.get("kernelspec") else ""


def _mapping(value: object) -> Mapping[str, Any]:
    """{} for what is no object of JSON."""
    return value if isinstance(value, dict) else {}


def _language_called(name: object) -> str:
    """A key of LANGUAGES or TEXT_KINDS for the name of a kernel; "" for others."""
    if not isinstance(name, str) or len(name) > MAX_HEADING:
        return ""
    return language_called(name) or language_called(re.sub(r"[-_ ]?v?\d[\d.]*$", "", name.strip())) or ""


def _read_cell(cell: _Cell, comment: str, repository: str, path: str, outside: bool) -> tuple[list[Document], bool]:
    language = cell_language(cell.text) or cell.language
    text = comment_out_magics(cell.text) if language == "python" else _CELL_MAGIC_LINE.sub(r"\1", cell.text)
    sign = "#" if language in _HASH_COMMENTS else _COMMENT_SIGNS.get(language, "//")
    above = [f"{sign} {line}" for line in comment.split("\n") if line.strip()]
    code = "\n".join([*above, text]).encode("utf-8", "replace")
    lines = (*[cell.lines[0]] * len(above), *cell.lines)
    return _read_code(code, language, lines, repository, path, outside=outside)


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
_ASSIGNMENT = re.compile(r"([ \t]*(?![ \t])[\w.\[\]'\", ]+=[ \t]*)([!%].*)", re.DOTALL)
_CELL_MAGIC_LINE = re.compile(r"^(\s*)%%[^\n]*")
_CELL_MAGIC = re.compile(r"\s*%%(\w+)[ \t]*([^\n]*)(?:\n|\Z)")

_NO_CODE = "none"
_CELL_LANGUAGES = {
    **dict.fromkeys(("bash", "sh", "script", "cmd"), "bash"),
    **dict.fromkeys(("javascript", "js"), "javascript"),
    **{name: name for name in ("ruby", "perl", "sql", "r", "julia", "cython")},
    **dict.fromkeys(("html", "svg", "latex", "markdown", "file", "writefile"), _NO_CODE),
}
"""Cell magics and the language of their cell."""


def cell_language(code: str) -> str:
    """The language of a cell by its cell magic; "" without one.

    >>> cell_language("%%bash\\nls"), cell_language("%%time\\nf()"), cell_language("%%writefile a.py\\nx = 1")
    ('bash', '', 'python')
    """
    match = _CELL_MAGIC.match(code)
    if match is None:
        return ""
    magic, words = match[1].lower(), match[2].split()
    if magic in ("writefile", "file") and words:
        return language_of(words[-1]) or text_kind(words[-1]) or ""
    return _CELL_LANGUAGES.get(magic, "")


def comment_out_magics(code: str) -> str:
    """The same lines, with those of IPython (`%matplotlib inline`, `!pip install`, `hide?`) made comments, so that the
    cell parses; a name that the result of a command is assigned to stays.

    >>> comment_out_magics("%matplotlib inline\\nx = !ls\\nprint('a'\\n  % x)")
    "#%matplotlib inline\\nx = None  # !ls\\nprint('a'\\n  % x)"
    """
    return "".join(map(_statement, _statements(code)))


def _statements(code: str) -> Iterator[str]:
    """Pieces that begin where a statement may begin: at a line's start outside brackets and strings."""
    start = depth = at = 0
    tokens, known = blank_quotes(code), -1
    while (match := _PYTHON_TOKEN.search(tokens, at)) is not None:
        at = match.end()
        if known < start and _MAGIC.match(code, start):  # its quotes and brackets belong to a shell
            at = _end(code, start)
            yield code[start:at]
            start = at
            continue
        known = start
        if match.lastgroup == "open":
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


_QUOTED = rb"(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|\{[^{}]{0,2000}\})"
_OPENING = re.compile(rb"<!--|<(script)\b([^<>\"'{]*(?:" + _QUOTED + rb"[^<>\"'{]*){0,30})>", re.IGNORECASE)
_CLOSING = re.compile(rb"</script\s*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"([^\s=\"'/]+)(?:\s*(=)\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_FRONT_MATTER = re.compile(rb"\s*---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)  # of Astro
_SCRIPT_LANGUAGES = {
    **dict.fromkeys(
        ("", "js", "javascript", "jsx", "mjs", "module", "babel", "ecmascript", "x-javascript"), "javascript"
    ),
    **dict.fromkeys(("ts", "typescript"), "typescript"),
    "tsx": "tsx",
    **dict.fromkeys(("coffee", "coffeescript"), "coffeescript"),
    **dict.fromkeys(("py", "python", "mpy"), "python"),
    "ruby": "ruby",
    "lua": "lua",
}
"""By `lang` or the end of `type`; other types (JSON, templates, shaders) are not scripts."""


_PHP = re.compile(  # its end may stand in a string or comment
    rb"<\?(=|php\b)?(?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|/\*.*?\*/|(?://|#)(?:(?!\?>)[^\n])*|(?!\?>).)*(?:\?>|\Z)",
    re.DOTALL,
)
_NO_LINE_END = re.compile(rb"[^\n]")


def read_page(source: bytes, repository: str, path: str, *, outside: bool) -> tuple[list[Document], bool]:
    """Documents of the scripts of a page, script by script, and whether one has syntax errors.

    Minified scripts are skipped as minified files are.
    """
    source = as_utf8(source)
    documents: list[Document] = []
    broken = False
    first, at = 1, 0
    for start, end, language in islice(scripts(source, astro=path.endswith(".astro")), MAX_SCRIPTS):
        code = source[start:end]
        first, at = first + source.count(b"\n", at, start), start
        if code.strip() and not reason_to_skip("script.js", code):
            lines = range(first, first + code.count(b"\n") + 1)
            script_documents, errors = _read_code(code, language, lines, repository, path, outside=outside)
            documents += script_documents
            broken |= errors
    return with_distinct_ids(documents), broken


def scripts(source: bytes, astro: bool = False) -> Iterator[tuple[int, int, str]]:
    """Start, end and language of the scripts of a page; one without an end goes to the end of the page.

    >>> list(scripts(b'<p><script lang="ts">f()</script><!-- <script>g()</script> -->'))
    [(21, 24, 'typescript')]
    """
    at = 0
    if astro and (match := _FRONT_MATTER.match(source)) is not None:
        yield *match.span(1), "typescript"
        at = match.end()
    while (match := _OPENING.search(source, at)) is not None:
        at = match.end()
        if match[1] is None:
            end = source.find(b"-->", at)
            at = len(source) if end < 0 else end + 3
            continue
        if match[2].rstrip().endswith(b"/"):  # <script src="..." />
            continue
        closing = _CLOSING.search(source, at)
        end = closing.start() if closing else len(source)
        if (language := _script_language(match[2])) is not None:
            yield at, end, language
        at = closing.end() if closing else len(source)


def _script_language(attributes: bytes) -> str | None:
    pairs = _ATTRIBUTE.findall(attributes)
    values = {name.lower(): (a or b or c).lower() for name, equals, a, b, c in pairs if equals}
    kind = values.get(b"lang") or values.get(b"type") or values.get(b"language") or b""
    word = kind.decode("ascii", "replace").strip().partition(";")[0].rpartition("/")[2]
    return _SCRIPT_LANGUAGES.get(word)


def read_scripts_in_php(source: bytes, repository: str, path: str, *, outside: bool) -> list[Document]:
    """The documents of the scripts in the HTML of a PHP file: its output is read as a value, other PHP as spaces."""
    source = as_utf8(source)
    text = blank_quotes(source.decode("latin-1"), lines=False)
    linear = blank_openings(text, "/*", "*/", "/\1").encode("latin-1")
    page = bytearray(source)
    for match in _PHP.finditer(linear):
        start, end = match.span()
        page[start:end] = _NO_LINE_END.sub(b"_" if match[1] == b"=" else b" ", match[0])
    return read_page(bytes(page), repository, path, outside=outside)[0]
