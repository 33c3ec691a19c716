"""Where annotators sit: what each is shown, what they answer, how far they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from corpora.codesearchnet.repositories import Repository
from evaluation.annotation.answers import Answer, grades_of, next_pair
from evaluation.annotation.colours import pieces
from evaluation.annotation.database import Judgments
from evaluation.annotation.links import link, repositories_of
from evaluation.annotation.pool import Pair, digest
from ncs.errors import BadInput
from ncs.index import Index
from ncs.types import Document

State = Mapping[str, Any]


class Desk:
    """One pool, the answers to it, and the functions as they stand in the index."""

    def __init__(self, judgments: Judgments, index: Index) -> None:
        """Raises BadInput where a function of the pool is not in the index, or has other code there."""
        self.judgments = judgments
        self.documents = _documents(judgments, index)
        self._texts = {query.id: query.text for query in judgments.queries}
        self._repositories: Mapping[str, tuple[Repository, str]] = repositories_of(
            index, (document.repository for document in self.documents.values())
        )
        self._hidden = {str(judgments.path): judgments.path.name, str(index.folder): "the index"}

    def hidden(self) -> Mapping[str, str]:
        """Paths of the machine -> what errors call them (ncs.serve.http.errors)."""
        return self._hidden

    def begin(self) -> State:
        """What there is to judge, and who has judged: languages -> pairs, annotators -> judgments."""
        languages = Counter(pair.language for pair in self.judgments.pairs)
        judged = Counter(name for grades in grades_of(self.judgments.answers()).values() for name in grades)
        return {
            "pairs": len(self.judgments.pairs),
            "queries": len({pair.query for pair in self.judgments.pairs}),
            "languages": dict(sorted(languages.items())),
            "annotators": dict(sorted(judged.items())),
        }

    def state(self, annotator: str, language: str | None, again: Answer | None = None) -> State:
        """What an annotator sees: the next pair, or the one to be answered again, and the progress."""
        answers = self.judgments.answers()
        mine = [answer for answer in answers if answer.annotator == annotator]
        pairs = self._of(language)
        pair = next_pair(pairs, answers, annotator, self.judgments.recipe.seed)
        if again is not None:
            pair = self.judgments.pairs[again.pair - 1]
        return {
            "pair": None if pair is None else self._shown(pair, mine, again),
            "progress": _progress(pairs, answers, annotator),
            "undo": bool(mine),
        }

    def answer(self, annotator: str, pair: int, grade: int | None, notes: str) -> None:
        """Note an answer. Raises BadInput for a pair that is not in the pool, JudgedAlready for a judged one."""
        if not 1 <= pair <= len(self.judgments.pairs):
            raise BadInput(f"the pool has no pair {pair}; its pairs are 1 to {len(self.judgments.pairs)}")
        self.judgments.add(annotator, pair, grade, notes)

    def undo(self, annotator: str) -> Answer:
        """Take back the annotator's last answer. Raises BadInput where there is none."""
        answer = self.judgments.undo(annotator)
        if answer is None:
            raise BadInput("there is nothing to undo; judge something first")
        return answer

    def url_or_id(self, id: str) -> str:
        """What annotationStore.csv calls a function: its web address where it is known, else its id."""
        return link(self.documents[id], self._repositories) or id

    def _of(self, language: str | None) -> Sequence[Pair]:
        found = [pair for pair in self.judgments.pairs if language in (None, pair.language)]
        if not found:
            there = ", ".join(sorted({pair.language for pair in self.judgments.pairs}))
            raise BadInput(f"the pool has no {language}; it has: {there}")
        return found

    def _shown(self, pair: Pair, mine: Sequence[Answer], again: Answer | None) -> State:
        """A pair for the page; which ranker found it is not told, it would bias."""
        document = self.documents[pair.document]
        code, cut = pieces(document)
        whole = document.code.count("\n") == document.end_line - document.start_line
        earlier = next((answer.notes for answer in reversed(mine) if answer.pair == pair.number), "")
        return {
            "number": pair.number,
            "query": self._texts[pair.query],
            "language": document.language,
            "name": document.qualified_name or document.name,
            "place": f"{document.repository}/{document.path}:{document.start_line}".lstrip("/"),
            "url": link(document, self._repositories),
            "first_line": document.start_line if whole else None,
            "code": code,
            "cut": cut,
            "notes": again.notes if again else earlier,
            "grade": again.grade if again else None,
        }


def _progress(pairs: Sequence[Pair], answers: Sequence[Answer], annotator: str) -> dict[str, int]:
    numbers = {pair.number for pair in pairs}
    judged = grades_of([answer for answer in answers if answer.pair in numbers])
    mine = {number for number, grades in judged.items() if annotator in grades}
    skipped = {a.pair for a in answers if a.annotator == annotator and a.grade is None and a.pair in numbers}
    return {"judged": len(mine), "skipped": len(skipped - mine), "of": len(numbers), "by_anybody": len(judged)}


def _documents(judgments: Judgments, index: Index) -> dict[str, Document]:
    """The functions of the pool; judgments hold for code, so it must be the code that people saw."""
    digests = {pair.document: pair.digest for pair in judgments.pairs}
    rows = {id: row for id in digests if (row := index.documents.row_of(id)) is not None}
    found = dict(zip(rows, index.documents.documents(list(rows.values())), strict=True))
    other = [id for id in digests if id not in found or digest(found[id]) != digests[id]]
    if other:
        raise BadInput(
            f"{judgments.path} is of another index: {len(other):,} of its {len(digests):,} functions are not in "
            f"{index.folder}, or changed (the first: {other[0]}); name that index, or a new file with --database"
        )
    return found
