"""What `ncs mcp` is told, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TOKEN_BYTES = 4
"""Bytes of UTF-8 that count as one token. An estimate: which tokenizer the agent's model has is not known here."""
LEAST_TOKENS, DEFAULT_TOKENS, MOST_TOKENS = 500, 2_000, 20_000
MOST_HITS = 50
"""Hits a page."""
MOST_CURSOR = 1_000
MOST_QUESTION = 2_000
"""Characters of a question."""
MOST_CODE = 200_000
"""Characters of code that is sent to be compared."""
MOST_PROJECTS = 16
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Settings:
    """roots: folders that are served, () for those that the client names, else the working directory.

    indexes: folders of indexes that stand elsewhere than in the `.ncs` of a root. wait: seconds that an answer waits
    for an index that is being built or updated. look: seconds that a look for changed files may take, and that must
    lie between two of them.
    """

    roots: tuple[Path, ...] = ()
    indexes: tuple[Path, ...] = ()
    wait: float = 5.0
    look: float = 2.0
    client_roots: bool = True
    """Whether the client may name folders; not over HTTP, where any process of the machine may be the client."""
    store: str = ""
    """A Milvus that holds the index, the only one, and finds the candidates; who puts it there keeps it up to date."""

    @property
    def fixed(self) -> bool:
        """Whether the command line names what is served."""
        return bool(self.roots or self.indexes)
