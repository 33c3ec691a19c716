"""Definitions that commands share: exit statuses, options of one meaning with their completion, the index to use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ncs.cli.hits import FORMATS
from ncs.errors import BadInput, NcsError
from ncs.search.rankers import RANKERS

if TYPE_CHECKING:
    from ncs.index import Index

FOUND, NOTHING_FOUND = 0, 1


def _completion(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _names_in_index(counts: str) -> list[str]:
    """The names in one of the counts of the index; none without an index."""
    from ncs.storage.snapshot import read_description

    try:
        return sorted(read_description(index_folder(None)).counts.get(counts) or {})
    except (NcsError, OSError):
        return []


def _languages() -> Iterable[str]:
    """Languages of the index; without one, all that are supported."""
    from ncs.extract.languages import LANGUAGES

    return _names_in_index("languages") or LANGUAGES


complete_ranker = _completion(lambda: RANKERS)
complete_kind = _completion(lambda: _names_in_index("kinds") or ["class", "function", "method"])
complete_repository = _completion(lambda: _names_in_index("repositories"))

IndexOption = Annotated[
    Path | None,
    Option("-i", "--index", help="Index folder; else $NCS_INDEX, else .ncs here or in a parent.", envvar="NCS_INDEX"),
]
Quiet = Annotated[bool, Option("-q", "--quiet", help="No progress, no summary.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object.")]
Jsonl = Annotated[bool, Option("--jsonl", help="Print one JSON object per hit.")]
FormatOption = Annotated[
    str | None,
    Option(
        "--format",
        help=f"{', '.join(FORMATS)}; vimgrep is path:line:column:text for editors.",
        show_default="table on a terminal, else plain",
        autocompletion=_completion(lambda: FORMATS),
    ),
]
Hits = Annotated[int, Option("-n", "--limit", "-k", min=1, help="How many hits.")]
AllLines = Annotated[bool, Option("-A", "--all", help="All lines of each hit, not only those that matter.")]
NoCode = Annotated[bool, Option("--no-code", help="Names and places only.")]
Open = Annotated[
    int | None, Option("--open", min=1, metavar="N", help="Open hit N in $VISUAL or $EDITOR, at its line.")
]
Language = Annotated[
    str | None,
    Option(
        "-t", "--language", "--type", help="Only this language: python, py.", autocompletion=_completion(_languages)
    ),
]
Repository = Annotated[
    str | None, Option(help="Only repositories that match this glob.", autocompletion=complete_repository)
]
PathGlob = Annotated[str | None, Option(help="Only paths that match this glob.")]
Kind = Annotated[
    str | None,
    Option("--kind", help="Only this kind: function, method, class ... (ncs info)", autocompletion=complete_kind),
]
Content = Annotated[
    str | None,
    Option(
        help="code, docs (Markdown, reStructuredText, AsciiDoc by section), or all.",
        show_default="all, documents behind code",
        autocompletion=_completion(lambda: ("all", "code", "docs")),
    ),
]
Workers = Annotated[int | None, Option(min=1, help="Processes that extract.", show_default="one per core")]
TokenFile = Annotated[Path | None, Option(help="File with the token that requests need; else $NCS_TOKEN.")]
Store = Annotated[
    str | None,
    Option(
        help="A Milvus that holds the index, too: milvus://HOST:19530/COLLECTION, or a file, ./NAME.db.",
        envvar="NCS_STORE",
        metavar="ADDRESS",
    ),
]


def without_none(**options: Any) -> dict[str, Any]:
    """The options that the user set; the engine has the defaults."""
    return {name: value for name, value in options.items() if value is not None}


def language_in(index: Index, name: str | None) -> str | None:
    """The language of an index that is called so; raises BadInput, naming those that it has."""
    known = index.description.counts.get("languages") or {}
    if name is None or name in known:
        return name
    from ncs.extract.text_files import language_called

    language = language_called(name)
    if language not in known:
        raise BadInput(f"no language {name!r} here (have: {', '.join(sorted(known))})")
    return language


def index_folder(index: Path | None) -> Path:
    """The index to use: the one named, else $NCS_INDEX, else the nearest; raises IndexNotFound."""
    from ncs.storage.snapshot import find_index

    folder = index or os.environ.get("NCS_INDEX")
    return Path(folder) if folder else find_index(Path.cwd())


def open_index(index: Path | None, store: str | None = None) -> Index:
    """It, open; with a store, candidates come from there. Raises what Index.load and MilvusIndex.open raise."""
    from ncs.serve.live_index import open_index as open_folder

    return open_folder(index_folder(index), store or "")
