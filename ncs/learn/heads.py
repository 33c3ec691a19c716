"""Learned heads: plain arrays that make vectors of queries and functions, trained by `unif`, served without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, IndexDamaged
from ncs.learn.encoders import encode, encode_bags, softmax_weights, token_counts
from ncs.learn.tfidf import inverse_document_frequency, term_counts
from ncs.learn.tokenization import Tokenizer, load_tokenizer, source_words
from ncs.learn.translation import Translation
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.text.vocabulary import Vocabulary
    from ncs.types import Matrix

FORMAT = 2
NAME = "head"
"""Folder of a head in a training run, and in the ranker's own folder."""
TRANSLATION = "translation"
BATCH = 64
"""Texts that a sequence encoder reads at a time."""


@dataclass(frozen=True, slots=True)
class Tower:
    """One of the two encoders: its kind, the tokens it reads, float32 arrays as `ncs.learn.encoders` names them."""

    kind: str
    tokens: Tokenizer
    arrays: Mapping[str, NDArray[np.float32]]
    settings: Mapping[str, Any]

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.arrays["table"].shape[1])

    @property
    def is_weighted_bag(self) -> bool:
        """Whether every token has a score of its own, so that counts are all that matters."""
        return self.kind == "bag" and "scores" in self.arrays

    def vectors(self, rows: Sequence[Sequence[int]]) -> Matrix:
        """Unit vectors [n, d] of token ids; zeros for an empty row."""
        longest = self.settings.get("longest")
        rows = [row[:longest] for row in rows] if longest else rows
        if self.is_weighted_bag:
            return self.bags(token_counts(rows, len(self.tokens)))
        vectors: Matrix = np.zeros((len(rows), self.dim), np.float32)
        lengths = np.array([len(row) for row in rows], np.int64)
        order = np.argsort(lengths, kind="stable")  # texts of like length together need little padding
        for start in range(0, len(rows), BATCH):
            batch = order[start : start + BATCH]
            padded = np.zeros((len(batch), int(lengths[batch].max())), np.int64)
            for at, row in enumerate(batch):
                padded[at, : lengths[row]] = rows[row]
            vectors[batch] = encode(self.kind, self.arrays, self.settings, padded)
        return vectors

    def bags(self, counts: Any) -> Matrix:
        """Unit vectors [n, d] of how often each token stands in each text, a CSR matrix [n, tokens]."""
        return encode_bags(self.arrays, counts)


@dataclass(frozen=True, slots=True)
class Head:
    """Both towers, what the code tower reads ("fields": NCS_FIELDS, "source": sub-tokens), and the training's record.

    On disk: `head.json`, and of each tower a folder with its tokens and one `.npy` an array.
    translation: of a head that looks for every word of the query by itself too; it weights a function's words by
    BM25's rule over all fields, and leaves a query's stop words and repetitions out.
    """

    query: Tower
    code: Tower
    reads: str = "fields"
    about: Mapping[str, object] = field(default_factory=dict)
    translation: Translation | None = None

    def query_ids(self, text: str) -> list[int]:
        """The tokens of a query that count."""
        words = tokenize(text)
        if self.translation is None:
            return self.query.tokens.ids(words)
        return list(dict.fromkeys(self.query.tokens.ids(content_words(words))))

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors [n, d], zero where no word of a query is known."""
        return self.query.vectors([self.query_ids(text) for text in texts])

    def encode_query(self, text: str) -> Matrix:
        """The unit vector [d] of one query."""
        vector: Matrix = self.encode_queries([text])[0]
        return vector

    def encode_sources(self, programs: Sequence[tuple[str, str]]) -> Matrix:
        """Unit vectors [n, d] of (code, language)."""
        return self.code.vectors([self.code.tokens.ids(source_words(*program)) for program in programs])

    def encode_documents(self, words: WordTable, start: int, stop: int, tokens_of: Any) -> Matrix:
        """Unit vectors [stop - start, d] of these rows' NCS_FIELDS; tokens_of: `tokens_of_words(head.code, ...)`.

        Not of a head with a translation, whose impacts need the mean length of all functions first.
        """
        return self.code.bags(term_counts(words, start, stop) @ tokens_of)

    def save(self, folder: Path) -> None:
        """Write all files into `folder`, which is made; `head.json` last."""
        about: dict[str, object] = {"format": FORMAT, "reads": self.reads, "about": dict(self.about)}
        for name, tower in (("query", self.query), ("code", self.code)):
            room = folder / name
            room.mkdir(parents=True, exist_ok=True)
            tower.tokens.save(room)
            for array, values in tower.arrays.items():
                np.save(room / f"{array}.npy", values)
            shapes = {array: list(values.shape) for array, values in tower.arrays.items()}
            about[name] = {"kind": tower.kind, "settings": dict(tower.settings), "arrays": shapes}
        if self.translation is not None:
            self.translation.save(folder / TRANSLATION)
        about["translates"] = self.translation is not None
        (folder / "head.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Head:
        """Memory-mapped, from a training run or from what `save` wrote.

        Raises BadInput where there is none, IndexDamaged for files that do not fit each other.
        """
        folder = path if (path / "head.json").is_file() else path / NAME
        if not (folder / "head.json").is_file():
            raise BadInput(f"there is no trained head in {path}; make one with: ncs train unif -i INDEX --out RUN")
        try:
            about = json.loads((folder / "head.json").read_bytes())
            if not isinstance(about, dict) or about.get("format") != FORMAT or about["about"].get("unique"):
                raise IndexDamaged(f"the head in {folder} is from another version of ncs; train it again")
            query, code = (_load_tower(folder / name, about[name]) for name in ("query", "code"))
            if query.dim != code.dim:
                raise ValueError(f"{query.dim} and {code.dim} dimensions")
            translation = Translation.load(folder / TRANSLATION, len(code.tokens)) if about.get("translates") else None
            return cls(query, code, about["reads"], about["about"], translation)
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise IndexDamaged(f"cannot read the head in {folder} ({error}); train it again") from error


def _load_tower(folder: Path, about: Mapping[str, Any]) -> Tower:
    """Raises what a wrong file makes numpy raise, KeyError and ValueError."""
    arrays = {}
    for name, shape in about["arrays"].items():
        array = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
        if list(array.shape) != shape or array.dtype != np.float32:
            raise ValueError(f"{folder.name}/{name}.npy has another shape or type")
        arrays[name] = array
    tokens = load_tokenizer(folder)
    if len(arrays["table"]) != len(tokens) + 1:
        raise ValueError(f"{folder.name}/table.npy has another number of tokens")
    if "scores" in arrays and arrays["scores"].shape[1:] != (1,):
        raise ValueError(f"{folder.name}/scores.npy is from another version of ncs")
    return Tower(about["kind"], tokens, arrays, about["settings"])


def tokens_of_words(tower: Tower, vocabulary: Vocabulary) -> Any:
    """CSR [words of a vocabulary, tokens of the tower]: how often each token stands in each word."""
    return token_counts([tower.tokens.ids([word]) for word in vocabulary], len(tower.tokens))


@dataclass(frozen=True, slots=True)
class WordWeight:
    """A word of a function, its count there, and its share of the head's weights and of TF-IDF; each adds up to 1."""

    word: str
    count: int
    attention: float
    tfidf: float


def word_weights(head: Head, words: WordTable, row: int) -> list[WordWeight]:
    """The distinct words of a row's NCS_FIELDS, by (-attention, word); a word that the head does not know has 0.

    Raises BadInput for a head whose words have no weights of their own.
    """
    if head.reads != "fields" or not head.code.is_weighted_bag:
        raise BadInput(f"a head of kind {head.code.kind!r} does not weight words; use one from `ncs train unif`")
    counts = term_counts(words, row, row + 1)
    ids, tf = counts.indices, counts.data.astype(np.float64)
    names = [words.vocabulary.word(int(id)) for id in ids]
    tokens = [head.code.tokens.ids([name]) for name in names]
    owner = np.repeat(np.arange(len(names)), [len(each) for each in tokens])
    flat = np.array([id for each in tokens for id in each], np.int64)
    weights = tf[owner] * softmax_weights(head.code.arrays["scores"][flat, 0], np.array([0, len(flat)]))
    attention = np.bincount(owner, weights, len(names))
    tfidf = (1 + np.log(tf)) * inverse_document_frequency(words)[ids]
    shares = [part / (part.sum() or 1) for part in (attention, tfidf)]
    weights = map(WordWeight, names, tf.astype(int).tolist(), *(share.tolist() for share in shares))
    return sorted(weights, key=lambda each: (-each.attention, each.word))
