"""CoIR's data sets in every form in which they lie on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.coir import read, read_all
from corpora.jsonl import write_rows
from ncs.errors import BadInput
from ncs.types import Query

READ, HIDE = "def read(path):\n    return open(path)", "def hide(view):\n    view.hide()"
CORPUS: list[Mapping[str, object]] = [
    {"_id": "d1", "partition": "train", "text": READ, "title": "", "language": "python"},
    {"_id": "d2", "partition": "test", "text": HIDE, "title": "", "language": "python"},
]
QUERIES: list[Mapping[str, object]] = [
    {"_id": "q1", "partition": "train", "text": "read a file", "title": "", "language": "en"},
    {"_id": "q2", "partition": "test", "text": "hide a view", "title": "", "language": "en"},
]
QRELS = {"train": ("q1", "d1"), "test": ("q2", "d2")}


def qrels(split: str, mark: str = "_") -> list[dict[str, object]]:
    query, document = QRELS[split]
    return [{f"query{mark}id": query, f"corpus{mark}id": document, "score": 1}]


def parquet(path: Path, rows: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def as_fetched(folder: Path) -> None:
    for rows, part in ((CORPUS, "corpus"), (QUERIES, "queries")):
        for number, row in enumerate(rows):  # two files of one row each
            parquet(folder / f"cosqa-queries-corpus/data/{part}-0000{number}-of-00002.parquet", [row])
    for split in QRELS:
        parquet(folder / f"cosqa-qrels/data/{split}-00000-of-00001.parquet", qrels(split))


def as_one_folder(folder: Path) -> None:
    parquet(folder / "cosqa/corpus/corpus-00000-of-00001.parquet", CORPUS)
    parquet(folder / "cosqa/queries/queries-00000-of-00001.parquet", QUERIES)
    for split in QRELS:
        parquet(folder / f"cosqa/data/{split}-00000-of-00001.parquet", qrels(split, "-"))


def as_beir(folder: Path) -> None:
    (folder / "cosqa/qrels").mkdir(parents=True)
    for part, rows in (("corpus", CORPUS), ("queries", QUERIES)):
        write_rows(folder / f"cosqa/{part}.jsonl", rows)
    for split, (query, document) in QRELS.items():
        (folder / f"cosqa/qrels/{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{query}\t{document}\t1\n")


@pytest.mark.parametrize("form", [as_fetched, as_one_folder, as_beir])
def test_a_data_set_is_the_same_in_every_form(tmp_path: Path, form: Callable[[Path], None]) -> None:
    form(tmp_path / "coir")
    corpus = read("cosqa", tmp_path / "coir")
    assert corpus.queries == (Query("q2", "hide a view"),)  # only what the split judges
    assert corpus.qrels == {"q2": {"d2": 1}}
    documents = list(corpus.documents())
    assert [(document.id, document.name) for document in documents] == [("d1", "read"), ("d2", "hide")]
    assert documents[1].words["calls"] == ("hide",)
    assert [each.qrels for each in read_all(tmp_path)] == [corpus.qrels]


def test_missing_parts_are_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no data set of CoIR in .*python -m corpora fetch coir DATA"):
        read_all(tmp_path)
    with pytest.raises(BadInput, match="there is no 'corpus' of CodeSearchNet-go"):
        read("CodeSearchNet-go", tmp_path)


def test_wrong_tables_are_reported_with_file_and_row(tmp_path: Path) -> None:
    as_fetched(tmp_path)
    test = tmp_path / "cosqa-qrels/data/test-00000-of-00001.parquet"
    parquet(test, [*qrels("test"), {"query_id": "q2", "corpus_id": None, "score": 1}])
    with pytest.raises(BadInput, match=r"test-00000-of-00001\.parquet: row 2: no 'corpus_id'; it has: query_id"):
        read("cosqa", tmp_path)
    parquet(test, [{"query_id": "gone", "corpus_id": "d1", "score": 1}])
    with pytest.raises(BadInput, match="judge 'gone', which is not among the queries"):
        read("cosqa", tmp_path)
    test.write_bytes(b"PAR1 no")
    with pytest.raises(BadInput, match=r"test-00000-of-00001\.parquet is damaged"):
        read("cosqa", tmp_path)
