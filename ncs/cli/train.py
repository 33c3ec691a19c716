"""`ncs train` and `ncs explain-attention`: learned heads; unif parses the arguments of `train`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ncs.cli import output
from ncs.cli.options import NOTHING_FOUND, IndexOption, open_index

if TYPE_CHECKING:
    from ncs.search.unif import UnifRanker


def train(context: typer.Context) -> None:
    """Train a head on (query, code) pairs or on the index itself: unif, translation, or CodeSearchNet's encoders.

    Example: ncs train unif --index .ncs --pairs pairs.jsonl.gz --out HEAD; all options: ncs train unif --help
    """
    status: int = import_module("unif.__main__").main(["train", *context.args])
    raise typer.Exit(status)


def explain_attention(
    text: Annotated[str, typer.Argument(help="A query, or a function's name: its first hit is shown.")],
    index: IndexOption = None,
    head: Annotated[
        Path | None, typer.Option(help="A head or the run that made it; else the one the index was built with.")
    ] = None,
    n: Annotated[int, typer.Option("-n", help="How many words.")] = 10,
) -> None:
    """Show which words of the best hit a learned head weights, beside TF-IDF.

    Example: ncs explain-attention "hide soft keyboard"
    """
    from ncs.learn.heads import Head, word_weights

    with open_index(index) as opened_index:
        loaded = Head.load(head) if head else cast("UnifRanker", opened_index.ranker("unif")).head
        hits = opened_index.ranker().search(text, 1)
        if not hits:
            output.say(f"ncs: no match for {text!r}")
            raise typer.Exit(NOTHING_FOUND)
        row = hits[0][0]
        document = opened_index.documents.document(row)
        lines = [f"{document.qualified_name}  {document.path}:{document.start_line}", "learned  tf-idf  word"]
        for each in word_weights(loaded, opened_index.word_table(), row)[:n]:
            times = f" x {each.count}" if each.count > 1 else ""
            lines.append(f"{each.attention:7.1%} {each.tfidf:7.1%}  {each.word}{times}")
    typer.echo("\n".join(lines))
