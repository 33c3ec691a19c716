"""The ranker `two_field`: the Elasticsearch baseline of Husain et al. 2019, BM25 of a function's name plus of its
text.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, batches_with_code, read_config, statistics_of
from ncs.storage.arrays import as_pairs, offsets_of
from ncs.storage.postings import Postings, PostingTable, TermStatistics, weights_of
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Mask

TEXT_FIELDS = ("name", "text")


class TwoFieldRanker(Ranker):
    """Husain et al. 2019, section 4.2: two fields. Their scores are summed; the paper does not say how it joined them.

        score(q, d) = sum over fields f and tokens t of q:  idf_f(t) * tf / (tf + k1 * (1 - b + b * l_f(d) / mean l_f))
        idf_f(t) = log(1 + (N_f - df + .5) / (df + .5)),  N_f and the mean over the documents that have the field

    as in Lucene 8 and later. l_f(d) is a length rounded to one byte. The name is split into words, the text is the
    code; tokens are those of Lucene's standard analyzer. Terms of its postings are spelled `name:get` and `text:get`.
    """

    can_extend = False
    _postings: Postings

    def __init__(self, name: str = "two_field", *, k1: float = 1.2, b: float = 0.75) -> None:
        if not (0 <= k1 < float("inf") and 0 <= b <= 1):
            raise BadInput(f"BM25 needs k1 >= 0 and 0 <= b <= 1, not k1={k1}, b={b}")
        self.name = name
        self.config: Mapping[str, float] = {"k1": k1, "b": b}

    def fit(
        self, words: WordTable, embeddings: Embeddings | None, documents: DocumentTable, *, track: Track = silent
    ) -> None:
        """Count the tokens of every name and text; raises BadInput if the index keeps no code."""
        counts = _Counts()
        for batch in batches_with_code(documents, self.name, track):
            for document in batch:
                counts.add("name", tokenize(document.name))
                counts.add("text", standard_tokens(document.code))
        self._postings = counts.postings(**self.config)

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows that have a token of the question in a field, by (-score, row); BadInput for k < 1."""
        terms = [f"{name}:{token}" for token in standard_tokens(text) for name in TEXT_FIELDS]
        (best,) = self._postings.top_rows(weights_of(terms), k, [allowed])
        return as_pairs(*best)

    def save(self, statistics: Path, segment: Path) -> None:
        self._postings.save(statistics, segment, self.name)
        self._save_config(statistics)

    def load(self, snapshot: Snapshot) -> None:
        self.config = read_config(statistics_of(snapshot, self.name))
        self._postings = Postings.open(snapshot, self.name)


class _Counts:
    """Term frequencies of both fields, in row order; terms are spelled `name:get` and `text:get`."""

    def __init__(self) -> None:
        self.terms: dict[str, int] = {}
        self.ids, self.tf, self.rows = array("i"), array("i"), array("i")
        self.lengths = {name: array("q") for name in TEXT_FIELDS}

    def add(self, name: str, tokens: Sequence[str]) -> None:
        """A field of the next document."""
        counts = Counter(tokens)
        self.ids.extend(self.terms.setdefault(f"{name}:{token}", len(self.terms)) for token in counts)
        self.tf.extend(counts.values())
        self.rows.extend([len(self.lengths[name])] * len(counts))
        self.lengths[name].append(len(tokens))

    def postings(self, k1: float, b: float) -> Postings:
        """Both fields in one table: scores are sums over terms of either field."""
        terms, renumber = Vocabulary.numbered(self.terms)
        ids, tf, rows = renumber[np.array(self.ids, np.int64)], np.array(self.tf), np.array(self.rows, np.int32)
        field = np.array([TEXT_FIELDS.index(term.partition(":")[0]) for term in terms], np.int64)
        lengths = np.array(list(self.lengths.values()), np.int64)  # [fields, documents]
        documents, df = np.count_nonzero(lengths, axis=1), np.bincount(ids, minlength=len(terms))
        idf = np.log1p((documents[field] - df + 0.5) / (df + 0.5))
        rounded, mean = one_byte_lengths(lengths), np.maximum(1, lengths.sum(axis=1)) / np.maximum(1, documents)
        saturation = k1 * (1 - b + b * rounded / mean[:, None])
        impacts = idf[ids] * tf / (tf + saturation[field[ids], rows])
        order = np.argsort(ids, kind="stable")  # rows ascend within a field, and a term is of one field
        table = PostingTable(
            terms, offsets_of(df), rows[order], impacts[order].astype(np.float32), rounded[-1].astype(np.float32)
        )
        totals = np.array([lengths.shape[1], 1.0])
        return Postings([table], TermStatistics(terms, df, np.ones(len(terms), np.float32), totals))


_PIECE = re.compile(".{1,255}", re.DOTALL)  # Lucene cuts a longer token into pieces

# The word boundaries of UAX #29 as far as ASCII goes: letters, digits and underscores stick together; so does one
# `.`, `:` or `'` between letters and one `.`, `,`, `;` or `'` between digits. `System.out.println` is one token.
_ASCII = re.compile(r"(?:_|[A-Za-z]+(?:[.:'][A-Za-z]+)*|[0-9]+(?:[.,;'][0-9]+)*)+")
# The same over kinds of characters, one letter each: a letter, 0 digit, x mark or invisible, K katakana,
# I what stands alone (ideographs, hiragana), T scripts without spaces (Thai, Lao, Burmese, Khmer)
_KINDS_PATTERN = re.compile(r"(?:_x*|ax*(?:(?:[.:']x*)?ax*)*|0x*(?:(?:[.,;']x*)?0x*)*)+|(?:Kx*)+|Ix*|T[Tx]*")
_MIDDLES = {
    **dict.fromkeys("\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a", ":"),
    **dict.fromkeys("\u2018\u2019\u2024\ufe52\uff07\uff0e", "."),
    **dict.fromkeys("\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b", ","),
}
_SCRIPTS = (
    ("T", (0x0E01, 0x0E3A), (0x0E40, 0x0E4E), (0x0E81, 0x0ECF), (0x1000, 0x103F), (0x1050, 0x108F), (0x1780, 0x17D3)),
    ("K", (0x3031, 0x3035), (0x309B, 0x309C), (0x30A0, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9D)),
    ("I", (0x3006, 0x3007), (0x3021, 0x3029), (0x3041, 0x3096), (0x309D, 0x309F), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
     (0xF900, 0xFAFF), (0x17000, 0x18CFF), (0x20000, 0x3FFFF)),
)  # fmt: skip
_CATEGORIES = {"Nd": "0", "Nl": "a", "Mn": "x", "Me": "x", "Mc": "x", "Cf": "x", "Pc": "_"}


@cache
def _kind(character: str) -> str:
    if character in ".:',;":
        return character
    if character in _MIDDLES:
        return _MIDDLES[character]
    for kind, *ranges in _SCRIPTS:
        if any(first <= ord(character) <= last for first, last in ranges):
            return kind
    category = unicodedata.category(character)
    return "a" if category[0] == "L" else _CATEGORIES.get(category, " ")


def standard_tokens(text: str) -> list[str]:
    """Tokens as Lucene's StandardAnalyzer makes them: word boundaries of UAX #29, lower case, no stop words.

    Of what Lucene knows, emoji are left out, and katakana joined to an underscore.

    >>> standard_tokens("System.out.println(max_size + 3.14); // don't")
    ['system.out.println', 'max_size', '3.14', "don't"]
    """
    if text.isascii():
        tokens = _ASCII.findall(text)
    else:
        tokens = [text[match.start() : match.end()] for match in _KINDS_PATTERN.finditer("".join(map(_kind, text)))]
    return [piece for token in tokens if _is_word(token) for piece in _PIECE.findall(token.lower())]


def _is_word(token: str) -> bool:
    """Whether it has more than underscores and marks."""
    return any(map(str.isalnum, token)) or any(_kind(character) in "TKI" for character in token)


def one_byte_lengths(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths as Lucene stores them in one byte: exact to 40, then four significant bits of the excess over 24
    (SmallFloat.intToByte4).

    >>> one_byte_lengths(np.array([0, 23, 40, 41, 43, 100, 1000])).tolist()
    [0, 23, 40, 40, 42, 96, 984]
    """
    over = np.maximum(lengths - 24, 0)
    shift = np.maximum(np.frexp(over.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + (over >> shift << shift))
