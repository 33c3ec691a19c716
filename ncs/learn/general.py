"""The general head, part of the package: which words of code stand for words of queries, learned from pairs of
documentation and code of public repositories (`ncs train general`).

It scores the best candidates of a query from the words of an index, and retrieves them if the index has no word of the
query. With the impact w(u, d) of a word u in a function d (ncs.learn.translation), query words t, and learned vectors
and weights of words:

    vectors     max(0, cos(sum over t of a_t q_t, sum over u of b_u w(u, d) c_u))
    match(t)    sum over u of w(u, d) * e_u * (max(0, cos(r_t, s_u)) ** power + same * [t is u])
    score       vectors + sum over t of g_t * match(t) / (match(t) + half) / sum over t of g_t

Its second part, `ncs.learn.context_encoder`, reads the words of the leading candidates in context.

On disk: `general.json` (settings, and the digest of all files), `vocabulary.*` (V stems), `tables.npy` (int8 [4, V, d]:
q, c, r, s), `scales.npy` (float16 [4, V]: factors of the rows), `weights.npy` (float16 [4, V]: logarithms of a, b, g,
e), and the files of the encoder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ncs.errors import BROKEN, BadInput, IndexDamaged
from ncs.files import map_array, read_json, save_array
from ncs.learn.context_encoder import MIN_QUERY, READ_IN_CONTEXT, ContextEncoder, distinct_words
from ncs.learn.tfidf import unit_rows
from ncs.learn.translation import FIELD_WEIGHTS, K1, READ, B
from ncs.storage.arrays import are_finite, distinct, starts_of_runs
from ncs.text.stems import stem_all
from ncs.text.vocabulary import Vocabulary
from ncs.types import FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ncs.storage.words import WordReader
    from ncs.types import Matrix, Rows, Scores

    Ids = NDArray[np.integer[Any]]

FORMAT = 2
FOLDER = Path(__file__).parents[1] / "models" / "general"
"""The head of this package."""
_FIELDS = tuple(name for name in READ for _ in range(int(FIELD_WEIGHTS[name])))
"""A name counts three times."""
_QUERY, _CODE, _QUERY_WORD, _CODE_WORD = range(4)
"""Numbers of the tables q, c, r and s, and of their weights."""
UNKNOWN, UNREAD = -1, -2
LINKED = 20
"""Stems of an index searched in place of an unknown word; 100 find no more."""
UNLIKE = 0.13
"""Below this cosine neither of two words is a misspelling of the other: so are 73 % of 1,542 pairs of stems one edit
apart, nearly all of different words, and 1 of 16 frequent misspellings with their corrections."""


class Match(NamedTuple):
    """A word of the query, the word of a function that matches it best, and their part of the score, 0 to 1."""

    query: str
    code: str
    share: float


@dataclass(frozen=True, slots=True)
class GeneralHead:
    """The arrays of the head."""

    stems: Vocabulary
    tables: NDArray[np.int8]
    scales: NDArray[np.float16]
    weights: NDArray[np.float16]
    power: float
    half: float
    same: float
    context: ContextEncoder

    def vectors(self, table: int, ids: Ids) -> Matrix:
        """Rows of one of the tables, [len(ids), d]."""
        return np.asarray(self.tables[table, ids] * self.scales[table, ids, None].astype(np.float32), np.float32)

    def factors(self, table: int, ids: Ids) -> Matrix:
        """The weights that belong to these rows, [len(ids)]."""
        return np.asarray(np.exp(self.weights[table, ids].astype(np.float32)))

    def unlike(self, stem: str, other: str) -> bool:
        """Whether queries use two stems for different things: `eras` and `eas`. False where one of both is unknown."""
        ids = self.stems.ids_of([stem, other])
        one, two = unit_rows(self.vectors(_QUERY, ids))
        return bool((ids >= 0).all() and one @ two < UNLIKE)

    def save(self, folder: Path) -> None:
        """Write all files, `general.json` last."""
        folder.mkdir(parents=True, exist_ok=True)
        self.stems.save(folder)
        for name in ("tables", "scales", "weights"):
            save_array(folder / f"{name}.npy", getattr(self, name))
        self.context.save(folder)
        settings = {"format": FORMAT, "power": self.power, "half": self.half, "same": self.same}
        about = {**settings, "digest": digest(folder)}
        (folder / "general.json").write_text(json.dumps(about) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> GeneralHead:
        """Memory-mapped; raises BadInput where there is none, IndexDamaged for files that do not fit each other."""
        if not (folder / "general.json").is_file():
            raise BadInput(f"there is no general head in {folder}; make one with: ncs train general")
        try:
            about = read_json(folder / "general.json")
            if not isinstance(about, dict) or about["format"] != FORMAT:
                raise ValueError("it is of another version of ncs")
            stems = Vocabulary.load(folder)
            tables = map_array(folder / "tables.npy", np.int8, 3)
            scales, weights = (map_array(folder / f"{name}.npy", np.float16, 2) for name in ("scales", "weights"))
            if any(array.shape[:2] != (4, len(stems)) for array in (tables, scales, weights)):
                raise ValueError("its files do not fit each other")
            power, half, same = (float(about[name]) for name in ("power", "half", "same"))
            context = ContextEncoder.load(folder, len(stems))
            if half <= 0 or not all(map(are_finite, (scales, weights, np.array([power, half, same])))):
                raise ValueError("numbers are missing")
            return cls(stems, tables, scales, weights, power, half, same, context)
        except (*BROKEN, OSError) as error:
            raise IndexDamaged(f"cannot read the general head in {folder} ({error}); install ncs again") from error


def digest(folder: Path) -> str:
    """The SHA-256 of the arrays and words of a head."""
    paths = sorted(path for path in folder.iterdir() if path.suffix in (".npy", ".txt"))
    return sha256(b"".join(map(Path.read_bytes, paths))).hexdigest()


def verify(folder: Path = FOLDER) -> None:
    """Read a head whole; raises IndexDamaged unless its files are those that were saved."""
    GeneralHead.load(folder)
    if read_json(folder / "general.json").get("digest") != digest(folder):
        raise IndexDamaged(f"the general head in {folder} is not as it was saved; install ncs again")


@cache
def general_head() -> GeneralHead:
    """The head of this package, loaded once."""
    return GeneralHead.load(FOLDER)


@dataclass(frozen=True, slots=True)
class _Impacts:
    """The impacts [m] of the head's stems in n functions: owners: their functions [m]; stems: distinct [s]; places:
    positions in `stems` [m]."""

    n: int
    owners: Ids
    stems: Ids
    places: Ids
    values: Matrix

    def dense(self) -> Matrix:
        """As a matrix [n, s]."""
        matrix: Matrix = np.zeros((self.n, len(self.stems)), np.float32)
        matrix[self.owners, self.places] = self.values
        return matrix


@dataclass(slots=True)
class GeneralScorer:
    """The head over the words of an index. mean_length: of its functions, in words weighted by field."""

    head: GeneralHead
    words: WordReader
    mean_length: float
    _stem_ids: NDArray[np.int32] = field(init=False)
    """Word id -> stem of the head, UNKNOWN or UNREAD; filled as words are read."""

    def __post_init__(self) -> None:
        self._stem_ids = np.full(len(self.words.vocabulary), UNREAD, np.int32)

    def query_ids(self, words: Sequence[str]) -> Ids:
        """The stems of a query's words that the head knows, in order, each once."""
        ids = self.head.stems.ids_of(list(dict.fromkeys(stem_all(words))))
        return ids[ids >= 0]

    def known_share(self, idf: Mapping[str, float]) -> float:
        """The share of a query that the head knows, 0 to 1. idf: of the query's stems."""
        known = sum(weight for stem, weight in idf.items() if stem in self.head.stems)
        return known / max(sum(idf.values()), 1e-9)

    def linked(self, query: Sequence[str]) -> dict[str, float]:
        """The LINKED best matching stems of the index for each word of a query, with weights."""
        ids, links = self.query_ids(query), dict[str, float]()
        if len(ids):
            stems = distinct(self._stems_of(np.arange(len(self._stem_ids))))
            stems = stems[stems >= 0]
            table, factors = self._table(ids, stems), self.head.factors(_QUERY_WORD, ids)
            for row in table / (table + self.head.half) * (factors / factors.sum())[:, None]:
                for at in np.argsort(-row, kind="stable")[:LINKED].tolist():
                    word = self.head.stems.word(int(stems[at]))
                    links[word] = links.get(word, 0.0) + float(row[at])
        return links

    def scores(self, query: Sequence[str], rows: Rows) -> Scores:
        """Scores of rows for the words of a query, 0 to 2, [len(rows)]; 0 where the head knows no word of it."""
        ids = self.query_ids(query)
        if not len(ids) or not len(rows):
            return np.zeros(len(rows))
        impacts = self._impacts(rows)
        matches = self._matches(ids, impacts, self._table(ids, impacts.stems))
        scores: Scores = self._cosines(ids, impacts) + matches.sum(axis=1)
        return scores

    def contexts(self, query: Sequence[str], rows: Rows) -> Scores:
        """The positive cosines of a query and rows in context, [len(rows)]; 0 if the head knows fewer than MIN_QUERY
        words of the query, as in training."""
        ids = self.query_ids(query)
        if len(ids) < MIN_QUERY or not len(rows):
            return np.zeros(len(rows))
        encoder = self.head.context
        cosines = encoder.encode_functions(*self._read_in_context(rows)) @ encoder.encode_query(ids)
        return np.asarray(np.maximum(cosines, 0.0), np.float64)

    def explain_context(self, query: Sequence[str], row: int) -> dict[str, float]:
        """stem -> its part of the row's cosine in `contexts`."""
        stems, fields, _ = self._read_in_context(np.array([row]))
        parts = self.head.context.shares(self.head.context.encode_query(self.query_ids(query)), stems, fields)
        words = list(map(self.head.stems.word, stems[: len(parts)].tolist()))
        shares = dict.fromkeys(words, 0.0)
        for word, part in zip(words, parts.tolist(), strict=True):
            shares[word] += part
        return shares

    def _read_in_context(self, rows: Rows) -> tuple[Ids, Ids, Ids]:
        words, _ = self.words.select_rows(READ_IN_CONTEXT, rows)
        lengths = self.words.lengths(rows)[:, [FIELDS.index(field) for field in READ_IN_CONTEXT]]
        return distinct_words(self._stems_of(words), lengths, len(self.head.stems))

    def explain(self, query: Sequence[str], rows: Rows) -> list[list[Match]]:
        """For each row the best matching word for each word of a query, by share."""
        ids, impacts = self.query_ids(query), self._impacts(rows)
        if not len(ids) or not len(impacts.stems):
            return [[] for _ in rows]
        table, word = self._table(ids, impacts.stems), self.head.stems.word
        result = []
        for own, shares in zip(impacts.dense(), self._matches(ids, impacts, table).tolist(), strict=True):
            best = impacts.stems[(table * own).argmax(axis=1)].tolist()
            pairs = zip(ids.tolist(), best, shares, strict=True)
            matches = [Match(word(id), word(stem), share) for id, stem, share in pairs if share > 0]
            result.append(sorted(matches, key=lambda match: -match.share))
        return result

    def _impacts(self, rows: Rows) -> _Impacts:
        words, offsets = self.words.select_rows(_FIELDS, rows)
        lengths = np.diff(offsets)
        stems, owners = self._stems_of(words).astype(np.int64), np.repeat(np.arange(len(rows)), lengths)
        known, n = stems >= 0, len(self.head.stems)
        cells = np.sort(owners[known] * n + stems[known])
        starts = starts_of_runs(cells)
        counts = np.diff(starts, append=len(cells))
        owners, stems = np.divmod(cells[starts], n)
        present, places = distinct(stems), np.zeros(n, np.int64)
        places[present] = np.arange(len(present))
        limits = K1 * (1 - B + B * lengths / max(self.mean_length, 1e-9))
        impacts = (counts / (counts + limits[owners])).astype(np.float32)
        return _Impacts(len(rows), owners, present, places[stems], impacts)

    def _stems_of(self, ids: Ids) -> Ids:
        """The head's stems of word ids, UNKNOWN for those without."""
        stems = self._stem_ids[ids]
        if (stems == UNREAD).any():
            unread = distinct(ids[stems == UNREAD])
            known = self.head.stems.ids_of(stem_all(map(self.words.vocabulary.word, unread.tolist())))
            self._stem_ids[unread] = np.where(known < 0, UNKNOWN, known)
            stems = self._stem_ids[ids]
        return stems

    def _cosines(self, ids: Ids, impacts: _Impacts) -> Scores:
        """The positive cosines of a query and the functions, [n]."""
        head, stems = self.head, impacts.stems
        query = unit_rows(head.factors(_QUERY, ids)[None] @ head.vectors(_QUERY, ids))[0]
        vectors = head.vectors(_CODE, stems) * head.factors(_CODE, stems)[:, None]
        return np.asarray(np.maximum(unit_rows(impacts.dense() @ vectors) @ query, 0.0), np.float64)

    def _matches(self, ids: Ids, impacts: _Impacts, table: Matrix) -> Scores:
        """Each query word's part of the score of each function, [n, len(ids)]; table: of `_table`."""
        factors = self.head.factors(_QUERY_WORD, ids)
        weighted = [np.bincount(impacts.owners, impacts.values * row[impacts.places], impacts.n) for row in table]
        match: Scores = np.stack(weighted, axis=1)
        return np.asarray(match / (match + self.head.half) * (factors / factors.sum()), np.float64)

    def _table(self, ids: Ids, stems: Ids) -> Matrix:
        """The translation weights of stems of code for those of a query, [len(ids), len(stems)]."""
        head = self.head
        table = np.maximum(head.vectors(_QUERY_WORD, ids) @ head.vectors(_CODE_WORD, stems).T, 0.0) ** head.power
        table[ids[:, None] == stems] += head.same
        return np.asarray(table * head.factors(_CODE_WORD, stems), np.float32)
