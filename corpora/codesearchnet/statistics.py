"""What a corpus holds and what each filter removed: Table 1 of the paper, for any corpus made here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora.codesearchnet.candidates import FOUND, TWICE
from corpora.codesearchnet.filters import CONSTRUCTOR, FEW_TOKENS, METHOD, SHORT, TEST, UNDOCUMENTED
from corpora.codesearchnet.shards import EXACT_COPY, NEAR_COPY
from corpora.codesearchnet.splits import PARTITIONS
from ncs.errors import BadInput

FILE = "statistics.json"
ALL = "All"
REMOVED = (TEST, CONSTRUCTOR, METHOD, SHORT, TWICE, EXACT_COPY, NEAR_COPY)
"""What takes a function out of the corpus, in the order of the filters."""
NO_PAIR = (UNDOCUMENTED, FEW_TOKENS)
"""What keeps a function without a pair: it stays among all functions. Counted before duplicates are removed."""


def statistics(
    repositories: Sequence[Mapping[str, Any]], finished: Mapping[str, Mapping[str, int]], rules: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything counted: of repositories, and by language what was found, removed and kept.

    repositories: `candidates.Found` as dicts. finished: language -> counts of `shards.finish`.
    """
    found: dict[str, Counter[str]] = {}
    for repository in repositories:
        for language, counts in repository["counts"].items():
            found.setdefault(language, Counter()).update(counts)
    languages = {language: _language(found[language], finished.get(language, {})) for language in sorted(found)}
    return {
        "rules": dict(rules),
        "repositories": _repositories(repositories),
        "languages": {**languages, ALL: _sum(languages.values())},
    }


def _language(found: Mapping[str, int], finished: Mapping[str, int]) -> dict[str, Any]:
    counts = {**found, **finished}
    pairs, without = finished.get("pairs", 0), finished.get("undocumented", 0)
    return {
        "functions found": found[FOUND],
        "removed": {reason: counts.get(reason, 0) for reason in REMOVED},
        "all": pairs + without,
        "with documentation": pairs,
        "no pair": {reason: counts.get(reason, 0) for reason in NO_PAIR},
        "partitions": {
            name: {"pairs": finished.get(f"pairs {name}", 0), "all": _both(finished, name)} for name in PARTITIONS
        },
    }


def _both(finished: Mapping[str, int], partition: str) -> int:
    return sum(finished.get(f"{kind} {partition}", 0) for kind in ("pairs", "undocumented"))


def _sum(languages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of nested counts."""
    total: dict[str, Any] = {}
    for language in languages:
        for key, value in language.items():
            if isinstance(value, Mapping):
                total[key] = _sum([total.get(key, {}), value])
            else:
                total[key] = total.get(key, 0) + value
    return total


def _repositories(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    skipped: Counter[str] = Counter()
    for repository in found:
        skipped.update(repository["skipped"])
    kept = [repository for repository in found if repository["refused"] is None and not repository["error"]]
    return {
        "found": len(found),
        "read": len(kept),
        "left out": dict(sorted(Counter(each["refused"] for each in found if each["refused"]).items())),
        "unreadable": sum(bool(each["error"]) for each in found),
        "licences": dict(sorted(Counter(each["license"] or "none" for each in found).items())),
        "partitions": {name: sum(each["partition"] == name for each in kept) for name in PARTITIONS},
        "files": sum(each["files"] for each in found),
        "files with syntax errors": sum(each["broken"] for each in found),
        "files that failed": sum(each["failed"] for each in found),
        "files left out": dict(sorted(skipped.items())),
    }


def read_statistics(folder: Path) -> dict[str, Any]:
    """The statistics of a corpus; BadInput where there are none."""
    try:
        read: dict[str, Any] = json.loads((folder / FILE).read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        raise BadInput(
            f"{folder} has no sound {FILE}; make the corpus: ncs corpus codesearchnet SRC {folder}"
        ) from None
    return read


def table_1(counted: Mapping[str, Any]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Rows and columns of the paper's Table 1, with the pairs of each partition."""
    columns = ("language", "w/ documentation", "all", *(f"pairs {name}" for name in PARTITIONS))
    rows = []
    for name, each in counted["languages"].items():
        pairs = [each["partitions"][partition]["pairs"] for partition in PARTITIONS]
        rows.append((name, *(f"{n:,}" for n in (each["with documentation"], each["all"], *pairs))))
    return rows, columns


def table_removed(counted: Mapping[str, Any]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """A column a language: functions found, a row for what each filter removed and for what makes the rest no pairs."""
    languages = counted["languages"]
    rows = [("found", [each["functions found"] for each in languages.values()])]
    rows += [(reason, [each["removed"][reason] for each in languages.values()]) for reason in REMOVED]
    rows += [(f"no pair: {reason}", [each["no pair"][reason] for each in languages.values()]) for reason in NO_PAIR]
    return [(name, *(f"{n:,}" for n in numbers)) for name, numbers in rows], ("", *languages)
