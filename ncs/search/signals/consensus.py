"""The consensus and file signals: API names that many repositories share, and files with several candidates.

Good answers to a how-to query share an idiom. Take the first POOL candidates, weighted by their score. For each name a
that they use (called functions, types, constants):

    lift(a)      = sum of weights of documents using a / sum of weights * log((N + 1) / (df(a) + 1)) * log(1 + R(a))
    consensus(d) = sum of lift(a) over the names of d among the strongest / sum of lift over the strongest

R(a) is the number of repositories among those documents that use a. Only a name used by many projects is an idiom, so
the weight of the signal depends on how many repositories use the leading names; inside one repository it is 0.

The file signal helps inside one project, where queries ask for places; over many projects it would lift whole folders
named like the query. Its weight is 1 / the effective number of repositories among the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.storage.arrays import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.file_roles import FileRoles
    from ncs.storage.uses import NameUses, Uses

    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

POOL = 200
"""Candidates whose names are counted; 100 and 400 are no better."""
STRONGEST = 25
LEADING = 5
HALF, STEEPNESS = 6.0, 2.0
"""The gate is .5 if the leading names are used by HALF repositories each, on average."""
NEIGHBORS = 100
"""Candidates whose file and repository count as evidence."""


@dataclass(frozen=True, slots=True)
class Consensus:
    """Names shared by the best candidates: ids int64 and lifts float64, strongest first; support: mean number of
    repositories that use each leading name.
    """

    names: NDArray[np.int64]
    lifts: Scores
    support: float

    @property
    def gate(self) -> float:
        """The weight by support in repositories, 0 to 1; 0 for one repository."""
        if self.support <= 1:
            return 0.0
        return float(1 / (1 + np.exp(-(self.support - HALF) / STEEPNESS)))

    def scores(self, uses: Uses | NameUses, rows: Rows) -> Scores:
        """The share of the lifts of each row's names, 0 to 1, [len(rows)]."""
        ids, lengths = uses.of(rows)
        order = np.argsort(self.names)
        names, lifts = self.names[order], self.lifts[order]
        at = np.minimum(np.searchsorted(names, ids), max(0, len(names) - 1))
        weights = np.where(names[at] == ids, lifts[at], 0.0) if len(names) else np.zeros(len(ids))
        owners = np.repeat(np.arange(len(rows)), lengths)
        total = float(self.lifts.sum())  # strongest first, independent of ids
        return np.bincount(owners, weights, minlength=len(rows)) / total if total > 0 else np.zeros(len(rows))


def agree(uses: Uses | NameUses, repositories: NDArray[np.int32], rows: Rows, weights: Scores) -> Consensus:
    """The consensus of the first POOL rows. rows: best first. weights: of each row, not negative; if all are 0 there
    is no consensus. repositories: of each row.
    """
    rows, weights, repositories = rows[:POOL], weights[:POOL], repositories[:POOL]
    ids, lengths = uses.of(rows)
    names, numbers = np.unique(ids, return_inverse=True)
    if not len(names) or not weights.any():
        return Consensus(np.zeros(0, np.int64), np.zeros(0), 0.0)
    shares = np.bincount(numbers, np.repeat(weights, lengths)) / weights.sum()
    owners = np.repeat(repositories.astype(np.int64), lengths)
    pairs = distinct(numbers.astype(np.int64) * (int(owners.max()) + 1) + owners)
    support = np.bincount(pairs // (int(owners.max()) + 1), minlength=len(names))
    rarity = np.log((len(uses) + 1) / (uses.documents[names] + 1))
    lifts = shares * rarity * np.log1p(support)
    order = np.lexsort((uses.names.ranks(names), -lifts))[:STRONGEST]
    return Consensus(names[order].astype(np.int64), lifts[order], float(support[order][:LEADING].mean()))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence from all candidates. pool: the rows that vote; inside: 1 / effective number of repositories, 1 for one
    project.
    """

    consensus: Consensus
    pool: Rows
    inside: float


def gather(facts: DocumentFacts, rows: Rows, base: Scores) -> Evidence:
    """From the candidates, best first; base: their score by words and meaning."""
    weights = base / max(float(base[0]), 1e-9)
    owners = facts.file_roles.repositories_of(rows)
    consensus = agree(facts.uses, owners, rows, weights)
    inside = 1 / _effective(owners[:NEIGHBORS], weights[:NEIGHBORS])
    return Evidence(consensus, rows[:POOL], inside)


def consensus_signal(evidence: Evidence, uses: Uses, rows: Rows, weight: float) -> Scores:
    """The gated consensus of each row, [len(rows)]."""
    return weight * evidence.consensus.gate * evidence.consensus.scores(uses, rows)


def file_signal(
    evidence: Evidence,
    places: FileRoles,
    idf: Mapping[str, float],
    rows: Rows,
    base: Scores,
    *,
    title: float,
    neighbors: float,
) -> Scores:
    """The file signal of each row, [len(rows)]: from the file's name and its other candidates. rows: best first."""
    shares = base / max(float(base[0]), 1e-9)
    titles = title * places.title_match(idf, rows)
    beside = neighbors * _support(places.files_of(rows), shares)
    result: Scores = evidence.inside * (titles + beside)
    return result


def _effective(owners: NDArray[np.int32], weights: Scores) -> float:
    """The effective number of repositories (inverse Simpson index of their weights); at least 1."""
    shares = np.bincount(owners, weights)
    total = float(shares.sum())
    return max(1.0, total**2 / float((shares**2).sum())) if total > 0 else 1.0


def _support(files: NDArray[np.int64], weights: Scores) -> Scores:
    """The total weight of the best candidates in each row's file, relative to the best file; 0 for files without a
    name.
    """
    distinct_files, numbers = np.unique(files, return_inverse=True)
    head = np.where(np.arange(len(files)) < NEIGHBORS, weights, 0.0) * (files >= 0)
    sums = np.bincount(numbers, head, minlength=len(distinct_files))
    best = float(sums.max(initial=0))
    support: Scores = sums[numbers] / best if best > 0 else np.zeros(len(files))
    return support
