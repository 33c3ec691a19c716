"""`ncs train` and `explain-attention`: learnt heads, whose command line is their own."""

from __future__ import annotations

from importlib import import_module

import typer


def train(context: typer.Context) -> None:
    """Learn a head from (question, code) pairs or from the index itself: unif, nbow, cnn, birnn, selfatt or mixed.

    Example: ncs train unif --index .ncs --pairs pairs.jsonl.gz --out HEAD; all options: ncs train unif --help
    """
    raise typer.Exit(_unif("train", context))


def explain_attention(context: typer.Context) -> None:
    """Which words of the best hit a learnt head weighs, beside TF-IDF.

    Example: ncs explain-attention "hide soft keyboard"; all options: ncs explain-attention --help
    """
    raise typer.Exit(_unif("explain-attention", context))


def _unif(command: str, context: typer.Context) -> int:
    """Learnt heads have a command line of their own, imported when it is asked for; it needs torch to train only."""

    code: int = import_module("unif.__main__").main([command, *context.args])
    return code
