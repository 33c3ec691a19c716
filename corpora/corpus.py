"""A data set in one shape: documents, queries and qrels, read and written as a BEIR folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from corpora.jsonl import Row, read_lines, read_rows, write_rows
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.files import replace_file
from ncs.types import Document, Field, Qrels, Query, Run, Tokens

T = TypeVar("T")
QRELS_HEADER = "query-id\tcorpus-id\tscore"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents, queries, and qrels with grades.

    `source` yields the documents again at each call, so that large corpora need not fit into memory.
    Raises BadInput for repeated query ids, empty qrels, and qrels of unknown queries.
    """

    name: str
    queries: tuple[Query, ...]
    qrels: Qrels
    source: Callable[[], Iterable[Document]] = field(repr=False)
    fold: Callable[[Run], Run] | None = field(default=None, repr=False)
    """Where the qrels judge files, not documents: maps a run over documents to one over files."""
    grades: Mapping[str, Mapping[str, float]] | None = None
    """Mean grades of several annotators, which the qrels round; CodeSearchNet's own NDCG uses these."""

    def __post_init__(self) -> None:
        if (twice := first_repeated(query.id for query in self.queries)) is not None:
            raise BadInput(f"{self.name}: two queries have the id {twice!r}; ids must differ")
        if unknown := self.qrels.keys() - {query.id for query in self.queries}:
            raise BadInput(
                f"{self.name}: the qrels judge {min(unknown)!r}, which is not among the queries; correct them"
            )
        if not self.qrels:
            raise BadInput(f"{self.name}: no query is judged; the qrels are missing or empty")

    def documents(self) -> Iterator[Document]:
        """All documents, in the corpus's order; BadInput for repeated ids."""
        seen: set[str] = set()
        for document in self.source():
            if document.id in seen:
                raise BadInput(f"{self.name}: two documents have the id {document.id!r}; ids must differ")
            seen.add(document.id)
            yield document

    def judged_run(self, run: Run) -> Run:
        """A run over documents as a run over judged objects."""
        return run if self.fold is None else self.fold(run)


def digest(documents: Iterable[Document], queries: Iterable[Query], qrels: Qrels) -> str:
    """SHA-256 over ids, code, queries and grades: the same data has the same digest, whatever extracted it."""
    state = hashlib.sha256()

    def add(*parts: str) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            state.update(len(data).to_bytes(8, "little") + data)

    for document in documents:
        add("document", document.id, document.code)
    for query in queries:
        add("query", query.id, query.text)
    for query_id, grades in sorted(qrels.items()):
        for document_id, grade in sorted(grades.items()):
            add("qrel", query_id, document_id, str(grade))
    return state.hexdigest()


def first_repeated(ids: Iterable[T]) -> T | None:
    """The first id that occurs twice, None where all differ.

    >>> first_repeated("abcb"), first_repeated("abc")
    ('b', None)
    """
    seen: set[T] = set()
    for id in ids:
        if id in seen:
            return id
        seen.add(id)
    return None


def read_beir(folder: Path, *, language: str | None = None) -> Corpus:
    """A BEIR folder: corpus.jsonl, queries.jsonl, qrels/test.tsv; only the judged queries are kept.

    A document's words come from its metadata where `write_beir` put them; otherwise its text is
    read as a program of `language` (or of its metadata's), or as plain words where there is none.
    """
    qrels = _read_qrels(folder / "qrels" / "test.tsv")
    rows = read_rows(folder / "queries.jsonl")
    queries = tuple(query for row in rows if (query := Query(row.text("_id"), row.text("text"))).id in qrels)

    def source() -> Iterator[Document]:
        for row in read_rows(folder / "corpus.jsonl"):
            yield from_beir(row, language)

    return Corpus(folder.name, queries, qrels, source)


def write_beir(corpus: Corpus, folder: Path) -> None:
    """Write the corpus as a BEIR folder, with document fields as metadata.

    Raises BadInput where files are judged instead of documents, and for ids with tabs or line ends.
    """
    if corpus.fold is not None:
        raise BadInput(f"{corpus.name}: its qrels judge files, not functions, which a BEIR folder cannot hold")
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    write_rows(folder / "corpus.jsonl", map(_to_beir, corpus.documents()))
    write_rows(folder / "queries.jsonl", ({"_id": query.id, "text": query.text} for query in corpus.queries))
    lines = [QRELS_HEADER + "\n"]
    for query_id, grades in corpus.qrels.items():
        for document_id, grade in grades.items():
            if any(mark in query_id + document_id for mark in "\t\r\n"):
                raise BadInput(f"the ids {query_id!r}, {document_id!r} hold a tab or line end; rename them")
            lines.append(f"{query_id}\t{document_id}\t{grade}\n")
    replace_file(folder / "qrels" / "test.tsv", "".join(lines))


def add_judgment(qrels: dict[str, dict[str, int]], query: str, document: str, grade: str, place: str) -> None:
    """Add one judgment read at a place; BadInput for a repeated one or a grade that is not a whole number."""
    grades = qrels.setdefault(query, {})
    if document in grades:
        raise BadInput(f"{place}: {document!r} is judged twice for {query!r}; keep one line")
    try:
        grades[document] = int(grade)
    except ValueError:
        raise BadInput(f"{place}: the grade {grade!r} is not a whole number; correct that line") from None


def _read_qrels(path: Path) -> Qrels:
    qrels: dict[str, dict[str, int]] = {}
    for number, line in enumerate(read_lines(path), 1):
        columns = line.rstrip("\r\n").split("\t")
        if (number == 1 and columns[0] == "query-id") or not line.strip():
            continue
        if len(columns) != 3:
            raise BadInput(f"{path}:{number}: {len(columns)} columns instead of 3 ({QRELS_HEADER!r}); correct it")
        add_judgment(qrels, columns[0], columns[1], columns[2], f"{path}:{number}")
    return qrels


_TEXTS, _LINES = ("repository", "path", "language", "kind", "name", "qualified_name"), ("start_line", "end_line")


def _to_beir(document: Document) -> dict[str, object]:
    metadata = {key: getattr(document, key) for key in (*_TEXTS, *_LINES)}
    words = {name: list(words) for name, words in document.words.items()}
    title, text = document.qualified_name, document.code
    return {"_id": document.id, "title": title, "text": text, "metadata": {**metadata, "words": words}}


def from_beir(row: Row, language: str | None) -> Document:
    """The document of a row of corpus.jsonl."""
    id, title, text = row.text("_id"), row.text("title", ""), row.text("text")
    values = row.values.get("metadata")
    metadata = Row(values if isinstance(values, Mapping) else {}, f"{row.place} metadata")
    if "words" not in metadata.values:
        return read_program(text, metadata.text("language", language or ""), id=id, title=title)
    texts: Any = {key: metadata.text(key, "") for key in _TEXTS}
    lines: Any = {key: metadata.number(key, 0) for key in _LINES}
    return Document(id=id, code=text, words=_words(metadata), **texts, **lines)


def _words(row: Row) -> dict[Field, Tokens]:
    words, fields = row.values["words"], get_args(Field)
    if not isinstance(words, Mapping) or not words.keys() <= set(fields):
        raise BadInput(f"{row.place}: 'words' must map fields ({', '.join(fields)}) to lists; correct that line")
    return {cast(Field, name): Row(words, row.place).texts(name) for name in words}
