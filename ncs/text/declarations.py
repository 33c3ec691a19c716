r"""The names that code outside functions declares: constants, fields, macros, types by another name, members of enums.

They are read statement by statement, in all languages alike, from code without its comments. Of what is assigned only
names with a capital or an underscore count: `data = load()` declares nothing that somebody looks for.

>>> declared_names(b"MAX_SIZE: int = 3\ndata = load(KEY=1)\nif A_B == 2:\n#define MIN(a, b) a\ntype id = str\n")
('MAX_SIZE', 'MIN', 'id')
>>> declared_names(b"enum Color {\n  Red, DarkGreen = 2,\n  Blue(3);\n  final int myCode;\n")
('DarkGreen', 'myCode', 'Red', 'Blue')
"""

from __future__ import annotations

import re

from ncs.types import Tokens

MOST = 500
"""Names of one document, the first: tables of generated code have thousands."""
LONGEST = 80
_WIDTH = 300
"""Bytes of a statement that are read; what is declared stands at its beginning."""
_ENDS = re.compile(rb"[\n;{}]")
_MODIFIERS = (
    rb"(?:(?:export|declare|default|pub(?:\([^()\n]{0,40}\))?|public|private|fileprivate|internal|opaque)[ \t]+)*"
)
_EXPLICIT = re.compile(
    rb"[ \t]*(?:#[ \t]*define[ \t]+|"
    + _MODIFIERS
    + rb"(?:type|typealias|newtype|using)[ \t]+|define\([ \t]*['\"])(\w+)"
)
_TYPEDEF = re.compile(
    rb"[ \t]*typedef\b(?![ \t]+(?:struct|enum|union)\b[ \t]*\w*[ \t]*$)[^\n]{0,200}?"
    rb"(?:\([ \t]*\*[ \t]*(\w+)[ \t]*\)|\b(\w+)[ \t]*(?:\[[^\]\n]*\])?[ \t]*$)"
)
_NO_DECLARATION = re.compile(
    rb"[ \t]*(?:if|elif|else|unless|while|until|for|foreach|switch|case|when|match|return|with|assert|import|from|yield"
    rb"|print|echo|throw|raise|del|await|goto)\b"
)
_ASSIGNED = re.compile(
    rb"[ \t]*"
    + _MODIFIERS
    + rb"[\w \t.:<>,\[\]?*&$@]{0,120}?(?<!\w)(\w+)[ \t]*(?:\[[^\]\n]*\][ \t]*)*(?::[^=\n{}]{1,100})?=(?![=>~])"
)
_FIELD = re.compile(
    rb"[ \t]*(?:(?:public|private|protected|internal|static|final|readonly|const|volatile|transient|lateinit|override"
    rb"|virtual|abstract|required|var|val|let)[ \t]+)+(?:[\w<>\[\],.?]+[ \t]+)?(\w+)[ \t]*(?::|$)"
)
_ENUM = re.compile(rb"\benum\b[^{};]{0,200}\{((?:[^{};]|\{[^{}]*\})*)")
_MEMBER = re.compile(rb"(?:^|[{},]|\bcase\b)(?:[ \t\n\0]|#\[[^\]\n]*\])*([A-Za-z_]\w*)[ \t]*(?=[,=(;{\n\0]|$)")
_TELLING = re.compile(r"[A-Z]|[a-z0-9]_[a-z0-9]")


def declared_names(code: bytes) -> Tokens:
    """The names, each once, members of enums last. code: without comments; functions left out."""
    names: dict[str, None] = {}
    for statement in _ENDS.split(code):
        line = statement[:_WIDTH]
        if explicit := _EXPLICIT.match(line) or _TYPEDEF.match(line):
            _add(names, explicit[explicit.lastindex or 0])
        elif not _NO_DECLARATION.match(line) and (found := _ASSIGNED.match(line) or _FIELD.match(line)):
            _add(names, found[1], telling=True)
    for members in _ENUM.findall(code):
        for name in _MEMBER.findall(members):
            _add(names, name, telling=True)
    return tuple(names)[:MOST]


def _add(names: dict[str, None], name: bytes, *, telling: bool = False) -> None:
    text = name.decode("utf-8", "replace")
    if 1 < len(text) <= LONGEST and not text.startswith("__") and (not telling or _TELLING.search(text)):
        names[text] = None
