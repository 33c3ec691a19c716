"""The commands about CodeSearchNet: make a corpus, read it as pairs or as an index, write the Challenge's CSV.

ncs corpus codesearchnet SRC OUT                           the corpus of repositories
python -m corpora codesearchnet pairs CORPUS FILE          pairs for: ncs train unif -i INDEX --pairs FILE
python -m corpora codesearchnet namesakes CORPUS... FILE   pairs of two functions of one name, with doc comments
python -m corpora codesearchnet index CORPUS INDEX         an index of its functions, ids are URLs
python -m corpora codesearchnet submission QUERIES CSV --index INDEX      a ranker's answers for the Challenge
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from corpora.codesearchnet import challenge, pairs
from corpora.codesearchnet.collect import Rules
from corpora.codesearchnet.duplicates import HeldOutFunctions
from corpora.codesearchnet.licenses import ALLOWED
from corpora.codesearchnet.pipeline import make_corpus, table_1, table_removed
from corpora.jsonl import read_rows
from corpora.pairs import Pair, write_pairs
from corpora.trec import read_run
from ncs.console import show_table, tracker
from ncs.errors import BadInput
from ncs.progress import Track, silent


def make(
    sources: Sequence[Path],
    out: Path,
    *,
    language: Sequence[str] = (),
    licence: Sequence[str] = (),
    any_licence: bool = False,
    seed: int = 0,
    workers: int | None = None,
    track: Track = silent,
) -> dict[str, Any]:
    """Make a corpus (`pipeline.make_corpus`); its statistics."""
    allowed = () if any_licence else tuple(sorted(licence or ALLOWED))
    rules = Rules(tuple(sorted(language)), allowed, any_licence, seed)
    return make_corpus(sources, out, rules, workers=workers, track=track)


def show(statistics: dict[str, Any]) -> None:
    """Table 1, what was removed, and the repositories, on stdout."""
    repositories = statistics["repositories"]
    show_table("functions kept (Table 1)", *table_1(statistics))
    show_table("functions found and what removed them", *table_removed(statistics))
    rows = [("found", f"{repositories['found']:,}"), ("read", f"{repositories['read']:,}")]
    rows += [(f"left out: {reason}", f"{n:,}") for reason, n in repositories["left out"].items()]
    rows += [
        (f"licence {name}", f"{n:,}") for name, n in sorted(repositories["licences"].items(), key=lambda each: -each[1])
    ]
    show_table("repositories", rows)


def add_parser(commands: Any) -> None:
    """The commands of `python -m corpora codesearchnet`."""
    parser = commands.add_parser(
        "codesearchnet", help="a corpus read back; the Challenge's CSV", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, about, run in (
        ("pairs", "pairs as JSON lines, for training", _pairs),
        ("namesakes", "pairs of two functions of one name as JSON lines, for training", _namesakes),
        ("index", "an index of all functions", _index),
    ):
        each = subparsers.add_parser(name, help=about)
        each.add_argument("corpus", type=Path, metavar="CORPUS", nargs="+" if name == "namesakes" else None)
        each.add_argument("out", type=Path, metavar="INDEX" if name == "index" else "FILE")
        each.add_argument("--language", action="append", default=[], help="only this one; repeatable")
        if name != "namesakes":
            each.add_argument("--partition", choices=("train", "valid", "test"), default="", help="only this one")
        each.add_argument("-q", "--quiet", action="store_true", help="no progress")
        if name != "index":
            each.add_argument(
                "--apart", type=Path, metavar="FILE",
                help="JSON lines with code, as cosqa's: no pair may have nearly the code or the words of one",
            )  # fmt: skip
        each.set_defaults(run=run)
    submission = subparsers.add_parser("submission", help="language,query,GitHubUrl of an index or of TREC runs")
    submission.add_argument("queries", type=Path, metavar="QUERIES", help="queries.csv")
    submission.add_argument("out", type=Path, metavar="CSV")
    submission.add_argument("--index", type=Path, help="index whose ids are URLs")
    submission.add_argument("--ranker", default=None, help="of the index (default: the index's)")
    submission.add_argument("--language", action="append", default=[], help="of the index; repeatable")
    submission.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="LANGUAGE=FILE",
        dest="runs",
        help="TREC run, query ids 1, 2 ...; repeatable",
    )
    submission.add_argument("-k", type=int, default=challenge.DEPTH, help="functions a query (default %(default)s)")
    submission.set_defaults(run=_submission)


def _pairs(options: argparse.Namespace) -> int:
    return _write(pairs.pairs(options.corpus, options.language, options.partition), options)


def _namesakes(options: argparse.Namespace) -> int:
    return _write(pairs.namesakes(options.corpus, options.language), options)


def _write(rows: Iterator[Pair], options: argparse.Namespace) -> int:
    dropped: Counter[str] = Counter()
    if options.apart:
        held_out = ((row.text("code"), row.text("language")) for row in read_rows(options.apart))
        rows = HeldOutFunctions(held_out).without(rows, dropped)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    count = write_pairs(tracker(options.quiet)(rows, "pairs", unit="pairs"), options.out)
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted(dropped.items()))
    sys.stdout.write(
        f"{count:,} pairs" + (f"; left out as like {options.apart.name}: {reasons}" if reasons else "") + "\n"
    )
    return 0


def _index(options: argparse.Namespace) -> int:
    from ncs.index import Index

    documents = pairs.documents(options.corpus, options.language, options.partition)
    with Index.of(documents, options.out, track=tracker(options.quiet)) as index:
        sys.stdout.write(f"{len(index):,} functions -> {options.out}\n")
    return 0


def _submission(options: argparse.Namespace) -> int:
    queries = challenge.read_queries(options.queries)
    if bool(options.runs) == (options.index is not None):
        raise BadInput("name an index with --index, or a run for each language with --run java=FILE")
    runs = {}
    for argument in options.runs:
        language, _, file = argument.partition("=")
        runs[language] = read_run(Path(file))
    if options.index is not None:
        from ncs.index import Index

        with Index.load(options.index) as index:
            runs = challenge.runs_of(index, queries, options.language, k=options.k, ranker=options.ranker)
    count = challenge.write_submission(runs, queries, options.out, k=options.k)
    sys.stdout.write(f"{count:,} rows of {len(runs)} languages -> {options.out}\n")
    return 0
