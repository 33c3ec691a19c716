"""The ranker `ncs_enhanced`: NCS with queries enhanced by code words that co-occur with their words in answers."""

from __future__ import annotations

import json
import textwrap
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, reading
from ncs.files import save_array, text_lines
from ncs.progress import Track, silent
from ncs.search.rankers import Ranker, check_part, read_config, statistics_of
from ncs.search.ranking import Internals, Ranking
from ncs.storage.arrays import load_array
from ncs.text.tokens import content_words, field_tokens, tokenize
from ncs.text.vocabulary import Vocabulary
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Embeddings
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot
    from ncs.storage.words import WordTable
    from ncs.types import Mask

MIN_WEIGHT = 0.05


class EnhancedRanker(Ranker):
    """Searches with `part` for the query and the best code word of each of its content words, of at least
    `least_weight`.

    The weights are learned from `pairs`, a JSON lines file with query, code and language (Sachdev et al. 2018, query
    enhancement), without the queries in the file `leave_out`. idf: weight code words by idf, unlike the paper.
    """

    _words: Cooccurrence

    def __init__(
        self,
        name: str = "ncs_enhanced",
        *,
        pairs: str | None = None,
        leave_out: str | None = None,
        least_weight: float = MIN_WEIGHT,
        idf: bool = False,
        part: str = "ncs",
    ) -> None:
        self.name, self.parts = name, (check_part(part),)
        self.config: Mapping[str, Any] = {
            "pairs": pairs and str(pairs),
            "leave_out": leave_out and str(leave_out),
            "least_weight": least_weight,
            "idf": idf,
            "part": part,
        }

    def prepare(self, statistics: Path | None = None) -> None:
        """Read the first of the pairs; raises BadInput if none are named or they cannot be read."""
        next(iter(self._pairs(silent)), None)

    def fit(self, words: WordTable, embeddings: Embeddings, documents: DocumentTable, *, track: Track = silent) -> None:
        """Read the pairs; raises BadInput if none are named or a line is invalid."""
        self._words = Cooccurrence.of(self._pairs(track), idf=bool(self.config["idf"]))

    def _pairs(self, track: Track) -> Iterator[tuple[list[str], list[str]]]:
        if not self.config["pairs"]:
            raise BadInput(f"{self.name!r} learns from (question, code) pairs; name a file: {self.name}:pairs=FILE")
        left_out = self.config["leave_out"]
        exclusions = set(map(normalized, read_questions(Path(left_out)))) if left_out else set()
        for query, code, language in track(read_pairs(Path(self.config["pairs"])), self.name, unit="pairs"):
            if normalized(query) not in exclusions:
                yield content_words(tokenize(query)), code_words(code, language)

    def added(self, text: str) -> list[str]:
        """The code words to add to a query, in the order of its words."""
        matrix, words = self._words, tokenize(text)
        best = [pair for word in content_words(words) if (pair := matrix.best(word)) is not None]
        least = float(self.config["least_weight"])
        return list(dict.fromkeys(word for word, weight in best if weight >= least and word not in words))

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """The hits of the part for the query with the added words."""
        return self.composed[0].search(" ".join([text, *self.added(text)]), k, allowed=allowed)

    def rank(
        self, text: str, k: int, *, allowed: Mask | None = None, fold: bool = False, confidences: bool = False
    ) -> Ranking:
        """`search`, with the signals of the part."""
        added = self.added(text)
        return replace(self.composed[0].rank(" ".join([text, *added]), k, allowed=allowed), added=added)

    def internals(self) -> Internals:
        return self.composed[0].internals()

    def save(self, statistics: Path, segment: Path) -> None:
        self._words.save(self._save_config(statistics))

    def load(self, snapshot: Snapshot) -> None:
        folder = statistics_of(snapshot, self.name)
        self.config = read_config(folder)
        with reading(folder):
            self.parts = (check_part(self.config["part"]),)
            self._words = Cooccurrence.load(folder)


@dataclass(frozen=True, slots=True)
class Cooccurrence:
    """The frequencies of code words in the answers to queries with a word, each row divided by its sum, as CSR.

    On disk one .npy per array, and the two vocabularies in folders of their own.
    """

    questions: Vocabulary
    code: Vocabulary
    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, pairs: Iterable[tuple[Iterable[str], Iterable[str]]], *, idf: bool = False) -> Cooccurrence:
        """Count the words of queries and of their code, a word once in each. scipy is imported here.

        idf: count a code word log(n / df) instead of 1, df of the n pairs having it.
        """
        queries, answers = _Incidence(), _Incidence()
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

    def save(self, folder: Path) -> None:
        """Write into an existing folder."""
        for name, vocabulary in (("questions", self.questions), ("code", self.code)):
            (folder / name).mkdir(exist_ok=True)
            vocabulary.save(folder / name)
        for name in ("offsets", "ids", "weights"):
            save_array(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> Cooccurrence:
        """Memory-mapped; raises ValueError or IndexDamaged if files are damaged."""
        kinds: dict[str, type[np.generic]] = {"offsets": np.int64, "ids": np.int32, "weights": np.float32}
        offsets, ids, weights = (load_array(folder / f"{name}.npy", kind) for name, kind in kinds.items())
        matrix = cls(Vocabulary.load(folder / "questions"), Vocabulary.load(folder / "code"), offsets, ids, weights)
        if len(offsets) != len(matrix.questions) + 1 or not len(ids) == len(weights) == offsets[-1]:
            raise ValueError("the files do not fit each other")
        return matrix


class _Incidence:
    """The incidence of words in texts."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.ids, self.offsets = array("i"), array("q", [0])

    def add(self, words: Iterable[str]) -> None:
        self.ids.extend(self.numbers.setdefault(word, len(self.numbers)) for word in dict.fromkeys(words))
        self.offsets.append(len(self.ids))

    def matrix(self) -> tuple[Vocabulary, Any]:
        """Texts x words of ones, scipy CSR; words in the order of the vocabulary."""
        from scipy.sparse import csr_matrix

        vocabulary, renumber = Vocabulary.numbered(self.numbers)
        ids = renumber[np.frombuffer(self.ids, np.intc)]
        shape = (len(self.offsets) - 1, len(vocabulary))
        return vocabulary, csr_matrix((np.ones(len(ids)), ids, np.array(self.offsets)), shape=shape)


_NAME = "__pair__"  # name of the wrapper; it never becomes a word
# Answers are often bare statements or members: prefix, indent and suffix of wrappers to try until a function is found.
_WRAPPERS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "java": ((f"class {_NAME} {{\n", "", "\n}"), (f"class {_NAME} {{ void {_NAME}() {{\n", "", "\n} }")),
    "python": ((f"def {_NAME}():\n", "    ", "\n"),),
}


def read_pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """(query, code, language) of a `.jsonl` or `.jsonl.gz` file with keys of these names; language may be missing.

    Raises BadInput for a file that cannot be read and for a bad line, by its number.
    """
    for where, row in _rows(path):
        query, code, language = row.get("query"), row.get("code"), row.get("language", "")
        if not (isinstance(query, str) and isinstance(code, str) and isinstance(language, str)):
            raise BadInput(f"{where}: a pair is an object with the strings query and code; correct that line")
        yield query, code, language


def read_questions(path: Path) -> Iterator[str]:
    """The `query` of every line of a JSON lines file; raises BadInput as `read_pairs` does."""
    for where, row in _rows(path):
        if "query" not in row:
            raise BadInput(f"{where}: no object with a query; correct that line")
        yield str(row["query"])


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(FILE:LINE, object) of every line that is not empty; an empty object for other JSON."""
    try:
        for number, line in enumerate(text_lines(path), 1):
            if line.strip():
                row = json.loads(line)
                yield f"{path}:{number}", row if isinstance(row, dict) else {}
    except OSError as error:
        raise BadInput(f"cannot read {path} ({error.strerror or error}); name a file of JSON lines") from None
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is damaged ({error}); get the file again") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}:{number}: not JSON ({getattr(error, 'msg', error)}); correct that line") from None


def code_words(code: str, language: str) -> list[str]:
    """The NCS words of a file, members or statements; all words if no function is extracted.

    >>> code_words("view.setText(R.string.hello);", "java")
    ['set', 'text']
    """
    from ncs.extract import LANGUAGES, extract

    if language not in LANGUAGES:
        return tokenize(code)
    best: list[str] = []
    for before, indent, after in (("", "", ""), *_WRAPPERS.get(language, ())):
        source = before + (textwrap.indent(code, indent) if indent else code) + after
        words = [
            word
            for document in extract(source.encode("utf-8", "replace"), language)
            for name in NCS_FIELDS
            for word in field_tokens(name, (each for each in document.words.get(name, ()) if each != _NAME))
        ]
        if len(set(words)) > len(set(best)):  # skip nested functions, which the outer one contains
            best = words
    return best or tokenize(code)


def normalized(query: str) -> str:
    """A query without case, punctuation and extra spaces, for comparison."""
    return " ".join(tokenize(query))
