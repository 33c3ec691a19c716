"""`ncs doctor`: what is installed, what the index has, what is stale or left out, and what to type."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import platform
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from ncs.cli.info import counts_text, skipped_text
from ncs.cli.options import FOUND, NOTHING_FOUND, IndexOption, Json, index_folder
from ncs.console import count, is_fancy, one_line, rich_console, show_json
from ncs.errors import IndexFolderError, IndexNotFound, NcsError
from ncs.messages import BEHIND

if TYPE_CHECKING:
    from ncs.index import Index

MAX_FILES = 3
"""Files of a kind that are named."""
DISTRIBUTION = "neural-code-search"
LIBRARIES = ("numpy", "faiss-cpu", "fasttext", "tree-sitter")
STYLES = {"ok": "green", "note": "dim", "todo": "bold yellow"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)[^;]*(?:;.*extra\s*==\s*['\"]([^'\"]+)['\"])?")


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about the installation or an index, with a command for the remedy."""

    level: Literal["ok", "note", "todo"]
    about: str
    text: str
    command: str | None = None


def doctor(
    index: IndexOption = None,
    seconds: Annotated[float, Option(min=0, help="How long to check files for changes.")] = 5.0,
    as_json: Json = False,
) -> None:
    """Report what is installed, what the index has, what is stale or left out, and what to type.

    Lines start with ok, note (good to know) or todo. Exit status: 0 healthy, 1 something to do, 2 error.

    Example: ncs doctor -i .ncs
    """
    healthy, rows = True, []
    for finding in diagnose(index, seconds):
        healthy &= finding.level != "todo"
        if as_json:
            rows.append(asdict(finding))
        else:
            _show(finding)
    if as_json:
        show_json({"healthy": healthy, "findings": rows})
    raise typer.Exit(FOUND if healthy else NOTHING_FOUND)


def _show(finding: Finding) -> None:
    """`level  text: command` on stdout, at once."""
    text = one_line(finding.text + (f": {finding.command}" if finding.command else ""))
    if is_fancy():
        from rich.text import Text

        line = Text(f"{finding.level:<5} ", STYLES[finding.level]).append(text, "default not bold not dim")
        rich_console().print(line, soft_wrap=True)
    else:
        print(f"{finding.level:<5} {text}", flush=True)


def diagnose(folder: Path | None, seconds: float) -> Iterator[Finding]:
    """All findings. folder: of the index; None: the nearest. seconds: time limit of the check of its sources."""
    from ncs.index import Index

    yield from _check_installation()
    try:
        with Index.load(index_folder(folder)) as index:
            yield from _check_index(index)
            yield from left_out(index.description.counts, index.description.notes)
            yield from _check_sources(index, seconds)
            yield from _check_disk(index)
    except IndexNotFound as error:
        text, _, _ = str(error).partition("; ")
        yield Finding("todo", "index", text, _command("build", ".", *(() if folder is None else ("-i", folder))))
    except (IndexFolderError, OSError) as error:
        text, _, command = str(error).partition("; build the index again: ")
        yield Finding("todo", "index", text, command or None)


def _command(*words: str | Path) -> str:
    """A command of ncs as it can be typed, whatever folders are called."""
    return shlex.join(["ncs", *map(str, words)])


def _check_installation() -> Iterator[Finding]:
    from ncs.build.file_cache import FASTTEXT, installed_version
    from ncs.extract.languages import LANGUAGES, is_installed
    from ncs.learn.general import verify

    needs = requirements()
    missing = {extra: [name for name in needs[extra] if installed_version(name) is None] for extra in needs}
    if needed := [name for name in missing.pop("", []) if name not in FASTTEXT]:
        text = f"required, but not installed: {', '.join(needed)}"
        yield Finding("todo", "program", text, f"pip install {' '.join(needed)}")
    else:
        version = f"ncs {installed_version(DISTRIBUTION) or 'not installed'}, Python {platform.python_version()}"
        found = ((name, installed_version(name)) for name in LIBRARIES)
        libraries = (f"{name} {version}" for name, version in found if version)
        yield Finding("ok", "program", ", ".join([version, *libraries]))
    if installed_version("fasttext") is None:
        text = "fastText is not installed: all word vectors are from LSA"
        yield Finding("note", "program", text, "pip install fasttext-community")
    try:
        verify()
    except IndexFolderError as error:
        remedy = f"pip install --force-reinstall --no-deps {DISTRIBUTION}"
        yield Finding("todo", "program", str(error).partition("; ")[0], remedy)
    absent = [name for name in LANGUAGES if not is_installed(name)]
    yield Finding("ok", "grammars", f"{len(LANGUAGES) - len(absent)} of {len(LANGUAGES)} languages are installed")
    if absent:
        remedy = f"pip install '{DISTRIBUTION}[languages]'"
        yield Finding("note", "grammars", f"not installed: {', '.join(absent)}", remedy)
    extras = {extra: names for extra, names in missing.items() if extra not in ("languages", "dev")}
    if complete := [extra for extra, names in extras.items() if not names]:
        yield Finding("ok", "extras", f"extras installed: {', '.join(complete)}")
    for extra, names in extras.items():
        if names:
            text = f"extra {extra} is not installed ({', '.join(names)})"
            yield Finding("note", "extras", text, f"pip install '{DISTRIBUTION}[{extra}]'")


def requirements() -> dict[str, list[str]]:
    """Extra -> the distributions it needs; "" -> those always needed. Empty where ncs itself is not installed."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return {}
    extras: dict[str, list[str]] = {}
    for line in lines:
        if match := _REQUIREMENT.match(line):
            extras.setdefault(match[2] or "", []).append(match[1])
    return extras


def _check_index(index: Index) -> Iterator[Finding]:
    from ncs.answer import not_ready
    from ncs.build.head_weight import head_summary
    from ncs.learn.confidence import TUNED
    from ncs.learn.embeddings import retraining_advice

    counts, update = index.description.counts, _command("update", "-i", index.folder)
    about = f"{count(len(index), 'document')} of {count(len(counts['repositories']), 'repository', 'repositories')}"
    languages = counts_text(counts["languages"])
    yield Finding("ok", "index", f"{index.folder}: {about} in {languages}; of {index.description.created}")
    for pending in not_ready(index):
        yield Finding("todo", "index", f"{pending}; wait for the build, or start it again", update)
    if advice := retraining_advice(index.description):
        yield Finding("todo", "vectors", advice.partition("; learn")[0], f"{update} --retrain")
    else:
        yield Finding("ok", "vectors", f"word vectors by {counts.get('embeddings', 'none')}")
    used = index.description.config.get("general", True)
    yield Finding("ok", "heads", f"the general head is {'used' if used else 'not used (--no-general)'}")
    if "head" in counts:
        yield Finding("note", "heads", head_summary(index.folder))
    if (index.folder / TUNED).exists():
        yield Finding("ok", "weights", "tuned to your queries; undo with: ncs tune --reset")


def left_out(counts: Mapping[str, Any], notes: Iterable[str]) -> Iterator[Finding]:
    """The parts of the sources that are not in the index, with the reasons."""
    if skipped := skipped_text(counts.get("skipped", {})):
        yield Finding("note", "skipped", f"skipped: {skipped}")
    for name, text in (
        ("broken", "with syntax errors (what could be parsed is indexed)"),
        ("failed", "could not be parsed"),
        ("unreadable", "could not be read; check the permissions"),
    ):
        paths = counts.get(f"{name}_files") or []
        if number := max(len(paths), counts.get(name, 0)):
            more = " ..." if number > MAX_FILES else ""
            yield Finding("note", "skipped", f"{count(number, 'file')} {text}: {', '.join(paths[:MAX_FILES])}{more}")
    for note in notes:
        text, pip, command = note.partition("pip install")
        yield Finding("note", "build", text.rstrip(" ;,:") if pip else note, f"pip install{command}" if pip else None)


def _check_sources(index: Index, seconds: float) -> Iterator[Finding]:
    """Report what has changed since the index was built or updated, or that it is not trusted; nothing is written."""
    from ncs.build.file_cache import made_by
    from ncs.build.request import changes_since

    description, update = index.description, _command("update", "-i", index.folder)
    build = _command("build", "SOURCES", "-i", index.folder)
    if reason := index.snapshot.distrust:
        yield Finding("todo", "trust", f"only built-in rankers search: the index is not trusted ({reason})", build)
        return
    roots = index.snapshot.roots
    if not roots:
        yield Finding("note", "sources", "the index does not name its source files: it cannot be updated")
        return
    if missing := [str(root) for root in roots if not root.exists()]:
        text = f"source folder missing ({', '.join(missing)}); results come from the old index"
        yield Finding("todo", "sources", text, build)
        return
    if description.counts["sources"]["made_by"] != made_by():
        text = "read by another version of ncs or its grammars; the next update reads all files again"
        yield Finding("note", "sources", text, update)
    try:
        difference = changes_since(index.snapshot, seconds, force=True)
    except NcsError as error:
        yield Finding("todo", "sources", str(error), update)
        return
    changes = difference.changes
    checked = f"{count(changes.unchanged + len(changes.added) + len(changes.changed), 'file')} checked"
    checked += "" if difference.complete else f" in {seconds:g} s, there may be more"
    if changes:
        first = next(path for paths in changes.kinds.values() for path in paths)
        yield Finding("todo", "sources", BEHIND.format(changed=f"{changes} ({first} ...)", remedy=checked), update)
    else:
        yield Finding("ok", "sources", f"nothing changed since {description.created}; {checked}")


def _check_disk(index: Index) -> Iterator[Finding]:
    """Whether an update could be written."""
    from ncs.build.pipeline import SPACE

    folder = index.folder
    if not os.access(folder, os.W_OK):
        text = f"{folder} is read-only: it can be searched, but not updated; build one where you may write"
        roots = index.snapshot.roots or ("SOURCES",)
        yield Finding("note", "disk", text, _command("build", *roots, "-i", "FOLDER"))
        return
    free, needed = shutil.disk_usage(folder).free, SPACE * int(index.description.counts.get("source_bytes", 0))
    text = f"{free / 1e6:,.0f} MB free; an update may need {needed / 1e6:,.0f} MB"
    enough = free >= needed
    yield Finding("ok", "disk", text) if enough else Finding("todo", "disk", f"{text}; free some space")
