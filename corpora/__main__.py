"""`bin/corpora`: fetches data sets, converts them to one shape, and checks them.

python -m corpora                                        what there is, and where it comes from
python -m corpora fetch NAME DATA                        its published files into DATA/NAME; resumes a stopped call
python -m corpora repositories LINKS FOLDER              archives of the repositories that a file lists
python -m corpora ncs287 score-sheet FILE                Answered@k and MRR of a published score sheet
python -m corpora stackoverflow POSTS PAIRS              Posts.xml or .7z into (title, code) pairs
python -m corpora codesearchnet pairs CORPUS FILE        pairs for: ncs train unif -i INDEX --pairs FILE
python -m corpora codesearchnet namesakes CORPUS... FILE       pairs of two functions of one name, with doc comments
python -m corpora codesearchnet index CORPUS INDEX       an index of its functions, ids are URLs
python -m corpora codesearchnet submission QUERIES CSV --index INDEX   a ranker's answers for the Challenge
python -m corpora halves SOURCES FOLDER --language go    functions cut in two, to search code by code: a BEIR folder
python -m corpora beir NAME FOLDER                       a corpus as BEIR folders
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from corpora import CORPORA, data_folder, load_corpora
from corpora.catalog import CATALOG, FETCHED, HUB, fetch_corpus
from corpora.codesearchnet import challenge, pairs
from corpora.codesearchnet.duplicates import HeldOutFunctions
from corpora.corpus import Corpus, write_beir
from corpora.download import JOBS, TRIES, Downloads, fetch_all, filter_zip
from corpora.halves import halves
from corpora.jsonl import read_rows
from corpora.ncs287 import read_links, read_questions, recompute
from corpora.pairs import Pair, write_pairs
from corpora.repo_search import GITHUB
from corpora.stackoverflow import Filters, read_dump
from ncs.console import tracker
from ncs.errors import BadInput
from ncs.exit_status import main_program
from ncs.extract import language_of
from ncs.files import replace_file


@main_program("corpora", interrupted="the same command resumes from here")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 1 some files did not arrive, 2 an error, in one line on stderr."""
    options = _parser().parse_args(arguments)
    code: int = options.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bin/corpora",
        description=f"{__doc__}\n{_list_text()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_list)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    fetch = _command(commands, "fetch", _fetch, "a corpus's published files")
    fetch.add_argument("name", metavar="NAME", help=", ".join(FETCHED))
    fetch.add_argument("data", type=Path, help="data folder; the files go to DATA/NAME")
    fetch.add_argument("--only", default="*", metavar="PATTERN", help="of file names (coir: data sets), as '*.csv'")
    fetch.add_argument("--catalog", "--catalogue", type=Path, default=CATALOG, help="another list of addresses")
    fetch.add_argument("--hub", default=HUB, help="host of coir (default %(default)s)")
    fetch.add_argument("--github", default=GITHUB, help="host of repo_search (default %(default)s)")
    repositories = _command(commands, "repositories", _repositories, "archives of listed repositories, in parallel")
    repositories.add_argument("links", type=Path, help="one link to a .zip of GitHub a line, as in ncs287")
    repositories.add_argument("folder", type=Path, help="where the archives go; then: ncs build FOLDER")
    repositories.add_argument("--whole", action="store_true", help="keep all files, not only source files")
    for each in (fetch, repositories):
        each.add_argument("--jobs", type=int, default=JOBS, help="files at once (default %(default)s)")
        each.add_argument("--tries", type=int, default=TRIES, help="of each file (default %(default)s)")
        each.add_argument("--again", action="store_true", help="request again what was not found last time")
        _add_quiet(each)

    ncs287 = _command(commands, "ncs287", _score_sheet, "figures of a score sheet")
    ncs287.add_argument("what", choices=["score-sheet"])
    ncs287.add_argument("file", type=Path)
    ncs287.add_argument("--out", type=Path, help="write them as JSON")

    stackoverflow = _command(commands, "stackoverflow", _stackoverflow, "a dump of posts into pairs")
    stackoverflow.add_argument("posts", type=Path, help="Posts.xml, or the .7z that holds it")
    stackoverflow.add_argument("pairs", type=Path, help=".jsonl or .jsonl.gz to write")
    defaults = Filters()
    stackoverflow.add_argument("--tag", default=defaults.tag, help="of the questions (default %(default)s)")
    stackoverflow.add_argument("--language", default=defaults.language, help="of the code (default %(default)s)")
    stackoverflow.add_argument("--exclude", default=",".join(defaults.excluded), help="title words (%(default)s)")
    stackoverflow.add_argument(
        "--held-out", type=Path, action="append", default=[], help="questions (JSON) to leave out"
    )
    stackoverflow.add_argument("--seed", type=int, default=0, help="of the split (default %(default)s)")
    _add_quiet(stackoverflow)

    codesearchnet = commands.add_parser("codesearchnet", help="a corpus read back; the Challenge's CSV")
    _add_codesearchnet(codesearchnet.add_subparsers(title="commands", metavar="COMMAND", required=True))

    halved = _command(commands, "halves", _halves, "functions cut in two, as in CoIR's CodeSearchNet-CCR")
    halved.add_argument("sources", type=Path, nargs="+", help="source trees, git directories, archives")
    halved.add_argument("folder", type=Path, help="of the BEIR folder halves-LANGUAGE")
    halved.add_argument("--language", required=True)
    halved.add_argument("--documents", type=int, default=2_000, help="functions drawn (default %(default)s)")
    halved.add_argument("--queries", type=int, default=300, help="of them asked for (default %(default)s)")
    halved.add_argument("--seed", type=int, default=0, help="of the draw (default %(default)s)")

    beir = _command(commands, "beir", _beir, "a corpus as BEIR folders")
    beir.add_argument("name", help=", ".join(CORPORA))
    beir.add_argument("folder", type=Path)
    beir.add_argument("--data", type=Path, help="folder of the data sets; else $NCS_DATA, else ../shared/data")
    return parser


def _add_codesearchnet(commands: Any) -> None:
    pairs = _command(commands, "pairs", _pairs, "pairs as JSON lines, for training")
    namesakes = _command(commands, "namesakes", _namesakes, "pairs of two functions of one name, for training")
    index = _command(commands, "index", _index, "an index of all functions")
    for each in (pairs, namesakes, index):
        each.add_argument("corpus", type=Path, metavar="CORPUS", nargs="+" if each is namesakes else None)
        each.add_argument("out", type=Path, metavar="INDEX" if each is index else "FILE")
        each.add_argument("--language", action="append", default=[], help="only this one; repeatable")
        _add_quiet(each)
    for each in (pairs, index):
        each.add_argument("--partition", choices=("train", "valid", "test"), default="", help="only this one")
    for each in (pairs, namesakes):
        each.add_argument(
            "--apart", type=Path, metavar="FILE",
            help="JSON lines with code, as cosqa's: no pair may have nearly the code or the words of one",
        )  # fmt: skip
    submission = _command(commands, "submission", _submission, "language,query,GitHubUrl of an index")
    submission.add_argument("queries", type=Path, metavar="QUERIES", help="queries.csv")
    submission.add_argument("out", type=Path, metavar="CSV")
    submission.add_argument("--index", type=Path, required=True, help="index whose ids are URLs")
    submission.add_argument("--ranker", default=None, help="of the index (default: the index's)")
    submission.add_argument("--language", action="append", default=[], help="of the index; repeatable")
    submission.add_argument("-k", type=int, default=challenge.DEPTH, help="functions a query (default %(default)s)")


def _command(commands: Any, name: str, run: Any, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=about)
    parser.set_defaults(run=run)
    return parser


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")


def _list_text() -> str:
    width = max(map(len, FETCHED))
    return "\n".join(f"  {name:{width}}  {about}" for name, about in FETCHED.items())


def _list(options: argparse.Namespace) -> int:
    sys.stdout.write(f"{_list_text()}\n\nfetch one with: python -m corpora fetch NAME DATA\n")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    places = {name: getattr(options, name) for name in ("only", "catalog", "hub", "github")}
    return _report(fetch_corpus(options.name, options.data, **places, **_downloading(options)))


def _repositories(options: argparse.Namespace) -> int:
    then = None if options.whole else partial(filter_zip, accepts=lambda name: language_of(name) is not None)
    return _report(fetch_all(read_links(options.links), options.folder, then=then, **_downloading(options)))


def _downloading(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("jobs", "tries", "again")} | {"track": tracker(options.quiet)}


def _report(downloads: Downloads) -> int:
    for path, reason in downloads.failed.items():
        sys.stderr.write(f"not fetched: {path}: {reason}\n")
    sys.stdout.write(f"{downloads.arrived} arrived, {downloads.present} were there, {len(downloads.failed)} failed\n")
    return 1 if downloads.failed else 0


def _score_sheet(options: argparse.Namespace) -> int:
    values = recompute(options.file)
    for system, figures in values["systems"].items():
        answered = "/".join(str(figures[f"answered_{k}"]) for k in (1, 5, 10))
        sys.stdout.write(f"{system:20} Answered@1/5/10 {answered:12} MRR {figures['mrr']:.3f}\n")
    if options.out:
        replace_file(options.out, json.dumps(values, indent=1) + "\n")
    return 0


def _stackoverflow(options: argparse.Namespace) -> int:
    excluded = tuple(word.strip().casefold() for word in options.exclude.split(",") if word.strip())
    held_out = [question.query for path in options.held_out for question in read_questions(path)]
    if not held_out:
        sys.stderr.write(
            "corpora: no --held-out questions: do not evaluate on Stack Overflow what is trained on these pairs\n"
        )
    filters = Filters(options.tag, options.language, excluded)
    dump = read_dump(options.posts, filters, held_out, seed=options.seed, track=tracker(options.quiet))
    sys.stdout.write(f"{write_pairs(dump, options.pairs)} pairs\n")
    return 0


def _pairs(options: argparse.Namespace) -> int:
    return _write_pairs(pairs.pairs(options.corpus, options.language, options.partition), options)


def _namesakes(options: argparse.Namespace) -> int:
    return _write_pairs(pairs.namesakes(options.corpus, options.language), options)


def _write_pairs(rows: Iterator[Pair], options: argparse.Namespace) -> int:
    dropped: Counter[str] = Counter()
    if options.apart:
        held_out = ((row.text("code"), row.text("language")) for row in read_rows(options.apart))
        rows = HeldOutFunctions(held_out).without(rows, dropped)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    count = write_pairs(tracker(options.quiet)(rows, "pairs", unit="pairs"), options.out)
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted(dropped.items()))
    left_out = f"; left out as like {options.apart.name}: {reasons}" if reasons else ""
    sys.stdout.write(f"{count:,} pairs{left_out}\n")
    return 0


def _index(options: argparse.Namespace) -> int:
    from ncs.index import Index

    documents = pairs.documents(options.corpus, options.language, options.partition)
    with Index.of(documents, options.out, track=tracker(options.quiet)) as index:
        sys.stdout.write(f"{len(index):,} functions -> {options.out}\n")
    return 0


def _submission(options: argparse.Namespace) -> int:
    from ncs.index import Index

    queries = challenge.read_queries(options.queries)
    with Index.load(options.index) as index:
        runs = challenge.runs_of(index, queries, options.language, k=options.k, ranker=options.ranker)
    count = challenge.write_submission(runs, queries, options.out)
    sys.stdout.write(f"{count:,} rows of {len(runs)} languages -> {options.out}\n")
    return 0


def _halves(options: argparse.Namespace) -> int:
    if min(options.documents, options.queries) < 1:
        raise BadInput("--documents and --queries must be at least 1")
    numbers = {"documents": options.documents, "queries": options.queries, "seed": options.seed}
    return _write_corpora([halves(options.sources, options.language, **numbers)], options.folder)


def _beir(options: argparse.Namespace) -> int:
    return _write_corpora(load_corpora(options.name, data_folder(options.data)), options.folder)


def _write_corpora(corpora: Iterable[Corpus], folder: Path) -> int:
    for corpus in corpora:
        write_beir(corpus, folder / corpus.name)
        sys.stdout.write(f"{folder / corpus.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
