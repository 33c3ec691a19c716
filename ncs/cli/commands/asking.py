"""`ncs query` and `similar`: functions are found, shown and opened."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ncs.cli import output as console
from ncs.cli.commands.options import (
    FOUND,
    NOTHING_FOUND,
    FormatOption,
    Hits,
    IndexOption,
    Json,
    Jsonl,
    KindOption,
    Language,
    NoCode,
    Open,
    PathGlob,
    Quiet,
    Repository,
    Store,
    Whole,
    complete_ranker,
    open_index,
)
from ncs.errors import BadInput
from ncs.search.rankers import RANKERS

if TYPE_CHECKING:
    from ncs.answer import Answer
    from ncs.index import Index
    from ncs.search.locate_source import SourceLocator


def query(
    text: Annotated[list[str], typer.Argument(help="What the function does, or its name.", show_default=False)],
    k: Hits = 10,
    ranker: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(RANKERS)}; some only where the build fitted them.",
            show_default="hybrid",
            autocompletion=complete_ranker,
        ),
    ] = None,
    language: Language = None,
    repository: Repository = None,
    path: PathGlob = None,
    kind: KindOption = None,
    functions_only: Annotated[
        bool, typer.Option("--functions-only", help="No classes, no top-level code, no settings.")
    ] = False,
    form: FormatOption = None,
    as_json: Json = False,
    jsonl: Jsonl = False,
    whole: Whole = False,
    no_code: NoCode = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each hit is one.")] = False,
    min_confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out hits less likely to be right than this, 0 to 1.")
    ] = None,
    unfold: Annotated[bool, typer.Option("--unfold", help="Near duplicates as hits of their own.")] = False,
    opened: Open = None,
    index: IndexOption = None,
    store: Store = None,
    quiet: Quiet = False,
) -> None:
    """Find functions by what they do. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs query "hide soft keyboard" -k 3; in an editor: ncs query View.setPadding --open 1
    """
    from ncs.answer import ask
    from ncs.search.rankers import DEFAULT_RANKER

    chosen = console.chosen(form, as_json=as_json, jsonl=jsonl)
    with open_index(index, store) as asked:
        answer = ask(
            asked, " ".join(text), max(k, opened or 0),
            ranker=ranker or DEFAULT_RANKER, language=language, repository=repository, path=path, kind=kind,
            functions_only=functions_only, code=_needed(chosen, no_code, opened), explain=explain,
            min_confidence=min_confidence, unfold=unfold,
        )  # fmt: skip
        _show(answer, asked, chosen, opened, code=not no_code, whole=whole, quiet=quiet)


def similar(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE", help="A line of a function.", show_default=False)],
    k: Hits = 10,
    language: Language = None,
    repository: Repository = None,
    path: PathGlob = None,
    kind: KindOption = None,
    form: FormatOption = None,
    as_json: Json = False,
    jsonl: Jsonl = False,
    whole: Whole = False,
    no_code: NoCode = False,
    opened: Open = None,
    index: IndexOption = None,
    quiet: Quiet = False,
) -> None:
    """Find functions like the one at a line of a file. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs similar src/Main.java:42
    """
    from ncs.answer import ask_similar

    chosen = console.chosen(form, as_json=as_json, jsonl=jsonl)
    with open_index(index) as asked:
        answer = ask_similar(
            asked, place, max(k, opened or 0),
            language=language, repository=repository, path=path, kind=kind, code=_needed(chosen, no_code, opened),
        )  # fmt: skip
        _show(answer, asked, chosen, opened, code=not no_code, whole=whole, quiet=quiet)


def _needed(form: console.Format, no_code: bool, opened: int | None) -> bool:
    """Whether the code itself is needed: to find a function in its file it is, even where it is not shown."""
    return not no_code or opened is not None or form == "vimgrep"


def _show(
    answer: Answer, index: Index, form: console.Format, opened: int | None, *, code: bool, whole: bool, quiet: bool
) -> None:
    """Hits in the form asked for, or one of them in an editor; notes on stderr; then the command ends."""
    from ncs.search.locate_source import SourceLocator

    locator = SourceLocator(index.snapshot)
    try:
        if opened is None:
            shown = console.show(answer, form, locator, code=code, whole=whole, quiet=quiet)
        else:
            shown = _open(answer, opened, locator)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (head, less) has left: it has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FOUND) from None
    if not quiet:
        console.say_notes(answer)
    raise typer.Exit(FOUND if shown else NOTHING_FOUND)


def _open(answer: Answer, number: int, locator: SourceLocator) -> int:
    """One hit in the user's editor; how many were opened."""
    from ncs.cli.editors import open_hit

    hits = answer["hits"]
    if not hits:
        return 0
    if number > len(hits):
        raise BadInput(f"there is no hit {number}; the last one is {len(hits)}")
    if note := open_hit(hits[number - 1], locator, os.environ):
        console.say(f"ncs: {note}")
    return 1
