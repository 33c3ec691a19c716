"""The last stage of a head that translates: it learns what the default ranker's lists lack, and not what they have.

Each list (`unif.answers`) has the default ranker's scores s and the share h of an answer that each function holds. The
head is trained where it will stand, added to s with the weight that it will count (ncs.search.signals.head):

    loss = cross entropy(gain(h), softmax((s + WEIGHT * standing / FAR) / SOFT))
         + ALONE * cross entropy(gain(h), softmax(LOOSE * standing)), functions drawn from the index among them

so a list that is right already pulls at nothing, and the second term keeps the head good alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from ncs.search.signals.head import FAR
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize
from unif.counts import counts_of
from unif.impacts import table_impacts
from unif.tokenization import Stems
from unif.translating_draw import dropped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.words import WordTable
    from ncs.text.vocabulary import Vocabulary
    from unif.answers import JudgedList

WEIGHT = 0.3
SOFT, LOOSE, ALONE = 0.1, 0.7, 0.3
NOTHING, ALL = 0.15, 0.6
"""Shares of an answer that are worth nothing, and as much as all of it: what random functions hold (NOTHING is between
the 75th and 94th of 100), and the strict threshold of evaluation.judges.aroma."""
LEADING, DRAWN, STRANGERS, BATCH = 16, 32, 512, 16
"""Of a list the first and of its rest the drawn ones in a step; functions of the index; lists."""
RATE, DROPOUT = 1e-3, 0.1


@dataclass(frozen=True, slots=True)
class Material:
    """What is learnt from. asked: the stems of each list's question, ones, CSR [lists, V]; impacts: of all functions of
    the index, CSR [n, V]; functions: rows that are no classes and no top-level code."""

    lists: Sequence[JudgedList]
    asked: Any
    impacts: Any
    functions: NDArray[np.int64]

    @classmethod
    def of(
        cls, lists: Sequence[JudgedList], words: WordTable, stems: Vocabulary, functions: NDArray[np.int64]
    ) -> Material:
        """Lists none of whose question's stems is known are left out."""
        tokens = Stems(stems)
        impacts, _ = table_impacts(words, counts_of([tokens.ids([word]) for word in words.vocabulary], len(tokens)))
        spelled = [sorted(set(tokens.ids(content_words(tokenize(each.text))))) for each in lists]
        known = [at for at, ids in enumerate(spelled) if ids]
        asked = counts_of([spelled[at] for at in known], len(tokens))
        return cls([lists[at] for at in known], asked, impacts, functions)


def learn(
    networks: Sequence[nn.Module], material: Material, rounds: int, draw: np.random.Generator
) -> Iterator[dict[str, float]]:
    """Rounds over the lists, of each its loss and pace. networks: each scores functions, CSR [b, V], to questions, CSR
    [a, V], as [a, b]; what the head says is the sum of how far each stands above the strangers."""
    tables = [m.weight for network in networks for m in network.modules() if isinstance(m, nn.Embedding)]
    optimiser = torch.optim.SparseAdam(tables, lr=RATE)
    for _ in range(rounds):
        start, total, steps = time.perf_counter(), 0.0, 0
        order = draw.permutation(len(material.lists))
        for at in range(0, len(order), BATCH):
            loss = _loss(networks, material, order[at : at + BATCH], draw)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()  # type: ignore[no-untyped-call]
            total, steps = total + float(loss.detach()), steps + 1
        yield {"loss": total / max(1, steps), "lists_per_s": len(order) / (time.perf_counter() - start)}


def _loss(
    networks: Sequence[nn.Module], material: Material, some: NDArray[np.int64], draw: np.random.Generator
) -> Tensor:
    lists = [material.lists[at] for at in some]
    picked = [_picked(len(each.rows), draw) for each in lists]
    strangers = draw.choice(material.functions, STRANGERS)
    rows = np.concatenate([*(each.rows[at] for each, at in zip(lists, picked, strict=True)), strangers])
    standing = _standing(networks, material.asked[some], dropped(material.impacts[rows], DROPOUT, draw))
    total, start = standing.new_zeros(()), 0
    for place, (each, at) in enumerate(zip(lists, picked, strict=True)):
        own, others = standing[place, start : start + len(at)], standing[place, -STRANGERS:]
        start += len(at)
        gains = torch.from_numpy(np.clip((each.held[at] - NOTHING) / (ALL - NOTHING), 0, 1)).float()
        if gains.sum() > 0:
            shares = gains / gains.sum()
            fused = (torch.from_numpy(each.scores[at]).float() + WEIGHT * own / FAR) / SOFT
            alone = F.log_softmax(torch.cat([own, others]) * LOOSE, 0)[: len(at)]
            total = total - (shares * F.log_softmax(fused, 0)).sum() - ALONE * (shares * alone).sum()
    return total / len(lists)


def _standing(networks: Sequence[nn.Module], asked: Any, impacts: Any) -> Tensor:
    """[lists, rows]; the last STRANGERS rows stand for all functions."""
    total = torch.zeros(())
    for network in networks:
        scores = network(asked, impacts)
        of_all = scores[:, -STRANGERS:].detach()
        total = total + (scores - of_all.mean(1, keepdim=True)) / of_all.std(1, keepdim=True).clamp(min=1e-6)
    return total


def _picked(n: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """Places in a list of n, ascending: the first LEADING, and DRAWN of the rest."""
    rest = np.arange(min(LEADING, n), n)
    return np.concatenate(
        [np.arange(min(LEADING, n)), np.sort(draw.choice(rest, min(DRAWN, len(rest)), replace=False))]
    )
