"""Learned heads: arrays that encode queries and functions, trained by `unif` with torch, served by numpy without it.

Arrays have the names of the torch parameters in `unif.networks`, and give the same vectors to 1e-5.
Shapes stand at line ends: n texts, l tokens a text, V tokens, d dimensions, h attention heads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ncs.errors import BROKEN, BadInput, IndexDamaged
from ncs.files import map_array, read_json, save_array
from ncs.learn.tfidf import inverse_document_frequency, term_counts, unit_rows
from ncs.learn.tokenization import Tokenizer, load_tokenizer, source_words
from ncs.learn.translation import Translation
from ncs.storage.arrays import are_finite, offsets_of
from ncs.text.tokens import content_words, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.text.vocabulary import Vocabulary
    from ncs.types import Mask, Matrix

    Array: TypeAlias = NDArray[np.float32]
    Arrays: TypeAlias = Mapping[str, Array]
    Settings: TypeAlias = Mapping[str, Any]

FORMAT = 2
NAME = "head"
"""Folder of a head in a training run, and in the ranker's own folder."""
TRANSLATION = "translation"
BATCH, PROBE = 16, 8
"""Texts that a sequence encoder reads at a time (64 leave the cache), and tokens encoded to check a head."""
LOW = np.float32(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True)
class Tower:
    """One of the two encoders: "bag" or one of BODIES, its tokens, float32 arrays and settings."""

    kind: str
    tokens: Tokenizer
    arrays: Arrays
    settings: Settings

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.arrays["table"].shape[1])

    @property
    def is_weighted_bag(self) -> bool:
        """Whether it is a bag of tokens with a score each."""
        return self.kind == "bag" and "scores" in self.arrays

    def vectors(self, rows: Sequence[Sequence[int]]) -> Matrix:
        """Unit vectors [n, d] of token ids; zeros for an empty row."""
        rows = [row[: self.settings.get("longest")] for row in rows]
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
            if padded.any():
                vectors[batch] = self._encode(padded)
        return vectors

    def _encode(self, ids: NDArray[np.int64]) -> Matrix:
        """Unit vectors [n, d] of token ids [n, l], padded with 0."""
        present = ids > 0
        vectors = np.asarray(self.arrays["table"][ids], np.float32)  # [n, l, d]
        if self.kind in BODIES:
            vectors = BODIES[self.kind](self.arrays, self.settings, vectors, present)
        return unit_rows(pool(self.arrays, self.settings["pooling"], vectors, present))

    def bags(self, counts: Any) -> Matrix:
        """Unit vectors [n, d]: means of token vectors weighted by softmax of their scores; counts: CSR [n, V]."""
        weights = counts.copy()
        weights.data = counts.data * softmax_weights(self.arrays["scores"][1:, 0][counts.indices], counts.indptr)
        return unit_rows(np.asarray(weights @ self.arrays["table"][1:], np.float32))


def token_counts(rows: Sequence[Sequence[int]], tokens: int) -> Any:
    """The counts of the ids 1 .. tokens in each row, CSR [rows, tokens] of float32."""
    from scipy.sparse import csr_matrix

    bounds = offsets_of(np.array([len(row) for row in rows], np.int64))
    ids = np.fromiter((id for row in rows for id in row), np.int64, int(bounds[-1])) - 1
    counts = csr_matrix((np.ones(len(ids), np.float32), ids, bounds), shape=(len(rows), tokens))
    counts.sum_duplicates()
    return counts


def tokens_of_words(tower: Tower, vocabulary: Vocabulary) -> Any:
    """The counts of the tower's tokens in each word of a vocabulary, CSR [words, tokens]."""
    return token_counts([tower.tokens.ids([word]) for word in vocabulary], len(tower.tokens))


def softmax_weights(scores: Array, bounds: NDArray[np.int64]) -> Array:
    """exp(score - highest score of its row), [entries]: a softmax without its denominator, as rows are normalized
    later. bounds: the `indptr` of a CSR matrix."""
    filled = np.flatnonzero(np.diff(bounds))
    if not len(filled):
        return np.zeros(len(scores), np.float32)
    highest = np.maximum.reduceat(scores, bounds[filled])
    return np.asarray(np.exp(scores - np.repeat(highest, np.diff(bounds)[filled])), np.float32)


def pool(arrays: Arrays, pooling: str, vectors: Array, present: Mask) -> Matrix:
    """Vectors [n, l, d] into [n, d]: mean, max, or the mean weighted by sigmoid(a . v + b) of Husain et al. 2019."""
    if pooling == "max":
        highest = np.where(present[..., None], vectors, LOW).max(axis=1)
        return np.asarray(np.where(present.any(axis=1, keepdims=True), highest, 0), np.float32)
    weights = present.astype(np.float32)  # [n, l]
    if pooling == "weighted":
        weights = weights * sigmoid(vectors @ arrays["pool.attention"] + arrays["pool.bias"])
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-8)
    return np.asarray((weights[:, None, :] @ vectors)[:, 0], np.float32)


def convolutions(arrays: Arrays, settings: Settings, vectors: Array, present: Mask) -> Array:
    """1D-CNN [n, l, d]: positions added, then layers of a convolution, from the second on a residual, and tanh."""
    mask = present[..., None]
    x = (vectors + arrays["body.positions"][: vectors.shape[1]]) * mask
    for layer in range(settings["layers"]):
        weight, bias = (arrays[f"body.layers.{layer}.{name}"] for name in ("weight", "bias"))  # [d, d, width], [d]
        width = weight.shape[2]
        padded = np.pad(x, ((0, 0), ((width - 1) // 2, width // 2), (0, 0)))
        y = np.broadcast_to(bias, x.shape).copy()
        for at in range(width):
            y += padded[:, at : at + x.shape[1]] @ weight[:, :, at].T
        x = np.tanh(y + x if layer else y) * mask
    return np.asarray(x, np.float32)


def recurrent(arrays: Arrays, settings: Settings, vectors: Array, present: Mask) -> Array:
    """Stacked bidirectional GRU [n, l, 2 * hidden]."""
    x = vectors
    for layer in range(settings["layers"]):
        both = [_gru(arrays, f"body.gru.{{}}_l{layer}{way}", x, present, back=bool(way)) for way in ("", "_reverse")]
        x = np.concatenate(both, axis=2)
    return x


def _gru(arrays: Arrays, name: str, x: Array, present: Mask, *, back: bool) -> Array:
    """One layer in one direction, [n, l, hidden]; padding leaves the state as it is."""
    w_in, w_hidden, b_in, b_hidden = (
        arrays[name.format(part)] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    size = w_hidden.shape[1]
    inputs = x @ w_in.T + b_in  # [n, l, 3 * hidden]: reset, update, new
    state = np.zeros((len(x), size), np.float32)
    states = np.zeros((*present.shape, size), np.float32)
    for at in reversed(range(present.shape[1])) if back else range(present.shape[1]):
        rows = np.flatnonzero(present[:, at])
        of_input, of_state = inputs[rows, at], state[rows] @ w_hidden.T + b_hidden
        reset, update = np.split(sigmoid(of_input[:, : 2 * size] + of_state[:, : 2 * size]), 2, axis=1)
        new = np.tanh(of_input[:, 2 * size :] + reset * of_state[:, 2 * size :])
        state[rows] = states[rows, at] = (1 - update) * new + update * state[rows]
    return states


def self_attention(arrays: Arrays, settings: Settings, vectors: Array, present: Mask) -> Array:
    """Self-attention [n, l, d] as in BERT: attention, then two dense layers, each with a residual and normalized."""
    x = layer_norm(arrays, "body.norm", vectors + arrays["body.positions"][: vectors.shape[1]])
    for layer in range(settings["layers"]):
        name = f"body.layers.{layer}"
        mixed = attention(dense(arrays, f"{name}.inputs", x), present, settings["heads"])
        x = layer_norm(arrays, f"{name}.norm1", x + dense(arrays, f"{name}.output", mixed))
        wide = _gelu(dense(arrays, f"{name}.wide", x))
        x = layer_norm(arrays, f"{name}.norm2", x + dense(arrays, f"{name}.narrow", wide))
    return x


def attention(inputs: Array, present: Mask, heads: int) -> Array:
    """softmax(q k' / sqrt(d / h)) v over the tokens of a row; inputs [n, l, 3 * d] are q, k and v."""
    n, length, triple = inputs.shape
    query, key, value = inputs.reshape(n, length, 3, heads, -1).transpose(2, 0, 3, 1, 4)  # [n, h, l, d / h] each
    query = np.ascontiguousarray(query.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[3])))
    scores = key @ query  # [n, h, keys, queries]: numpy takes the maximum of rows ten times as fast as of columns
    scores += np.where(present, np.float32(0), LOW)[:, None, :, None]
    scores -= scores.max(axis=2, keepdims=True)
    weights = np.exp(scores, out=scores)
    mixed = weights.swapaxes(2, 3) @ value / weights.sum(axis=2)[..., None]
    return np.asarray(mixed.transpose(0, 2, 1, 3).reshape(n, length, triple // 3), np.float32)


def dense(arrays: Arrays, name: str, x: Array) -> Array:
    """A dense layer over the last axis, as one product of two matrices: three times as fast as one per text."""
    flat = x.reshape(-1, x.shape[-1]) @ arrays[f"{name}.weight"].T
    flat += arrays[f"{name}.bias"]
    return np.asarray(flat.reshape(*x.shape[:-1], -1), np.float32)


def layer_norm(arrays: Arrays, name: str, x: Array) -> Array:
    """Every vector with mean 0 and deviation 1, then scaled and moved."""
    mean = np.full(x.shape[-1], 1 / x.shape[-1], np.float32)  # a product with it takes a quarter of the time of x.mean
    centered = x - (x @ mean)[..., None]
    deviation = np.sqrt(np.square(centered) @ mean + np.float32(1e-5))[..., None]
    return np.asarray(centered / deviation * arrays[f"{name}.weight"] + arrays[f"{name}.bias"], np.float32)


def _gelu(x: Array) -> Array:
    from scipy.special import erf

    return np.asarray(x * np.float32(0.5) * (1 + erf(x * np.float32(0.5**0.5))), np.float32)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow.

    >>> sigmoid(np.array([-2000, 0, 2000], np.float32)).tolist()
    [0.0, 0.5, 1.0]
    """
    half = np.float32(0.5)
    return np.asarray(half * (1 + np.tanh(half * x)), np.float32)


BODIES: Mapping[str, Callable[[Arrays, Settings, Array, Mask], Array]] = {
    "cnn": convolutions,
    "birnn": recurrent,
    "selfatt": self_attention,
}
"""kind -> the function that puts token vectors [n, l, d] into their context; "bag" has none."""


@dataclass(frozen=True, slots=True)
class Head:
    """Both towers, the input of the code tower (reads: "fields", NCS_FIELDS, or "source", sub-tokens), and the record
    of the training. A head with a translation weights a function's words by BM25's rule over all fields, and leaves out
    a query's stop words and repetitions.

    On disk: `head.json`, and for each tower a folder with its tokens and one `.npy` per array.
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

    def encode_sources(self, programs: Sequence[tuple[str, str]]) -> Matrix:
        """Unit vectors [n, d] of (code, language)."""
        return self.code.vectors([self.code.tokens.ids(source_words(*program)) for program in programs])

    def encode_documents(self, words: WordTable, start: int, stop: int, tokens_of: Any) -> Matrix:
        """Unit vectors [stop - start, d] of these rows' NCS_FIELDS; tokens_of: `tokens_of_words(head.code, ...)`. Not
        for a head with a translation."""
        return self.code.bags(term_counts(words, start, stop) @ tokens_of)

    def save(self, folder: Path) -> None:
        """Write all files into `folder`, which is created; `head.json` last."""
        about: dict[str, object] = {"format": FORMAT, "reads": self.reads, "about": dict(self.about)}
        for name, tower in (("query", self.query), ("code", self.code)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            tower.tokens.save(folder / name)
            for array, values in tower.arrays.items():
                save_array(folder / name / f"{array}.npy", values)
            shapes = {array: list(values.shape) for array, values in tower.arrays.items()}
            about[name] = {"kind": tower.kind, "settings": dict(tower.settings), "arrays": shapes}
        if self.translation is not None:
            self.translation.save(folder / TRANSLATION)
        about["translates"] = self.translation is not None
        (folder / "head.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path, *, whole: bool = True) -> Head:
        """Load a head or that of a training run, memory-mapped. whole: check all numbers, and encode some words. Raises
        BadInput without a head, IndexDamaged for files that do not fit each other."""
        folder = path if (path / "head.json").is_file() else path / NAME
        if not (folder / "head.json").is_file():
            raise BadInput(f"there is no trained head in {path}; make one with: ncs train unif -i INDEX --out RUN")
        try:
            about = read_json(folder / "head.json")
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise IndexDamaged(f"the head in {folder} is from another version of ncs; train it again")
            query, code = (_load_tower(folder / name, about[name]) for name in ("query", "code"))
            if query.dim != code.dim:
                raise ValueError(f"{query.dim} and {code.dim} dimensions")
            translation = Translation.load(folder / TRANSLATION, len(code.tokens)) if about.get("translates") else None
            if about["reads"] not in ("fields", "source"):
                raise ValueError(f"it reads {about['reads']!r}")
            if whole:
                arrays = (map_array(each, dimensions=None) for each in folder.rglob("*.npy"))
                probe = range(1, min(PROBE, len(query.tokens), len(code.tokens)) + 1)
                vectors = (tower.vectors([probe]) for tower in (query, code))
                if not all(map(are_finite, chain(arrays, vectors))):
                    raise ValueError("numbers are missing")
            return cls(query, code, about["reads"], about["about"], translation)
        except (*BROKEN, OSError) as error:
            raise IndexDamaged(f"cannot read the head in {folder} ({error}); train it again") from error


def _load_tower(folder: Path, about: Mapping[str, Any]) -> Tower:
    arrays = {}
    for name, shape in about["arrays"].items():
        if "/" in name or "\\" in name:
            raise ValueError(f"{name!r} is no array")
        arrays[name] = map_array(folder / f"{name}.npy", np.float32, len(shape))
        if list(arrays[name].shape) != shape:
            raise ValueError(f"{folder.name}/{name}.npy has another shape")
    tokens = load_tokenizer(folder)
    if len(arrays["table"]) != len(tokens) + 1:
        raise ValueError(f"{folder.name}/table.npy has another number of tokens")
    if about["kind"] not in ("bag", *BODIES):
        raise ValueError(f"there is no encoder {about['kind']!r}")
    if "scores" in arrays and arrays["scores"].shape != (len(tokens) + 1, 1):
        raise ValueError(f"{folder.name}/scores.npy is from another version of ncs")
    return Tower(about["kind"], tokens, arrays, about["settings"])


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
    tokens = token_counts([head.code.tokens.ids([name]) for name in names], len(head.code.tokens))
    tokens.data *= softmax_weights(head.code.arrays["scores"][1:, 0][tokens.indices], np.array([0, tokens.nnz]))
    attention = tf * np.asarray(tokens.sum(axis=1)).ravel()
    tfidf = (1 + np.log(tf)) * inverse_document_frequency(words)[ids]
    shares = [part / (part.sum() or 1) for part in (attention, tfidf)]
    weights = map(WordWeight, names, tf.astype(int).tolist(), *(share.tolist() for share in shares))
    return sorted(weights, key=lambda each: (-each.attention, each.word))
