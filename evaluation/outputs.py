"""The files a result can be written to, the same for every command: JSON, CSV, Markdown, HTML, a score sheet."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evaluation import record, report, sheets
from evaluation.record import Experiment
from ncs.errors import BadInput


def _json(found: Experiment, path: Path) -> None:
    record.write(found, path)


def _csv(found: Experiment, path: Path) -> None:
    sheets.write_csv(found, path)


def _sheet(found: Experiment, path: Path) -> None:
    sheets.write_score_sheets(found, path)


def _markdown(found: Experiment, path: Path) -> None:
    path.write_text(report.markdown([found]), encoding="utf-8")


def _html(found: Experiment, path: Path) -> None:
    from evaluation.html_report import write_page  # matplotlib and jinja2: an extra

    write_page([found], path)


KINDS: Mapping[str, tuple[str, Callable[[Experiment, Path], None]]] = {
    "json": ("everything: values of every question, timings, commit, machine", _json),
    "csv": ("a line a system and threshold", _csv),
    "sheet": ("FRank of every question, as the published score sheet; a second one, .strict, for the other threshold",
              _sheet),
    "markdown": ("the tables", _markdown),
    "html": ("one page with tables and plots; pip install 'neural-code-search[evaluation]'", _html),
}  # fmt: skip
"""option -> what its file holds, how it is written."""


def add_options(parser: argparse.ArgumentParser, kinds: Sequence[str] = tuple(KINDS)) -> None:
    """An option for each kind of file."""
    for kind in kinds:
        names = ["--json", "--out"] if kind == "json" else [f"--{kind}"]
        parser.add_argument(*names, type=Path, metavar="FILE", help=f"write {KINDS[kind][0]}")


def chosen(options: argparse.Namespace) -> dict[str, Path | None]:
    """kind -> file, of the options that `add_options` added."""
    return {kind: getattr(options, kind, None) for kind in KINDS}


def check(files: Mapping[str, Path | None]) -> None:
    """Raise BadInput, before any work, where a file cannot be written; MissingExtra where a page cannot be made."""
    for kind, path in files.items():
        if path is None:
            continue
        if path.is_dir() or not path.absolute().parent.is_dir():
            what = "is a folder" if path.is_dir() else f"stands in no folder ({path.absolute().parent} is not there)"
            raise BadInput(f"--{kind} {path} {what}; name a file")
    if files.get("html"):
        from evaluation.html_report import check_extra

        check_extra()


def state_of(files: Mapping[str, Path | None]) -> Path | None:
    """The state file beside the first output; None where there is no output."""
    first = next((path for path in files.values() if path), None)
    return first.with_name(f"{first.name}.state.jsonl") if first else None


def write(found: Experiment, files: Mapping[str, Path | None]) -> list[Path]:
    """Write every file that was asked for, and give them back."""
    written = []
    for kind, path in files.items():
        if path:
            KINDS[kind][1](found, path)
            written.append(path)
    return written
