"""JSON, and JSON lines, plain or gzip; errors name file and line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ncs.errors import BadInput
from ncs.files import open_replacement, text_lines


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object of a file, and its place: `file:line`."""

    values: Mapping[str, object]
    place: str

    def text(self, key: str, default: str | None = None) -> str:
        """The string under a key; BadInput where it is missing (and has no default) or not a string."""
        value = default if self.values.get(key) is None else self.values[key]
        if not isinstance(value, str):
            raise BadInput(f"{self.place}: {'no' if value is None else 'not a string in'} {key!r}; correct that line")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """The strings of a list; BadInput for anything else."""
        values = self.values.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise BadInput(f"{self.place}: {key!r} is not a list of strings; correct that line")
        return tuple(values)

    def number(self, key: str, default: int | None = None) -> int:
        """The whole number under a key; BadInput for anything else."""
        value = self.values.get(key, default)
        if not isinstance(value, int):
            raise BadInput(f"{self.place}: {key!r} is not a whole number; correct that line")
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
    except UnicodeDecodeError as error:
        raise BadInput(f"{place}: not UTF-8 ({error.reason}); fetch the file again") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{place}: not JSON ({getattr(error, 'msg', error)}); correct that line") from None
    if not isinstance(values, dict):
        raise BadInput(f"{place}: not a JSON object; correct that line")
    return Row(values, place)


def read_json(path: Path, remedy: str) -> Any:
    """The value of a JSON file; BadInput, with the remedy where it is missing, and where it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; {remedy}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON ({error}); fetch the file again") from None


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a text file, gzip by its name; BadInput where it is missing, damaged or not UTF-8."""
    try:
        yield from text_lines(path)
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; check its name, or name the data folder with --data or NCS_DATA") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 ({error.reason}); save it as UTF-8") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"{path} is damaged ({error}); fetch the file again") from None


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> int:
    """Write one JSON object per line, gzip by name; returns their number. The file is replaced at the end."""
    number = 0
    with open_gzip(path) if path.suffix == ".gz" else open_replacement(path) as file:
        for row in rows:
            file.write(json_line(row))
            number += 1
    return number


def json_line(row: Mapping[str, object]) -> bytes:
    """A JSON object as a line of UTF-8; halves of surrogate pairs become question marks."""
    return (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "replace")


@contextmanager
def open_gzip(path: Path, level: int = 6) -> Iterator[IO[bytes]]:
    """A gzip file to replace, without name and time in its header: the same lines give the same bytes."""
    with open_replacement(path) as raw, gzip.GzipFile("", "wb", level, raw, mtime=0) as file:
        yield cast("IO[bytes]", file)
