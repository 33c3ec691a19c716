"""`bin/evaluate`: evaluates rankers on corpora (tables, JSON, CSV, pages) and compares two results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from corpora import CORPORA, data_folder, load_corpora
from corpora.ncs287 import read_questions
from evaluation import comparison, experiments, issues, outputs, reports
from evaluation.experiments import BASELINE, OFF, RESULTS, Experiment, System, grid, pooled, read_system, run_experiment
from evaluation.measures import parse_measure
from ncs.console import tracker
from ncs.errors import BadInput, NcsError
from ncs.exit_status import main_program
from ncs.search.rankers import ON_REQUEST, RANKERS, setting_value

README = Path(__file__).parent / "README.md"
_FILES = ("json", "csv", "markdown", "html")


@main_program("evaluate")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, with one line on stderr."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["issues"]:
        return issues.main(arguments[1:])
    return _run(_parser().parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bin/evaluate",
        description=__doc__,
        epilog="bin/evaluate issues --help: reports answered by the files that were edited",
    )
    parser.add_argument(
        "corpora", nargs="*", metavar="CORPUS",
        help=f"{', '.join(CORPORA)}, a BEIR folder, or the JSON of an earlier result, which is shown again",
    )  # fmt: skip
    parser.add_argument(
        "--ranker", action="append", metavar="R", help="ncs, or with settings ncs:centre=true; default: all; repeatable"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="a setting of the build, as fasttext.dim=100; several values (50,100) are tried in turn; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--ablation", action="store_true", help="the default ranker, and without each of its signals, compared with it"
    )
    parser.add_argument(
        "--measure", action="append", default=[], metavar="M", help="mrr, answered@10 ...; the first is compared"
    )
    parser.add_argument("-k", type=int, default=experiments.DEPTH, help="hits of each query (default %(default)s)")
    parser.add_argument(
        "--distractors", type=int, metavar="N",
        help="rank each query among its own documents and N others only, drawn by --seed; CodeSearchNet: 999",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the distractors (default %(default)s)")
    parser.add_argument("--data", type=Path, help="folder of the data sets; else $NCS_DATA, else ../shared/data")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="write every ranking as a TREC run file")
    outputs.add_options(parser, _FILES)
    parser.add_argument(
        "--compare", nargs=2, metavar=("A", "B"),
        help="two results: RESULT.json, RESULT.json:SYSTEM, or TREC run files with --qrels",
    )  # fmt: skip
    parser.add_argument(
        "--qrels", type=Path, metavar="FILE", help="judgments of the runs: a TREC file or a BEIR folder"
    )
    parser.add_argument("--by", choices=["size"], help="of the given results: one table, by the corpora's documents")
    parser.add_argument("--readme", action="store_true", help="write the tables of all results into the README")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser


def _run(options: argparse.Namespace) -> int:
    _check(options)
    if options.compare:
        compared = comparison.compare_results(*options.compare, qrels=options.qrels, measures=options.measure)
        sys.stdout.write(comparison.table(compared) + "\n")
        if options.json:
            comparison.write(compared, options.json)
        return 0
    if options.by:
        earlier = [experiments.read(Path(name)) for name in options.corpora]
        sys.stdout.write(reports.by_size(earlier) + "\n")
        return 0
    results = [each for name in options.corpora for each in _results(name, options)]
    if results:
        files = {**outputs.output_files(options), "json": None}  # it is written as soon as a corpus is done
        outputs.write_outputs(results, files, pair=options.pair)
    if options.readme:
        README.write_text(reports.readme(README.read_text(encoding="utf-8"), RESULTS), encoding="utf-8")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raise BadInput for options that do not go together, before any work."""
    if options.json and not options.compare and len(options.corpora) != 1:
        raise BadInput("--json (--out) takes the result of one corpus; name one, or omit it")
    if not options.corpora and not options.readme and not options.compare:
        raise BadInput(f"name a corpus: {', '.join(CORPORA)}, or a BEIR folder")
    if options.by and not all(name.endswith(".json") for name in options.corpora):
        raise BadInput("--by takes the results of corpora; name their JSON files")
    if options.compare and options.corpora:
        raise BadInput("--compare and corpora cannot be used together; omit one of them")
    if options.ablation and options.ranker:
        raise BadInput("--ablation and --ranker cannot be used together; omit one of them")
    for name, value in (("-k", options.k), ("--distractors", options.distractors)):
        if value is not None and value < 1:
            raise BadInput(f"{name} is {value}; it must be at least 1")
    for measure in options.measure if not options.compare else ():
        parse_measure(measure)
    outputs.check_outputs(outputs.output_files(options))


def _results(name: str, options: argparse.Namespace) -> list[Experiment]:
    """The results of a corpus, measured and written, or read from a file; of several corpora first the pooled one."""
    baseline = "hybrid" if options.ablation else BASELINE
    if name.endswith(".json"):
        earlier = _with_texts(experiments.read(Path(name)), options.data)
        _show(earlier, baseline)
        if options.json:
            experiments.write(earlier, options.json)
        return [earlier]
    systems = _systems(options)
    settings = grid(dict(read_setting(text) for text in options.settings))
    results = [
        run_experiment(
            corpus, systems, settings=settings, measures=options.measure or experiments.MEASURES,
            depth=options.k, distractors=options.distractors, seed=options.seed, runs=options.runs,
            track=tracker(options.quiet),
        )
        for corpus in load_corpora(name, options.data)
    ]  # fmt: skip
    pool = results if len(results) == 1 else [pooled(Path(name).name, results), *results]
    path = options.json or RESULTS / f"{pool[0].corpus}.json"
    experiments.write(pool[0], path)
    for each in pool[1:]:
        experiments.write(each, path.with_suffix("") / f"{each.corpus}.json")
    for each in pool:
        _show(each, baseline)
    if len(pool) > 1:
        sys.stdout.write(
            f"\nmean over the {len(results)} corpora, each counting the same\n\n{reports.averages(results)}\n"
        )
    sys.stdout.write(f"\nwritten: {path}\n")
    return pool


def _systems(options: argparse.Namespace) -> list[System]:
    if options.ablation:
        return [System("hybrid"), *(System("hybrid", {name: value}) for name, value in OFF.items())]
    names = options.ranker or [name for name in RANKERS if not ON_REQUEST.get(name)]
    return [read_system(text) for text in names]


def _show(result: Experiment, baseline: str) -> None:
    sys.stdout.write(f"\n{result.corpus}\n\n{reports.report(result, baseline)}")


def _with_texts(result: Experiment, data: Path | None) -> Experiment:
    """Add the texts of the queries if the data set is available; results do not store them."""
    with suppress(NcsError):
        questions = data_folder(data) / f"{result.corpus}.json"
        if questions.is_file():
            queries = [question.query for question in read_questions(questions)]
        else:
            queries = [query for corpus in load_corpora(result.corpus, data) for query in corpus.queries]
        texts = {query.id: query.text for query in queries}
        return replace(result, texts=[texts.get(query, query) for query in result.queries])
    return result


def read_setting(text: str) -> tuple[str, list[object]]:
    """A setting and its alternatives.

    >>> read_setting("fasttext.dim=50,100"), read_setting("java_frontend=javalang")
    (('fasttext.dim', [50, 100]), ('java_frontend', ['javalang']))
    """
    key, equals, values = text.partition("=")
    if not key or not equals or not values:
        raise BadInput(f"{text!r} is not a setting; write it as fasttext.dim=100")
    return key, [setting_value(value) for value in values.split(",")]


if __name__ == "__main__":
    sys.exit(main())
