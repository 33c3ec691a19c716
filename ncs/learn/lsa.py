"""Word vectors by latent semantic analysis: truncated SVD of documents x words. For corpora too small for fastText."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.config import LsaConfig
    from ncs.storage.words import WordTable
    from ncs.types import Matrix


def train(words: WordTable, config: LsaConfig) -> Matrix:
    """Vectors [len(vocabulary), d], d <= dim: each word's row of the right singular vectors of the TF-IDF matrix, the
    components weighted (`LsaConfig.power`).

    Zero rows for numbers and words under min_count; all zero where nothing can be learned.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    counts = _counts(words)
    in_documents = np.bincount(counts.indices, minlength=counts.shape[1])
    number = np.fromiter((word.isnumeric() for word in words.vocabulary), np.bool_, len(words.vocabulary))
    kept = np.flatnonzero((in_documents >= config.min_count) & ~number)
    dim = min(config.dim, len(kept), len(words))
    vectors = np.zeros((len(words.vocabulary), max(1, dim)), np.float32)
    if len(kept) == 1:
        vectors[kept] = 1
    elif dim:
        weights = TfidfTransformer(sublinear_tf=True).fit_transform(counts[:, kept])
        svd = TruncatedSVD(dim, n_iter=config.iterations, random_state=config.seed)
        with np.errstate(all="ignore"):  # it divides by the total variance, which one document does not have
            svd.fit(weights)
        vectors[kept] = (svd.components_ * svd.singular_values_[:, None] ** config.power).T
    return np.nan_to_num(vectors, nan=0.0, posinf=0.0, neginf=0.0)


def _counts(words: WordTable) -> Any:
    """Documents x words as scipy CSR of float32 counts."""
    from scipy.sparse import csr_matrix, vstack

    def chunks() -> Iterator[Any]:
        for start in range(0, len(words), 1 << 14):
            stop = min(start + (1 << 14), len(words))
            ids, offsets = words.select(NCS_FIELDS, start, stop)
            ones: NDArray[np.float32] = np.ones(len(ids), np.float32)
            chunk = csr_matrix((ones, ids, offsets), shape=(stop - start, len(words.vocabulary)))
            chunk.sum_duplicates()
            yield chunk

    empty = csr_matrix((0, len(words.vocabulary)), dtype=np.float32)
    return vstack([empty, *chunks()], format="csr")
