"""Settings by dotted name, one change or a grid of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import Any, cast

from ncs.errors import BadInput
from ncs.index import BuildConfig


def configure(config: BuildConfig, changes: Mapping[str, object]) -> BuildConfig:
    """The configuration with some of its values changed, by dotted name; BadInput names the known ones."""
    return cast(BuildConfig, _changed(config, changes, ""))


def _changed(config: Any, changes: Mapping[str, object], inside: str) -> Any:
    """All changes at once: a configuration may refuse one of them without the others."""
    values: dict[str, object] = {}
    deeper: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        first, _, rest = name.partition(".")
        if first not in (known := [each.name for each in fields(config)]):
            raise BadInput(f"no setting called {inside + name!r}; here there are: {', '.join(known)}")
        if is_dataclass(getattr(config, first)) != bool(rest):
            raise BadInput(f"{inside + name!r} is not a single setting; write for instance fasttext.dim=100")
        if rest:
            deeper.setdefault(first, {})[rest] = value
        else:
            values[first] = _like(getattr(config, first), value, inside + name)
    parts = {name: _changed(getattr(config, name), inner, f"{inside}{name}.") for name, inner in deeper.items()}
    return replace(config, **values, **parts)


def _like(old: object, value: object, name: str) -> object:
    """The value as the kind of the old one; None says nothing about the kind."""
    if isinstance(old, float) and type(value) is int:
        return float(value)
    if old is not None and type(value) is not type(old):
        raise BadInput(f"{name} is {old!r} by default; {value!r} is not of its kind")
    return value


def grid(alternatives: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Every combination of the alternatives.

    >>> grid({"fasttext.dim": [50, 100], "fasttext.epochs": [5]})
    [{'fasttext.dim': 50, 'fasttext.epochs': 5}, {'fasttext.dim': 100, 'fasttext.epochs': 5}]
    """
    return [dict(zip(alternatives, values, strict=True)) for values in product(*alternatives.values())]


def said(changes: Mapping[str, object], separator: str = " ") -> str:
    """The changes as the command line takes them.

    >>> said({"centre": True, "query_weights": "idf"}, ",")
    'centre=true,query_weights=idf'
    """
    return separator.join(f"{name}={json.dumps(value).strip(chr(34))}" for name, value in changes.items())
