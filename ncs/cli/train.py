"""`ncs train`, `ncs explain-attention` and `ncs corpus`: learned heads, and data sets to learn them from."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer
from typer import Argument, Option

from ncs.cli.options import NOTHING_FOUND, IndexOption, Json, Quiet, open_index, without_none
from ncs.console import one_line, say, show_json, show_text, tracker

if TYPE_CHECKING:
    from ncs.search.unif import UnifRanker


def train(context: typer.Context) -> None:
    """Train a head on (query, code) pairs or on the index itself: unif, translation, or CodeSearchNet's encoders.

    Example: ncs train unif --index .ncs --pairs pairs.jsonl.gz --out HEAD; all options: ncs train unif --help
    """
    status: int = import_module("unif.__main__").main(["train", *context.args])
    raise typer.Exit(status)


def explain_attention(
    text: Annotated[str, Argument(help="A query, or a function's name: its first hit is shown.")],
    index: IndexOption = None,
    head: Annotated[
        Path | None, Option(help="A head or the run that made it; else the one the index was built with.")
    ] = None,
    n: Annotated[int, Option("-n", help="How many words.")] = 10,
) -> None:
    """Show which words of the best hit a learned head weights, beside TF-IDF.

    Example: ncs explain-attention "hide soft keyboard"
    """
    from ncs.learn.heads import Head, word_weights

    with open_index(index) as opened_index:
        loaded = Head.load(head) if head else cast("UnifRanker", opened_index.ranker("unif")).head
        hits = opened_index.results(text, 1).ranking.hits
        if not hits:
            say(f"ncs: no match for {text!r}")
            raise typer.Exit(NOTHING_FOUND)
        row = hits[0][0]
        document = opened_index.documents.document(row)
        lines = [one_line(f"{document.qualified_name}  {document.path}:{document.start_line}"), "learned  tf-idf  word"]
        for each in word_weights(loaded, opened_index.word_table(), row)[:n]:
            times = f" x {each.count}" if each.count > 1 else ""
            lines.append(f"{each.attention:7.1%} {each.tfidf:7.1%}  {each.word}{times}")
    show_text("\n".join(lines))


def corpus(
    name: Annotated[Literal["codesearchnet"], Argument(help="Whose shape and filters the data set has.")],
    sources: Annotated[
        list[Path],
        Argument(help="Folders of repositories (bare ones too), archives, site-packages.", show_default=False),
    ],
    out: Annotated[Path, Argument(help="Folder of the corpus; an interrupted run resumes.", show_default=False)],
    language: Annotated[list[str] | None, Option(help="Only this language; repeatable.", show_default="all")] = None,
    license: Annotated[
        list[str] | None,
        Option(
            "--license",
            "--licence",
            help="Allowed SPDX id; repeatable.",
            show_default="those that permit redistribution of parts",
        ),
    ] = None,
    any_license: Annotated[
        bool, Option("--any-license", "--any-licence", help="Repositories without an allowed license, too.")
    ] = False,
    seed: Annotated[int | None, Option(help="Of the split by repository.")] = None,
    workers: Annotated[int | None, Option(min=1, help="Processes.", show_default="one per core")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make data sets to learn from and to evaluate on: pairs of function and documentation from repositories.

    Example: ncs corpus codesearchnet ./repos ./corpus
    """
    from corpora.codesearchnet.pipeline import Rules, make_corpus, show

    values = {
        "languages": tuple(sorted(language or ())) or None,
        "licenses": () if any_license else tuple(sorted(license or ())) or None,
    }
    rules = Rules(any_license=any_license, **without_none(**values, seed=seed))
    statistics = make_corpus(sources, out, rules, workers=workers, track=tracker(quiet))
    if as_json:
        show_json(statistics)
    elif not quiet:
        show(statistics)
