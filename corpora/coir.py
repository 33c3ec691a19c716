"""CoIR: ten code retrieval tasks (Li 2024) over BEIR folders or the Parquet files of Hugging Face's data sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from corpora.corpus import Corpus, add_judgment, read_beir
from corpora.program import read_program
from ncs.errors import BadInput, MissingExtra
from ncs.types import Document, Query

Kind = Literal["text-to-code", "code-to-text", "code-to-code", "hybrid"]
_SIX = ("go", "java", "javascript", "php", "python", "ruby")


@dataclass(frozen=True, slots=True)
class Task:
    """A task. datasets: data set -> language of its documents, "" for text or several."""

    kind: Kind
    datasets: Mapping[str, str]


TASKS: Mapping[str, Task] = {
    "apps": Task("text-to-code", {"apps": "python"}),
    "cosqa": Task("text-to-code", {"cosqa": "python"}),
    "synthetic-text2sql": Task("text-to-code", {"synthetic-text2sql": "sql"}),
    "codesearchnet": Task("code-to-text", {f"CodeSearchNet-{language}": "" for language in _SIX}),
    "codesearchnet-ccr": Task("code-to-code", {f"CodeSearchNet-ccr-{language}": language for language in _SIX}),
    "codetrans-dl": Task("code-to-code", {"codetrans-dl": "python"}),
    "codetrans-contest": Task("code-to-code", {"codetrans-contest": "python"}),
    "stackoverflow-qa": Task("hybrid", {"stackoverflow-qa": ""}),
    "codefeedback-st": Task("hybrid", {"codefeedback-st": ""}),
    "codefeedback-mt": Task("hybrid", {"codefeedback-mt": ""}),
}
"""The table of the paper's section 3; in its CodeSearchNet task code is the query and a docstring the answer."""
DATASETS: Mapping[str, str] = {name: language for task in TASKS.values() for name, language in task.datasets.items()}
OWNER = "CoIR-Retrieval"
_FETCH = "python -m corpora fetch coir DATA"
_PARTS = ("{0}", "{0}-queries-corpus", "{0}-qrels")


def read(name: str, folder: Path, *, split: str = "test") -> Corpus:
    """One data set of CoIR, by its name there, from a folder that holds it in one of these forms.

    A BEIR folder `<name>/`; or Parquet files as fetched, in `<name>-queries-corpus/` (queries and corpus) and
    `<name>-qrels/` (train, valid, test), or all of them in `<name>/`.
    Only queries that the split judges are kept, all documents are.
    Raises BadInput for an unknown name, missing files or columns, MissingExtra where pyarrow is needed.
    """
    if name not in DATASETS:
        raise BadInput(f"CoIR has no data set {name!r}; choose from {', '.join(DATASETS)}")
    language = DATASETS[name]
    if (folder / name / "corpus.jsonl").is_file():
        return read_beir(folder / name, split=split, language=language)
    library = _library()
    roots = _roots(name, folder)
    tables = {part: _files(roots, part) for part in ("corpus", "queries", split)}
    if missing := [part for part, files in tables.items() if not files]:
        raise BadInput(f"there is no {missing[0]!r} of {name} in {folder}; fetch it with: {_FETCH}")
    qrels: dict[str, dict[str, int]] = {}
    for row, place in _rows(tables[split], library):
        query, document = (_text(row, (f"{kind}_id", f"{kind}-id"), place) for kind in ("query", "corpus"))
        add_judgment(qrels, query, document, str(int(row.get("score", 1))), place)
    queries = tuple(
        Query(id, _text(row, ("text",), place))
        for row, place in _rows(tables["queries"], library)
        if (id := _text(row, ("_id", "id"), place)) in qrels
    )

    def source() -> Iterator[Document]:
        for row, place in _rows(tables["corpus"], library):
            id, text = _text(row, ("_id", "id"), place), _text(row, ("text",), place)
            yield read_program(text, language, id=id, title=row.get("title") or "")

    return Corpus(f"coir-{name}", queries, qrels, source)


def read_task(task: str, folder: Path) -> list[Corpus]:
    """All data sets of one of the ten tasks; BadInput names the tasks there are."""
    if task not in TASKS:
        raise BadInput(f"CoIR has no task {task!r}; choose from {', '.join(TASKS)}")
    return [read(name, folder) for name in TASKS[task].datasets]


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


def _rows(files: Sequence[Path], library: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows of all files with their places, read in batches."""
    for path in files:
        number = 0
        try:
            with library.parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=1024):
                    for row in batch.to_pylist():
                        number += 1
                        yield row, f"{path}: row {number}"
        except (library.ArrowInvalid, OSError) as error:
            raise BadInput(f"{path} is damaged ({str(error).splitlines()[0]}); fetch the file again") from None


def _text(row: Mapping[str, object], keys: Sequence[str], place: str) -> str:
    for key in keys:
        if isinstance(value := row.get(key), (str, int)):
            return str(value)
    raise BadInput(f"{place}: no {keys[0]!r}; it has: {', '.join(row)}")


def _library() -> ModuleType:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(
            "reading Parquet needs pyarrow; install it with: pip install 'neural-code-search[corpora]'"
        ) from None
    return pyarrow  # type: ignore[no-any-return]
