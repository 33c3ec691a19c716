"""Stack Overflow's dump into (question title, code) pairs, by the filters UNIF was trained with.

Cambronero et al. (2019), section 4.2, and Facebook's article on it ("Creating a training dataset"): questions with
the tag `android` and an accepted or upvoted answer; of the answer, code with a method call and without XML tags;
nothing of the evaluation questions. They were 451,000 pairs. That question titles about tools rather than code are
left out is the paper's too; the words are a setting (`Filters.excluded`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from corpora.pairs import HeldOut, Pair, split_of
from corpora.posts import read_posts
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.extract import LANGUAGES
from ncs.progress import Track, silent

SOURCE = "Stack Overflow"
QUESTION, ANSWER = "1", "2"
_XML = re.compile(r"<\?xml\b|</[A-Za-z][\w.:-]*\s*>|<[A-Za-z][^<>;{}()]*/>")
_CALL = re.compile(
    r"(?<![\w$])(?!(?:if|for|while|switch|catch|return|function|def|synchronized)\b)[A-Za-z_$][\w$]*\s*\("
)


@dataclass(frozen=True, slots=True)
class Filters:
    """What makes a post worth learning from.

    tag: of the question. excluded: words that its title must not have. least_score: of an answer that was not
    accepted. language: what the code is read as.
    """

    tag: str = "android"
    language: str = "java"
    excluded: tuple[str, ...] = ("gradle", "studio", "emulator")
    least_score: int = 1


@dataclass(frozen=True, slots=True)
class _Asked:
    title: str
    accepted: str


def read_dump(
    path: Path,
    *,
    filters: Filters = Filters(),
    held_out: HeldOut = HeldOut(),  # noqa: B008  (frozen)
    seed: int = 0,
    track: Track = silent,
) -> Iterator[Pair]:
    """Pairs of a Posts.xml, plain or .7z, in the order of the answers; ids are question-answer-number of the code.

    The file is read twice: for questions, then for their answers (an answer may stand before a question that was
    merged). In memory are the titles of the questions that passed, and nothing else that grows.
    Raises BadInput for what is no such file.
    """
    asked: dict[str, _Asked] = {}
    for row in track(read_posts(path), "questions", unit="posts"):
        id, title = row.get("Id", ""), row.get("Title", "")
        if row.get("PostTypeId") == QUESTION and is_asked_for(row, filters) and not held_out.has(id, title):
            asked[id] = _Asked(title, row.get("AcceptedAnswerId", ""))
    for row in track(read_posts(path), "answers", unit="posts"):
        question = asked.get(row.get("ParentId", "")) if row.get("PostTypeId") == ANSWER else None
        if question is None or not _is_good(row, question, filters):
            continue
        for number, code in enumerate(codes(row.get("Body", ""))):
            if is_learnable(code, filters.language):
                yield _pair(row, question, code, number, filters, seed)


def _pair(row: Mapping[str, str], question: _Asked, code: str, number: int, filters: Filters, seed: int) -> Pair:
    asked = row["ParentId"]
    return Pair(
        query=question.title,
        code=code,
        language=filters.language,
        source=SOURCE,
        id=f"{asked}-{row.get('Id', '')}-{number}",
        question_id=asked,
        split=split_of(asked, seed),
        license=row.get("ContentLicense", "CC BY-SA"),
    )


def is_asked_for(question: Mapping[str, str], filters: Filters) -> bool:
    """Whether a question has the tag, and no excluded word in its title."""
    words = set(re.findall(r"\w+", question.get("Title", "").casefold()))
    return filters.tag in tags(question.get("Tags", "")) and bool(words) and words.isdisjoint(filters.excluded)


def tags(text: str) -> list[str]:
    """Tags as the dumps write them, before 2024 and since.

    >>> tags("<java><android>"), tags("|java|android|")
    (['java', 'android'], ['java', 'android'])
    """
    return re.findall(r"[^<>|]+", text)


def _is_good(answer: Mapping[str, str], question: _Asked, filters: Filters) -> bool:
    try:
        score = int(answer.get("Score", "0"))
    except ValueError:
        raise BadInput(
            f"post {answer.get('Id')}: the score {answer['Score']!r} is no number; correct the dump"
        ) from None
    return answer.get("Id") == question.accepted or score >= filters.least_score


class _Codes(HTMLParser):
    """Collects what stands in `<pre><code>`, entities resolved."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._in_pre = self._in_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._in_pre = True
        elif tag == "code" and self._in_pre:
            self._in_code = True
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_pre = self._in_pre and tag != "pre"
        self._in_code = self._in_code and self._in_pre and tag != "code"

    def handle_data(self, data: str) -> None:
        if self._in_code:
            self.found[-1] += data


def codes(body: str) -> list[str]:
    """The blocks of code in a post; code inside of sentences is none.

    >>> codes("<p>Call <code>hide()</code>:</p><pre><code>a &lt; b;\\n</code></pre>")
    ['a < b;']
    """
    parser = _Codes()
    if "<pre" in body:
        parser.feed(body)
        parser.close()
    return [code for text in parser.found if (code := text.strip("\n").rstrip())]


def is_learnable(code: str, language: str) -> bool:
    """Whether code calls something and holds no XML tags; a declaration is no call.

    >>> [is_learnable(code, "java") for code in ("view.hide();", "void hide() { }", "f(); // <b>x</b>")]
    [True, False, False]
    """
    if _XML.search(code) or not _CALL.search(code):
        return False
    return language not in LANGUAGES or bool(read_program(code, language, id="").words.get("calls"))
