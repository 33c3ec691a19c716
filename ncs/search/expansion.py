"""A question's words as this corpus writes them: which of them count less, and what else they are spelt like.

Both come from counts of the corpus, not from a list:

    prose     a word counts PROSE + (1 - PROSE) * c, where c is the share of its documents that have it in code (names,
              calls, types, variables) and not in comments and literals only: what people say about code, but no code
              says, tells little about what a function does
    joined    "lower case" is `lowercase` too, where the corpus has that word
    split     "lowercasein" is "lowercase in", where it has both and not the whole
    alike     "intialize" is "initialize": an unknown word's nearest known one

A word that the question repeats counts less each time: c times count c * (K3 + 1) / (c + K3), as in Okapi (Robertson et
al. 1994, TREC-3). Pasted code says `i` nine times, and asks for it no more than once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncs.storage.postings import Postings, Term

PROSE = 0.5
"""What a word counts that no code says. Measured: .3 and .7 gain less on one set of questions, nothing on others."""
K3 = 2.0
"""Of 1, 2 and 8 the best mean over eleven sets of long questions (DESIGN.md); a word said once counts 1 by any."""
SPELLING = 0.5
"""What another spelling counts beside the question's own words."""
PART, LEAST = 3, 2
"""Letters of a part of a split word, and documents that have it."""
LONG, LONGER = 5, 8
"""Letters from which on one edit, and two, are a slip and not another word."""
MOST = 5
"""Unknown words of a question that are looked at: each is compared with all words, and pasted text has hundreds."""
UNJOINED = frozenset({"in", "to", "from", "on", "of", "not", "is", "into"})
"""Words that bind to what stands before them: `in list` asks for no `inlist`."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Stem id -> what it counts. asked: the question's own words; added: other spellings, which are `words`, in the
    order of the question."""

    asked: Mapping[int, float]
    added: Mapping[int, float]
    words: tuple[str, ...]


def worded(
    words: Sequence[str],
    postings: Postings,
    known: Callable[[], list[str]],
    *,
    prose: float = PROSE,
    spelling: float = SPELLING,
) -> Wording:
    """How the postings should be asked for a question's words. known: all words of the corpus, read where one is
    unknown. prose=1 counts all words alike, spelling=0 adds none."""
    terms = postings.terms(words)
    counts = Counter(term.id for term in terms if term.id is not None)
    asked = {
        id: count * (K3 + 1) / (count + K3) * (prose + (1 - prose) * postings.share_in_code(id))
        for id, count in counts.items()
    }
    others = [*_joined(terms, postings), *_unknown(terms, postings, known)] if spelling else []
    fresh = {term.id: term.word for term in others if term.id is not None and term.id not in asked}
    return Wording(asked, dict.fromkeys(fresh, spelling), tuple(fresh.values()))


def _joined(terms: Sequence[Term], postings: Postings) -> list[Term]:
    """Neighbours that the corpus writes as one word."""
    pairs = [
        one.word + other.word
        for one, other in pairwise(terms)
        if one.word != other.word and min(len(one.word), len(other.word)) > 1 and one.word not in UNJOINED
    ]
    return postings.terms(pairs)


def _unknown(terms: Sequence[Term], postings: Postings, known: Callable[[], list[str]]) -> list[Term]:
    """What the first MOST words that no document has are likely to be."""
    unknown = list(dict.fromkeys(term.word for term in terms if term.id is None))[:MOST]
    return [other for word in unknown for other in _split(word, postings) or _alike(word, postings, known)]


def _split(word: str, postings: Postings) -> list[Term]:
    """The two known words that it is made of, the ones of which the rarer is most frequent; none for no such two."""
    cuts = range(PART, len(word) - PART + 1)
    parts = postings.terms([part for cut in cuts for part in (word[:cut], word[cut:])])
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    best = max(pairs, key=lambda pair: min(part.documents for part in pair), default=None)
    return list(best) if best and min(part.documents for part in best) >= LEAST else []


def _alike(word: str, postings: Postings, known: Callable[[], list[str]]) -> list[Term]:
    """The nearest known word with the same first letter."""
    from rapidfuzz.distance import OSA

    from ncs.text.spelling import near

    if len(word) < LONG:
        return []
    edits = 2 if len(word) >= LONGER else 1
    nearest = near(word, known(), count=lambda other: postings.terms([other])[0].documents)
    slips = [other for other in nearest if other[0] == word[0] and OSA.distance(word, other) <= edits]
    return [term for term in postings.terms(slips[:1]) if term.id is not None]
