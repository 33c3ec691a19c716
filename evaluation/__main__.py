"""`bin/evaluate`: rankers over corpora, their figures as a table and as JSON."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from corpora import CORPORA, load_corpus
from evaluation import experiment, record, report
from evaluation.asking import System
from evaluation.metrics import parse_measure
from evaluation.settings import grid
from ncs.errors import BadInput, NcsError
from ncs.progress import silent
from ncs.rankers import ON_REQUEST, RANKERS

T = TypeVar("T")
README = Path(__file__).parent / "README.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, told in one line on stderr."""
    try:
        return _run(_parser().parse_args(arguments))
    except NcsError as error:
        sys.stderr.write(f"evaluate: {error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bin/evaluate", description=__doc__)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=f"{', '.join(CORPORA)}, or a BEIR folder")
    parser.add_argument(
        "--ranker", action="append", metavar="R", help="ncs, or with settings ncs:centre=true; default: all; repeatable"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="a setting of the build, as fasttext.dim=100; several values (50,100) are tried in turn; repeatable",
    )  # fmt: skip
    parser.add_argument("--measure", action="append", metavar="M", help="mrr, answered@10 ...; the first is compared")
    parser.add_argument("-k", type=int, default=experiment.DEPTH, help="documents a query (default %(default)s)")
    parser.add_argument("--data", type=Path, help="folder of the data sets; else $NCS_DATA, else ../shared/data")
    parser.add_argument("--out", type=Path, help="JSON file of one corpus (default evaluation/results/CORPUS.json)")
    parser.add_argument("--readme", action="store_true", help="write the tables of all results into the README")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.out and len(options.corpora) != 1:
        raise BadInput("--out takes the result of one corpus; name one, or leave --out away")
    if not options.corpora and not options.readme:
        raise BadInput(f"name a corpus: {', '.join(CORPORA)}, or a BEIR folder")
    if options.k < 1:
        raise BadInput(f"-k is {options.k}; it must be at least 1")
    systems = [read_system(text) for text in options.ranker or [name for name in RANKERS if name not in ON_REQUEST]]
    settings = grid(dict(read_setting(text) for text in options.settings))
    measures = options.measure or experiment.MEASURES
    for measure in measures:
        parse_measure(measure)
    for corpus in [load_corpus(name, options.data) for name in options.corpora]:
        found = experiment.run_experiment(
            corpus, systems, settings=settings, measures=measures, depth=options.k,
            track=silent if options.quiet else _told,
        )  # fmt: skip
        path = options.out or experiment.RESULTS / f"{corpus.name}.json"
        record.write(found, path)
        sys.stdout.write(f"\n{corpus.name}\n\n{report.table(found)}\n\n{report.caption(found)}\n\nwritten: {path}\n")
    if options.readme:
        README.write_text(report.readme(README.read_text(encoding="utf-8"), experiment.RESULTS), encoding="utf-8")
    return 0


def read_system(text: str) -> System:
    """`ncs`, or `ncs:centre=true,query_weights=idf`; BadInput names the rankers there are.

    >>> read_system("ncs:centre=true")
    System(ranker='ncs', config={'centre': True})
    """
    name, _, config = text.partition(":")
    if name not in RANKERS:
        raise BadInput(f"no ranker called {name!r}; there are: {', '.join(RANKERS)}")
    settings = dict(read_setting(part) for part in config.split(",")) if config else {}
    return System(name, {key: values[0] for key, values in settings.items()})


def read_setting(text: str) -> tuple[str, list[object]]:
    """A setting and its alternatives.

    >>> read_setting("fasttext.dim=50,100"), read_setting("java_frontend=javalang")
    (('fasttext.dim', [50, 100]), ('java_frontend', ['javalang']))
    """
    key, equals, values = text.partition("=")
    if not key or not equals or not values:
        raise BadInput(f"{text!r} is not a setting; write it as fasttext.dim=100")
    return key, [_value(value) for value in values.split(",")]


def _value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value


def _told(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
    """A line on stderr for every stage that is done."""
    start = time.perf_counter()
    yield from items
    sys.stderr.write(f"{stage}: {time.perf_counter() - start:.1f} s\n")


if __name__ == "__main__":
    sys.exit(main())
