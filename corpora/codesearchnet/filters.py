"""Splitting a function into code and documentation, and the filters by name and length (Husain et al. 2019, 2).

Documentation is the first paragraph of the comment above; code is the leaves of tree-sitter's tree without comments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from ncs.extract.comments import clean_comment, unquote
from ncs.extract.treesitter import parser_of

MIN_TOKENS = 3
"""Fewest tokens of documentation."""
MIN_LINES = 3
"""Fewest lines of code, without comments and empty lines."""
_KINDS = frozenset(("constructor", "initializer"))
_OPERATORS = "lt le eq ne gt ge add radd iadd sub rsub isub mul rmul imul matmul truediv rtruediv floordiv rfloordiv"
_PYTHON = (
    f"init new del call repr str bytes format hash bool len {_OPERATORS} mod rmod pow rpow lshift rshift and or xor"
    " rand ror rxor neg pos abs invert int float complex index round trunc floor ceil divmod iter next reversed"
    " contains getitem setitem delitem missing getattr setattr delattr getattribute dir get set delete set_name enter"
    " exit aenter aexit await aiter anext copy deepcopy reduce reduce_ex getstate setstate getnewargs sizeof"
    " init_subclass class_getitem instancecheck subclasscheck subclasshook post_init prepare fspath length_hint"
)
_ECMASCRIPT = "constructor toString toLocaleString valueOf toJSON"
_PHP = (
    "construct destruct call callStatic get set isset unset sleep wakeup serialize unserialize toString invoke"
    " set_state clone debugInfo"
)
STANDARD: Mapping[str, frozenset[str]] = {
    language: frozenset(names.split())
    for language, names in {
        "java": "toString hashCode equals compareTo clone finalize notify notifyAll wait getClass",
        "python": " ".join(f"__{name}__" for name in _PYTHON.split()),
        "go": "String GoString Error init Len Less Swap MarshalJSON UnmarshalJSON",
        "javascript": _ECMASCRIPT,
        "typescript": _ECMASCRIPT,
        "tsx": _ECMASCRIPT,
        "php": " ".join(f"__{name}" for name in _PHP.split()),
        "ruby": "initialize initialize_copy to_s to_str to_sym to_a to_h to_i to_f inspect hash == != === <=> < <= > >="
        " =~ eql? equal? coerce dup clone method_missing respond_to? respond_to_missing? display between?",
        "csharp": "ToString GetHashCode Equals CompareTo Dispose Finalize GetEnumerator Clone",
        "kotlin": "toString hashCode equals compareTo clone finalize component1 component2 component3",
        "scala": "toString hashCode equals canEqual compareTo clone finalize apply unapply",
        "swift": "init deinit hash encode == < description",
        "rust": "fmt clone clone_from default drop eq ne cmp partial_cmp hash from into try_from as_ref as_mut borrow"
        " deref deref_mut next index index_mut",
        "cpp": "main operator== operator!= operator< operator> operator<= operator>= operator<=> operator= operator<<"
        " operator>> operator[] operator() swap",
        "c": "main",
        "lua": "__index __newindex __call __tostring __eq __lt __le __len __concat",
        "elixir": "init child_spec start_link handle_call handle_cast handle_info terminate code_change __using__",
        "haskell": "show showsPrec compare == /= main",
        "zig": "format main init deinit",
    }.items()
}
"""language -> names that every class may have: operators, conversions, comparison, copying (our reading of "standard
extension methods"; the paper names `__str__` and `toString`)."""

TEST = "'test' in the name"
CONSTRUCTOR = "constructor"
METHOD = "standard method"
SHORT = "under 3 lines of code"
UNDOCUMENTED = "no documentation"
FEW_TOKENS = "under 3 tokens of documentation"


def reason_to_drop(language: str, kind: str, name: str, qualified_name: str) -> str | None:
    """The reason to leave out a function by its name, None to keep it; "test" may be in its class's name.

    >>> reason_to_drop("java", "method", "toString", "A.toString"), reason_to_drop("python", "function", "__str__", "A")
    ('standard method', 'standard method')
    >>> reason_to_drop("java", "method", "setUp", "LoginTest.setUp"), reason_to_drop("java", "constructor", "A", "A.A")
    ("'test' in the name", 'constructor')
    >>> reason_to_drop("php", "method", "toString", "A.toString")
    """
    if "test" in qualified_name.lower():
        return TEST
    if kind in _KINDS or (name == "__init__" and language == "python"):
        return CONSTRUCTOR
    return METHOD if name in STANDARD.get(language, ()) else None


LINE_MARKS = ("//", "#", "--", ";;", "%")
_BLOCKS = (("*/", "/*"), ("-}", "{-"), ("]]", "--[["), ("=end", "=begin"), ('"""', "@doc"))
"""How a block comment ends and starts; the last is an attribute of Elixir."""
MAX_COMMENT = 1_000
"""Lines of a block comment."""
_LEFT = re.compile(
    r"^[ \t]*(?:/\*+!?|\*+(?!/)|//+[!<]?|#+:?(?!\[)|--+(?!\[)[ ]?\|?|;+|%+|\{-[ ]?\|?|--\[=*\[|=begin\b"
    r'|@doc[ \t(]*(?:~[sS])?"{3})?[ \t]?'
)
_RIGHT = re.compile(r'(?<![ \t])[ \t]*(?:(?:(?<!\*)\*+/|-\}|\]=*\]|=end|"{3})[ \t]*)?$')
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_LEADING_TAG = re.compile(r"^\s*[@\\](?:brief|description|desc|summary|short|doc)\b[ \t]*", re.IGNORECASE)
_END = re.compile(
    r"^\s*(?:[@\\][a-zA-Z]+\b"  # @param of Javadoc, \param of Doxygen
    r"|:(?:param|parameter|arg|type|return|returns|rtype|raise|raises|yield|yields|var|ivar|keyword)\b"
    r"|(?:Args|Arguments|Parameters|Params|Returns|Return|Yields|Raises|Examples?|Usage|Notes?)\s*:\s*$"
    r"|(?:Parameters|Returns|Raises|Examples|Notes)\s*$|-{3,}\s*$|={3,}\s*$|>>>\s|```|#+\s)"
)
_PARAGRAPH = re.compile(r"(?<!\s)\s*</?p\s*/?>|<br\s*/?>\s*<br\s*/?>", re.IGNORECASE)
_TOKEN = re.compile(r"\w+|[^\w\s]+")


def comment_above(lines: Sequence[str], start_line: int) -> str:
    """The comment that ends right above a line (1-based), without its marks, its empty lines kept; "" for none.

    A block comment may have empty lines below it, line comments may not.

    >>> comment_above(["/**", " * Reads.", " *", " * More.", " */", "", "int f() {"], 7)
    'Reads.\\n\\nMore.'
    >>> comment_above(["# Far", "", "# Reads", "#", "# it.", "def f"], 6), comment_above(["# Far", "", "def f"], 3)
    ('Reads\\n\\nit.', '')
    """
    last = start_line - 2
    below = last
    while last >= 0 and not lines[last].strip():
        last -= 1
    if last < 0:
        return ""
    text = lines[last].rstrip()
    for end, start in _BLOCKS:
        if text.endswith(end):
            first = last
            while first > 0 and start not in lines[first] and last - first < MAX_COMMENT:
                first -= 1
            return without_marks(lines[first : last + 1])
    first = last + 1
    while last == below and first > 0 and lines[first - 1].lstrip().startswith(LINE_MARKS):
        first -= 1
    return without_marks(lines[first : last + 1])


def without_marks(lines: Sequence[str]) -> str:
    """The text of a comment's lines."""
    return "\n".join(_RIGHT.sub("", _LEFT.sub("", line)).strip() for line in lines).strip()


def first_paragraph(documentation: str) -> str:
    """The first full paragraph: up to an empty line, or to where arguments, results or examples begin (section 2).

    Tags and HTML are taken off, C# gives its summary. "" where the documentation begins with its arguments.

    >>> first_paragraph("Hides the {@link Keyboard}.\\n\\nMore about it.")
    'Hides the Keyboard.'
    >>> first_paragraph("Opens a file\\nfor reading.\\n:param path: where")
    'Opens a file for reading.'
    >>> first_paragraph("@param path where"), first_paragraph("@brief Opens it.\\n@param path where")
    ('', 'Opens it.')
    """
    if (summary := _SUMMARY.search(documentation)) is not None:
        documentation = summary[1]
    text = _LEADING_TAG.sub("", _PARAGRAPH.sub("\n\n", documentation).strip())
    lines = []
    for line in text.split("\n"):
        if not line.strip() or _END.match(line):
            break
        lines.append(line)
    return " ".join(clean_comment("\n".join(lines)).split()) if lines else ""


def documentation_tokens(paragraph: str) -> tuple[str, ...]:
    """Words, and runs of punctuation.

    >>> documentation_tokens("Reads a file's lines.")
    ('Reads', 'a', 'file', "'", 's', 'lines', '.')
    """
    return tuple(_TOKEN.findall(paragraph))


_CLASS = (b"class X {\n", b"\n}")
_AROUND: Mapping[tuple[str, str], tuple[bytes, bytes]] = {
    **{(language, "method"): _CLASS for language in ("java", "csharp", "javascript", "typescript", "tsx")},
    **{(language, "property"): _CLASS for language in ("csharp", "kotlin", "swift", "scala")},
    ("php", "method"): (b"<?php class X {\n", b"\n}"),
    ("php", "function"): (b"<?php\n", b""),
}
"""(language, kind) -> what a function needs around it to parse."""
_STRINGS = (
    "string string_literal raw_string_literal interpreted_string_literal template_string char_literal "
    "character_literal encapsed_string string_value heredoc nowdoc line_string_literal multi_line_string_literal "
    "verbatim_string_literal rune_literal regex quoted_content"
)
_WHOLE = frozenset(_STRINGS.split())
"""Nodes that are one token, as in the published corpus: strings."""


class Code(NamedTuple):
    """tokens: of the code. text: the code without comments, docstring and empty lines. docstring: its raw text."""

    tokens: tuple[str, ...]
    text: str
    docstring: str


def read_code(function: str, language: str, kind: str = "function") -> Code:
    """Split a function. The docstring is Python's: the first expression of the outermost body.

    >>> code = read_code('def f(a):\\n    "Adds."\\n    # one\\n    return a + 1', "python")
    >>> code.tokens, code.docstring
    (('def', 'f', '(', 'a', ')', ':', 'return', 'a', '+', '1'), 'Adds.')
    >>> code.text
    'def f(a):\\n    return a + 1'
    """
    before, after = _AROUND.get((language, kind), (b"", b""))
    source = function.encode("utf-8", "replace")
    program = before + source + after
    first, last = len(before), len(before) + len(source)
    spans: list[tuple[int, int]] = []
    dropped: set[tuple[int, int]] = set()
    docstring = ""
    for node in _nodes(parser_of(language).parse(program).root_node, dropped):
        if language == "python" and not docstring and node.type == "block":
            string = _docstring(node)
            language = ""  # the outermost body is this one
            if string is not None:
                dropped.add((string.start_byte, string.end_byte))
                literal = program[string.start_byte : string.end_byte].decode("utf-8", "replace")
                docstring = inspect.cleandoc(unquote(literal.lstrip("rRuUbBfF")))
        elif _is_token(node) and first <= node.start_byte < node.end_byte <= last:
            spans.append((node.start_byte, node.end_byte))
    tokens = tuple(program[start:end].decode("utf-8", "replace") for start, end in spans)
    return Code(tokens, _without(source, [(a - first, b - first) for a, b in dropped]), docstring)


def _is_token(node: Node) -> bool:
    return node.child_count == 0 or node.type in _WHOLE


def _nodes(root: Node, dropped: set[tuple[int, int]]) -> Iterator[Node]:
    """All nodes, the outer before the inner; comments are dropped, and nothing below a token or what was dropped."""
    pending = [root]
    while pending:
        node = pending.pop()
        if "comment" in node.type:
            dropped.add((node.start_byte, node.end_byte))
        elif (node.start_byte, node.end_byte) not in dropped:
            yield node
            if not _is_token(node):
                pending += reversed(node.children)


def _docstring(block: Node) -> Node | None:
    first = next(iter(block.named_children), None)
    if first is not None and first.type == "expression_statement":
        first = first.named_child(0)
    return first if first is not None and first.type in ("string", "concatenated_string") else None


def _without(source: bytes, spans: list[tuple[int, int]]) -> str:
    """The source without these ranges and without empty lines."""
    parts = []
    at = 0
    for start, end in sorted(spans):
        parts.append(source[at : max(at, start)])
        at = max(at, end)
    parts.append(source[at:])
    lines = b"".join(parts).decode("utf-8", "replace").split("\n")
    return "\n".join(line.rstrip() for line in lines if line.strip())
