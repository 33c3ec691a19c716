"""What a candidate's own names and words say to a question, and what it is worth before any question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ncs.search.signals import association, direction, naming, priors, proximity, soft_match
from ncs.storage.postings import stem_all
from ncs.text.tokens import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.candidates import Parts
    from ncs.search.question import Intent
    from ncs.search.ranking import Hidden
    from ncs.search.weights import Settings, Weights
    from ncs.storage.document_facts import Structure

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

DIRECTION = 3.0
"""What the question's way, or against it, counts beside all of the question in a name."""


def names(structure: Structure, text: str, asked: Mapping[str, float], rows: Rows, hidden: Hidden | None) -> Scores:
    """How far each row's name is the question, [n]: 1 for all of it, and more or less where it says its way or against
    it. asked: stem -> idf."""
    named = naming.agreement(structure.words, rows, asked, structure.stems)
    named += DIRECTION * direction.direction(structure.words, rows, tokenize(text), structure.stems)
    if hidden and hidden.name is not None:
        named[rows == hidden.row] = hidden.name
    return named


def own(
    parts: Parts, intent: Intent, named: Scores, asked: Mapping[str, float], rows: Rows, inside: float,
    weights: Weights, settings: Settings,
) -> dict[str, Scores]:  # fmt: skip
    """Name -> [n]. named: `names`. asked: stem -> idf. inside: how far the candidates stand in one project."""
    table = parts.structure.words
    stems = parts.structure.stems
    found = {
        "name": weights.naming * named,
        "definition": weights.definition * definition(parts.structure, intent, rows, inside),
    }
    if settings.proximity:
        near = proximity.agreement(table, stems, rows, stem_all(intent.words), asked)
        found["proximity"] = settings.proximity * inside * near
    if settings.association:
        related = association.agreement(table, parts.lexical.postings, intent.words, rows)
        found["association"] = settings.association * (1 - inside) * related
    if settings.soft_match:
        near = soft_match.agreement(table, parts.dense.encoder.vectors, rows, asked)
        found["soft_match"] = settings.soft_match * near
    return found


def definition(structure: Structure, intent: Intent, rows: Rows, inside: float) -> Scores:
    """How well each row defines a name that the question spells, [n]. In a sentence a name asks for its definition
    inside a project only: over many projects `how to restart an Activity` asks for no class of that name."""
    found = np.zeros(len(rows))
    order = np.argsort(rows)
    for symbol in intent.symbols:
        defining, weights = structure.symbols.match(symbol)
        at = np.minimum(np.searchsorted(rows[order], defining), len(rows) - 1)
        met = rows[order][at] == defining
        counted = weights[met] * (1.0 if intent.kind == "symbol" else inside)
        found[order[at[met]]] = np.maximum(found[order[at[met]]], counted)
    return found


def factors(
    structure: Structure, intent: Intent, rows: Rows, inside: float, named: Scores, settings: Settings
) -> dict[str, Scores]:
    """Name -> [n]: what each row's score is multiplied by. named: `names`."""
    places, table = structure.places, structure.words
    outline = places.outline[rows]
    return {
        "role": priors.factors(places.role[places.file[rows]], intent.words, factor=settings.role),
        "outline": priors.outlines(outline, inside, factor=settings.outline),
        "body": priors.bodies(table, rows, outline, inside, named, factor=settings.body),
        "quality": priors.quality(table, structure.stems, rows, unfinished=settings.unfinished, marked=settings.marked),
    }
