"""`ncs query` and `ncs similar`: functions found, printed or opened."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ncs.cli import options
from ncs.cli.current import open_current
from ncs.cli.hits import choose_format, show
from ncs.cli.paths import with_files
from ncs.console import say
from ncs.errors import BadInput
from ncs.search.locate_source import SourceLocator
from ncs.search.question import MAX_QUERY
from ncs.search.rankers import DEFAULT_RANKER, RANKERS

if TYPE_CHECKING:
    from ncs.answer import Answer
    from ncs.index import Index
    from ncs.storage.snapshot import Snapshot


def query(
    text: Annotated[
        list[str], Argument(help="What it does, its name, a message or a stack trace; - for stdin.", show_default=False)
    ],
    k: options.Hits = 10,
    ranker: Annotated[
        str,
        Option(
            help=f"{', '.join(RANKERS)}; some only where the build fitted them.", autocompletion=options.complete_ranker
        ),
    ] = DEFAULT_RANKER,
    language: options.Language = None,
    repository: options.Repository = None,
    path: options.PathGlob = None,
    kind: options.Kind = None,
    functions_only: Annotated[
        bool, Option("--functions-only", help="No classes, no top-level code, no settings, no documents.")
    ] = False,
    content: options.Content = None,
    form: options.FormatOption = None,
    as_json: options.Json = False,
    jsonl: options.Jsonl = False,
    all_lines: options.AllLines = False,
    no_code: options.NoCode = False,
    explain: Annotated[bool, Option("--explain", help="Explain each hit.")] = False,
    min_confidence: Annotated[
        float | None, Option(min=0, max=1, help="Leave out hits less likely to be right, 0 to 1.")
    ] = None,
    unfold: Annotated[bool, Option("--unfold", help="Near duplicates as hits of their own.")] = False,
    open_hit: options.Open = None,
    index: options.IndexOption = None,
    no_update: Annotated[bool, Option("--no-update", help="Do not look for changed files first.")] = False,
    build: Annotated[bool, Option("--build", help="Build an index of this project where there is none.")] = False,
    store: options.Store = None,
    quiet: options.Quiet = False,
) -> None:
    """Find functions by what they do. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs query "hide soft keyboard" -n 3; pytest 2>&1 | ncs query -; ncs query View.setPadding --open 1
    """
    from ncs.answer import ask

    form = choose_format(form, as_json=as_json, jsonl=jsonl)
    with open_current(index, store, update=not no_update, build=build, quiet=quiet) as opened_index:
        answer = ask(
            opened_index, _read(text), max(k, open_hit or 0), ranker=ranker,
            language=options.language_in(opened_index, language), repository=repository, path=path, kind=kind,
            functions_only=functions_only, content=content, code=_needs_code(form, no_code, open_hit), explain=explain,
            min_confidence=min_confidence, unfold=unfold,
        )  # fmt: skip
        _show(answer, opened_index, form, open_hit, code=not no_code, all_lines=all_lines, quiet=quiet)


def similar(
    place: Annotated[str, Argument(metavar="FILE:LINE", help="A line of a function.", show_default=False)],
    k: options.Hits = 10,
    language: options.Language = None,
    repository: options.Repository = None,
    path: options.PathGlob = None,
    kind: options.Kind = None,
    form: options.FormatOption = None,
    as_json: options.Json = False,
    jsonl: options.Jsonl = False,
    all_lines: options.AllLines = False,
    no_code: options.NoCode = False,
    open_hit: options.Open = None,
    index: options.IndexOption = None,
    quiet: options.Quiet = False,
) -> None:
    """Find functions like the one at a line of a file. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs similar src/Main.java:42
    """
    from ncs.answer import ask_similar

    form = choose_format(form, as_json=as_json, jsonl=jsonl)
    with options.open_index(index) as opened_index:
        answer = ask_similar(
            opened_index, place, max(k, open_hit or 0), language=options.language_in(opened_index, language),
            repository=repository, path=path, kind=kind, code=_needs_code(form, no_code, open_hit),
        )  # fmt: skip
        _show(answer, opened_index, form, open_hit, code=not no_code, all_lines=all_lines, quiet=quiet)


def _read(text: list[str]) -> str:
    """The question; where it is "-" the last MAX_QUERY characters of stdin, as what went wrong stands at the end."""
    if text != ["-"]:
        return " ".join(text)
    return sys.stdin.buffer.read().decode("utf-8", "replace")[-MAX_QUERY:]


def _needs_code(form: str, no_code: bool, open_hit: int | None) -> bool:
    """Whether hits need their code: it finds the function in its file, even where it is not shown."""
    return not no_code or open_hit is not None or form == "vimgrep"


def _show(
    answer: Answer, index: Index, form: str, open_hit: int | None, *, code: bool, all_lines: bool, quiet: bool
) -> None:
    """Print the hits, or open one in an editor; then notes on stderr, and the exit status."""
    answer = with_files(answer, index.snapshot)
    if open_hit is None:
        count = show(answer, form, index.snapshot, code=code, all_lines=all_lines, quiet=quiet)
    else:
        count = _open(answer, open_hit, index.snapshot)
    for note in answer["notes"] if not quiet else ():
        say(f"ncs: {note}")
    raise typer.Exit(options.FOUND if count else options.NOTHING_FOUND)


def _open(answer: Answer, number: int, snapshot: Snapshot) -> int:
    """Open one hit; how many were opened."""
    from ncs.serve.editors import open_in_editor

    hits = answer["hits"]
    if not hits:
        return 0
    if number > len(hits):
        raise BadInput(f"no hit {number}; the last one is {len(hits)}")
    if note := open_in_editor(hits[number - 1], SourceLocator(snapshot), os.environ):
        say(f"ncs: {note}")
    return 1
