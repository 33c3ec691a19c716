"""NLP2API: how-to questions about Java, each with a gold program (Rahman and Roy 2018).

The programs are whole files, members or bare statements. Three of them stand in the data twice;
a copy of a question's gold program answers it as well as the gold one does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from corpora.corpus import Corpus
from corpora.jsonl import read_rows
from corpora.program import read_program
from ncs.types import Document, Query

PROGRAMS = "eval_java_nlp2api.jsonl.gz"


def read(data: Path) -> Corpus:
    """310 questions over their 310 programs; keys read: id, query, code. Raises BadInput for what is missing."""
    rows = list(read_rows(data / PROGRAMS))
    same: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        same[row.text("code")][row.text("id")] = 1

    def source() -> Iterator[Document]:
        for row in rows:
            yield read_program(row.text("code"), "java", id=row.text("id"))

    queries = tuple(Query(row.text("id"), row.text("query")) for row in rows)
    return Corpus("nlp2api", queries, {row.text("id"): same[row.text("code")] for row in rows}, source)
