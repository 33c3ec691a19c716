"""A ranker that stands as the teacher of a head: asked many questions once, its first functions and their scores kept.

No labels are needed: the head learns to put a question where the teacher's candidates are. What `hybrid` knows beside
words, which names good candidates of many repositories share, goes into one vector a function that way.

TEACHER/texts.txt       a question a line
TEACHER/rows.npy        int32 [n, DEPTH], rows of the index, best first, NOWHERE where there are fewer
TEACHER/scores.npy      float32 [n, DEPTH], falling
TEACHER/teacher.json    what was asked of whom; written last
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.errors import BadInput
from ncs.progress import Track, silent
from ncs.search.rankers import read_ranker
from unif.asked import asked
from unif.data import NOWHERE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index

FOLDER, ABOUT, TEXTS = "teacher", "teacher.json", "texts.txt"
DEPTH = 200
"""Candidates of a question that are kept: as many as consensus is found among."""
FEWEST = 8
"""Candidates below which a question teaches nothing."""
SETTINGS: Mapping[str, Mapping[str, object]] = {"hybrid": {"fold": False, "head": 0.0}}
"""Of a teacher: near duplicates of a candidate are candidates, and no head teaches the next one unasked."""


@dataclass(frozen=True, slots=True)
class Lists:
    """A teacher's answers. source: [n], the place of the file each question came from."""

    texts: Sequence[str]
    source: NDArray[np.int16]
    rows: NDArray[np.int32]
    scores: NDArray[np.float32]

    @classmethod
    def load(cls, folder: Path) -> Lists:
        """Memory-mapped; BadInput where there are none, or files that do not fit each other."""
        try:
            arrays = [np.load(folder / f"{n}.npy", "r", allow_pickle=False) for n in ("source", "rows", "scores")]
            texts = (folder / TEXTS).read_text(encoding="utf-8").split("\n")[:-1]
        except (OSError, EOFError, ValueError) as error:
            raise BadInput(f"cannot read a teacher's answers in {folder} ({error}); train into a new folder") from None
        if {len(texts)} != {len(each) for each in arrays} or arrays[1].shape != arrays[2].shape:
            raise BadInput(f"the answers in {folder} do not fit each other; train into a new folder")
        return cls(texts, *arrays)


def ask(
    index: Index,
    ranker: str,
    files: Sequence[Path],
    left_out: frozenset[str],
    folder: Path,
    *,
    digest: str = "",
    seed: int = 0,
    track: Track = silent,
) -> Lists:
    """Ask a ranker, written as `hybrid` or `hybrid:consensus=0`, and keep its answers in `folder`.

    What another run asked, of the same index with the same words, is copied: `ranker` is that run's folder then.
    Raises BadInput for a ranker that there is not, and where no question has FEWEST candidates.
    """
    about = {"index": digest, "files": [str(file) for file in files], "left_out": len(left_out), "seed": seed}
    if (folder / ABOUT).is_file():
        return Lists.load(folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = Path(ranker) / FOLDER
    if (known / ABOUT).is_file():
        _take_over(known, folder, about)
    else:
        _ask(index, ranker, list(asked(files, index, left_out, seed=seed, track=track)), folder, track)
    (folder / ABOUT).write_text(json.dumps(about) + "\n", encoding="utf-8")
    return Lists.load(folder)


def _take_over(known: Path, folder: Path, about: Mapping[str, object]) -> None:
    if json.loads((known / ABOUT).read_bytes()) != about:
        raise BadInput(f"{known} was asked other questions, or of another index; name the ranker instead")
    for path in known.iterdir():
        if path.name != ABOUT:
            shutil.copyfile(path, folder / path.name)


def _ask(index: Index, ranker: str, questions: list[tuple[int, str]], folder: Path, track: Track) -> None:
    name, settings = read_ranker(ranker)
    config: dict[str, Any] = {**SETTINGS.get(name, {}), **settings}
    teacher, allowed = index.fitted(name, **config), index.functions()
    rows = np.full((len(questions), DEPTH), NOWHERE, np.int32)
    scores, kept = np.zeros((len(questions), DEPTH), np.float32), []
    for at, (_, text) in enumerate(track(questions, f"asking {name}", unit="questions")):
        found = teacher.search(text, DEPTH, allowed=allowed)
        if len(found) >= FEWEST:
            rows[at, : len(found)], scores[at, : len(found)] = zip(*found, strict=True)
            kept.append(at)
    if not kept:
        raise BadInput(f"{name} finds {FEWEST} functions for none of {len(questions)} questions; give others")
    np.save(folder / "rows.npy", rows[kept])
    np.save(folder / "scores.npy", scores[kept])
    np.save(folder / "source.npy", np.array([questions[at][0] for at in kept], np.int16))
    lines = (" ".join(questions[at][1].split()) + "\n" for at in kept)
    (folder / TEXTS).write_text("".join(lines), encoding="utf-8")
