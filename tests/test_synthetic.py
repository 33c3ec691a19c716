"""Functions that nobody wrote: as many as wanted, alike wherever they are made, like those they are drawn from."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluation import bench_synth, bench_vectors
from evaluation.growth import draw, one_a_size, power
from evaluation.mixed_words import mixed
from evaluation.synthetic import Source, make, parts, stream
from ncs.errors import BadInput
from ncs.index import BuildConfig, Index
from ncs.storage.file_roles import Places
from ncs.types import FIELDS, NCS_FIELDS, Document, Field

VERBS = ["open", "close", "read", "write", "hide", "show", "start", "stop", "find", "send"]
NOUNS = ["file", "socket", "panel", "timer", "user", "key"]


def rare(n: int) -> str:
    """As many words as the root of the number of functions, and a half."""
    k = int(6 * n**0.5)
    return "q" + "".join(chr(ord("a") + k // 26**place % 26) for place in range(3))


def real(repositories: int = 8, functions: int = 30) -> list[Document]:
    """Small functions of several repositories; each is about the noun of its repository."""
    found = []
    for owner in range(repositories):
        for n in range(functions):
            verb, noun = VERBS[n % 10], NOUNS[owner % 6]
            name, path = f"{verb}{noun.capitalize()}{n // 10}", f"src/{noun}{n % 3}.java"
            words: dict[Field, tuple[str, ...]] = {
                "name": (name,), "calls": (f"{verb}Now", "check"), "identifiers": (noun, rare(30 * owner + n)),
                "doc": (f"{verb} the {noun} of repository {owner}",), "path": (path,),
            }  # fmt: skip
            code = f"void {name}() {{\n  check({noun});\n  {verb}Now();\n}}"
            digest = f"{owner:08}{n:08}".encode()
            found.append(
                Document(f"r{owner}/{path}:{n + 1}", f"r{owner}", path, n + 1, n + 4, "java", "method", name,
                         f"Main.{name}", words, code, digest)
            )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real") / "index"
    documents = real()
    copied = [replace(d, id=f"c/{d.path}:{d.start_line}", repository="c") for d in documents[:60]]
    Index.of([*documents, *copied], folder, config=BuildConfig(embeddings="lsa")).close()
    return folder


def test_what_is_drawn_from_is_measured_on_the_index(source: Path) -> None:
    with Index.load(source) as index:
        drawn, words = Source.of(index), index.words()
        assert drawn.repositories == tuple((30 * n, 30 * n + 30) for n in range(8))
        assert drawn.copies == pytest.approx(60 / 300)
        a, b = drawn.growth
        whole, half = len(np.unique(words.ids)), len(np.unique(words.ids[: words.offsets[120 * len(FIELDS)]]))
        assert a * 240**b == pytest.approx(whole)
        assert a * 120**b == pytest.approx(half)
        assert drawn.new_words(10) == 0
        assert drawn.new_words(1000) == pytest.approx(a * 1000**b - a * 999**b, rel=0.01)


def test_a_corpus_has_the_size_asked_for_and_every_function_a_place_of_its_own(source: Path) -> None:
    with Index.load(source) as index:
        made = list(stream(Source.of(index), 2_000, seed=1))
    assert len({document.digest for document in made}) == pytest.approx(2_000, abs=60)
    assert len({document.id for document in made}) == len(made)
    assert (len(made) - 2_000) / len(made) == pytest.approx(0.2, abs=0.03)
    assert len({document.name for document in made}) > 400  # of 240 that there were


def test_a_part_is_the_same_whoever_makes_it_and_another_with_another_seed(source: Path) -> None:
    with Index.load(source) as index:
        drawn = Source.of(index)
    assert make(drawn, 3, 200, 0) == make(drawn, 3, 200, 0)
    assert make(drawn, 3, 200, 0) != make(drawn, 3, 200, 1)
    assert make(drawn, 3, 200, 0) != make(drawn, 4, 200, 0)
    assert sum(size for _, size in parts(25_001)) == 25_001


def test_words_stay_in_their_field_and_keep_their_frequencies(source: Path) -> None:
    with Index.load(source) as index:
        made = make(Source.of(index), 0, 3_000, 0)
    verbs = Counter(word for document in made for word in document.words["calls"])
    assert set(verbs) == {"check", *(f"{verb}Now" for verb in VERBS)}
    assert verbs["check"] / sum(verbs.values()) == pytest.approx(0.5, abs=0.03)
    assert all(document.words["name"] == (document.name,) for document in made)
    moved = [document for document in made if document.words["path"] != (document.path,)]  # copies, found elsewhere
    assert len(moved) / len(made) < 0.2


def test_new_words_come_when_those_there_are_are_used_up(source: Path) -> None:
    with Index.load(source) as index:
        drawn = Source.of(index)
    known = {word for document in real() for word in document.words["identifiers"]}
    assert {word for document in make(drawn, 0, 500, 0) for word in document.words["identifiers"]} <= known
    late = [word for document in make(drawn, 5, 3_000, 0) for word in document.words["identifiers"]]
    new = {word for word in late if word not in known}
    assert 0 < len(new) <= 3_000 * drawn.new_words(50_000) * 1.5


def test_an_index_without_code_is_nothing_to_draw_from(source: Path, tmp_path: Path) -> None:
    Index.of(real(), tmp_path / "bare", config=BuildConfig(embeddings="lsa", store_code=False)).close()
    with Index.load(tmp_path / "bare") as index, pytest.raises(BadInput, match="keeps no code"):
        Source.of(index)


def test_mixed_tables_hold_words_of_the_same_field_and_repository(source: Path, tmp_path: Path) -> None:
    with Index.load(source) as index:
        words, places = index.words(), Places.load(index.data)
        table = mixed(words, places.repository[places.file], 5_000, tmp_path)
        real_calls = set(words.select(("calls",))[0].tolist())
    assert len(table) == 5_000
    for field in FIELDS:
        ids = table.select((field,))[0]
        assert (len(ids) > 0) == (field in NCS_FIELDS and len(words.select((field,))[0]) > 0), field
    assert set(table.select(("calls",))[0].tolist()) == real_calls
    number = {words.vocabulary.id(str(n)): n for n in range(8)}
    for row in range(100):  # what a comment says of its repository is never mixed with another's
        said = {number[id] for id in table.ids_of(row, "doc").tolist() if id in number}
        assert len(said) <= 1


def test_the_power_of_growth_is_the_one_it_was_made_with() -> None:
    sizes = [1e5, 3e5, 1e6]
    assert power(sizes, [7 * size**0.6 for size in sizes]) == pytest.approx(0.6)


@pytest.mark.slow
def test_an_index_of_any_size_is_made_measured_and_drawn(source: Path, tmp_path: Path) -> None:
    questions, results = tmp_path / "questions.txt", tmp_path / "results.json"
    questions.write_text("open the file\nhide panel\nstop timer\n")
    for functions in (300, 900):
        arguments = [str(source), "--functions", str(functions), "--out", str(tmp_path / str(functions))]
        assert bench_synth.main([*arguments, "--queries", str(questions), "--json", str(results)]) == 0
    runs = json.loads(results.read_text())["runs"]
    assert [run["functions"] for run in runs] == [300, 900]
    assert [run["documents"] for run in runs] == pytest.approx([300, 900], rel=0.03)
    assert {"store", "structure", "bm25", "ncs_centred"} <= set(runs[0]["build_s"])
    assert bench_synth.main(["--plot", str(tmp_path / "growth.png"), "--json", str(results)]) == 0
    assert (tmp_path / "growth.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(BadInput, match="two sizes"):
        draw(runs[:1], tmp_path / "x.png")


def test_growth_is_drawn_of_the_kind_that_a_build_takes() -> None:
    runs = [{"functions": n, "documents": n, "vectors": v} for n, v in ((9, "exact"), (400_000, "pq"))]
    runs += [{"functions": n, "documents": n, "vectors": "pq"} for n in (9, 400_000)]
    assert [run["vectors"] for run in one_a_size(runs)] == ["exact", "pq"]
    assert [run["vectors"] for run in one_a_size(runs[:2])] == ["exact", "pq"]


@pytest.mark.slow
def test_kinds_of_vectors_are_measured_against_exact_search(source: Path, tmp_path: Path) -> None:
    questions, results = tmp_path / "questions.txt", tmp_path / "results.json"
    questions.write_text("open the file\nhide panel\n")
    arguments = [str(source), "--queries", str(questions), "--rows", "3000", "--kind", "pq", "--json", str(results)]
    assert bench_vectors.main(arguments) == 0
    (run,) = json.loads(results.read_text())["runs"]
    assert run["documents"] == 3_000
    assert run["kinds"]["exact"]["at_10"]["recall"] == 1.0
    assert run["kinds"]["pq"]["at_10"]["recall"] >= 0.5
    assert run["kinds"]["pq"]["bytes"] < run["kinds"]["exact"]["bytes"]
