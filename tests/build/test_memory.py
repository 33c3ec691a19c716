"""The bound of a build's memory: respected where it can be, refused where not, and without effect on the index."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncs.build.memory import BASE, ROW, WORKER, check_memory, estimate, reader_processes, size_of
from ncs.config import BuildConfig, FastTextConfig
from ncs.errors import BadInput
from ncs.index import Index
from tests import corpus
from tests.command import invoke, ncs


def test_too_little_memory_is_refused_in_one_line_and_a_build_uses_no_more_than_the_least_that_is_named(
    tmp_path: Path,
) -> None:
    corpus.write(tmp_path / "src")
    build = ("build", "src", "-i", "idx", "-q", "--embeddings", "fasttext", "--epochs", "1", "--memory")
    refused = invoke(*build, "90MiB", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("ncs: 90 MiB of memory is not enough for ")
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "idx").exists()
    least = refused.stderr.split("--memory ")[1].split()[0]
    assert ncs(*build, least, cwd=tmp_path).returncode == 0
    with Index.load(tmp_path / "idx") as index:
        assert 0 < index.description.counts["peak_memory_bytes"] <= size_of(least)


def test_the_memory_that_the_error_names_is_enough_and_by_default_there_is_no_bound() -> None:
    size = BuildConfig(), 1_000_000, 200_000
    least = max(estimate(*size).values())
    with pytest.raises(BadInput, match=r"training needs .*--memory \d+MiB or more") as error:
        check_memory(least - 1, *size)
    named = size_of(str(error.value).split("--memory ")[1].split()[0])
    check_memory(named, *size)
    assert least <= named < least + size_of("11MiB")
    assert named < size_of("2GiB")
    check_memory(None, *size)


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
    assert reader_processes(2**50, None, 0) == (os.cpu_count() or 1)


@pytest.mark.parametrize("text", ["", "2 apples", "-1G", "0", "GiB", "1e9"])
def test_what_is_no_amount_of_memory_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match="write it as 2GiB"):
        size_of(text)
