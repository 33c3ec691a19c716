"""`ncs info` and `words`: what is in an index."""

from __future__ import annotations

from typing import Annotated

import typer

from ncs.cli import output as console
from ncs.cli.commands.options import FOUND, NOTHING_FOUND, IndexOption, Json, folder_of, open_index


def info(
    index: IndexOption = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and compare its checksum.")] = False,
    as_json: Json = False,
) -> None:
    """What is in the index: repositories, languages, documents, configuration, sizes.

    Example: ncs info -i .ncs
    """
    from ncs.answer import describe
    from ncs.index import Index

    folder = folder_of(index)
    with Index.load(folder, verify=verify) as opened:
        described = describe(opened)
    if as_json:
        console.show_json(described)
    else:
        console.show_info(described)


def words(
    word: Annotated[str, typer.Argument(help="A word.", show_default=False)],
    n: Annotated[int, typer.Option("-n", min=1, help="How many neighbours.")] = 10,
    as_json: Json = False,
    index: IndexOption = None,
) -> None:
    """Words the index has learnt to use like this one.

    Example: ncs words keyboard
    """
    from ncs.answer import words_like

    with open_index(index) as opened:
        answer = words_like(opened, word, n)
    found = answer["words"]
    if found is None:
        hint = f"; near it in spelling: {', '.join(answer['near'])}" if answer["near"] else ""
        console.say(f"ncs: the index does not know the word {word!r}{hint}")
        raise typer.Exit(NOTHING_FOUND)
    if as_json:
        console.show_json({"word": word, "words": found})
    else:
        console.show_table(f"words used like {word!r}", [(one["word"], f"{one['similarity']:.3f}") for one in found])
    raise typer.Exit(FOUND if found else NOTHING_FOUND)


def doctor(
    index: IndexOption = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="How long files are looked at for changes.", show_default="5")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is installed, what the index holds, what is stale or left out, and what to type.

    Lines start with ok, note (good to know) or todo. Exit status: 0 healthy, 1 something to do, 2 error.

    Example: ncs doctor -i .ncs
    """
    from ncs.cli.doctor.findings import as_dict
    from ncs.cli.doctor.standing import diagnose

    found = diagnose(index, seconds=seconds)
    if as_json:
        told = as_dict(found)
        console.show_json(told)
        healthy = told["healthy"]
    else:
        healthy = console.show_findings(found)
    raise typer.Exit(FOUND if healthy else NOTHING_FOUND)
