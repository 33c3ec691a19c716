"""Judgments as other programs read them: TREC qrels, a BEIR folder, annotationStore's columns; the pool as runs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from corpora.corpus import Corpus, write_beir
from corpora.trec import write_qrels, write_run
from evaluation.annotation.answers import qrels_of
from evaluation.annotation.desk import Desk
from evaluation.annotation.pool import runs
from evaluation.experiments import all_documents
from ncs.errors import BadInput
from ncs.index import Index
from ncs.types import Document, Qrels

T = TypeVar("T")
COLUMNS = ("Language", "Query", "GitHubUrl", "Relevance", "Notes")
"""Of annotationStore.csv."""
_SPELLED = {"javascript": "JavaScript", "typescript": "TypeScript", "php": "PHP"}


def export(desk: Desk, index: Index, path: Path) -> str:
    """Write the judgments and say what was written.

    FILE.csv: a row a judgment in annotationStore's columns. A folder that is there: BEIR, with every document of the
    index. Any other name: TREC qrels, of several people's grades the mean, halves rounded up (`trec_id`).
    Raises BadInput where nothing is judged and for ids that the form cannot hold.
    """
    answers = desk.judgments.answers()
    qrels = qrels_of(desk.judgments.pairs, answers)
    judged = sum(map(len, qrels.values()))
    if not judged:
        raise BadInput(f"nothing is judged in {desk.judgments.path} yet; judge first, without --export")
    try:
        if path.is_dir():
            _write_beir(desk, index, qrels, path)
        else:
            _write_whole(desk, qrels, path)
    except UnicodeEncodeError as error:
        raise BadInput(f"{path} cannot hold {error.object[:80]!r}, which is no Unicode; rename that file") from None
    except OSError as error:
        raise BadInput(f"cannot write {path} ({error.strerror}); name another file") from None
    return f"{judged:,} of {len(desk.judgments.pairs):,} pairs are judged, of {len(qrels):,} queries: {path}"


def export_runs(desk: Desk, folder: Path) -> list[Path]:
    """A TREC run a ranker, of the queries with a judgment: what `python -m evaluation --compare` takes."""
    judged = qrels_of(desk.judgments.pairs, desk.judgments.answers())
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for ranker, run in runs(desk.judgments.pairs, desk.judgments.recipe).items():
        written.append(folder / f"{ranker}.run")
        of_judged = {query: scores for query, scores in run.items() if query in judged}
        write_run(_trec_ids(of_judged), written[-1], tag=ranker)
    return written


def _write_whole(desk: Desk, qrels: Qrels, path: Path) -> None:
    """The old file stays until the new one is complete."""
    part = path.with_name(path.name + ".part")
    try:
        if path.suffix.lower() == ".csv":
            _write_csv(desk, part)
        else:
            write_qrels(_trec_ids(qrels), part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def trec_id(id: str) -> str:
    """An id as the TREC files written here have it: they cannot hold white space, which paths may.

    >>> trec_id("my app/a.py:1"), trec_id("app/a%b.py:1")
    ('my%20app/a.py:1', 'app/a%b.py:1')
    """
    return re.sub(r"\s", lambda space: quote(space[0]), id)


def _trec_ids(by_query: Mapping[str, Mapping[str, T]]) -> dict[str, dict[str, T]]:
    found = {query: {trec_id(id): value for id, value in values.items()} for query, values in by_query.items()}
    if any(len(found[query]) < len(values) for query, values in by_query.items()):
        raise BadInput("two ids differ only in white space and %20; make a folder and export into it, as BEIR")
    return found


def _write_csv(desk: Desk, path: Path) -> None:
    texts = {query.id: query.text for query in desk.judgments.queries}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for answer in desk.judgments.answers():
            if answer.grade is not None:
                pair = desk.judgments.pairs[answer.pair - 1]
                language = _SPELLED.get(pair.language, pair.language.capitalize())
                url = desk.url_or_id(pair.document)
                writer.writerow((language, texts[pair.query], url, answer.grade, answer.notes))


def _write_beir(desk: Desk, index: Index, qrels: Qrels, folder: Path) -> None:
    queries = tuple(query for query in desk.judgments.queries if query.id in qrels)
    write_beir(Corpus(folder.name, queries, qrels, partial(_all, index)), folder)


def _all(index: Index) -> Iterator[Document]:
    yield from all_documents(index)
