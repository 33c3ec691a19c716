"""The word table: the words of documents by field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.storage.words import WordTable
from ncs.storage.words_builder import WordTableBuilder, batch_words
from ncs.types import FIELDS, Field

DOCUMENTS = st.lists(
    st.fixed_dictionaries({}, optional={f: st.lists(st.sampled_from("abcdef"), max_size=4) for f in FIELDS}),
    max_size=8,
)


def table_of(documents: list[dict[Field, list[str]]], batch: int = 3) -> WordTable:
    builder = WordTableBuilder()
    for start in range(0, len(documents), batch):
        rows = [[d.get(field, []) for field in FIELDS] for d in documents[start : start + batch]]
        builder.add(*batch_words(rows))
    return builder.finish()


@given(DOCUMENTS, st.integers(1, 4))
def test_the_table_gives_back_every_document_whatever_the_batches(
    documents: list[dict[Field, list[str]]], batch: int
) -> None:
    table = table_of(documents, batch)
    assert len(table) == len(documents)
    for row, document in enumerate(documents):
        for field in FIELDS:
            words = [table.vocabulary.word(int(i)) for i in table.ids_of(row, field)]
            assert words == document.get(field, [])


@given(DOCUMENTS)
def test_select_joins_fields_in_the_order_asked(documents: list[dict[Field, list[str]]]) -> None:
    table = table_of(documents)
    fields: tuple[Field, ...] = ("literals", "name", "doc")
    ids, offsets = table.select(fields, 1, None) if documents else table.select(fields)
    for row, document in enumerate(documents[1:]):
        words = [table.vocabulary.word(int(i)) for i in ids[offsets[row] : offsets[row + 1]]]
        assert words == [word for field in fields for word in document.get(field, [])]


def test_the_table_is_the_same_from_disk(tmp_path: Path) -> None:
    table = table_of([{"name": ["b", "é"]}, {"doc": ["a", "b", "b"]}])
    table.save(tmp_path)
    loaded = WordTable.load(tmp_path)
    assert list(loaded.vocabulary) == ["a", "b", "é"]
    np.testing.assert_array_equal(loaded.ids, table.ids)
    np.testing.assert_array_equal(loaded.offsets, table.offsets)
    assert loaded.vocabulary.id("é") == 2


def test_words_put_aside_on_disk_give_the_same_files_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncs.storage.words_builder.SPILL_WORDS", 7)
    documents = [[[f"w{(i * j) % 13}" for j in range(i % 5)] for _ in FIELDS] for i in range(40)]
    folders = [tmp_path / "memory", tmp_path / "disk"]
    for folder in folders:
        folder.mkdir()
    in_memory, on_disk = WordTableBuilder(), WordTableBuilder(folders[1])
    for at in range(0, 40, 9):
        in_memory.add(*batch_words(documents[at : at + 9]))
        on_disk.add(*batch_words(documents[at : at + 9]))
    in_memory.finish().save(folders[0])
    table = on_disk.finish()
    assert isinstance(table.ids.base, np.memmap)
    names = sorted(path.name for path in folders[0].iterdir())
    assert names == sorted(path.name for path in folders[1].iterdir())
    assert [(folders[0] / name).read_bytes() for name in names] == [(folders[1] / name).read_bytes() for name in names]
