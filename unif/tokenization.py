"""How words become numbers: those of a vocabulary, hashed n-grams of words it lacks, byte pairs."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from ncs.errors import MissingExtra
from ncs.text.stems import stem_all
from ncs.text.vocabulary import Vocabulary

FILE = "tokens.json"
SHORTEST, LONGEST = 3, 6
"""Lengths of n-grams, those of fastText."""
SIZE, LEAST = 10_000, 10
"""Tokens at most, and how often the least of them stands in the training pairs: CodeSearchNet's."""
END = "</w>"
"""Ends a word, so that its last piece is another one than the same letters inside a word."""


REMEMBERED = 1 << 18
"""Words whose ids are kept at hand."""


class Tokens(Protocol):
    """Makes ids 1 .. len(self) of words; a word that cannot be said is left out, so a row may become empty."""

    @property
    def kind(self) -> str: ...

    def __len__(self) -> int: ...

    def ids(self, words: Iterable[str]) -> list[int]: ...

    def save(self, folder: Path) -> None: ...


class Words:
    """One id a word of a vocabulary, its place there plus one; a word it lacks becomes its n-grams' buckets, if any.

    >>> words = Words(Vocabulary.of(["file", "open"]), buckets=8)
    >>> words.ids(["open", "file"]), len(words), set(words.ids(["opened"])) <= set(range(3, 11))
    ([2, 1], 10, True)
    """

    kind = "words"

    def __init__(self, vocabulary: Vocabulary, buckets: int = 0) -> None:
        self.vocabulary, self.buckets = vocabulary, buckets
        self._seen: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        """The largest id."""
        return len(self.vocabulary) + self.buckets

    def ids(self, words: Iterable[str]) -> list[int]:
        """Ids in the order of the words."""
        seen = self._seen
        return [id for word in words for id in (seen[word] if word in seen else self._ids(word))]

    def _ids(self, word: str) -> tuple[int, ...]:
        id = self.vocabulary.id(word)
        found = (id + 1,) if id is not None else tuple(self.grams(word)) if self.buckets else ()
        return _remembered(self._seen, word, found)

    def grams(self, word: str) -> Iterator[int]:
        """The ids of a word's n-grams, the word in angle brackets."""
        for gram in n_grams(word):
            yield len(self.vocabulary) + 1 + zlib.crc32(gram.encode(errors="replace")) % self.buckets

    def save(self, folder: Path) -> None:
        """Write `tokens.json`, `vocabulary.txt` and `vocabulary.npy`."""
        self.vocabulary.save(folder)
        _write(folder, {"kind": self.kind, "buckets": self.buckets})

    @classmethod
    def load(cls, folder: Path, about: Mapping[str, object]) -> Words:
        return cls(Vocabulary.load(folder), int(str(about["buckets"])))


class Stems(Words):
    """One id a stem: `plotting` and `plots` are one token. Words whose stem the vocabulary lacks are left out.

    >>> Stems(Vocabulary.of(["file", "open"])).ids(["opened", "files", "close"])
    [2, 1]
    """

    kind = "stems"

    def _ids(self, word: str) -> tuple[int, ...]:
        id = self.vocabulary.id(stem_all([word])[0])
        return _remembered(self._seen, word, () if id is None else (id + 1,))


class Bpe:
    """Byte pair encoding (Sennrich et al. 2016): a word's letters joined in the order in which the pairs were learnt.

    Learnt with the library `tokenizers`, applied here, so that a question can be asked without it.
    """

    kind = "bpe"

    def __init__(self, pieces: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        self.pieces, self.merges = list(pieces), [(left, right) for left, right in merges]
        self._id = {piece: id for id, piece in enumerate(self.pieces, 1)}
        self._rank = {pair: rank for rank, pair in enumerate(self.merges)}
        self._seen: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        """The largest id."""
        return len(self.pieces)

    def ids(self, words: Iterable[str]) -> list[int]:
        """Ids of the words' pieces; letters that were never seen are left out."""
        seen = self._seen
        return [id for word in words for id in (seen[word] if word in seen else self._ids(word))]

    def _ids(self, word: str) -> tuple[int, ...]:
        found = tuple(self._id[piece] for piece in self.split(word) if piece in self._id)
        return _remembered(self._seen, word, found)

    def split(self, word: str) -> list[str]:
        """The pieces of a word."""
        pieces = [*word[:-1], word[-1:] + END]
        while len(pieces) > 1:
            pairs = list(pairwise(pieces))
            best = min(pairs, key=lambda pair: self._rank.get(pair, len(self._rank)))
            if best not in self._rank:
                break
            pieces = _joined(pieces, best)
        return pieces

    def save(self, folder: Path) -> None:
        """Write `tokens.json`."""
        _write(folder, {"kind": self.kind, "pieces": self.pieces, "merges": self.merges})

    @classmethod
    def load(cls, folder: Path, about: Mapping[str, object]) -> Bpe:
        pieces, merges = about["pieces"], about["merges"]
        if not isinstance(pieces, list) or not isinstance(merges, list):
            raise ValueError(f"{folder / FILE} holds no pieces")
        return cls(pieces, merges)


def load_tokens(folder: Path) -> Tokens:
    """What `save` wrote; raises OSError, ValueError or KeyError for anything else."""
    about = json.loads((folder / FILE).read_bytes())
    if not isinstance(about, dict) or about.get("kind") not in ("words", "stems", "bpe"):
        raise ValueError(f"{folder / FILE} tells of no tokens that are known here")
    if about["kind"] == "bpe":
        return Bpe.load(folder, about)
    return (Stems if about["kind"] == "stems" else Words).load(folder, about)


def learn_words(texts: Iterable[Iterable[str]], *, size: int = SIZE, least: int = LEAST) -> Words:
    """The most frequent words of some texts; of equally frequent ones the first in the alphabet."""
    counts = Counter(word for text in texts for word in text)
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return Words(Vocabulary.of(word for word in order[:size] if counts[word] >= least))


def learn_bpe(texts: Iterable[Sequence[str]], *, size: int = SIZE) -> Bpe:
    """Pieces of the words of some texts. Raises MissingExtra where `tokenizers` is not installed."""
    try:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    except ImportError:
        raise MissingExtra("byte pairs need `tokenizers`: pip install 'neural-code-search[unif]'") from None
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix=END))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=size, end_of_word_suffix=END, show_progress=False)
    tokenizer.train_from_iterator((" ".join(text) for text in texts), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    ordered = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return Bpe(ordered, [tuple(pair) for pair in model["merges"]])


def n_grams(word: str) -> list[str]:
    """A word's n-grams as fastText has them.

    >>> n_grams("ab")
    ['<ab', 'ab>', '<ab>']
    """
    marked = f"<{word}>"
    lengths = range(SHORTEST, min(LONGEST, len(marked)) + 1)
    return [marked[start : start + n] for n in lengths for start in range(len(marked) - n + 1)]


def _remembered(seen: dict[str, tuple[int, ...]], word: str, ids: tuple[int, ...]) -> tuple[int, ...]:
    if len(seen) >= REMEMBERED:
        seen.clear()
    seen[word] = ids
    return ids


def _joined(pieces: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """All occurrences of a pair made one piece, from the left."""
    joined, at = [], 0
    while at < len(pieces):
        both = tuple(pieces[at : at + 2]) == pair
        joined.append(pair[0] + pair[1] if both else pieces[at])
        at += 1 + both
    return joined


def _write(folder: Path, about: Mapping[str, object]) -> None:
    (folder / FILE).write_text(json.dumps(about, ensure_ascii=False) + "\n", encoding="utf-8")
