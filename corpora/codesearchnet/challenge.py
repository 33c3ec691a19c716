"""The Challenge: annotated queries over any corpus whose URLs match, and the CSV of a submission.

queries.csv has 99 queries, annotationStore.csv people's judgments (0 to 3) of functions that are named by their URL.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from corpora.codesearchnet.functions import LANGUAGES, CodeFunction, corpus_languages
from corpora.codesearchnet.pairs import functions
from corpora.corpus import Corpus
from corpora.jsonl import read_lines
from corpora.tables import write_table
from ncs.errors import BadInput
from ncs.search.rankers import DEFAULT_RANKER
from ncs.types import Document, Query, Run

if TYPE_CHECKING:
    from ncs.index import Index

DEPTH = 300
"""Functions per query, as in CodeSearchNet's script."""
COLUMNS = ("language", "query", "GitHubUrl", "url")
"""Columns of a submission: the URL under the annotations' name, and under that of CodeSearchNet's script."""
Grades = Mapping[str, Mapping[str, float]]
"""query -> URL of a function -> mean of the annotators' grades."""


def read_queries(path: Path) -> tuple[Query, ...]:
    """queries.csv, a header and one query per line; their ids are 1, 2, ..."""
    rows = list(csv.reader(read_lines(path)))
    if not rows or [name.strip() for name in rows[0]] != ["query"]:
        raise BadInput(f"{path}:1: the only column must be called query; name CodeSearchNet's queries.csv")
    texts = [row[0].strip() for row in rows[1:] if row]
    if not texts:
        raise BadInput(f"{path} has no queries")
    return tuple(Query(str(number), text) for number, text in enumerate(texts, 1))


def read_annotations(path: Path, queries: Sequence[Query]) -> dict[str, dict[str, dict[str, float]]]:
    """annotationStore.csv: language -> query id -> URL -> mean grade of all who annotated that function.

    Languages and queries are compared without case, as CodeSearchNet's own evaluation does. Raises BadInput,
    naming the line, for an unknown query or language and for a grade that is not 0 to 3.
    """
    ids = {query.text.casefold(): query.id for query in queries}
    grades: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    table = csv.DictReader(list(read_lines(path)))
    if list(table.fieldnames or ())[:4] != ["Language", "Query", "GitHubUrl", "Relevance"]:
        raise BadInput(f"{path}:1: the columns must be Language,Query,GitHubUrl,Relevance,Notes; correct it")
    for row in table:
        place = f"{path}:{table.line_num}"
        language, text, grade = ((row[key] or "").strip() for key in ("Language", "Query", "Relevance"))
        if text.casefold() not in ids:
            raise BadInput(f"{place}: {text!r} is not among the queries; give the queries.csv that belongs to it")
        if language.lower() not in LANGUAGES:
            raise BadInput(f"{place}: no language {language!r}; choose from {', '.join(LANGUAGES)}")
        if grade not in ("0", "1", "2", "3"):
            raise BadInput(f"{place}: the grade {grade!r} is not 0, 1, 2 or 3; correct that line")
        grades[language.lower(), ids[text.casefold()], row["GitHubUrl"].strip()].append(int(grade))
    if not grades:
        raise BadInput(f"{path} holds no annotations")
    means: dict[str, dict[str, dict[str, float]]] = {}
    for (language, id, url), given in grades.items():
        means.setdefault(language, {}).setdefault(id, {})[url] = sum(given) / len(given)
    return means


def challenges(data: Path) -> list[Corpus]:
    """The Challenge in every language whose `<language>.zip`, or folder, lies in `data`/codesearchnet, beside
    queries.csv and annotationStore.csv. A corpus made here is searched with its undocumented functions."""
    folder = data / "codesearchnet"
    present = [language for language in corpus_languages(folder) if language in LANGUAGES]
    if not present:
        java = folder / "java.zip"
        raise BadInput(f"there is no {java}; fetch it with: python -m corpora fetch codesearchnet DATA")
    queries = read_queries(folder / "queries.csv")
    annotations = read_annotations(folder / "annotationStore.csv", queries)
    return [_challenge(folder, language, queries, annotations.get(language, {})) for language in present]


def _challenge(folder: Path, language: str, queries: Sequence[Query], graded: Grades) -> Corpus:
    """The Challenge in one language over the functions of a corpus, joined by URL.

    Qrels are whole numbers, halves rounded up: for CodeSearchNet's own NDCG use `grades`.
    Raises BadInput where no annotated function is in the corpus.
    """
    annotated = {url for grades in graded.values() for url in grades}

    def found() -> Iterator[CodeFunction]:
        return functions(folder, [language], undocumented=True)

    def source() -> Iterator[Document]:
        return (function.document() for function in found())

    present = {function.url for function in found() if function.url in annotated}
    if not present:
        raise BadInput(
            f"none of the {len(annotated)} functions annotated for {language!r} is in the corpus; name another one"
        )
    present_grades = {id: {url: grade for url, grade in urls.items() if url in present} for id, urls in graded.items()}
    grades = {id: urls for id, urls in present_grades.items() if urls}
    qrels = {id: {url: int(grade + 0.5) for url, grade in urls.items()} for id, urls in grades.items()}
    judged_queries = tuple(query for query in queries if query.id in qrels)
    return Corpus(f"codesearchnet-{language}", judged_queries, qrels, source, grades=grades)


def runs_of(
    index: Index, queries: Sequence[Query], languages: Sequence[str] = (), *, k: int = DEPTH, ranker: str | None = None
) -> dict[str, Run]:
    """language -> run of all queries over an index whose documents' ids are URLs, best first.

    languages: all of the Challenge's that the index has. Raises BadInput where it has none.
    """
    counts = cast("Mapping[str, int]", index.description.counts["languages"])
    present = [language for language in languages or LANGUAGES if language in counts]
    if not present:
        raise BadInput(f"the index has no {', '.join(languages or LANGUAGES)}; it has: {', '.join(counts)}")
    runs: dict[str, dict[str, dict[str, float]]] = {language: {} for language in present}
    for language, run in runs.items():
        for query in queries:
            hits = index.search(query.text, k, ranker=ranker or DEFAULT_RANKER, language=language, unfold=True)
            run[query.id] = {hit.document.id: hit.score for hit in hits}
    return dict(runs)


def write_submission(runs: Mapping[str, Run], queries: Sequence[Query], path: Path) -> int:
    """Write a submission, one function per row (COLUMNS), best first; returns the number of rows."""
    texts = {query.id: query.text for query in queries}
    rows = [
        (language, texts[id], url, url)
        for language, run in runs.items()
        for id, scores in run.items()
        for url in scores
    ]
    for _, _, url, _ in rows:
        if "#L" not in url:
            raise BadInput(f"{url!r} is no function's URL; make the index of a corpus: python -m corpora")
    write_table(path, COLUMNS, rows)
    return len(rows)


def read_submission(path: Path, queries: Sequence[Query]) -> dict[str, Run]:
    """language -> run, of a CSV of answers; their order gives the scores. Queries are compared without case.

    Raises BadInput, naming the line, for other columns and for an unknown query.
    """
    ids = {query.text.casefold(): query.id for query in queries}
    runs: dict[str, dict[str, dict[str, float]]] = {}
    table = csv.DictReader(list(read_lines(path)))
    columns = set(table.fieldnames or ())
    column = "url" if "url" in columns else "GitHubUrl"
    if not {"language", "query", column} <= columns:
        raise BadInput(f"{path}:1: the columns must be language, query and url; correct it")
    for row in table:
        language, text, url = ((row[name] or "").strip() for name in ("language", "query", column))
        if text.casefold() not in ids:
            raise BadInput(f"{path}:{table.line_num}: {text!r} is not among the queries; give their queries.csv")
        scores = runs.setdefault(language.lower(), {}).setdefault(ids[text.casefold()], {})
        scores.setdefault(url, -float(len(scores)))
    if not runs:
        raise BadInput(f"{path} holds no answers")
    return dict(runs)
