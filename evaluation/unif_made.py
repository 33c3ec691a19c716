"""What training is timed over: made pairs with something to learn in their questions, and a network of their size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.text.vocabulary import Vocabulary
from unif.beginning import Beginning
from unif.data import Pair, Pairs, Reading, prepare
from unif.settings import ModelConfig
from unif.tokenization import Words

if TYPE_CHECKING:
    import torch

    from unif.model import Towers

DIM, QUERY, CODE = 100, 8, 35
"""Numbers a word, and words of a question and of a code in the mean (those of the Java pairs of Stack Overflow)."""
ROUNDS = 5
"""Of which the fastest counts."""


def made(pairs: int, words: int, folder: Path, seed: int = 0) -> Pairs:
    """Pairs of words by Zipf; half of a question's words have their partner in its code."""
    vocabulary = [f"w{i:07}" for i in range(words)]
    tokens = Words(Vocabulary.of(vocabulary))
    return prepare(_spoken(pairs, vocabulary, seed), folder, Reading(), tokens.ids, tokens.ids)


def _spoken(pairs: int, vocabulary: list[str], seed: int) -> Iterator[Pair]:
    draw, half = np.random.default_rng(seed), len(vocabulary) // 2
    shares = np.cumsum(1 / np.arange(1, half + 1))
    for start in range(0, pairs, 10_000):
        n = min(10_000, pairs - start)
        lengths = np.minimum(draw.lognormal(np.log(CODE) - 0.25, 0.7, n).astype(int) + 2, 200)
        for at in range(n):
            said = np.searchsorted(shares, draw.random(QUERY) * shares[-1])
            noise = np.searchsorted(shares, draw.random(max(1, lengths[at] - QUERY // 2)) * shares[-1])
            code = [*(half + said[: QUERY // 2]).tolist(), *noise.tolist()]
            yield Pair([vocabulary[i] for i in said.tolist()], [vocabulary[i] for i in code], [str(start + at)])


def network(words: int, device: torch.device) -> Towers:
    from unif.model import create

    tokens = Words(Vocabulary.of(f"w{i:07}" for i in range(words)))
    vectors = np.random.default_rng(0).normal(scale=0.1, size=(words, DIM)).astype(np.float32)
    return create(ModelConfig(), Beginning(tokens, tokens, "fields", vectors, np.zeros(words, np.float32))).to(device)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
