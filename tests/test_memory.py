"""The bound of a build's memory: kept where it can be, told where it cannot, and without a trace in the index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ncs.build.memory import OWN, WORKER, Budget, Corpus, expected, size_of
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from ncs.learn import word_vectors
from ncs.learn.embeddings import Embeddings, FastTextConfig
from ncs.storage.documents import Store
from ncs.types import NCS_FIELDS
from tests.limited import ROOM, run
from tests.words import topics

MIB = 2**20
PLAIN = BuildConfig(fasttext=FastTextConfig(dim=8, epochs=1), embeddings="fasttext", deduplicate=True)


def java(folder: Path, files: int) -> Path:
    """Functions that share words, some of them the same."""
    for number in range(files):
        room = folder / f"repository{number % 3}"
        room.mkdir(parents=True, exist_ok=True)
        (room / f"File{number}.java").write_text(
            f"class File{number} {{\n"
            + "".join(
                f"  int read{number % 7}Line{n}(Reader reader, int limit) {{\n    int total = {n};\n"
                f"    while (reader.hasNext() && total < limit) {{\n      total += reader.nextLine{n % 4}().length();\n"
                f"    }}\n    return total;\n  }}\n"
                for n in range(8)
            )
            + "}\n"
        )
    return folder


def content(index: Index) -> dict[str, object]:
    """Every file of an index by its name; of the database what it holds, of the manifest what does not tell time."""
    found: dict[str, object] = {
        str(path.relative_to(index.data)): path.read_bytes()
        for path in sorted(index.data.rglob("*"))
        if path.is_file() and path.suffix != ".sqlite"
    }
    with Store(index.data / "documents.sqlite") as store:
        found["documents"] = store.documents(range(len(store)))
        found["counts"] = dict(store.counts)
    return found


@pytest.mark.parametrize("memory", [size_of("500MiB"), size_of("64GiB")])
def test_the_index_is_the_same_byte_for_byte_whatever_memory_its_build_may_hold(memory: int, tmp_path: Path) -> None:
    java(tmp_path / "src", 30)
    with (
        Index.build(tmp_path / "src", tmp_path / "free", config=PLAIN) as free,
        Index.build(tmp_path / "src", tmp_path / "bound", config=PLAIN, memory=memory) as bound,
    ):
        assert content(free) == content(bound)
        assert len(free) > 80


def test_a_bound_that_cannot_be_kept_is_told_before_anything_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    java(tmp_path / "src", 2)
    with pytest.raises(BadInput, match=r"^100 MiB of memory are too little for .* training needs .*--memory \d+MiB or"):
        Index.build(tmp_path / "src", tmp_path / "idx", memory=100 * MIB)
    assert not (tmp_path / "idx" / "manifest.json").exists()


def test_the_memory_that_the_error_names_is_enough(tmp_path: Path) -> None:
    corpus = Corpus(1_000_000, 200_000)
    least = max(corpus.needed().values())
    with pytest.raises(BadInput, match="--memory") as told_:
        Budget(least - 1).check(corpus)
    named = int(str(told_.value).split("--memory ")[1].split("MiB")[0]) * MIB
    Budget(named).check(corpus)
    assert least <= named < least + 11 * MIB


def test_nobody_who_did_not_ask_for_a_bound_is_refused() -> None:
    Budget(MIB, asked=False).check(Corpus(10**9, 10**7))


def test_two_gibibytes_are_enough_for_a_million_documents_and_their_words() -> None:
    rows, words = expected(800_000_000)
    assert rows == 1_000_000
    Budget(size_of("2GiB")).check(BuildConfig().corpus(rows, words))


def test_what_needs_more_is_asked_for_more() -> None:
    plain, lsa, exact = (
        config.corpus(1_000_000, 200_000)
        for config in (BuildConfig(), BuildConfig(embeddings="lsa"), BuildConfig(vectors="exact"))
    )
    subwords = BuildConfig(fasttext=FastTextConfig(min_n=3, max_n=5)).corpus(1_000_000, 200_000)
    assert lsa.needed()["training"] > 5 * plain.needed()["training"]
    assert exact.needed()["vectors"] - plain.needed()["vectors"] == 1_000_000 * (800 - 110)
    assert subwords.needed()["training"] - plain.needed()["training"] == 200_000 * 100 * 4


def test_processes_that_read_are_as_many_as_fit_and_one_at_least() -> None:
    assert Budget(OWN + 3 * WORKER).workers(8) == 3
    assert Budget(OWN + 3 * WORKER).workers(2) == 2
    assert Budget(OWN + 3 * WORKER).workers(8, rows=WORKER // 250 + 1) == 1
    assert Budget(1).workers(8) == 1
    assert Budget(2**50).workers(None) == (os.cpu_count() or 1)


def test_words_without_a_vector_are_counted_alike_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    words = topics()
    vectors = np.ones((len(words.vocabulary), 3), np.float32)
    vectors[::3] = 0
    ids, _ = words.select(NCS_FIELDS)
    expected = np.mean([int(id) % 3 == 0 for id in ids])
    for rows in (1, 7, 1 << 14):
        monkeypatch.setattr(word_vectors, "ROWS", rows)
        assert word_vectors.without_vector(words, Embeddings(vectors)) == pytest.approx(expected, abs=1e-6)
    assert 0.1 < expected < 0.9


@pytest.mark.parametrize("text", ["", "2 apples", "-1G", "0", "GiB", "1e9"])
def test_what_is_no_amount_of_memory_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match="write it as 2GiB"):
        size_of(text)


def test_the_command_line_takes_the_bound_and_tells_in_one_line_that_it_is_too_little(tmp_path: Path) -> None:
    java(tmp_path / "src", 2)
    command = [sys.executable, "-m", "ncs.cli", "build", str(tmp_path / "src"), "-i", str(tmp_path / "idx"), "--memory"]
    done = subprocess.run([*command, "90MiB"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("ncs: 90 MiB of memory are too little for ")
    assert done.stderr.count("\n") == 1


needs_groups = pytest.mark.skipif(not os.access(ROOM, os.W_OK), reason="no control groups of memory that we may make")


@needs_groups
def test_what_asks_for_more_than_a_hard_limit_is_killed_and_counted(tmp_path: Path) -> None:
    script = "x = bytearray(1) * (300 << 20); print(len(x))"
    killed = run([sys.executable, "-c", script], 100 * MIB, tmp_path / "killed.log")
    assert (killed.status, killed.kills) == (-9, 1)
    fits = run([sys.executable, "-c", script], 400 * MIB, tmp_path / "fits.log")
    assert (fits.status, fits.kills, fits.output.strip()) == (0, 0, str(300 << 20))
    assert 300 * MIB <= fits.most <= 400 * MIB


@pytest.mark.slow
@needs_groups
def test_a_build_by_the_least_memory_that_is_named_is_not_killed(tmp_path: Path) -> None:
    java(tmp_path / "src", 800)
    build = [sys.executable, "-m", "ncs.cli", "build", str(tmp_path / "src"), "-i", str(tmp_path / "idx"), "-q"]
    build += ["--embeddings", "fasttext", "--epochs", "1", "--dim", "20", "--memory"]
    refused = run([*build, "200MiB"], size_of("2GiB"), tmp_path / "refused.log")
    assert refused.status == 2
    least = refused.output.split("--memory ")[1].split()[0]
    system = 32 * MIB  # what the system keeps for processes (page tables, files' names) is charged to the group, too
    done = run([*build, least], size_of(least) + system, tmp_path / "done.log")
    assert (done.status, done.kills) == (0, 0), done.output
    assert done.peak <= size_of(least)
