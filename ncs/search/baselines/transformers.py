"""The ranker `transformers`: any sentence-transformers model, such as E5, BGE, GTE, Contriever or UniXcoder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput, needing, unknown
from ncs.search.baselines.dense import DenseRanker

if TYPE_CHECKING:
    from ncs.search.baselines.dense import Kind
    from ncs.types import Matrix

POOLINGS = ("mean", "cls", "max", "lasttoken")


@dataclass(frozen=True, slots=True)
class Family:
    """Prefixes and pooling of a family of models; None: as in the model's files, else none and the mean."""

    query_prefix: str | None = None
    document_prefix: str | None = None
    pooling: str | None = None


FAMILIES: Mapping[str, Family] = {
    "e5-mistral": Family(
        "Instruct: Given a question about programming, retrieve functions that answer it\nQuery: ", "", "lasttoken"
    ),
    "e5": Family("query: ", "passage: ", "mean"),
    "bge": Family("Represent this sentence for searching relevant passages: ", "", "cls"),
    "gte": Family("", ""),
    "contriever": Family("", "", "mean"),
    "unixcoder": Family("", "", "mean"),
}
"""The first whose name is a part of the model's name counts: `intfloat/e5-base-v2` -> e5."""


def family_of(model: str) -> Family:
    """The family of a model by the last part of its name or path.

    >>> family_of("intfloat/multilingual-e5-small").document_prefix, family_of("my/code-model")
    ('passage: ', Family(query_prefix=None, document_prefix=None, pooling=None))
    """
    last = Path(model).name.lower()
    families = (family for name, family in FAMILIES.items() if re.search(rf"(^|[-_.]){name}($|[-_.])", last))
    return next(families, Family())


def transformers_ranker(
    name: str = "transformers",
    *,
    model: str | None = None,
    revision: str | None = None,
    query_prefix: str | None = None,
    document_prefix: str | None = None,
    pooling: str | None = None,
    max_tokens: int = 512,
    batch: int = 32,
    dtype: str | None = None,
    device: str | None = None,
    download: bool = False,
) -> DenseRanker:
    """A ranker by a model's folder or name, downloaded only with download=True.

    Prefixes and pooling: by default of the model's family. dtype: of the model; vectors are float32. device: `cuda`,
    `cpu`; by default a GPU if there is one.
    """
    if pooling not in (None, *POOLINGS):
        raise unknown("pooling", pooling, POOLINGS)
    family = family_of(str(model or ""))  # a name of digits alone is read as a number
    config = {
        "model": model,
        "revision": revision,
        "query_prefix": family.query_prefix if query_prefix is None else query_prefix,
        "document_prefix": family.document_prefix if document_prefix is None else document_prefix,
        "pooling": pooling or family.pooling,
        "max_tokens": max_tokens,
        "batch": batch,
        "dtype": dtype,
        "device": device,
        "download": download,
    }
    return DenseRanker(name, config, SentenceModel, needs="model")


class SentenceModel:
    """An open sentence-transformers model; texts are truncated to `max_tokens`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises MissingExtra without the library, BadInput for a model that is missing or cannot be read."""
        self._config = config
        self._model = _open(config)

    def embed(self, texts: Sequence[str], kind: Kind) -> Matrix:
        """Unit vectors [n, d]."""
        prefix = self._config[f"{kind}_prefix"]
        # without a prefix of the family, the model's own prefix, if any
        encode = getattr(self._model, f"encode_{kind}") if prefix is None else self._model.encode
        vectors = encode(
            list(texts),
            prompt=prefix,
            batch_size=self._config["batch"],
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, np.float32)


def _open(config: Mapping[str, Any]) -> Any:
    with needing("the ranker transformers", "transformers"):
        from huggingface_hub import snapshot_download
        from sentence_transformers import SentenceTransformer
    name, revision = str(config["model"]), config["revision"]
    cached = not (config["download"] or Path(name).is_dir())
    try:
        model = SentenceTransformer(  # given a folder, it never uses the network
            snapshot_download(name, revision=revision, local_files_only=True) if cached else name,
            revision=revision,
            device=config["device"],
            local_files_only=not config["download"],
            trust_remote_code=False,
            model_kwargs={"dtype": config["dtype"]} if config["dtype"] else None,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"cannot open the model {name} ({'it is not on this machine' if cached else line});"
            " name its folder, or let it be downloaded with download=true"
        ) from error
    limit, max_tokens = model.max_seq_length, int(config["max_tokens"])
    model.max_seq_length = min(limit, max_tokens) if limit else max_tokens
    if config["pooling"]:
        _pool(model, config["pooling"])
    return model


def _pool(model: Any, pooling: str) -> None:
    """Override the pooling of the model's files."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    for at, module in enumerate(model):
        if isinstance(module, Pooling):
            model[at] = Pooling(model[0].get_embedding_dimension(), pooling_mode=pooling)
