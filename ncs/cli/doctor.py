"""`ncs doctor`: what is installed, what the index has, what is stale or left out, and what to type."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import platform
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from ncs.cli import output
from ncs.cli.options import FOUND, NOTHING_FOUND, IndexOption, Json
from ncs.console import count
from ncs.errors import IndexFolderError, IndexNotFound, NcsError

if TYPE_CHECKING:
    from ncs.index import Index

Level: TypeAlias = Literal["ok", "note", "todo"]
"""All is well; good to know; something should be done."""
SECONDS = 5.0
"""How long sources are checked for changes."""
MAX_FILES = 3
"""Files of a kind that are named."""
DISTRIBUTION = "neural-code-search"
DEVELOPER_EXTRAS = ("dev",)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about the installation or an index. command: what to type, where something can be done."""

    level: Level
    about: str
    text: str
    command: str | None = None


def doctor(
    index: IndexOption = None,
    seconds: Annotated[float, typer.Option(min=0, help="How long to check files for changes.")] = SECONDS,
    as_json: Json = False,
) -> None:
    """Report what is installed, what the index has, what is stale or left out, and what to type.

    Lines start with ok, note (good to know) or todo. Exit status: 0 healthy, 1 something to do, 2 error.

    Example: ncs doctor -i .ncs
    """
    findings = diagnose(index, seconds=seconds)
    if as_json:
        report = to_dict(findings)
        output.show_json(report)
        healthy = report["healthy"]
    else:
        healthy = output.show_findings(findings)
    raise typer.Exit(FOUND if healthy else NOTHING_FOUND)


def to_dict(findings: Iterable[Finding]) -> Mapping[str, Any]:
    """For JSON: healthy (nothing is to be done) and findings."""
    rows = [asdict(finding) for finding in findings]
    return {"healthy": all(row["level"] != "todo" for row in rows), "findings": rows}


def _command_line(*words: str | Path) -> str:
    """A command as it can be typed, whatever folders are called.

    >>> _command_line("ncs", "update", "-i", "my index")
    "ncs update -i 'my index'"
    """
    return shlex.join(map(str, words))


def diagnose(folder: Path | None, *, seconds: float = SECONDS) -> Iterator[Finding]:
    """Everything, the installation first. folder: the index; None: the nearest."""
    from ncs.index import Index
    from ncs.storage.snapshot import find_index

    yield from check_installation()
    try:
        index = Index.load(folder or find_index(Path.cwd()))
    except IndexNotFound as error:
        text, _, _ = str(error).partition("; ")
        yield Finding(
            "todo", "index", text, _command_line("ncs", "build", ".", *(() if folder is None else ("-i", folder)))
        )
        return
    except (IndexFolderError, OSError) as error:
        text, _, command = str(error).partition("; build it again with: ")
        yield Finding("todo", "index", text, command or None)
        return
    with index:
        yield from check_index(index)
        yield from check_sources(index, seconds=seconds)
        yield from check_disk(index)


def check_installation() -> Iterator[Finding]:
    """The program and its libraries, extras, grammars."""
    from ncs.extract.languages import LANGUAGES, installed

    needed = requirements()
    names = needed.pop("", [])
    needed.pop("languages", None)
    if missing := [name for name in names if _version(name) is None]:
        text = f"required, but not installed: {', '.join(missing)}"
        yield Finding("todo", "program", text, f"pip install {' '.join(missing)}")
    else:
        libraries = ", ".join(f"{name} {_version(name)}" for name in ("numpy", "faiss-cpu", "fasttext", "tree-sitter"))
        version = _version(DISTRIBUTION) or "not installed"
        yield Finding("ok", "program", f"ncs {version}, Python {platform.python_version()}, {libraries}")
    missing = [name for name in LANGUAGES if not installed(name)]
    yield Finding("ok", "grammars", f"{len(LANGUAGES) - len(missing)} of {len(LANGUAGES)} languages are installed")
    if missing:
        remedy = f"pip install '{DISTRIBUTION}[languages]'"
        yield Finding("note", "grammars", f"not installed: {', '.join(missing)}", remedy)
    extras = {extra: names for extra, names in needed.items() if extra not in DEVELOPER_EXTRAS}
    missing_by_extra = {extra: [name for name in names if _version(name) is None] for extra, names in extras.items()}
    if complete := [extra for extra, names in missing_by_extra.items() if not names]:
        yield Finding("ok", "extras", f"extras installed: {', '.join(complete)}")
    for extra, names in missing_by_extra.items():
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
        requirement, _, marker = line.partition(";")
        name, extra = _NAME.match(requirement.strip()), _EXTRA.search(marker)
        if name:
            extras.setdefault(extra[1] if extra else "", []).append(name[0])
    return extras


def _version(name: str) -> str | None:
    """Of an installed distribution; of fasttext, of any that provides the module."""
    if name == "fasttext":
        from ncs.learn.fasttext import distribution

        return (distribution() or (name, None))[1]
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_index(index: Index) -> Iterator[Finding]:
    """Documents, what was left out, word vectors, tuned weights."""
    from ncs.answer import not_ready
    from ncs.learn.confidence import TUNED
    from ncs.learn.embeddings import retraining_advice

    counts, update = index.description.counts, _command_line("ncs", "update", "-i", index.folder)
    about = f"{count(len(index), 'document')} of {count(len(counts['repositories']), 'repository', 'repositories')}"
    languages = ", ".join(f"{name} {n:,}" for name, n in counts["languages"].items())
    yield Finding("ok", "index", f"{index.folder}: {about} in {languages}; of {index.description.created}")
    for pending in not_ready(index):
        yield Finding("todo", "index", f"{pending}; wait for the build, or start it again", update)
    if advice := retraining_advice(index.description):
        yield Finding("todo", "vectors", advice.partition("; learn")[0], f"{update} --retrain")
    else:
        yield Finding("ok", "vectors", f"word vectors by {counts.get('embeddings', 'none')}")
    if (index.folder / TUNED).exists():
        yield Finding("ok", "weights", "tuned to your queries; undo with: ncs tune --reset")
    yield from left_out(counts, index.description.notes)


def left_out(counts: Mapping[str, Any], notes: Iterable[str]) -> Iterator[Finding]:
    """What of the sources is not in the index, and why."""
    skipped = {reason: n for reason, n in sorted(counts.get("skipped", {}).items()) if n}
    if skipped:
        yield Finding("note", "skipped", ", ".join(f"{n:,} {reason}" for reason, n in skipped.items()))
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


def check_sources(index: Index, *, seconds: float = SECONDS) -> Iterator[Finding]:
    """What has changed since the index was built or updated; nothing is written."""
    from ncs.build.file_cache import made_by
    from ncs.build.request import find_changes, request_of, roots_of

    description, update = index.description, _command_line("ncs", "update", "-i", index.folder)
    roots = roots_of(description)
    if not roots:
        yield Finding("note", "sources", "the index does not name its source files: it cannot be updated")
        return
    if missing := [str(root) for root in roots if not root.exists()]:
        text = f"source folder missing ({', '.join(missing)}); results come from the old index"
        yield Finding("todo", "sources", text, _command_line("ncs", "build", "SOURCES", "-i", index.folder))
        return
    if description.counts["sources"]["made_by"] != made_by():
        text = "read by another version of ncs or its grammars; the next update reads all files again"
        yield Finding("note", "sources", text, update)
    try:
        request = replace(request_of(description, index.folder), force=True)
        difference = find_changes(index.snapshot, request, seconds=seconds)
    except NcsError as error:
        yield Finding("todo", "sources", str(error), update)
        return
    changes = difference.changes
    kinds = {"new": changes.added, "changed": changes.changed, "removed": changes.removed}
    checked = f"{count(changes.unchanged + len(changes.added) + len(changes.changed), 'file')} checked"
    checked += "" if difference.complete else f" in {seconds:g} s, there may be more"
    if changes:
        changed = ", ".join(f"{len(paths):,} {kind}" for kind, paths in kinds.items() if paths)
        first = next(path for paths in kinds.values() for path in paths)
        yield Finding("todo", "sources", f"out of date: {changed} ({first} ...); {checked}", update)
    else:
        yield Finding("ok", "sources", f"nothing changed since {description.created}; {checked}")


def check_disk(index: Index) -> Iterator[Finding]:
    """Whether an update could be written."""
    from ncs.build.pipeline import SPACE
    from ncs.build.request import roots_of

    folder = index.folder
    if not os.access(folder, os.W_OK):
        text = f"{folder} is read-only: it can be searched, but not updated; build one where you may write"
        roots = [str(root) for root in roots_of(index.description)] or ["SOURCES"]
        yield Finding("note", "disk", text, _command_line("ncs", "build", *roots, "-i", "FOLDER"))
        return
    free, needed = shutil.disk_usage(folder).free, SPACE * int(index.description.counts.get("source_bytes", 0))
    text = f"{free / 1e6:,.0f} MB free; an update may need {needed / 1e6:,.0f} MB"
    yield (
        Finding("ok", "disk", text)
        if free >= needed
        else Finding("todo", "disk", text, _command_line("df", "-h", folder))
    )
