"""Word vectors by latent semantic analysis: truncated SVD of documents x words. For corpora too small for fastText."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ncs.learn.tfidf import term_counts

if TYPE_CHECKING:
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

    counts = term_counts(words, 0, len(words))
    in_documents = np.bincount(counts.indices, minlength=counts.shape[1])
    number = np.fromiter((word.isnumeric() for word in words.vocabulary), np.bool_, len(words.vocabulary))
    learned = np.flatnonzero((in_documents >= config.min_count) & ~number)
    dim = min(config.dim, len(learned), len(words))
    vectors = np.zeros((len(words.vocabulary), max(1, dim)), np.float32)
    if len(learned) == 1:
        vectors[learned] = 1
    elif dim:
        weights = TfidfTransformer(sublinear_tf=True).fit_transform(counts[:, learned])
        svd = TruncatedSVD(dim, n_iter=config.iterations, random_state=config.seed)
        with np.errstate(all="ignore"):  # it divides by the total variance, which one document does not have
            svd.fit(weights)
        vectors[learned] = (svd.components_ * svd.singular_values_[:, None] ** config.power).T
    return np.nan_to_num(vectors, nan=0.0, posinf=0.0, neginf=0.0)
