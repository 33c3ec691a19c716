"""The messages that people read on more than one surface, each worded once; docs/messages.md lists them.

Before the first "; " stands what is the matter, after it the remedy.
"""

from collections.abc import Sequence

EMPTY = "nothing to search for; say what the function does, or spell its name"
NO_WORDS = "no words in the query; say what the function does, or spell its name; a regexp finds numbers and signs"
COMMON_WORDS = "only common words in the query ({words}); add what the function does"
TOO_LONG = "the {what} has {length:,} characters; shorten it to {most:,}"
NO_MATCH = "no match for {name!r}"
SIMILAR = "no match for {name!r}; similar: {near}"
NO_NUMBER = "no match for {name!r}; a regexp finds numbers"
RESPELLED = "no match for {name!r}; searching for {other!r}"
NO_PHRASE = "no hit has the words in quotes as they stand; each was searched for"
LINKED = "no word of the query is in this code; hits have words that stand for them in public code"
REPORT = "searched for the title of this report only; ncs locate ranks the files by all of it"
NOTHING_FOUND = "nothing found; use other words"
NOTHING_PASSES = "nothing passes the filters; use fewer"
NOTHING_LIKE = "nothing found that is like {name}"
NO_USE = "nothing found that uses {name}{where}"
FIRST_PLACES = "{total:,} places match; not all are shown"
FIRST_USES = "about {total:,} functions use {name}; not all are shown"
MORE_USES = "{uses} of {name} {where}; to see all, ask for {name} alone"
USES_LEFT_OUT = "{name} is used, but not in what the filters leave"
LEFT_OUT = "{name} is defined at {where}, which the filters or the file leave out"
ONLY_USED = "{name!r} is not defined here; {users} it"
ELSEWHERE = "no {name} in {owner}; elsewhere:"
NO_CODE = "this index keeps no code; build it again without --no-store-code"
UNLIKELY = "probably nothing here answers that; use other words"
TOO_UNLIKELY = "nothing found is likely enough (best: {best:.2f}); use other words, or ask for less"
NO_CONFIDENCE = "this ranker gives no confidence; use another one, or ask for no least confidence"
OUT_OF_RANGE = "{name} is {value}; it must be {bound}"
UNKNOWN = "no {what} {name!r}{where}; choose from {known}"
BAD_GLOB = "a glob of {globs} matches nothing; write for example '*.py' or '!tests/'"
MANY_GLOBS = "{glob!r} stands for more than {most} globs; write a wider one"
BAD_REGEXP = "no regular expression: {regexp!r} ({error}); escape special characters with \\"
NOT_BUILT = "this index was built without {name!r}; add it with: ncs build --add {option}"
NO_NAME = "{text!r} is not a name in code; write NAME, Owner.NAME, or FILE::NAME for a file of the index"
NO_PLACE = "{place!r} is not FILE:LINE; name a line of a function, as src/Main.java:42, or the function"
NO_FILE = "no file {path!r} in this index; name it as hits do{files}"
NO_DOCUMENT = "no document {id!r} in this index; use the id of a hit"
NO_INDEX = "no index {where}; {remedy}"
UNUSABLE = "{what}; build the index again: ncs build SOURCES -i {folder}"
UNTRUSTED = "never updated, and searched by built-in rankers only, as {reason}"
BEHIND = "the index is behind: {changed}; {remedy}"
OTHER_TREE = "this index is of {tree}, another work tree of this repository; make one of this tree: ncs build ."
TIMEOUT = "no answer within {seconds:g} seconds"


def no_match(name: str, near: Sequence[str]) -> str:
    """Nothing is called so, but these nearly; of numbers few are indexed."""
    return (NO_NUMBER if name[:1].isdigit() else SIMILAR if near else NO_MATCH).format(name=name, near=", ".join(near))
