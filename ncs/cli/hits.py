"""Hits on stdout: as plain text, in color on a terminal, as JSON, as lines for editors (vimgrep), or as paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ncs.console import count, is_fancy, one_line, rich_console, say, show_json, show_text, visible
from ncs.errors import BadInput, unknown
from ncs.search.explain import query_lines, reasons_lines
from ncs.search.highlight import has_file_lines, name_marks, name_position, text_marks
from ncs.search.locate_source import SourceLocator, line_offset, locator_of
from ncs.serve.terminal import (
    MARK,
    NAME_MARK,
    TAB,
    Excerpt,
    copies_line,
    from_here,
    heading,
    light_background,
    place,
    reason_lines,
    with_files,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ncs.answer import Answer
    from ncs.storage.snapshot import Snapshot

FORMATS = ("table", "plain", "json", "jsonl", "vimgrep", "paths")
COLORS = ("auto", "always", "never")
PLAIN_WIDTH = 80
"""Columns of explanations where stdout is not a terminal."""


def choose_format(
    name: str | None, *, as_json: bool = False, jsonl: bool = False, paths: bool = False, color: str = "auto"
) -> str:
    """The format of --format, --json, --jsonl or -l, else a table on a terminal or in color, and plain text elsewhere.

    Raises BadInput for an unknown format or color, and for two formats at once.
    """
    for what, chosen, known in (("format", name, FORMATS), ("color", color, COLORS)):
        if chosen and chosen not in known:
            raise unknown(what, chosen, known)
    options = {f"--format {name}": name, "--json": as_json and "json", "--jsonl": jsonl and "jsonl"}
    requested = {option: form for option, form in {**options, "-l": paths and "paths"}.items() if form}
    if len(set(requested.values())) > 1:
        first, *_, last = requested
        raise BadInput(f"{first} and {last} cannot be used together")
    return next(iter(requested.values()), "table" if is_fancy(color) else "plain")


def needs_code(form: str, *, code: bool) -> bool:
    """Whether an answer needs the code of its hits: to show it, or to find where a function has moved to."""
    return code or form == "vimgrep"


def show(
    answer: Answer, form: str, snapshot: Snapshot, *, key: str = "hits", code: bool = True, all_lines: bool = False,
    context: tuple[int, int] | None = None, color: str = "auto", quiet: bool = False,
) -> int:  # fmt: skip
    """Print the hits of an answer, under `key`; returns their number. code=False: names and places only. all_lines: no
    excerpts. context: lines before and after the matching ones."""
    answer = with_files(answer, snapshot, key)
    if form == "json":
        show_json(answer)
        return len(answer[key])
    answer = {**answer, "hits": answer[key]}
    if form == "jsonl":
        for hit in answer["hits"]:
            show_json(hit, indent=None)
    elif form == "vimgrep":
        return show_vimgrep(answer, snapshot, quiet=quiet)
    elif form == "paths":
        show_paths(answer)
    elif form == "plain":
        show_plain(answer, code=code, all_lines=all_lines, context=context)
    else:
        show_table(answer, snapshot, code=code, all_lines=all_lines, context=context, color=color)
    return len(answer["hits"])


def show_plain(answer: Answer, *, code: bool, all_lines: bool, context: tuple[int, int] | None) -> None:
    """Text for pipes and files: no colors, nothing cut to a width."""
    if "explanation" in answer:
        show_text("\n".join(query_lines(answer, PLAIN_WIDTH)))
        print()
    for hit in answer["hits"]:
        print("  ".join(filter(None, [f"{hit['rank']}. {heading(hit)}", place(hit), _standing(hit)])))
        for line in (*reason_lines(hit), *filter(None, [copies_line(hit)])):
            print(f"   {line}")
        for line in reasons_lines(hit["explanation"], PLAIN_WIDTH, 3) if "explanation" in hit else ():
            print(one_line(line))
        if code and hit["code"]:
            excerpt = Excerpt(hit, visible(hit["code"].rstrip("\n")), all_lines, context)
            lines = excerpt.code.split("\n")
            for i, numbered in enumerate(excerpt.runs):
                if i:
                    print("      ...")
                for number, at in numbered:
                    print(f"{number:>6}  {lines[at]}".rstrip())
            if excerpt.rest:
                print(f"      ... {excerpt.rest}")
            print()


def _standing(hit: Mapping[str, Any]) -> str:
    """The match, similarity, likelihood or score of a hit, after "frame" for one of a stack trace; nothing for a regexp
    alone and a file to edit."""
    if hit["confidence"] is not None:
        standing = str(hit["likelihood"])
    elif "reverse" in hit:
        standing = f"{hit['score']:.0%} similar"
    else:
        standing = hit.get("match") or ("" if {"regexp_matches", "reasons"} & set(hit) else f"{hit['score']:.4f}")
    return ", ".join(filter(None, ["frame" if "line" in hit and "regexp_matches" not in hit else "", standing]))


def show_table(
    answer: Answer, snapshot: Snapshot, *, code: bool, all_lines: bool, context: tuple[int, int] | None, color: str
) -> None:
    """Print hits on a terminal: colored, at its width, with places as links and long lines of code cut."""
    from rich.text import Text

    console, locator = rich_console(color), locator_of(snapshot)
    if "explanation" in answer:
        console.print(Text(visible("\n".join(query_lines(answer, console.width))), "dim"), end="\n\n")
    for hit in answer["hits"]:
        _print_header(console, hit, link_to(hit, locator, console))
        if "explanation" in hit:
            console.print(Text(visible("\n".join(reasons_lines(hit["explanation"], console.width))), "dim"))
        if code and hit["code"]:
            shown = visible(hit["code"].rstrip("\n")).expandtabs(TAB)
            _print_code(console, hit, Excerpt(hit, shown, all_lines, context))
        console.print()


def link_to(hit: Mapping[str, Any], locator: SourceLocator, console: Console) -> str | None:
    """file://host/path#line of a hit, a link that terminals open (OSC 8); None elsewhere, and where it has no file."""
    path = locator.path_of(hit["repository"], hit["path"]) if console.is_terminal else None
    return f"{uri_of(path)}#{hit.get('line', hit['start_line'])}" if path else None


def uri_of(path: PurePath) -> str:
    """file://host/path; the host is this one, or the server of a Windows share."""
    from socket import gethostname

    return path.as_uri().replace("file:///", f"file://{gethostname()}/", 1)


def _print_header(console: Console, hit: Mapping[str, Any], link: str | None) -> None:
    from rich.style import Style
    from rich.text import Text

    head = Text()
    head.append(f"{hit['rank']:>2}  ", "bold")
    head.append(heading(hit), "bold blue" if light_background() else "bold cyan")
    head.append(f"  {_standing(hit)}", "dim")
    console.print(head, overflow="fold")
    console.print(Text("    ").append(place(hit), Style(color="green", link=link)), overflow="fold")
    for reason in reason_lines(hit):
        console.print(Text(f"    {reason}", "dim"), overflow="fold")
    if hit["matched"] and not {"explanation", "reasons"} & set(hit):
        console.print(Text(one_line(f"    matched: {', '.join(hit['matched'])}"), "dim"), overflow="fold")
    if line := copies_line(hit):
        console.print(Text(f"    {line}", "dim"), overflow="fold")


def _print_code(console: Console, hit: Mapping[str, Any], excerpt: Excerpt) -> None:
    """The lines that matter, with their numbers and marked words; long lines are cut, not wrapped."""
    from rich.style import Style
    from rich.text import Text

    lines = _highlight(excerpt, hit["language"])
    width = len(str(hit["start_line"] + len(lines))) if has_file_lines(hit) else 0
    for i, numbered in enumerate(excerpt.runs):
        if i:
            console.print(Text(f"    {'':>{width}} ⋮", "dim"))
        for number, at in numbered:
            row = Text(f"    {number:>{width}} ", "dim", no_wrap=True, overflow="ellipsis")
            lines[at].style = Style(dim=False)  # the number's style would apply to it, too
            console.print(row.append_text(lines[at]), no_wrap=True, overflow="ellipsis")
    if excerpt.rest:
        console.print(Text(f"    {'':>{width}} ⋮ {excerpt.rest}", "dim"))


def _highlight(excerpt: Excerpt, language: str) -> list[Text]:
    """All lines of the code in the colors of the terminal's own palette, with marked words."""
    from rich.syntax import Syntax

    theme = "ansi_light" if light_background() else "ansi_dark"
    colored: Text = Syntax("", language, theme=theme, background_color="default").highlight(excerpt.code)
    colored.right_crop(max(0, len(colored.plain) - len(excerpt.code)))  # the highlighter appends a newline
    for style, ranges in ((NAME_MARK, excerpt.names), (MARK, excerpt.words)):
        for start, end in ranges:
            colored.stylize(style, start, end)
    return list(colored.split("\n", allow_blank=True))


def show_paths(answer: Answer) -> None:
    """The distinct files of the hits: a path relative to the working directory, or repository/path without a file."""
    for path in dict.fromkeys(hit["file"] or f"{hit['repository']}/{hit['path']}" for hit in answer["hits"]):
        print(one_line(path))


def show_vimgrep(answer: Answer, snapshot: Snapshot, *, quiet: bool) -> int:
    """A line per hit whose file exists, or per use of a name in it; how many hits. The others are counted on stderr."""
    locator = locator_of(snapshot)
    found = [lines for hit in answer["hits"] if (lines := vimgrep_lines(hit, locator, answer.get("spelled", ())))]
    for line in dict.fromkeys(chain.from_iterable(found)):  # a function and the one around it have one match
        print(line)
    if (omitted := len(answer["hits"]) - len(found)) and not quiet:
        hits = count(omitted, "hit is", "hits are")
        say(f"ncs: {hits} not in a file here (moved, or in an archive or bare repository); use --format plain")
    return len(found)


def vimgrep_lines(hit: Mapping[str, Any], locator: SourceLocator, names: Sequence[str]) -> list[str]:
    """path:line:column:text of a hit's name, or with `names` of each of its `lines`; the path is relative to the
    working directory, columns count bytes. Empty without a file, and for names with control characters."""
    source = locator.locate(hit)
    if source is None or visible(str(source.path)) != str(source.path).replace("\n", ""):
        return []
    if names:
        used = [number - hit["start_line"] for number in hit["lines"]]
        marks = [(at, name_marks(source.lines[at], names)) for at in used if at < len(source.lines)]
        places = [(at, found[0][0]) for at, found in marks if found]
    else:
        places = [name_position(source.lines, hit["name"])]
        if 0 < (below := line_offset(hit)) < len(source.lines):
            text = source.lines[below]
            matches = text_marks(text, hit.get("regexp_matches", ())) or [(len(text) - len(text.lstrip()), 0)]
            places = [(below, matches[0][0])]
    texts = [(source.line + below, source.lines[below], at) for below, at in places]
    path = from_here(source.path)
    return [f"{path}:{line}:{len(text[:at].encode()) + 1}:{visible(text.rstrip())}" for line, text, at in texts]
