"""Indexes that were brought from revision to revision by updates, against whole builds of the same tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from evaluation.experiments import all_documents
from ncs.index import Index

FIRST = 10
"""Files of a ranking that are compared."""
NAMED = 5
"""Documents of a difference that are named."""


def differences(updated: Index, built: Index) -> dict[str, Any]:
    """How many documents the built index holds, how many of them the updated one does not (missing), and how many it
    holds beyond them (extra), with the first of each; copies count as documents."""
    ours, whole = _places(updated), _places(built)
    missing, extra = sorted(whole - ours), sorted(ours - whole)
    return {
        "documents": len(whole), "missing": len(missing), "extra": len(extra),
        "examples": [*missing[:NAMED], *extra[:NAMED]],
    }  # fmt: skip


def _places(index: Index) -> set[str]:
    return {
        f"{each.path}:{each.start_line}-{each.end_line} {each.qualified_name}"
        for document in all_documents(index)
        for each in (document.location, *document.copies)
    }


def overlap(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """The share of the first ten files of one ranking that are among the first ten of another.

    >>> overlap(["a", "b"], ["b", "c"])
    0.5
    """
    first = set(theirs[:FIRST])
    return len(first & set(ours[:FIRST])) / len(first) if first else 1.0


def sentence(updates: Mapping[str, Any]) -> str:
    """The updates in a line: their time, and what the comparisons gave."""
    seconds, checks = updates["seconds"], updates["checks"]
    text = f"{len(seconds):,} updates, {sum(updates['compactions'])} of them compactions"
    if seconds:
        p50, p95 = np.percentile(seconds, [50, 95])
        text += f": p50 {p50:.1f} s, p95 {p95:.1f} s"
    if not checks:
        return f"{text}."
    same = sum(not check["missing"] and not check["extra"] for check in checks)
    sides = [_side(name, checks) for name in checks[0]["rankings"]]
    several = sum(check["segments"] > 1 for check in checks)
    compared = f"{len(checks)} updated indexes against whole builds ({several} of several segments)"
    return f"{text}. {compared}: the same documents in {same}; {'; '.join(sides)} (updated / built)."


def _side(name: str, checks: Sequence[Mapping[str, Any]]) -> str:
    rankings = [check["rankings"][name] for check in checks]
    shared = fmean(each["overlap"] for each in rankings)  # exact: from 3.12 on sum rounds otherwise
    updated, built = (sum(each[side]["acc@5"] for each in rankings) for side in ("updated", "built"))
    return f"{name}: {shared:.2f} of the first ten files the same, acc@5 {updated:.0f} / {built:.0f}"
