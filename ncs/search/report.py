"""The parts of a bug report: title, prose, code, names and paths.

Text of the report's form is left out: comments, sections about versions and the system, check lists, addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ncs.errors import BadInput
from ncs.messages import EMPTY
from ncs.search.question import check_length
from ncs.search.traces import Trace, read_trace
from ncs.text.tokens import STOP_WORDS, content_words, tokenize

MAX_NAMES, MAX_PATHS = 300, 300
"""Most names and paths read: a log has thousands."""
MARKED, CAPITAL, PLAIN = 1.0, 0.3, 0.15
"""Weights: of a name written as code (in backticks, with a dot, an underscore or camel case), of a capitalized word of
the title, and of another word of the title."""
MIN_LINES, MIN_WORDS, MIN_STOP_WORDS, MIN_TITLE = 3, 10, 0.2, 3
"""Fewest lines of a report, words of its prose, share of stop words in it, and content words of its title."""
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r"\s*(```+|~~~+)")
_HEADING = re.compile(r"\s*(?:#{1,6}\s+(.{1,80}?)[\s#:]*|\*\*(.{1,80}?)\*\*:?|([A-Z][\w '/-]{2,40}):)\s*")
_ASIDE = re.compile(
    r"\b(?:environment|versions?|system|platform|screenshots?|check ?list|your (?:project|setup)|machine|os)\b",
    re.IGNORECASE,
)
"""Headings of sections that are not about the defect."""
_NO_PROSE = re.compile(
    r"\s*(?:[-*] \[[ xX]\]|</?(?:details|summary)\b|- (?:OS|Python version|Browser)\b)"
    r"|.*\b(?:clear and concise description of|any other context about|steps to reproduce the behaviou?r)\b",
    re.IGNORECASE,
)
"""Check lists, and the sentences of the forms that GitHub suggests."""
_SESSION = re.compile(r"\s*(?:>>>|\.\.\.|In ?\[\d*\]:|Out ?\[\d*\]:|\$ )|\t|    |\s*at \S+\(")
_TRACE = re.compile(r"Traceback|Exception in thread|panic: |goroutine \d|\s*(?:at|File) ")
_NO_TITLE = re.compile(rf"\s*(?://|/\*|#!|--|<|[^\n]*[;{{]\s*\n|{_TRACE.pattern})")
"""How code and traces begin."""
_URL = re.compile(r"https?://\S+")
_BLOB = re.compile(r"/(?:blob|tree|raw)/[^/\s]+/([^\s#?)\"'>]+)")
_QUOTED = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")
_DOTTED = re.compile(r"(?<!\w)[^\W\d]\w*(?:(?:\.|::|#)[^\W\d]\w*)+")
_NAME = re.compile(r"[^\W\d]\w*")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Za-z]\d*_\w|^_+\w")
_PATH = re.compile(r"(?<![\w.\\/-])[\w.\\/-]{1,300}\.[A-Za-z]{1,5}\b")


@dataclass(frozen=True, slots=True)
class Report:
    """The parts of a report. names: of title and prose, with weights; used: names of its code; paths: split."""

    title: str
    prose: str
    code: str
    names: Mapping[str, float]
    used: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    trace: Trace

    @property
    def text(self) -> str:
        """Title, prose and code."""
        return "\n".join((self.title, self.prose, self.code))


def read_report(text: str) -> Report:
    r"""The parts of a report; raises BadInput for an empty one and one that is too long.

    >>> report = read_report("Crash in `parse`\n<!-- be kind -->\nIt fails:\n```\nfix(day=3)\n```\n## Version\n3.2")
    >>> report.title, report.prose, report.code, report.names["parse"]
    ('Crash in `parse`', 'It fails:', 'fix(day=3)', 1.0)
    """
    check_length(text, "report")
    if not text.strip():
        raise BadInput(EMPTY)
    text = _COMMENT.sub("", text.replace("\r\n", "\n"))
    trace = read_trace(text)
    title, _, body = text.strip().partition("\n")
    if _TRACE.match(title):  # a trace alone: what it says stands for a title
        title, body = trace.message.strip().rpartition("\n")[2], text
    title = title.strip("# \t")
    prose, code = _split(body)
    paths = [*_PATH.findall(_URL.sub(" ", text)), *_BLOB.findall(text)]
    parts = [tuple(part for part in re.split(r"[/\\]", path) if part not in ("", ".", "..")) for path in paths]
    names = _names(title, _URL.sub(" ", prose))
    used = dict.fromkeys(name for name in _NAME.findall(code) if name not in names)
    return Report(
        title,
        _URL.sub(" ", prose),
        code,
        names,
        tuple(used)[:MAX_NAMES],
        tuple(dict.fromkeys(filter(None, parts)))[:MAX_PATHS],
        trace,
    )


def report_title(text: str) -> str:
    r"""The title of a bug report; "" of code, of a trace and of what is no longer than a question.

    >>> prose = "It began with the last release, and only happens where a folder has no file at all:\nsee the log."
    >>> report_title(f"Crash when reading an empty folder\n{prose}"), report_title(prose)
    ('Crash when reading an empty folder', '')
    """
    if len(text.splitlines()) < MIN_LINES or _NO_TITLE.match(text):
        return ""
    report = read_report(text)
    words = tokenize(report.prose)
    is_prose = len(words) >= MIN_WORDS and sum(word in STOP_WORDS for word in words) >= MIN_STOP_WORDS * len(words)
    return report.title if is_prose and len(content_words(tokenize(report.title))) >= MIN_TITLE else ""


def _split(body: str) -> tuple[str, str]:
    """Prose and code, without check lists and sections under _ASIDE headings."""
    prose: list[str] = []
    code: list[str] = []
    fence, aside = "", False
    for line in body.splitlines():
        if fence:
            if line.strip().startswith(fence):
                fence = ""
            elif not aside:
                code.append(line)
        elif opening := _FENCE.match(line):
            fence = opening[1]
        elif heading := _HEADING.fullmatch(line):
            aside = bool(_ASIDE.search(next(filter(None, heading.groups()))))
            prose += [line] if heading[3] and not aside else []
        elif not aside and line.strip() and not _NO_PROSE.match(line):
            (code if _SESSION.match(line) else prose).append(line)
    return "\n".join(prose), "\n".join(code)


def _names(title: str, prose: str) -> dict[str, float]:
    """The names that title and prose mention, with their weights."""
    marked: Iterable[str] = [
        *(name for quoted in _QUOTED.findall(f"{title}\n{prose}") for name in _all_names(quoted)),
        *(name for text in (title, prose) for name in _all_names(text) if _HUMP.search(name) or _DOTTED.match(name)),
    ]
    names = dict.fromkeys(marked, MARKED)
    for name in _NAME.findall(title):
        names.setdefault(name, CAPITAL if name[0].isupper() else PLAIN)
    return dict(list(names.items())[:MAX_NAMES])


def _all_names(text: str) -> list[str]:
    return _DOTTED.findall(text) + _NAME.findall(text)
