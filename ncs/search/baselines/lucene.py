"""What Lucene does to text and to lengths: its standard analyser, and a field's length in one byte."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

LONGEST = 255  # characters; Lucene cuts a longer token into pieces

# The word boundaries of UAX #29 as far as ASCII goes: letters, digits and underscores stick together; so does one
# `.`, `:` or `'` between letters and one `.`, `,`, `;` or `'` between digits. `System.out.println` is one token.
_ASCII = re.compile(r"(?:_|[A-Za-z]+(?:[.:'][A-Za-z]+)*|[0-9]+(?:[.,;'][0-9]+)*)+")
# The same over kinds of characters, one letter each: a letter, 0 digit, x mark or invisible, K katakana,
# I what stands alone (ideographs, hiragana), T scripts without spaces (Thai, Lao, Burmese, Khmer)
_KINDS_PATTERN = re.compile(r"(?:_x*|ax*(?:(?:[.:']x*)?ax*)*|0x*(?:(?:[.,;']x*)?0x*)*)+|(?:Kx*)+|Ix*|T[Tx]*")
_MIDDLES = {
    **dict.fromkeys(map(ord, "\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a"), ":"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u2024\ufe52\uff07\uff0e"), "."),
    **dict.fromkeys(map(ord, "\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b"), ","),
}
_SCRIPTS = (
    ("T", (0x0E01, 0x0E3A), (0x0E40, 0x0E4E), (0x0E81, 0x0ECF), (0x1000, 0x103F), (0x1050, 0x108F), (0x1780, 0x17D3)),
    ("K", (0x3031, 0x3035), (0x309B, 0x309C), (0x30A0, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9D)),
    ("I", (0x3006, 0x3007), (0x3021, 0x3029), (0x3041, 0x3096), (0x309D, 0x309F), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
     (0xF900, 0xFAFF), (0x17000, 0x18CFF), (0x20000, 0x3FFFF)),
)  # fmt: skip
_CATEGORIES = {"Nd": "0", "Nl": "a", "Mn": "x", "Me": "x", "Mc": "x", "Cf": "x", "Pc": "_"}


class _Kinds(dict[int, str]):
    """Code point -> its kind; found out when it is met first."""

    def __missing__(self, code: int) -> str:
        kind = self[code] = _kind(code)
        return kind


def _kind(code: int) -> str:
    character = chr(code)
    if character in ".:',;":
        return character
    if code in _MIDDLES:
        return _MIDDLES[code]
    for kind, *ranges in _SCRIPTS:
        if any(first <= code <= last for first, last in ranges):
            return kind
    category = unicodedata.category(character)
    return "a" if category[0] == "L" else _CATEGORIES.get(category, " ")


_KINDS = _Kinds()


def standard_tokens(text: str) -> list[str]:
    """Tokens as Lucene's StandardAnalyzer makes them: word boundaries of UAX #29, lower case, no stop words.

    Of what Lucene knows, emoji are left out, and katakana joined to an underscore.

    >>> standard_tokens("System.out.println(max_size + 3.14); // don't")
    ['system.out.println', 'max_size', '3.14', "don't"]
    """
    if text.isascii():
        found = _ASCII.findall(text)
    else:
        found = [text[match.start() : match.end()] for match in _KINDS_PATTERN.finditer(text.translate(_KINDS))]
    return [piece for token in found if _is_word(token) for piece in _pieces(token.lower())]


def _is_word(token: str) -> bool:
    """Whether there is more in it than underscores and marks."""
    return any(map(str.isalnum, token)) or any(_KINDS[ord(character)] in "TKI" for character in token)


def _pieces(token: str) -> Iterable[str]:
    return [token[at : at + LONGEST] for at in range(0, len(token), LONGEST)]


def one_byte_lengths(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths as Lucene knows them, having kept each in one byte: exact to 40, then the first four binary digits of
    what is over 24 (SmallFloat.intToByte4).

    >>> one_byte_lengths(np.array([0, 39, 40, 41, 43, 100, 1000])).tolist()
    [0, 39, 40, 40, 42, 96, 984]
    """
    over = np.maximum(lengths - 24, 0)
    shift = np.maximum(np.frexp(over.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + (over >> shift << shift))
