"""The name and definition signals: overlap of a candidate's name and the query, its direction, and definitions of
symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ncs.text.stems import Stems, stem_all
from ncs.text.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.question import Intent
    from ncs.storage.definitions import Definitions
    from ncs.storage.words import WordReader

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

DIRECTION = 3.0
"""Added for the right direction and subtracted for the wrong one; a name equal to the query counts 1."""
TO, FROM = frozenset({"to", "2", "into"}), frozenset({"from", "of"})
_OPPOSITES = """
show hide, open close, start stop, begin end, encode decode, encrypt decrypt, serialize deserialize, lock unlock,
enable disable, add remove, insert delete, push pop, read write, load save, get set, connect disconnect, attach detach,
bind unbind, register unregister, subscribe unsubscribe, expand collapse, zip unzip, compress decompress, pack unpack,
mute unmute, increase decrease, increment decrement, first last, min max, upper lower, import export, upload download,
send receive, acquire release, play pause, login logout, mount unmount, install uninstall, marshal unmarshal
"""


def _opposites() -> dict[str, str]:
    pairs = [stem_all(pair.split()) for pair in _OPPOSITES.replace("\n", " ").split(",")]
    return {a: b for one, other in pairs for a, b in ((one, other), (other, one))}


OPPOSITES: Mapping[str, str] = _opposites()
"""Stem -> the stem of its opposite."""


def agreement(table: WordReader, rows: Rows, idf: Mapping[str, float], stems: Stems | None = None) -> Scores:
    """sqrt(recall) * precision of each row's name, 0 to 1, [len(rows)].

    recall: the share of the query's idf that the name has; precision: the share of the name that is in the query.
    `hideSoftKeyboard` is all of "hide soft keyboard"; `hide` is a part, and so is `hideSoftKeyboardWhenScrolled`.
    """
    stems = stems or Stems(table.vocabulary)
    ids, offsets = table.select_rows(("name",), rows)
    total = sum(idf.values())
    if not total or not len(ids):
        return np.zeros(len(rows))
    term_stems = stems.of_stems(idf)
    order = np.argsort(term_stems)
    numbers = stems.numbers(ids)
    at = np.minimum(np.searchsorted(term_stems[order], numbers), len(order) - 1)
    shared = np.flatnonzero(term_stems[order][at] == numbers)
    owners = np.repeat(np.arange(len(rows)), np.diff(offsets))[shared]
    precision = np.bincount(owners, minlength=len(rows)) / np.maximum(np.diff(offsets), 1)
    # recall counts each word once
    _, first = np.unique(owners * np.int64(len(table.vocabulary)) + ids[shared], return_index=True)
    first.sort()  # summed in the order of the name, independent of ids
    weights = np.array(list(idf.values()))[order[at[shared[first]]]]
    recall = np.minimum(np.bincount(owners[first], weights, minlength=len(rows)) / total, 1.0)
    result: Scores = np.sqrt(recall) * precision
    return result


def directions(tokens: Sequence[str]) -> list[tuple[str, str]]:
    """(source, target) stems of the conversions in a query.

    >>> directions("how to convert an int to a string".split()), directions("string from int".split())
    ([('int', 'string')], [('int', 'string')])
    >>> directions("how to sort".split())
    []
    """
    pairs = []
    for at, token in enumerate(tokens):
        before = next((word for word in reversed(tokens[:at]) if word not in STOP_WORDS), None)
        after = next((word for word in tokens[at + 1 :] if word not in STOP_WORDS), None)
        if not (before and after) or tokens[at - 1] in STOP_WORDS:  # "how to" is no direction
            continue
        if token in TO:
            pairs.append((before, after))
        elif token in ("from",):
            pairs.append((after, before))
    stems = stem_all([word for pair in pairs for word in pair])
    return list(zip(stems[::2], stems[1::2], strict=True))


def direction(table: WordReader, rows: Rows, tokens: Sequence[str], stems: Stems | None = None) -> Scores:
    """1 if a row's name has the query's direction, -1 for the reverse or an opposite, else 0.

    Words and embeddings cannot tell `intToString` from `stringToInt`, or `show` from `hide`; a name can: `x to y` and
    `y from x` are one direction. An opposite counts where the name has it and not the query's own word.
    """
    pairs = directions(tokens)
    query = set(stem_all(tokens))
    against = {OPPOSITES[stem] for stem in query if stem in OPPOSITES} - query
    result = np.zeros(len(rows))
    if not pairs and not against:
        return result
    stems = stems or Stems(table.vocabulary)
    ids, offsets = table.select_rows(("name",), rows)
    directional = np.isin(stems.numbers(ids), stems.of_stems(against.union(*pairs)))
    for at in np.unique(np.searchsorted(offsets, np.flatnonzero(directional), side="right") - 1).tolist():
        words = [table.vocabulary.word(int(id)) for id in ids[offsets[at] : offsets[at + 1]]]
        name = stem_all(words)
        if any(stem in against and OPPOSITES[stem] not in name for stem in name):
            result[at] = -1
        for source, target in pairs:
            result[at] = _direction(name, words, source, target) or result[at]
    return result


def _direction(name: Sequence[str], words: Sequence[str], source: str, target: str) -> int:
    """1 for a name of this direction, -1 for the reverse, else 0; words: of the name, not stemmed."""
    for at in range(1, len(name) - 1):
        if words[at] in TO or words[at] in FROM:
            around = (name[at - 1], name[at + 1]) if words[at] in TO else (name[at + 1], name[at - 1])
            if around == (source, target):
                return 1
            if around == (target, source):
                return -1
    return 0


def definition(symbols: Definitions, intent: Intent, rows: Rows, inside: float) -> Scores:
    """How well each row defines a symbol of the query, [len(rows)].

    In a sentence a symbol asks for its definition inside one project only (inside = 1): over many projects `how to
    restart an Activity` asks for no class of that name.
    """
    result = np.zeros(len(rows))
    order = np.argsort(rows)
    for symbol in intent.symbols:
        defining, weights = symbols.match(symbol)
        at = np.minimum(np.searchsorted(rows[order], defining), len(rows) - 1)
        here = rows[order][at] == defining
        scores = weights[here] * (1.0 if intent.kind == "symbol" else inside)
        result[order[at[here]]] = np.maximum(result[order[at[here]]], scores)
    return result
