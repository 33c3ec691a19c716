"""Near duplicates are those that comparing every pair finds, and are folded into the best hit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ncs.answer import ask
from ncs.config import BuildConfig
from ncs.errors import IndexDamaged
from ncs.index import Index
from ncs.search.signals import select_hits
from ncs.storage import duplicates
from ncs.storage.duplicates import ALONE, MIN_SIMILARITY, Duplicates, NearDuplicates, similarities
from ncs.storage.words import WordTable
from tests.gitrepo import repository
from tests.words import table


def copied(copies: int, functions: int = 30, seed: int = 1) -> list[list[str]]:
    """Functions of 20 to 60 words, each with copies in which one word of four to twenty is another."""
    draw = np.random.default_rng(seed)
    bodies = []
    for _ in range(functions):
        original = [f"w{n}" for n in draw.integers(0, 300, draw.integers(20, 60))]
        bodies.append(original)
        for _ in range(copies):
            changed = list(original)
            for at in draw.choice(len(changed), len(changed) // int(draw.integers(4, 20)), replace=False):
                changed[at] = f"x{draw.integers(0, 1000)}"
            bodies.append(changed)
    return bodies


def jaccard(a: list[str], b: list[str]) -> float:
    left, right = Counter(a), Counter(b)
    return (left & right).total() / (left | right).total()


def spread(bodies: list[list[str]], names: list[str]) -> list[str]:
    """As documents of a word table, a body's words over two fields."""
    pairs = zip(names, bodies, strict=True)
    return [f"name: {name}; calls: {' '.join(body[::2])}; types: {' '.join(body[1::2])}" for name, body in pairs]


def clusters_of(words: WordTable, kinds: Any = False) -> NDArray[np.int32]:
    return NearDuplicates.of(words, np.full(len(words), kinds)).clusters


def test_clusters_are_those_that_comparing_every_pair_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [*copied(3), ["a"] * 20, ["a"] * 30, ["a"] * 32]
    words = table(*spread(bodies, ["same"] * len(bodies)))
    clusters = clusters_of(words)
    expected = np.array([[jaccard([*a, "same"], [*b, "same"]) for b in bodies] for a in bodies])
    assert similarities(words, np.argwhere(expected >= 0)) == pytest.approx(expected.ravel())
    alike = expected >= MIN_SIMILARITY
    for row, cluster in enumerate(clusters):
        if cluster == ALONE:  # nothing that was not taken by an earlier one is like it
            others = (other for other in range(len(bodies)) if other != row and clusters[other] == ALONE)
            assert not any(alike[row][other] for other in others)
        else:
            assert alike[row][cluster]
            assert clusters[cluster] == cluster <= row
    assert np.count_nonzero(clusters >= 0) > 50
    monkeypatch.setattr(duplicates, "CHUNK", 17)
    assert clusters_of(words).tolist() == clusters.tolist()


def test_other_names_other_kinds_and_short_functions_are_never_folded() -> None:
    body = [f"w{n}" for n in range(40)]
    words = table(*spread([body, body, body, body[:10], body[:10]], ["read", "write", "read", "read", "read"]))
    assert clusters_of(words).tolist() == [0, ALONE, 0, ALONE, ALONE]
    assert (clusters_of(words, np.arange(5) == 2) == ALONE).all()
    code = " ".join(body)
    words = table(f"name: f; calls: {code}; doc: one two three; scope: A", f"name: f; calls: {code}; scope: B C")
    assert clusters_of(words).tolist() == [0, 0]  # neither comments nor classes tell them apart


CHAIN = [[f"w{n}" for n in range(start, start + 40)] for start in (0, 4, 8, 12)]
"""Each shares 37 of 45 elements with the next, and 33 of 49 beyond it."""


def test_what_is_like_a_copy_but_not_like_the_original_is_not_in_its_cluster() -> None:
    assert clusters_of(table(*spread(CHAIN, ["same"] * 4))).tolist() == [0, 0, 2, 2]


def test_a_row_of_another_segment_joins_a_whole_cluster(tmp_path: Path) -> None:
    parts = [NearDuplicates.none(1), NearDuplicates.clustered(np.array([0, 0, 0], np.int32))]
    segments = []
    for number, part in enumerate(parts):
        segments.append(SimpleNamespace(path=tmp_path / f"{number}", documents=len(part.clusters)))
        segments[-1].path.mkdir()
        part.save(segments[-1].path)
    snapshot: Any = SimpleNamespace(segments=segments, firsts=np.array([0, 1]))
    words: Any = table(*spread([CHAIN[0], CHAIN[2], CHAIN[1], CHAIN[3]], ["same"] * 4))  # row 0 is like row 2 only
    assert Duplicates(snapshot, words).clusters_of(np.array([0, 2, 3])).tolist() == [0, 0, 0]


def test_clusters_are_saved_and_damage_is_named(tmp_path: Path) -> None:
    clusters = np.array([ALONE, 1, 2, 1, ALONE, 2, 1], np.int32)
    NearDuplicates.clustered(clusters).save(tmp_path)
    loaded = NearDuplicates.load(tmp_path, len(clusters))
    for row, cluster in enumerate(clusters.tolist()):
        others = [i for i, other in enumerate(clusters.tolist()) if other == cluster != ALONE and i != row]
        assert loaded.others(row).tolist() == others
    with pytest.raises(IndexDamaged, match="does not fit 8 documents"):
        NearDuplicates.load(tmp_path, 8)


def test_of_a_cluster_the_best_after_saturation_is_taken_and_the_rest_does_not_count_for_its_file() -> None:
    scores, files = np.array([1.0, 0.9, 0.8, 0.7, 0.6]), np.array([1, 1, 2, 1, 2], np.int64)
    clusters = np.array([ALONE, 4, 4, ALONE, ALONE], np.int32)
    # row 1 is at .45 behind row 0, so row 2 stands for both; row 3 is the second of its file, not the third
    assert select_hits(scores, files, 5, factor=0.5, clusters=clusters) == [(0, 1.0), (2, 0.8), (3, 0.35), (4, 0.3)]


FUNCTION = """
def render_table(rows, columns, width=80):
    lines = []
    header = separator.join(title.ljust(width) for title in columns)
    lines.append(header)
    for row in rows:
        cells = [format_cell(value, alignment) for value in row]
        lines.append(separator.join(cell.ljust(width) for cell in cells))
    return newline.join(lines)
"""


def test_hits_that_are_nearly_the_same_are_one_hit_that_names_the_others_unless_duplicates_stay_apart(
    tmp_path: Path,
) -> None:
    other = "\ndef open_socket(host, port):\n    return connect(host, port)\n"
    texts = {"a": FUNCTION + other, "b": FUNCTION.replace("newline.join", "ending.join"), "c": "x = 1\n" + FUNCTION}
    for name, text in texts.items():
        repository(tmp_path / "sources" / name, {"tables.py": text})
    plain = BuildConfig(general=False)  # the general head tells the two apart by a word
    with Index.build(tmp_path / "sources", tmp_path / "index", config=plain) as index:
        hits = [hit for hit in index.search("render table") if hit.document.name == "render_table"]
        assert [(hit.document.repository, hit.document.copies[0].repository) for hit in hits] == [("a", "c")]
        assert [(at.repository, at.path, at.start_line) for at in hits[0].near_copies] == [("b", "tables.py", 2)]
        shown = ask(index, "render table", 1, ranker="hybrid")["hits"][0]
        assert shown["near_copies"] == [{"repository": "b", "path": "tables.py", "start_line": 2, "end_line": 9}]

        unfolded = [hit for hit in index.search("render table", unfold=True) if hit.document.name == "render_table"]
        assert [(hit.document.repository, hit.near_copies) for hit in unfolded] == [("a", ()), ("b", ())]
        explained = index.results("render table", explain=True)
        assert explained.hits == index.search("render table")
        every = index.results("render table", unfold=True, explain=True)
        assert every.explanation is not None
        assert len(every.explanation.hits) == len(explained.hits) + 1

        only = index.search("render table", 1, repository="b")[0]
        assert (only.document.repository, only.near_copies) == ("b", ())
        assert [hit.near_copies for hit in index.search("render table", ranker="bm25")] == [()] * 3
    with Index.build(tmp_path / "sources", tmp_path / "index", config=BuildConfig(deduplicate=False)) as index:
        hits = [hit for hit in index.search("render table") if hit.document.name == "render_table"]
        assert sorted(hit.document.repository for hit in hits) == ["a", "b", "c"]
