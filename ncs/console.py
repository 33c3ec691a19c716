"""What a person sees: hits, tables and progress. The only file that imports rich, and only on a terminal."""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from ncs.answer import Answer, excerpt, numbered
from ncs.explain import marks
from ncs.explain.marking import name_marks
from ncs.explain.table import NAMES, reading_lines, reasons_lines
from ncs.places import OUTLINES
from ncs.progress import Track, silent

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from ncs.folder import Manifest
    from ncs.reading import Changes

T = TypeVar("T")
SHOWN_COPIES = 3
MARK = "bold underline"
NAME_MARK = "bold"
PLAIN_WIDTH = 80
"""Columns of an explanation where stdout is no terminal."""


def fancy(stream: TextIO) -> bool:
    """Whether this stream is a terminal that takes colours and widths."""
    return stream.isatty()


def say(message: str) -> None:
    """A message for people: stderr, plain."""
    print(message, file=sys.stderr)


def show_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON value on stdout, UTF-8 as it is."""
    print(json.dumps(value, ensure_ascii=False, indent=indent))


def show_answer(answer: Answer, *, code: bool = True) -> None:
    """Hits on stdout: highlighted on a terminal, plain otherwise."""
    if fancy(sys.stdout):
        _show_rich(answer, code)
    else:
        if "explanation" in answer:
            print("\n".join([*reading_lines(answer, PLAIN_WIDTH), ""]))
        for hit in answer["hits"]:
            _show_plain(hit, _marked(answer), code)


def _marked(answer: Answer) -> str:
    """The words that stand out in the code: the question's, or the names of the function asked for."""
    text: str = answer.get("marked", answer["query"])
    return text


def place(hit: Mapping[str, Any]) -> str:
    """repository/path:line, as editors and people read it."""
    return f"{hit['repository']}/{hit['path']}:{hit['start_line']}"


def heading(hit: Mapping[str, Any]) -> str:
    """What a hit is called: a function by its name; of anything else what it is, too."""
    name: str = hit["qualified_name"]
    return f"{hit['kind']} {name}" if hit["kind"] in OUTLINES else name


def copies_line(hit: Mapping[str, Any]) -> str | None:
    """Where the same function stands too, and whether it is the one asked for."""
    exact = ["exact copy"] if hit.get("exact_copy") else []
    told = [*exact, *_places("also at", hit["copies"]), *_places("nearly the same at", hit.get("near_copies", ()))]
    return "; ".join(told) or None


def _places(said: str, copies: Sequence[Mapping[str, Any]]) -> list[str]:
    more = f" and {len(copies) - SHOWN_COPIES} more" if len(copies) > SHOWN_COPIES else ""
    return [f"{said} " + ", ".join(place(copy) for copy in copies[:SHOWN_COPIES]) + more] if copies else []


def _line_starts(code: str) -> list[int]:
    starts = [0]
    for line in code.split("\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _show_plain(hit: Mapping[str, Any], text: str, code: bool) -> None:
    print(f"{hit['rank']}. {heading(hit)}  {place(hit)}  {hit['score']:.4f}")
    if line := copies_line(hit):
        print(f"   {line}")
    for line in reasons_lines(hit["explanation"], PLAIN_WIDTH, 3) if "explanation" in hit else ():
        print(line)
    if not code or not hit["code"]:
        return
    lines = hit["code"].split("\n")
    starts = _line_starts(hit["code"])
    found = [*marks(hit["code"], text), *name_marks(hit["code"], _names(hit))]
    marked = sorted({bisect_right(starts, start) - 1 for start, _ in found})
    numbers = numbered(hit)
    for i, (first, end) in enumerate(excerpt(len(lines), marked)):
        if i:
            print("      ...")
        for number in range(first, end):
            print(f"{hit['start_line'] + number if numbers else '':6}  {lines[number]}".rstrip())
    if end < len(lines):
        print(f"      ... {len(lines) - end} more lines")
    print()


def _names(hit: Mapping[str, Any]) -> list[str]:
    """The names that the explanation of a hit speaks of."""
    return [used["name"] for used in hit.get("explanation", {}).get("names", ())[:NAMES]]


def _show_rich(answer: Answer, code: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=False)
    if "explanation" in answer:
        console.print(Text("\n".join(reading_lines(answer, console.width)), "dim"), end="\n\n")
    for hit in answer["hits"]:
        head = Text()
        head.append(f"{hit['rank']:>2}  ", "bold")
        head.append(heading(hit), "bold cyan")
        head.append(f"  {hit['score']:.4f}", "dim")
        console.print(head)
        console.print(Text(f"    {place(hit)}", "green"), overflow="fold")
        if hit["matched"] and "explanation" not in hit:
            console.print(Text(f"    matched: {', '.join(hit['matched'])}", "dim"))
        if line := copies_line(hit):
            console.print(Text(f"    {line}", "dim"))
        if "explanation" in hit:
            console.print(Text("\n".join(reasons_lines(hit["explanation"], console.width)), "dim"))
        if code and hit["code"]:
            _show_code(console, hit, _marked(answer))
        console.print()


def _show_code(console: Console, hit: Mapping[str, Any], text: str) -> None:
    """The lines that matter, with their numbers, marked words standing out; long lines are cut, not wrapped."""
    from rich.syntax import Syntax
    from rich.text import Text

    code: str = hit["code"].expandtabs(4)
    lexer = Syntax("", hit["language"], theme="ansi_dark", background_color="default")
    coloured: Text = lexer.highlight(code)
    found, names = marks(code, text), name_marks(code, _names(hit))
    for style, places in ((NAME_MARK, names), (MARK, found)):
        for start, end in places:
            coloured.stylize(style, start, end)
    lines = coloured.split("\n", allow_blank=True)
    if len(lines) > 1 and not lines[-1].plain:
        lines.pop()
    starts = _line_starts(code)
    marked = sorted({bisect_right(starts, start) - 1 for start, _ in [*found, *names]})
    numbers = numbered(hit)
    width = len(str(hit["start_line"] + len(lines))) if numbers else 0
    ranges = excerpt(len(lines), marked)
    for i, (first, end) in enumerate(ranges):
        if i:
            console.print(Text(f"    {'':>{width}} ⋮", "dim"))
        for number in range(first, end):
            counted = str(hit["start_line"] + number) if numbers else ""
            row = Text(f"    {counted:>{width}} ", "dim", no_wrap=True, overflow="ellipsis")
            console.print(row.append_text(_with_style(lines[number])), no_wrap=True, overflow="ellipsis")
    if (left := len(lines) - ranges[-1][1]) > 0:
        console.print(Text(f"    {'':>{width}} ⋮ {left} more lines", "dim"))


def _with_style(line: Text) -> Text:
    """The line without the dim style of the number before it."""
    from rich.style import Style

    line.style = Style(dim=False)
    return line


def show_table(title: str, rows: Iterable[Sequence[str]], columns: Sequence[str] = ()) -> None:
    """A table on stdout: drawn on a terminal, tab-separated otherwise."""
    if not fancy(sys.stdout):
        for row in rows:
            print("\t".join(row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if title:
        console.print(Text(title, "bold"))
    table = Table(box=box.SIMPLE, show_header=bool(columns), show_edge=False)
    for column in columns or ("", ""):
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def tracker(quiet: bool) -> Track:
    """Bars with rate and remaining time on stderr for stages over a second; nothing where stderr is no terminal."""
    if quiet or not fancy(sys.stderr):
        return silent

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        bar: Progress | None = None
        start, done, shown = time.monotonic(), 0, 0.0
        try:
            for item in items:
                yield item
                done += 1
                now = time.monotonic()
                if bar is None and now - start > 1:
                    bar = _bar(unit)
                    task = bar.add_task(stage, total=total, completed=done)
                    bar.start()
                if bar is not None and now - shown > 0.1:
                    bar.update(task, completed=done)
                    shown = now
            if bar is not None:
                bar.update(task, completed=done, total=done)
        finally:
            if bar is not None:
                bar.stop()

    return track


def _bar(unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.{1 if speed < 10 else 0}f} {unit}/s" if speed else "", "dim")

    return Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        *([Rate()] if unit else []),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def say_notes(answer: Answer) -> None:
    """What the answer has to tell beside its hits, on stderr."""
    for note in answer["notes"]:
        say(f"ncs: {note}")


def _documents(counts: Mapping[str, Any]) -> str:
    """How many functions, and how many classes and pieces of code outside functions."""
    outside = sum(n for kind, n in counts["kinds"].items() if kind in OUTLINES)
    functions = f"{counts['documents'] - outside:,} functions"
    return f"{functions}, {outside:,} classes and top-level blocks" if outside else functions


def say_built(manifest: Manifest, folder: Path, verbose: bool) -> None:
    """What a build came to, on stderr."""
    counts: Mapping[str, Any] = manifest.counts
    n = len(counts["repositories"])
    say(
        f"{_documents(counts)} ({counts['copies']:,} exact copies folded) from {counts['files']:,} files"
        f" of {n:,} {'repository' if n == 1 else 'repositories'}, {sum(counts['seconds'].values()):.0f} s -> {folder}"
    )
    if texts := counts.get("text_files"):
        say("read as text: " + ", ".join(f"{n:,} {kind}" for kind, n in texts.items()))
    skipped = {reason: n for reason, n in counts["skipped"].items() if n}
    if skipped:
        say("skipped: " + ", ".join(f"{n:,} {reason}" for reason, n in sorted(skipped.items())))
    if counts["broken"]:
        say(f"files with syntax errors: {counts['broken']:,} (what parsed is indexed)")
    if counts["failed"]:
        say(f"files the parser could not read: {counts['failed']:,}")
    for note in manifest.notes:
        say(f"note: {note}")
    if verbose:
        say("seconds: " + ", ".join(f"{stage} {s}" for stage, s in counts["seconds"].items()))
        for kind in ("broken_files", "failed_files", "unreadable_files"):
            for path in counts[kind]:
                say(f"{kind[:-6]}: {path}")
    say('ask it: ncs query "..."' + ("" if folder.name == ".ncs" else f" -i {folder}"))


def _drift(described: Mapping[str, Any]) -> str:
    """How much of the words have no vector, where that is more than when they were learnt."""
    training = described.get("training") or {}
    then, now = training.get("without_vector", 0), training.get("without_vector_now", 0)
    return f"; {now:.1%} of words without a vector, {then:.1%} when learnt" if now > then else ""


def say_updated(manifest: Manifest, changes: Changes, verbose: bool) -> None:
    """What an update came to, on stderr."""
    from ncs.building import retraining_advice

    counts: Mapping[str, Any] = manifest.counts
    kinds = {"new": changes.added, "changed": changes.changed, "removed": changes.removed}
    said = ", ".join(f"{len(paths):,} {kind}" for kind, paths in kinds.items() if paths) or "nothing changed"
    say(f"{said}, {changes.unchanged:,} files as before; {_documents(counts)}")
    if advice := retraining_advice(manifest):
        say(f"note: {advice}")
    for kind, paths in kinds.items() if verbose else ():
        for path in paths:
            say(f"{kind}: {path}")


def show_info(described: Mapping[str, Any]) -> None:
    """An index described, for people."""
    size = described["bytes"]
    learning = described["config"].get(described["embeddings"], {})
    repositories = sorted(described["repositories"].items(), key=lambda item: (-item[1], item[0]))
    rows = [
        ("index", described["index"]),
        ("created", f"{described['created']} by ncs {described['versions'].get('ncs')}, format {described['format']}"),
        ("documents", f"{_documents(described)}, and {described['copies']:,} exact copies of them"),
        ("files", f"{described['files']:,} ({described.get('source_bytes', 0) / 1e6:,.1f} MB)"),
        ("languages", ", ".join(f"{name} {n:,}" for name, n in described["languages"].items())),
        ("kinds", ", ".join(f"{name} {n:,}" for name, n in described["kinds"].items())),
        ("as text", ", ".join(f"{name} {n:,}" for name, n in described.get("text_files", {}).items()) or "no file"),
        ("words", f"{described['words']:,}; embeddings by {described['embeddings']}{_drift(described)}"),
        ("learning", ", ".join(f"{name}={value}" for name, value in learning.items() if value is not None)),
        ("size", f"{sum(size.values()) / 1e6:,.1f} MB"),
        ("skipped", ", ".join(f"{n:,} {reason}" for reason, n in described["skipped"].items()) or "nothing"),
        (
            "broken, failed",
            f"{described['broken']:,} with syntax errors, {described['failed']:,} unreadable to the parser",
        ),
        *(("note", note) for note in described["notes"]),
    ]
    show_table("", rows)
    show_table(f"{len(repositories):,} repositories", [(name, f"{n:,}") for name, n in repositories[:20]])
    if len(repositories) > 20:
        say(f"... and {len(repositories) - 20:,} more; all of them: ncs info --json")
