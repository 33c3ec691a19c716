"""Word vectors: what they are learned from, how, and what happens where that fails."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ncs.config import FastTextConfig, LsaConfig
from ncs.errors import BadInput, IndexDamaged
from ncs.learn import fasttext
from ncs.learn.embeddings import (
    CROSSOVER,
    Choice,
    Embeddings,
    choose,
    retraining_advice,
    reuse_embeddings,
    share_without_vector,
)
from ncs.learn.tfidf import unit_rows
from ncs.storage.snapshot import Description
from ncs.storage.words import WordTable
from tests.waiting import processes, until
from tests.words import id_of, table, topics

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
QUICK = FastTextConfig(dim=16, epochs=3, least_words=0, min_count=1)


def cosine(embeddings: Embeddings, words: WordTable, a: str, b: str) -> float:
    unit = unit_rows(embeddings.vectors)
    return float(unit[id_of(words, a)] @ unit[id_of(words, b)])


@pytest.mark.slow
def test_words_of_one_topic_are_nearer_than_words_of_two_and_only_the_seed_changes_the_vectors() -> None:
    words = topics()
    embeddings = Embeddings.train(words, FastTextConfig(dim=16))
    assert (embeddings.method, len(embeddings.vectors)) == ("fasttext", len(words.vocabulary))
    within = [cosine(embeddings, words, "file", other) for other in ("read", "folder", "disk")]
    across = [cosine(embeddings, words, "file", other) for other in ("socket", "port", "packet")]
    assert min(within) > max(across)
    words = topics(100)
    first, second, other = (Embeddings.train(words, each) for each in (QUICK, QUICK, replace(QUICK, seed=1)))
    assert first.vectors.tobytes() == second.vectors.tobytes() != other.vectors.tobytes()


def test_the_text_is_a_document_a_line_in_field_order_without_numbers_and_repetitions(tmp_path: Path) -> None:
    words = table(
        "literals: not found 404; calls: get get get url; name: load page; types: string; doc: loads the the page",
        "name: 1 2 3; types: only",
        "name: héllo",
    )
    everything = np.array([not word.isnumeric() for word in words.vocabulary])
    fasttext._write_text(tmp_path / "text", words, everything, [word.encode() for word in words.vocabulary])
    assert (tmp_path / "text").read_text(encoding="utf-8") == "loads the page load page get url not found\nhéllo\n"


@pytest.mark.slow
def test_rare_words_and_numbers_have_no_vector_unless_the_corpus_is_small() -> None:
    words = table(*["open file 404", "read file", "open read 404"] * 10_000, "once twice")
    embeddings = Embeddings.train(words, FastTextConfig(dim=8, epochs=1, least_words=0, min_count=3))
    assert {words.vocabulary.word(int(id)) for id in np.flatnonzero(embeddings.vectors.any(axis=1))} == {
        "open", "file", "read"
    }  # fmt: skip
    assert embeddings.notes == ()
    small = Embeddings.train(table("open file", "read file once"), FastTextConfig(dim=8, epochs=4, min_count=5))
    assert small.vectors.any(axis=1).all()
    assert small.notes == (
        "The corpus is small: fastText read it 100 times, not 4.",
        "The corpus is small: words in 1 or more places were learned, not 5.",
    )


@pytest.mark.slow
def test_with_sub_words_rare_words_have_vectors_near_words_spelt_alike() -> None:
    words = table(*["hide keyboard window", "open file stream"] * 10_000, "keyboards streaming")
    config = FastTextConfig(dim=16, epochs=1, least_words=0, min_count=5, min_n=3, max_n=6, buckets=5_000)
    embeddings = Embeddings.train(words, config)
    assert embeddings.vectors.any(axis=1).all()
    assert cosine(embeddings, words, "keyboards", "keyboard") > cosine(embeddings, words, "keyboards", "file")
    assert embeddings.vectors.tobytes() == Embeddings.train(words, config).vectors.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "method", "note"),
    [
        (300, "fasttext", "fastText diverged; it learned with the rate 60 instead."),
        (1e30, "lsa", "Word vectors are from LSA, as fastText diverged at every learning rate"),
    ],
)
def test_training_that_diverges_is_repeated_slower_and_left_to_lsa_if_it_always_does(
    rate: float, method: str, note: str
) -> None:
    embeddings = Embeddings.train(topics(100), replace(QUICK, learning_rate=rate))
    assert np.isfinite(embeddings.vectors).all()
    assert embeddings.vectors.any(axis=1).all()
    assert (embeddings.method, embeddings.notes) == (method, (note,))


POOR = (
    (), ("",), ("types: only",), ("word",), ("word word word",), ("1 2 3",), ("hide soft keyboard",) * 300,
    ("hide keyboard", "show keyboard", "read file"), (" ".join(["0", "end"] * 3000),), ("end " * 5000,),
)  # fmt: skip
SUB_WORDS = FastTextConfig(dim=8, min_n=2, max_n=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("documents", "config"),
    [*product(POOR, (FastTextConfig(dim=8), LsaConfig(dim=8))), *((each, SUB_WORDS) for each in POOR[4:9:2])],
)
def test_no_corpus_is_too_poor(documents: tuple[str, ...], config: FastTextConfig | LsaConfig) -> None:
    words = table(*documents)
    embeddings = Embeddings.train(words, config)
    assert embeddings.vectors.shape[0] == len(words.vocabulary)
    assert embeddings.vectors.dtype == np.float32
    assert np.isfinite(embeddings.vectors).all()
    assert (embeddings.method == "none") == (not embeddings.vectors.any())
    assert embeddings.method != "none" or embeddings.notes


@pytest.mark.slow
def test_training_starts_from_pretrained_vectors(tmp_path: Path) -> None:
    path = tmp_path / "vectors.vec"
    path.write_text("3 4\nfile 1 2 3 4\nelsewhere 9 9 9 9\nread -1 0.5 0.25 1e-3\n")
    still = FastTextConfig(dim=4, least_words=0, min_count=1, learning_rate=1e-9, pretrained=str(path))
    words = table("read file", "open file")
    vectors = Embeddings.train(words, still).vectors
    np.testing.assert_allclose(vectors[id_of(words, "file")], [1, 2, 3, 4], atol=1e-5)
    np.testing.assert_allclose(vectors[id_of(words, "read")], [-1, 0.5, 0.25, 1e-3], atol=1e-5)
    assert np.abs(vectors[id_of(words, "open")]).max() <= 1 / 4


@pytest.mark.slow
def test_a_fasttext_model_serves_as_pretrained_vectors(tmp_path: Path) -> None:
    from fasttext import train_unsupervised

    (tmp_path / "text").write_text("read file close file\n" * 200)
    first = tmp_path / "first.vec"  # without it fastText may start from NaN
    first.write_text("4 2\nread 0.1 0.2\nfile 0.3 -0.1\nclose 0 0.1\n</s> 0 0\n")
    options = {"dim": 2, "minn": 0, "maxn": 0, "thread": 1, "verbose": 0, "pretrainedVectors": str(first)}
    model = train_unsupervised(str(tmp_path / "text"), **options)
    path = tmp_path / "model.bin"
    model.save_model(str(path))
    words = table("read file", "open file")
    still = FastTextConfig(dim=2, least_words=0, min_count=1, learning_rate=1e-9, pretrained=str(path))
    vectors = Embeddings.train(words, still).vectors
    for word in ("read", "file"):
        first_vector = model.get_input_vector(model.get_word_id(word))
        np.testing.assert_allclose(vectors[id_of(words, word)], first_vector, atol=1e-5)
    content = path.read_bytes()
    path.write_bytes(content[:64] + b"\0" + content[65:])  # no words: a division by 0, or no memory
    with pytest.raises(BadInput, match=r"is no fastText model \("):
        Embeddings.train(words, still)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("vectors.vec", "2 5\nfile 1 2 3 4 5\n", "vectors of 5 dimensions, not 4"),
        ("vectors.vec", "file 1 2 3 4\n", "does not begin with"),
        ("vectors.vec", "", "does not begin with"),
        ("vectors.vec", "2 4\nfile 1 2 3\n", ":2 is not a word and 4 numbers"),
        ("vectors.vec", "2 4\nother 1 2\nfile 1 2 x 4\n", ":3 is not a word and 4 numbers"),
        ("vectors.vec", "1 4\nfile 1 2 nan 4\n", ":2 is not a word and 4 numbers"),
        ("elsewhere.vec", None, "no pretrained vectors at"),
        ("model.bin", "no model", "is no fastText model"),
        ("model.vec", f"1 {'9' * 5_000}\n", "does not begin with"),
    ],
)
def test_pretrained_vectors_that_do_not_fit_are_refused(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(BadInput, match=message):
        Embeddings.train(table("read file", "open file"), FastTextConfig(dim=4, pretrained=str(tmp_path / name)))


@pytest.mark.parametrize("name", ["dim", "epochs", "min_count", "threads", "learning_rate", "sample"])
def test_settings_of_zero_that_fasttext_cannot_run_with_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="fastText needs"):
        FastTextConfig(**{name: 0})  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="sub-words need"):
        FastTextConfig(min_n=3)


@pytest.mark.slow
def test_a_crash_of_fasttext_leaves_it_to_lsa(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fasttext, "JOB", "elsewhere.json")  # what the worker looks for is not there
    embeddings = Embeddings.train(topics(100), QUICK)
    assert embeddings.method == "lsa"
    assert embeddings.notes[0].startswith(
        "Word vectors are from LSA, as fastText ended with status 1: FileNotFoundError"
    )


def test_without_fasttext_lsa_learns_and_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fasttext", None)
    embeddings = Embeddings.train(topics(100), QUICK)
    assert embeddings.method == "lsa"
    assert embeddings.vectors.any(axis=1).all()
    note = "Word vectors are from LSA, as fastText is not installed: pip install fasttext-community"
    assert embeddings.notes == (note,)


@pytest.mark.slow
def test_an_interrupt_ends_the_process_and_leaves_no_files(tmp_path: Path) -> None:
    def interrupted(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        for item in items:
            yield item
            started.extend(tmp_path.iterdir())
            assert processes(str(started[0]))
            raise KeyboardInterrupt

    started: list[Path] = []

    with pytest.raises(KeyboardInterrupt):
        Embeddings.train(topics(2_000), FastTextConfig(epochs=1_000), track=interrupted, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert started
    assert processes(str(started[0])) == []


@pytest.mark.slow
def test_the_process_ends_when_the_one_that_started_it_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, signal, sys; from tests.words import topics\n"
        "from ncs.config import FastTextConfig; from ncs.learn.embeddings import Embeddings\n"
        "def kill(items, stage, **more):\n"
        "    for item in items: os.kill(os.getpid(), signal.SIGKILL)\n"
        "config = FastTextConfig(epochs=2_000, least_words=0)\n"
        "Embeddings.train(topics(2000), config, track=kill, folder=pathlib.Path(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)])
    assert done.returncode == -signal.SIGKILL
    (room,) = tmp_path.iterdir()
    until(lambda: not processes(str(room)))
    assert not (room / fasttext.VECTORS).exists()  # it did not go on to the end


@pytest.mark.slow
def test_progress_counts_each_percent_once_to_a_hundred(tmp_path: Path) -> None:
    percents: list[int] = []

    def track(items: Iterable[int], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[int]:
        assert (stage, total, unit) == ("training embeddings", 100, "%")
        for item in items:
            percents.append(item)
            yield item

    Embeddings.train(topics(2_000), FastTextConfig(epochs=30, least_words=0), track=track)  # type: ignore[arg-type]
    assert percents == list(range(1, 101))


@pytest.mark.parametrize("power", [0, 0.5])
def test_lsa_gives_the_right_singular_vectors_of_the_tf_idf_matrix_times_their_values_to_a_power(power: float) -> None:
    words = topics(60)
    embeddings = Embeddings.train(words, LsaConfig(dim=3, iterations=30, power=power))
    counts = np.zeros((len(words), len(words.vocabulary)))
    for row in range(len(words)):
        np.add.at(counts[row], words.ids_of(row, "doc"), 1)
    idf = np.log((1 + len(words)) / (1 + (counts > 0).sum(axis=0))) + 1
    with np.errstate(divide="ignore"):
        weights = np.where(counts > 0, 1 + np.log(counts), 0) * idf
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    _, values, right = np.linalg.svd(weights)
    right = (right[:3] * values[:3, None] ** power).T
    vectors = embeddings.vectors.astype(np.float64)
    np.testing.assert_allclose(np.abs(vectors), np.abs(right), atol=1e-4)
    assert embeddings.method == "lsa"


def test_lsa_gives_the_same_bytes_for_any_number_of_threads() -> None:
    chosen = np.random.default_rng(0).integers(0, 700, (900, 30))
    words = table(*["doc: " + " ".join(f"w{number}x" for number in row) for row in chosen.tolist()])
    vectors = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            vectors.append(Embeddings.train(words, LsaConfig(dim=200)).vectors)
    assert vectors[0].tobytes() == vectors[1].tobytes()


def test_lsa_of_documents_that_are_all_alike_has_one_component() -> None:
    embeddings = Embeddings.train(table(*["doc: open file"] * 9), LsaConfig(dim=5))
    assert np.flatnonzero(embeddings.vectors.any(axis=0)).tolist() == [0]
    np.testing.assert_allclose(embeddings.vectors[:, 0], np.sqrt(0.5) * 3**0.25, rtol=1e-5)


@pytest.mark.parametrize("name", ["embeddings.npy", "embeddings.json"])
@pytest.mark.parametrize("content", [b"", b"x", b"{}", b"[]", None])
def test_damaged_embeddings_are_refused(tmp_path: Path, name: str, content: bytes | None) -> None:
    Embeddings(np.ones((5, 3), np.float32), "fasttext").save(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(IndexDamaged, match="build the index again"):
        Embeddings.load(tmp_path)


def test_nearest_words_are_those_of_highest_cosine_that_are_frequent_and_nearer_than_by_chance() -> None:
    words = table(" ".join(sorted(f"w{i:03}" for i in range(302))))
    vectors, documents = np.eye(302, dtype=np.float32), np.full(302, 5)
    vectors[1] = vectors[0] + vectors[1]
    vectors[2] = 3 * vectors[0] + 4 * vectors[2]
    vectors[3], vectors[4] = vectors[0], 0
    documents[3] = 4
    nearest = partial(Embeddings(vectors, "fasttext").nearest, words.vocabulary, documents=documents)
    near: object = [("w001", pytest.approx(0.5**0.5)), ("w002", pytest.approx(0.6))]
    assert nearest(0) == near
    assert [word for word, _ in nearest(0, n=1) or ()] == ["w001"]
    assert nearest(5) == []  # no word is like it
    assert nearest(3) == []  # too few documents have it
    assert nearest(4) is None
    alike = Embeddings(np.ones((302, 3), np.float32), "lsa")
    assert alike.nearest(words.vocabulary, 0, documents) == []  # like every other


TINY_BESIDE_LARGE = np.concatenate([np.zeros(900, np.int32), np.arange(1, 31, dtype=np.int32)])


@pytest.mark.parametrize(
    ("choice", "owners", "config", "method"),
    [
        ("auto", np.arange(CROSSOVER - 1) % 5, FastTextConfig(), LsaConfig),
        ("auto", np.zeros(CROSSOVER, np.int32), FastTextConfig(), FastTextConfig),
        ("auto", np.arange(700) % 7, FastTextConfig(), FastTextConfig),
        ("auto", TINY_BESIDE_LARGE, FastTextConfig(), LsaConfig),  # counts as one repository
        ("auto", np.zeros(10, np.int32), FastTextConfig(seed=1), FastTextConfig),
        ("lsa", np.arange(CROSSOVER) % 9, FastTextConfig(seed=1), LsaConfig),
        ("fasttext", np.zeros(10, np.int32), FastTextConfig(), FastTextConfig),
    ],
)
def test_size_and_repositories_of_a_corpus_choose_the_method_unless_it_is_set(
    choice: Choice, owners: NDArray[np.int32], config: FastTextConfig, method: type
) -> None:
    assert isinstance(choose(choice, owners, config, LsaConfig()), method)


def test_saved_vectors_come_back_memory_mapped_and_are_reused_by_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncs.files.SMALL_BYTES", 0)
    old, new = table("open read file"), table("file open write write")
    vectors = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    old.save(tmp_path)
    Embeddings(vectors, "lsa", ("It was so.",)).save(tmp_path)
    loaded = Embeddings.load(tmp_path)
    assert isinstance(loaded.vectors.base, np.memmap)
    assert loaded.vectors.tobytes() == vectors.tobytes()
    reused = reuse_embeddings(tmp_path, new)
    assert (reused.method, reused.notes) == (loaded.method, loaded.notes) == ("lsa", ("It was so.",))
    assert reused.vectors[id_of(new, "file")].tolist() == vectors[id_of(old, "file")].tolist()
    assert not reused.vectors[id_of(new, "write")].any()
    assert share_without_vector(new, reused) == 0.5


@pytest.mark.parametrize(
    ("documents", "without_vector", "advice"),
    [
        (150, 0.03, None),
        (100, 0.04, "3.0% of the words are newer than the word vectors; learn them with: ncs update --retrain"),
        (151, 0.01, "word vectors were learned from 100 documents of 151; learn again: ncs update --retrain"),
    ],
)
def test_training_again_is_advised_where_words_or_documents_are_new(
    documents: int, without_vector: float, advice: str | None
) -> None:
    training = {"documents": 100, "without_vector": 0.01, "without_vector_now": without_vector}
    counts = {"documents": documents, "training": training}
    assert retraining_advice(Description(1, "", "", (), counts=counts)) == advice
