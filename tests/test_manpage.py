"""The manual page, and that every command explains itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ncs.cli.main import command
from ncs.cli.manpage import commands, manpage

NAMES = [name for name, _ in commands(command())]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_an_example_that_begins_with_its_name(name: str) -> None:
    help = dict(commands(command()))[name].help
    assert re.search(rf"Example: {re.escape(name)}\b", help)


def test_every_command_and_option_is_on_the_manual_page() -> None:
    page = manpage().replace("\\-", "-")
    for name, each in commands(command()):
        assert f".SS {name} [OPTIONS]" in page
        for option in each.params:
            if option.param_type_name != "argument":
                assert re.search(rf"\\fB{re.escape(', '.join([*option.opts, *option.secondary_opts]))}\b", page)


def test_the_help_and_the_page_name_the_exit_statuses() -> None:
    told = (
        "0 found or done; 1 nothing found, or not good enough; 2 error, one line on stderr with the remedy; 130 stopped"
    )
    assert told in command().epilog
    assert told in manpage().replace("\\-", "-")


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_groff_has_nothing_to_say_about_the_page(tmp_path: Path) -> None:
    (tmp_path / "ncs.1").write_text(manpage(), encoding="utf-8")
    groff = ["groff", "-man", "-ww", "-Tutf8", "-k", str(tmp_path / "ncs.1")]
    done = subprocess.run(groff, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    plain = re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)
    assert "ncs - search code by what it does" in plain
    assert "\n       -A, --all\n" in plain
