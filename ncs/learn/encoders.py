"""The encoders of learned heads in numpy: what torch trained, served without it, equal to 1e-5.

Arrays have the names of the torch parameters in `unif.networks`.
Shapes stand at line ends: n texts, l tokens a text, V tokens, d dimensions, h attention heads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ncs.learn.tfidf import unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask, Matrix

    Arrays: TypeAlias = Mapping[str, NDArray[np.float32]]
    Settings: TypeAlias = Mapping[str, Any]
    Ids: TypeAlias = NDArray[np.int64]

LOW = np.float32(np.finfo(np.float32).min)


def token_counts(rows: Sequence[Sequence[int]], tokens: int) -> Any:
    """CSR [rows, tokens] of float32: how often each of the ids 1 .. tokens stands in each row."""
    from scipy.sparse import csr_matrix

    bounds = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=bounds[1:])
    ids = np.fromiter((id for row in rows for id in row), np.int64, int(bounds[-1])) - 1
    counts = csr_matrix((np.ones(len(ids), np.float32), ids, bounds), shape=(len(rows), tokens))
    counts.sum_duplicates()
    return counts


def encode_bags(arrays: Arrays, counts: Any) -> Matrix:
    """Unit vectors [n, d]: means of token vectors weighted by softmax of the tokens' scores; counts: CSR [n, V]."""
    weights = counts.copy()
    weights.data = counts.data * softmax_weights(arrays["scores"][1:, 0][counts.indices], counts.indptr)
    return unit_rows(np.asarray(weights @ arrays["table"][1:], np.float32))


def softmax_weights(scores: NDArray[np.float32], bounds: Ids) -> NDArray[np.float32]:
    """exp(score - the highest score of its row), [entries]; bounds: the `indptr` of a CSR matrix.

    The denominator of the softmax is the same for a whole row, and so without effect on its direction.
    """
    filled = np.flatnonzero(np.diff(bounds))
    if not len(filled):
        return np.zeros(len(scores), np.float32)
    highest = np.maximum.reduceat(scores, bounds[filled])
    return np.asarray(np.exp(scores - np.repeat(highest, np.diff(bounds)[filled])), np.float32)


def encode(kind: str, arrays: Arrays, settings: Settings, ids: Ids) -> Matrix:
    """Unit vectors [n, d] of token ids [n, l], 0 being padding, wherever it stands; zeros for a row without tokens."""
    ids = compact(ids)[:, : settings.get("longest")]
    present = ids > 0  # [n, l]
    if not present.any():
        return np.zeros((len(ids), arrays["table"].shape[1]), np.float32)
    vectors = np.asarray(arrays["table"][ids], np.float32)  # [n, l, d]
    if kind != "bag":
        vectors = BODIES[kind](arrays, settings, vectors, present)
    return unit_rows(pool(arrays, settings, vectors, present))


def compact(ids: Ids) -> Ids:
    """Every row's tokens moved to its front, and cut where the longest row ends.

    >>> compact(np.array([[0, 3, 0, 4], [0, 0, 0, 5]])).tolist()
    [[3, 4], [5, 0]]
    """
    order = np.argsort(ids <= 0, axis=1, kind="stable")
    longest = int((ids > 0).sum(axis=1).max(initial=0))
    return np.take_along_axis(ids, order, axis=1)[:, :longest]


def pool(arrays: Arrays, settings: Settings, vectors: NDArray[np.float32], present: Mask) -> Matrix:
    """Vectors [n, l, d] into [n, d]: mean, max, or the mean weighted by sigmoid(a . v + b) of Husain et al. 2019."""
    if settings["pooling"] == "max":
        highest = np.where(present[..., None], vectors, LOW).max(axis=1)
        return np.asarray(np.where(present.any(axis=1, keepdims=True), highest, 0), np.float32)
    weights = present.astype(np.float32)  # [n, l]
    if settings["pooling"] == "weighted":
        weights = weights * sigmoid(vectors @ arrays["pool.attention"] + arrays["pool.bias"])
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-8)
    return np.asarray((weights[:, None, :] @ vectors)[:, 0], np.float32)


def convolutions(
    arrays: Arrays, settings: Settings, vectors: NDArray[np.float32], present: Mask
) -> NDArray[np.float32]:
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


def recurrent(arrays: Arrays, settings: Settings, vectors: NDArray[np.float32], present: Mask) -> NDArray[np.float32]:
    """Stacked bidirectional GRU [n, l, 2 * hidden]."""
    x = vectors
    for layer in range(settings["layers"]):
        both = [_gru(arrays, f"body.gru.{{}}_l{layer}{way}", x, present, back=bool(way)) for way in ("", "_reverse")]
        x = np.concatenate(both, axis=2)
    return x


def _gru(arrays: Arrays, name: str, x: NDArray[np.float32], present: Mask, *, back: bool) -> NDArray[np.float32]:
    """One layer in one direction, [n, l, hidden]; padding leaves the state as it is."""
    w_in, w_hidden, b_in, b_hidden = (
        arrays[name.format(part)] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    size = w_hidden.shape[1]
    inputs = x @ w_in.T + b_in  # [n, l, 3 * hidden]: reset, update, new
    state = np.zeros((len(x), size), np.float32)
    states = np.zeros((*present.shape, size), np.float32)
    for at in reversed(range(present.shape[1])) if back else range(present.shape[1]):
        now = np.flatnonzero(present[:, at])
        given, carried = inputs[now, at], state[now] @ w_hidden.T + b_hidden
        reset, update = np.split(sigmoid(given[:, : 2 * size] + carried[:, : 2 * size]), 2, axis=1)
        new = np.tanh(given[:, 2 * size :] + reset * carried[:, 2 * size :])
        state[now] = states[now, at] = (1 - update) * new + update * state[now]
    return states


def self_attention(
    arrays: Arrays, settings: Settings, vectors: NDArray[np.float32], present: Mask
) -> NDArray[np.float32]:
    """Self-attention [n, l, d] as in BERT: attention, then two dense layers, each with a residual and normalized."""
    x = _layer_norm(arrays, "body.norm", vectors + arrays["body.positions"][: vectors.shape[1]])
    for layer in range(settings["layers"]):
        name = f"body.layers.{layer}"
        mixed = _attention(_dense(arrays, f"{name}.inputs", x), present, settings["heads"])
        x = _layer_norm(arrays, f"{name}.norm1", x + _dense(arrays, f"{name}.output", mixed))
        wide = _gelu(_dense(arrays, f"{name}.wide", x))
        x = _layer_norm(arrays, f"{name}.norm2", x + _dense(arrays, f"{name}.narrow", wide))
    return x


def _attention(inputs: NDArray[np.float32], present: Mask, heads: int) -> NDArray[np.float32]:
    """softmax(q k' / sqrt(d / h)) v over the tokens of a row; inputs [n, l, 3 * d] are q, k and v."""
    n, length, triple = inputs.shape
    split = inputs.reshape(n, length, 3, heads, -1).transpose(2, 0, 3, 1, 4)  # [3, n, h, l, d / h]
    query, key, value = split
    scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[3]))  # [n, h, l, l]
    scores = np.where(present[:, None, None, :], scores, LOW)
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    mixed: NDArray[np.float32] = (weights @ value).transpose(0, 2, 1, 3).reshape(n, length, triple // 3)
    return mixed


def _dense(arrays: Arrays, name: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"], np.float32)


def _layer_norm(arrays: Arrays, name: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    centered = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(np.square(centered).mean(axis=-1, keepdims=True) + np.float32(1e-5))
    return np.asarray(centered / deviation * arrays[f"{name}.weight"] + arrays[f"{name}.bias"], np.float32)


def _gelu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    from scipy.special import erf

    return np.asarray(x * np.float32(0.5) * (1 + erf(x * np.float32(0.5**0.5))), np.float32)


def sigmoid(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + exp(-x)) without overflow.

    >>> sigmoid(np.array([-2000, 0, 2000], np.float32)).tolist()
    [0.0, 0.5, 1.0]
    """
    half = np.float32(0.5)
    return np.asarray(half * (1 + np.tanh(half * x)), np.float32)


BODIES: Mapping[str, Callable[[Arrays, Settings, NDArray[np.float32], Mask], NDArray[np.float32]]] = {
    "cnn": convolutions,
    "birnn": recurrent,
    "selfatt": self_attention,
}
"""kind -> what makes of token vectors [n, l, d] those in their context; `bag` needs none."""
