"""Known words that are spelt nearly like an unknown one."""

from __future__ import annotations

from collections.abc import Sequence

from ncs.vocabulary import Vocabulary


def near(word: str, vocabulary: Vocabulary, n: int = 3, *, counts: Sequence[int] | None = None) -> list[str]:
    """At most n words within one edit (two, from five letters on), nearest first, the more frequent of equals first.

    An edit adds, drops or changes a letter or swaps two neighbours (optimal string alignment). counts: how often
    each word of the vocabulary occurs, by id; without them equals stand in alphabetical order.

    >>> near("keybord", Vocabulary.of(["keyboard", "key", "board", "keyword"]))
    ['keyboard', 'keyword']
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    known = list(vocabulary)
    edits = 2 if len(word) >= 5 else 1
    found = process.extract(word.lower(), known, scorer=OSA.distance, score_cutoff=edits, limit=None)
    ranked = sorted((distance, 0 if counts is None else -int(counts[id]), id) for _, distance, id in found if distance)
    return [known[id] for _, _, id in ranked[:n]]
