"""What lexical engines are measured on: a real corpus of a wanted size, questions, and what they must find."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.lexical_engines import K1, B, K, weighted_stems
from ncs.errors import BadInput
from ncs.storage.words import WordTable
from ncs.types import FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray


def prepare(folders: Sequence[Path], documents: int, questions: int, work: Path) -> dict[str, Any]:
    """Write the word table, the questions and what they should find; return the corpus's figures."""
    real = read_words(folders, work / "real")  # mapped from there: what is redrawn must not be written over it
    rng = np.random.default_rng(0)
    rows = (
        np.arange(documents)
        if documents <= len(real)
        else np.concatenate([np.arange(len(real)), rng.integers(0, len(real), documents - len(real))])
    )
    words = redraw(real, rows)
    words.save(work)
    texts = _questions(words, questions, rng)
    want = _reference(words, texts)
    (work / "questions.json").write_text(json.dumps({"texts": texts, "want": want}))
    return {
        "documents": len(words), "distinct": min(len(real), documents), "words": len(words.ids),
        "vocabulary": len(words.vocabulary), "questions": len(texts), "k": K, "k1": K1, "b": B,
        "machine": f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, numpy {np.__version__}",
    }  # fmt: skip


def read_words(folders: Sequence[Path], work: Path) -> WordTable:
    """The words of all functions below the folders, copies left out."""
    from ncs.build.batches import Collector, pack_batch
    from ncs.extract import extract_files, language_of
    from ncs.sources import walk

    work.mkdir(exist_ok=True)
    files = walk(folders, wanted=lambda path: language_of(path) is not None, force=True)
    with Collector(work, code=False, deduplicate=True) as collector:
        for extraction in extract_files(files, finish=partial(pack_batch, code=False)):
            collector.add(extraction.result)
        words = collector.finish().words
    if not len(words):
        raise BadInput("no function found; name a folder with source files")
    return words


def redraw(words: WordTable, rows: NDArray[np.int64]) -> WordTable:
    """The documents of these rows, in this order."""
    width = len(FIELDS)
    bounds = words.offsets[::width]
    lengths = np.diff(words.offsets).reshape(-1, width)[rows]
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths.ravel(), out=offsets[1:])
    ids = np.concatenate([words.ids[bounds[row] : bounds[row + 1]] for row in rows])
    return WordTable(words.vocabulary, ids, offsets)


def _questions(words: WordTable, n: int, rng: np.random.Generator) -> list[list[str]]:
    """The first words of doc comments, as people would type them: two to five, without stop words."""
    from ncs.text.stopwords import content_words

    texts: list[list[str]] = []
    for row in rng.permutation(len(words)):
        ids = words.ids_of(int(row), "doc")[:8]
        text = content_words([words.vocabulary.word(int(id)) for id in ids])[:5]
        if len(text) >= 2:
            texts.append(text)
        if len(texts) == n:
            break
    return texts


def _reference(words: WordTable, texts: Sequence[Sequence[str]]) -> list[list[tuple[int, float]]]:
    """The best ten of each question by bm25s's score of every document, exactly, ties by row."""
    import bm25s

    from ncs.storage.postings import stem_all, top

    stems, ids, offsets = weighted_stems(words)
    engine = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float64")
    engine.index((np.split(ids, offsets[1:-1]), {s: id for id, s in enumerate(stems)}), show_progress=False)
    want = []
    for text in texts:
        scores = engine.get_scores(stem_all(text)).astype(np.float64)
        rows = np.flatnonzero(scores > 0)
        want.append(top(rows, scores[rows], 10))
    return want
