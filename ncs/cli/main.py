"""The `ncs` command: its commands, imported when they are run, and its exit status."""

from __future__ import annotations

import gc
import os
import shlex
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy: idle thread pools cost a cold query 50 ms
    os.environ.setdefault(_threads, "1")
gc.set_threshold(50_000, 10, 10)  # by default a cold query collects garbage 80 times, for a twentieth of its time
if os.name == "nt":  # a git.exe of the folder that is indexed must not run as git
    os.environ["NODEFAULTCURRENTDIRECTORYINEXEPATH"] = "1"

import typer
import typer.core
import typer.main
from typer import Option

from ncs import __version__
from ncs.errors import BadInput
from ncs.exit_status import main_program

EXIT_STATUS = (
    "Exit status: 0 found or done; 1 nothing found, or not good enough; 2 error, one line on stderr with the remedy;"
    " 130 interrupted. Hits go to stdout, everything else to stderr."
)
COMMANDS = {
    "build": "build:build",
    "update": "update:update",
    "watch": "update:watch",
    "query": "query:query",
    "locate": "locate:locate",
    "similar": "query:similar",
    "def": "symbols:find_definitions",
    "refs": "symbols:find_references",
    "info": "info:info",
    "words": "info:words",
    "doctor": "doctor:doctor",
    "map": "build:draw_map",
    "eval": "evaluate:eval_queries",
    "evaluate": "evaluate:evaluate",
    "tune": "tune:tune",
    "annotate": "evaluate:annotate",
    "train": "train:train",
    "explain-attention": "train:explain_attention",
    "tui": "serve:tui",
    "serve": "serve:serve",
    "mcp": "serve:mcp",
    "corpus": "train:corpus",
}
"""Name -> module of this package and function, in the order of the help."""
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
        single = typer.Typer(add_completion=False, context_settings=SETTINGS)
        forwarded = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
        single.command(cmd_name, context_settings=forwarded if cmd_name in FORWARDED else SETTINGS)(command)
        return typer.main.get_command(single)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names; else everything is a question, and its options may come first.
        Raises BadInput for what looks like a typing error of a command, options before one, and an empty argument."""
        if args[0] in COMMANDS:
            if "" in args and args[0] != "query":  # Path("") would be the working folder
                raise BadInput("an argument is empty; name a folder or a file, such as . for this folder")
            return super().resolve_command(ctx, args)

        from difflib import get_close_matches

        query, likely = self.get_command(ctx, "query"), f"to search for it: ncs query {shlex.join(args)}"
        if args[0].startswith("-"):
            words = query.make_parser(ctx).parse_args(list(args))[0].get("words") or [""]
            if words[0] in COMMANDS:
                raise BadInput(f"the options of {words[0]} come after it: ncs {words[0]} ...; {likely}")
        elif similar := get_close_matches(args[0], COMMANDS, 1, 0.8):
            raise BadInput(f"no command {args[0]!r}; did you mean {similar[0]}? {likely}")
        return "query", query, args

    def invoke(self, ctx: Any) -> None:
        """Run a command and exit by `main_program`; typer itself treats a reader that has exited as an error."""
        raise typer.Exit(_run(partial(super().invoke, ctx)))


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="ncs",
    cls=LazyGroup,
    help="Search code by what it does. Everything is learned from your code, on your machine.\n\n"
    'Example: ncs build . && ncs "hide soft keyboard"',
    epilog=EXIT_STATUS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={**SETTINGS, "ignore_unknown_options": True},  # the options of a question
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ncs {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The `ncs` command; without arguments, in a terminal, or with --print first, `ncs tui`. Exits."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: the next file opened would get its number
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115
    encoding = "utf-8" if os.name == "nt" else None  # as JSON requires; pipes on Windows use the code page
    for stream in (sys.stdout, sys.stderr):  # escape what a stream cannot encode
        getattr(stream, "reconfigure", lambda **_: None)(encoding=encoding, errors="backslashreplace")
    if sys.argv[1:2] in (["--install-completion"], ["--show-completion"]) and sys.argv[2:]:
        os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"  # else typer ignores the shell named
    terminals = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    dumb = os.environ.get("TERM", "" if os.name == "nt" else "dumb") == "dumb"  # Windows sets none
    alone = not sys.argv[1:] and terminals and not dumb and find_spec("textual")
    if alone or sys.argv[1:2] == ["--print"]:
        sys.argv.insert(1, "tui")
    elif sys.argv[1:2] == ["--"]:  # a question that begins with a dash
        sys.argv.insert(1, "query")
    # else * and $HOME in globs and questions are replaced; _run is for --help and --version, which no command runs
    raise SystemExit(_run(partial(app, windows_expand_args=False)))


def run() -> None:
    """Run `main` and exit without Python's cleanup of modules, which is a tenth of the time of a cold query."""
    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int) or threading.active_count() > 1 or "multiprocessing" in sys.modules:
            raise
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # the reader has exited, or the stream is closed
                stream.flush()
        os._exit(end.code)


@main_program("ncs")
def _run(command: Callable[[], object]) -> int:
    try:
        command()
    except typer.Exit as end:
        return end.exit_code
    return 0
