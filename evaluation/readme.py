"""The tables of all committed results, written into evaluation/README.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

from evaluation import ablation
from evaluation.record import read
from evaluation.report import section
from ncs.errors import BadInput

ABLATION = "ablation.json"
BEGIN, END = "<!-- tables: bin/evaluate --readme -->", "<!-- end of tables -->"


def readme(text: str, results: Path) -> str:
    """The text with the tables of all results between its two marks; BadInput where these are missing."""
    if BEGIN not in text or END not in text:
        raise BadInput(f"no {BEGIN} ... {END} to put the tables between; add these two lines")
    sections = [_section(path) for path in sorted(results.glob("*.json")) if _is_experiment(path)]
    if (results / ABLATION).exists():
        sections.append(ablation.section(ablation.read(results / ABLATION)))
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    return f"{before}{BEGIN}\n\n" + "\n".join(sections) + after


def _is_experiment(path: Path) -> bool:
    return re.search(r'"corpus_digest"', path.read_text(encoding="utf-8")) is not None


def _section(path: Path) -> str:
    experiment = read(path)
    config = json.dumps(experiment.builds[0].config, sort_keys=True)
    return f"{section(path.stem, experiment)}Configuration: `{config}`\n"
