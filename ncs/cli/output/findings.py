"""What `ncs doctor` found, a line each."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ncs.cli.output.streams import fancy, terminal, visible

if TYPE_CHECKING:
    from ncs.cli.doctor.findings import Finding, Level

STYLES: dict[Level, str] = {"ok": "green", "note": "dim", "todo": "bold yellow"}


def show_findings(findings: Iterable[Finding]) -> bool:
    """`level  what: command` on stdout, as they come; whether nothing is to be done."""
    healthy = True
    for finding in findings:
        healthy &= finding.level != "todo"
        text = visible(finding.text).replace("\n", " ") + (f": {finding.command}" if finding.command else "")
        if fancy(sys.stdout):
            from rich.text import Text

            line = Text(f"{finding.level:<5} ", STYLES[finding.level]).append(text, "default not bold not dim")
            terminal().print(line, soft_wrap=True)
        else:
            print(f"{finding.level:<5} {text}", flush=True)
    return healthy
