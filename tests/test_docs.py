"""README and docs: every command in them is one that the program takes, and every link leads to a file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from ncs.cli.main import FORWARDED, app
from ncs.extract import LANGUAGES

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "evaluation/README.md"]
LINE = re.compile(r"^ {4}(?:\$ )?(ncs [a-z-]+.*)$", re.MULTILINE)
COMMANDS = sorted(
    {shlex.join(shlex.split(line, comments=True)) for page in PAGES for line in LINE.findall(page.read_text("utf-8"))}
)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_pages_is_taken_by_the_program(line: str) -> None:
    _, name, *arguments = shlex.split(line)
    program: Any = typer.main.get_command(app)
    with program.make_context("ncs", [name, *arguments]) as context:
        command = program.get_command(context, name)
        assert command is not None
        if name not in FORWARDED:
            command.make_context(name, arguments, parent=context).close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_table_of_languages_has_the_rows_of_the_program() -> None:
    page = (ROOT / "docs/languages.md").read_text("utf-8")
    languages = LANGUAGES.values()
    rows = sorted(f"| {row.name} | `{' '.join(row.extensions)}` | {', '.join(row.kinds)} |" for row in languages)
    table = page.partition("| language | extensions |")[2].partition("\n\n")[0]
    assert table.splitlines()[2:] == rows
    assert f"| code with a grammar | {len(rows)} languages, below |" in page
