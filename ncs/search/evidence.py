"""What the candidates of a question say about each other: shared names, and files that hold several of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ncs.search.ranking import Evidence
from ncs.search.signals import consensus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.weights import Weights
    from ncs.storage.document_facts import Structure

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

NEIGHBOURS = 100
"""Of the best candidates, those whose file and repository count as evidence."""


def gather(structure: Structure, rows: Rows, base: Scores) -> Evidence:
    """From the candidates, best first; base: what words and meaning score them."""
    weights = base / max(float(base[0]), 1e-9)
    owners = structure.places.repository[structure.places.file[rows]]
    agreed = consensus.agree(structure.references, owners, rows, weights)
    inside = 1 / _effective(owners[:NEIGHBOURS], weights[:NEIGHBOURS])
    return Evidence(agreed, rows[: consensus.POOL], inside)


def signals(
    evidence: Evidence, structure: Structure, asked: Mapping[str, float], rows: Rows, base: Scores, weights: Weights
) -> dict[str, Scores]:
    """Name -> [n] of the candidates, best first. asked: stem -> idf."""
    files, shares = structure.places.file[rows], base / max(float(base[0]), 1e-9)
    titled = weights.title * structure.places.title_match(asked, files)
    beside = weights.neighbours * _support(files, shares, structure.places.named[files])
    agreed = evidence.agreed
    return {
        "consensus": weights.consensus * agreed.gate * agreed.scores(structure.references, rows),
        "file": evidence.inside * (titled + beside),
    }


def _effective(owners: NDArray[np.int32], weights: Scores) -> float:
    """How many repositories there are, as their weights are spread (inverse Simpson index); at least 1."""
    shares = np.bincount(owners, weights)
    total = float(shares.sum())
    return max(1.0, total**2 / float((shares**2).sum())) if total > 0 else 1.0


def _support(files: NDArray[np.int32], weights: Scores, named: NDArray[np.bool_]) -> Scores:
    """What the best candidates of each row's file weigh together, over the best file's; 0 for files without a name."""
    files = np.where(named, files, -1)
    known, numbers = np.unique(files, return_inverse=True)
    head = np.where(np.arange(len(files)) < NEIGHBOURS, weights, 0.0) * (files >= 0)
    sums = np.bincount(numbers, head, minlength=len(known))
    best = float(sums.max(initial=0))
    support: Scores = sums[numbers] / best if best > 0 else np.zeros(len(files))
    return support
