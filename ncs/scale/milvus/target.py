"""Where in which Milvus an index is: an address as people type it, a connection, and errors in one line."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ncs.errors import BadInput, IndexNotFound, MissingExtra, NcsError, StoreLost

T = TypeVar("T")
TOKEN = "NCS_MILVUS_TOKEN"  # noqa: S105  (the name of a variable)
TIMEOUT = 60.0
"""Seconds that are waited, longer each time, before a call fails for good."""
_FILE_ALIAS = "ncs"
_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Target:
    """uri: what pymilvus connects to. alias: the name that readers know; collections behind it are named after it.

    dense: the kind of Milvus's index over the document vectors; FLAT compares with all, and so finds what we find.
    seconds: how long a question is tried again.
    """

    uri: str
    alias: str
    dense: str = "FLAT"
    shown: str = ""
    seconds: float = TIMEOUT

    @classmethod
    def of(cls, text: str) -> Target:
        """Of `milvus://host:19530/collection`, with `?dense=HNSW` at its end, or of a local file, NAME.db.

        >>> Target.of("milvus://db.example:19530/code?dense=HNSW").uri, Target.of("./code.db").alias
        ('http://db.example:19530', 'ncs')
        """
        if "://" not in text:
            if not text.endswith(".db"):
                raise BadInput(f"{text!r} is no store; write milvus://host:19530/collection, or a file: ./code.db")
            return cls(str(Path(text).resolve()), _FILE_ALIAS, shown=text)
        parts = urlsplit(text)
        alias = parts.path.strip("/")
        if parts.scheme not in ("milvus", "milvus+tls") or not parts.hostname or not alias:
            raise BadInput(f"{text!r} is no store; write milvus://host:19530/collection, or a file: ./code.db")
        if not alias.isidentifier() or not alias.isascii() or len(alias) > _NAME_LENGTH or parts.username:
            raise BadInput(
                f"a collection's name is of letters, digits and _, and a password goes into ${TOKEN}: {text}"
            )
        kind, _, dense = parts.query.partition("=")
        if parts.query and (kind != "dense" or not dense.isidentifier()):
            raise BadInput(f"{parts.query!r} is no setting of a store; there is: dense=HNSW")
        scheme = "https" if parts.scheme == "milvus+tls" else "http"
        return cls(f"{scheme}://{parts.hostname}:{parts.port or 19530}", alias, dense.upper() or "FLAT", text)


@contextmanager
def connected(target: Target, *, existing: bool = False) -> Iterator[Any]:
    """A client; its token is read from $NCS_MILVUS_TOKEN. existing: a file must be there already.

    Raises MissingExtra, IndexNotFound for such a file, and StoreLost where nobody answers.
    """
    try:
        from pymilvus import MilvusClient
    except ImportError:
        raise MissingExtra(
            "a Milvus store needs the extra `milvus`: pip install 'neural-code-search[milvus]'"
        ) from None
    if existing and "://" not in target.uri and not Path(target.uri).exists():
        raise IndexNotFound(f"there is no {target.shown}; {remedy(target)}")
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # every error is told once, by us
    with told(target):
        client = MilvusClient(target.uri, token=os.environ.get(TOKEN, ""), timeout=TIMEOUT)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def told(target: Target) -> Iterator[None]:
    """What pymilvus raises, as one line with the remedy."""
    from grpc import RpcError
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except RpcError as error:
        why = str(error.details()) if hasattr(error, "details") else type(error).__name__
        raise StoreLost(f"{target.shown} does not answer in {target.seconds:g} s ({why}); try again") from error
    except MilvusException as error:
        why = str(error.message).splitlines()[0]
        if "not exist" in why or "not found" in why:
            raise IndexNotFound(f"{target.shown} has no such collection ({why}); {remedy(target)}") from error
        if "connect" in why.lower() or "unavailable" in why.lower() or "not load" in why.lower() or error.code == 2:
            raise StoreLost(
                f"no Milvus answers at {target.shown}; is it running, and is ${TOKEN} right? ({why})"
            ) from error
        raise NcsError(f"{target.shown}: {why}; try again") from error


def patiently(call: Callable[[], T], seconds: float) -> T:
    """What a call gives, tried again where the store is lost: after .5 s, 1 s, 2 s ..., so many seconds together."""
    waited, wait = 0.0, 0.5
    while True:
        try:
            return call()
        except StoreLost:
            if waited + wait > seconds:
                raise
        time.sleep(wait)
        waited, wait = waited + wait, 2 * wait


def remedy(target: Target) -> str:
    """What puts an index there."""
    return f"put the index there with: ncs build --store {target.shown}"
