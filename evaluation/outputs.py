"""The files a result can be written to, the same for every command: JSON, CSV, Markdown, HTML, a score sheet."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evaluation import record, report, sheets
from evaluation.record import Experiment
from ncs.errors import BadInput

Pair = tuple[str, str]
"""Two systems that a page compares question by question."""


def _json(found: Sequence[Experiment], path: Path) -> None:
    if len(found) != 1:
        raise BadInput(f"--json {path} takes the result of one corpus; name one, or leave --json away")
    record.write(found[0], path)


def _csv(found: Sequence[Experiment], path: Path) -> None:
    sheets.write_csv(found, path)


def _sheet(found: Sequence[Experiment], path: Path) -> None:
    if len(found) != 1:
        raise BadInput(f"--sheet {path} takes the result of one corpus; name one, or leave --sheet away")
    sheets.write_score_sheets(found[0], path)


def _markdown(found: Sequence[Experiment], path: Path) -> None:
    path.write_text(report.markdown(found), encoding="utf-8")


def _html(found: Sequence[Experiment], path: Path, pair: Pair | None = None) -> None:
    from evaluation.html_report import write_page  # matplotlib and jinja2: an extra

    write_page(found, path, pair=pair)


KINDS: Mapping[str, tuple[str, Callable[[Sequence[Experiment], Path], None]]] = {
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
    parser.add_argument("--pair", nargs=2, metavar=("A", "B"), help="rankers the page compares question by question")


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


def write(found: Sequence[Experiment], files: Mapping[str, Path | None], *, pair: Pair | None = None) -> list[Path]:
    """Write every file that was asked for, and give them back; pair: for the page, else the best system and bm25."""
    written = []
    for kind, path in files.items():
        if path:
            if kind == "html":
                _html(found, path, pair)
            else:
                KINDS[kind][1](found, path)
            written.append(path)
    return written
