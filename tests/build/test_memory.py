"""The bound of a build's memory: respected where it can be, refused where not, and without effect on the index."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncs.build.memory import BASE, ROW, WORKER, check_memory, estimate, expected_size, reader_processes, size_of
from ncs.config import BuildConfig, FastTextConfig
from ncs.errors import BadInput
from ncs.index import Index
from tests.command import ncs

MIB = 2**20
QUICK = BuildConfig(fasttext=FastTextConfig(dim=8, epochs=1), embeddings="fasttext")


def java(folder: Path, files: int) -> Path:
    """Functions that share words, some of them the same."""
    for number in range(files):
        room = folder / f"repository{number % 3}"
        room.mkdir(parents=True, exist_ok=True)
        methods = (
            f"  int read{number % 7}Line{n}(Reader reader, int limit) {{\n    int total = {n};\n"
            f"    while (reader.hasNext() && total < limit) {{\n      total += reader.nextLine{n % 4}().length();\n"
            f"    }}\n    return total;\n  }}\n"
            for n in range(8)
        )
        (room / f"File{number}.java").write_text(f"class File{number} {{\n{''.join(methods)}}}\n")
    return folder


def content(index: Index) -> dict[str, object]:
    """Every file of segment and statistics by its name, the documents of the database, and of files no times."""
    (segment,) = index.snapshot.segments
    files: dict[str, object] = {
        f"{folder.parent.name}/{path.relative_to(folder)}": path.read_bytes()
        for folder in (segment.path, index.snapshot.statistics)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".sqlite" and path.parent.name != "files"
    }
    return {**files, "documents": index.documents.documents(range(len(index)))}


def test_the_index_is_the_same_byte_for_byte_whatever_memory_its_build_may_use(tmp_path: Path) -> None:
    java(tmp_path / "src", 30)
    contents = []
    for memory in (None, size_of("500MiB")):
        with Index.build(tmp_path / "src", tmp_path / str(memory), config=QUICK, memory=memory) as index:
            contents.append(content(index))
            assert len(index) > 80
    assert contents[0] == contents[1]


def test_a_bound_that_is_too_small_is_refused_in_one_line_before_anything_is_read_or_written(tmp_path: Path) -> None:
    java(tmp_path / "src", 2)
    done = ncs("build", "src", "-i", "idx", "--memory", "90MiB", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("ncs: 90 MiB of memory is not enough for ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "idx" / "snapshot.json").exists()


def test_the_memory_that_the_error_names_is_enough(tmp_path: Path) -> None:
    size = BuildConfig(), 1_000_000, 200_000
    least = max(estimate(*size).values())
    with pytest.raises(BadInput, match=r"training needs .*--memory \d+MiB or more") as error:
        check_memory(least - 1, *size)
    named = int(str(error.value).split("--memory ")[1].split("MiB")[0]) * MIB
    check_memory(named, *size)
    assert least <= named < least + 11 * MIB
    check_memory(None, *size)


def test_a_build_by_the_least_memory_that_is_named_uses_no_more(tmp_path: Path) -> None:
    java(tmp_path / "src", 100)
    build = ("build", "src", "-i", "idx", "-q", "--embeddings", "fasttext", "--epochs", "1", "--memory")
    least = ncs(*build, "90MiB", cwd=tmp_path).stderr.split("--memory ")[1].split()[0]
    assert ncs(*build, least, cwd=tmp_path).returncode == 0
    with Index.load(tmp_path / "idx") as index:
        assert 0 < index.description.counts["peak_memory_bytes"] <= size_of(least)


def test_two_gibibytes_are_enough_for_a_million_documents_and_their_words() -> None:
    rows, words = expected_size(800_000_000)
    assert rows == 1_000_000
    check_memory(size_of("2GiB"), BuildConfig(), rows, words)


@pytest.mark.parametrize(
    ("config", "stage", "more"),
    [
        (BuildConfig(vectors="exact"), "vectors", 1_000_000 * (800 - 110)),
        (BuildConfig(fasttext=FastTextConfig(min_n=3, max_n=5)), "training", 200_000 * 100 * 4),
        (BuildConfig(embeddings="lsa"), "training", 10_100_000_000),
    ],
)
def test_settings_that_need_more_have_the_larger_estimate(config: BuildConfig, stage: str, more: int) -> None:
    plain, other = (estimate(each, 1_000_000, 200_000)[stage] for each in (BuildConfig(), config))
    assert other - plain == pytest.approx(more, rel=0.1)


def test_processes_that_read_are_as_many_as_fit_and_one_at_least() -> None:
    limit = BASE + 3 * WORKER
    assert [reader_processes(limit, workers, 0) for workers in (8, 2)] == [3, 2]
    assert reader_processes(limit, 8, WORKER // ROW + 1) == 1
    assert reader_processes(1, 8, 0) == 1
    assert reader_processes(2**50, None, 0) == (os.cpu_count() or 1)


@pytest.mark.parametrize("text", ["", "2 apples", "-1G", "0", "GiB", "1e9"])
def test_what_is_no_amount_of_memory_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match="write it as 2GiB"):
        size_of(text)
