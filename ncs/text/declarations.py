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
_FIRST = re.compile(rb"#|\w+")
_NO_DECLARATION = frozenset(
    b"if elif else unless while until for foreach switch case when match return with assert import from yield print "
    b"echo throw raise del await goto class def function func fun fn".split()
)
"""First words of statements that declare nothing, or a document of its own."""
_VISIBLE = b"export declare default pub public private fileprivate internal opaque".split()
_TYPES = b"type typealias newtype using".split()
_NAMED = frozenset([*_VISIBLE, *_TYPES, b"typedef", b"define", b"#"])
_FIELD_WORDS = (
    b"public private protected internal static final readonly const volatile transient lateinit override virtual "
    b"abstract required var val let".split()
)
_FIELDS = frozenset(_FIELD_WORDS)
_MODIFIERS = rb"(?:(?:" + b"|".join(_VISIBLE) + rb")(?:\([^()]{0,40}\))?[ \t]+)*"
_EXPLICIT = re.compile(
    rb"(?:#[ \t]*define[ \t]+|" + _MODIFIERS + rb"(?:" + b"|".join(_TYPES) + rb")[ \t]+|define\([ \t]*['\"])(\w+)"
    rb"|typedef\b(?![ \t]+(?:struct|enum|union)\b[ \t]*\w*$).{0,200}?"
    rb"(?:\([ \t]*\*[ \t]*(\w+)[ \t]*\)|\b(\w+)[ \t]*(?:\[[^\]]*\])?$)"
)
_ASSIGNED = re.compile(
    _MODIFIERS + rb"[\w \t.<>,\[\]?*&$@]{0,120}?(?<!\w)(\w+)[ \t]*(?:\[[^\]]*\][ \t]*)*(?::.{1,100})?"
)
"""What stands before the `=`."""
_FIELD = re.compile(rb"(?:(?:" + b"|".join(_FIELD_WORDS) + rb")[ \t]+)+(?:[\w<>\[\],.?]+[ \t]+)?\$?(\w+)[ \t]*(?::|$)")
_ENUM = re.compile(rb"\benum\b[^{};]{0,200}\{((?:[^{};]|\{[^{}]{0,500}\})*)")
_MEMBER = re.compile(rb"(?:^|[{},]|\bcase\b)(?:[ \t\n\0]|#\[[^\]\n]{0,100}\])*([A-Za-z_]\w*)[ \t]*(?=[,=(;{\n\0]|$)")
_TELLING = re.compile(r"[A-Z]|[a-z0-9]_[a-z0-9]")


def declared_names(code: bytes) -> Tokens:
    """The names, each once, members of enums last. code: without comments; functions left out."""
    names: dict[str, None] = {}
    for statement in _ENDS.split(code):
        line = statement[:_WIDTH].strip(b" \t\r\0")
        first = _FIRST.match(line)
        word = first[0] if first else b""
        if len(line) < 3 or word in _NO_DECLARATION:
            continue
        if word in _NAMED and (explicit := _EXPLICIT.match(line)):
            _add(names, explicit[explicit.lastindex or 0])
            continue
        left, equals, right = line.partition(b"=")
        if equals:
            assigned = right[:1] not in (b"=", b">", b"~")
            found = _ASSIGNED.fullmatch(left.rstrip().replace(b"::", b".")) if assigned else None
        else:
            found = _FIELD.match(line) if word in _FIELDS else None
        if found:
            _add(names, found[1], telling=True)
    for members in _ENUM.findall(code) if b"enum" in code else ():
        for name in _MEMBER.findall(members):
            _add(names, name, telling=True)
    return tuple(names)[:MOST]


def _add(names: dict[str, None], name: bytes, *, telling: bool = False) -> None:
    text = name.decode("utf-8", "replace")
    if 1 < len(text) <= LONGEST and not text.startswith("__") and (not telling or _TELLING.search(text)):
        names[text] = None
