"""NLP2API: how-to questions about Java, each with a gold program (Rahman and Roy 2018).

The programs are whole files, members or bare statements. Three of them occur twice; a copy
of a query's gold program counts as an answer, too.
"""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from corpora.corpus import Corpus
from corpora.jsonl import Row, read_rows
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.types import Document, Query

PROGRAMS = "eval_java_nlp2api.jsonl.gz"
RELEASE = "nlp2api/NLP2API.zip"
"""In the data folder: GitHub's archive of masud-technope/NLP2API-Replication-Package, or the part that is read."""
MAX_BYTES = 16 << 20
"""Of one file of the archive."""
_QUESTIONS, _CODE = "oracle-310.txt", "oracle-310-code/"


def is_read(path: str) -> bool:
    """Whether a file of the archive is read."""
    return path.partition("/")[2].startswith((_QUESTIONS, _CODE))


def read(data: Path) -> Corpus:
    """310 questions over their 310 programs, from a file in `data`, else from the release's archive.

    Keys read: id, query, code. Raises BadInput for missing files or keys.
    """
    released = not (data / PROGRAMS).is_file() and (data / RELEASE).is_file()
    rows = list(_read_release(data / RELEASE) if released else read_rows(data / PROGRAMS))
    same: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        same[row.text("code")][row.text("id")] = 1

    def source() -> Iterator[Document]:
        for row in rows:
            yield read_program(row.text("code"), "java", id=row.text("id"))

    queries = tuple(Query(row.text("id"), row.text("query")) for row in rows)
    return Corpus("nlp2api", queries, {row.text("id"): same[row.text("code")] for row in rows}, source)


def _read_release(path: Path) -> Iterator[Row]:
    """Question n is line 2 n - 1 of the list, its APIs are the line below, its program is `n.java`."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = {name.partition("/")[2]: name for name in archive.namelist()}
            lines = _text(_read(archive, files[_QUESTIONS])).splitlines()
            for number, question in enumerate(lines[::2], 1):
                code = _text(_read(archive, files[f"{_CODE}{number}.java"])).replace("\r\n", "\n")
                yield Row({"id": str(number), "query": question.strip(), "code": code}, f"{path}: question {number}")
    except KeyError as error:
        raise BadInput(f"{path} lacks {error}; get it again with: python -m corpora fetch nlp2api DATA") from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise BadInput(f"{path} is damaged ({error}); fetch the file again") from None


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        return file.read(MAX_BYTES)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:  # two dozen programs were saved on Windows
        return data.decode("cp1252", "replace")
