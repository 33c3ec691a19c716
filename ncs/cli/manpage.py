"""The manual page of `ncs`, made from its help: python -m ncs.cli.manpage > ncs.1."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ncs import __version__
from ncs.cli.main import EXIT_STATUS, command

SUMMARY = "search code by what it does"
ENVIRONMENT = {
    "NCS_INDEX": "The index folder, where -i names none.",
    "VISUAL, EDITOR": "The editor of --open.",
    "NO_COLOR": "No colours, whatever the terminal can do.",
    "FORCE_COLOR": "Colours also where stdout is no terminal.",
    "COLORFGBG": "What a terminal says of its colours: dark ones are used where its background is light.",
}
FILES = {".ncs": "The index, looked for here and in the folders above.", ".ncsignore": "What is not to be indexed."}
_SPACES = re.compile(r"[ \t]*\n[ \t]*")


def manpage() -> str:
    """Roff for man(7): every command with its options, exit statuses, environment, files."""
    root = command()
    lines = [
        f'.TH NCS 1 "" "ncs {escaped(__version__)}" "User Commands"',
        ".ad l",
        ".nh",
        ".SH NAME",
        rf"ncs \- {SUMMARY}",
    ]
    lines += [".SH SYNOPSIS", r".B ncs", r"\fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]"]
    lines += [".SH DESCRIPTION", *_paragraphs(root.help), ".SH OPTIONS", *_options(root), ".SH COMMANDS"]
    for name, each in commands(root):
        lines += [f".SS {escaped(_usage(name, each))}", *_paragraphs(each.help), *_options(each)]
    lines += [".SH EXIT STATUS", *_paragraphs(EXIT_STATUS.removeprefix("Exit status: "))]
    lines += [".SH ENVIRONMENT", *_terms(ENVIRONMENT.items()), ".SH FILES", *_terms(FILES.items())]
    return "\n".join(lines) + "\n"


def commands(group: Any, before: str = "ncs") -> Iterator[tuple[str, Any]]:
    """Every command with its whole name, those of groups too, in the order of the help."""
    for name, each in group.commands.items():
        if getattr(each, "commands", None):
            yield from commands(each, f"{before} {name}")
        elif not each.hidden:
            yield f"{before} {name}", each


def escaped(text: str) -> str:
    r"""Text that roff prints as it is.

    >>> escaped(".ncs, --json \\ 'x'")
    '\\&.ncs, \\-\\-json \\e \\(aqx\\(aq'
    """
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{text}" if text.startswith(".") else text


def _usage(name: str, each: Any) -> str:
    arguments = [_named(each, one) for one in each.params if one.param_type_name == "argument"]
    return " ".join([name, "[OPTIONS]", *arguments])


def _named(each: Any, argument: Any) -> str:
    name: str = argument.metavar or argument.name.upper()
    name = name if argument.nargs == 1 else f"{name}..."
    return name if argument.required else f"[{name}]"


def _paragraphs(text: str | None) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", (text or "").strip()):
        yield from (".PP", escaped(_SPACES.sub(" ", paragraph)))


def _options(each: Any) -> Iterator[str]:
    for one in each.params:
        if one.param_type_name == "argument":
            if one.help:
                yield from _terms([(_named(each, one), one.help)])
            continue
        names = ", ".join([*one.opts, *one.secondary_opts])
        value = "" if one.is_flag else f" {one.metavar or one.name.upper()}"
        yield from _terms([(names + value, f"{one.help or ''}{_default(one)}")])


def _default(option: Any) -> str:
    shown = option.show_default if isinstance(option.show_default, str) else None
    if shown is None and not option.is_flag and isinstance(option.default, (int, float, str)):
        shown = str(option.default)
    return f" Default: {shown}." if shown else ""


def _terms(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in pairs:
        yield from (".TP", rf"\fB{escaped(term)}\fR", escaped(_SPACES.sub(" ", text).strip()) or r"\&")


if __name__ == "__main__":
    sys.stdout.write(manpage())
