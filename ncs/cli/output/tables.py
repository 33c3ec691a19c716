"""Tables: drawn on a terminal, tab-separated in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from ncs.cli.output.streams import fancy, terminal, visible


def show_table(title: str, rows: Iterable[Sequence[str]], columns: Sequence[str] = ()) -> None:
    """A table on stdout: drawn on a terminal, tab-separated otherwise."""
    if not fancy(sys.stdout):
        for row in rows:
            print(visible("\t".join(row)))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = terminal()
    if title:
        console.print(Text(title, "bold"))
    table = Table(box=box.SIMPLE, show_header=bool(columns), show_edge=False)
    for column in columns or ("", ""):
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    console.print(table)
