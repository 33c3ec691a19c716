"""Word vectors that others learnt, for the words of a vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import BadInput

if TYPE_CHECKING:
    from ncs.text.vocabulary import Vocabulary
    from ncs.types import Matrix


def read_pretrained(name: str, vocabulary: Vocabulary, dim: int) -> dict[int, Matrix]:
    """Word id -> vector [dim] for the known words, from a .vec (word2vec text) or a .bin (fastText) file.

    A .bin model gives every word a vector where it has sub-words. Raises BadInput for a file that is
    missing, unreadable, or of another dimension.
    """
    path = Path(name)
    if not path.is_file():
        raise BadInput(f"no pretrained vectors at {path}; name a .vec or .bin file")
    return (_from_bin if path.suffix == ".bin" else _from_text)(path, vocabulary, dim)


def _from_text(path: Path, vocabulary: Vocabulary, dim: int) -> dict[int, Matrix]:
    vectors: dict[int, Matrix] = {}
    with path.open("rb") as file:
        head = file.readline().split()
        if len(head) != 2 or not (head[0].isdigit() and head[1].isdigit()):
            raise BadInput(f"{path} does not begin with '<words> <dimension>'; give vectors in word2vec's text format")
        _check(path, int(head[1]), dim)
        for number, line in enumerate(file, 2):
            word, _, rest = line.rstrip().partition(b" ")
            id = vocabulary.id(word.decode(errors="replace"))
            if id is None:
                continue
            try:
                vector = np.array(rest.split(), np.float32)
            except ValueError:
                vector = np.zeros(0, np.float32)
            if len(vector) != dim or not np.isfinite(vector).all():
                raise BadInput(f"{path}:{number} is not a word and {dim} numbers; is the file whole?")
            vectors[id] = vector
    return vectors


def _from_bin(path: Path, vocabulary: Vocabulary, dim: int) -> dict[int, Matrix]:
    import fasttext

    try:
        model = fasttext.load_model(str(path))
    except ValueError as error:
        raise BadInput(f"{path} is no fastText model ({error}); name a .vec or .bin file") from error
    _check(path, model.get_dimension(), dim)
    vectors = {id: np.array(model.get_word_vector(word), np.float32) for id, word in enumerate(vocabulary)}
    return {id: vector for id, vector in vectors.items() if vector.any()}


def _check(path: Path, found: int, dim: int) -> None:
    if found != dim:
        raise BadInput(f"{path} has vectors of {found} dimensions, not {dim}; build with dim={found}")
