"""Settings of `ncs serve`: its indexes, its address, its limits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ncs.errors import BadInput, unknown

TOKEN = "NCS_TOKEN"  # noqa: S105 (the name of a variable)
MIN_TOKEN = 16
LOOPBACK = ("127.0.0.1", "::1", "localhost")
INDEX_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

MAX_K = 100
MAX_SOURCE = 32 << 10
"""Bytes of code in a request."""
MAX_BODY = 256 << 10
"""Bytes of a request's body."""
MAX_URL = 16 << 10
"""Bytes of a path with its query string."""


@dataclass(frozen=True, slots=True)
class Settings:
    """folders: name -> index folder, the first is the default; feedback: name -> file of votes.

    hosts: further names of the server. workers: search processes; queue: requests that may wait for them; seconds: the
    time limit of a request, its wait included. store: a Milvus that finds candidates.
    """

    folders: Mapping[str, Path]
    feedback: Mapping[str, Path] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8765
    hosts: tuple[str, ...] = ()
    workers: int = 1
    queue: int = 256
    seconds: float = 10.0
    quiet: bool = False
    store: str = ""

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOOPBACK


def default_workers() -> int:
    """One per core, at most four: each takes some 40 MB beside the index, which they share."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, 4)


def named_indexes(values: Sequence[str]) -> dict[str, Path]:
    """name -> folder, of `FOLDER` and `name=FOLDER`; a folder without a name is called like itself or its parent.

    Raises BadInput for a name given twice.

    >>> named_indexes(["web=/srv/a", "/srv/tools", "/home/me/project/.ncs"])
    {'web': PosixPath('/srv/a'), 'tools': PosixPath('/srv/tools'), 'project': PosixPath('/home/me/project/.ncs')}
    """
    folders: dict[str, Path] = {}
    for value in values:
        name, folder = _split(value)
        name = name or _default_name(folder)
        if name in folders:
            raise BadInput(f"two indexes are named {name!r}; name them: -i one={folders[name]} -i other={folder}")
        folders[name] = folder
    return folders


def _split(value: str) -> tuple[str, Path]:
    """Name and path of `name=PATH`; no name where the whole is a path."""
    name, equals, path = value.partition("=")
    is_named = equals and INDEX_NAME.fullmatch(name) and not Path(value).exists()
    return (name, Path(path)) if is_named else ("", Path(value))


def _default_name(folder: Path) -> str:
    folder = folder.absolute()
    name = folder.parent.name if folder.name.startswith(".") else folder.name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:64] or "index"


def feedback_files(values: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """Index name -> file, of `FILE` (the first index's) and `name=FILE`; BadInput for an index that is not served."""
    files = {}
    for value in values:
        name, file = _split(value)
        if name and name not in names:
            raise unknown("index", name, names)
        files[name or names[0]] = file
    return files


def read_token(path: Path | None, environment: Mapping[str, str]) -> str | None:
    """The token in a file, else in the environment, else None. Raises BadInput for a short one."""
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"cannot read {path} ({error}); name a file that holds the token") from None
    elif (text := environment.get(TOKEN, "")) == "":
        return None
    token = text.strip()
    if len(token) < MIN_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        raise BadInput(
            f"a token has at least {MIN_TOKEN} ASCII characters and no spaces; make one: openssl rand -hex 32"
        )
    return token
