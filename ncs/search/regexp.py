"""Regular expressions over the code of documents, matched in a process with limits, as one can take forever."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput
from ncs.messages import BAD_REGEXP, NO_CODE
from ncs.search.question import check_length
from ncs.storage.arrays import split
from ncs.storage.documents import NAME, DocumentTable
from ncs.workers import run_limited

if TYPE_CHECKING:
    from ncs.storage.snapshot import Snapshot
    from ncs.types import Mask, Rows

MAX_REGEXP, ROWS = 1_000, 100_000
"""Most characters of an expression, and documents per task of PARSE_SECONDS."""
TEXTS, TEXT = 20, 200
"""Most matching texts of a document, and their characters."""
LIMITS = "this regular expression cannot be matched", "write a simpler one, or filter by language or path"


def matching(snapshot: Snapshot, regexp: str, allowed: Mask | None) -> Mask:
    """Mask of the allowed rows whose code or qualified name matches, bool [n]; `^` and `$` match at lines, as in grep.

    Raises BadInput for an expression that is invalid or takes too long, and for an index without code.
    """
    compile_regexp(regexp)
    if not snapshot.description.config.get("store_code", True):
        raise BadInput(NO_CODE)
    mask = np.zeros(len(snapshot), np.bool_)
    rows = np.arange(len(snapshot)) if allowed is None else np.flatnonzero(allowed)
    for number, _, local in split(snapshot.firsts, rows):
        segment = snapshot.segments[number]
        path = segment.path.absolute() / NAME  # the process may be in another folder
        for start in range(0, len(local), ROWS):
            found = run_limited(_matching_rows, path, regexp, local[start : start + ROWS], limits=LIMITS)
            mask[segment.first + found] = True
    return mask


def matched_texts(regexp: str, codes: Sequence[str]) -> list[list[str]]:
    """The distinct matching texts of each code, in order."""
    return run_limited(_matched_texts, regexp, codes, limits=LIMITS)


def compile_regexp(regexp: str) -> re.Pattern[str]:
    """Raises BadInput for an invalid expression."""
    check_length(regexp, "regexp", MAX_REGEXP)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(regexp, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadInput(BAD_REGEXP.format(regexp=regexp, error=error)) from None


def _matching_rows(path: Path, regexp: str, rows: Rows) -> Rows:
    search = compile_regexp(regexp).search
    with DocumentTable(path) as table:
        return rows[[bool(search(code) or search(name)) for name, code in table.codes(rows.tolist())]]


def _matched_texts(regexp: str, codes: Sequence[str]) -> list[list[str]]:
    finditer = compile_regexp(regexp).finditer
    found = [dict.fromkeys(match[0][:TEXT] for match in finditer(code) if match[0].strip()) for code in codes]
    return [list(texts)[:TEXTS] for texts in found]
