"""CodeSearchNet's first test: mean reciprocal rank of each doc comment's function among 999 drawn distractors.

    python -m evaluation.csn_mrr CORPUS --language python --minutes 10 --out RUNS --json FILE

Husain et al. 2019, section 4.3, from a corpus that `ncs corpus codesearchnet` made to the table: every encoder (all
five, or --encoder, repeatable) learns from the partition train for so many minutes of processor time, or --epochs
(evaluation.csn_training), and is asked the partitions valid and test, repositories that no training saw. An encoder
that was trained into RUNS before is not trained again, and FILE keeps what it has of other languages. --head NAME=RUN
asks a run of `ncs train` too. Ties count against the function; its distractors are the same for every head.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.jsonl import parse_row, read_lines
from evaluation.csn_training import config_of, partition, read, taught
from evaluation.distractors import DISTRACTORS, drawn
from evaluation.learnt_heads import trained_by
from evaluation.machine import commit, machine
from ncs.exit_status import ending
from ncs.learn.heads import Head
from unif.config import Encoder
from unif.sources import code_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

PUBLISHED: dict[Encoder, float] = {"nbow": 0.6167, "cnn": 0.6206, "birnn": 0.4262, "selfatt": 0.7011, "mixed": 0.6505}
"""Table 3: averages of six languages, trained on all of CodeSearchNet."""

NUMBERS = {"epochs": 500, "batch": 256, "rate": 2e-3, "code_words": 200, "query_words": 30, "seed": 0}
"""Settings of a training that can be given, and their defaults."""


def pairs(files: Sequence[Path]) -> list[tuple[str, str, str]]:
    """(docstring, code, language) of every line; raises BadInput for one that is none."""
    found = []
    for path in files:
        for number, line in enumerate(read_lines(path), 1):
            row = parse_row(line, f"{path}:{number}")
            found.append((row.text("docstring"), row.text("code"), row.text("language")))
    return found


TIE = 1e-6
"""Scores as near as this are equal: equal functions differ by as much, by where they stand in a product of matrices."""


def reciprocal_ranks(head: Head, held: Sequence[tuple[str, str, str]], *, seed: int = 0) -> NDArray[np.float64]:
    """Of every pair's function among its distractors, [pairs]."""
    questions = head.encode_queries([docstring for docstring, _, _ in held])
    if head.reads == "source":
        codes = head.encode_sources([(code, language) for _, code, language in held])
    else:
        words = [code_words(code, language, doc=False) for _, code, language in held]
        codes = head.code.vectors([head.code.tokens.ids(each) for each in words])
    among = drawn({str(at): [at] for at in range(len(held))}, len(held), seed=seed)
    found = np.zeros(len(held))
    for at, rows in enumerate(among.values()):
        scores = codes[rows] @ questions[at]
        found[at] = 1 / int((scores >= scores[rows == at][0] - TIE).sum())
    return found


def measured(head: Head, held: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Of one head: the MRR, its bootstrap interval, and the rank of every pair."""
    values = reciprocal_ranks(head, held)
    means = np.random.default_rng(0).choice(values, (2_000, len(values))).mean(axis=1)
    low, high = (round(float(end), 4) for end in np.percentile(means, [2.5, 97.5]))
    ranks = np.rint(1 / values).astype(int).tolist()
    return {"mrr": round(float(values.mean()), 4), "interval": [low, high], "ranks": ranks}


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown, a row an encoder, the paper's figures beside ours."""
    head = ["encoder", "pairs seen", "epochs", "pairs/s", f"MRR among {DISTRACTORS} [95 %]", "paper's"]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for name, each in found.items():
        low, high = each["interval"]
        told = each.get("lesson", {})
        speed = f"{told['seen'] / told['minutes'] / 60:,.0f}" if told else ""
        seen = f"{told['seen']:,} | {told['epochs']:.1f} | {speed}" if told else "| |"
        known = PUBLISHED.get(each["encoder"])
        lines.append(f"| {name} | {seen} | {each['mrr']:.3f} [{low:.3f}, {high:.3f}] | {known or ''} |")
    return "\n".join(lines)


@ending("csn_mrr")
def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is not trained yet, measure, print the table, write the JSON."""
    sys.stdout.write(table(_found(_parser().parse_args(arguments))) + "\n")
    return 0


def _found(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Name -> its figures; the JSON is written after each, so that a stopped run has lost one at most."""
    language = options.language
    held = pairs([file for name in ("valid", "test") for file in partition(options.corpus, language, name)])
    room = options.out / language
    beginning, learnt = read(partition(options.corpus, language, "train"), room / "pairs")
    numbers = {name: getattr(options, name) for name in NUMBERS}
    about = {
        "commit": commit(),
        "machine": machine(),
        "held_out_pairs": len(held),
        "train_pairs": len(learnt),
        **numbers,
    }
    found: dict[str, dict[str, Any]] = {}
    for encoder in options.encoder or PUBLISHED:
        lesson = taught(config_of(encoder, **numbers), beginning, learnt, options.minutes, room / encoder)
        found[encoder] = {"encoder": encoder, "lesson": asdict(lesson), **measured(Head.load(room / encoder), held)}
        sys.stderr.write(f"{encoder}: {found[encoder]['mrr']:.3f}\n")
        _write(options.json, language, {**about, "heads": found})
    for name, _, run in (text.partition("=") for text in options.head):
        settings = trained_by(Path(run))
        found[name] = {
            "encoder": settings["encoder"],
            **measured(Head.load(Path(run)), held),
            "settings": settings,
        }
        _write(options.json, language, {**about, "heads": found})
    return found


def _write(file: Path, language: str, told: Mapping[str, Any]) -> None:
    kept = json.loads(file.read_bytes()) if file.is_file() else {}
    file.write_text(json.dumps({**kept, "published": PUBLISHED, language: told}) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluation.csn_mrr", description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path, help="folder that `ncs corpus codesearchnet` made")
    parser.add_argument("--language", default="python", help="(default %(default)s)")
    parser.add_argument("--encoder", action="append", choices=sorted(PUBLISHED), help="repeatable; else all five")
    parser.add_argument("--minutes", type=float, default=10.0, help="processor time an encoder (default %(default)s)")
    for name, number in NUMBERS.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(number), default=number, help="(default %(default)s)"
        )
    parser.add_argument("--out", type=Path, required=True, help="folder for what is learnt, one a language and encoder")
    parser.add_argument("--head", action="append", default=[], metavar="NAME=RUN", help="of `ncs train`; repeatable")
    parser.add_argument("--json", type=Path, required=True)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
