"""Readers of (query, code) pairs in JSON lines, and the words of both."""

from __future__ import annotations

import gzip
import json
import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from ncs.errors import BadInput
from ncs.text.tokens import field_tokens, tokenize
from ncs.types import NCS_FIELDS

# Answers are often bare statements or members: wrappers to try until a function is extracted.
_NAME = "__pair__"  # name of the wrapper; it never becomes a word
_AROUND: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "java": ((f"class {_NAME} {{\n", "", "\n}"), (f"class {_NAME} {{ void {_NAME}() {{\n", "", "\n} }")),
    "python": ((f"def {_NAME}():\n", "    ", "\n"),),
}


def read_pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """(query, code, language) of a `.jsonl` or `.jsonl.gz` file with keys of these names; language may be missing.

    Raises BadInput for a file that cannot be read and for a bad line, by its number.
    """
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadInput(f"{path}:{number}: not JSON ({error.msg}); correct that line") from None
        row = row if isinstance(row, dict) else {}
        query, code, language = row.get("query"), row.get("code"), row.get("language", "")
        if not (isinstance(query, str) and isinstance(code, str) and isinstance(language, str)):
            raise BadInput(f"{path}:{number}: a pair is an object with the strings query and code; correct that line")
        yield query, code, language


def read_questions(path: Path) -> Iterator[str]:
    """The `query` of every line of a JSON lines file; raises BadInput as `read_pairs` does."""
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            try:
                yield str(json.loads(line)["query"])
            except (ValueError, TypeError, KeyError):
                raise BadInput(f"{path}:{number}: no object with a query; correct that line") from None


def _lines(path: Path) -> Iterator[str]:
    try:
        with _open(path) as file:
            yield from file
    except OSError as error:
        raise BadInput(f"cannot read {path} ({error.strerror or error}); name a file of JSON lines") from None
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is damaged ({error}); get the file again") from None


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def code_words(code: str, language: str) -> list[str]:
    """The NCS words of a piece of code: whole file, members or statements. All words if the language is unknown or no
    function is extracted.

    >>> code_words("view.setText(R.string.hello);", "java")
    ['set', 'text']
    """
    from ncs.extract import LANGUAGES, extract

    if language not in LANGUAGES:
        return tokenize(code)
    best: list[str] = []
    for before, indent, after in (("", "", ""), *_AROUND.get(language, ())):
        source = before + (textwrap.indent(code, indent) if indent else code) + after
        words = [
            word
            for document in extract(source.encode("utf-8", "replace"), language)
            for field in NCS_FIELDS
            for word in field_tokens(field, (each for each in document.words.get(field, ()) if each != _NAME))
        ]
        if len(set(words)) > len(set(best)):  # skip nested functions, which the outer one contains
            best = words
    return best or tokenize(code)


def normalized(query: str) -> str:
    """A query without case, punctuation and extra spaces, for comparison."""
    return " ".join(tokenize(query))
