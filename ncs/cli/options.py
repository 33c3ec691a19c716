"""Shared by commands: exit statuses, options with their completion, the index to use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from typer import Argument, Exit, Option

from ncs.cli.hits import COLORS, FORMATS
from ncs.console import say
from ncs.errors import BadInput, NcsError
from ncs.search.rankers import RANKERS
from ncs.storage.filters import CONTENT

if TYPE_CHECKING:
    from ncs.answer import Answer
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
    Option(
        "-i", "--index", metavar="DIR", envvar="NCS_INDEX",
        help="Index folder; else $NCS_INDEX, else .ncs here or in a parent.",
    ),
]  # fmt: skip
Places = Annotated[
    list[str] | None, Argument(metavar="[PATH]...", help="Files or folders to search in.", show_default=False)
]
Quiet = Annotated[bool, Option("-q", "--quiet", help="No progress, no summary.")]
NoUpdate = Annotated[bool, Option("--no-update", help="Do not look for changed files first.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object.")]
Jsonl = Annotated[bool, Option("--jsonl", help="Print one JSON object per hit.")]
FormatOption = Annotated[
    str | None,
    Option(
        "--format", metavar="FORMAT", autocompletion=_completion(lambda: FORMATS),
        help=f"{', '.join(FORMATS)}; vimgrep is path:line:column:text for editors.",
        show_default="table on a terminal, else plain",
    ),
]  # fmt: skip
Hits = Annotated[int, Option("-n", "--limit", "-k", min=1, metavar="N", help="How many hits.")]
AllLines = Annotated[bool, Option("-a", "--all", help="All lines of each hit, not only those that matter.")]
After = Annotated[int | None, Option("-A", "--after-context", min=0, metavar="N", help="N lines after each.")]
Before = Annotated[int | None, Option("-B", "--before-context", min=0, metavar="N", help="N lines before each.")]
Context = Annotated[int | None, Option("-C", "--context", min=0, metavar="N", help="N lines before and after each.")]
Paths = Annotated[bool, Option("-l", "--files-with-matches", help="Only the paths of the files of the hits.")]
Color = Annotated[str, Option(metavar="WHEN", help=", ".join(COLORS), autocompletion=_completion(lambda: COLORS))]
NoCode = Annotated[bool, Option("--no-code", help="Names and places only.")]
Open = Annotated[
    int | None, Option("--open", min=1, metavar="N", help="Open hit N in $VISUAL or $EDITOR, at its line.")
]
Languages = Annotated[
    list[str] | None,
    Option(
        "-t", "--type", "--language", metavar="TYPE", autocompletion=_completion(_languages), show_default=False,
        help="Only this language, by name or alias: python, py. Repeatable: any of them.",
    ),
]  # fmt: skip
LanguagesNot = Annotated[
    list[str] | None,
    Option(
        "-T", "--type-not", metavar="TYPE", autocompletion=_completion(_languages),
        help="Not this language. Repeatable.",
    ),
]  # fmt: skip
Repository = Annotated[
    str | None,
    Option(metavar="GLOB", help="Only repositories that match this glob.", autocompletion=complete_repository),
]
PathGlob = Annotated[
    str | None, Option(metavar="GLOB", help="Only paths that match this glob, in which * crosses slashes.")
]
Globs = Annotated[
    list[str] | None,
    Option("-g", "--glob", metavar="GLOB", help="Such files: '*.py'; others: '!tests/'. Repeatable, the last wins."),
]
NoTests = Annotated[bool, Option("--no-tests", help="No tests.")]
Regexps = Annotated[
    list[str] | None,
    Option("-e", "--regexp", metavar="REGEX", help="Only code or names that match this, or one of several."),
]
Kind = Annotated[
    str | None,
    Option(
        "--kind", metavar="KIND", autocompletion=complete_kind,
        help="Only this kind: function, method, class ... (ncs info)",
    ),
]  # fmt: skip
Content = Annotated[
    str | None,
    Option(
        metavar="WHAT", show_default="all, documents behind code", autocompletion=_completion(lambda: CONTENT),
        help="code, docs (Markdown, reStructuredText, AsciiDoc by section), or all.",
    ),
]  # fmt: skip
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


def end(answer: Answer, found: int, *, quiet: bool = False) -> NoReturn:
    """Print the notes on stderr and exit; found: number of hits."""
    for note in answer["notes"] if not quiet else ():
        say(f"ncs: {note}")
    raise Exit(FOUND if found else NOTHING_FOUND)


def either(regexps: Sequence[str] | None) -> str | None:
    """One regular expression for several.

    >>> either(["a|b", "c"]), either(["a|b"]), either(None)
    ('(?:a|b)|(?:c)', 'a|b', None)
    """
    if not regexps or len(regexps) == 1:
        return regexps[0] if regexps else None
    return "|".join(f"(?:{each})" for each in regexps)


def context_lines(context: int | None, before: int | None, after: int | None) -> tuple[int, int] | None:
    """(before, after) of -C, -B and -A; None without them."""
    if (context, before, after) == (None, None, None):
        return None
    return (context or 0) if before is None else before, (context or 0) if after is None else after


def question_and_places(words: Sequence[str], *, regexp: bool) -> tuple[Sequence[str], Sequence[str]]:
    """The words of a question, and the existing paths at its end; without a regexp the first argument is never a path.
    Raises BadInput for an argument that looks like a missing path."""
    at = len(words)
    while at > (not regexp) and os.path.exists(words[at - 1]):  # noqa: PTH110  (no error for what can be no path)
        at -= 1
    for word in words[1:at]:
        if not word or ("/" in word and not os.path.exists(word)):  # noqa: PTH110
            raise BadInput(f"no such file or folder: {word or repr(word)}; quote a question as one argument")
    return words[:at], words[at:]


def index_folder(index: Path | None) -> Path:
    """The index to use: the one named, else $NCS_INDEX, else the nearest; raises IndexNotFound."""
    from ncs.storage.snapshot import find_index

    folder = index or os.environ.get("NCS_INDEX")
    return Path(folder) if folder else find_index(Path.cwd())


def open_index(index: Path | None, store: str | None = None) -> Index:
    """The index, open; with a store, candidates come from there. Raises what Index.load and MilvusIndex.open raise."""
    from ncs.serve.live_index import open_index as open_folder

    return open_folder(index_folder(index), store or "")
