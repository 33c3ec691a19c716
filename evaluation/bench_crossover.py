"""Word vectors by fastText or by LSA: which serves which size of a corpus, on samples of an index by repositories.

    bin/benchmark crossover INDEX --questions QUESTIONS.json [--sizes 1000 3000] [--json FILE]

Each sample is indexed twice, with everything else the same; questions with answers are judged as in
`bin/evaluate-stackoverflow`. Sizes that the file holds already are kept, so they may be measured one after the other.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from evaluation import experiment, stackoverflow
from evaluation.machine import commit, machine
from evaluation.report import aligned
from evaluation.significance import paired_interval
from ncs.errors import BadInput
from ncs.exit_status import ending
from ncs.index import BuildConfig, Index
from ncs.storage.file_roles import Places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.learn.embeddings import Choice

FORMS: Sequence[Choice] = ("fasttext", "lsa")
ALONE, WHOLE = "ncs_centred", "hybrid"
SIZES = (300, 1_000, 3_000, 10_000, 30_000)
READ = 2_000  # documents at a time


@dataclass(frozen=True, slots=True)
class Crossing:
    """One sample. values: form -> ranker -> measure -> the value of each question."""

    functions: int
    repositories: int
    effective: float
    seconds: Mapping[str, float]
    """Form -> what learning its word vectors took."""
    values: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]


@ending("benchmark crossover")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and write it after every size."""
    parser = argparse.ArgumentParser(prog="benchmark crossover", description=__doc__.split("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=experiment.RESULTS / "crossover.json")
    args = parser.parse_args(argv)
    with Index.load(args.index) as index:
        for size in args.sizes:
            rows = sample(Places.load(index.data), index.functions(), size, seed=args.seed)
            _add(args.json, cross(index, rows, args.questions), args.questions.stem)
    sys.stdout.write(table(read(args.json)) + "\n")
    return 0


def sample(places: Places, allowed: NDArray[np.bool_], size: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Rows of whole repositories in an order that the seed decides, as many as there is room for; BadInput for none."""
    owner = places.repository[places.file]
    counts = np.bincount(owner[allowed])
    taken, left = [], size
    for repository in np.random.default_rng(seed).permutation(len(counts)).tolist():
        if 0 < counts[repository] <= left:
            taken.append(repository)
            left -= int(counts[repository])
    if not taken:
        raise BadInput(f"no repository has {size:,} functions or fewer; ask for more")
    return np.flatnonzero(np.isin(owner, taken) & allowed)


def cross(index: Index, rows: NDArray[np.int64], questions: Path) -> Crossing:
    """Index these documents by both forms and ask both."""
    documents = [
        each for at in range(0, len(rows), READ) for each in index.store.documents(rows[at : at + READ].tolist())
    ]
    seconds: dict[str, float] = {}
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    for form in FORMS:
        with tempfile.TemporaryDirectory(prefix="ncs-crossover-") as folder:
            with Index.of(documents, folder, config=BuildConfig(embeddings=form, deduplicate=False)) as made:
                seconds[form] = cast(Mapping[str, float], made.manifest.counts["seconds"])["embeddings"]
                owners = (places := Places.load(made.data)).repository[places.file]
            found = stackoverflow.evaluate(stackoverflow.Request(questions, [Path(folder)], (ALONE, WHOLE), quiet=True))
        values[form] = {
            each.system: {name: [round(value or 0.0, 5) for value in each.values[name]] for name in found.measures}
            for each in found.builds[0].systems
        }
    counts = np.bincount(owners).astype(np.float64)
    counts = counts[counts > 0]
    return Crossing(len(rows), len(counts), round(float(counts.sum() ** 2 / (counts**2).sum()), 1), seconds, values)


def _add(path: Path, found: Crossing, questions: str) -> None:
    kept = [each for each in (read(path) if path.exists() else []) if each.functions != found.functions]
    samples = sorted([*kept, found], key=lambda each: each.functions)
    report = {"commit": commit(), "machine": machine(), "questions": questions, "samples": [asdict(s) for s in samples]}
    text = re.sub(r"\[[^][{}]*\]", lambda list_: " ".join(list_[0].split()), json.dumps(report, indent=1))
    path.write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> list[Crossing]:
    """What was measured before; BadInput for anything else."""
    try:
        return [Crossing(**each) for each in json.loads(path.read_text(encoding="utf-8"))["samples"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is not the JSON of a crossover ({error}); run: bin/benchmark crossover") from None


def table(samples: Sequence[Crossing]) -> str:
    """A row a sample and threshold: both forms alone and in the default ranker, and the difference there."""
    rows = []
    for each in samples:
        for measure in (name for name in each.values[FORMS[0]][WHOLE] if name.startswith("mrr")):
            means = [
                f"{np.mean(each.values[form][ranker][measure]):.3f}" for ranker in (ALONE, WHOLE) for form in FORMS
            ]
            ours, theirs = (dict(enumerate(each.values[form][WHOLE][measure])) for form in reversed(FORMS))
            pair = [{str(key): value for key, value in values.items()} for values in (ours, theirs)]
            same = ours == theirs
            difference, low, high = (0.0, 0.0, 0.0) if same else paired_interval(*pair)
            size = [f"{each.functions:,}", f"{each.repositories} ({each.effective})"]
            rows.append([*size, measure, *means, f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]"])
    head = ["functions", "repositories (effective)", "measure"]
    return aligned(
        [*head, *(f"{form} {where}" for where in ("alone", "hybrid") for form in FORMS), "lsa - fasttext"], rows
    )


if __name__ == "__main__":
    sys.exit(main())
