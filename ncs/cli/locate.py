"""`ncs locate`: the files to edit for a bug report."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from typer import Argument, Option

from ncs.cli import options
from ncs.cli.current import open_current
from ncs.cli.hits import choose_format, show
from ncs.errors import SourceError
from ncs.files import open_regular
from ncs.search.question import MAX_QUERY

_BYTES = 4 * MAX_QUERY
_FILES = (".md", ".txt", ".log")
"""How the name of a file with a report ends: one that is missing is no report."""


def locate(
    report: Annotated[
        str,
        Argument(
            metavar="REPORT", help="The report: its text, a file that holds it, or - for stdin.", show_default=False
        ),
    ],
    k: Annotated[int, Option("-n", "--limit", "-k", metavar="N", help="How many files.")] = 10,
    globs: options.Globs = None,
    languages: options.Languages = None,
    languages_not: options.LanguagesNot = None,
    path: options.PathGlob = None,
    repository: options.Repository = None,
    no_tests: options.NoTests = False,
    paths: options.Paths = False,
    form: options.FormatOption = None,
    as_json: options.Json = False,
    jsonl: options.Jsonl = False,
    color: options.Color = "auto",
    index: options.IndexOption = None,
    no_update: options.NoUpdate = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the files to edit for a bug report, each with reasons. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs locate issue.md; gh issue view 42 | ncs locate -; ncs locate "DataFrame.plot ignores ylim"
    """
    from ncs.answer import locate

    form = choose_format(form, as_json=as_json, jsonl=jsonl, paths=paths, color=color)
    text = _read(report)
    with open_current(index, update=not no_update, quiet=quiet) as opened_index:
        answer = locate(
            opened_index, text, k, language=languages, language_not=languages_not, repository=repository, path=path,
            glob=globs, no_tests=no_tests,
        )  # fmt: skip
        count = show(answer, form, opened_index.snapshot, code=False, color=color, quiet=quiet)
        options.end(answer, count, quiet=quiet)


def _read(report: str) -> str:
    """The first MAX_QUERY characters of the report."""
    if report == "-":
        return sys.stdin.buffer.read(_BYTES).decode("utf-8", "replace")[:MAX_QUERY]
    looks_so = ("/" in report or report.endswith(_FILES)) and not any(map(str.isspace, report))
    if not (looks_so or os.path.exists(report)):  # noqa: PTH110
        return report
    try:
        with open_regular(report) as file:
            return file.read(_BYTES).decode("utf-8", "replace")[:MAX_QUERY]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"cannot read {report} ({reason}); name a file with the report, or quote its text") from error
