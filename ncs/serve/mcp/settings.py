"""Settings of `ncs mcp`, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TOKEN_BYTES = 4
"""Bytes of UTF-8 that count as one token: an estimate, as the tokenizer of the agent's model is not known here."""
MIN_TOKENS, DEFAULT_TOKENS, MAX_TOKENS = 500, 2_000, 20_000
MAX_HITS = 50
"""Hits per page."""
MAX_CURSOR = 1_000
MAX_QUERY = 2_000
"""Characters of a query."""
MAX_CODE = 200_000
"""Characters of code in a request."""
MAX_PROJECTS = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """roots: project folders; () for those that the client names, else the working directory.

    indexes: index folders elsewhere than in the `.ncs` of a root. wait: seconds that an answer waits for a build or
    update. check: seconds that a check for changed files may take, and that lie between two of them.
    """

    roots: tuple[Path, ...] = ()
    indexes: tuple[Path, ...] = ()
    wait: float = 5.0
    check: float = 2.0
    client_roots: bool = True
    """Whether the client may name folders; not over HTTP, where any process of the machine may be the client."""
    store: str = ""
    """A Milvus that finds the candidates of the only index; whoever fills it keeps it up to date."""
