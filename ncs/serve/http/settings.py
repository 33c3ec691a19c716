"""What a server is told: its indexes, where it listens, its bounds."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ncs.errors import BadInput

TOKEN = "NCS_TOKEN"  # noqa: S105 (the name of a variable)
LEAST_TOKEN = 16
LOOPBACK = ("127.0.0.1", "::1", "localhost")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

MOST_K = 100
MOST_QUERY = 2_000
"""Characters of a question."""
MOST_BODY = 256 << 10
"""Bytes of a request's body."""
MOST_TARGET = 16 << 10
"""Bytes of a path with its query string."""


@dataclass(frozen=True, slots=True)
class Settings:
    """folders: name -> index folder, the first one answers where none is named; feedback: name -> file of lines.

    hosts: names other than its addresses that the server may be called by. workers: processes that search, 0 for a
    thread of the serving one; waiting: requests that may wait for them; seconds: what a request may take, its wait
    included.
    """

    folders: Mapping[str, Path]
    feedback: Mapping[str, Path] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8765
    hosts: tuple[str, ...] = ()
    workers: int = 0
    waiting: int = 256
    seconds: float = 10.0
    poll: float = 1.0
    """Seconds between two looks at the index folders."""
    quiet: bool = False
    store: str = ""
    """A Milvus that holds the index, the only one, and finds the candidates."""

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK


def default_workers() -> int:
    """One a core, four at most: each takes some 40 MB beside the index, which they share."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, 4)


def named(places: Sequence[str]) -> dict[str, Path]:
    """name -> path of `PATH` and `name=PATH` as people type them; a path without a name is called by its folder's.

    Raises BadInput for a name twice.

    >>> named(["web=/srv/a", "/srv/tools", "/home/me/project/.ncs"])
    {'web': PosixPath('/srv/a'), 'tools': PosixPath('/srv/tools'), 'project': PosixPath('/home/me/project/.ncs')}
    """
    found: dict[str, Path] = {}
    for place in places:
        name, equals, path = place.partition("=")
        if not (equals and NAME.fullmatch(name)) or Path(place).exists():
            name, path = _called(Path(place)), place
        if name in found:
            raise BadInput(f"two indexes are called {name!r}; name them: -i one={found[name]} -i other={path}")
        found[name] = Path(path)
    return found


def _called(folder: Path) -> str:
    whole = folder.absolute()
    name = whole.parent.name if whole.name.startswith(".") else whole.name
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:64]
    return clean or "index"


def feedback_files(places: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """index name -> file, of `FILE` (the first index's) and `name=FILE`; BadInput for an index that is not served."""
    found = {}
    for place in places:
        name, equals, path = place.partition("=")
        if not equals or name not in names:
            if equals and NAME.fullmatch(name) and not Path(place).exists():
                raise BadInput(f"no index called {name!r} is served; there are: {', '.join(names)}")
            name, path = names[0], place
        found[name] = Path(path)
    return found


def read_token(path: Path | None, environment: Mapping[str, str]) -> str | None:
    """The token of a file, else of the environment; None for none. Raises BadInput for a short one."""
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"cannot read {path} ({error}); name a file that holds the token") from None
    elif (text := environment.get(TOKEN, "")) == "":
        return None
    token = text.strip()
    if len(token) < LEAST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        raise BadInput(
            f"a token is {LEAST_TOKEN} or more ASCII characters without spaces; make one: openssl rand -hex 32"
        )
    return token
