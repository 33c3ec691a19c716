"""Word vectors by latent semantic analysis: a truncated singular value decomposition of the TF-IDF matrix.

The decomposition is randomized (Halko et al. 2011, "Finding structure with randomness", algorithms 4.4 and 5.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from ncs.learn.tfidf import term_counts

if TYPE_CHECKING:
    from ncs.config import LsaConfig
    from ncs.storage.words import WordTable
    from ncs.types import Matrix

OVERSAMPLES = 10
"""Further directions during the iterations."""
NOISE = 1e-11
"""Directions of a smaller eigenvalue relative to the largest are rounding errors of float32."""


def train(words: WordTable, config: LsaConfig) -> Matrix:
    """Vectors [len(vocabulary), d], d <= dim: right singular vectors of the TF-IDF matrix times their singular values
    to the power `LsaConfig.power`; zero rows for numbers and words under min_count. One thread, for the same bytes on
    all machines."""
    counts = term_counts(words, 0, len(words))[words.learned(0, len(words))]
    in_documents = np.bincount(counts.indices, minlength=counts.shape[1])
    number = np.fromiter((word.isnumeric() for word in words.vocabulary), np.bool_, len(words.vocabulary))
    learned = np.flatnonzero((in_documents >= config.min_count) & ~number)
    dim = min(config.dim, len(learned), counts.shape[0])
    vectors = np.zeros((len(words.vocabulary), max(1, dim)), np.float32)
    if dim:
        idf = np.log((counts.shape[0] + 1) / (in_documents[learned] + 1), dtype=np.float32) + np.float32(1)
        with threadpool_limits(1, "blas"):
            sizes, components = _decompose(_weights(counts[:, learned], idf), dim, config.iterations, config.seed)
        vectors[learned, : len(sizes)] = components * sizes**config.power
    return vectors


def _weights(counts: Any, idf: Matrix) -> Any:
    """(1 + log tf) * idf, each document of length 1; documents x words, scipy CSR of float32."""
    weights = counts.copy()
    weights.data = (1 + np.log(weights.data)) * idf[weights.indices]
    sizes = np.diff(weights.indptr)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    weights.data /= np.sqrt(np.bincount(rows, weights.data**2, len(sizes)))[rows].astype(np.float32)
    return weights


def _decompose(matrix: Any, dim: int, iterations: int, seed: int) -> tuple[Matrix, Matrix]:
    """The largest singular values, at most `dim`, and their right singular vectors, [columns, d], each with a positive
    largest number. Gram matrices orthonormalize in a third of the time of QR."""
    wide = matrix.shape[0] < matrix.shape[1]
    tall = matrix.T if wide else matrix
    draw = np.random.RandomState(seed)  # as scikit-learn did, for the same vectors
    basis = draw.normal(size=(tall.shape[1], dim + OVERSAMPLES)).astype(np.float32)
    for _ in range(iterations):
        basis = _orthonormal(tall.T @ (tall @ basis))
    left = _orthonormal(tall @ basis)
    right = tall.T @ left  # tall ~ left @ right.T
    squares, rotation = _gram(right)
    sizes, rotation = np.sqrt(squares[::-1][:dim]).astype(np.float32), rotation[:, ::-1][:, :dim].astype(np.float32)
    vectors = left @ rotation if wide else right @ (rotation / sizes)
    return sizes, vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(sizes))])


def _orthonormal(vectors: Matrix) -> Matrix:
    """An orthonormal basis of the space of these columns."""
    squares, rotation = _gram(vectors)
    basis: Matrix = vectors @ (rotation / np.sqrt(squares)).astype(np.float32)
    return basis


def _gram(vectors: Matrix) -> tuple[Any, Any]:
    """Eigenvalues, ascending, and eigenvectors of the Gram matrix of the columns, without noise."""
    exact = vectors.astype(np.float64)
    squares, rotation = np.linalg.eigh(exact.T @ exact)
    real = squares > NOISE * squares[-1]
    return squares[real], rotation[:, real]
