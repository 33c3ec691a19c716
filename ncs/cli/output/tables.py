"""Tables and summaries: of builds, updates and indexes, and what `ncs doctor` found."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ncs.console import count, is_fancy, rich_console, say, show_table, visible
from ncs.storage.file_roles import OUTLINES

if TYPE_CHECKING:
    from pathlib import Path

    from ncs.build.request import Changes
    from ncs.cli.doctor import Finding, Level
    from ncs.storage.snapshot import Description

MAX_REPOSITORIES = 20
STYLES: dict[Level, str] = {"ok": "green", "note": "dim", "todo": "bold yellow"}


def show_findings(findings: Iterable[Finding]) -> bool:
    """`level  text: command` on stdout, as they come; whether nothing is to be done."""
    healthy = True
    for finding in findings:
        healthy &= finding.level != "todo"
        text = visible(finding.text).replace("\n", " ") + (f": {finding.command}" if finding.command else "")
        if is_fancy(sys.stdout):
            from rich.text import Text

            line = Text(f"{finding.level:<5} ", STYLES[finding.level]).append(text, "default not bold not dim")
            rich_console().print(line, soft_wrap=True)
        else:
            print(f"{finding.level:<5} {text}", flush=True)
    return healthy


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in counts.items())


def _reasons(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(skipped.items()) if n)


def _documents(counts: Mapping[str, Any]) -> str:
    """Functions, and what else there is."""
    outlines = sum(n for kind, n in counts["kinds"].items() if kind in OUTLINES)
    functions = count(counts["documents"] - outlines, "function")
    return f"{functions}, {outlines:,} classes and top-level blocks" if outlines else functions


def say_built(description: Description, folder: Path, verbose: bool) -> None:
    """Summarize a build on stderr."""
    counts: Mapping[str, Any] = description.counts
    say(
        f"{_documents(counts)} ({count(counts['copies'], 'exact copy', 'exact copies')} folded)"
        f" from {count(counts['files'], 'file')}"
        f" of {count(len(counts['repositories']), 'repository', 'repositories')},"
        f" {sum(counts['seconds'].values()):.0f} s -> {folder}"
    )
    if texts := counts.get("text_files"):
        say(f"read as text: {_format_counts(texts)}")
    if skipped := _reasons(counts["skipped"]):
        say(f"skipped: {skipped}")
    if counts["broken"]:
        say(f"{count(counts['broken'], 'file')} with syntax errors (what could be parsed is indexed)")
    if counts["failed"]:
        say(f"{count(counts['failed'], 'file')} could not be parsed")
    for note in description.notes:
        say(f"note: {note}")
    if verbose:
        say("seconds: " + ", ".join(f"{stage} {seconds}" for stage, seconds in counts["seconds"].items()))
        for kind in ("broken_files", "failed_files", "unreadable_files"):
            for path in counts[kind]:
                say(f"{kind[:-6]}: {path}")
    say('search it: ncs query "..."' + ("" if folder.name == ".ncs" else f" -i {folder}"))


def say_updated(description: Description, changes: Changes, verbose: bool) -> None:
    """Summarize an update on stderr."""
    from ncs.learn.embeddings import retraining_advice

    kinds = {"new": changes.added, "changed": changes.changed, "removed": changes.removed}
    changed = ", ".join(f"{len(paths):,} {kind}" for kind, paths in kinds.items() if paths) or "nothing changed"
    say(f"{changed}, {count(changes.unchanged, 'file')} unchanged; {_documents(description.counts)}")
    if advice := retraining_advice(description):
        say(f"note: {advice}")
    for kind, paths in kinds.items() if verbose else ():
        for path in paths:
            say(f"{kind}: {path}")


def _drift(description: Mapping[str, Any]) -> str:
    """The share of words without a vector, where it has grown since the vectors were learned."""
    training = description.get("training") or {}
    then, now = training.get("without_vector", 0), training.get("without_vector_now", 0)
    return f"; {now:.1%} of words without a vector, {then:.1%} when learned" if now > then else ""


def _vectors(about: Mapping[str, Any]) -> str:
    if about["kind"] == "exact":
        return "exact: all of them are compared"
    return f"{about['kind']}: approximately, by {about['lists']:,} lists"


def show_info(description: Mapping[str, Any]) -> None:
    """An index described by `ncs.answer.describe`."""
    fit = description["config"].get(description["embeddings"], {})
    settings = ", ".join(f"{name}={value}" for name, value in fit.items() if value is not None)
    copies = count(description["copies"], "exact copy", "exact copies")
    repositories = sorted(description["repositories"].items(), key=lambda item: (-item[1], item[0]))
    rows = [
        ("index", description["index"]),
        (
            "created",
            f"{description['created']} by ncs {description['versions'].get('ncs')}, format {description['format']}",
        ),
        ("documents", f"{_documents(description)}, and {copies} of them"),
        ("files", f"{description['files']:,} ({description.get('source_bytes', 0) / 1e6:,.1f} MB)"),
        ("languages", _format_counts(description["languages"])),
        ("kinds", _format_counts(description["kinds"])),
        ("as text", _format_counts(description.get("text_files", {})) or "none"),
        ("words", f"{description['words']:,}; embeddings by {description['embeddings']}{_drift(description)}"),
        ("learning", description.get("pending") or settings),
        ("vectors", _vectors(description["vectors"])),
        ("size", f"{sum(description['bytes'].values()) / 1e6:,.1f} MB"),
        ("skipped", _reasons(description["skipped"]) or "nothing"),
        ("broken, failed", f"{description['broken']:,} with syntax errors, {description['failed']:,} not parsed"),
        *(("note", note) for note in description["notes"]),
    ]
    show_table("", rows)
    title = count(len(repositories), "repository", "repositories")
    show_table(title, [(name, f"{n:,}") for name, n in repositories[:MAX_REPOSITORIES]])
    if len(repositories) > MAX_REPOSITORIES:
        say(f"... and {len(repositories) - MAX_REPOSITORIES:,} more; all of them: ncs info --json")
