"""An update sends what came and deletes what went; readers of before and after it find what their folder says."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ncs.build.delta import making, room_of
from ncs.storage.generations import write_lock

from ncs.config import BuildConfig
from ncs.errors import IndexBusy, IndexVersion, NcsError, StoreLost
from ncs.index import Index
from ncs.scale.milvus import difference as differing
from ncs.scale.milvus import publish as publishing
from ncs.scale.milvus.about import About
from ncs.scale.milvus.collection import answering, collections
from ncs.scale.milvus.index import MilvusIndex
from ncs.scale.milvus.publish import Publication, Published, publish
from ncs.scale.milvus.target import Target, connected
from tests.milvus_lite import server
from tests.test_delta import edit
from tests.test_milvus import QUESTIONS, free_port, sources, there

LSA = BuildConfig(embeddings="lsa")


@pytest.fixture(scope="module")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with server(tmp_path_factory.mktemp("lite"), port):
        yield f"milvus://127.0.0.1:{port}"


@pytest.fixture(params=["beside", "anew"])
def _made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates of small indexes, beside the base or with all made anew; whatever changes, nothing is sent twice."""
    if request.param == "beside":
        monkeypatch.setattr(making, "WHOLE", 0)
        monkeypatch.setattr(making, "SHARE", 1e9)
    monkeypatch.setattr(publishing, "DRIFT", 1e9)


class Kept:
    """An index of some repositories, and a store that holds it."""

    def __init__(self, room: Path, store: str, seed: int = 1, repositories: int = 9) -> None:
        self.src, self.folder = sources(room / "src", seed, repositories), room / "index"
        self.target = Target.of(f"{store}/t{seed}_{random.Random(str(room)).randrange(10**9)}")
        Index.build(self.src, self.folder, config=LSA).close()
        self.first = publish(self.folder, self.target)

    def update(self) -> Published:
        """The index and its store."""
        publication = Publication(self.folder, self.target)
        Index.update(self.folder, ready=publication.ready)[0].close()
        return publication.finish()

    def ids(self) -> list[str]:
        """What the collection holds, by its ids."""
        with connected(self.target) as client:
            name = answering(client, self.target.alias)
            client.load_collection(name)
            found = client.query(name, filter="key >= 0", output_fields=["id"], limit=10_000)
            return sorted(each["id"] for each in found)

    def equal(self) -> None:
        """The store holds the documents of the folder, and readers find what the folder says."""
        with Index.load(self.folder) as ours, MilvusIndex.open(self.folder, self.target) as theirs:
            assert self.ids() == sorted(ours.documents.ids(range(len(ours))))
            for text in QUESTIONS:
                assert theirs.search(text) == ours.search(text), text
                assert theirs.search(text, ranker="bm25") == ours.search(text, ranker="bm25")
            explained = (each.results("open a file", explain=True).explanation for each in (ours, theirs))
            assert next(explained) == next(explained)
            for meant in ({"language": "java"}, {"repository": "r[1-4]"}, {"path": "*file_*"}):
                assert theirs.search("open file", **meant) == ours.search("open file", **meant)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.usefixtures("_made")
def test_an_update_sends_what_changed_and_deletes_what_went(
    milvus: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kept = Kept(tmp_path, milvus)
    assert kept.first == Published(kept.first.collection, kept.first.written, 0, 0)
    assert kept.update() == Published(kept.first.collection, 0, 0, kept.first.written)
    some = kept.src / "r1" / "pack" / "file_1.py"
    code = some.read_text()

    (kept.src / "r0" / "new.py").write_text("def open_every_file_at_once(x):\n    return file.open(x)\n")
    (kept.src / "r2" / "A.java").unlink()  # two documents: the class and its method
    done = kept.update()
    assert (done.written, done.deleted, done.collection) == (1, 2, kept.first.collection)
    kept.equal()
    with Index.load(kept.folder) as index:
        assert bool(room_of(index.data)) == request.node.name.endswith("[beside]")
        assert index.search("open every file at once")[0].document.name == "open_every_file_at_once"

    some.write_text(code.replace("return ", "return novel or ", 1))  # a word more in one function
    done = kept.update()
    assert (done.written, done.deleted) == (1, 1)
    kept.equal()

    some.write_text("\n\n" + code)  # all lines are others: so are all ids
    with Index.load(kept.folder) as index:
        held = sum(id.startswith("r1/pack/file_1.py:") for id in index.documents.ids(range(len(index))))
    done = kept.update()
    assert (done.written, done.deleted) == (held, held)
    kept.equal()

    some.rename(some.with_name("renamed.py"))
    done = kept.update()
    assert (done.written, done.deleted) == (held, held)
    kept.equal()

    some.with_name("renamed.py").rename(some)
    some.write_text(code)
    done = kept.update()
    assert done.written == done.deleted == held
    kept.equal()


@pytest.mark.slow
@pytest.mark.usefixtures("_made")
def test_a_copy_that_becomes_an_original_is_sent(milvus: str, tmp_path: Path) -> None:
    kept = Kept(tmp_path, milvus)
    code = "def certain_thing(x):\n    return window.certain(x, 'thing')\n"
    (kept.src / "r3" / "a.py").write_text(code)
    (kept.src / "r5" / "b.py").write_text(code)
    assert kept.update().written == 1
    assert "r3/a.py:1" in kept.ids()
    assert "r5/b.py:1" not in kept.ids()
    (kept.src / "r3" / "a.py").unlink()
    done = kept.update()
    assert (done.written, done.deleted) == (1, 1)
    assert "r5/b.py:1" in kept.ids()
    kept.equal()


@pytest.mark.slow
@pytest.mark.usefixtures("_made")
@pytest.mark.parametrize("seed", range(3))
def test_after_random_edits_readers_find_what_the_folder_finds(milvus: str, tmp_path: Path, seed: int) -> None:
    kept, rng = Kept(tmp_path, milvus, seed), random.Random(seed)
    for _ in range(4):
        for _ in range(rng.randint(1, 5)):
            edit(kept.src, rng)
        assert kept.update().collection == kept.first.collection
        kept.equal()


@pytest.mark.slow
@pytest.mark.usefixtures("_made")
def test_readers_of_before_and_after_find_their_own_and_what_went_is_deleted_when_nobody_reads_it(
    milvus: str, tmp_path: Path
) -> None:
    kept = Kept(tmp_path, milvus)
    with Index.load(kept.folder) as standing:
        old = [standing.search(text) for text in QUESTIONS]
    for number in range(3):
        shutil.rmtree(kept.src / f"r{number}")
    (kept.src / "r4" / "new.py").write_text("def open_file(x):\n    return file.open(x)\n")
    meanwhile = list[bool]()
    with MilvusIndex.open(kept.folder, kept.target) as before:
        publication = Publication(kept.folder, kept.target)

        def ready(data: Path) -> None:
            publication.ready(data)
            meanwhile.append([before.search(text) for text in QUESTIONS] == old)
            with MilvusIndex.open(kept.folder, kept.target) as opened:
                meanwhile.append([opened.search(text) for text in QUESTIONS] == old)

        Index.update(kept.folder, ready=ready)[0].close()
        assert meanwhile == [True, True]
        with MilvusIndex.open(kept.folder, kept.target) as after, Index.load(kept.folder) as ours:
            assert [after.search(text) for text in QUESTIONS] == [ours.search(text) for text in QUESTIONS]
        done = publication.finish()
        assert done.deleted == 0
        assert [before.search(text) for text in QUESTIONS] == old
        with MilvusIndex.open(kept.folder, kept.target) as after, Index.load(kept.folder) as ours:
            assert [after.search(text) for text in QUESTIONS] == [ours.search(text) for text in QUESTIONS]
    gone = kept.update()
    assert gone.written == 0
    assert gone.deleted > 30
    kept.equal()


KILLED = """
import os, signal, sys
from pathlib import Path
from pymilvus import MilvusClient
from ncs.delta import making
from ncs.index import Index
from ncs.milvus import publish
from ncs.milvus.publish import Publication
from ncs.milvus.target import Target

folder, target, name, number = Path(sys.argv[1]), Target.of(sys.argv[2]), sys.argv[3], int(sys.argv[4])
call, publish.BATCH, publish.DRIFT = getattr(MilvusClient, name), 5, 1e9
making.WHOLE, making.SHARE = (0, 1e9) if sys.argv[5] == "beside" else (20_000, 0.02)
def killed(self, *what, **more):
    global number
    number -= 1
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return call(self, *what, **more)
setattr(MilvusClient, name, killed)
publication = Publication(folder, target)
Index.update(folder, ready=publication.ready)[0].close()
publication.finish()
"""
"""An update that is killed by kill -9 before the call of that number and name."""


@pytest.mark.slow
@pytest.mark.usefixtures("_made")
@pytest.mark.parametrize(("call", "number"), [("upsert", 2), ("flush", 0), ("delete", 0), ("delete", 1), ("upsert", 6)])
def test_an_update_that_is_killed_anywhere_is_finished_by_the_next(
    milvus: str, tmp_path: Path, call: str, number: int, request: pytest.FixtureRequest
) -> None:
    kept = Kept(tmp_path, milvus)
    before = len(kept.ids())
    shutil.rmtree(kept.src / "r2")
    sources(tmp_path / "more", 7, 3)
    (tmp_path / "more" / "r1").rename(kept.src / "r2b")
    how = "beside" if "beside" in request.node.name else "anew"
    command = [sys.executable, "-c", KILLED, str(kept.folder), kept.target.shown, call, str(number), how]
    assert subprocess.run(command, check=False).returncode == -9
    with Index.load(kept.folder) as ours, MilvusIndex.open(kept.folder, kept.target) as theirs:
        assert [theirs.search(text) for text in QUESTIONS] == [ours.search(text) for text in QUESTIONS]
    if call == "delete":
        assert len(kept.ids()) > before - 3
    kept.update()
    kept.equal()
    assert kept.update().written == 0


@pytest.mark.slow
def test_all_is_sent_anew_when_too_much_has_changed_and_when_words_have_other_vectors(
    milvus: str, tmp_path: Path
) -> None:
    kept = Kept(tmp_path, milvus)
    (kept.src / "r0" / "new.py").write_text("def open_every_file_at_once(x):\n    return file.open(x)\n")
    assert kept.update().collection == kept.first.collection
    for number in range(3):
        (kept.src / f"r{number}" / "A.java").unlink()
        shutil.rmtree(kept.src / f"r{number}" / "pack")
    drifted = kept.update()
    assert drifted.collection != kept.first.collection
    assert drifted.there == drifted.deleted == 0
    kept.equal()
    Index.update(kept.folder, retrain=True)[0].close()
    with pytest.raises(IndexVersion, match="another build"):
        MilvusIndex.open(kept.folder, kept.target)
    learnt = publish(kept.folder, kept.target)
    assert learnt.collection not in (drifted.collection, kept.first.collection)
    assert learnt.written == drifted.written
    kept.equal()
    with connected(kept.target) as client:
        assert collections(client, kept.target.alias) == [learnt.collection]


@pytest.mark.slow
def test_an_index_that_was_updated_without_its_store_is_refused_until_the_difference_is_sent(
    milvus: str, tmp_path: Path
) -> None:
    kept = Kept(tmp_path, milvus)
    (kept.src / "r0" / "new.py").write_text("def open_every_file_at_once(x):\n    return file.open(x)\n")
    Index.update(kept.folder)[0].close()
    with pytest.raises(IndexVersion, match="holds another build than this folder; put the index there with: ncs build"):
        MilvusIndex.open(kept.folder, kept.target)
    done = publish(kept.folder, kept.target)
    assert (done.written, done.deleted) == (1, 0)
    kept.equal()


@pytest.mark.slow
def test_what_a_store_has_lost_is_told_and_sent_again(milvus: str, tmp_path: Path) -> None:
    kept = Kept(tmp_path, milvus)
    with connected(kept.target) as client:
        key = client.query(kept.first.collection, filter="key >= 0", output_fields=["key"], limit=1)[0]["key"]
        client.delete(kept.first.collection, ids=[key])
    (kept.src / "r0" / "new.py").write_text("def open_every_file_at_once(x):\n    return file.open(x)\n")
    publication = Publication(kept.folder, kept.target)
    Index.update(kept.folder, ready=publication.ready)[0].close()
    publication.finish()
    kept.equal()


@pytest.mark.slow
def test_a_collection_of_the_format_before_is_told_in_one_line_and_replaced(milvus: str, tmp_path: Path) -> None:
    kept = Kept(tmp_path, milvus)
    from pymilvus import DataType

    with connected(kept.target) as client:
        schema = client.create_schema(auto_id=False)
        schema.add_field("row", DataType.INT64, is_primary=True)
        schema.add_field("dense", DataType.FLOAT_VECTOR, dim=4)
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_field("payload", DataType.JSON)
        indices = client.prepare_index_params()
        indices.add_index("dense", index_type="FLAT", metric_type="IP")
        indices.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        old = f"{kept.target.alias}_1_0123456789abcdef"
        client.create_collection(old, schema=schema, index_params=indices)
        client.drop_alias(kept.target.alias)
        client.drop_collection(kept.first.collection)
        client.create_alias(old, kept.target.alias)
    with pytest.raises(IndexVersion, match="holds a collection of another format; put the index there with: ncs build"):
        MilvusIndex.open(kept.folder, kept.target)
    assert publish(kept.folder, kept.target).there == 0
    kept.equal()
    with connected(kept.target) as client:
        assert old not in client.list_collections()


@pytest.mark.slow
def test_collections_of_another_alias_that_begins_alike_stay(milvus: str, tmp_path: Path) -> None:
    kept = Kept(tmp_path, milvus)
    other = Target.of(f"{milvus}/{kept.target.alias}_2")
    theirs = publish(kept.folder, other).collection
    Index.build(kept.src, kept.folder, config=BuildConfig(embeddings="lsa", texts=False)).close()
    shutil.rmtree(kept.src / "r1")
    Index.update(kept.folder, retrain=True)[0].close()
    assert publish(kept.folder, kept.target).collection != kept.first.collection
    with connected(kept.target) as client:
        assert theirs in client.list_collections()
        assert kept.first.collection not in client.list_collections()


@pytest.mark.slow
def test_many_keys_are_asked_for_in_parts(milvus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differing, "MOST", 8)
    monkeypatch.setattr(differing, "ASKED", 20)
    kept = Kept(tmp_path, milvus)
    with connected(kept.target) as client:
        client.load_collection(kept.first.collection)
        told = About.read(client, kept.first.collection)
        assert told is not None
        replace(told, sums=About.sums).write(client, kept.first.collection)
        assert there(client, kept.first.collection) == kept.first.written
    assert publish(kept.folder, kept.target) == Published(kept.first.collection, 0, 0, kept.first.written)


def test_a_store_that_is_lost_does_not_undo_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    src, folder = sources(tmp_path / "src", 1, 2), tmp_path / "index"
    Index.build(src, folder, config=LSA).close()
    (src / "r0" / "new.py").write_text("def open_every_file_at_once(x):\n    return file.open(x)\n")

    def lost(*_: object) -> None:
        raise StoreLost("it does not answer; try again")

    monkeypatch.setattr(publishing, "_bring", lost)
    publication = Publication(folder, replace(Target.of("milvus://127.0.0.1:9/code"), seconds=0))
    Index.update(folder, ready=publication.ready)[0].close()
    with pytest.raises(NcsError, match="does not answer"):
        publication.finish()
    with Index.load(folder) as index:
        assert index.search("open every file at once")[0].document.name == "open_every_file_at_once"
    with write_lock(folder), pytest.raises(IndexBusy):
        publication.finish()
