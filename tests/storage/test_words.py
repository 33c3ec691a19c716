"""The word table: the words of documents by field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.storage.words import WordTable
from ncs.types import FIELDS, Field
from tests.words import table_of

DOCUMENTS = st.lists(
    st.fixed_dictionaries({}, optional={f: st.lists(st.sampled_from("abcdef"), max_size=4) for f in FIELDS}),
    max_size=8,
)


@given(DOCUMENTS, st.integers(1, 4))
def test_a_table_has_the_words_of_every_document_whatever_the_batches(
    documents: list[dict[Field, list[str]]], batch: int
) -> None:
    table = table_of(documents, batch)
    assert len(table) == len(documents)
    fields: tuple[Field, ...] = ("literals", "name", "doc")
    ids, offsets = table.select(fields, min(1, len(documents)))
    for row, document in enumerate(documents):
        for field in FIELDS:
            assert [table.vocabulary.word(int(i)) for i in table.ids_of(row, field)] == document.get(field, [])
        assert table.lengths(np.array([row])).tolist() == [[len(document.get(field, [])) for field in FIELDS]]
        if row:
            words = [table.vocabulary.word(int(i)) for i in ids[offsets[row - 1] : offsets[row]]]
            assert words == [word for field in fields for word in document.get(field, [])]


def test_a_table_on_disk_has_the_files_of_one_in_memory_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncs.storage.words.CHUNK", 7)
    monkeypatch.setattr("ncs.files.SMALL_BYTES", 0)
    documents: list[dict[Field, list[str]]] = [
        {field: [f"wé{(i * j) % 13}" for j in range(i % 5)] for field in FIELDS} for i in range(40)
    ]
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    memory.mkdir()
    disk.mkdir()
    table_of(documents, 9).save(memory)
    assert isinstance(table_of(documents, 9, disk).ids.base, np.memmap)
    names = sorted(path.name for path in memory.iterdir())
    assert names == sorted(path.name for path in disk.iterdir())
    assert [(memory / name).read_bytes() for name in names] == [(disk / name).read_bytes() for name in names]
    assert list(WordTable.load(disk).vocabulary) == sorted(
        {f"wé{(i * j) % 13}" for i in range(40) for j in range(i % 5)}, key=str.encode
    )
