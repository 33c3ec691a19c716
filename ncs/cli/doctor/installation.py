"""What is installed: the program and its libraries, extras, grammars."""

from __future__ import annotations

import importlib.metadata as metadata
import platform
import re
from collections.abc import Iterator, Mapping

from ncs.cli.doctor.findings import Finding

DISTRIBUTION = "neural-code-search"
FOR_DEVELOPERS = ("dev",)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def installation() -> Iterator[Finding]:
    """One finding about each of them."""
    needed = requirements()
    yield _core(needed.pop("", []))
    languages = needed.pop("languages", [])
    yield from _grammars(languages)
    yield from _extras({extra: names for extra, names in needed.items() if extra not in FOR_DEVELOPERS})


def requirements() -> dict[str, list[str]]:
    """Extra -> the distributions it needs; "" -> what is always needed. Empty where ncs itself is not installed."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return {}
    found: dict[str, list[str]] = {}
    for line in lines:
        requirement, _, marker = line.partition(";")
        name, extra = _NAME.match(requirement.strip()), _EXTRA.search(marker)
        if name:
            found.setdefault(extra[1] if extra else "", []).append(name[0])
    return found


def version(name: str) -> str | None:
    """Of a distribution; None where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _core(names: list[str]) -> Finding:
    missing = [name for name in names if version(name) is None]
    if missing:
        text = f"not installed, and ncs cannot do without: {', '.join(missing)}"
        return Finding("todo", "program", text, f"pip install {' '.join(missing)}")
    told = ", ".join(f"{name} {version(name)}" for name in ("numpy", "faiss-cpu", "fasttext", "tree-sitter"))
    ours = version(DISTRIBUTION) or "not installed"
    return Finding("ok", "program", f"ncs {ours}, Python {platform.python_version()}, {told}")


def _grammars(names: list[str]) -> Iterator[Finding]:
    from ncs.extract.languages import LANGUAGES, installed

    missing = [name for name in LANGUAGES if not installed(name)]
    yield Finding("ok", "grammars", f"{len(LANGUAGES) - len(missing)} of {len(LANGUAGES)} languages are read")
    if missing:
        text = f"not installed: {', '.join(missing)}"
        yield Finding("note", "grammars", text, f"pip install '{DISTRIBUTION}[languages]'")


def _extras(needed: Mapping[str, list[str]]) -> Iterator[Finding]:
    missing = {extra: [name for name in names if version(name) is None] for extra, names in needed.items()}
    if whole := [extra for extra, names in missing.items() if not names]:
        yield Finding("ok", "extras", f"extras installed: {', '.join(whole)}")
    for extra, names in missing.items():
        if names:
            text = f"extra {extra} is not installed ({', '.join(names)})"
            yield Finding("note", "extras", text, f"pip install '{DISTRIBUTION}[{extra}]'")
