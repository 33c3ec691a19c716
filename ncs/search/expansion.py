"""How BM25 is asked for a query: what each word counts, and other spellings of it that the corpus has.

Both come from counts of the corpus, not from a list:

    prose     a word counts PROSE + (1 - PROSE) * c, where c is the share of its documents that have it in code (names,
              calls, types, variables) and not in comments and literals only: a word that people use about code and
              never in it says little about what a function does
    joined    "lower case" is `lowercase` too, where the corpus has that word
    split     "lowercasein" is "lowercase in", where it has both and not the whole
    similar   "intialize" is "initialize": an unknown word's nearest known one

A word that the query repeats counts less each time: c times count c * (K3 + 1) / (c + K3), as in Okapi (Robertson et
al. 1994, TREC-3). Pasted code says `i` nine times, and asks for it no more than once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncs.storage.postings import Postings, Term

PROSE = 0.5
"""What a word counts that is never in code. Measured: .3 and .7 gain less on one set of queries, nothing on others."""
K3 = 2.0
"""Of 1, 2 and 8 the best mean over eleven sets of long queries; a word that is there once counts 1 by any."""
SPELLING = 0.5
"""What another spelling counts beside the query's own words."""
SHORTEST_PART, FEWEST = 3, 2
"""Letters of each part of a split word, and documents that must have it."""
ONE_EDIT, TWO_EDITS = 5, 8
"""Letters from which on one edit, and two, are a slip and not another word."""
LOOKUPS = 5
"""Unknown words of a query that are looked up: each is compared with all words, and pasted text has hundreds."""
UNJOINED = frozenset({"in", "to", "from", "on", "of", "not", "is", "into"})
"""Words that are not joined to the next one: `in list` asks for no `inlist`."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Stem -> what it counts: those of the query itself, and the added ones.

    terms: the words of the query, in order. words: the added ones as words, in the order of the query.
    corrections: unknown word of the query -> the known ones that it is taken for.
    """

    terms: Sequence[Term]
    query: Mapping[str, float]
    added: Mapping[str, float]
    words: tuple[str, ...] = ()
    corrections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, float]:
        """All of it."""
        return {**self.query, **self.added}


def expand(
    words: Sequence[str],
    postings: Postings,
    vocabulary: Callable[[], list[str]],
    *,
    prose: float = PROSE,
    spelling: float = SPELLING,
) -> Expansion:
    """The terms of a query's words. vocabulary: all words of the corpus, read where a word is unknown.

    prose=1 counts all words alike, spelling=0 adds none.
    """
    terms = postings.terms(words)
    counts = Counter(term.stem for term in terms if term.documents)
    query = {
        stem: count * (K3 + 1) / (count + K3) * (prose + (1 - prose) * postings.share_in_code(stem))
        for stem, count in counts.items()
    }
    if not spelling:
        return Expansion(terms, query, {})
    corrections = _corrections(terms, postings, vocabulary)
    others = [*_joined(terms, postings), *(other for each in corrections.values() for other in each)]
    added = {term.stem: term.word for term in others if term.documents and term.stem not in query}
    return Expansion(
        terms,
        query,
        dict.fromkeys(added, spelling),
        tuple(added.values()),
        {word: tuple(term.word for term in others) for word, others in corrections.items()},
    )


def _joined(terms: Sequence[Term], postings: Postings) -> list[Term]:
    """Neighbors that the corpus writes as one word."""
    pairs = [
        one.word + other.word
        for one, other in pairwise(terms)
        if one.word != other.word and min(len(one.word), len(other.word)) > 1 and one.word not in UNJOINED
    ]
    return postings.terms(pairs)


def _corrections(
    terms: Sequence[Term], postings: Postings, vocabulary: Callable[[], list[str]]
) -> dict[str, list[Term]]:
    """The first LOOKUPS words that no document has -> what they are likely to be; those that are like none left out."""
    unknown = list(dict.fromkeys(term.word for term in terms if not term.documents))[:LOOKUPS]
    similar = {word: _split(word, postings) or _nearest(word, postings, vocabulary) for word in unknown}
    return {word: others for word, others in similar.items() if others}


def _split(word: str, postings: Postings) -> list[Term]:
    """The two known words that it is made of, the ones of which the rarer is most frequent; [] for no such two."""
    cuts = range(SHORTEST_PART, len(word) - SHORTEST_PART + 1)
    parts = postings.terms([part for cut in cuts for part in (word[:cut], word[cut:])])
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    best = max(pairs, key=lambda pair: min(part.documents for part in pair), default=None)
    return list(best) if best and min(part.documents for part in best) >= FEWEST else []


def _nearest(word: str, postings: Postings, vocabulary: Callable[[], list[str]]) -> list[Term]:
    """The nearest known word with the same first letter."""
    from rapidfuzz.distance import OSA

    from ncs.text.spelling import near

    if len(word) < ONE_EDIT:
        return []
    edits = 2 if len(word) >= TWO_EDITS else 1
    nearest = near(word, vocabulary(), count=lambda other: postings.terms([other])[0].documents)
    slips = [other for other in nearest if other[0] == word[0] and OSA.distance(word, other) <= edits]
    return [term for term in postings.terms(slips[:1]) if term.documents]
