"""What Milvus serves ranks as the folder does, whatever was updated, killed or lost meanwhile."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncs.config import BuildConfig
from ncs.errors import BadInput, IndexBusy, IndexNotFound, IndexVersion, StoreLost
from ncs.index import Index
from ncs.scale import milvus as store
from ncs.scale.milvus import MilvusIndex, Publication, Target, connect, key_range
from ncs.storage.commit import open_writer
from tests import gitrepo
from tests.command import ncs
from tests.serving import own_port, plain_get, served, wait_for_port
from tests.waiting import until

LSA = BuildConfig(embeddings="lsa")
QUERIES = (
    "open a file", "HideKeyboard", "read_socket", "clse header", "nothing of this kind zzz",
    "fetch window record and hide it",
)  # fmt: skip
FILTERS = ({"language": "java"}, {"repository": "r[3-6]"}, {"path": "*file_*"}, {"kind": "function"})
VERBS = ("read", "write", "open", "close", "hide", "show", "parse", "encode", "fetch", "store")
THINGS = ("file", "keyboard", "socket", "image", "record", "cache", "token", "window", "header", "buffer")


def sources(root: Path, seed: int, repositories: int = 9) -> Path:
    """Repositories of Python and Java functions that share words."""
    rng = random.Random(seed)
    for number in range(repositories):
        files = {}
        for thing in THINGS[:3]:
            lines = []
            for _ in range(4):
                verb, one, other = rng.choice(VERBS), rng.choice(THINGS), rng.choice(THINGS)
                lines.append(f"def {verb}_{one}_{rng.randint(0, 99)}(x):\n    return {other}.{verb}(x, '{one}')\n")
            files[f"pack/{thing}_{number}.py"] = "\n\n".join(lines)
        method = f"int {rng.choice(VERBS)}{number}() {{ return {rng.choice(THINGS)}.size(); }}"
        files["A.java"] = f"class A{number} {{ {method} }}"
        gitrepo.write(root / f"r{number}" / ".git", {"HEAD": "ref: refs/heads/main\n"})
        gitrepo.write(root / f"r{number}", files)
    return root


def add_function(root: Path) -> None:
    gitrepo.write(root, {"r0/new.py": "def open_every_file_at_once(x):\n    return file.open(x)\n"})


@contextmanager
def server(folder: Path, port: int) -> Iterator[None]:
    """Milvus Lite as a process that answers on loopback; killed at the end."""
    command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(folder), "--host", "127.0.0.1"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*command, "--port", str(port)], stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        wait_for_port(process, port)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = own_port()
    with server(tmp_path_factory.mktemp("lite"), port):
        yield f"milvus://127.0.0.1:{port}"


class Stored:
    """An index of some repositories, and a store that holds it."""

    def __init__(self, room: Path, address: str, seed: int = 1, repositories: int = 9) -> None:
        self.src, self.folder = sources(room / "src", seed, repositories), room / "index"
        self.target = Target.of(f"{address}/t{seed}_{random.Random(str(room)).randrange(10**9)}")
        Index.build(self.src, self.folder, config=LSA).close()
        self.sent = Publication(self.folder, self.target).finish()
        (self.collection,) = self.collections()

    def collections(self) -> list[str]:
        with connect(self.target) as client:
            return [name for name in client.list_collections() if name.startswith(f"{self.target.name}_3_")]

    def update(self, **options: bool) -> int:
        """Update the index and its store; how many documents were sent."""
        publication = Publication(self.folder, self.target)
        Index.update(self.folder, before_commit=publication.before_commit, **options)[0].close()
        return publication.finish()

    def ids(self) -> list[str]:
        """What the collection holds of the segments of the index, by ids."""
        with connect(self.target) as client, Index.load(self.folder) as index:
            ranges = " or ".join(key_range(segment.name) for segment in index.snapshot.segments)
            documents = client.query(self.collection, filter=ranges, output_fields=["id"], limit=10_000)
            return sorted(each["id"] for each in documents)

    def check(self) -> None:
        """The store holds the documents of the folder, and readers find what the folder finds."""
        with Index.load(self.folder) as ours, MilvusIndex.open(self.folder, self.target) as theirs:
            live = np.arange(len(ours.snapshot)) if ours.snapshot.live is None else np.flatnonzero(ours.snapshot.live)
            assert self.ids() == sorted(ours.documents.ids(live.tolist()))
            for text in QUERIES:
                assert theirs.search(text) == ours.search(text), text
                assert theirs.search(text, ranker="bm25") == ours.search(text, ranker="bm25")
                near, expected = (each.search(text, ranker="ncs_centred") for each in (theirs, ours))
                assert [hit.document.id for hit in near] == [hit.document.id for hit in expected]
                assert [hit.score for hit in near] == pytest.approx([hit.score for hit in expected], abs=1e-6)
            for some in FILTERS:
                hits = ours.search("open file size", **some)  # type: ignore[arg-type]
                assert theirs.search("open file size", **some) == hits  # type: ignore[arg-type]


@pytest.mark.slow
def test_hits_and_explanations_equal_those_of_the_folder_also_where_it_answers_alone(
    milvus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Stored(tmp_path, milvus)
    stored.check()
    with Index.load(stored.folder) as ours, MilvusIndex.open(stored.folder, stored.target) as theirs:
        assert stored.sent == len(ours)
        for text in QUERIES[:4]:
            expected, explanation = (index.results(text, explain=True).explanation for index in (ours, theirs))
            assert expected is not None
            assert explanation == expected
    with connect(stored.target) as client:
        expression = 'language == "java" and repository == "r3" and path == "A.java" and kind == "method"'
        (method,) = client.query(stored.collection, filter=expression, output_fields=["id", "payload"])
        assert (method["id"], method["payload"]["lines"]) == ("r3/A.java:1", [1, 1])
    monkeypatch.setattr(store, "MAX_LISTED", 3)  # filters leave more documents than a query can name
    monkeypatch.setattr(store, "MAX_ENTITIES", 20)
    stored.check()


@pytest.mark.slow
def test_after_random_edits_readers_find_what_the_folder_finds(milvus: str, tmp_path: Path) -> None:
    stored, rng = Stored(tmp_path, milvus, 1, 20), random.Random(1)
    for n in range(2):
        for _ in range(rng.randint(1, 4)):
            folder = stored.src / f"r{rng.randrange(20)}" / "pack"
            gitrepo.write(folder, {f"new_{n}.py": f"def {rng.choice(VERBS)}_new_{n}(x):\n    return file.{n}(x)\n"})
            if files := sorted(folder.glob("*_*.py")):
                rng.choice(files).unlink()
        stored.update()
        stored.check()


@pytest.mark.slow
def test_a_reader_keeps_its_snapshot_when_the_index_is_built_again_and_its_segment_goes_with_the_build_after(
    milvus: str, tmp_path: Path
) -> None:
    stored = Stored(tmp_path, milvus)
    with Index.load(stored.folder) as folder, MilvusIndex.open(stored.folder, stored.target) as before:
        expected = [folder.search(text) for text in QUERIES]
        (stored.src / "r4" / "new.py").write_text("def open_file(x):\n    return file.open(x)\n")  # no new word
        assert stored.update(compact=True) == stored.sent + 1
        stored.check()
        assert [before.search(text) for text in QUERIES] == expected
    stored.update(compact=True)
    stored.check()
    with connect(stored.target) as client:
        count = client.query(stored.collection, filter="key >= 0", output_fields=["count(*)"])
        assert count[0]["count(*)"] == 2 * (stored.sent + 1)


@pytest.mark.slow
def test_collections_of_other_dimensions_are_dropped_and_those_of_other_names_stay(milvus: str, tmp_path: Path) -> None:
    stored = Stored(tmp_path, milvus)
    Publication(stored.folder, Target.of(f"{milvus}/{stored.target.name}_3")).finish()  # of another name
    for dim in (8, 6):
        Index.build(stored.src, stored.folder, config=replace(LSA, lsa=replace(LSA.lsa, dim=dim))).close()
        Publication(stored.folder, stored.target).finish()
    names = {name.removeprefix(stored.target.name) for name in stored.collections()}
    assert names == {"_3_8_flat", "_3_6_flat", f"_3{stored.collection.removeprefix(stored.target.name)}"}


@pytest.mark.slow
def test_an_index_that_was_updated_without_its_store_is_refused_until_the_rest_is_sent(
    milvus: str, tmp_path: Path
) -> None:
    stored = Stored(tmp_path, milvus, repositories=30)
    add_function(stored.src)
    Index.update(stored.folder)[0].close()
    with pytest.raises(IndexVersion, match="holds another build than this folder; put the index there with: ncs build"):
        MilvusIndex.open(stored.folder, stored.target)
    assert Publication(stored.folder, stored.target).finish() == 1
    stored.check()


@pytest.mark.slow
def test_a_segment_of_another_index_with_the_same_number_is_replaced(milvus: str, tmp_path: Path) -> None:
    stored = Stored(tmp_path, milvus)
    shutil.rmtree(stored.folder)
    (stored.src / "r4" / "new.py").write_text("def open_file(x):\n    return file.open(x)\n")  # no new word
    Index.build(stored.src, stored.folder, config=LSA).close()
    assert Publication(stored.folder, stored.target).finish() == stored.sent + 1
    assert len(stored.collections()) == 1
    stored.check()


KILLED = """
import os, signal, sys
from pathlib import Path
from pymilvus import MilvusClient
from ncs.index import Index
from ncs.scale import milvus as store
from ncs.scale.milvus import Target

folder, target, name, number = Path(sys.argv[1]), Target.of(sys.argv[2]), sys.argv[3], int(sys.argv[4])
call, store.BATCH = getattr(MilvusClient, name), 5
def killed(self, *arguments, **options):
    global number
    number -= 1
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return call(self, *arguments, **options)
setattr(MilvusClient, name, killed)
publication = store.Publication(folder, target)
Index.update(folder, before_commit=publication.before_commit)[0].close()
publication.finish()
"""
"""An update that is killed by kill -9 before the call of that number and name."""


@pytest.mark.slow
@pytest.mark.parametrize(("call", "number"), [("upsert", 2), ("flush", 0), ("delete", 1)])
def test_an_update_that_is_killed_anywhere_is_finished_by_the_next(
    milvus: str, tmp_path: Path, call: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Stored(tmp_path, milvus, repositories=20)
    monkeypatch.setattr(store, "BATCH", 5)
    shutil.rmtree(stored.src / "r2")
    sources(tmp_path / "more", 7, 3)
    (tmp_path / "more" / "r1").rename(stored.src / "r2b")
    command = [sys.executable, "-c", KILLED, str(stored.folder), stored.target.text, call, str(number)]
    assert subprocess.run(command, check=False).returncode == -9
    with Index.load(stored.folder) as ours, MilvusIndex.open(stored.folder, stored.target) as theirs:
        assert [theirs.search(text) for text in QUERIES] == [ours.search(text) for text in QUERIES]
    stored.update()
    stored.check()
    assert stored.update() == 0


@pytest.mark.slow
def test_a_milvus_that_is_lost_is_waited_for_and_refused_in_one_line(tmp_path: Path) -> None:
    port = own_port()
    with server(tmp_path / "lite", port):
        stored = Stored(tmp_path, f"milvus://127.0.0.1:{port}")
        reader = MilvusIndex.open(stored.folder, stored.target)
        impatient = MilvusIndex.open(stored.folder, replace(stored.target, seconds=3))
        expected = reader.search("open a file")
    with impatient, pytest.raises(StoreLost):
        impatient.search("hide keyboard")
    with server(tmp_path / "lite", port), reader:
        assert reader.search("open a file") == expected


@pytest.mark.slow
def test_a_server_answers_from_the_store_before_and_after_an_update(milvus: str, tmp_path: Path) -> None:
    stored = Stored(tmp_path, milvus, repositories=30)

    def first_hit(url: str) -> str:
        answer = plain_get(f"{url}/api/search", params={"query": "open every file at once"})
        return str(answer.raise_for_status().json()["hits"][0]["id"])

    with served("-i", stored.folder, "--store", stored.target.text) as site:
        with Index.load(stored.folder) as index:
            assert first_hit(site.url) == index.search("open every file at once")[0].document.id
        add_function(stored.src)
        stored.update()
        until(lambda: first_hit(site.url) == "r0/new.py:1")


@pytest.mark.slow
def test_a_store_that_is_lost_does_not_undo_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    src, folder = sources(tmp_path / "src", 1, 20), tmp_path / "index"
    Index.build(src, folder, config=LSA).close()
    add_function(src)
    monkeypatch.setattr(store, "TIMEOUT", 1.0)
    publication = Publication(folder, Target.of("milvus://127.0.0.1:9/code"))
    Index.update(folder, before_commit=publication.before_commit)[0].close()
    with pytest.raises(StoreLost, match=r"no Milvus answers at milvus://127\.0\.0\.1:9/code; is it running"):
        publication.finish()
    with Index.load(folder) as index:
        assert index.search("open every file at once")[0].document.name == "open_every_file_at_once"
    with open_writer(folder), pytest.raises(IndexBusy):
        publication.finish()


@pytest.mark.slow
def test_a_missing_collection_and_a_missing_file_are_one_line_with_the_remedy(milvus: str, tmp_path: Path) -> None:
    Index.build(sources(tmp_path / "src", 1, 2), tmp_path / "index", config=LSA).close()
    with pytest.raises(IndexNotFound, match=r"put the index there with: ncs build --store milvus://127\.0\.0\.1:"):
        MilvusIndex.open(tmp_path / "index", Target.of(f"{milvus}/never_made"))
    with pytest.raises(IndexNotFound, match=r"there is no \./nothing\.db; put the index there with"):
        MilvusIndex.open(tmp_path / "index", Target.of("./nothing.db"))
    assert not Path("nothing.db").exists()


@pytest.mark.slow
def test_a_local_file_is_a_store_of_build_update_and_query(tmp_path: Path) -> None:
    src = sources(tmp_path / "src", 1, 30)
    built = ncs("build", "src", "--embeddings", "lsa", "--store", "./code.db", cwd=tmp_path)
    assert "documents sent to ./code.db" in built.stderr
    add_function(src)
    assert "1 document sent to ./code.db" in ncs("update", "--store", "./code.db", cwd=tmp_path).stderr
    commands = (["query", "open a file", "--json", *more] for more in ((), ("--store", "./code.db")))
    ours, theirs = (json.loads(ncs(*command, cwd=tmp_path).stdout)["hits"] for command in commands)
    assert theirs == ours
    assert len(ours) == 10


@pytest.mark.parametrize(
    "text", ["code", "milvus://host", "http://h/x", "milvus://h/a-b", "milvus://me:x@h/a", "milvus://h/a?x=1"]
)
def test_what_is_no_address_of_a_store_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        Target.of(text)
