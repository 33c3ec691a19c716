"""The encoders once more in numpy: what torch learnt, served without it, equal to 1e-5.

Every function here reads arrays under the names that the module of `unif.bags` or `unif.sequences` gives them.
Shapes stand at line ends: n texts, l tokens a text, V tokens, d dimensions, h heads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ncs.learn.embeddings import unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask, Matrix

    Arrays: TypeAlias = Mapping[str, NDArray[np.float32]]
    Settings: TypeAlias = Mapping[str, Any]
    Ids: TypeAlias = NDArray[np.int64]

LOW = np.float32(np.finfo(np.float32).min)


def encode(kind: str, arrays: Arrays, settings: Settings, ids: Ids) -> Matrix:
    """Unit vectors [n, d] of token ids [n, l], 0 being no token, wherever it stands; zeros for a row without tokens."""
    ids = compact(ids)[:, : settings.get("longest")]
    there = ids > 0  # [n, l]
    if not there.any():
        return np.zeros((len(ids), arrays["table"].shape[1]), np.float32)
    vectors = np.asarray(arrays["table"][ids], np.float32)  # [n, l, d]
    if kind == "bag":
        pooled = bag(arrays, settings, ids, vectors, there)
    else:
        pooled = pool(arrays, settings, BODIES[kind](arrays, settings, vectors, there), there)
    return unit_rows(pooled)


def compact(ids: Ids) -> Ids:
    """Every row's tokens moved to its front, and cut where the longest row ends.

    >>> compact(np.array([[0, 3, 0, 4], [0, 0, 0, 5]])).tolist()
    [[3, 4], [5, 0]]
    """
    order = np.argsort(ids <= 0, axis=1, kind="stable")
    longest = int((ids > 0).sum(axis=1).max(initial=0))
    return np.take_along_axis(ids, order, axis=1)[:, :longest]


def bag(arrays: Arrays, settings: Settings, ids: Ids, vectors: NDArray[np.float32], there: Mask) -> Matrix:
    """The maximum, or the mean by softmax of the tokens' scores [V + 1, h], averaged over heads; [n, d]."""
    if settings["pooling"] == "max":
        return pool(arrays, settings, vectors, there)
    scores = np.where(there[..., None], arrays["scores"][ids], LOW)  # [n, l, h]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True)) * there[..., None]
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)
    return _mixed(weights.mean(axis=2), vectors)


def pool(arrays: Arrays, settings: Settings, vectors: NDArray[np.float32], there: Mask) -> Matrix:
    """Vectors [n, l, d] into [n, d]: mean, max, or CodeSearchNet's weighted mean by sigmoid(a . v + b)."""
    if settings["pooling"] == "max":
        highest = np.where(there[..., None], vectors, LOW).max(axis=1)
        return np.asarray(np.where(there.any(axis=1, keepdims=True), highest, 0), np.float32)
    weights = there.astype(np.float32)  # [n, l]
    if settings["pooling"] == "weighted":
        weights = weights * sigmoid(vectors @ arrays["pool.attention"] + arrays["pool.bias"])
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-8)
    return _mixed(weights / total, vectors)


def _mixed(weights: NDArray[np.float32], vectors: NDArray[np.float32]) -> Matrix:
    return np.asarray((weights[:, None, :] @ vectors)[:, 0], np.float32)


def convolutions(arrays: Arrays, settings: Settings, vectors: NDArray[np.float32], there: Mask) -> NDArray[np.float32]:
    """1D-CNN [n, l, d]: positions added, then layers of a convolution, from the second on a residual, and tanh."""
    mask = there[..., None]
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


def recurrent(arrays: Arrays, settings: Settings, vectors: NDArray[np.float32], there: Mask) -> NDArray[np.float32]:
    """Bidirectional GRU [n, l, 2 * hidden], layers on each other."""
    x = vectors
    for layer in range(settings["layers"]):
        both = [_gru(arrays, f"body.gru.{{}}_l{layer}{way}", x, there, back=bool(way)) for way in ("", "_reverse")]
        x = np.concatenate(both, axis=2)
    return x


def _gru(arrays: Arrays, name: str, x: NDArray[np.float32], there: Mask, *, back: bool) -> NDArray[np.float32]:
    """One layer in one direction, [n, l, hidden]; the state stays as it is where there is no token."""
    w_in, w_hidden, b_in, b_hidden = (
        arrays[name.format(part)] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    size = w_hidden.shape[1]
    inputs = x @ w_in.T + b_in  # [n, l, 3 * hidden]: reset, update, new
    state = np.zeros((len(x), size), np.float32)
    states = np.zeros((*there.shape, size), np.float32)
    for at in reversed(range(there.shape[1])) if back else range(there.shape[1]):
        now = np.flatnonzero(there[:, at])
        given, kept = inputs[now, at], state[now] @ w_hidden.T + b_hidden
        reset, update = np.split(sigmoid(given[:, : 2 * size] + kept[:, : 2 * size]), 2, axis=1)
        new = np.tanh(given[:, 2 * size :] + reset * kept[:, 2 * size :])
        state[now] = states[now, at] = (1 - update) * new + update * state[now]
    return states


def self_attention(
    arrays: Arrays, settings: Settings, vectors: NDArray[np.float32], there: Mask
) -> NDArray[np.float32]:
    """Self-attention [n, l, d] as in BERT: attention, then two dense layers, each with a residual and normalised."""
    x = _normal(arrays, "body.norm", vectors + arrays["body.positions"][: vectors.shape[1]])
    for layer in range(settings["layers"]):
        name = f"body.layers.{layer}"
        mixed = _attention(_dense(arrays, f"{name}.inputs", x), there, settings["heads"])
        x = _normal(arrays, f"{name}.norm1", x + _dense(arrays, f"{name}.output", mixed))
        wide = _gelu(_dense(arrays, f"{name}.wide", x))
        x = _normal(arrays, f"{name}.norm2", x + _dense(arrays, f"{name}.narrow", wide))
    return x


def _attention(inputs: NDArray[np.float32], there: Mask, heads: int) -> NDArray[np.float32]:
    """softmax(q k' / sqrt(d / h)) v over the tokens of a row; inputs [n, l, 3 * d] are q, k and v."""
    n, length, triple = inputs.shape
    split = inputs.reshape(n, length, 3, heads, -1).transpose(2, 0, 3, 1, 4)  # [3, n, h, l, d / h]
    query, key, value = split
    scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[3]))  # [n, h, l, l]
    scores = np.where(there[:, None, None, :], scores, LOW)
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    mixed: NDArray[np.float32] = (weights @ value).transpose(0, 2, 1, 3).reshape(n, length, triple // 3)
    return mixed


def _dense(arrays: Arrays, name: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"], np.float32)


def _normal(arrays: Arrays, name: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    moved = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(np.square(moved).mean(axis=-1, keepdims=True) + np.float32(1e-5))
    return np.asarray(moved / deviation * arrays[f"{name}.weight"] + arrays[f"{name}.bias"], np.float32)


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
