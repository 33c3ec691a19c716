"""What training leaves behind: plain arrays that make vectors of questions and functions without torch.

A bag, whose weight of a word does not depend on its neighbours, is a product of sparse counts and a table; the other
encoders are computed by `unif.forward`, texts of like length at a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, IndexDamaged
from ncs.learn.embeddings import unit_rows
from ncs.learn.tfidf import term_counts
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from unif.counts import counts_of, relative_weights
from unif.forward import encode
from unif.source_words import source_words
from unif.tokenization import Tokens, load_tokens
from unif.translation import FOLDER, Translation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.text.vocabulary import Vocabulary
    from ncs.types import Matrix

FORMAT = 2
NAME = "head"
"""Folder of a head in a training run, and in the ranker's own."""
BATCH = 64
"""Texts that an encoder with an order reads at a time."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two encoders: what it is, the tokens it reads, float32 arrays under `unif.forward`'s names."""

    kind: str
    tokens: Tokens
    arrays: Mapping[str, NDArray[np.float32]]
    settings: Mapping[str, Any]

    @property
    def dim(self) -> int:
        """Numbers a vector."""
        return int(self.arrays["table"].shape[1])

    @property
    def is_weighted_bag(self) -> bool:
        """Whether every word has a score of its own, so that counts are all that matters."""
        return self.kind == "bag" and "scores" in self.arrays

    def vectors(self, rows: Sequence[Sequence[int]]) -> Matrix:
        """Unit vectors [n, d] of token ids; zeros for an empty row."""
        longest = self.settings.get("longest")
        rows = [row[:longest] for row in rows] if longest else rows
        if self.is_weighted_bag:
            return self.bags(counts_of(rows, len(self.tokens)))
        found: Matrix = np.zeros((len(rows), self.dim), np.float32)
        lengths = np.array([len(row) for row in rows], np.int64)
        order = np.argsort(lengths, kind="stable")
        for start in range(0, len(rows), BATCH):
            some = order[start : start + BATCH]
            padded = np.zeros((len(some), int(lengths[some].max())), np.int64)
            for at, row in enumerate(some):
                padded[at, : lengths[row]] = rows[row]
            found[some] = encode(self.kind, self.arrays, self.settings, padded)
        return found

    def bags(self, counts: Any) -> Matrix:
        """Unit vectors [n, d] of how often each token stands in each text, a CSR matrix [n, tokens]."""
        scores = self.arrays["scores"][1:][counts.indices]  # [entries, h]
        weights = counts.copy()
        weights.data = counts.data * relative_weights(scores, counts.data, counts.indptr)
        return unit_rows(np.asarray(weights @ self.arrays["table"][1:], np.float32))

    def weights(self, ids: NDArray[np.int64], times: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of each of these tokens, which stand `times` in a text, among all; they add up to 1."""
        bounds = np.array([0, len(ids)], np.int64)
        found = times * relative_weights(self.arrays["scores"][ids], times.astype(np.float32), bounds)
        return np.asarray(found / (found.sum() or 1), np.float64)


@dataclass(frozen=True, slots=True)
class Head:
    """Both sides, what the code side reads ("fields": NCS_FIELDS, "source": sub-tokens), and how they were trained.

    On disk: `head.json`, and of each side a folder with its tokens and `<array>.npy` each.
    about: {"unique": true} counts a document's repeated words once.
    translation: of a head that looks for every word of the question by itself too; it weighs a function's words by
    BM25's rule over all fields (unif.impacts), and leaves a question's grammar and repeated words out.
    """

    query: Side
    code: Side
    reads: str = "fields"
    about: Mapping[str, object] = field(default_factory=dict)
    translation: Translation | None = None

    def asked(self, text: str) -> list[int]:
        """The tokens of a question that count."""
        words = tokenize(text)
        if self.translation is None:
            return self.query.tokens.ids(words)
        return list(dict.fromkeys(self.query.tokens.ids(content_words(words))))

    def questions(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors [n, d] of questions, zero where no word of one is known."""
        return self.query.vectors([self.asked(text) for text in texts])

    def question(self, text: str) -> Matrix:
        """The unit vector [d] of one question."""
        vector: Matrix = self.questions([text])[0]
        return vector

    def sources(self, programs: Sequence[tuple[str, str]]) -> Matrix:
        """Unit vectors [n, d] of (code, language)."""
        rows = [self.code.tokens.ids(source_words(code, language)) for code, language in programs]
        if self.about.get("unique"):
            rows = [list(dict.fromkeys(row)) for row in rows]
        return self.code.vectors(rows)

    def documents(self, words: WordTable, start: int, stop: int, tokens_of: Any) -> Matrix:
        """Unit vectors [stop - start, d] of these rows' NCS_FIELDS; tokens_of: `tokens_of(head.code, vocabulary)`.

        Not of a head that translates, whose impacts are counted over all functions first (unif.impacts).
        """
        counts = term_counts(words, start, stop) @ tokens_of
        if self.about.get("unique"):
            counts.data = np.minimum(counts.data, 1)
        return self.code.bags(counts)

    def save(self, folder: Path) -> None:
        """Write all files into `folder`, which is made; `head.json` last."""
        about: dict[str, object] = {"format": FORMAT, "reads": self.reads, "about": dict(self.about)}
        for name, side in (("query", self.query), ("code", self.code)):
            room = folder / name
            room.mkdir(parents=True, exist_ok=True)
            side.tokens.save(room)
            for array, values in side.arrays.items():
                np.save(room / f"{array}.npy", values)
            shapes = {array: list(values.shape) for array, values in side.arrays.items()}
            about[name] = {"kind": side.kind, "settings": dict(side.settings), "arrays": shapes}
        if self.translation is not None:
            self.translation.save(folder / FOLDER)
        about["translates"] = self.translation is not None
        (folder / "head.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Head:
        """Memory-mapped. Raises BadInput where there is none, IndexDamaged for files that do not fit each other."""
        if not (folder / "head.json").is_file():
            raise BadInput(f"there is no trained head in {folder}; make one with: ncs train unif -i INDEX --out RUN")
        try:
            about = json.loads((folder / "head.json").read_bytes())
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise IndexDamaged(f"the head in {folder} is of another version of ncs; train it again")
            query, code = (_side(folder / name, about[name]) for name in ("query", "code"))
            if query.dim != code.dim:
                raise ValueError(f"{query.dim} and {code.dim} dimensions")
            translation = Translation.load(folder / FOLDER, len(code.tokens)) if about.get("translates") else None
            return cls(query, code, about["reads"], about["about"], translation)
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise IndexDamaged(f"cannot read the head in {folder} ({error}); train it again") from error


def opened(path: Path) -> Head:
    """The head of a folder: a training run, or what `Head.save` wrote. Raises as `Head.load`."""
    return Head.load(path if (path / "head.json").is_file() else path / NAME)


def tokens_of(side: Side, vocabulary: Vocabulary) -> Any:
    """CSR [words of a vocabulary, tokens of the side]: how often each token stands in each word."""
    return counts_of([side.tokens.ids([word]) for word in vocabulary], len(side.tokens))


def _side(folder: Path, about: Mapping[str, Any]) -> Side:
    """Raises what a wrong file makes numpy raise, KeyError and ValueError."""
    arrays = {}
    for name, shape in about["arrays"].items():
        array = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
        if list(array.shape) != shape or array.dtype != np.float32:
            raise ValueError(f"{folder.name}/{name}.npy holds other numbers")
        arrays[name] = array
    tokens = load_tokens(folder)
    if len(arrays["table"]) != len(tokens) + 1 or not isinstance(tokens.ids([""]), list):
        raise ValueError(f"{folder.name}/table.npy has another number of tokens")
    return Side(about["kind"], tokens, arrays, about["settings"])
