"""Tokenizers of learned heads: words or stems of a vocabulary, byte pairs, sub-tokens of source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from ncs.errors import IndexDamaged
from ncs.files import read_json
from ncs.text.quotes import blank_openings, blank_quotes
from ncs.text.stems import stem
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary

FILE = "tokens.json"
CACHE = 1 << 18
"""Words whose ids are cached."""
END = "</w>"
"""Ends a word, so that its last piece differs from the same letters inside a word."""


class Tokenizer:
    """Turns words into ids 1 .. len(self); unknown words are left out, so a row may become empty."""

    kind: str

    def __init__(self, size: int) -> None:
        self._size = size
        self._cached = lru_cache(CACHE)(self._lookup)

    def __len__(self) -> int:
        """The largest id."""
        return self._size

    def _lookup(self, word: str) -> tuple[int, ...]:
        raise NotImplementedError

    def ids(self, words: Iterable[str]) -> list[int]:
        """Ids in the order of the words."""
        return [id for word in words for id in self._cached(word)]

    def save(self, folder: Path) -> None:
        """Write `tokens.json`, and the vocabulary if there is one."""
        raise NotImplementedError

    def _write(self, folder: Path, **about: object) -> None:
        text = json.dumps({"kind": self.kind, **about}, ensure_ascii=False)
        (folder / FILE).write_text(text + "\n", encoding="utf-8")


class WordTokenizer(Tokenizer):
    """One id a word: its place in a vocabulary plus one.

    >>> WordTokenizer(Vocabulary.of(["file", "open"])).ids(["open", "file", "close"])
    [2, 1]
    """

    kind = "words"

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(len(vocabulary))
        self.vocabulary = vocabulary

    def _lookup(self, word: str) -> tuple[int, ...]:
        id = self.vocabulary.id(word)
        return () if id is None else (id + 1,)

    def save(self, folder: Path) -> None:
        self.vocabulary.save(folder)
        self._write(folder)


class StemTokenizer(WordTokenizer):
    """One id a stem: `plotting` and `plots` are one token.

    >>> StemTokenizer(Vocabulary.of(["file", "open"])).ids(["opened", "files", "close"])
    [2, 1]
    """

    kind = "stems"

    def _lookup(self, word: str) -> tuple[int, ...]:
        return super()._lookup(stem(word))


class BpeTokenizer(Tokenizer):
    """Byte pair encoding (Sennrich et al. 2016), learned with the library `tokenizers` (unif.data)."""

    kind = "bpe"

    def __init__(self, pieces: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        super().__init__(len(pieces))
        self.pieces, self.merges = list(pieces), [(left, right) for left, right in merges]
        self._id = {piece: id for id, piece in enumerate(self.pieces, 1)}
        self._rank = {pair: rank for rank, pair in enumerate(self.merges)}

    def _lookup(self, word: str) -> tuple[int, ...]:
        pieces = [*word[:-1], word[-1:] + END]
        while len(pieces) > 1:
            best = min(pairwise(pieces), key=lambda pair: self._rank.get(pair, len(self._rank)))
            if best not in self._rank:
                break
            at = 0
            while at < len(pieces) - 1:
                if (pieces[at], pieces[at + 1]) == best:
                    pieces[at : at + 2] = ["".join(best)]
                at += 1
        return tuple(self._id[piece] for piece in pieces if piece in self._id)

    def save(self, folder: Path) -> None:
        self._write(folder, pieces=self.pieces, merges=self.merges)


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load what `save` wrote; raises OSError, ValueError or KeyError for anything else."""
    about = read_json(folder / FILE)
    kind = about.get("kind") if isinstance(about, dict) else None
    if kind == "bpe" and isinstance(about["pieces"], list) and isinstance(about["merges"], list):
        return BpeTokenizer(about["pieces"], about["merges"])
    if kind not in ("words", "stems"):
        raise ValueError(f"{folder / FILE} describes no known tokens")
    try:
        return (StemTokenizer if kind == "stems" else WordTokenizer)(Vocabulary.load(folder))
    except IndexDamaged as error:
        raise ValueError(str(error).partition(";")[0]) from error  # its remedy is an index's


def source_words(code: str, language: str) -> list[str]:
    """The sub-tokens of code in source order, keywords too; comments and docstrings are left out.

    >>> source_words('def openFile(path):  # opens it\\n    return open(path, "rb")', "python")
    ['def', 'open', 'file', 'path', 'return', 'open', 'path', 'rb']
    """
    pattern = _PATTERNS[_STYLE_OF.get(language, "star")]
    code = blank_quotes(blank_quotes(code), ("`", '"""', "'''"), lines=False)
    code = blank_openings(blank_openings(code, "{-", "-}", "\1-"), "--[[", "]]", "--[\1")
    return tokenize(pattern.sub(lambda match: match[0] if match["comment"] is None else " ", code))


_STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`'
_STAR = r"/\*.*?(?:\*/|\Z)"
_COMMENTS = {
    "star": _STAR + r"|//[^\n]*",
    "hash": r"#[^\n]*",
    "python": r'#[^\n]*|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'',
    "php": _STAR + r"|//[^\n]*|#(?!\[)[^\n]*",
    "dash": r"--\[\[.*?\]\]|--[^\n]*|" + _STAR + r"|\{-.*?-\}",
}
_PATTERNS = {name: re.compile(f"(?P<comment>{comment})|{_STRING}", re.DOTALL) for name, comment in _COMMENTS.items()}
_STYLE_OF = {
    "python": "python", "ruby": "hash", "bash": "hash", "elixir": "hash", "php": "php", "sql": "dash", "lua": "dash",
    "haskell": "dash",
}  # fmt: skip
"""Every other language has C's comments."""
