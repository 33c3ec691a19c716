"""Learnt heads on development questions: each alone, centred, and as a signal of the default ranker, per-query values.

    python -m evaluation.learnt_heads --index INDEX --questions QUESTIONS.json --head NAME=RUN... --json FILE
    python -m evaluation.learnt_heads --index INDEX --corpus nlp2api --head NAME=RUN... --json FILE

Questions in folds (evaluation.other_questions), each asked of the head that was trained without it, are one set:

    ... --name NAME --questions A.json --questions B.json --head NAME=RUN-WITHOUT-A,RUN-WITHOUT-B...

A head is the folder of a run of `ncs train`, whose config.json (pairs, stages, rates) is kept beside the figures, so
that a row of the table can be trained again. QUESTIONS.json is judged by similarity to its answers at both thresholds
(evaluation.judged), a corpus by its qrels; where there is no INDEX, that of a corpus is built. FILE gets one entry a
set; those that are there for other sets stay. What each head counts in the default ranker is --weight, repeatable.
`python -m evaluation.heads_table FILE` shows again what FILE holds, sets by themselves and together.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from corpora import load_corpus
from evaluation.machine import commit, machine
from evaluation.reciprocal_ranks import Judge, Ranks, by_qrels, by_similarity
from evaluation.significance import paired_interval
from ncs.errors import BadInput
from ncs.exit_status import ending
from ncs.index import BuildConfig, Index
from ncs.search.hybrid import HybridRanker
from ncs.search.rankers import Ranker
from ncs.search.unif import UnifRanker
from ncs.storage.document_facts import Structure

BASES = ("bm25", "ncs", "ncs_centred", "hybrid")


def bases(index: Index, judged: Judge) -> tuple[dict[str, Ranker], dict[str, Ranks]]:
    """Rankers without a head, and their reciprocal ranks."""
    rankers = {name: index.fitted(name, head=0.0) if name == "hybrid" else index.ranker(name) for name in BASES}
    return rankers, {name: _told(name, judged(ranker)) for name, ranker in rankers.items()}


def row_of(
    index: Index, name: str, run: Path, rankers: Mapping[str, Ranker], weights: float | Sequence[float], judged: Judge
) -> dict[str, Ranks]:
    """Label -> reciprocal ranks of a head: as it was trained, the other way (raw or centred), and in `hybrid` with each
    weight, which the label says where there are several."""
    weights = [weights] if isinstance(weights, float) else weights
    alone = UnifRanker(head=str(run))
    alone.fit(index.words())
    moved = UnifRanker(head=str(run), centre=not alone.head.about.get("centre"))
    moved.fit(index.words())
    other = "raw" if alone.head.about.get("centre") else "centred"
    each: list[tuple[str, Ranker]] = [(name, alone), (f"{name}, {other}", moved)]
    plain, structure = cast(HybridRanker, rankers["hybrid"]), Structure.load(index.data)
    for weight in weights:
        fused = HybridRanker()
        fused.open(plain.rankers, structure, plain.learnt, alone, weight)
        each.append((f"hybrid with {name}" + (f" at {weight:g}" if len(weights) > 1 else ""), fused))
    return {label: _told(label, judged(ranker)) for label, ranker in each}


def rows_of(
    index: Index, heads: Mapping[str, Path], weights: float | Sequence[float], judged: Judge
) -> dict[str, Ranks]:
    """Label -> its reciprocal ranks: rankers without a head, then each head (`row_of`)."""
    rankers, found = bases(index, judged)
    for name, run in heads.items():
        found |= row_of(index, name, run, rankers, weights, judged)
    return found


def in_folds(
    index: Index, files: Sequence[Path], heads: Mapping[str, Sequence[Path]], weights: Sequence[float]
) -> dict[str, Ranks]:
    """Label -> reciprocal ranks of the questions of all files, those of the n-th asked of the n-th run of a head.

    A head of one run is asked all. Raises BadInput for another number of runs, and for a question of two files.
    """
    if odd := [name for name, runs in heads.items() if len(runs) not in (1, len(files))]:
        raise BadInput(f"{odd[0]!r} has {len(heads[odd[0]])} runs for {len(files)} files of questions; give one each")
    found: dict[str, Ranks] = {}
    for at, file in enumerate(files):
        own = {name: runs[at % len(runs)] for name, runs in heads.items()}
        for label, ranks in rows_of(index, own, weights, by_similarity(index, file)).items():
            for column, values in ranks.items():
                there = found.setdefault(label, {}).setdefault(column, {})
                if twice := there.keys() & values.keys():
                    raise BadInput(f"{file}: the question {min(twice)!r} is in another file too; ids must differ")
                there.update(values)
    return found


def trained_by(run: Path) -> dict[str, Any]:
    """The settings of a training run; of its files the names only."""
    settings: dict[str, Any] = json.loads((run / "config.json").read_bytes())
    for each in {"pairs", "questions"} & settings.keys():
        settings[each] = {Path(file).name: weight for file, weight in settings[each].items()}
    settings |= {"answers": [Path(file).name for file in settings["answers"]]} if settings.get("answers") else {}
    settings |= {"teacher": Path(settings["teacher"]).name} if settings.get("teacher") else {}
    return {**settings, "leave_out": settings["leave_out"] and Path(settings["leave_out"]).name}


def _of_folds(runs: Sequence[Path]) -> dict[str, Any]:
    return {"runs": [run.name for run in runs]} if len(runs) > 1 else {}


def _told(label: str, ranks: Ranks) -> Ranks:
    means = "  ".join(f"{column} {np.mean(list(values.values())):.3f}" for column, values in ranks.items())
    sys.stderr.write(f"{label}: {means}\n")
    return ranks


def table(found: Mapping[str, Ranks]) -> str:
    """Markdown: means; in brackets the difference to hybrid where it has a head, else to bm25, and its interval."""
    columns = list(next(iter(found.values())))
    lines = [f"| ranker | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for label, ranks in found.items():
        base = "hybrid" if label.startswith("hybrid with") else "bm25"
        cells = []
        for column in columns:
            text = f"{np.mean(list(ranks[column].values())):.3f}"
            if label != base:
                change, low, high = paired_interval(ranks[column], found[base][column])
                text += f" ({change:+.3f} [{low:+.3f}, {high:+.3f}])"
            cells.append(text)
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


@ending("learnt_heads")
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.learnt_heads", description=__doc__.partition("\n")[0])
    parser.add_argument("--index", type=Path, required=True)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--questions", type=Path, action="append", help="with answers, judged by similarity; repeatable")
    which.add_argument("--corpus", help="a corpus with qrels, whose documents the index holds")
    parser.add_argument("--data", type=Path, help="where corpora lie")
    parser.add_argument("--head", action="append", default=[], metavar="NAME=RUN[,RUN...]")
    parser.add_argument("--weight", type=float, action="append", help="of a head in hybrid (default .3); repeatable")
    parser.add_argument("--name", help="of the set in FILE (default: the corpus, or the first file of questions)")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args(arguments)
    told = (text.partition("=") for text in options.head)
    heads = {name: list(map(Path, runs.split(","))) for name, _, runs in told}
    weights = options.weight or [0.3]
    if options.corpus and not options.index.exists():
        documents = load_corpus(options.corpus, options.data).documents()
        Index.of(documents, options.index, config=BuildConfig(deduplicate=False)).close()
    with Index.load(options.index) as index:
        if options.corpus:
            judged = by_qrels(index, options.corpus, options.data)
            found = rows_of(index, {name: runs[0] for name, runs in heads.items()}, weights, judged)
        else:
            found = in_folds(index, options.questions, heads, weights)
        about: dict[str, Any] = {"commit": commit(), "machine": machine(), "documents": len(index)}
    name = options.name or options.corpus or options.questions[0].stem
    kept: dict[str, Any] = json.loads(options.json.read_bytes()) if options.json.is_file() else {}
    settings = {each: trained_by(runs[0]) | _of_folds(runs) for each, runs in heads.items()}
    about |= {"weight": weights[0] if len(weights) == 1 else weights}
    kept[name] = {**about, "heads": settings, "reciprocal_ranks": found, "intervals": "paired bootstrap, 95 %"}
    options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{name}\n\n{table(found)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
