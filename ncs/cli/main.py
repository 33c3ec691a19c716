"""The `ncs` command: its commands, imported when they are run, and its exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy: idle thread pools cost a cold query 50 ms
    os.environ.setdefault(_threads, "1")

import typer
import typer.core
import typer.main

from ncs import __version__
from ncs.console import say
from ncs.errors import NcsError

EXIT_STATUS = (
    "Exit status: 0 found or done; 1 nothing found, or not good enough; 2 error, one line on stderr with the remedy;"
    " 130 interrupted. Hits go to stdout, everything else to stderr."
)
COMMANDS = {
    "build": "build:build",
    "update": "update:update",
    "watch": "watch:watch",
    "query": "query:query",
    "similar": "query:similar",
    "info": "info:info",
    "words": "info:words",
    "doctor": "doctor:doctor",
    "map": "map:draw_map",
    "eval": "eval:eval_queries",
    "evaluate": "evaluate:evaluate",
    "tune": "tune:tune",
    "annotate": "annotate:annotate",
    "train": "train:train",
    "explain-attention": "train:explain_attention",
    "serve": "serve:serve",
    "mcp": "mcp:mcp",
    "corpus": "corpus:app",
}
"""Name -> module of this package and function (or group of commands), in the order of the help."""
FORWARDED = ("train",)
"""Commands whose arguments another parser reads."""


class LazyGroup(typer.core.TyperGroup):
    """Commands that are imported when they are needed: a query starts without what a build or a server needs."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One command; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(f"ncs.cli.{module}"), function)
        if isinstance(command, typer.Typer):
            return typer.main.get_command(command)
        single = typer.Typer(add_completion=False, context_settings=SETTINGS)
        forwarded = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
        single.command(cmd_name, context_settings=forwarded if cmd_name in FORWARDED else SETTINGS)(command)
        return typer.main.get_command(single)


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="ncs",
    cls=LazyGroup,
    help="Search code by what it does. Everything is learned from your code, on your machine.\n\n"
    'Example: ncs build . && ncs query "hide soft keyboard"',
    epilog=EXIT_STATUS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ncs {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def _run() -> None:
    """`ncs` alone, in a terminal, is the interactive search; anything else is a command."""
    if len(sys.argv) == 1:
        from ncs.cli import interactive

        if interactive.is_available():
            interactive.search()
            return
    app()


def main(run: Callable[[], None] = _run) -> None:
    """The `ncs` command: an NcsError is one line on stderr and exit status 2."""
    for stream in (sys.stdout, sys.stderr):  # what a stream cannot encode is escaped
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    try:
        run()
    except NcsError as error:
        say(f"ncs: {' '.join(str(error).splitlines())}")
        sys.exit(2)
    except KeyboardInterrupt:
        say("ncs: interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader (head, less) has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
