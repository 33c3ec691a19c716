"""Facebook's Neural Code Search Evaluation Dataset: questions, repositories, search corpus (Li et al. 2019).

The questions are Stack Overflow titles about Android with answer snippets. They have no qrels over a fixed corpus:
a hit is judged by its similarity to the answer's snippet (evaluation.judges.aroma).
The published ranks of four systems are read by corpora.score_sheet. The data is CC BY-NC: for evaluation only.
"""

from __future__ import annotations

import json
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora.fetch import Wanted
from corpora.jsonl import Row, read_lines
from ncs.errors import BadInput
from ncs.types import Query


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the snippet of its accepted answer, and links to functions that answer it as well."""

    query: Query
    answer: str
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexedMethod:
    """A method of the published search corpus: `path` is :owner/:repo/file, `url` names commit and lines."""

    id: int
    path: str
    name: str
    start_line: int
    end_line: int
    url: str


def read_questions(path: Path) -> list[Question]:
    """Questions of a JSON file in the published shape: a list of objects with stackoverflow_id, question,
    answer and (where there are) examples_url. Where two questions come from one post, as in the release
    (2470870), the second is called `<id>-2`. Raises BadInput that names the first object that does not fit.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; name the JSON file with the questions") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInput(f"{path} is not JSON ({error}); get the file again") from None
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{path} holds no list of questions; name the JSON file with the questions")
    questions = [_question(row, f"{path}: question {number}") for number, row in enumerate(rows, 1)]
    same = Counter((question.query, question.answer) for question in questions)
    if twice := [query.id for (query, _), times in same.items() if times > 1]:
        raise BadInput(f"{path}: two questions have the stackoverflow_id {twice[0]!r}; ids must differ")
    ids = numbered(question.query.id for question in questions)
    return [
        Question(Query(id, question.query.text), question.answer, question.examples)
        for id, question in zip(ids, questions, strict=True)
    ]


def numbered(ids: Iterable[str]) -> list[str]:
    """The ids, made different: the second of the same post is `<id>-2`, in the questions as in the score sheet.

    >>> numbered(["7", "8", "7"])
    ['7', '8', '7-2']
    """
    seen: Counter[str] = Counter()
    found = []
    for id in ids:
        seen[id] += 1
        found.append(id if seen[id] == 1 else f"{id}-{seen[id]}")
    return found


def _question(row: object, place: str) -> Question:
    if not isinstance(row, dict):
        raise BadInput(f"{place} is not a JSON object; correct it")
    texts = [row.get(key) for key in ("question", "answer")]
    id = row.get("stackoverflow_id")
    if not isinstance(id, (str, int)) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise BadInput(f"{place} lacks stackoverflow_id, question or answer; correct it")
    examples = row.get("examples_url") or ()
    if not isinstance(examples, Iterable):
        raise BadInput(f"{place}: examples_url is not a list; correct it")
    return Question(Query(str(id), str(texts[0])), str(texts[1]), tuple(map(str, examples)))


_LINK = re.compile(r"https?://[^/\s]+(?:/[^/\s]+)*?/([\w.-]+)/([\w.-]+)/archive/([0-9a-fA-F]{7,40})\.zip")


def read_links(path: Path) -> list[Wanted]:
    """The list of repositories, one link to an archive a line, as files to fetch: `owner+name.zip`.

    A repository that is listed at several commits comes as `owner+name+<commit>.zip` after the first time.
    Raises BadInput, naming the line, for anything else than such a link.
    """
    wanted: dict[str, Wanted] = {}
    seen: set[str] = set()
    for number, line in enumerate(read_lines(path), 1):
        url = line.strip()
        if not url or url in seen:
            continue
        link = _LINK.fullmatch(url)
        if link is None or {link[1], link[2]} & {".", ".."}:
            raise BadInput(
                f"{path}:{number}: {url[:80]!r} is no link to an archive (.../owner/name/archive/commit.zip)"
            )
        seen.add(url)
        file = f"{link[1]}+{link[2]}.zip"
        file = file if file not in wanted else f"{link[1]}+{link[2]}+{link[3]}.zip"
        wanted[file] = Wanted(url, file)
    if not wanted:
        raise BadInput(f"{path} lists no repositories; name android_repositories_download_links.txt of the release")
    return list(wanted.values())


def read_methods(paths: Iterable[Path]) -> Iterator[IndexedMethod]:
    """The search corpus, read in passing from `search_corpus_*.tar.gz`: JSON lines, 4,716,814 of them in the release.

    Nothing is unpacked to disk. Raises BadInput for what is no such archive and, naming the line, no such method.
    """
    for path in paths:
        yield from (_method(line, place) for line, place in _archived_lines(path))


def _archived_lines(path: Path) -> Iterator[tuple[bytes, str]]:
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() else None
                for number, line in enumerate(file or (), 1):
                    if line.strip():
                        yield line, f"{path}: {member.name}:{number}"
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; get it with: python -m corpora fetch ncs287 DATA") from None
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise BadInput(f"{path} is damaged or no .tar.gz ({error}); get the file again") from None


def _method(line: bytes, place: str) -> IndexedMethod:
    try:
        try:
            values = json.loads(line)
        except json.JSONDecodeError:
            values = json.loads(line.replace(rb"\#", b"#"))  # as the release's own description writes its links
        row = Row(values, place)
        numbers = [values[key] for key in ("id", "start_line", "end_line")]
        if not all(type(number) is int for number in numbers):
            raise BadInput(f"{place}: id, start_line and end_line must be whole numbers; get the file again")
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{place}: no method ({error!r}); get the file again") from None
    names = row.text("filepath"), row.text("method_name")
    return IndexedMethod(numbers[0], names[0], names[1], numbers[1], numbers[2], row.text("url"))
