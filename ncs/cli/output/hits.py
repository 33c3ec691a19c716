"""Hits as people read them: a header, where it stands, and the lines that matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ncs.cli.output.streams import PLAIN_WIDTH, light_background, terminal, visible
from ncs.search.explain_table import NAMES, reading_lines, reasons_lines
from ncs.search.highlight import excerpt, marked_lines, marks, name_marks, numbered
from ncs.storage.file_roles import OUTLINES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ncs.answer import Answer
    from ncs.cli.output.links import Linked

SHOWN_COPIES = 3
MARK = "bold underline"
NAME_MARK = "bold"
TAB = 4


def place(hit: Mapping[str, Any]) -> str:
    """repository/path:line, as editors and people read it."""
    return visible(f"{hit['repository']}/{hit['path']}:{hit['start_line']}")


def heading(hit: Mapping[str, Any]) -> str:
    """What a hit is called: a function by its name; of anything else what it is, too."""
    name: str = hit["qualified_name"]
    return visible(f"{hit['kind']} {name}" if hit["kind"] in OUTLINES else name)


def copies_line(hit: Mapping[str, Any]) -> str | None:
    """Where the same function stands too, and whether it is the one asked for."""
    exact = ["exact copy"] if hit.get("exact_copy") else []
    told = [*exact, *_places("also at", hit["copies"]), *_places("nearly the same at", hit.get("near_copies", ()))]
    return "; ".join(told) or None


def _places(said: str, copies: Sequence[Mapping[str, Any]]) -> list[str]:
    more = f" and {len(copies) - SHOWN_COPIES} more" if len(copies) > SHOWN_COPIES else ""
    return [f"{said} " + ", ".join(place(copy) for copy in copies[:SHOWN_COPIES]) + more] if copies else []


def _sought(answer: Answer) -> str:
    """The words that stand out in the code: the question's, or the names of the function asked for."""
    text: str = answer.get("marked", answer["query"])
    return text


def _names(hit: Mapping[str, Any]) -> list[str]:
    """The names that the explanation of a hit speaks of."""
    return [used["name"] for used in hit.get("explanation", {}).get("names", ())[:NAMES]]


def _shown(code: str, found: Sequence[tuple[int, int]], whole: bool) -> list[tuple[int, int]]:
    """Which lines of the code, as ranges."""
    lines = code.count("\n") + 1
    return [(0, lines)] if whole else excerpt(lines, marked_lines(code, found))


def show_plain(answer: Answer, *, code: bool = True, whole: bool = False) -> None:
    """Text for pipes and files: no colours, nothing cut to a width."""
    if "explanation" in answer:
        print("\n".join([*reading_lines(answer, PLAIN_WIDTH), ""]))
    for hit in answer["hits"]:
        print(f"{hit['rank']}. {heading(hit)}  {place(hit)}  {hit['score']:.4f}")
        if line := copies_line(hit):
            print(f"   {line}")
        for line in reasons_lines(hit["explanation"], PLAIN_WIDTH, 3) if "explanation" in hit else ():
            print(visible(line))
        if code and hit["code"]:
            _plain_code(hit, _sought(answer), whole)


def _plain_code(hit: Mapping[str, Any], text: str, whole: bool) -> None:
    code: str = visible(hit["code"].rstrip("\n"))
    lines = code.split("\n")
    ranges = _shown(code, [*marks(code, text), *name_marks(code, _names(hit))], whole)
    numbers = numbered(hit)
    for i, (first, end) in enumerate(ranges):
        if i:
            print("      ...")
        for number in range(first, end):
            print(f"{hit['start_line'] + number if numbers else '':6}  {lines[number]}".rstrip())
    if (left := len(lines) - ranges[-1][1]) > 0:
        print(f"      ... {left} more lines")
    print()


def show_table(answer: Answer, links: Linked, *, code: bool = True, whole: bool = False) -> None:
    """For a terminal: coloured, as wide as it is, places as links, long lines of code cut."""
    from rich.text import Text

    console = terminal()
    if "explanation" in answer:
        console.print(Text("\n".join(reading_lines(answer, console.width)), "dim"), end="\n\n")
    for hit in answer["hits"]:
        _header(console, hit, links.of(hit) if console.is_terminal else None)
        if "explanation" in hit:
            console.print(Text(visible("\n".join(reasons_lines(hit["explanation"], console.width))), "dim"))
        if code and hit["code"]:
            _coloured_code(console, hit, _sought(answer), whole)
        console.print()


def _header(console: Console, hit: Mapping[str, Any], link: str | None) -> None:
    """Rank, name and how sure; where it stands; what it holds of the question; where it stands too."""
    from rich.style import Style
    from rich.text import Text

    head = Text()
    head.append(f"{hit['rank']:>2}  ", "bold")
    head.append(heading(hit), "bold blue" if light_background() else "bold cyan")
    sure = hit["confidence"]
    head.append(f"  {hit['score']:.4f}" if sure is None else f"  confidence {sure:.2f}", "dim")
    console.print(head, overflow="fold")
    stands = Text("    ").append(place(hit), Style(color="green", link=link))
    console.print(stands, overflow="fold")
    if hit["matched"] and "explanation" not in hit:
        console.print(Text(f"    matched: {', '.join(hit['matched'])}", "dim"), overflow="fold")
    if line := copies_line(hit):
        console.print(Text(f"    {line}", "dim"), overflow="fold")


def _coloured_code(console: Console, hit: Mapping[str, Any], text: str, whole: bool) -> None:
    """The lines that matter, with their numbers, marked words standing out; long lines are cut, not wrapped."""
    from rich.text import Text

    code = visible(hit["code"].rstrip("\n")).expandtabs(TAB)
    found, names = marks(code, text), name_marks(code, _names(hit))
    lines = _highlighted(code, hit["language"], found, names)
    numbers = numbered(hit)
    width = len(str(hit["start_line"] + len(lines))) if numbers else 0
    ranges = _shown(code, [*found, *names], whole)
    for i, (first, end) in enumerate(ranges):
        if i:
            console.print(Text(f"    {'':>{width}} ⋮", "dim"))
        for number in range(first, end):
            counted = str(hit["start_line"] + number) if numbers else ""
            row = Text(f"    {counted:>{width}} ", "dim", no_wrap=True, overflow="ellipsis")
            console.print(row.append_text(_with_style(lines[number])), no_wrap=True, overflow="ellipsis")
    if (left := len(lines) - ranges[-1][1]) > 0:
        console.print(Text(f"    {'':>{width}} ⋮ {left} more lines", "dim"))


def _highlighted(
    code: str, language: str, found: Sequence[tuple[int, int]], names: Sequence[tuple[int, int]]
) -> list[Text]:
    """The lines of the code in colours that the terminal's own palette defines, so that they suit its background."""
    from rich.syntax import Syntax

    theme = "ansi_light" if light_background() else "ansi_dark"
    coloured: Text = Syntax("", language, theme=theme, background_color="default").highlight(code)
    coloured.right_crop(max(0, len(coloured.plain) - len(code)))  # the highlighter ends with a line's end of its own
    for style, places in ((NAME_MARK, names), (MARK, found)):
        for start, end in places:
            coloured.stylize(style, start, end)
    return list(coloured.split("\n", allow_blank=True))


def _with_style(line: Text) -> Text:
    """The line without the dim style of the number before it."""
    from rich.style import Style

    line.style = Style(dim=False)
    return line
