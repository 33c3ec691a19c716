"""What commands share: exit statuses, options of one meaning, shell completion, the index to use."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ncs.cli.output import FORMATS

if TYPE_CHECKING:
    from ncs.index import Index

FOUND, NOTHING_FOUND, FAILED = 0, 1, 2


def _index_names(name: str) -> list[str]:
    """The names in one of the counts of the index, for completion; none without an index."""
    from ncs.errors import NcsError
    from ncs.storage.snapshot import read_description

    try:
        return sorted(read_description(index_folder(None)).counts.get(name) or {})
    except (NcsError, OSError):
        return []


def _with_prefix(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def complete_ranker(incomplete: str) -> list[str]:
    """Names of rankers."""
    from ncs.search.rankers import RANKERS

    return _with_prefix(RANKERS, incomplete)


def complete_format(incomplete: str) -> list[str]:
    """Names of formats."""
    return _with_prefix(FORMATS, incomplete)


def complete_language(incomplete: str) -> list[str]:
    """Languages of the index; without one, all that are supported."""
    from ncs.extract.languages import LANGUAGES

    return _with_prefix(_index_names("languages") or LANGUAGES, incomplete)


def complete_kind(incomplete: str) -> list[str]:
    """Kinds of documents of the index."""
    return _with_prefix(_index_names("kinds") or ["class", "function", "method"], incomplete)


def complete_repository(incomplete: str) -> list[str]:
    """Repositories of the index."""
    return _with_prefix(_index_names("repositories"), incomplete)


IndexOption = Annotated[
    Path | None,
    typer.Option(
        "-i", "--index", help="Index folder; else $NCS_INDEX, else .ncs here or in a parent.", envvar="NCS_INDEX"
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no summary.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Jsonl = Annotated[bool, typer.Option("--jsonl", help="Print one JSON object per hit.")]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"{', '.join(FORMATS)}; vimgrep is path:line:column:text for editors.",
        show_default="table on a terminal, else plain",
        autocompletion=complete_format,
    ),
]
Hits = Annotated[int, typer.Option("-k", min=1, help="How many hits.")]
AllLines = Annotated[bool, typer.Option("-A", "--all", help="All lines of each hit, not only those that matter.")]
NoCode = Annotated[bool, typer.Option("--no-code", help="Names and places only.")]
Open = Annotated[
    int | None, typer.Option("--open", min=1, metavar="N", help="Open hit N in $VISUAL or $EDITOR, at its line.")
]
Language = Annotated[str | None, typer.Option(help="Only this language.", autocompletion=complete_language)]
Repository = Annotated[
    str | None, typer.Option(help="Only repositories that match this glob.", autocompletion=complete_repository)
]
PathGlob = Annotated[str | None, typer.Option(help="Only paths that match this glob.")]
Kind = Annotated[
    str | None,
    typer.Option("--kind", help="Only this kind: function, method, class ... (ncs info)", autocompletion=complete_kind),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes that extract.", show_default="one per core")]
TokenFile = Annotated[Path | None, typer.Option(help="File with the token that requests need; else $NCS_TOKEN.")]
Store = Annotated[
    str | None,
    typer.Option(
        help="A Milvus that holds the index, too: milvus://HOST:19530/COLLECTION, or a file, ./NAME.db.",
        envvar="NCS_STORE",
        metavar="ADDRESS",
    ),
]


def without_none(**options: Any) -> dict[str, Any]:
    """Only what the user set: defaults are written once, in the engine."""
    return {name: value for name, value in options.items() if value is not None}


def index_folder(index: Path | None) -> Path:
    """The index to use: the one named, else $NCS_INDEX, else the nearest; raises IndexNotFound."""
    from ncs.storage.snapshot import find_index

    folder = index or (Path(os.environ["NCS_INDEX"]) if os.environ.get("NCS_INDEX") else None)
    return folder or find_index(Path.cwd())


def open_index(index: Path | None, store: str | None = None) -> Index:
    """It, open; with a store, candidates come from there. Raises what Index.load and MilvusIndex.open raise."""
    if store:
        from ncs.scale.milvus.index import open_index as open_milvus

        return open_milvus(index_folder(index), store)
    from ncs.index import Index

    return Index.load(index_folder(index))
