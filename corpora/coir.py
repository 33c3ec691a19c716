"""CoIR: ten code retrieval tasks (Li 2024) over BEIR folders or the Parquet files of Hugging Face's data sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora.codesearchnet.functions import LANGUAGES
from corpora.corpus import Corpus, add_judgment, read_beir
from corpora.jsonl import Row
from corpora.program import read_program
from ncs.errors import BadInput, needing
from ncs.types import Document, Query

DATASETS: Mapping[str, str] = {
    "apps": "python",
    "cosqa": "python",
    "synthetic-text2sql": "sql",
    **{f"CodeSearchNet-{language}": "" for language in LANGUAGES},
    **{f"CodeSearchNet-ccr-{language}": language for language in LANGUAGES},
    "codetrans-dl": "python",
    "codetrans-contest": "python",
    "stackoverflow-qa": "",
    "codefeedback-st": "",
    "codefeedback-mt": "",
}
"""Data set -> language of its documents, "" for text or several; in CodeSearchNet's code asks for a docstring."""
OWNER = "CoIR-Retrieval"
_FETCH = "python -m corpora fetch coir DATA"
_PARTS = ("{0}", "{0}-queries-corpus", "{0}-qrels")


def read(name: str, folder: Path) -> Corpus:
    """One data set of CoIR, by its name there, from a folder that holds it in one of these forms.

    A BEIR folder `<name>/`; or Parquet files as fetched, in `<name>-queries-corpus/` (queries and corpus) and
    `<name>-qrels/` (train, valid, test), or all of them in `<name>/`.
    Only queries that the test split judges are kept, all documents are.
    Raises BadInput for missing files or columns, MissingExtra where pyarrow is needed.
    """
    language = DATASETS[name]
    if (folder / name / "corpus.jsonl").is_file():
        return read_beir(folder / name, language=language)
    roots = _roots(name, folder)
    tables = {part: _files(roots, part) for part in ("corpus", "queries", "test")}
    if missing := [part for part, files in tables.items() if not files]:
        raise BadInput(f"there is no {missing[0]!r} of {name} in {folder}; fetch it with: {_FETCH}")
    qrels: dict[str, dict[str, int]] = {}
    for row in _rows(tables["test"]):
        query, document = _id(row, "query_id", "query-id"), _id(row, "corpus_id", "corpus-id")
        score: Any = row.values.get("score", 1)
        add_judgment(qrels, query, document, str(int(score)), row.place)
    rows = _rows(tables["queries"])
    queries = tuple(Query(id, row.text("text")) for row in rows if (id := _id(row, "_id", "id")) in qrels)

    def source() -> Iterator[Document]:
        for row in _rows(tables["corpus"]):
            title = str(row.values.get("title") or "")
            yield read_program(row.text("text"), language, id=_id(row, "_id", "id"), title=title)

    return Corpus(f"coir-{name}", queries, qrels, source)


def read_all(data: Path) -> list[Corpus]:
    """The data sets in `data`/coir; BadInput where there are none."""
    folder = data / "coir"
    present = [name for name in DATASETS if (folder / name / "corpus.jsonl").is_file() or _roots(name, folder)]
    if not present:
        raise BadInput(f"there is no data set of CoIR in {folder}; fetch them with: {_FETCH}")
    return [read(name, folder) for name in present]


def _roots(name: str, folder: Path) -> list[Path]:
    return [root for part in _PARTS if (root := folder / part.format(name)).is_dir()]


def _files(roots: Sequence[Path], part: str) -> list[Path]:
    """Files of a split: corpus-00000-of-00002.parquet, qrels-test.parquet."""
    pattern = re.compile(rf"(?:.*-)?{part}(?:-\d+-of-\d+)?\.parquet")
    return sorted(path for root in roots for path in root.rglob("*.parquet") if pattern.fullmatch(path.name))


def _rows(files: Sequence[Path]) -> Iterator[Row]:
    """The rows of all files, read in batches."""
    with needing("reading Parquet", "corpora"):
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    try:
        for path in files:
            with ParquetFile(path) as file:
                rows = (row for batch in file.iter_batches(batch_size=1024) for row in batch.to_pylist())
                for number, row in enumerate(rows, 1):
                    yield Row(row, f"{path}: row {number}")
    except (ArrowInvalid, OSError) as error:
        raise BadInput(f"{path} is damaged ({str(error).splitlines()[0]}); fetch the file again") from None


def _id(row: Row, *keys: str) -> str:
    for key in keys:
        if isinstance(value := row.values.get(key), (str, int)):
            return str(value)
    raise BadInput(f"{row.place}: no {keys[0]!r}; it has: {', '.join(row.values)}")
