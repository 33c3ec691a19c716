"""`ncs info` and `ncs words`: what is in an index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from typer import Argument, Option

from ncs.cli.options import IndexOption, Json, end, index_folder, open_index
from ncs.console import count, say, show_json, show_table
from ncs.storage.file_roles import OUTLINES
from ncs.types import SECTION

MAX_REPOSITORIES = 20


def info(
    index: IndexOption = None,
    verify: Annotated[bool, Option("--verify", help="Read every file and compare its checksum.")] = False,
    as_json: Json = False,
) -> None:
    """Show what is in the index: repositories, languages, documents, configuration, sizes.

    Example: ncs info -i .ncs
    """
    from ncs.answer import describe
    from ncs.index import Index

    with Index.load(index_folder(index), verify=verify) as opened_index:
        description = describe(opened_index)
        tables = () if as_json else _tables(description)
    if as_json:
        show_json(description)
    for title, rows in tables:
        show_table(title, rows)
    if not as_json and (more := len(description["repositories"]) - MAX_REPOSITORIES) > 0:
        say(f"... and {more:,} more; all of them: ncs info --json")


def words(
    word: Annotated[str, Argument(help="A word.", show_default=False)],
    n: Annotated[int, Option("-n", min=1, help="How many.")] = 10,
    as_json: Json = False,
    index: IndexOption = None,
) -> None:
    """List the words that the index has learned to use like this one.

    Example: ncs words keyboard
    """
    from ncs.answer import similar_words

    with open_index(index) as opened_index:
        answer = similar_words(opened_index, word, n)
    neighbors = answer["words"]
    if as_json and neighbors is not None:
        show_json({"word": word, "words": neighbors, "notes": answer["notes"]})
    elif neighbors:
        show_table(f"words used like {word!r}", [(row["word"], f"{row['similarity']:.3f}") for row in neighbors])
    end(answer, len(neighbors or ()))


def documents_text(counts: Mapping[str, Any]) -> str:
    """The numbers of functions and of other documents.

    >>> documents_text({"documents": 2, "kinds": {"function": 1, "class": 1}})
    '1 function, 1 class or top-level block'
    """
    sections = counts["kinds"].get(SECTION, 0)
    outlines = sum(n for kind, n in counts["kinds"].items() if kind in OUTLINES) - sections
    parts = [count(counts["documents"] - outlines - sections, "function")]
    parts += [count(outlines, "class or top-level block", "classes and top-level blocks")] if outlines else []
    parts += [count(sections, "section of documentation", "sections of documentation")] if sections else []
    return ", ".join(parts)


def counts_text(counts: Mapping[str, int]) -> str:
    """`java 5, python 5`."""
    return ", ".join(f"{name} {n:,}" for name, n in counts.items())


def skipped_text(skipped: Mapping[str, int]) -> str:
    """The numbers of skipped files by reason; empty for none."""
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(skipped.items()) if n)


def _tables(description: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Titles and rows; those of an index that a stranger made may fail."""
    fit = description["config"].get(description["embeddings"], {})
    settings = ", ".join(f"{name}={value}" for name, value in fit.items() if value is not None)
    training = description.get("training") or {}
    then, now = training.get("without_vector", 0), training.get("without_vector_now", 0)
    drift = f"; {now:.1%} of words without a vector, {then:.1%} when learned" if now > then else ""
    vectors = description["vectors"]
    exact = vectors["kind"] == "exact"
    search = "all of them are compared" if exact else f"approximately, by {vectors['lists']:,} lists"
    by = f"by ncs {description['versions'].get('ncs')}, format {description['format']}"
    copies = count(description["copies"], "exact copy", "exact copies")
    rows = [
        ("index", description["index"]),
        ("created", f"{description['created']} {by}"),
        ("trusted", "yes" if description["trusted"] else "no"),
        ("documents", f"{documents_text(description)}, and {copies} of them"),
        ("tests", f"{description['tests']:,} of the documents"),
        ("files", f"{description['files']:,} ({description.get('source_bytes', 0) / 1e6:,.1f} MB)"),
        ("languages", counts_text(description["languages"])),
        ("kinds", counts_text(description["kinds"])),
        ("as text", counts_text(description.get("text_files", {})) or "none"),
        ("words", f"{description['words']:,}; embeddings by {description['embeddings']}{drift}"),
        ("learning", description.get("pending") or settings),
        ("vectors", f"{vectors['kind']}: {search}"),
        ("general head", "used" if description["config"].get("general", True) else "not used (--no-general)"),
        *([("own head", f"weight {head['weight']:g}: {head['why']}")] if (head := description.get("head")) else []),
        ("size", f"{sum(description['bytes'].values()) / 1e6:,.1f} MB"),
        ("skipped", skipped_text(description["skipped"]) or "nothing"),
        ("broken, failed", f"{description['broken']:,} with syntax errors, {description['failed']:,} not parsed"),
        *(("note", note) for note in description["notes"]),
    ]
    repositories = sorted(description["repositories"].items(), key=lambda item: (-item[1], item[0]))
    title = count(len(repositories), "repository", "repositories")
    return [("", rows), (title, [(name, f"{n:,}") for name, n in repositories[:MAX_REPOSITORIES]])]
