"""`ncs train` and `ncs explain-attention`: learned heads, whose arguments unif parses."""

from __future__ import annotations

from importlib import import_module

import typer


def train(context: typer.Context) -> None:
    """Learn a head from (query, code) pairs or from the index itself: unif, nbow, cnn, birnn, selfatt or mixed.

    Example: ncs train unif --index .ncs --pairs pairs.jsonl.gz --out HEAD; all options: ncs train unif --help
    """
    _run("train", context)


def explain_attention(context: typer.Context) -> None:
    """Show which words of the best hit a learned head weighs, beside TF-IDF.

    Example: ncs explain-attention "hide soft keyboard"; all options: ncs explain-attention --help
    """
    _run("explain-attention", context)


def _run(command: str, context: typer.Context) -> None:
    status: int = import_module("unif.__main__").main([command, *context.args])  # imports torch to train only
    raise typer.Exit(status)
