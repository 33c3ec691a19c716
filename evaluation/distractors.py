"""CodeSearchNet's other test: each query's function among fixed distractors instead of the whole corpus.

Husain et al. 2019, section 4.3, table 3: "we fix a set of 999 distractor snippets for each test pair". The released
code takes them in batches: the shuffled pairs are cut into thousands, every query of a batch is ranked among the
functions of its batch, and the incomplete last batch is left out. Both are here, both seeded: a query has the same
distractors whichever ranker is asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.types import Document, Qrels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

DISTRACTORS = 999


@dataclass(frozen=True, slots=True)
class Distractors:
    """Rank each query among its own documents and `count` others: drawn for it, or those of its batch."""

    count: int
    seed: int = 0
    batches: bool = False

    def __str__(self) -> str:
        how = f"in batches of {self.count + 1:,}" if self.batches else f"among {self.count:,} drawn distractors"
        return f"{how}, seed {self.seed}"

    def rows(self, documents: Sequence[Document], qrels: Qrels) -> dict[str, Rows]:
        """query id -> the rows it is ranked among; queries without a relevant document are left out.

        Raises BadInput where no document is relevant, or there are too few.
        """
        row_of = {document.id: row for row, document in enumerate(documents)}
        relevant = {
            query: rows
            for query, grades in qrels.items()
            if (rows := [row_of[id] for id, grade in grades.items() if grade > 0 and id in row_of])
        }
        if not relevant:
            raise BadInput("no query has a relevant document to rank among distractors; omit --distractors")
        if self.batches:
            return batch_distractors(relevant, size=self.count + 1, seed=self.seed)
        return draw_distractors(relevant, len(documents), count=self.count, seed=self.seed)


def draw_distractors(
    relevant: Mapping[str, Sequence[int]], documents: int, *, count: int = DISTRACTORS, seed: int = 0
) -> dict[str, Rows]:
    """query id -> sorted rows of its relevant documents and of `count` others, drawn for this query alone.

    The draw depends on the seed, the query's id and the number of documents, not on which other queries there are.
    Raises BadInput where a query has fewer than `count` other documents.
    """
    rows_by_query = {}
    for query, rows in relevant.items():
        others = np.setdiff1d(np.arange(documents), rows)
        if len(others) < count:
            raise BadInput(f"{count} distractors for {query!r}, but only {len(others)} other documents; ask for fewer")
        key = hashlib.blake2b(f"{seed} {query}".encode(), digest_size=8).digest()
        sampled = np.random.default_rng(int.from_bytes(key, "little")).choice(others, count, replace=False)
        rows_by_query[query] = np.sort(np.concatenate([np.asarray(rows, np.int64), sampled]))
    return rows_by_query


def batch_distractors(
    relevant: Mapping[str, Sequence[int]], *, size: int = DISTRACTORS + 1, seed: int = 0
) -> dict[str, Rows]:
    """query id -> sorted rows of its batch: `size` queries' first relevant documents, the queries shuffled by seed.

    The incomplete last batch is left out. Raises BadInput where there are fewer queries than one batch, or where two
    queries have the same document.
    """
    firsts = {query: rows[0] for query, rows in relevant.items() if rows}
    if len(firsts) < size:
        raise BadInput(f"{len(firsts)} queries fill no batch of {size}; omit --batches, or ask for fewer distractors")
    if len(set(firsts.values())) < len(firsts):
        raise BadInput("two queries have the same document, so they cannot share a batch; omit --batches")
    order = np.random.default_rng(seed).permutation(np.array(list(firsts), dtype=object))
    rows_by_query = {}
    for start in range(0, len(order) - size + 1, size):
        batch = order[start : start + size]
        rows = np.sort(np.array([firsts[query] for query in batch], np.int64))
        rows_by_query.update(dict.fromkeys(batch, rows))
    return {query: rows_by_query[query] for query in relevant if query in rows_by_query}
