"""The word vectors of an index: learnt from its words or taken over from another, and whether they still serve."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.storage.manifest import Manifest, read_manifest
from ncs.types import NCS_FIELDS

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings, FastTextConfig, LsaConfig
    from ncs.learn.fasttext import Trainer
    from ncs.progress import Track
    from ncs.storage.words import WordTable

DRIFT, GROWTH = 0.02, 1.5
"""Past these an update advises to learn word vectors anew."""
ROWS = 1 << 14
"""Documents whose words are looked at at once."""
PENDING = "word vectors are being learnt: so far words themselves are found, not their meaning"
"""What an index says that answers by words only."""


def word_vectors(
    words: WordTable,
    how: FastTextConfig | LsaConfig,
    other: str | None,
    track: Track,
    folder: Path,
    learnt: Path | None,
    trainer: Trainer | None = None,
) -> tuple[Embeddings, dict[str, object]]:
    """Learnt from these words, or from an index; and from how much they were learnt, how much had none then and now.

    other: code that is learnt from too (ncs.learn.warm_start). folder: where temporary files may be written.
    learnt: the folder of an index whose vectors are taken over, if it has any yet. trainer: what
    runs fastText.
    """
    from ncs.build.file_cache import carried_over
    from ncs.learn.embeddings import Embeddings
    from ncs.learn.warm_start import train_beside

    manifest = None if learnt is None else read_manifest(learnt)
    if learnt is None or manifest is None or "pending" in manifest.counts:
        then: dict[str, object] = {"documents": len(words)}
        if other:
            embeddings, then["warm_start"] = train_beside(words, other, how, track=track, folder=folder)
        else:
            embeddings = Embeddings.train(words, how, track=track, folder=folder, trainer=trainer)
        then["without_vector"] = without_vector(words, embeddings)
    else:
        embeddings = carried_over(learnt / manifest.generation, words)
        then = {**cast(Mapping[str, object], manifest.counts.get("training") or {})}
    return embeddings, {**then, "without_vector_now": without_vector(words, embeddings)}


def without_vector(words: WordTable, embeddings: Embeddings) -> float:
    """The share of the words of NCS_FIELDS that have no vector: rare ones, and those that came after the training."""
    has = np.einsum("ij,ij->i", embeddings.vectors, embeddings.vectors) > 0
    known = total = 0
    for start in range(0, len(words), ROWS):
        ids, _ = words.select(NCS_FIELDS, start, min(start + ROWS, len(words)))
        known, total = known + int(np.count_nonzero(has[ids])), total + len(ids)
    return round(1 - known / total, 6) if total else 0.0


def retraining_advice(manifest: Manifest) -> str | None:
    """Whether word vectors should be learnt anew, and why; None while they serve.

    They should where DRIFT more of the words have none than when they were learnt, and where the corpus is
    GROWTH times what it was then.
    """
    training: dict[str, Any] = dict(cast(Mapping[str, object], manifest.counts.get("training") or {}))
    missing = training.get("without_vector_now", 0) - training.get("without_vector", 0)
    documents, then = cast(int, manifest.counts.get("documents", 0)), training.get("documents", 0)
    if missing > DRIFT:
        return f"{missing:.1%} of the words are newer than the word vectors; learn them with: ncs update --retrain"
    if then and documents > GROWTH * then:
        return f"word vectors were learnt from {then:,} documents of {documents:,}; learn again: ncs update --retrain"
    return None
