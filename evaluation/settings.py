"""Settings by dotted name, one change or a grid of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import Any

from ncs.errors import BadInput
from ncs.index import BuildConfig


def configure(config: BuildConfig, changes: Mapping[str, object]) -> BuildConfig:
    """The configuration with some of its values changed, by dotted name; BadInput names the known ones."""
    for name, value in changes.items():
        config = _changed(config, name, name.split("."), value)
    return config


def _changed(config: Any, name: str, parts: Sequence[str], value: object) -> Any:
    known = [each.name for each in fields(config)]
    if parts[0] not in known:
        raise BadInput(f"no setting called {name!r}; here there are: {', '.join(known)}")
    old = getattr(config, parts[0])
    if is_dataclass(old) != (len(parts) > 1):
        raise BadInput(f"{name!r} is not a single setting; write for instance fasttext.dim=100")
    if len(parts) > 1:
        return replace(config, **{parts[0]: _changed(old, name, parts[1:], value)})
    if isinstance(old, float) and type(value) is int:
        value = float(value)
    if old is not None and type(value) is not type(old):
        raise BadInput(f"{name} is {old!r} by default; {value!r} is not of its kind")
    return replace(config, **{parts[0]: value})


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
