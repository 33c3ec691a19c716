"""What workers of a cluster count and encode is what is counted and encoded here, to the bit, whoever of them dies."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import NcsError
from ncs.learn import tfidf as encoder
from ncs.learn.embeddings import Embeddings
from ncs.scale.dask.spread import SpreadWords, from_bytes, to_bytes
from ncs.search.bm25 import Bm25Ranker
from ncs.search.ncs import NcsRanker
from ncs.storage import postings_builder as lexical_build
from ncs.storage.words import Arrays, WordTable
from ncs.text.vocabulary import Vocabulary
from ncs.types import FIELDS
from tests import dask_processes
from tests.dask_processes import Cluster

pytestmark = pytest.mark.slow
DOCUMENTS, WORDS = 400, 90


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as room, dask_processes.cluster(Path(room), 2) as found:
        yield found


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lexical_build, encoder):
        monkeypatch.setattr(module, "CHUNK", 37)
    monkeypatch.setattr("ncs.search.ncs.CHUNK", 37)


def table() -> WordTable:
    """Random documents, some of them without words."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 6, (DOCUMENTS, len(FIELDS))) * (rng.random((DOCUMENTS, 1)) < 0.95)
    offsets = np.concatenate([[0], np.cumsum(lengths.ravel())]).astype(np.int64)
    ids = (WORDS * rng.random(int(offsets[-1])) ** 2).astype(np.int32)
    return WordTable(Vocabulary.of([f"word{number}ing" for number in range(WORDS)]), ids, offsets)


def files(words: WordTable, room: Path) -> dict[str, bytes]:
    """Every file that rankers make of words."""
    room.mkdir()
    vectors = Embeddings(np.random.default_rng(6).normal(size=(WORDS, 16)).astype(np.float32))
    for ranker in (Bm25Ranker(), NcsRanker("ncs"), NcsRanker("ncs_centred", centre=True)):
        ranker.fit(words, vectors)
        ranker.save(room)
    return {str(path.relative_to(room)): path.read_bytes() for path in room.rglob("*") if path.is_file()}


def test_postings_and_vectors_made_by_workers_are_those_made_here_byte_for_byte(
    cluster: Cluster, tmp_path: Path
) -> None:
    with closing(SpreadWords(table(), cluster.address)) as spread:
        assert files(spread, tmp_path / "there") == files(table(), tmp_path / "here")
        assert spread.here == 0


def test_what_dies_with_its_workers_is_made_again_and_without_any_it_is_made_here(
    cluster: Cluster, tmp_path: Path
) -> None:
    expected = files(table(), tmp_path / "here")
    with closing(SpreadWords(table(), cluster.address, patience=4)) as spread:
        assert files(spread, tmp_path / "both") == expected
        cluster.workers[0].kill()
        cluster.workers[0].wait()
        assert files(spread, tmp_path / "one") == expected
        cluster.workers[1].kill()
        cluster.workers[1].wait()
        assert files(spread, tmp_path / "none") == expected
        assert spread.here > 0


def slowly(words: WordTable) -> Arrays:
    """How many documents there are, after a while."""
    time.sleep(0.3)
    return [np.array([len(words)])]


def test_workers_killed_in_the_middle_change_no_answer_and_no_order(cluster: Cluster) -> None:
    with closing(SpreadWords(table(), cluster.address, patience=4)) as spread:
        found = []
        for number, (count,) in enumerate(spread.each(slowly, range(0, DOCUMENTS, 37), 37)):
            found.append(int(count[0]))
            if number in (1, 4):
                victim = cluster.workers.pop()
                victim.kill()
                victim.wait()
        assert found == [37] * 10 + [30]
        assert int(spread.total(slowly, 100)[0][0]) == DOCUMENTS


def test_without_a_scheduler_everything_is_made_here() -> None:
    spread = SpreadWords(table(), "tcp://127.0.0.1:9", patience=1)
    assert [int(count[0]) for (count,) in spread.each(slowly, [0, 390], 37)] == [37, 10]
    assert spread.here == 2


def test_pickled_arrays_are_refused() -> None:
    (back,) = from_bytes(to_bytes([np.arange(3)]))
    assert back.tolist() == [0, 1, 2]
    with pytest.raises(NcsError, match="no arrays"):
        from_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="allow_pickle"):
        to_bytes([np.array([object()], dtype=object)])
