"""What builds, updates and indexes come to, told to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ncs.cli.output.streams import say
from ncs.cli.output.tables import show_table
from ncs.storage.file_roles import OUTLINES

if TYPE_CHECKING:
    from pathlib import Path

    from ncs.answer import Answer
    from ncs.build.request import Changes
    from ncs.storage.snapshot import Description


def say_notes(answer: Answer) -> None:
    """What the answer has to tell beside its hits, on stderr."""
    for note in answer["notes"]:
        say(f"ncs: {note}")


def _documents(counts: Mapping[str, Any]) -> str:
    """How many functions, and how many classes and pieces of code outside functions."""
    outside = sum(n for kind, n in counts["kinds"].items() if kind in OUTLINES)
    functions = f"{counts['documents'] - outside:,} functions"
    return f"{functions}, {outside:,} classes and top-level blocks" if outside else functions


def say_built(manifest: Description, folder: Path, verbose: bool) -> None:
    """What a build came to, on stderr."""
    counts: Mapping[str, Any] = manifest.counts
    n = len(counts["repositories"])
    say(
        f"{_documents(counts)} ({counts['copies']:,} exact copies folded) from {counts['files']:,} files"
        f" of {n:,} {'repository' if n == 1 else 'repositories'}, {sum(counts['seconds'].values()):.0f} s -> {folder}"
    )
    if texts := counts.get("text_files"):
        say("read as text: " + ", ".join(f"{n:,} {kind}" for kind, n in texts.items()))
    skipped = {reason: n for reason, n in counts["skipped"].items() if n}
    if skipped:
        say("skipped: " + ", ".join(f"{n:,} {reason}" for reason, n in sorted(skipped.items())))
    if counts["broken"]:
        say(f"files with syntax errors: {counts['broken']:,} (what parsed is indexed)")
    if counts["failed"]:
        say(f"files the parser could not read: {counts['failed']:,}")
    for note in manifest.notes:
        say(f"note: {note}")
    if verbose:
        say("seconds: " + ", ".join(f"{stage} {s}" for stage, s in counts["seconds"].items()))
        for kind in ("broken_files", "failed_files", "unreadable_files"):
            for path in counts[kind]:
                say(f"{kind[:-6]}: {path}")
    say('ask it: ncs query "..."' + ("" if folder.name == ".ncs" else f" -i {folder}"))


def _drift(described: Mapping[str, Any]) -> str:
    """How much of the words have no vector, where that is more than when they were learnt."""
    training = described.get("training") or {}
    then, now = training.get("without_vector", 0), training.get("without_vector_now", 0)
    said = f"; {now:.1%} of words without a vector, {then:.1%} when learnt" if now > then else ""
    late = (described.get("delta") or {}).get("made", 0)
    return said + (f"; {late:,} documents newer than what is counted" if late else "")


def say_updated(manifest: Description, changes: Changes, verbose: bool) -> None:
    """What an update came to, on stderr."""
    from ncs.learn.embeddings import retraining_advice

    counts: Mapping[str, Any] = manifest.counts
    kinds = {"new": changes.added, "changed": changes.changed, "removed": changes.removed}
    said = ", ".join(f"{len(paths):,} {kind}" for kind, paths in kinds.items() if paths) or "nothing changed"
    say(f"{said}, {changes.unchanged:,} files as before; {_documents(counts)}")
    if advice := retraining_advice(manifest):
        say(f"note: {advice}")
    for kind, paths in kinds.items() if verbose else ():
        for path in paths:
            say(f"{kind}: {path}")


def _vectors(about: Mapping[str, Any]) -> str:
    """How document vectors are searched."""
    if about["kind"] == "exact":
        return "exact: all of them are compared"
    looked = f"{about['effort']} of {about['lists']:,} lists" if about["lists"] > 1 else f"{about['effort']} candidates"
    found = f", which found {about['recall']:.1%} of the ten best" if about["recall"] >= 0 else ""
    return f"{about['kind']}: {looked}{found}"


def show_info(described: Mapping[str, Any]) -> None:
    """An index described, for people."""
    size = described["bytes"]
    learning = described["config"].get(described["embeddings"], {})
    learnt = ", ".join(f"{name}={value}" for name, value in learning.items() if value is not None)
    repositories = sorted(described["repositories"].items(), key=lambda item: (-item[1], item[0]))
    rows = [
        ("index", described["index"]),
        ("created", f"{described['created']} by ncs {described['versions'].get('ncs')}, format {described['format']}"),
        ("documents", f"{_documents(described)}, and {described['copies']:,} exact copies of them"),
        ("files", f"{described['files']:,} ({described.get('source_bytes', 0) / 1e6:,.1f} MB)"),
        ("languages", ", ".join(f"{name} {n:,}" for name, n in described["languages"].items())),
        ("kinds", ", ".join(f"{name} {n:,}" for name, n in described["kinds"].items())),
        ("as text", ", ".join(f"{name} {n:,}" for name, n in described.get("text_files", {}).items()) or "no file"),
        ("words", f"{described['words']:,}; embeddings by {described['embeddings']}{_drift(described)}"),
        ("learning", described.get("pending") or learnt),
        ("vectors", _vectors(described["vectors"])),
        ("size", f"{sum(size.values()) / 1e6:,.1f} MB"),
        ("skipped", ", ".join(f"{n:,} {reason}" for reason, n in described["skipped"].items()) or "nothing"),
        (
            "broken, failed",
            f"{described['broken']:,} with syntax errors, {described['failed']:,} unreadable to the parser",
        ),
        *(("note", note) for note in described["notes"]),
    ]
    show_table("", rows)
    show_table(f"{len(repositories):,} repositories", [(name, f"{n:,}") for name, n in repositories[:20]])
    if len(repositories) > 20:
        say(f"... and {len(repositories) - 20:,} more; all of them: ncs info --json")
