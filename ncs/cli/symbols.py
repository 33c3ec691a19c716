"""`ncs def` and `ncs refs`: where a name is defined, and what uses it."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ncs.cli import options
from ncs.cli.current import open_current
from ncs.cli.hits import choose_format, link_to, needs_code, show
from ncs.console import one_line, rich_console, show_text
from ncs.search.highlight import name_marks
from ncs.search.locate_source import locator_of, places_in
from ncs.serve.terminal import MARK, TAB, copies_line, heading, place, with_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ncs.answer import Answer
    from ncs.index import Index
    from ncs.storage.snapshot import Snapshot

MAX_REFERENCES = 50
Name = Annotated[str, Argument(metavar="NAME", help="NAME, Owner.NAME or FILE::NAME.", show_default=False)]


def find_definitions(
    name: Name,
    places: options.Places = None,
    k: options.Hits = 10,
    globs: options.Globs = None,
    languages: options.Languages = None,
    languages_not: options.LanguagesNot = None,
    path: options.PathGlob = None,
    repository: options.Repository = None,
    kind: options.Kind = None,
    no_tests: options.NoTests = False,
    paths: options.Paths = False,
    form: options.FormatOption = None,
    as_json: options.Json = False,
    jsonl: options.Jsonl = False,
    all_lines: options.AllLines = False,
    no_code: options.NoCode = False,
    index: options.IndexOption = None,
    quiet: options.Quiet = False,
) -> None:
    """Find where a name is defined: function, class, constant or type. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs def parse_json src; ncs def View.setPadding; ncs def src/view.py::View.pad
    """
    from ncs.answer import definitions_of

    form = choose_format(form, as_json=as_json, jsonl=jsonl, paths=paths)
    with open_current(index, quiet=quiet) as opened_index:
        answer = definitions_of(
            opened_index, name_in(opened_index, name), k, language=languages, language_not=languages_not,
            repository=repository, path=path, glob=globs, kind=kind, no_tests=no_tests,
            places=places_in(opened_index.snapshot, places or ()), code=needs_code(form, code=not no_code),
        )  # fmt: skip
        snapshot = opened_index.snapshot
        found = show(answer, form, snapshot, key="definitions", code=not no_code, all_lines=all_lines, quiet=quiet)
        options.end(answer, found, quiet=quiet)


def find_references(
    name: Name,
    places: options.Places = None,
    k: Annotated[int, Option("-n", "--limit", "-k", min=1, metavar="N", help="How many functions.")] = MAX_REFERENCES,
    globs: options.Globs = None,
    languages: options.Languages = None,
    languages_not: options.LanguagesNot = None,
    path: options.PathGlob = None,
    repository: options.Repository = None,
    kind: options.Kind = None,
    no_tests: options.NoTests = False,
    paths: options.Paths = False,
    form: options.FormatOption = None,
    as_json: options.Json = False,
    jsonl: options.Jsonl = False,
    no_code: options.NoCode = False,
    index: options.IndexOption = None,
    quiet: options.Quiet = False,
) -> None:
    """Find the functions that use a name, those near its definition first. Exit status: as of ncs def.

    Example: ncs refs parse_json; ncs refs View.setPadding src -n 100
    """
    from ncs.answer import references_to

    form = choose_format(form, as_json=as_json, jsonl=jsonl, paths=paths)
    with open_current(index, quiet=quiet) as opened_index:
        answer = references_to(
            opened_index, name_in(opened_index, name), k, language=languages, language_not=languages_not,
            repository=repository, path=path, glob=globs, kind=kind, no_tests=no_tests,
            places=places_in(opened_index.snapshot, places or ()), code=needs_code(form, code=not no_code),
        )  # fmt: skip
        if form in ("table", "plain"):
            _print_references(answer, opened_index.snapshot, colored=form == "table", lines=not no_code)
            count = len(answer["references"])
        else:
            count = show(answer, form, opened_index.snapshot, key="references", quiet=quiet)
        options.end(answer, count, quiet=quiet)


def name_in(index: Index, name: str) -> str:
    """The name, with an existing path before `::` replaced by its name in the index."""
    file, colons, rest = name.partition("::")
    if colons and Path(file).is_file() and (indexed := locator_of(index.snapshot).name_of(Path(file).resolve())):
        return f"{indexed}::{rest}"
    return name


def _print_references(answer: Answer, snapshot: Snapshot, *, colored: bool, lines: bool) -> None:
    """The uses by group; each function, and below it the lines with the name."""
    answer = with_files(answer, snapshot, "references")
    write = _colored_printer(snapshot, answer["spelled"]) if colored else _plain
    for number, (group, hits) in enumerate(groupby(answer["references"], itemgetter("group"))):
        write("\n" * (number > 0) + group, None, "")
        for hit in hits:
            write(f"  {place(hit)}", hit, "  ".join(["", heading(hit), *filter(None, [copies_line(hit)])]))
            width = len(str(hit["end_line"])) + 4
            for line, text in zip(hit["lines"], hit["texts"], strict=True) if lines else ():
                write(f"{line:>{width}}  ", None, one_line(text.strip().expandtabs(TAB)))


def _plain(start: str, hit: Mapping[str, Any] | None, text: str) -> None:
    show_text(f"{start}{text}")


def _colored_printer(snapshot: Snapshot, names: Sequence[str]) -> Callable[[str, Mapping[str, Any] | None, str], None]:
    """Prints on a terminal: places as links, names marked, at its width."""
    from rich.style import Style
    from rich.text import Text

    console, locator = rich_console(), locator_of(snapshot)

    def write(start: str, hit: Mapping[str, Any] | None, text: str) -> None:
        style = Style(bold=not text, dim=bool(text))
        if hit:
            style = Style(color="green", link=link_to(hit, locator, console))
        line = Text().append(start, style).append(text)
        for first, last in name_marks(text, names) if not hit else ():
            line.stylize(MARK, len(start) + first, len(start) + last)
        console.print(line, no_wrap=True, overflow="ellipsis")

    return write
