"""Why a hit is a hit: which words of the question stand in it and where, and what makes up its score.

`marking` finds words in code; it is all that a plain query reads. `reasons` explains the hits of a ranker.
"""

from ncs.search.explain.marking import marks, matched_words, query_stems

__all__ = ["marks", "matched_words", "query_stems"]
