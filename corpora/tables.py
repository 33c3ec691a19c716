"""Writes tables as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from ncs.files import replace_file


def write_table(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]], *, line_end: str = "\n") -> None:
    """Replace a file by a CSV of the columns' names and the rows."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=line_end)
    writer.writerow(columns)
    writer.writerows(rows)
    replace_file(path, text.getvalue())
