r"""The names that code outside functions declares: constants, fields, macros, type aliases, members of enums.

They are read statement by statement from code without comments, by the same rules for nearly all languages. Assigned
names count only with a capital or an underscore: nobody searches for `data`.

>>> declared_names(b"MAX_SIZE: int = 3\ndata = load(KEY=1)\nif A_B == 2:\n#define MIN(a, b) a\ntype id = str\n")
('MAX_SIZE', 'MIN', 'id')
>>> declared_names(b"const Width int = 80\nvar Level, Log = 3, 4\nIdle State = iota\nBusy\n", "go")
('Width', 'Level', 'Log', 'Idle', 'Busy')
>>> declared_names(b"enum Color {\n  Red, DarkGreen = 2,\n  Blue(3);\n  final int myCode;\n")
('Red', 'DarkGreen', 'myCode', 'Blue')
"""

from __future__ import annotations

import re

from ncs.types import Tokens

MAX_NAMES, MAX_LETTERS = 500, 80
"""Most names of one document, and letters of a name."""
_WIDTH = 300
"""Bytes of a statement that are read."""
_ENDS = re.compile(rb"[\n;{}]")
_FIRST, _WORD = re.compile(rb"#|\w+"), re.compile(rb"\w+")
_NO_DECLARATION = frozenset(
    b"if elif else unless while until for foreach switch case when match return with assert import from yield print "
    b"echo throw raise del await goto class def function func fun fn try except finally catch".split()
)
"""First words of statements without declarations, or that are documents themselves."""
_VISIBLE = b"export declare default pub public private fileprivate internal opaque".split()
_TYPES = b"type typealias newtype".split()
_NAMED = frozenset([*_VISIBLE, *_TYPES, b"using", b"typedef", b"define", b"#"])
_FIELD_WORDS = (
    b"public private protected internal static final readonly const volatile transient lateinit override virtual "
    b"abstract required open weak lazy unowned actual expect var val let".split()
)
_FIELDS = frozenset(_FIELD_WORDS)
_MODIFIERS = rb"(?:(?:" + b"|".join(_VISIBLE) + rb")(?:\([^()]{0,40}\))?[ \t]+)*"
_EXPLICIT = re.compile(
    rb"(?:#[ \t]*define[ \t]+|" + _MODIFIERS + rb"(?:function|" + b"|".join(_TYPES) + rb")[ \t]+|define\([ \t]*['\"])"
    rb"(\$?\w+)(?!\w|[ \t]*,[ \t]*$)"  # `type A,` is an import
    rb"|using[ \t]+(\w+)(?=[ \t]*=)"
    rb"|typedef\b(?![ \t]+(?:struct|enum|union)\b[ \t]*\w*$).{0,200}?"
    rb"(?:\([ \t]*\*[ \t]*(\w+)[ \t]*\)|\b(\w+)[ \t]*(?:\[[^\]]*\])?$)"
)
_ASSIGNED = re.compile(
    _MODIFIERS + rb"[\w \t.<>,\[\]?*&$@]{0,120}?(?<![\w$])(\$?\w+)[ \t]*(?:\[[^\]]*\][ \t]*)*(?::.{1,100})?"
)
"""The left side of an assignment."""
_SEVERAL = re.compile(rb"(?:(?:local|const|let|var|val)[ \t]+)?[(\[]?((?:\*?\w+[ \t]*,[ \t]*)+\*?\w+)[)\]]?")
_GO = re.compile(rb"(?:(?:const|var)[ \t]+)?(\w+(?:[ \t]*,[ \t]*\w+)*)(?:[ \t]+[\w.*\[\]]+)?")
"""The same of several names, and in Go, where the type comes last."""
_FIELD = re.compile(
    rb"(?:(?:" + b"|".join(_FIELD_WORDS) + rb")[ \t]+)+(?!(?:"
    rb"class|struct|enum|protocol|interface|extension|object|trait|record|fun|func|function|def)\b)"
    rb"(?:[\w<>\[\],.?]+[ \t]+)?\$?(\w+)[ \t]*(?::|$)"
)
_NAME_FIRST = re.compile(
    rb"(?:(?:@\w+(?:\([^()]*\))?|\w+(?:\([^()]*\))?)[ \t]+){0,5}(\w+)[!?]?[ \t]*:(?!:)[ \t]*[^\s,].*(?<!,)"
)
"""Not a line that ends in a comma (an entry of a table), except in Rust."""
_TYPE_FIRST = re.compile(
    rb"(?!(?:struct|union|enum)[ \t]+\w+$)(?:@\w+(?:\([^()]*\))?[ \t]+){0,5}"
    rb"(?:[\w.]+(?:::[\w.]+)*(?:<[^<>]*(?:<[^<>]*>[^<>]*)?>)?[ \t*&?\[\]]+){1,6}"
    rb"(\w+(?:[ \t]*,[ \t]*\*?\w+)*)(?:\[[^\]]*\])*"
)
_GO_FIELD = re.compile(rb"(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]+[*\[\w].*")
_FIELDS_OF = {
    "go": _GO_FIELD,
    **dict.fromkeys(("rust", "typescript", "tsx", "swift", "kotlin", "scala", "python"), _NAME_FIRST),
    **dict.fromkeys(("c", "cpp", "java", "csharp"), _TYPE_FIRST),
}
"""Fields of a class without a modifier, by language."""
_NO_FIELD = frozenset(
    b"class interface new extends implements throws where using operator namespace friend template package".split()
)
_DOLLARS = ("javascript", "typescript", "tsx")
"""Languages where a `$` is a part of a name."""
_CONTINUED, _PARENTHESES = re.compile(rb"\\\n(?:[^\n]*\\\n)*[^\n]*"), re.compile(rb"\([^()\n]*\)|[()]")
_GROUP = re.compile(rb"\b(?:const|var|type|import)[ \t\n]*$|\b(?:class|record|struct|object|enum)\b[^()\n]*$")
"""The text before a parenthesis around declarations, not arguments."""
_ENUM = re.compile(rb"\benum\b[^{};]{0,200}\{((?:[^{};]|\{[^{}]{0,500}\})*)")
_MEMBER = re.compile(
    rb"(?:^|[{},]|\bcase\b)(?:[ \t\n\0]|#?\[[^\]\n]{0,100}\]|@\w+(?:\([^()\n]{0,100}\))?)*"
    rb"([A-Za-z_]\w*)[ \t]*(?=[,=(;{\n\0]|$)"
)
_TELLING = re.compile(r"[A-Z]|[a-z0-9]_[a-z0-9]")


def declared_names(code: bytes, language: str = "", *, in_class: bool = False) -> Tokens:
    """The names, each once, members of enums last.

    code: without comments and functions, and best without strings; in_class: whether all of it is the body of a class,
    where fields need no modifier.
    """
    names: dict[str, None] = {}
    code, numbered = bytes(_without_arguments(_CONTINUED.sub(b"", code))), False
    field, dollar = _FIELDS_OF.get(language) if in_class else None, b"" if language in _DOLLARS else b"$"
    for statement in _ENDS.split(code):
        line = statement[:_WIDTH].strip(b" \t\r\0")
        first = _FIRST.match(line)
        word = first[0] if first else b""
        if len(line) < 3 or word in _NO_DECLARATION:
            numbered = numbered and line != b")"
            continue
        if word in _NAMED and (explicit := _EXPLICIT.match(line)):
            _add(names, explicit[explicit.lastindex or 0], dollar)
            continue
        left, equals, right = line.partition(b"=")
        if equals:
            left, numbered = left.rstrip().replace(b"::", b"."), language == "go" and b"iota" in right
            patterns = [_GO] if language == "go" else [_SEVERAL, _ASSIGNED]
            wrong = right[:1] in (b"=", b">", b"~") or left.count(b"<") > left.count(b">") or b" extends " in left
            found = None if wrong else next(filter(None, (each.fullmatch(left) for each in patterns)), None)
        elif numbered := numbered and word == line:
            found = first
        else:
            found = _FIELD.match(line) if word in _FIELDS else None
            if not found and field and _NO_FIELD.isdisjoint(_WORD.findall(line)):
                found = field.fullmatch(line.rstrip(b",") if language == "rust" else line)
        if found:
            for name in found[found.lastindex or 0].split(b","):
                _add(names, name.strip(b" \t*"), dollar, telling=True)
    for members in _ENUM.findall(code) if b"enum" in code else ():
        for name in _MEMBER.findall(members):
            _add(names, name, dollar, telling=True)
    return tuple(names)[:MAX_NAMES]


def _without_arguments(code: bytes) -> bytearray:
    """The code with arguments over several lines blanked out."""
    result, opened, inside = bytearray(code), list[int](), 0
    for match in _PARENTHESES.finditer(code):
        at = match.start()
        if match[0] == b"(":
            opened.append(-1 if _GROUP.search(code, max(0, at - MAX_LETTERS), at) else at)
            inside += opened[-1] >= 0
        elif match[0] == b")" and opened and (start := opened.pop()) >= 0:
            inside -= 1
            if not inside and code.find(b"\n", start, at) >= 0:
                result[start + 1 : at] = bytes(at - start - 1)
    return result


def _add(names: dict[str, None], name: bytes, dollar: bytes, *, telling: bool = False) -> None:
    text = name.lstrip(dollar).decode("utf-8", "replace")
    if 1 < len(text) <= MAX_LETTERS and not text.startswith("__") and (not telling or _TELLING.search(text)):
        names[text] = None
