"""The ranker `endpoint`: embeddings from a server with OpenAI's embeddings API; the code of every function is sent to
it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from ncs.errors import BadInput, NcsError, needing
from ncs.search.baselines.dense import DenseRanker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.baselines.dense import Kind
    from ncs.types import Matrix

KEY_VARIABLE = "NCS_ENDPOINT_KEY"
RETRIES, TIMEOUT = 5, 60.0  # seconds; retries wait as the library or the server says


def endpoint_ranker(
    name: str = "endpoint",
    *,
    url: str | None = None,
    model: str = "default",
    query_prefix: str = "",
    document_prefix: str = "",
    max_characters: int = 2000,
    batch: int = 64,
    dimensions: int | None = None,
) -> DenseRanker:
    """A ranker by a server. url: without `/embeddings`, as `http://localhost:8080/v1`; its key: NCS_ENDPOINT_KEY.

    Texts are cut at max_characters, about 512 tokens of code. dimensions: of the vectors, if the model can shorten
    them. Raises BadInput for an invalid address and one with a password.
    """
    if url is not None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"{url!r} is no address; write it as http://localhost:8080/v1")
        if parts.username or parts.password:
            raise BadInput(f"the address has a password in it, which would be stored; put a key into ${KEY_VARIABLE}")
    config = {
        "url": url,
        "model": model,
        "query_prefix": query_prefix,
        "document_prefix": document_prefix,
        "max_characters": max_characters,
        "batch": batch,
        "dimensions": dimensions,
    }
    return DenseRanker(name, config, EndpointModel, needs="url")


class EndpointModel:
    """A client of one server."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises MissingExtra without the library."""
        with needing("the ranker endpoint", "endpoint"):
            from openai import Omit, OpenAI
        self._config = config
        self._dim: int | None = config["dimensions"]
        key = os.environ.get(KEY_VARIABLE, "")
        # the library's own OPENAI_* variables, meant for another server, are ignored
        self._client = OpenAI(base_url=config["url"], api_key=key or "none", max_retries=RETRIES, timeout=TIMEOUT)
        self._headers = {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
        if not key:
            self._headers["Authorization"] = Omit()

    def embed(self, texts: Sequence[str], kind: Kind) -> Matrix:
        """Vectors [n, d] from the server; raises NcsError for errors and invalid answers."""
        texts, size = [self._config[f"{kind}_prefix"] + text for text in texts], self._config["batch"]
        return np.concatenate([self._request(texts[start : start + size]) for start in range(0, len(texts), size)])

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _request(self, texts: Sequence[str]) -> Matrix:
        """One request."""
        import openai

        url, longest = self._config["url"], self._config["max_characters"]
        inputs = [text[:longest] if text.strip() else "-" for text in texts]  # servers reject empty texts
        extra = {"dimensions": self._config["dimensions"]} if self._config["dimensions"] else {}
        try:
            answer = self._client.embeddings.create(
                input=inputs, model=self._config["model"], encoding_format="float", extra_headers=self._headers, **extra
            )
            embeddings = sorted(answer.data, key=lambda each: each.index)
            vectors = [np.array(list(each.embedding), np.float32) for each in embeddings]
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise NcsError(f"{url} refused the key; put a valid one into ${KEY_VARIABLE}") from error
        except openai.APIStatusError as error:
            raise NcsError(f"{url} answered {error.status_code} ({_line(error)}); see the server's own log") from error
        except openai.APIConnectionError as error:
            raise NcsError(f"cannot reach {url} ({_line(error)}); start the server or correct the address") from error
        except (openai.APIError, ValueError, TypeError, AttributeError) as error:
            raise NcsError(f"{url} gave no embeddings ({_line(error)}); ask another server") from error
        return self._to_array(vectors, len(texts))

    def _to_array(self, vectors: Sequence[NDArray[np.float32]], n: int) -> Matrix:
        """The response [n, d]; raises NcsError for a wrong number or length of vectors."""
        url = self._config["url"]
        if len(vectors) != n:
            raise NcsError(f"{url} gave {len(vectors)} vectors for {n} texts; ask another server")
        lengths = {len(vector) for vector in vectors}
        self._dim = self._dim or max(lengths)
        if lengths != {self._dim}:
            raise NcsError(
                f"{url} gave vectors of {max(lengths - {self._dim})} numbers, not {self._dim}; ask one model"
            )
        return np.stack(vectors)


def _line(error: Exception) -> str:
    """The first line of an error, shortened."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
