"""CodeSearchNet's first test: mean reciprocal rank of each doc comment's function among 999 drawn distractors.

    python -m evaluation.csn_mrr CORPUS --language python --head NAME=RUN... --json FILE

Husain et al. 2019, section 4.3: CORPUS was made by `ncs corpus codesearchnet`; every head, a run of `ncs train` on its
partition train, is asked the partitions valid and test, repositories that no training saw. Ties count against the
function; its distractors are the same for every head.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.jsonl import parse_row, read_lines
from evaluation.distractors import DISTRACTORS, draw_distractors
from evaluation.machine import commit, machine
from evaluation.reports import markdown_table
from ncs.errors import BadInput
from ncs.exit_status import main_program
from ncs.learn.heads import Head
from unif.sources import code_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

PUBLISHED = {"nbow": 0.6167, "cnn": 0.6206, "birnn": 0.4262, "selfatt": 0.7011, "mixed": 0.6505}
"""Table 3: averages of six languages, trained on all of CodeSearchNet."""
TIE = 1e-6
"""Scores this close are equal: equal functions differ by as much, by where they stand in a product of matrices."""
PairText = tuple[str, str, str]
"""Docstring, code, language."""


@main_program("csn_mrr")
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.csn_mrr", description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path, help="folder made by `ncs corpus codesearchnet`")
    parser.add_argument("--language", default="python", help="(default %(default)s)")
    parser.add_argument("--head", action="append", required=True, metavar="NAME=RUN", help="of `ncs train`; repeatable")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    pairs = [
        pair for name in ("valid", "test") for pair in read_pairs(partition(options.corpus, options.language, name))
    ]
    results = {}
    for name, _, run in (text.partition("=") for text in options.head):
        results[name] = {**settings_of(Path(run)), **measure(Head.load(Path(run)), pairs)}
        sys.stderr.write(f"{name}: {results[name]['mrr']:.3f}\n")
    sys.stdout.write(table(results) + "\n")
    if options.json:
        about = {"commit": commit(), "machine": machine(), "language": options.language, "pairs": len(pairs)}
        report = {**about, "published": PUBLISHED, "heads": results}
        options.json.write_text(json.dumps(report) + "\n", encoding="utf-8")
    return 0


def partition(corpus: Path, language: str, name: str) -> list[Path]:
    """The files of a partition; raises BadInput where there are none."""
    files = sorted((corpus / language / "final" / "jsonl" / name).glob("*.jsonl.gz"))
    if not files:
        raise BadInput(f"{corpus} has no {name} pairs in {language}; make it by: ncs corpus codesearchnet")
    return files


def read_pairs(files: Sequence[Path]) -> list[PairText]:
    """The pair of every line; raises BadInput for a line that is none."""
    pairs = []
    for path in files:
        for number, line in enumerate(read_lines(path), 1):
            row = parse_row(line, f"{path}:{number}")
            pairs.append((row.text("docstring"), row.text("code"), row.text("language")))
    return pairs


def settings_of(run: Path) -> dict[str, Any]:
    """The encoder and the settings of a training run; of its files the names only."""
    settings: dict[str, Any] = json.loads((run / "config.json").read_bytes())
    for each in {"pairs", "questions"} & settings.keys():
        settings[each] = {Path(file).name: weight for file, weight in settings[each].items()}
    if settings.get("leave_out"):
        settings["leave_out"] = Path(settings["leave_out"]).name
    return {"encoder": settings["encoder"], "settings": settings}


def measure(head: Head, pairs: Sequence[PairText]) -> dict[str, Any]:
    """Of one head: the MRR, its bootstrap interval, and the rank of every pair."""
    values = reciprocal_ranks(head, pairs)
    means = np.random.default_rng(0).choice(values, (2_000, len(values))).mean(axis=1)
    low, high = (round(float(end), 4) for end in np.percentile(means, [2.5, 97.5]))
    ranks = np.rint(1 / values).astype(int).tolist()
    return {"mrr": round(float(values.mean()), 4), "interval": [low, high], "ranks": ranks}


def reciprocal_ranks(head: Head, pairs: Sequence[PairText], *, seed: int = 0) -> NDArray[np.float64]:
    """Of every pair's function among its distractors, [pairs]."""
    queries = head.encode_queries([docstring for docstring, _, _ in pairs])
    if head.reads == "source":
        codes = head.encode_sources([(code, language) for _, code, language in pairs])
    else:
        words = [code_words(code, language, doc=False) for _, code, language in pairs]
        codes = head.code.vectors([head.code.tokens.ids(each) for each in words])
    candidates = draw_distractors({str(at): [at] for at in range(len(pairs))}, len(pairs), seed=seed)
    values = np.zeros(len(pairs))
    for at, rows in enumerate(candidates.values()):
        scores = codes[rows] @ queries[at]
        values[at] = 1 / int((scores >= scores[rows == at][0] - TIE).sum())
    return values


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """A row per head, the paper's figure of its encoder beside it."""
    rows = [
        [
            name,
            each["encoder"],
            f"{each['mrr']:.3f} [{each['interval'][0]:.3f}, {each['interval'][1]:.3f}]",
            f"{PUBLISHED.get(each['encoder'], '')}",
        ]
        for name, each in results.items()
    ]
    return markdown_table(["head", "encoder", f"MRR among {DISTRACTORS} [95 %]", "paper's"], rows)


if __name__ == "__main__":
    raise SystemExit(main())
