"""CodeSearchNet's first test: mean reciprocal rank of each doc comment's function among 999 drawn distractors.

    python -m evaluation.csn_mrr --held python_test_0.jsonl.gz --head nbow=RUN --head cnn=RUN --json FILE

Husain et al. 2019, section 4.3. The files hold functions of repositories that no training saw, in CodeSearchNet's
fields (`ncs corpus codesearchnet` makes them from repositories at hand); a head is a run of `ncs train`. Ties count
against the function. The distractors of a function are the same for every head (evaluation.distractors).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.jsonl import parse_row, read_lines
from evaluation.distractors import DISTRACTORS, drawn
from evaluation.learnt_heads import trained_by
from evaluation.machine import commit, machine
from ncs.mains import ending
from unif.head import Head, opened
from unif.reading import code_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

PUBLISHED = {"nbow": 0.6167, "cnn": 0.6206, "birnn": 0.4262, "selfatt": 0.7011, "mixed": 0.6505}
"""Table 3: averages of six languages, trained on all of CodeSearchNet."""


def pairs(files: Sequence[Path]) -> list[tuple[str, str, str]]:
    """(docstring, code, language) of every line; raises BadInput for one that is none."""
    found = []
    for path in files:
        for number, line in enumerate(read_lines(path), 1):
            row = parse_row(line, f"{path}:{number}")
            found.append((row.text("docstring"), row.text("code"), row.text("language")))
    return found


def reciprocal_ranks(head: Head, held: Sequence[tuple[str, str, str]], *, seed: int = 0) -> NDArray[np.float64]:
    """Of every pair's function among its distractors, [pairs]."""
    questions = head.questions([docstring for docstring, _, _ in held])
    if head.reads == "source":
        codes = head.sources([(code, language) for _, code, language in held])
    else:
        words = [code_words(code, language, doc=False) for _, code, language in held]
        codes = head.code.vectors([head.code.tokens.ids(each) for each in words])
    among = drawn({str(at): [at] for at in range(len(held))}, len(held), seed=seed)
    found = np.zeros(len(held))
    for at, rows in enumerate(among.values()):
        scores = codes[rows] @ questions[at]
        found[at] = 1 / int((scores >= scores[rows == at][0]).sum())
    return found


@ending("csn_mrr")
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.csn_mrr", description=__doc__.partition("\n")[0])
    parser.add_argument("--held", type=Path, action="append", required=True, metavar="FILE")
    parser.add_argument("--head", action="append", required=True, metavar="NAME=RUN")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args(arguments)
    held, heads = pairs(options.held), {}
    lines = [f"| encoder | pairs | MRR among {DISTRACTORS} | [95 %] | published |", "|---|---|---|---|---|"]
    for name, _, run in (text.partition("=") for text in options.head):
        settings, encoder = trained_by(Path(run)), opened(Path(run))
        ranks = reciprocal_ranks(encoder, held)
        learnt = json.loads((Path(run) / "pairs" / "reading.json").read_bytes())["rows"]
        means = np.random.default_rng(0).choice(ranks, (2_000, len(ranks))).mean(axis=1)
        low, high = (round(float(end), 4) for end in np.percentile(means, [2.5, 97.5]))
        values = [round(float(value), 6) for value in ranks]
        about: dict[str, Any] = {"pairs": learnt, "mrr": round(float(ranks.mean()), 4), "interval": [low, high]}
        heads[name] = {**about, "settings": settings, "values": values}
        known = PUBLISHED.get(settings["model"]["encoder"])
        lines.append(f"| {name} | {learnt:,} | {ranks.mean():.3f} | [{low:.3f}, {high:.3f}] | {known or ''} |")
    found = {"commit": commit(), "machine": machine(), "held_out_pairs": len(held), "heads": heads}
    options.json.write_text(json.dumps(found) + "\n", encoding="utf-8")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
