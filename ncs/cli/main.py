"""The `ncs` command: its commands in their order, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy: idle thread pools cost a cold query 50 ms
    os.environ.setdefault(_threads, "1")

import typer
import typer.main

from ncs import __version__
from ncs.cli import output as console
from ncs.cli.commands import (
    agents,
    annotating,
    asking,
    corpora,
    following,
    heads,
    interactive,
    judging,
    looking,
    making,
    serving,
)
from ncs.cli.commands.options import FAILED, FOUND
from ncs.errors import NcsError

EXIT_STATUS = (
    "Exit status: 0 found or done; 1 nothing found, or not good enough; 2 error, one line on stderr with the remedy;"
    " 130 stopped. Hits go to stdout, everything else to stderr."
)
app = typer.Typer(
    name="ncs",
    help="Search code by what it does. Everything is learnt from your code, on your machine.\n\n"
    'Example: ncs build . && ncs query "hide soft keyboard"',
    epilog=EXIT_STATUS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
corpus_app = typer.Typer(
    no_args_is_help=True,
    help="Make data sets to learn from and to evaluate on.\n\nExample: ncs corpus codesearchnet ./repos ./corpus",
)
_AS_IT_IS: dict[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Of commands whose arguments are another parser's."""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ncs {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@corpus_app.callback()
def _corpus() -> None:
    pass


app.command()(making.build)
app.command()(making.update)
app.command()(following.watch)
app.command()(asking.query)
app.command()(asking.similar)
app.command()(looking.info)
app.command()(looking.words)
app.command()(looking.doctor)
app.command(name="map")(making.draw_map)
app.command(name="eval")(judging.eval_questions)
app.command()(judging.evaluate)
app.command()(judging.tune)
app.command()(annotating.annotate)
app.command(context_settings=_AS_IT_IS)(heads.train)
app.command()(heads.explain_attention)
app.command()(serving.serve)
app.command()(agents.mcp)
corpus_app.command()(corpora.codesearchnet)
app.add_typer(corpus_app, name="corpus")


def command() -> Any:
    """The whole command as the parser knows it, for who reads its options (ncs.cli.manpage)."""
    return typer.main.get_command(app)


def _run() -> None:
    """`ncs` alone, in a terminal, is the interactive search; anything else is a command."""
    if len(sys.argv) == 1 and interactive.possible():
        interactive.search()
    else:
        app()


def main(run: Callable[[], None] = _run) -> None:
    """The `ncs` command: an NcsError is one line on stderr and exit status 2."""
    for stream in (sys.stdout, sys.stderr):  # what a stream cannot write is escaped: no question ends in a traceback
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    try:
        run()
    except NcsError as error:
        console.say(f"ncs: {' '.join(str(error).splitlines())}")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        console.say("ncs: stopped")
        sys.exit(130)
    except BrokenPipeError:  # the reader (head, less) has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FOUND)


if __name__ == "__main__":
    main()
