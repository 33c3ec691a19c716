"""Pairs from guides: what a repository's Markdown and reStructuredText say above a code block, and the block.

People search in the words of headings ("Reading a file line by line") and of the sentence that announces an example
("To send a form, set its type:"); both become queries, the code in between their answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from corpora.codesearchnet.pipeline import partition_of
from corpora.codesearchnet.repositories import Repository, commit_of, find_license, read_files, url_of
from corpora.pairs import Pair
from ncs.extract import LANGUAGES
from ncs.extract.sections import DIRECTIVE, FENCE, end_of_fence, end_of_indented, plain
from ncs.text.tokens import content_words, tokenize

SOURCE = "guides"
MIN_CODE, MAX_CODE = 20, 3_000
"""Characters of a block."""
MAX_QUERY = 160
"""Characters; a longer sentence explains."""
MAX_BLOCKS = 2_000
"""Of one repository, so that no framework's manual outweighs the rest."""
_PROSE = re.compile(r"\.(?:md|mdx|markdown|rst)$", re.IGNORECASE)
_NO_GUIDE = re.compile(
    r"change|history|news|release|contribut|licen[cs]e|conduct"
    r"|(?:^|[/_.-])(?:zh|cn|ja|jp|ko|kr|de|fr|es|ru|pt|it|pl|tr|uk|vi|id)(?:[/_.-]|$)",
    re.IGNORECASE,
)
"""Paths of what describes the project, and of translations."""
_HEADING, _UNDERLINE = re.compile(r"#{1,6} +(.+?)[ #]*$"), re.compile(r'([=~^*"-])\1{2,}\s*$')
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NO_SENTENCE = ("|", "<", "..")
MAX_LINES = 20
"""Lines of a paragraph whose end is read."""
_ALIASES = {
    **{"py": "python", "python3": "python", "js": "javascript", "jsx": "javascript", "ts": "typescript"},
    **{"sh": "bash", "shell": "bash", "golang": "go", "rb": "ruby", "rs": "rust", "cs": "csharp", "c#": "csharp"},
    **{"c++": "cpp", "kt": "kotlin", "hs": "haskell", "ex": "elixir"},
}


class Block(NamedTuple):
    """A code block: its first line, the heading above it, the last sentence above it ("" for none), language, code."""

    line: int
    heading: str
    sentence: str
    language: str
    code: str


def guide_pairs(repository: Repository) -> Iterator[Pair]:
    """The pairs of a repository's guides, each once; none of other languages than English."""
    commit, license, split = commit_of(repository), find_license(repository), partition_of(repository.name)
    seen: set[tuple[str, str]] = set()
    blocks = 0
    for file in read_files(repository, accepts=lambda path: bool(_PROSE.search(path) and not _NO_GUIDE.search(path))):
        text = file.data.decode("utf-8", "replace")
        for block in read_blocks(text):
            if (blocks := blocks + 1) > MAX_BLOCKS:
                return
            url = url_of(repository, commit, file.path, block.line, block.line + block.code.count("\n") + 1)
            for query in (block.heading, block.sentence):
                if _is_query(query) and (query, block.code) not in seen:
                    seen.add((query, block.code))
                    yield Pair(
                        query, block.code, block.language, SOURCE, f"{url}/{query}", split=split, license=license
                    )


def read_blocks(text: str) -> Iterator[Block]:
    r"""The code blocks of a text in languages that are read, with what stands above each.

    >>> text = "# Read a *file*\n\nOpen it. Then read it:\n\n```py\nwith open(path) as file:\n    read(file)\n```\n"
    >>> block, = read_blocks(text)
    >>> block.line, block.heading, block.sentence, block.language, block.code
    (6, 'Read a file', 'Then read it', 'python', 'with open(path) as file:\n    read(file)')
    """
    lines, at = text.split("\n"), 0
    heading, paragraph, ended = "", list[str](), False
    while at < len(lines):
        line, at = lines[at], at + 1
        if opened := FENCE.match(line):
            end = end_of_fence(lines, at, opened[1])
            code, after = lines[at:end], end + 1
        elif opened := DIRECTIVE.match(line):
            end = after = end_of_indented(lines, at, len(opened[1]))
            code = [row for row in lines[at:end] if not row.lstrip().startswith(":")]
        if opened:
            name = opened[2].lower()
            block = Block(at + 1, heading, _last_sentence(paragraph), _ALIASES.get(name, name), _dedented(code))
            if block.language in LANGUAGES and MIN_CODE <= len(block.code) <= MAX_CODE:
                yield block
            at, paragraph = after, []
        elif found := _HEADING.match(line):
            heading, paragraph = plain(found[1]), []
        elif _UNDERLINE.match(line) and paragraph and not ended:
            heading, paragraph = plain(paragraph[-1]), []
        elif line.strip():
            paragraph = [line] if ended else [*paragraph[-MAX_LINES:], line]
        ended = not line.strip()


def _last_sentence(paragraph: Sequence[str]) -> str:
    """The last sentence; "" where it is a table, a list of links or the like."""
    if not paragraph or paragraph[0].lstrip().startswith(_NO_SENTENCE):
        return ""
    return _SENTENCE.split(plain(" ".join(paragraph)))[-1].rstrip(":. ")


def _dedented(lines: Sequence[str]) -> str:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:].rstrip() for line in lines).strip("\n")


def _is_query(text: str) -> bool:
    return text.isascii() and len(text) <= MAX_QUERY and len(set(content_words(tokenize(text)))) > 1
