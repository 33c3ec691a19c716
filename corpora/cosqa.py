"""CoSQA: web queries, each with the Python function that answers it (Huang et al. 2021).

The functions keep their docstrings, as in the published data: BM25 over the whole function has an
MRR of .354 on the development queries with them, .208 without.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpora.corpus import Corpus
from corpora.jsonl import Row, read_json, read_rows
from corpora.program import read_program
from ncs.types import Document, Query

CORPUS = "eval_cosqa_corpus.jsonl.gz"
QUERIES = "eval_cosqa_dev.jsonl.gz"
RELEASE = "cosqa"
"""Folder in the data folder with the files of the release (github.com/Jun-jie-Huang/CoCLR, data/search)."""
_FETCH = "fetch it with: python -m corpora fetch cosqa DATA"


def read(data: Path) -> Corpus:
    """6,267 functions, 500 development queries with one gold function each: two files in `data`, else the release.

    Keys read: id, code of a function; id, query, gold of a query. Raises BadInput for missing files or keys.
    """
    if not (data / QUERIES).is_file() and (data / RELEASE).is_dir():
        return _read_release(data / RELEASE)
    rows = list(read_rows(data / QUERIES))
    queries = tuple(Query(row.text("id"), row.text("query")) for row in rows)

    def source() -> Iterator[Document]:
        for row in read_rows(data / CORPUS):
            yield read_program(row.text("code"), "python", id=row.text("id"))

    return Corpus("cosqa", queries, {row.text("id"): {row.text("gold"): 1} for row in rows}, source)


def _read_release(folder: Path) -> Corpus:
    """The files as published: code_idx_map.txt (function -> number), cosqa-retrieval-dev-500.json."""
    path = folder / "cosqa-retrieval-dev-500.json"
    rows = [Row(dict(values), f"{path}: query {number}") for number, values in enumerate(read_json(path, _FETCH), 1)]
    queries = tuple(Query(row.text("idx"), row.text("doc")) for row in rows)
    qrels = {row.text("idx"): {_id(row.number("retrieval_idx")): 1} for row in rows}
    functions = read_json(folder / "code_idx_map.txt", _FETCH)

    def source() -> Iterator[Document]:
        for code, number in functions.items():
            yield read_program(code, "python", id=_id(number))

    return Corpus("cosqa", queries, qrels, source)


def _id(number: int) -> str:
    return f"cosqa-code-{number}"
