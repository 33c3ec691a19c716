"""The ranker `ncs_enhanced`: NCS with queries enhanced by code words that co-occur with their words in answers."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, IndexDamaged
from ncs.progress import Track, silent
from ncs.search.rankers import Internals, Ranker, create_part, save_part, statistics_of
from ncs.search.ranking import Ranking
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Mask

LEAST_WEIGHT = 0.05


class EnhancedRanker(Ranker):
    """Asks `part` for the query and, for each of its words, the best code word where its weight >= `least_weight`.

    The weights are learned from `pairs`, a JSON lines file with query, code and language (Sachdev et al. 2018, query
    enhancement), without the queries in the file `leave_out`, for example those of an evaluation. idf: weigh code
    words; as published they count alike. Stop words of a query get no code word, and no word is added twice or where
    it is already. Its folder holds the matrix and `config.json`; the part's own files are in the data folder.
    """

    can_extend = True

    def __init__(
        self,
        name: str = "ncs_enhanced",
        *,
        pairs: str | None = None,
        leave_out: str | None = None,
        least_weight: float = LEAST_WEIGHT,
        idf: bool = False,
        part: str = "ncs",
    ) -> None:
        self.name = name
        self.config: Mapping[str, object] = {
            "pairs": pairs and str(pairs),
            "leave_out": leave_out and str(leave_out),
            "least_weight": least_weight,
            "idf": idf,
            "part": part,
        }
        self.part, self.least_weight = create_part(part), least_weight
        self._words: Cooccurrence | None = None

    def prepare(self, statistics: Path | None = None) -> None:
        """Read the first of the pairs; raises BadInput where none are named or they cannot be read."""
        next(iter(self._pairs(silent)), None)

    def fit(self, words: WordTable, embeddings: Embeddings, *, track: Track = silent) -> None:
        """Fit the part and read the pairs; raises BadInput where none are named or one is not whole."""
        self._words = Cooccurrence.of(self._pairs(track), idf=bool(self.config["idf"]))
        self.part.fit(words, embeddings, track=track)

    def _pairs(self, track: Track) -> Iterable[tuple[list[str], list[str]]]:
        from ncs.search.pairs import code_words, normalized, read_pairs, read_questions

        if not self.config["pairs"]:
            raise BadInput(f"{self.name!r} learns from (question, code) pairs; name a file: {self.name}:pairs=FILE")
        left_out = self.config["leave_out"]
        unwanted = set(map(normalized, read_questions(Path(str(left_out))))) if left_out else set()
        for query, code, language in track(read_pairs(Path(str(self.config["pairs"]))), self.name, unit="pairs"):
            if normalized(query) not in unwanted:
                yield content_words(tokenize(query)), code_words(code, language)

    def added(self, text: str) -> list[str]:
        """The code words to add to a query, in the order of its words; raises BadInput before fit or load."""
        if self._words is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        words = tokenize(text)
        best = [pair for word in content_words(words) if (pair := self._words.best(word)) is not None]
        strong = [word for word, weight in best if weight >= self.least_weight and word not in words]
        return list(dict.fromkeys(strong))

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The hits of the part for the query with the added words."""
        return self.part.search(" ".join([text, *self.added(text)]), k, allowed=allowed)

    def rank(
        self, text: str, k: int, *, allowed: Mask | None = None, fold: bool = False, confidences: bool = False
    ) -> Ranking:
        """`search`, with the signals of the part."""
        added = self.added(text)
        ranking = self.part.rank(" ".join([text, *added]), k, allowed=allowed, fold=fold, confidences=confidences)
        return replace(ranking, added=added)

    def internals(self) -> Internals:
        """Those of the part."""
        return self.part.internals()

    def save(self, statistics: Path, segment: Path) -> None:
        """The matrix and the configuration; and the part where it is not there yet."""
        if self._words is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        folder = statistics / self.name
        folder.mkdir(parents=True, exist_ok=True)
        save_part(self.part, statistics, segment)
        self._words.save(folder)
        (folder / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    def extend(self, statistics: Path, segment: Path, words: WordTable, documents: DocumentTable) -> None:
        """Do nothing: the part extends itself."""

    def load(self, snapshot: Snapshot) -> None:
        """Raises BadInput where it was not built, IndexDamaged where files are missing or do not fit each other."""
        folder = statistics_of(snapshot, self.name)
        try:
            config = json.loads((folder / "config.json").read_bytes())
            self.part, self.least_weight = create_part(config["part"]), float(config["least_weight"])
            self._words = Cooccurrence.load(folder)
        except (OSError, EOFError, ValueError, TypeError, KeyError, BadInput) as error:
            raise IndexDamaged(f"cannot read {folder} ({error}); build the index again") from error
        self.config = config
        self.part.load(snapshot)


@dataclass(frozen=True, slots=True)
class Cooccurrence:
    """How often words of code are in the answers to queries with a word, each row divided by its sum.

    Row of query word q: weights[offsets[q] : offsets[q + 1]] (float32) of the code words in ids, alike. One .npy
    each on disk, and the two vocabularies in folders of their own.
    """

    questions: Vocabulary
    code: Vocabulary
    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, pairs: Iterable[tuple[Iterable[str], Iterable[str]]], *, idf: bool = False) -> Cooccurrence:
        """From the words of queries and of their code; a word counts once in each. scipy is imported here.

        idf: count a code word log(n / df) instead of 1, df of the n pairs having it.
        """
        queries, answers = _Incidence({}, array("i"), array("q", [0])), _Incidence({}, array("i"), array("q", [0]))
        for query, code in pairs:
            queries.add(query)
            answers.add(code)
        words_of_queries, by_query = queries.matrix()
        words, by_word = answers.matrix()
        if idf:
            df = np.bincount(by_word.indices, minlength=len(words))
            by_word.data = np.log(by_word.shape[0] / np.maximum(df, 1))[by_word.indices]
        counts = (by_query.T @ by_word).tocsr()
        counts.sort_indices()
        sums = np.asarray(counts.sum(axis=1)).ravel()
        weights = counts.data / np.repeat(np.where(sums > 0, sums, 1), np.diff(counts.indptr))
        offsets, ids = counts.indptr.astype(np.int64), counts.indices.astype(np.int32)
        return cls(words_of_queries, words, offsets, ids, weights.astype(np.float32))

    def best(self, word: str) -> tuple[str, float] | None:
        """The code word of the highest weight for a word of a query, the first in the alphabet among equals."""
        id = self.questions.id(word)
        if id is None or self.offsets[id] == self.offsets[id + 1]:
            return None
        here = slice(self.offsets[id], self.offsets[id + 1])
        at = int(np.argmax(self.weights[here]))
        return self.code.word(int(self.ids[here][at])), float(self.weights[here][at])

    def save(self, room: Path) -> None:
        """Write into an existing folder."""
        for name, vocabulary in (("questions", self.questions), ("code", self.code)):
            (room / name).mkdir(exist_ok=True)
            vocabulary.save(room / name)
        for name in ("offsets", "ids", "weights"):
            np.save(room / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, room: Path) -> Cooccurrence:
        """Memory-mapped; raises OSError, ValueError or IndexDamaged where the files are not whole."""
        offsets, ids, weights = (
            np.asarray(np.load(room / f"{name}.npy", mmap_mode="r", allow_pickle=False))
            for name in ("offsets", "ids", "weights")
        )
        matrix = cls(Vocabulary.load(room / "questions"), Vocabulary.load(room / "code"), offsets, ids, weights)
        if len(offsets) != len(matrix.questions) + 1 or not len(ids) == len(weights) == offsets[-1]:
            raise ValueError("the files do not fit each other")
        return matrix


@dataclass(frozen=True, slots=True)
class _Incidence:
    """Which words are in which text."""

    numbers: dict[str, int]
    ids: array[int]
    offsets: array[int]

    def add(self, words: Iterable[str]) -> None:
        self.ids.extend(self.numbers.setdefault(word, len(self.numbers)) for word in dict.fromkeys(words))
        self.offsets.append(len(self.ids))

    def matrix(self) -> tuple[Vocabulary, Any]:
        """Texts x words of ones, scipy CSR; words in the order of the vocabulary."""
        from scipy.sparse import csr_matrix

        vocabulary, number = Vocabulary.of(self.numbers), np.zeros(len(self.numbers), np.int32)
        number[[self.numbers[word] for word in vocabulary]] = np.arange(len(self.numbers), dtype=np.int32)
        ids = number[np.frombuffer(self.ids, np.intc)] if self.ids else np.zeros(0, np.int32)
        shape = (len(self.offsets) - 1, len(vocabulary))
        return vocabulary, csr_matrix((np.ones(len(ids)), ids, np.array(self.offsets)), shape=shape)
