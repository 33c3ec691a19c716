"""What the manifest tells of an index after an update by a delta: the same as after a build of the same files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncs.build.delta.store import COUNTS
from ncs.extract.readers import read_as_text
from ncs.storage.files import BROKEN, FAILED
from ncs.storage.documents import NAME, Store
from ncs.types import NCS_FIELDS
from ncs.storage.words import WordTable

if TYPE_CHECKING:
    from ncs.build.delta.files import Filed, Walked
    from ncs.build.delta.making import Made
    from ncs.index import Index
    from ncs.sources import Skipped


def counts(
    standing: Index, path: Path, made: Made, filed: Filed, walked: Walked, skipped: Skipped
) -> dict[str, object]:
    """For the manifest. path: of the new generation, which is whole but for this; filed: the files that were."""
    old, now = standing.manifest.counts, made.filed
    room = path / "delta"
    tally = _tally(path, room, made)
    words = WordTable.load(path)
    states = now.states()
    named = {kind: now.order[states == state].tolist() for kind, state in (("broken", BROKEN), ("failed", FAILED))}
    texts = Counter(cast("Mapping[str, int]", old["text_files"]))
    texts.subtract(read_as_text(filed.path(number) for number in _gone(filed, now)))
    texts.update(read_as_text(now.path(number) for number in _come(filed, now)))
    training = dict(cast("Mapping[str, Any]", old.get("training", {})))
    return {
        **old,
        "documents": len(made.stack),
        "copies": len(made.decided.copies),
        "files": len(now.order),
        "source_bytes": now.bytes(),
        **{kind: len(numbers) for kind, numbers in named.items()},
        **{f"{kind}_files": [_name(now, number) for number in numbers[:100]] for kind, numbers in named.items()},
        **tally,
        "text_files": dict(sorted((+texts).items(), key=lambda pair: (-pair[1], pair[0]))),
        "words": words.vocabulary.size(),
        "training": {**training, **_drift(path, made, words, training)},
        "delta": _share(made),
        **_left_out(skipped),
    }


def _name(files: Filed, number: int) -> str:
    return f"{files.repository(number)}/{files.path(number)}"


def _left_out(skipped: Skipped) -> dict[str, object]:
    """What a whole walk left out; nothing where only some folders were walked."""
    if not skipped.counts:
        return {}
    return {"skipped": dict(sorted(skipped.counts.items())), "unreadable_files": list(skipped.unreadable)}


def _gone(filed: Filed, now: Filed) -> list[int]:
    """Files that are not there any more, or are read anew."""
    stays = np.zeros(len(filed.base), np.bool_)
    stays[now.order[now.order >= 0]] = True
    early = filed.order[filed.order >= 0]
    return [*early[~stays[early]].tolist(), *filed.order[filed.order < 0].tolist()]


def _come(filed: Filed, now: Filed) -> list[int]:
    """Files that were not there, or are read anew."""
    return _gone(now, filed)


def _tally(path: Path, room: Path, made: Made) -> dict[str, Any]:
    """Documents by language, kind and repository, which the store tells too."""
    base, late = made.stack.living()
    found: dict[str, Any] = {}
    with Store(path / NAME) as early, Store(room / NAME) as other:
        for column, called in (("language", "languages"), ("kind", "kinds")):
            sums = early.tallied(column, base) + other.tallied(column, late)
            found[called] = dict(sorted((+sums).items()))
    places = np.full(len(made.filed.base), -1, np.int64)
    at = np.flatnonzero(made.filed.order >= 0)
    places[made.filed.order[at]] = at
    of_late = np.flatnonzero(made.filed.order < 0)
    owners = np.concatenate([places[made.base.file], of_late[made.delta.file]])[made.stack.held]
    rows = np.bincount(owners, minlength=len(made.filed.order))
    copies = np.bincount(made.decided.copy_places, minlength=len(rows))
    of, names = made.filed.owners()
    held = np.bincount(of, rows, minlength=len(names)).astype(int).tolist()
    there = np.bincount(of, rows + copies, minlength=len(names)).tolist()
    repositories = {name: n for name, n, any_ in zip(names, held, there, strict=True) if any_}
    told = {"repositories": dict(sorted(repositories.items())), **found, "copies": len(made.decided.copies)}

    kept = {**told, "repositories": {name: n for name, n in repositories.items() if n}}
    kept["repositories"] = dict(sorted(kept["repositories"].items()))
    (room / COUNTS).write_text(json.dumps(kept), encoding="utf-8")
    return {key: told[key] for key in ("repositories", "languages", "kinds", "copies")}


def _drift(path: Path, made: Made, words: WordTable, training: Mapping[str, Any]) -> dict[str, object]:
    """The share of words that have no vector now; counted from what came and went since the base."""
    if "held" not in training:
        return {}
    vectors = np.load(path / "embeddings.npy", mmap_mode="r", allow_pickle=False)
    base, late = made.stack.living()
    total, without = training["held"]
    table = WordTable.of_folder(path)
    numbers = np.load(path / "delta" / "numbers.npy", allow_pickle=False)
    lost, _ = table.select_rows(NCS_FIELDS, np.flatnonzero(~base))
    own, _ = made.collected.words.select_rows(NCS_FIELDS, np.flatnonzero(late))
    for ids, sign in ((lost, -1), (numbers[own], 1)):
        distinct, often = np.unique(ids, return_counts=True)
        known = distinct < len(vectors)
        has = np.zeros(len(distinct), np.bool_)
        has[known] = vectors[distinct[known]].any(axis=1)
        total += sign * int(often.sum())
        without += sign * int(often[~has].sum())
    return {"without_vector_now": round(without / total, 6) if total else 0.0}


def _share(made: Made) -> dict[str, int]:
    """Documents that were made since the base was, and documents of the base that are gone."""
    base, _ = made.stack.living()
    return {"made": len(made.delta.file), "gone": int(np.count_nonzero(~base))}
