"""Stack Overflow's dump into (question title, code) pairs, by the filters UNIF was trained with.

Cambronero et al. (2019), section 4.2, and Facebook's article on it ("Creating a training dataset"): questions with
the tag `android` and an accepted or upvoted answer; of the answer, code with a method call and without XML tags;
nothing of the evaluation questions. That gave 451,000 pairs. Titles about tools are excluded, as in the
paper, by a configurable list of words (`Filters.excluded`).
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

from corpora.pairs import Pair, split_of
from corpora.program import read_program
from ncs.errors import BadInput, MissingExtra, needing
from ncs.extract import LANGUAGES
from ncs.progress import Track, silent
from ncs.types import Query

SOURCE = "Stack Overflow"
QUESTION, ANSWER = "1", "2"
_XML = re.compile(r"<\?xml\b|</[A-Za-z][\w.:-]*\s*>|<[A-Za-z][^<>;{}()]*/>")
_CALL = re.compile(
    r"(?<![\w$])(?!(?:if|for|while|switch|catch|return|function|def|synchronized)\b)[A-Za-z_$][\w$]*\s*\("
)
_BLOCK = 1 << 18
MEMBER = "Posts.xml"


@dataclass(frozen=True, slots=True)
class Filters:
    """The rules for posts used in training. tag: of the question. excluded: words that its title must not have."""

    tag: str = "android"
    language: str = "java"
    excluded: tuple[str, ...] = ("gradle", "studio", "emulator")


def read_dump(
    path: Path,
    filters: Filters = Filters(),
    held_out: Iterable[Query] = (),
    *,
    seed: int = 0,
    track: Track = silent,
) -> Iterator[Pair]:
    """Pairs of a Posts.xml, plain or .7z, in the order of the answers; ids are question-answer-number of the code.

    The file is read twice: for questions, then for answers, which may precede their question. Memory holds the titles
    of the selected questions. held_out: questions for evaluation, left out by their post's id and by their title.
    Raises BadInput for an invalid file.
    """
    left_out = {each for query in held_out for each in (query.id.partition("-")[0], normal_title(query.text))}
    questions: dict[str, tuple[str, str]] = {}  # title, accepted answer
    for row in track(read_posts(path), "questions", unit="posts"):
        id, title = row.get("Id", ""), row.get("Title", "")
        is_question = row.get("PostTypeId") == QUESTION and is_wanted(row, filters)
        if is_question and left_out.isdisjoint((id, normal_title(title))):
            questions[id] = title, row.get("AcceptedAnswerId", "")
    for row in track(read_posts(path), "answers", unit="posts"):
        id = row.get("ParentId", "")
        if row.get("PostTypeId") != ANSWER or id not in questions:
            continue
        title, accepted = questions[id]
        if not _is_good(row, accepted):
            continue
        for number, code in enumerate(codes(row.get("Body", ""))):
            if is_training_code(code, filters.language):
                yield Pair(
                    query=title,
                    code=code,
                    language=filters.language,
                    source=SOURCE,
                    id=f"{id}-{row.get('Id', '')}-{number}",
                    question_id=id,
                    split=split_of(id, seed),
                    license=row.get("ContentLicense", "CC BY-SA"),
                )


def is_wanted(question: Mapping[str, str], filters: Filters) -> bool:
    """Whether a question has the tag, and no excluded word in its title."""
    words = set(re.findall(r"\w+", question.get("Title", "").casefold()))
    return filters.tag in tags(question.get("Tags", "")) and bool(words) and words.isdisjoint(filters.excluded)


def normal_title(title: str) -> str:
    """A title without case, punctuation and odd forms of characters.

    >>> normal_title("How to  hide the “soft” keyboard?") == normal_title("how to hide the soft keyboard")
    True
    """
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", title).casefold()))


def tags(text: str) -> list[str]:
    """Tags as the dumps write them, before 2024 and since.

    >>> tags("<java><android>"), tags("|java|android|")
    (['java', 'android'], ['java', 'android'])
    """
    return re.findall(r"[^<>|]+", text)


def _is_good(answer: Mapping[str, str], accepted: str) -> bool:
    """Whether an answer was accepted or upvoted."""
    try:
        return answer.get("Id") == accepted or int(answer.get("Score", "0")) >= 1
    except ValueError:
        raise BadInput(
            f"post {answer.get('Id')}: the score {answer['Score']!r} is no number; correct the dump"
        ) from None


class _Codes(HTMLParser):
    """Collects the contents of `<pre><code>`, entities resolved."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[str] = []
        self._in_pre = self._in_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._in_pre = True
        elif tag == "code" and self._in_pre:
            self._in_code = True
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_pre = self._in_pre and tag != "pre"
        self._in_code = self._in_code and self._in_pre and tag != "code"

    def handle_data(self, data: str) -> None:
        if self._in_code:
            self.blocks[-1] += data


def codes(body: str) -> list[str]:
    """The code blocks of a post, without inline code.

    >>> codes("<p>Call <code>hide()</code>:</p><pre><code>a &lt; b;\\n</code></pre>")
    ['a < b;']
    """
    parser = _Codes()
    if "<pre" in body:
        parser.feed(body)
        parser.close()
    return [code for text in parser.blocks if (code := text.strip("\n").rstrip())]


def is_training_code(code: str, language: str) -> bool:
    """Whether code has a call and no XML tags; a declaration is not a call.

    >>> [is_training_code(code, "java") for code in ("view.hide();", "void hide() { }", "f(); // <b>x</b>")]
    [True, False, False]
    """
    if _XML.search(code) or not _CALL.search(code):
        return False
    return language not in LANGUAGES or bool(read_program(code, language, id="").words.get("calls"))


def read_posts(path: Path) -> Iterator[Mapping[str, str]]:
    """The attributes of every `<row>`, in the file's order; streamed.

    Raises BadInput where the file is missing, is no Posts.xml or is damaged, MissingExtra for a .7z without py7zr.
    """
    rows: list[Mapping[str, str]] = []
    depth: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if not depth and name != "posts":
            raise BadInput(f"{path}: its root is <{name}>, not <posts>; name the Posts.xml of a Stack Exchange dump")
        depth.append(name)
        if name == "row":
            rows.append(attributes)

    def declared(*_: object) -> None:
        raise BadInput(f"{path} declares entities, which no dump does; fetch the file again")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: depth.pop()
    parser.EntityDeclHandler = declared
    try:
        with closing(_blocks(path)) as blocks:
            for block in blocks:
                parser.Parse(block, False)
                yield from rows
                rows.clear()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise BadInput(f"{path}:{error.lineno}: {expat.ErrorString(error.code)}; fetch the file again") from None
    yield from rows


def _blocks(path: Path) -> Generator[bytes, None, None]:
    if path.suffix == ".7z":
        yield from _unpacked(path)
        return
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
    except OSError as error:
        raise BadInput(f"cannot read {path} ({error.strerror}); name a Posts.xml, plain or .7z") from None


class _Pipe:
    """The file object py7zr writes to: a pipe of the system, so that unpacking waits for the reader."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._size = file, 0

    def create(self, filename: str) -> _Pipe:
        return self

    def write(self, data: bytes | bytearray) -> int:
        self._size += len(data)
        return self._file.write(data)

    def read(self, size: int | None = None) -> bytes:
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        self._file.flush()

    def size(self) -> int:
        return self._size

    def close(self) -> None:
        """`_unpack` closes the pipe."""


def _unpacked(path: Path) -> Iterator[bytes]:
    """The member Posts.xml, unpacked in a thread of its own while it is read."""
    source, target = os.pipe()
    with ThreadPoolExecutor(1) as pool, os.fdopen(source, "rb") as file:
        future = pool.submit(_unpack, path, target)
        while block := file.read(_BLOCK):
            yield block
        future.result()


def _unpack(path: Path, target: int) -> None:
    with os.fdopen(target, "wb") as file:
        try:
            with needing("reading .7z", "corpora"):
                from py7zr import SevenZipFile
            with SevenZipFile(path, "r") as archive:
                names = [name for name in archive.getnames() if name.rpartition("/")[2] == MEMBER]
                if not names:
                    raise BadInput(f"{path} holds no {MEMBER}; name the archive with the posts")
                archive.extract(targets=names[:1], factory=_Pipe(file))
        except FileNotFoundError:
            raise BadInput(f"there is no {path}; name a Posts.xml, plain or .7z") from None
        except (BadInput, MissingExtra):
            raise
        except Exception as error:  # py7zr raises anything on damaged data
            raise BadInput(f"{path} is damaged or no .7z ({error!r}); fetch the file again") from None
