"""Stop words: words of a query that are grammar, not content; dropped from queries, never from documents.

The list is short on purpose. Left out of it, because code uses them with a meaning of their own:
directions and opposites (`to`, `from`, `in`, `out`, `on`, `off`, `up`, `down`, `into`, `before`, `after`,
`open`, `close`: "int to string" is not "string to int"), logic and loops (`if`, `else`, `while`, `not`, `no`,
`all`, `any`, `each`, `until`), and verbs that stand in names (`get`, `set`, `has`, `make`, `use`, `find`).
`to` is grammar in "how to" and "a way to" only, and is dropped there.
"""

from __future__ import annotations

from collections.abc import Sequence

_GRAMMAR = """
a an the this that these those it its there here
i me my we us our you your one
is are was were be been being am do does did can could should would will shall may might must
and or of at as by for with so then than also just very
how what when where which who why whether
want need like please help possible way ways programmatically
don doesn didn isn aren wasn won couldn shouldn wouldn s t m ve ll
"""
STOP_WORDS: frozenset[str] = frozenset(_GRAMMAR.split())
"""Function words, words of question phrases ("how do I", "what is the best way to", "programmatically"),
and what the tokenizer leaves of contractions ("don't" -> don, t)."""

_BEFORE_TO = frozenset({"how", "way", "ways", "want", "need", "like", "possible"})


def content_words(words: Sequence[str]) -> list[str]:
    """The words of a query without stop words, in order; all of them if nothing else is left.

    >>> content_words("how to convert int to string".split())
    ['convert', 'int', 'to', 'string']
    >>> content_words("what is this".split())
    ['what', 'is', 'this']
    """
    content = [
        word
        for at, word in enumerate(words)
        if word not in STOP_WORDS and not (word == "to" and at and words[at - 1] in _BEFORE_TO)
    ]
    return content or list(words)
