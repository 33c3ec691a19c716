"""JSON lines, plain or gzip; errors name file and line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from ncs.errors import BadInput


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object of a file, and its place: `file:line`."""

    values: Mapping[str, object]
    place: str

    def text(self, key: str, default: str | None = None) -> str:
        """The string under a key; BadInput where it is missing (and has no default) or not a string."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise BadInput(f"{self.place}: {'no' if value is None else 'not a string in'} {key!r}; correct that line")
        return value


def read_rows(path: Path) -> Iterator[Row]:
    """The objects of a `.jsonl` or `.jsonl.gz` file; empty lines are skipped.

    Raises BadInput for a missing or damaged file and for a line that is not a JSON object.
    """
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        yield parse_row(line, f"{path}:{number}")


def parse_row(line: str | bytes, place: str) -> Row:
    """The JSON object that a line holds; BadInput, naming its place, for anything else."""
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInput(f"{place}: not JSON ({error.msg}); correct that line") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{place}: not UTF-8 ({error.reason}); fetch the file again") from None
    if not isinstance(values, dict):
        raise BadInput(f"{place}: not a JSON object; correct that line")
    return Row(values, place)


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a text file, gzip by its name; BadInput where it is missing, damaged or not UTF-8."""
    try:
        with _open(path) as file:
            yield from file
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; check its name, or name the data folder with --data or NCS_DATA") from None
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is damaged ({error}); fetch the file again") from None


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> int:
    """Write one JSON object per line, UTF-8, gzip by name; returns their number. The file is replaced at the end.

    Deterministic: gzip's header has neither name nor time.
    """
    part = path.with_name(path.name + ".part")
    number = 0
    try:
        with part.open("wb") as raw, _packed(raw, path) as file:
            for row in rows:
                file.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8"))
                number += 1
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return number


@contextmanager
def _packed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        yield cast("IO[bytes]", file)
