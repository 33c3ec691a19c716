"""Pages and components (HTML, Vue, Svelte, Astro, HTML in PHP): their scripts, each read in its language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ncs.extract.embedded import Piece, read_piece, with_distinct_ids
from ncs.extract.source_bytes import as_utf8
from ncs.sources.filters import reason_to_skip
from ncs.types import Document

MAX_SCRIPTS = 500
"""Scripts of a page; later ones are not read."""

_QUOTED = rb"(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|\{[^{}]{0,2000}\})"
_OPENING = re.compile(rb"<!--|<(script)\b([^<>\"'{]*(?:" + _QUOTED + rb"[^<>\"'{]*){0,100})>", re.IGNORECASE)
_CLOSING = re.compile(rb"</script\s*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"([^\s=\"'/]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_FRONT_MATTER = re.compile(rb"\s*---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)  # of Astro
_LANGUAGES = {
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


class Script(NamedTuple):
    """The byte range of a script's code, and its language."""

    start: int
    end: int
    language: str


def read(source: bytes, repository: str, path: str, *, outside: bool) -> tuple[list[Document], bool]:
    """Documents of the scripts of a page, script by script, and whether one has syntax errors.

    Minified scripts are skipped as minified files are; markup makes no documents.
    """
    source = as_utf8(source)
    documents: list[Document] = []
    broken = False
    line = 1
    at = 0
    for number, script in enumerate(scripts(source, astro=path.endswith(".astro"))):
        if number >= MAX_SCRIPTS:
            break
        code = source[script.start : script.end]
        line += source.count(b"\n", at, script.start)
        at = script.start
        if not code.strip() or reason_to_skip("script.js", code):
            continue
        lines = range(line, line + code.count(b"\n") + 1)
        script_documents, errors = read_piece(Piece(code, script.language, lines), repository, path, outside=outside)
        documents += script_documents
        broken |= errors
    return with_distinct_ids(documents), broken


def scripts(source: bytes, astro: bool = False) -> Iterator[Script]:
    """The scripts of a page in order; one without an end goes to the end of the page.

    >>> [(s.start, s.language) for s in scripts(b'<p><script lang="ts">f()</script><!-- <script>g()</script> -->')]
    [(21, 'typescript')]
    """
    at = 0
    if astro and (match := _FRONT_MATTER.match(source)) is not None:
        yield Script(*match.span(1), "typescript")
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
        if (language := _language(match[2])) is not None:
            yield Script(at, end, language)
        at = closing.end() if closing else len(source)


def _language(attributes: bytes) -> str | None:
    values = {name.lower(): (a or b or c).lower() for name, a, b, c in _ATTRIBUTE.findall(attributes)}
    named = values.get(b"lang") or values.get(b"type") or values.get(b"language") or b""
    word = named.decode("ascii", "replace").strip().partition(";")[0].rpartition("/")[2]
    return _LANGUAGES.get(word)


def read_scripts_in_php(source: bytes, repository: str, path: str, *, outside: bool) -> list[Document]:
    """The documents of the scripts in the HTML of a PHP file."""
    return read(_blank_php(as_utf8(source)), repository, path, outside=outside)[0]


def _blank_php(source: bytes) -> bytes:
    """Output of PHP replaced by a value, other PHP by spaces."""

    def blank(match: re.Match[bytes]) -> bytes:
        return _NO_LINE_END.sub(b"_" if match[1] == b"=" else b" ", match[0])

    return _PHP.sub(blank, source)
