"""An answer in the format that was asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from ncs.cli.output.links import Links, NoLinks
from ncs.cli.output.streams import fancy, show_json
from ncs.errors import BadInput

if TYPE_CHECKING:
    from ncs.answer import Answer
    from ncs.search.locate_source import SourceLocator

Format: TypeAlias = Literal["table", "plain", "json", "jsonl", "vimgrep"]
FORMATS: tuple[Format, ...] = get_args(Format)


def chosen(asked: str | None, *, as_json: bool = False, jsonl: bool = False) -> Format:
    """The format: the one that --format, --json or --jsonl name, else a table on a terminal and plain text elsewhere.

    Raises BadInput for one that there is not, and for two at once.
    """
    named = dict.fromkeys(name for name in (asked, "json" if as_json else None, "jsonl" if jsonl else None) if name)
    if unknown := [name for name in named if name not in FORMATS]:
        raise BadInput(f"no format called {unknown[0]!r}; there are: {', '.join(FORMATS)}")
    if len(named) > 1:
        raise BadInput(f"{' and '.join(named)} exclude each other; name one format")
    return cast(Format, next(iter(named), "table" if fancy(sys.stdout) else "plain"))


def show(
    answer: Answer,
    form: Format,
    locator: SourceLocator | None = None,
    *,
    code: bool = True,
    whole: bool = False,
    quiet: bool = False,
) -> int:
    """The hits on stdout; how many were shown. code=False: names and places only. whole: all lines of each."""
    if form == "json":
        show_json(answer)
    elif form == "jsonl":
        for hit in answer["hits"]:
            show_json(hit, indent=None)
    elif form == "vimgrep":
        if locator is None:
            raise BadInput("vimgrep needs the files of an index; ask another format")
        from ncs.cli.output.vimgrep import show_vimgrep

        return show_vimgrep(answer, locator, quiet=quiet)
    else:
        from ncs.cli.output import hits

        if form == "plain":
            hits.show_plain(answer, code=code, whole=whole)
        else:
            links = Links(locator.path) if locator else NoLinks()
            hits.show_table(answer, links, code=code, whole=whole)
    return len(answer["hits"])
