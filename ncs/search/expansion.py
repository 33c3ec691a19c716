"""Query expansion for BM25: the weight of each word, and other spellings of it in the corpus.

Both are computed from corpus counts:

    prose     a word counts PROSE + (1 - PROSE) * c, where c is the share of its documents that have it in code (names,
              calls, types, variables) and not in comments and literals only: a word never used in code says little
              about what a function does
    joined    "lower case" also matches `lowercase`, if the corpus has that word
    split     "lowercasein" matches "lowercase in", if the corpus has only the parts
    similar   "intialize" matches "initialize", the nearest known word

A word that the query repeats counts less each time: c times count c * (K3 + 1) / (c + K3), as in Okapi (Robertson et
al. 1994, TREC-3), since pasted code repeats names such as `i`.
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
"""Weight of a word that is never in code; .3 and .7 are no better."""
K3 = 2.0
"""The best of 1, 2 and 8 over eleven sets of long queries."""
SPELLING = 0.5
"""Weight of another spelling beside the query's own words."""
SHORTEST_PART, FEWEST = 3, 2
"""Minimum letters of each part of a split word, and minimum documents that have it."""
ONE_EDIT, TWO_EDITS = 5, 8
"""Minimum letters of a word for one edit, and for two, to be a typo."""
LOOKUPS = 5
"""Unknown words looked up per query: each is compared with all words, and pasted text has hundreds."""
UNJOINED = frozenset({"in", "to", "from", "on", "of", "not", "is", "into"})
"""Words that are not joined to the next one: `in list` is not `inlist`."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Weights of stems: of the query itself, and of other spellings.

    terms: the words of the query, in order. words: the other spellings as words, in query order.
    corrections: unknown word of the query -> the words searched for instead.
    """

    terms: Sequence[Term]
    query: Mapping[str, float]
    other_spellings: Mapping[str, float]
    words: tuple[str, ...] = ()
    corrections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, float]:
        """Weights of all stems."""
        return {**self.query, **self.other_spellings}


def expand(
    words: Sequence[str],
    postings: Postings,
    vocabulary: Callable[[], list[str]],
    *,
    prose: float = PROSE,
    spelling: float = SPELLING,
) -> Expansion:
    """The expansion of a query's words. vocabulary: all words of the corpus, called if a word is unknown.

    prose=1 weights all words equally, spelling=0 adds none.
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
    others = [*_joined_neighbors(terms, postings), *(other for each in corrections.values() for other in each)]
    other_words = {term.stem: term.word for term in others if term.documents and term.stem not in query}
    return Expansion(
        terms,
        query,
        dict.fromkeys(other_words, spelling),
        tuple(other_words.values()),
        {word: tuple(term.word for term in others) for word, others in corrections.items()},
    )


def _joined_neighbors(terms: Sequence[Term], postings: Postings) -> list[Term]:
    """Terms for neighboring words written as one."""
    pairs = [
        one.word + other.word
        for one, other in pairwise(terms)
        if one.word != other.word and min(len(one.word), len(other.word)) > 1 and one.word not in UNJOINED
    ]
    return postings.terms(pairs)


def _corrections(
    terms: Sequence[Term], postings: Postings, vocabulary: Callable[[], list[str]]
) -> dict[str, list[Term]]:
    """The first LOOKUPS unknown words -> their likely corrections; words without one are left out."""
    unknown = list(dict.fromkeys(term.word for term in terms if not term.documents))[:LOOKUPS]
    similar = {word: _split(word, postings) or _nearest(word, postings, vocabulary) for word in unknown}
    return {word: others for word, others in similar.items() if others}


def _split(word: str, postings: Postings) -> list[Term]:
    """The split into two known words whose rarer part is most frequent; [] if there is none."""
    positions = range(SHORTEST_PART, len(word) - SHORTEST_PART + 1)
    parts = postings.terms([part for position in positions for part in (word[:position], word[position:])])
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    best = max(pairs, key=lambda pair: min(part.documents for part in pair), default=None)
    return list(best) if best and min(part.documents for part in best) >= FEWEST else []


def _nearest(word: str, postings: Postings, vocabulary: Callable[[], list[str]]) -> list[Term]:
    """The nearest known word with the same first letter, if any."""
    from rapidfuzz.distance import OSA

    from ncs.text.spelling import nearest_words

    if len(word) < ONE_EDIT:
        return []
    edits = 2 if len(word) >= TWO_EDITS else 1
    nearest = nearest_words(word, vocabulary(), count=lambda other: postings.terms([other])[0].documents)
    typos = [other for other in nearest if other[0] == word[0] and OSA.distance(word, other) <= edits]
    return [term for term in postings.terms(typos[:1]) if term.documents]
