"""The bound of a build's memory: respected where it can be, refused where not, and without effect on the index."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ncs.build.memory import BASE, WORKER, Budget, Corpus, expected, size_of
from ncs.config import BuildConfig, FastTextConfig
from ncs.errors import BadInput
from ncs.index import Index
from tests.build.limited import ROOM, run
from tests.command import ncs

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
    """Every file of segment and statistics by its name, but of the database what it holds, and of files no times."""
    (segment,) = index.snapshot.segments
    files: dict[str, object] = {
        f"{folder.parent.name}/{path.relative_to(folder)}": path.read_bytes()
        for folder in (segment.path, index.snapshot.statistics)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".sqlite" and path.parent.name != "files"
    }
    return {**files, "documents": index.documents.documents(range(len(index)))}


def test_the_index_is_the_same_byte_for_byte_whatever_memory_its_build_may_hold(tmp_path: Path) -> None:
    java(tmp_path / "src", 30)
    contents = []
    for memory in (None, size_of("500MiB"), size_of("64GiB")):
        with Index.build(tmp_path / "src", tmp_path / str(memory), config=PLAIN, memory=memory) as index:
            contents.append(content(index))
            assert len(index) > 80
    assert contents[0] == contents[1] == contents[2]


def test_a_bound_that_is_too_small_is_refused_before_anything_is_read_or_written(tmp_path: Path) -> None:
    java(tmp_path / "src", 2)
    with pytest.raises(BadInput, match=r"^100 MiB of memory is not enough for .* training needs .*--memory \d+MiB or"):
        Index.build(tmp_path / "src", tmp_path / "idx", memory=100 * MIB)
    assert not (tmp_path / "idx" / "snapshot.json").exists()


def test_the_memory_that_the_error_names_is_enough(tmp_path: Path) -> None:
    corpus = Corpus(1_000_000, 200_000)
    least = max(corpus.needed().values())
    with pytest.raises(BadInput, match="--memory") as error:
        Budget(least - 1).check(corpus)
    named = int(str(error.value).split("--memory ")[1].split("MiB")[0]) * MIB
    Budget(named).check(corpus)
    assert least <= named < least + 11 * MIB


def test_without_a_bound_of_the_users_nothing_is_refused() -> None:
    Budget(MIB, explicit=False).check(Corpus(10**9, 10**7))


def test_two_gibibytes_are_enough_for_a_million_documents_and_their_words() -> None:
    rows, words = expected(800_000_000)
    assert rows == 1_000_000
    Budget(size_of("2GiB")).check(Corpus.of(BuildConfig(), rows, words))


def test_what_needs_more_has_the_larger_estimate() -> None:
    plain, lsa, exact = (
        Corpus.of(config, 1_000_000, 200_000)
        for config in (BuildConfig(), BuildConfig(embeddings="lsa"), BuildConfig(vectors="exact"))
    )
    subwords = Corpus.of(BuildConfig(fasttext=FastTextConfig(min_n=3, max_n=5)), 1_000_000, 200_000)
    assert lsa.needed()["training"] > 5 * plain.needed()["training"]
    assert exact.needed()["vectors"] - plain.needed()["vectors"] == 1_000_000 * (800 - 110)
    assert subwords.needed()["training"] - plain.needed()["training"] == 200_000 * 100 * 4


def test_processes_that_read_are_as_many_as_fit_and_one_at_least() -> None:
    assert Budget(BASE + 3 * WORKER).workers(8) == 3
    assert Budget(BASE + 3 * WORKER).workers(2) == 2
    assert Budget(BASE + 3 * WORKER).workers(8, rows=WORKER // 250 + 1) == 1
    assert Budget(1).workers(8) == 1
    assert Budget(2**50).workers(None) == (os.cpu_count() or 1)


@pytest.mark.parametrize("text", ["", "2 apples", "-1G", "0", "GiB", "1e9"])
def test_what_is_no_amount_of_memory_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match="write it as 2GiB"):
        size_of(text)


def test_the_command_names_a_bound_that_is_too_small_in_one_line(tmp_path: Path) -> None:
    java(tmp_path / "src", 2)
    done = ncs("build", "src", "-i", "idx", "--memory", "90MiB", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("ncs: 90 MiB of memory is not enough for ")
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
