"""Pairs of Stack Overflow as questions: what they belong to, what they say, and whether their code can be an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.jsonl import read_rows
from ncs.search.aroma import Features, cached_features, readable
from ncs.storage.postings import stem_all
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize

WORDS, FEATURES, SHORTEST = 2, 25, 40
"""Of a question words, of an answer features (less code stands in functions of all kinds, unif.answers) and letters
(ncs287's shortest answer has 39): one word asks for a topic, and one call answers nothing that can be judged."""
LONGEST = 700
"""Letters of an answer (ncs287's longest has 547): a program of a screen no single function holds."""
Stems = frozenset[str]


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of a file. group: its thread or page; question: what its pairs have in common; order: the best first."""

    file: str
    values: Mapping[str, Any]
    group: str
    question: str
    order: tuple[int, bool, int]

    @property
    def title(self) -> str:
        return str(self.values["query"])

    @property
    def code(self) -> str:
        return str(self.values["code"])

    @property
    def features(self) -> Features:
        language = str(self.values.get("language", ""))
        return cached_features(self.code, language) if readable(language) else {}

    def about(self, topic: str) -> bool:
        return topic in self.values.get("tags", ()) or topic == self.values.get("platform")

    def answers(self) -> bool:
        """Whether it can be an answer that is judged by."""
        return SHORTEST <= len(self.code) <= LONGEST and sum(self.features.values()) >= FEATURES


def read(files: Iterable[Path]) -> list[Pair]:
    """The pairs of files, in their order. Raises BadInput as `read_rows`."""
    found = []
    for path in files:
        for row in read_rows(path):
            row.text("query"), row.text("code")
            values = row.values
            if thread := values.get("question_id"):
                group = question = f"so{thread}"
            else:
                group = row.text("id").partition("#")[0]
                question = f"{group}:{row.text('query').partition(':')[0]}"
            rank = values.get("answer_rank", 0)
            order = int(str(rank)), not values.get("accepted", values.get("first", True)), len(row.text("code"))
            found.append(Pair(path.name, values, group, question, order))
    return found


def stems(text: str, topic: str = "") -> Stems:
    """The words of a title without grammar and the topic's own, which all of its questions have.

    >>> sorted(stems("Android: how to hide the soft keyboard?", "android"))
    ['hide', 'keyboard', 'soft']
    """
    return frozenset(stem_all(content_words(tokenize(text)))) - frozenset(stem_all([topic]))
