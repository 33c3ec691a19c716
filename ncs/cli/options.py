"""Definitions that commands share: exit statuses, options of one meaning with their completion, the index to use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ncs.cli.hits import COLORS, FORMATS
from ncs.errors import BadInput, NcsError
from ncs.search.rankers import RANKERS
from ncs.storage.filters import CONTENT

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
NoUpdate = Annotated[bool, Option("--no-update", help="Do not look for changed files first.")]
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
AllLines = Annotated[bool, Option("-a", "--all", help="All lines of each hit, not only those that matter.")]
After = Annotated[int | None, Option("-A", "--after-context", min=0, metavar="N", help="N lines after each.")]
Before = Annotated[int | None, Option("-B", "--before-context", min=0, metavar="N", help="N lines before each.")]
Context = Annotated[int | None, Option("-C", "--context", min=0, metavar="N", help="N lines before and after each.")]
Paths = Annotated[bool, Option("-l", "--files-with-matches", help="Only the paths of the files of the hits.")]
Color = Annotated[str, Option(help=", ".join(COLORS), autocompletion=_completion(lambda: COLORS))]
NoCode = Annotated[bool, Option("--no-code", help="Names and places only.")]
Open = Annotated[
    int | None, Option("--open", min=1, metavar="N", help="Open hit N in $VISUAL or $EDITOR, at its line.")
]
Languages = Annotated[
    list[str] | None,
    Option(
        "-t",
        "--type",
        "--language",
        help="Only this language: python, py. Repeatable: any of them.",
        autocompletion=_completion(_languages),
        show_default=False,
    ),
]
LanguagesNot = Annotated[
    list[str] | None,
    Option("-T", "--type-not", help="Not this language. Repeatable.", autocompletion=_completion(_languages)),
]
Repository = Annotated[
    str | None, Option(help="Only repositories that match this glob.", autocompletion=complete_repository)
]
PathGlob = Annotated[str | None, Option(help="Only paths that match this glob, in which * crosses slashes.")]
Globs = Annotated[
    list[str] | None,
    Option("-g", "--glob", metavar="GLOB", help="Such files: '*.py'; others: '!tests/'. Repeatable, the last wins."),
]
NoTests = Annotated[bool, Option("--no-tests", help="No tests.")]
Regexp = Annotated[str | None, Option("-e", "--regexp", help="Only code or names that match this regular expression.")]
Kind = Annotated[
    str | None,
    Option("--kind", help="Only this kind: function, method, class ... (ncs info)", autocompletion=complete_kind),
]
Content = Annotated[
    str | None,
    Option(
        help="code, docs (Markdown, reStructuredText, AsciiDoc by section), or all.",
        show_default="all, documents behind code",
        autocompletion=_completion(lambda: CONTENT),
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


def context_lines(context: int | None, before: int | None, after: int | None) -> tuple[int, int] | None:
    """Lines before and after the lines that matter, of -C, -B and -A; None without them."""
    if (context, before, after) == (None, None, None):
        return None
    return (context or 0) if before is None else before, (context or 0) if after is None else after


def question_and_places(words: Sequence[str], *, regexp: bool) -> tuple[Sequence[str], Sequence[str]]:
    """The words of a question, and the files and folders that its last arguments name; the first one is of the
    question, unless there is a regexp. Raises BadInput for an argument that looks like a path and is none.
    """
    at = len(words)
    while at > (not regexp) and os.path.exists(words[at - 1]):  # noqa: PTH110  (no error for what can be no path)
        at -= 1
    for word in words[1:at]:
        if "/" in word and not os.path.exists(word):  # noqa: PTH110
            raise BadInput(f"no such file or folder: {word}; quote a question as one argument")
    return words[:at], words[at:]


def index_folder(index: Path | None) -> Path:
    """The index to use: the one named, else $NCS_INDEX, else the nearest; raises IndexNotFound."""
    from ncs.storage.snapshot import find_index

    folder = index or os.environ.get("NCS_INDEX")
    return Path(folder) if folder else find_index(Path.cwd())


def open_index(index: Path | None, store: str | None = None) -> Index:
    """It, open; with a store, candidates come from there. Raises what Index.load and MilvusIndex.open raise."""
    from ncs.serve.live_index import open_index as open_folder

    return open_folder(index_folder(index), store or "")
