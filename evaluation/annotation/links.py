"""Where a function comes from: its page on the web where that is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast
from urllib.parse import quote, urlsplit

from corpora.codesearchnet.repositories import Repository, commit_of, find_repositories, url_of
from ncs.errors import SourceError
from ncs.index import Index
from ncs.types import Document

_FLAT = re.compile(r"([A-Za-z0-9][\w-]*)\+([\w.-]+)", re.ASCII)


def link(document: Document, repositories: Mapping[str, tuple[Repository, str]]) -> str | None:
    """The id where it is a web address (CodeSearchNet's are), else one made of the repository's; None for neither.

    >>> from ncs.types import Document
    >>> link(Document("javascript:alert(1)", "r", "p", 1, 2, "java", "method", "f", "f"), {})
    >>> link(Document("https://github.com/o/n/blob/c0/p#L1-L2", "r", "p", 1, 2, "java", "method", "f", "f"), {})
    'https://github.com/o/n/blob/c0/p#L1-L2'
    """
    if _is_web(document.id):
        return document.id
    if document.repository not in repositories:
        return None
    repository, commit = repositories[document.repository]
    path = quote(document.path, errors="surrogateescape")
    url = url_of(repository, commit, path, document.start_line, document.end_line)
    return url if _is_web(url) else None


def _is_web(text: str) -> bool:
    try:
        found = urlsplit(text)
        return found.scheme in ("http", "https") and bool(found.hostname) and text.isprintable() and " " not in text
    except ValueError:
        return False


def repositories_of(index: Index, names: Iterable[str]) -> dict[str, tuple[Repository, str]]:
    """name -> repository and its commit now, of those whose place on this machine and address on the web are known.

    An index names a repository by its path below the root, or by the root's own name; a name that fits several
    places is nobody's. A folder that is called owner+name is that repository of GitHub, as for corpora.codesearchnet.
    """
    sources = index.description.counts.get("sources")
    roots = [Path(root) for root in cast("list[str]", sources["roots"])] if isinstance(sources, dict) else []
    found = {}
    for name in sorted(set(names)):
        places = [root for root in roots if root.name.removesuffix(".git") == name]
        places += [place for root in roots for end in ("", ".git") if (place := root / f"{name}{end}").is_dir()]
        if len(places) == 1 and (repository := _at(places[0])) is not None:
            found[name] = repository, commit_of(repository)
        elif flat := next(filter(None, map(_FLAT.fullmatch, name.split("/"))), None):
            found[name] = Repository(name, Path(name), f"https://github.com/{flat[1]}/{flat[2]}"), ""
    return found


def _at(place: Path) -> Repository | None:
    try:
        found = [each for each in find_repositories([place]) if each.path == place.resolve() and each.address]
    except (SourceError, OSError):
        return None
    return found[0] if len(found) == 1 else None
