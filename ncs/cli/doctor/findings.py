"""What a check found, as a value: one line, and the command that does something about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Level: TypeAlias = Literal["ok", "note", "todo"]
"""All is well; good to know, and nothing needs doing; something is to be done."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about the installation or an index. command: what to type, where something can be done."""

    level: Level
    about: str
    text: str
    command: str | None = None


def as_dict(findings: Iterable[Finding]) -> Mapping[str, Any]:
    """For JSON: healthy (nothing is to be done) and findings."""
    told = [asdict(finding) for finding in findings]
    return {"healthy": all(finding["level"] != "todo" for finding in told), "findings": told}


def typed(*words: str | Path) -> str:
    """A command as it can be typed, whatever folders are called.

    >>> typed("ncs", "update", "-i", "my index")
    "ncs update -i 'my index'"
    """
    return shlex.join(map(str, words))
