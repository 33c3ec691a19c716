"""Tokenizers of the two towers: the words of an index, or byte pairs and sub-tokens learned from the pairs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import MissingExtra
from ncs.learn.tokenization import END, BpeTokenizer, Tokenizer, WordTokenizer
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ncs.types import Matrix
    from unif.config import Encoder
    from unif.sources import IndexSource, Reads

DIM = 128
"""Dimensions of CodeSearchNet's encoders."""
SIZE, MIN_COUNT = 10_000, 10
"""Tokens at most, and least occurrences in the training pairs: CodeSearchNet's."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Both towers' tokens, what the code tower reads, and the vectors [V, d] that both start from; none: random."""

    query: Tokenizer
    code: Tokenizer
    reads: Reads
    vectors: Matrix


def reads_of(encoder: Encoder) -> Reads:
    """What the code tower of this encoder reads."""
    return "fields" if encoder == "unif" else "source"


def make_inputs(
    encoder: Encoder, index: IndexSource, texts: Callable[[], Iterable[tuple[Sequence[str], Sequence[str]]]]
) -> Inputs:
    """UNIF starts from the words and vectors of an index; the others learn byte pairs and sub-tokens from the pairs.

    texts: gives (words of the question, words of the code) of every pair, as often as it is called.
    Raises MissingExtra where `tokenizers` is needed and not installed.
    """
    if reads_of(encoder) == "fields":
        words = WordTokenizer(index.vocabulary)
        return Inputs(words, words, "fields", index.vectors)
    query = learn_bpe(query for query, _ in texts())
    return Inputs(query, learn_words(code for _, code in texts()), "source", np.zeros((0, DIM), np.float32))


def learn_words(texts: Iterable[Iterable[str]], *, size: int = SIZE, min_count: int = MIN_COUNT) -> WordTokenizer:
    """The most frequent words of some texts; of equally frequent ones the first in the alphabet."""
    counts = Counter(word for text in texts for word in text)
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return WordTokenizer(Vocabulary.of(word for word in order[:size] if counts[word] >= min_count))


def learn_bpe(texts: Iterable[Sequence[str]], *, size: int = SIZE) -> BpeTokenizer:
    """Byte pairs of the words of some texts. Raises MissingExtra where `tokenizers` is not installed."""
    try:
        from tokenizers import Tokenizer as Library
        from tokenizers import models, pre_tokenizers, trainers
    except ImportError:
        raise MissingExtra("byte pairs need `tokenizers`: pip install 'neural-code-search[unif]'") from None
    tokenizer = Library(models.BPE(end_of_word_suffix=END))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=size, end_of_word_suffix=END, show_progress=False)
    tokenizer.train_from_iterator((" ".join(text) for text in texts), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    ordered = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return BpeTokenizer(ordered, [tuple(pair) for pair in model["merges"]])
