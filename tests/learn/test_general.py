"""The general head: its score against the formula in plain Python, its files, and its place in the default ranker."""

from __future__ import annotations

import math
import os
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from ncs.errors import BadInput, IndexDamaged
from ncs.index import Index
from ncs.learn.confidence import likelihood
from ncs.learn.context_encoder import DIM, ContextEncoder, parameters
from ncs.learn.general import FOLDER, FORMAT, GeneralHead, GeneralScorer, general_head, verify
from ncs.learn.translation import FIELD_WEIGHTS
from ncs.search.explain import reasons_lines
from ncs.search.hybrid import MIN_GENERAL, HybridRanker
from ncs.search.rankers import load_ranker
from ncs.text.stems import stem_all
from ncs.text.vocabulary import Vocabulary
from ncs.types import FIELDS
from tests import corpus

STEMS = ("close", "file", "hide", "keyboard", "open", "path", "read", "socket")


def small_head(seed: int = 3) -> GeneralHead:
    draw = np.random.default_rng(seed)
    tables = draw.integers(-127, 128, (4, len(STEMS), 6)).astype(np.int8)
    scales, weights = (draw.uniform(0.01, 0.02, (4, len(STEMS))).astype(np.float16) for _ in range(2))
    weights += draw.normal(size=weights.shape).astype(np.float16)
    words = draw.integers(-127, 128, (2, len(STEMS), DIM)).astype(np.int8)
    factors = draw.uniform(0.001, 0.002, (2, 2, len(STEMS))).astype(np.float16)
    own = {
        name: draw.normal(size=shape, scale=0.3).astype(np.float16).astype(np.float32)
        for name, shape in parameters().items()
    }
    context = ContextEncoder(words, factors[0], factors[1], own)
    return GeneralHead(Vocabulary.of(STEMS), tables, scales, weights, power=3.0, half=0.3, same=0.5, context=context)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments and tombstones: files of the second have words that the first does not have."""
    room = tmp_path_factory.mktemp("general")
    root = corpus.write(room / "repos")
    Index.build(root, room / ".ncs", config=corpus.QUICK).close()
    (root / "tools" / "files.py").write_text(
        "def open_socket(path):\n    '''Hide quaggas.'''\n    return close(path)\n"
    )
    Index.update(room / ".ncs")[0].close()
    return room / ".ncs"


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    with Index.load(folder) as opened:
        assert len(opened.snapshot.segments) == 2
        yield opened


def mean_length(index: Index) -> float:
    return cast(HybridRanker, load_ranker("hybrid", index.snapshot)).open_parts.lexical.postings.statistics.mean_length


def plain_score(head: GeneralHead, query: Sequence[str], index: Index, row: int, mean: float) -> float:
    """The formula of the module, word by word."""
    counts: Counter[str] = Counter()
    length = 0.0
    for field in FIELDS:
        stems = stem_all(index.words().vocabulary.word(int(id)) for id in index.words().ids_of(row, field))
        length += FIELD_WEIGHTS[field] * len(stems)
        for stem in stems:
            counts[stem] += int(FIELD_WEIGHTS[field])
    impacts = {stem: n / (n + 1.2 * (0.25 + 0.75 * length / mean)) for stem, n in counts.items() if stem in STEMS and n}

    def vector(table: int, stem: str) -> list[float]:
        at = STEMS.index(stem)
        return [float(x) * float(head.scales[table, at]) for x in head.tables[table, at]]

    def weight(table: int, stem: str) -> float:
        return math.exp(float(head.weights[table, STEMS.index(stem)]))

    def dot(one: Sequence[float], other: Sequence[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    def total(parts: list[tuple[float, list[float]]]) -> list[float]:
        return [sum(factor * values[at] for factor, values in parts) for at in range(6)]

    asked = list(dict.fromkeys(stem for stem in stem_all(query) if stem in STEMS))
    if not asked or not impacts:
        return 0.0
    q = total([(weight(0, t), vector(0, t)) for t in asked])
    c = total([(weight(1, u) * impact, vector(1, u)) for u, impact in impacts.items()])
    score = max(0.0, dot(q, c) / math.sqrt(dot(q, q) * dot(c, c)))
    for t in asked:
        match = sum(
            impact * weight(3, u) * (max(0.0, dot(vector(2, t), vector(3, u))) ** 3 + 0.5 * (t == u))
            for u, impact in impacts.items()
        )
        score += weight(2, t) / sum(weight(2, other) for other in asked) * match / (match + 0.3)
    return score


@pytest.mark.parametrize("query", [("hide", "keyboard"), ("opening", "files", "opens"), ("quagga",), ()])
def test_scores_are_those_of_the_formula_in_every_segment(index: Index, query: tuple[str, ...]) -> None:
    head, mean = small_head(), mean_length(index)
    scorer, rows = GeneralScorer(head, index.facts.words, mean), index.documents.rows()
    expected = [plain_score(head, query, index, row, mean) for row in rows.tolist()]
    np.testing.assert_allclose(scorer.scores(query, rows), expected, atol=2e-5)
    assert any(expected) == (query not in ((), ("quagga",)))


def test_an_explanation_adds_up_to_what_words_add_and_names_the_word_that_does_most(index: Index) -> None:
    head, query = small_head(), ["hide", "keyboard", "file"]
    scorer, rows = GeneralScorer(head, index.facts.words, mean_length(index)), index.documents.rows()
    alone = replace(head, tables=head.tables * np.array([0, 0, 1, 1], np.int8)[:, None, None])
    by_words = GeneralScorer(alone, index.facts.words, mean_length(index)).scores(query, rows)
    explained = scorer.explain(query, rows)
    for row, score, matches in zip(rows.tolist(), by_words.tolist(), explained, strict=True):
        assert sum(match.share for match in matches) == pytest.approx(score, abs=1e-6)
        assert matches == sorted(matches, key=lambda match: -match.share)
        words = {index.words().vocabulary.word(int(id)) for field in FIELDS for id in index.words().ids_of(row, field)}
        assert {match.code for match in matches} <= set(stem_all(words))


def test_a_saved_head_is_loaded_as_it_was(tmp_path: Path) -> None:
    head = small_head()
    head.save(tmp_path / "head")
    loaded = GeneralHead.load(tmp_path / "head")
    assert list(loaded.stems) == list(STEMS)
    for name in ("tables", "scales", "weights"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(head, name))
    assert (loaded.power, loaded.half, loaded.same) == (3.0, 0.3, 0.5)
    for name in ("words", "scales", "weights"):
        np.testing.assert_array_equal(getattr(loaded.context, name), getattr(head.context, name))
    for name, values in head.context.parameters.items():
        np.testing.assert_array_equal(loaded.context.parameters[name], values)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no settings": lambda folder: (folder / "general.json").write_text("{}"),
    "of the future": lambda folder: (file := folder / "general.json").write_text(
        file.read_text().replace(f'"format": {FORMAT}', '"format": 99')
    ),
    "other words": lambda folder: Vocabulary.of(STEMS[1:]).save(folder),
    "pickled": lambda folder: np.save(folder / "tables.npy", np.array([{}], object), allow_pickle=True),
    "not a number": lambda folder: np.save(folder / "scales.npy", np.load(folder / "scales.npy") * np.float16("nan")),
    "infinite context": lambda folder: np.save(
        folder / "context.npy", np.load(folder / "context.npy") * np.float16("inf")
    ),
    "divided by zero": lambda folder: (file := folder / "general.json").write_text(
        file.read_text().replace('"half": 0.3', '"half": 0')
    ),
    "cut": lambda folder: os.truncate(folder / "scales.npy", 60),
    "shorter context": lambda folder: np.save(folder / "context.npy", np.load(folder / "context.npy")[1:]),
    "context of other words": lambda folder: np.save(
        folder / "context_words.npy", np.load(folder / "context_words.npy")[:, 1:]
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_head_is_refused_in_one_line(tmp_path: Path, damage: str) -> None:
    small_head().save(tmp_path)
    DAMAGES[damage](tmp_path)
    with pytest.raises(IndexDamaged, match="general head"):
        GeneralHead.load(tmp_path)
    with pytest.raises(BadInput, match="no general head"):
        GeneralHead.load(tmp_path / "nothing")


def test_only_the_arrays_and_words_that_were_saved_are_verified(tmp_path: Path) -> None:
    small_head().save(tmp_path)
    verify(tmp_path)
    tables = np.load(tmp_path / "tables.npy")
    np.save(tmp_path / "tables.npy", tables[:, ::-1])  # it can still be loaded
    with pytest.raises(IndexDamaged, match="not as it was saved; install ncs again"):
        verify(tmp_path)
    np.save(tmp_path / "tables.npy", tables)
    Vocabulary.of([*STEMS[1:], "zebra"]).save(tmp_path)
    with pytest.raises(IndexDamaged, match="not as it was saved"):
        verify(tmp_path)
    verify(FOLDER)


def test_the_head_of_the_package_fits_into_12_mb_of_a_wheel_and_has_a_card(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "head.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in FOLDER.iterdir():
            archive.write(path)
    assert (tmp_path / "head.zip").stat().st_size <= 12_000_000
    assert "## Limits" in (FOLDER / "README.md").read_text()


def test_the_head_of_the_package_knows_words_that_people_say_for_those_of_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "def f(x):\n    return datetime.strptime(x, '%Y')\n\n\ndef g(x):\n    return sorted(set(x))\n\n\n"
        "def h(x):\n    return os.unlink(x)\n"
    )
    with Index.build(tmp_path, tmp_path / ".ncs", config=corpus.QUICK) as index:
        for query, name in (("parse a date", "f"), ("ascending order", "g"), ("delete a file", "h")):
            words = index.facts.words
            scorer = GeneralScorer(general_head(), words, mean_length(index))
            rows = index.documents.rows()[index.functions()[index.documents.rows()]]
            best = rows[np.argmax(scorer.scores(query.split(), rows))]
            assert index.documents.document(int(best)).name == name, query


def test_what_the_head_does_not_know_of_a_query_lowers_its_share(index: Index) -> None:
    scorer = GeneralScorer(small_head(), index.facts.words, 10.0)
    shares = [scorer.known_share(idf) for idf in ({"open": 2.0, "quagga": 6.0}, {"open": 2.0}, {"quagga": 6.0}, {})]
    assert shares == [0.25, 1, 0, 0]


def test_the_default_ranker_hears_it_unless_the_index_was_built_without(folder: Path, tmp_path: Path) -> None:
    with Index.load(folder) as index:
        ranker = cast(HybridRanker, load_ranker("hybrid", index.snapshot, context=0))
        ranking = ranker.rank("hide the soft keyboard", 5)
        parts = ranker.open_parts
        assert parts.general is not None
        assert ranking.intent is not None
        assert ranking.analysis is not None
        by_words = parts.lexical.postings.scores(ranking.analysis.expansion.counts, index.documents.rows())
        unmet = 1 - by_words.max() / sum(ranking.analysis.idf.values())
        assert 0 < unmet < 1
        scores = parts.general.scores(ranking.intent.words, np.array(ranking.rows))
        assert scores.max() > MIN_GENERAL
        assert ranking.evidence is not None
        assert 0 < ranking.evidence.inside < 1
        weight = ranker.weights.general * (3 - ranking.evidence.inside) / 2  # over many projects half as much again
        expected = weight * unmet * np.maximum(scores - MIN_GENERAL, 0)
        np.testing.assert_allclose(ranking.signals["general"], expected, atol=1e-6)
    root = shutil.copytree(folder.parent / "repos", tmp_path / "repos")
    with Index.build(root, tmp_path / "without", config=replace(corpus.QUICK, general=False)) as index:
        ranker = cast(HybridRanker, load_ranker("hybrid", index.snapshot))
        assert ranker.open_parts.general is None
        assert "general" not in ranker.rank("hide the soft keyboard", 5).signals
        assert index.search("internet online") == []


def test_where_no_word_is_known_words_that_stand_for_them_find_weak_hits(index: Index) -> None:
    results = index.results("internet online", explain=True)
    assert results.hits[0].document.name == "isConnected"
    assert [likelihood(hit.confidence) for hit in results.hits] == ["weak", *[""] * (len(results.hits) - 1)]
    assert results.explanation is not None
    first = results.explanation.hits[0]
    assert {name for name, share in first["shares"].items() if share} == {"general", "context"}
    assert ("onlin", "connect") in {(each["word"], each["met"]) for each in first["general"]}
    line = next(line for line in reasons_lines(first, 200) if "public code" in line)
    assert "onlin -> connect " in line
    assert line.endswith(f"all words together {first['together']:.4f}")
    assert index.search("zzqx quuxly") == []
    assert index.search("internet online", language="python") == []
    assert index.search("hide online")[0].document.name == "hideSoftKeyboard"  # a word is known
