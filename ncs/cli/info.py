"""`ncs info` and `ncs words`: what is in an index."""

from __future__ import annotations

from typing import Annotated

import typer

from ncs.cli import output
from ncs.cli.options import FOUND, NOTHING_FOUND, IndexOption, Json, index_folder, open_index


def info(
    index: IndexOption = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and compare its checksum.")] = False,
    as_json: Json = False,
) -> None:
    """Show what is in the index: repositories, languages, documents, configuration, sizes.

    Example: ncs info -i .ncs
    """
    from ncs.answer import describe
    from ncs.index import Index

    with Index.load(index_folder(index), verify=verify) as opened_index:
        description = describe(opened_index)
    if as_json:
        output.show_json(description)
    else:
        output.show_info(description)


def words(
    word: Annotated[str, typer.Argument(help="A word.", show_default=False)],
    n: Annotated[int, typer.Option("-n", min=1, help="How many.")] = 10,
    as_json: Json = False,
    index: IndexOption = None,
) -> None:
    """List the words that the index has learned to use like this one.

    Example: ncs words keyboard
    """
    from ncs.answer import words_like

    with open_index(index) as opened_index:
        answer = words_like(opened_index, word, n)
    neighbors = answer["words"]
    if neighbors is None:
        hint = f"; similar words: {', '.join(answer['near'])}" if answer["near"] else ""
        output.say(f"ncs: no match for {word!r}{hint}")
        raise typer.Exit(NOTHING_FOUND)
    if as_json:
        output.show_json({"word": word, "words": neighbors})
    else:
        output.show_table(f"words used like {word!r}", [(row["word"], f"{row['similarity']:.3f}") for row in neighbors])
    raise typer.Exit(FOUND if neighbors else NOTHING_FOUND)
