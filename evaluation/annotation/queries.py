"""The queries people judge functions for: a text file, TSV, JSON lines, or the Challenge's queries.csv."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from corpora.codesearchnet import read_queries as read_challenge
from corpora.jsonl import read_lines, read_rows
from ncs.errors import BadInput
from ncs.types import Query

MOST_QUERY = 2_000
"""Characters of a query."""
Placed = Iterator[tuple[str, Query]]
"""Queries, each with its place: `file:line`."""


def read_queries(path: Path) -> tuple[Query, ...]:
    """The queries of a file, by its name's ending; `.gz` may follow it.

    .csv: the Challenge's, a header `query` and one a line. .tsv: id, tab, text. .jsonl: objects with text (or query)
    and perhaps _id (or id). All else: one a line. Without ids they are 1, 2, ...; empty lines are passed over.
    Raises BadInput, naming the line, for what cannot be judged or exported later: no text, an id with white space, an
    id or a text that comes twice; and for a file that holds none.
    """
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    try:
        placed = list(_READERS.get(ending, _of_lines)(path))
    except OSError as error:
        raise BadInput(f"cannot read {path} ({error.strerror}); name a file of queries") from None
    if not placed:
        raise BadInput(f"{path} has no queries; write one a line")
    ids, texts = dict[str, str](), dict[str, str]()
    for place, query in placed:
        _check(query, place)
        for known, key, what in ((ids, query.id, "id"), (texts, query.text.casefold(), "query")):
            if key in known:
                raise BadInput(f"{place}: the {what} {key[:80]!r} is already at {known[key]}; keep one of them")
            known[key] = place
    return tuple(query for _, query in placed)


def _check(query: Query, place: str) -> None:
    if not query.text:
        raise BadInput(f"{place}: no text; write the query, or take the line out")
    if len(query.text) > MOST_QUERY:
        raise BadInput(f"{place}: a query of {len(query.text):,} characters; {MOST_QUERY:,} are the most, shorten it")
    if not query.id or query.id.split() != [query.id]:
        raise BadInput(f"{place}: the id {query.id[:80]!r} is empty or holds white space, as no qrels can; rename it")
    try:
        (query.id + query.text).encode()
    except UnicodeEncodeError:
        raise BadInput(f"{place}: half a surrogate pair, which is no Unicode; correct that line") from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_lines(path), 1):
        if text := line.lstrip("\ufeff").rstrip("\r\n"):
            yield number, text


def _of_lines(path: Path) -> Placed:
    filled = ((number, text) for number, line in _lines(path) if (text := line.strip()))
    for id, (number, text) in enumerate(filled, 1):
        yield f"{path}:{number}", Query(str(id), text)


def _of_table(path: Path) -> Placed:
    for number, line in _lines(path):
        id, tab, text = line.partition("\t")
        if not line.strip():
            continue
        if not tab:
            raise BadInput(f"{path}:{number}: no tab; write the id, a tab and the query")
        yield f"{path}:{number}", Query(id.strip(), text.strip())


def _of_objects(path: Path) -> Placed:
    for number, row in enumerate(read_rows(path), 1):
        id = next((row.values[key] for key in ("_id", "id") if key in row.values), number)
        if type(id) not in (str, int):
            raise BadInput(f"{row.place}: the id is neither text nor a whole number; correct that line")
        text = row.text("text" if "text" in row.values else "query")
        yield row.place, Query(str(id), text.strip())


def _of_challenge(path: Path) -> Placed:
    for query in read_challenge(path):
        yield f"{path}:{int(query.id) + 1}", query


_READERS: Mapping[str, Callable[[Path], Placed]] = {
    ".csv": _of_challenge,
    ".tsv": _of_table,
    ".jsonl": _of_objects,
}
