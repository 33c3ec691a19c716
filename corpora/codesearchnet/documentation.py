"""A function's documentation: the raw comment above it, its first paragraph, its tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ncs.extract.comments import clean_comment

LINE_MARKS = ("//", "#", "--", ";;", "%")
_BLOCKS = (("*/", "/*"), ("-}", "{-"), ("]]", "--[["), ("=end", "=begin"), ('"""', "@doc"))
"""How a block comment ends and starts; the last is an attribute of Elixir."""
_LEFT = re.compile(
    r"^[ \t]*(?:/\*+!?|\*+(?!/)|//+[!<]?|#+:?(?!\[)|--+(?!\[)[ ]?\|?|;+|%+|\{-[ ]?\|?|--\[=*\[|=begin\b"
    r'|@doc[ \t(]*(?:~[sS])?"{3})?[ \t]?'
)
_RIGHT = re.compile(r'[ \t]*(?:\*+/|-\}|\]=*\]|=end|"{3})?[ \t]*$')
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_LEADING_TAG = re.compile(r"^\s*[@\\](?:brief|description|desc|summary|short|doc)\b[ \t]*", re.IGNORECASE)
_END = re.compile(
    r"^\s*(?:[@\\][a-zA-Z]+\b"  # @param of Javadoc, \param of Doxygen
    r"|:(?:param|parameter|arg|type|return|returns|rtype|raise|raises|yield|yields|var|ivar|keyword)\b"
    r"|(?:Args|Arguments|Parameters|Params|Returns|Return|Yields|Raises|Examples?|Usage|Notes?)\s*:\s*$"
    r"|(?:Parameters|Returns|Raises|Examples|Notes)\s*$|-{3,}\s*$|={3,}\s*$|>>>\s|```|#+\s)"
)
_PARAGRAPH = re.compile(r"\s*</?p\s*/?>|<br\s*/?>\s*<br\s*/?>", re.IGNORECASE)
_TOKEN = re.compile(r"\w+|[^\w\s]+")


def comment_above(lines: Sequence[str], start_line: int) -> str:
    """The comment that ends right above a line (1-based), without its marks, its empty lines kept; "" for none.

    A block comment may have empty lines below it, line comments may not.

    >>> comment_above(["/**", " * Reads.", " *", " * More.", " */", "int f() {"], 6)
    'Reads.\\n\\nMore.'
    >>> comment_above(["x = 1", "# Reads", "# it.", "def f"], 4)
    'Reads\\nit.'
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
            while first > 0 and start not in lines[first]:
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
    kept = []
    for line in text.split("\n"):
        if not line.strip() or _END.match(line):
            break
        kept.append(line)
    return " ".join(clean_comment("\n".join(kept)).split()) if kept else ""


def documentation_tokens(paragraph: str) -> tuple[str, ...]:
    """Words, and runs of punctuation.

    >>> documentation_tokens("Reads a file's lines.")
    ('Reads', 'a', 'file', "'", 's', 'lines', '.')
    """
    return tuple(_TOKEN.findall(paragraph))
