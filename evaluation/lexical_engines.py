"""Lexical engines behind one signature, for `bin/benchmark lexical`: our postings, bm25s and tantivy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ncs.types import FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable

WEIGHTS: Mapping[Field, int] = {field: 3 if field == "name" else 1 for field in FIELDS}
K1, B, K, PARTS = 1.2, 0.75, 100, 10
Search = Callable[[Sequence[str], bool], list[tuple[int, float]]]
"""Words, and whether only one document in PARTS is allowed, to the best K (row, score)."""


def allowed_rows(n: int) -> NDArray[np.bool_]:
    """The mask that masked questions are asked with."""
    return np.equal(np.arange(n) % PARTS, 0)


def weighted_stems(words: WordTable) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Stems, and the stem ids of all documents with every field repeated by its weight, flat with offsets."""
    from ncs.storage.postings import stem_all

    stemmed = stem_all(words.vocabulary)
    stems = sorted(set(stemmed))
    number = {stem: id for id, stem in enumerate(stems)}
    stem_of = np.array([number[stem] for stem in stemmed], np.int64)
    ids, offsets = words.select([field for field in FIELDS for _ in range(WEIGHTS[field])])
    return stems, stem_of[ids], offsets


class Engine(Protocol):
    """Writes its index into an empty folder, and opens it."""

    @staticmethod
    def index(words: WordTable, folder: Path) -> None: ...

    @staticmethod
    def open(folder: Path) -> Search: ...


class Ours:
    """ncs.storage.postings."""

    @staticmethod
    def index(words: WordTable, folder: Path) -> None:
        from ncs.storage.postings_builder import build

        build(words, weights=WEIGHTS, k1=K1, b=B).save(folder)

    @staticmethod
    def open(folder: Path) -> Search:
        from ncs.storage.postings import Postings

        postings = Postings.load(folder)
        mask = allowed_rows(len(postings))
        return lambda words, masked: postings.search(words, K, allowed=mask if masked else None)


class Bm25s:
    """bm25s, numpy backend, memory-mapped; fields repeated by their weights."""

    @staticmethod
    def index(words: WordTable, folder: Path) -> None:
        import bm25s

        stems, ids, offsets = weighted_stems(words)
        texts = np.split(ids, offsets[1:-1])
        engine = bm25s.BM25(method="lucene", k1=K1, b=B)
        engine.index((texts, {stem: id for id, stem in enumerate(stems)}), show_progress=False)
        engine.save(str(folder))

    @staticmethod
    def open(folder: Path) -> Search:
        import bm25s

        from ncs.storage.postings import stem_all

        engine = bm25s.BM25.load(str(folder), mmap=True, show_progress=False)
        mask = allowed_rows(int(engine.scores["num_docs"])).astype(np.float32)

        def search(words: Sequence[str], masked: bool) -> list[tuple[int, float]]:
            tokens = [stem_all(words)]
            weight = mask if masked else None
            rows, scores = engine.retrieve(tokens, k=min(K, len(mask)), weight_mask=weight, show_progress=False)
            return [(int(row), float(score)) for row, score in zip(rows[0], scores[0], strict=True) if score > 0]

        return search


class Tantivy:
    """tantivy, one segment; fields repeated by their weights in one text field."""

    @staticmethod
    def index(words: WordTable, folder: Path) -> None:
        import tantivy

        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
        schema.add_integer_field("part", indexed=True, fast=True)
        schema.add_integer_field("row", fast=True)
        writer = tantivy.Index(schema.build(), path=str(folder)).writer(heap_size=1 << 30, num_threads=1)
        stems, ids, offsets = weighted_stems(words)
        for row in range(len(words)):
            text = " ".join([stems[id] for id in ids[offsets[row] : offsets[row + 1]]])
            writer.add_document(tantivy.Document(text=text, part=row % PARTS, row=row))
        writer.commit()
        writer.wait_merging_threads()

    @staticmethod
    def open(folder: Path) -> Search:
        import tantivy

        from ncs.storage.postings import stem_all

        index = tantivy.Index.open(str(folder))
        schema, searcher = index.schema, index.searcher()
        part = tantivy.Query.term_query(schema, "part", 0)

        def search(words: Sequence[str], masked: bool) -> list[tuple[int, float]]:
            terms = [tantivy.Query.term_query(schema, "text", stem, "freq") for stem in stem_all(words)]
            query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
            if masked:
                filtered = tantivy.Query.const_score_query(part, 0.0)
                query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, filtered)])
            hits = searcher.search(query, K, count=False).hits
            rows = searcher.fast_field_values("row", [address for _, address in hits])
            # tantivy multiplies by k1 + 1, which orders alike
            scored = zip(rows, (score for score, _ in hits), strict=True)
            return [(int(row or 0), float(score) / (K1 + 1)) for row, score in scored]

        return search


ENGINES: Mapping[str, type[Engine]] = {"ncs postings": Ours, "bm25s": Bm25s, "tantivy": Tantivy}
