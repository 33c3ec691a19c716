"""`ncs query` and `ncs similar`: functions found, printed or opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ncs.cli import options
from ncs.cli.current import open_current
from ncs.cli.hits import choose_format, needs_code, show
from ncs.console import say
from ncs.errors import BadInput
from ncs.search.locate_source import locator_of, places_in
from ncs.search.question import MAX_QUERY
from ncs.search.rankers import DEFAULT_RANKER, RANKERS
from ncs.serve.terminal import place as place_of
from ncs.serve.terminal import with_files

if TYPE_CHECKING:
    from ncs.answer import Answer
    from ncs.index import Index
    from ncs.storage.snapshot import Snapshot
    from ncs.types import Document

MAX_NAMED = 5
"""Places that an error names."""


def query(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="QUESTION... [PATH]...",
            help="What it does, its name, a message or a stack trace, - for stdin; then files or folders to search in.",
            show_default=False,
        ),
    ] = None,
    k: options.Hits = 10,
    regexps: options.Regexps = None,
    globs: options.Globs = None,
    languages: options.Languages = None,
    languages_not: options.LanguagesNot = None,
    path: options.PathGlob = None,
    repository: options.Repository = None,
    kind: options.Kind = None,
    functions_only: Annotated[
        bool, Option("--functions-only", help="No classes, no top-level code, no settings, no documents.")
    ] = False,
    content: options.Content = None,
    no_tests: options.NoTests = False,
    min_confidence: Annotated[
        float | None, Option(min=0, max=1, metavar="P", help="Leave out hits less likely to be right, 0 to 1.")
    ] = None,
    files: Annotated[bool, Option("--files", help="Rank files, each with its best function.")] = False,
    unfold: Annotated[bool, Option("--unfold", help="Near duplicates as hits of their own.")] = False,
    paths: options.Paths = False,
    all_lines: options.AllLines = False,
    context: options.Context = None,
    before: options.Before = None,
    after: options.After = None,
    no_code: options.NoCode = False,
    explain: Annotated[bool, Option("--explain", help="Explain each hit.")] = False,
    open_hit: options.Open = None,
    form: options.FormatOption = None,
    as_json: options.Json = False,
    jsonl: options.Jsonl = False,
    color: options.Color = "auto",
    ranker: Annotated[
        str,
        Option(
            metavar="RANKER",
            help=f"{', '.join(RANKERS)}; some only where the build fitted them.",
            autocompletion=options.complete_ranker,
        ),
    ] = DEFAULT_RANKER,
    index: options.IndexOption = None,
    no_update: options.NoUpdate = False,
    build: Annotated[bool, Option("--build", help="Build an index of this project where there is none.")] = False,
    store: options.Store = None,
    quiet: options.Quiet = False,
) -> None:
    """Find functions by what they do. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs query "hide soft keyboard" src -n 3; pytest 2>&1 | ncs query -; ncs query View.setPadding --open 1
    """
    from ncs.answer import ask

    form = choose_format(form, as_json=as_json, jsonl=jsonl, paths=paths, color=color)
    text, places = options.question_and_places(words or [], regexp=regexps is not None)
    with open_current(index, store, update=not no_update, build=build, quiet=quiet) as opened_index:
        if len(text) > 1 and (bare := [place for place in places if place.isidentifier()]):
            opened_index.cautions.append(f"searched in {', '.join(bare)}; to search for the word, quote the question")
        answer = ask(
            opened_index, _read(text), max(k, open_hit or k), ranker=ranker, language=languages,
            language_not=languages_not, repository=repository, path=path, glob=globs, kind=kind,
            places=places_in(opened_index.snapshot, places), functions_only=functions_only, no_tests=no_tests,
            content=content, regexp=options.either(regexps),
            code=open_hit is not None or needs_code(form, code=not no_code), explain=explain,
            min_confidence=min_confidence, unfold=unfold, files=files or form == "paths",
        )  # fmt: skip
        _show(
            answer, opened_index, form, open_hit, code=not no_code, all_lines=all_lines,
            context=options.context_lines(context, before, after), color=color, quiet=quiet,
        )  # fmt: skip


def similar(
    place: Annotated[
        str, Argument(metavar="FILE:LINE|NAME", help="A line of a function, or its name.", show_default=False)
    ],
    k: options.Hits = 10,
    regexps: options.Regexps = None,
    globs: options.Globs = None,
    languages: options.Languages = None,
    languages_not: options.LanguagesNot = None,
    path: options.PathGlob = None,
    repository: options.Repository = None,
    kind: options.Kind = None,
    no_tests: options.NoTests = False,
    paths: options.Paths = False,
    all_lines: options.AllLines = False,
    context: options.Context = None,
    before: options.Before = None,
    after: options.After = None,
    no_code: options.NoCode = False,
    open_hit: options.Open = None,
    form: options.FormatOption = None,
    as_json: options.Json = False,
    jsonl: options.Jsonl = False,
    color: options.Color = "auto",
    index: options.IndexOption = None,
    no_update: options.NoUpdate = False,
    quiet: options.Quiet = False,
) -> None:
    """Find functions like one. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs similar src/Main.java:42; ncs similar View.setPadding
    """
    from ncs.answer import ask_similar, similar_to
    from ncs.search.similar import is_place

    form = choose_format(form, as_json=as_json, jsonl=jsonl, paths=paths, color=color)
    with open_current(index, update=not no_update, quiet=quiet) as opened_index:
        ask: Callable[..., Answer] = partial(ask_similar, place=place)
        if not (is_place(place) or os.path.isfile(place)):  # noqa: PTH113  (no error for what can be no path)
            ask = partial(similar_to, function=_function_named(opened_index, place), query=place)
        answer = ask(
            opened_index, k=max(k, open_hit or k), language=languages, language_not=languages_not,
            repository=repository, path=path, glob=globs, kind=kind, no_tests=no_tests, regexp=options.either(regexps),
            code=open_hit is not None or needs_code(form, code=not no_code),
        )  # fmt: skip
        _show(
            answer, opened_index, form, open_hit, code=not no_code, all_lines=all_lines,
            context=options.context_lines(context, before, after), color=color, quiet=quiet,
        )  # fmt: skip


def _function_named(index: Index, name: str) -> Document:
    """The function with a name; raises BadInput where none or several have it."""
    from ncs.answer import document_as_dict
    from ncs.cli.symbols import name_in

    documents, notes = index.definitions(name_in(index, name), MAX_NAMED)
    if not documents:
        raise BadInput(notes[-1])
    if len(documents) > 1:
        hits = [document_as_dict(each.document, code=False) for each in documents]
        places = ", ".join(map(place_of, with_files({"hits": hits}, index.snapshot, "hits")["hits"]))
        raise BadInput(f"several have this name; give the place of one: {places}")
    index.cautions += notes
    return documents[0].document


def _read(text: Sequence[str]) -> str:
    """The question; for "-" the last MAX_QUERY characters of stdin, as errors stand at the end."""
    if text != ["-"]:
        return " ".join(text)
    return sys.stdin.buffer.read().decode("utf-8", "replace")[-MAX_QUERY:]


def _show(answer: Answer, index: Index, form: str, open_hit: int | None, *, quiet: bool, **how: Any) -> None:
    """Print the hits (how: as of `show`), or open one in an editor; then notes on stderr, and the exit status."""
    if open_hit is None:
        count = show(answer, form, index.snapshot, quiet=quiet, **how)
    else:
        count = _open(answer, open_hit, index.snapshot)
    options.end(answer, count, quiet=quiet)


def _open(answer: Answer, number: int, snapshot: Snapshot) -> int:
    """Open one hit; how many were opened."""
    from ncs.serve.editors import open_in_editor

    hits = answer["hits"]
    if not hits:
        return 0
    if number > len(hits):
        raise BadInput(f"no hit {number}; the last one is {len(hits)}")
    if note := open_in_editor(hits[number - 1], locator_of(snapshot), os.environ):
        say(f"ncs: {note}")
    return 1
