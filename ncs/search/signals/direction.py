"""Directions and opposites: "int to string" is not `stringToInt`, and "show" is not `hide`.

Words and embeddings cannot tell these apart: opposites stand in the same places and have the same neighbours, and a
mean of word vectors has no order. A function's name can: `x to y` and `y from x` are one way, the reverse the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.postings import stem_all
from ncs.text.stems import Stems
from ncs.text.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable

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


def ways(tokens: Sequence[str]) -> list[tuple[str, str]]:
    """Which thing a question wants made into which, as stems.

    >>> ways("how to convert an int to a string".split()), ways("string from int".split()), ways("how to sort".split())
    ([('int', 'string')], [('int', 'string')], [])
    """
    found = []
    for at, token in enumerate(tokens):
        before = next((word for word in reversed(tokens[:at]) if word not in STOP_WORDS), None)
        after = next((word for word in tokens[at + 1 :] if word not in STOP_WORDS), None)
        asked = at > 0 and tokens[at - 1] not in STOP_WORDS  # "how to" is no way
        if before and after and asked and token in TO:
            found.append((before, after))
        elif before and after and asked and token in ("from",):
            found.append((after, before))
    stems = stem_all([word for pair in found for word in pair])
    return list(zip(stems[::2], stems[1::2], strict=True))


def direction(
    table: WordTable, rows: NDArray[np.int64], tokens: Sequence[str], stems: Stems | None = None
) -> NDArray[np.float64]:
    """1 where a row's name says the question's way, -1 where it says the reverse or an opposite, else 0; [len(rows)].

    An opposite counts where the name has it and not the question's own word. stems: where the words' are noted.
    """
    wanted = ways(tokens)
    asked = set(stem_all(tokens))
    against = {OPPOSITES[stem] for stem in asked if stem in OPPOSITES} - asked
    found = np.zeros(len(rows))
    if not wanted and not against:
        return found
    stems = stems or Stems(table.vocabulary)
    ids, offsets = table.select_rows(("name",), rows)
    tells = np.isin(stems.numbers(ids), stems.of_stems(against.union(*wanted)))
    for at in np.unique(np.searchsorted(offsets, np.flatnonzero(tells), side="right") - 1).tolist():
        plain = [table.vocabulary.word(int(id)) for id in ids[offsets[at] : offsets[at + 1]]]
        name = stem_all(plain)
        if any(stem in against and OPPOSITES[stem] not in name for stem in name):
            found[at] = -1
        for source, target in wanted:
            found[at] = _way(name, plain, source, target) or found[at]
    return found


def _way(name: Sequence[str], plain: Sequence[str], source: str, target: str) -> int:
    """1 for a name of this way, -1 for the reverse, 0 where it says neither."""
    for at in range(1, len(name) - 1):
        if plain[at] in TO or plain[at] in FROM:
            around = (name[at - 1], name[at + 1]) if plain[at] in TO else (name[at + 1], name[at - 1])
            if around == (source, target):
                return 1
            if around == (target, source):
                return -1
    return 0
