"""NCS with query enhancement: words of code added to a question that go with its words in known answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ncs.errors import BadInput, IndexDamaged
from ncs.progress import Track, silent
from ncs.search.cooccurrence import Cooccurrence
from ncs.search.part import create_part, save_part
from ncs.search.rankers import built_room
from ncs.text.stopwords import content_words
from ncs.text.tokens import tokenize

if TYPE_CHECKING:
    from ncs.learn.embeddings import Embeddings
    from ncs.storage.words import WordTable
    from ncs.types import Mask

LEAST_WEIGHT = 0.05


class EnhancedRanker:
    """Asks `part` for the question and, for each of its words, the best code word where its weight >= `least_weight`.

    The weights are learnt from `pairs`, a JSON lines file with query, code and language (Sachdev et al. 2018, query
    enhancement). Pairs whose question is one of the file `leave_out` are not learnt from: an evaluation names its own
    questions there. idf: weigh code words; as published they count alike. Grammar of a question gets no code word,
    and no word is added twice or where it stands already.
    Its folder holds the matrix and `config.json`; the part's own files are in the data folder.
    """

    def __init__(
        self,
        name: str = "ncs_enhanced",
        *,
        pairs: str | None = None,
        leave_out: str | None = None,
        least_weight: float = LEAST_WEIGHT,
        idf: bool = False,
        part: str = "ncs",
    ) -> None:
        self.name = name
        self.config: Mapping[str, object] = {
            "pairs": pairs and str(pairs),
            "leave_out": leave_out and str(leave_out),
            "least_weight": least_weight,
            "idf": idf,
            "part": part,
        }
        self.part, self.least_weight = create_part(part), least_weight
        self._words: Cooccurrence | None = None

    def prepare(self) -> None:
        """Read the first of the pairs; raises BadInput where none are named or they cannot be read."""
        next(iter(self._pairs(silent)), None)

    def fit(self, words: WordTable, embeddings: Embeddings, *, track: Track = silent) -> None:
        """Fit the part and read the pairs; raises BadInput where none are named or one is not whole."""
        self._words = Cooccurrence.of(self._pairs(track), idf=bool(self.config["idf"]))
        self.part.fit(words, embeddings, track=track)

    def _pairs(self, track: Track) -> Iterable[tuple[list[str], list[str]]]:
        from ncs.search.pairs import code_words, normalised, read_pairs, read_questions

        if not self.config["pairs"]:
            raise BadInput(f"{self.name!r} learns from (question, code) pairs; name a file: {self.name}:pairs=FILE")
        left_out = self.config["leave_out"]
        unwanted = set(map(normalised, read_questions(Path(str(left_out))))) if left_out else set()
        for query, code, language in track(read_pairs(Path(str(self.config["pairs"]))), self.name, unit="pairs"):
            if normalised(query) not in unwanted:
                yield content_words(tokenize(query)), code_words(code, language)

    def added(self, text: str) -> list[str]:
        """The code words that go with the words of a question, in its order; raises BadInput before fit or load."""
        if self._words is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        words = tokenize(text)
        found = [best for word in content_words(words) if (best := self._words.best(word)) is not None]
        strong = [word for word, weight in found if weight >= self.least_weight and word not in words]
        return list(dict.fromkeys(strong))

    def search(self, text: str, k: int, *, allowed: Mask | None = None) -> list[tuple[int, float]]:
        """What the part finds for the question with the added words."""
        return self.part.search(" ".join([text, *self.added(text)]), k, allowed=allowed)

    def save(self, folder: Path) -> None:
        """Write into `<folder>/<name>/`, and the part where it is not there yet."""
        if self._words is None:
            raise BadInput(f"ranker {self.name!r} is empty; call fit or load first")
        room = folder / self.name
        room.mkdir(parents=True, exist_ok=True)
        save_part(self.part, folder)
        self._words.save(room)
        (room / "config.json").write_text(json.dumps(dict(self.config), indent=1) + "\n", encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Raises BadInput where it was not built, IndexDamaged where files are missing or do not fit each other."""
        room = built_room(folder, self.name)
        try:
            made_with = json.loads((room / "config.json").read_bytes())
            self.part, self.least_weight = create_part(made_with["part"]), float(made_with["least_weight"])
            self._words = Cooccurrence.load(room)
        except (OSError, EOFError, ValueError, TypeError, KeyError, BadInput) as error:
            raise IndexDamaged(f"cannot read {room} ({error}); build the index again") from error
        self.config = made_with
        self.part.load(folder)
