"""The ranker `two_field`: the Elasticsearch baseline of Husain et al. 2019, BM25 of a function's name plus of its
text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ncs.errors import BadInput, IndexDamaged
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, statistics_of
from ncs.storage.postings import Postings, PostingTable, TermStatistics, weights_of
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Document, Mask

TextField = Literal["name", "text"]
TEXT_FIELDS: tuple[TextField, ...] = ("name", "text")
BATCH = 1000  # documents read at a time


class TwoFieldRanker(Ranker):
    """Husain et al. 2019, section 4.2: a `multi_match` over two fields whose scores are summed.

        score(q, d) = sum over fields f and tokens t of q:  idf_f(t) * tf / (tf + k1 * (1 - b + b * l_f(d) / mean l_f))
        idf_f(t) = log(1 + (N_f - df + .5) / (df + .5)),  N_f and the mean over the documents that have the field

    as in Lucene 8 and later. l_f(d) is a length rounded to one byte. The name is split into words, the text is the
    code; tokens are those of Lucene's standard analyser. Its folder holds the postings, terms spelled `name:get` and
    `text:get`, and `config.json`.
    """

    def __init__(self, name: str = "two_field", *, k1: float = 1.2, b: float = 0.75) -> None:
        if not (0 <= k1 < float("inf") and 0 <= b <= 1):
            raise BadInput(f"BM25 needs k1 >= 0 and 0 <= b <= 1, not k1={k1}, b={b}")
        self.name = name
        self.k1, self.b = k1, b
        self.config: Mapping[str, object] = {"k1": k1, "b": b}
        self._postings: Postings | None = None

    @property
    def postings(self) -> Postings:
        """The postings; raises BadInput before `fit_documents` or `load`."""
        if self._postings is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit_documents or load first")
        return self._postings

    def fit(self, words: WordTable, embeddings: Embeddings | None = None, *, track: Track = silent) -> None:
        """Do nothing: the text is read, not the words."""

    def fit_documents(self, documents: DocumentTable, *, track: Track = silent) -> None:
        """Count the tokens of every name and text; raises BadInput where the index keeps no code."""
        counts = {name: _Counts() for name in TEXT_FIELDS}
        code = False
        for document in _documents(documents, track, self.name):
            code = code or bool(document.code)
            counts["name"].add(tokenize(document.name))
            counts["text"].add(standard_tokens(document.code))
        if not code:
            raise BadInput(f"this index keeps no code, which {self.name!r} reads; build it without --no-store-code")
        self._postings = _postings(counts, self.k1, self.b)

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The best k rows that have a token of the question in a field, by (-score, row); BadInput for k < 1."""
        terms = [f"{name}:{token}" for token in standard_tokens(text) for name in TEXT_FIELDS]
        rows, scores = self.postings.top_rows(weights_of(terms), k, allowed=allowed)
        return list(zip(rows.tolist(), scores.tolist(), strict=True))

    def save(self, statistics: Path, segment: Path) -> None:
        """Postings, and the configuration."""
        self.postings.save(statistics, segment, self.name)
        path = statistics / self.name / "config.json"
        path.write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    def load(self, snapshot: Snapshot) -> None:
        """Raises BadInput where it was not built, IndexDamaged where files are not whole."""
        path = statistics_of(snapshot, self.name) / "config.json"
        try:
            config = json.loads(path.read_bytes())
            self.k1, self.b = float(config["k1"]), float(config["b"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IndexDamaged(f"cannot read {path} ({error}); build the index again") from error
        self.config = {"k1": self.k1, "b": self.b}
        self._postings = Postings.open(snapshot, self.name)


def _documents(documents: DocumentTable, track: Track, stage: str) -> Iterator[Document]:
    """All documents in row order, some at a time."""
    for start in track(range(0, len(documents), BATCH), stage, total=-(-len(documents) // BATCH), unit="batches"):
        yield from documents.documents(range(start, min(start + BATCH, len(documents))))


@dataclass(slots=True)
class _Counts:
    """Term frequencies of one field by document, in row order."""

    terms: dict[str, int] = field(default_factory=dict)
    ids: array[int] = field(default_factory=lambda: array("i"))
    tf: array[int] = field(default_factory=lambda: array("i"))
    distinct: array[int] = field(default_factory=lambda: array("i"))
    lengths: array[int] = field(default_factory=lambda: array("q"))

    def add(self, tokens: Sequence[str]) -> None:
        """The next document."""
        counted = Counter(tokens)
        self.ids.extend(self.terms.setdefault(term, len(self.terms)) for term in counted)
        self.tf.extend(counted.values())
        self.distinct.append(len(counted))
        self.lengths.append(len(tokens))

    def rows(self) -> NDArray[np.int64]:
        """The row of each count."""
        distinct = np.frombuffer(self.distinct, np.intc)
        return np.repeat(np.arange(len(distinct)), distinct)

    def impacts(self, rows: NDArray[np.int64], k1: float, b: float) -> NDArray[np.float64]:
        """The score contribution of each count."""
        lengths, tf = np.frombuffer(self.lengths, np.int64), np.frombuffer(self.tf, np.intc)
        ids, documents = np.frombuffer(self.ids, np.intc), np.count_nonzero(lengths)
        df = np.bincount(ids, minlength=len(self.terms))
        idf = np.log1p((documents - df + 0.5) / (df + 0.5))
        saturation = k1 * (1 - b + b * one_byte_lengths(lengths) / (lengths.sum() / max(1, documents)))
        scores: NDArray[np.float64] = idf[ids] * tf / (tf + saturation[rows])
        return scores


def _postings(counts: Mapping[TextField, _Counts], k1: float, b: float) -> Postings:
    """Both fields in one table: scores are sums over terms of either field."""
    term_ids = {f"{name}:{term}": (name, id) for name in counts for term, id in counts[name].terms.items()}
    terms = Vocabulary.of(term_ids)
    number = {name: np.zeros(len(each.terms), np.int64) for name, each in counts.items()}
    for at, term in enumerate(terms):
        name, id = term_ids[term]
        number[name][id] = at
    rows = [each.rows() for each in counts.values()]
    ids = np.concatenate([number[name][np.frombuffer(each.ids, np.intc)] for name, each in counts.items()])
    impacts = np.concatenate([each.impacts(at, k1, b) for each, at in zip(counts.values(), rows, strict=True)])
    order = np.argsort(ids, kind="stable")  # rows ascend within a field, and a term is of one field
    offsets = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=len(terms)))])
    lengths = one_byte_lengths(np.frombuffer(counts["text"].lengths, np.int64)).astype(np.float32)
    table = PostingTable(
        terms, offsets, np.concatenate(rows)[order].astype(np.int32), impacts[order].astype(np.float32), lengths
    )
    corpus = TermStatistics(terms, len(lengths), 1.0, np.diff(offsets), np.ones(len(terms), np.float32))
    return Postings([table], corpus)


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
    """Code point -> its kind, computed on first use."""

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
        tokens = _ASCII.findall(text)
    else:
        tokens = [text[match.start() : match.end()] for match in _KINDS_PATTERN.finditer(text.translate(_KINDS))]
    return [piece for token in tokens if _is_word(token) for piece in _pieces(token.lower())]


def _is_word(token: str) -> bool:
    """Whether it has more than underscores and marks."""
    return any(map(str.isalnum, token)) or any(_KINDS[ord(character)] in "TKI" for character in token)


def _pieces(token: str) -> Iterable[str]:
    return [token[at : at + LONGEST] for at in range(0, len(token), LONGEST)]


def one_byte_lengths(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths as Lucene stores them in one byte: exact to 40, then four significant bits of the excess over 24
    (SmallFloat.intToByte4).

    >>> one_byte_lengths(np.array([0, 39, 40, 41, 43, 100, 1000])).tolist()
    [0, 39, 40, 40, 42, 96, 984]
    """
    over = np.maximum(lengths - 24, 0)
    shift = np.maximum(np.frexp(over.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + (over >> shift << shift))
