"""What Milvus serves ranks as the folder does; half of an index is never seen, whatever ends a publication."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from ncs.config import BuildConfig
from ncs.errors import BadInput, IndexNotFound, IndexVersion, NcsError
from ncs.index import Index
from ncs.scale.milvus import narrowing as narrowing_module
from ncs.scale.milvus import publish as publishing
from ncs.scale.milvus.about import About
from ncs.scale.milvus.collection import answering, by_document, counted, dimension
from ncs.scale.milvus.index import MilvusIndex
from ncs.scale.milvus.keys import Keys
from ncs.scale.milvus.narrowing import Narrowing
from ncs.scale.milvus.publish import publish
from ncs.scale.milvus.target import Target, connected
from ncs.search.bm25 import Bm25Ranker
from ncs.storage.file_roles import Places
from ncs.storage.postings import Postings
from ncs.text.vocabulary import Vocabulary
from ncs.types import Document
from tests import gitrepo
from tests.command import ncs
from tests.milvus_lite import server
from tests.serving import own_port

QUESTIONS = (
    "open a file", "hide keyboard", "parse record", "HideKeyboard", "encode the image buffer", "store token in cache",
    "read_socket", "clse header", "write", "nothing of this kind zzz", "fetch window record and hide it",
)  # fmt: skip
VERBS = ("read", "write", "open", "close", "hide", "show", "parse", "encode", "fetch", "store")
THINGS = ("file", "keyboard", "socket", "image", "record", "cache", "token", "window", "header", "buffer")


def sources(root: Path, seed: int, repositories: int = 9) -> Path:
    """Repositories of Python and Java functions that share words."""
    rng = random.Random(seed)
    for number in range(repositories):
        files = {}
        for name in range(3):
            lines = []
            for _ in range(4):
                verb, thing, other = rng.choice(VERBS), rng.choice(THINGS), rng.choice(THINGS)
                lines.append(f"def {verb}_{thing}_{rng.randint(0, 99)}(x):\n    # {other}\n")
                lines[-1] += f"    return {other}.{verb}(x, '{thing}')\n"
            files[f"pack/{THINGS[name]}_{number}.py"] = "\n\n".join(lines)
        files["A.java"] = (
            f"class A{number} {{ int {rng.choice(VERBS)}{number}() {{ return {rng.choice(THINGS)}.size(); }} }}"
        )
        gitrepo.write(root / f"r{number}" / ".git", {"HEAD": "ref: refs/heads/main\n"})
        gitrepo.write(root / f"r{number}", files)
    return root


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("milvus")
    Index.build(sources(room / "src", 1), room / "index", config=BuildConfig(embeddings="lsa")).close()
    return room / "index"


free_port = own_port


@pytest.fixture(scope="module")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with server(tmp_path_factory.mktemp("lite"), port):
        yield f"milvus://127.0.0.1:{port}"


def there(client: Any, name: str) -> int:
    """How many documents a collection has."""
    client.load_collection(name)
    return counted(client, name)


def target(milvus: str, name: str) -> Target:
    return Target.of(f"{milvus}/{name}")


@pytest.mark.slow
def test_hits_scores_and_reasons_equal_those_of_the_folder(built: Path, milvus: str) -> None:
    store = target(milvus, "same")
    assert publish(built, store).written == len(Index.load(built))
    with Index.load(built) as ours, MilvusIndex.open(built, store) as theirs:
        for text in QUESTIONS:
            expected, found = (each.results(text, explain=True) for each in (ours, theirs))
            assert found.hits == expected.hits, text
            assert found.explanation == expected.explanation
            assert theirs.search(text, ranker="bm25") == ours.search(text, ranker="bm25")
            assert leading(theirs, text) == leading(ours, text)
            near, wanted = (each.search(text, ranker="ncs_centred") for each in (theirs, ours))
            assert [hit.document.id for hit in near] == [hit.document.id for hit in wanted]
            assert [hit.score for hit in near] == pytest.approx([hit.score for hit in wanted], abs=1e-6)
        for meant in ({"language": "java"}, {"repository": "r[1-4]"}, {"path": "*file_*"}, {"kind": "function"}):
            expected_hits = ours.search("open file size", **meant)  # type: ignore[arg-type]
            assert expected_hits
            assert theirs.search("open file size", **meant) == expected_hits  # type: ignore[arg-type]


def leading(index: Index, text: str) -> list[int]:
    """The first candidates by words, as the default ranker asks for them: fewer than there are documents."""
    postings = cast("Bm25Ranker", index.ranker("bm25")).postings
    ids = [term.id for term in postings.terms(text.split()) if term.id is not None]
    rows: list[int] = postings.leading(ids, 5)[0].tolist()
    return rows


@pytest.mark.slow
def test_what_can_be_filtered_by_in_milvus_itself_is_what_the_documents_say(built: Path, milvus: str) -> None:
    store = target(milvus, "fields")
    done = publish(built, store)
    with Index.load(built) as index, connected(store) as client:
        asked = 'language == "java" and repository == "r3" and path == "A.java" and kind == "method"'
        found = client.query(done.collection, filter=asked, output_fields=["id", "payload"])
        assert [each["id"] for each in found] == ["r3/A.java:1"]
        assert found[0]["payload"]["lines"] == [1, 1]
        assert found[0]["payload"]["apis"] == ["size"]
        stored = client.query(done.collection, filter="key >= 0", output_fields=["id"], limit=1000)
        assert sorted(each["id"] for each in stored) == sorted(index.documents.ids(range(len(index))))


UNFINISHED = """
import sys, time
from itertools import count
from pathlib import Path
from pymilvus import MilvusClient
from ncs.milvus import publish
from ncs.milvus.target import Target

upsert, sent = MilvusClient.upsert, count()
def until_the_kill(self, *what, **more):
    return upsert(self, *what, **more) if next(sent) < 10 else time.sleep(3600)
publish.BATCH, MilvusClient.upsert = 10, until_the_kill
publish.publish(Path(sys.argv[1]), Target.of(sys.argv[2]))
"""
"""Says twice what it begins, sends eight batches of ten documents, and is to be killed then."""


@pytest.mark.slow
def test_a_publication_that_was_killed_is_gone_on_with_and_the_index_before_answers_until_then(
    built: Path, milvus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "BATCH", 10)
    store = target(milvus, "killed")
    publish(built, store)
    Index.build(sources(tmp_path / "src", 2, 60), tmp_path / "index", config=BuildConfig(embeddings="lsa")).close()
    process = subprocess.Popen([sys.executable, "-c", UNFINISHED, str(tmp_path / "index"), store.shown])
    with connected(store) as client:
        before = answering(client, store.alias)
        begun: list[str] = []
        while not begun or there(client, begun[0]) < 80:
            time.sleep(0.2)
            names = client.list_collections()
            begun = [name for name in names if name.startswith("killed_") and name != before]
            assert process.poll() is None, "it ended before it could be killed"
        process.kill()
        process.wait()
        assert answering(client, store.alias) == before
    with MilvusIndex.open(built, store) as standing:
        assert standing.search("open a file")
    with pytest.raises(IndexVersion, match="another build"):
        MilvusIndex.open(tmp_path / "index", store)
    done = publish(tmp_path / "index", store)
    assert done.there == 80
    assert done.deleted == 0
    with Index.load(tmp_path / "index") as ours, MilvusIndex.open(tmp_path / "index", store) as theirs:
        assert done.there + done.written == len(ours)
        assert [theirs.search(text) for text in QUESTIONS] == [ours.search(text) for text in QUESTIONS]
    assert publish(tmp_path / "index", store).written == 0


@pytest.mark.slow
def test_an_open_reader_keeps_its_collection_and_others_are_dropped(milvus: str, tmp_path: Path) -> None:
    store, folder, root = target(milvus, "swapped"), tmp_path / "index", tmp_path / "src"
    config = BuildConfig(embeddings="lsa")
    Index.build(sources(root, 5, 3), folder, config=config).close()
    first = publish(folder, store).collection
    with MilvusIndex.open(folder, store) as reader:
        before = reader.search("open a file")
        (root / "r0" / "new.py").write_text("def open_every_file_at_once(x):\n    return file.open(x)\n")
        (root / "r1" / "A.java").unlink()
        Index.build(root, folder, config=config).close()
        second = publish(folder, store).collection
        assert reader.search("open a file") == before
        with connected(store) as client:
            assert {first, second} <= set(client.list_collections())
            assert answering(client, "swapped") == second
    with MilvusIndex.open(folder, store) as reader:
        assert reader.search("open every file at once")[0].document.name == "open_every_file_at_once"
        assert not reader.search("size", language="java", repository="r1")
    (root / "r0" / "new.py").unlink()
    Index.build(root, folder, config=config).close()
    third = publish(folder, store).collection
    with connected(store) as client:
        left = {name for name in client.list_collections() if name.startswith("swapped_")}
        assert answering(client, "swapped") == third
    assert left == {third}


@pytest.mark.slow
def test_a_server_that_was_killed_and_started_again_answers_the_next_question(built: Path, tmp_path: Path) -> None:
    port = free_port()
    store = Target.of(f"milvus://127.0.0.1:{port}/code")
    with server(tmp_path / "lite", port):
        publish(built, store)
        reader = MilvusIndex.open(built, store)
        before = reader.search("open a file")
    with server(tmp_path / "lite", port), reader:
        assert reader.search("open a file") == before


@pytest.mark.slow
def test_another_format_a_missing_collection_and_no_server_are_one_line_with_the_remedy(
    built: Path, milvus: str
) -> None:
    store = target(milvus, "other")
    with pytest.raises(IndexNotFound, match=r"put the index there with: ncs build --store milvus://127\.0\.0\.1:"):
        MilvusIndex.open(built, store)
    name = publish(built, store).collection
    with connected(store) as client:
        told = About.read(client, name)
        assert told is not None
        replace(told, format=99).write(client, name)
    with pytest.raises(IndexVersion, match="another format"):
        MilvusIndex.open(built, store)
    with pytest.raises(IndexNotFound, match=r"there is no \./nothing\.db; put the index there with"):
        MilvusIndex.open(built, Target.of("./nothing.db"))
    assert not Path("nothing.db").exists()
    with pytest.raises(NcsError, match=r"no Milvus answers at milvus://127\.0\.0\.1:9/code"):
        MilvusIndex.open(built, Target.of("milvus://127.0.0.1:9/code"))


@pytest.mark.slow
def test_a_local_file_is_a_store_of_build_and_query(built: Path, tmp_path: Path) -> None:
    store, index = ("--store", "./code.db"), ("-i", str(built))
    told = ncs("build", *index, *store, cwd=tmp_path)
    assert "documents sent to ./code.db; ask them with: ncs query --store ./code.db" in told.stderr
    answers = [ncs("query", "open a file", *index, "--json", *more, cwd=tmp_path).stdout for more in ((), store)]
    plain, served = (json.loads(answer)["hits"] for answer in answers)
    assert len(plain) == 10
    assert served == plain


def test_postings_turned_round_are_each_documents_own() -> None:
    stems = Vocabulary.of(["hide", "open", "show"])
    rows, impacts = np.array([0, 2, 1, 2], np.int32), np.array([0.5, 0.25, 2.0, 1.0], np.float32)
    postings = Postings(stems, np.array([0, 2, 2, 4]), rows, impacts, np.ones(3, np.float32))
    hide, show = dimension("hide"), dimension("show")
    assert list(by_document(postings, np.arange(3))) == [{hide: 0.5}, {show: 2.0}, {hide: 0.25, show: 1.0}]
    assert list(by_document(postings, np.array([2, 1]))) == [{hide: 0.25, show: 1.0}, {show: 2.0}]
    assert list(by_document(postings, np.arange(0))) == []


def test_a_filter_names_documents_or_what_they_have_in_common(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys.kept(Index.load(built).data)
    with Index.load(built) as index:
        narrowing = Narrowing(keys, index.documents, Places.load(index.data))
        mask = index.documents.mask(language="java", repository="r[1-4]")
        assert mask is not None
        assert narrowing.said(None) == "key >= 0"
        assert narrowing.said(mask) == f"key in {keys.of(np.flatnonzero(mask)).tolist()}"
        monkeypatch.setattr(narrowing_module, "LISTED", 3)
        java = 'key >= 0 and language in ["java"] and kind in ["class", "method"]'
        named = '["r1", "r2", "r3", "r4"]'
        assert narrowing.said(mask) == f"{java} and repository in {named}"
        monkeypatch.setattr(narrowing_module, "NAMED", 3)
        assert narrowing.said(mask) == java
        assert narrowing.said(np.ones(len(index), np.bool_)) == "key >= 0"


def test_keys_are_found_again_and_do_not_hang_on_other_documents(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "index")
    with Index.load(tmp_path / "index") as index:
        keys, rows = Keys.kept(index.data), np.arange(len(index))
        assert len(np.unique(keys.of(rows))) == len(index)
        assert keys.rows(keys.of(rows)).tolist() == rows.tolist()
        assert keys.rows(keys.of(rows) + 1).tolist() == [-1] * len(index)
        known = dict(zip(index.documents.ids(rows.tolist()), keys.of(rows).tolist(), strict=True))
    root = sources(tmp_path / "src", 1)
    (root / "r0" / "pack" / "aaa.py").write_text("def entirely_new(x):\n    return novel(x)\n")
    with Index.build(root, tmp_path / "other", config=BuildConfig(embeddings="lsa")) as index:
        keys, rows = Keys.kept(index.data), np.arange(len(index))
        others = dict(zip(index.documents.ids(rows.tolist()), keys.of(rows).tolist(), strict=True))
    assert {id: key for id, key in others.items() if id in known} == known
    assert len(others) == len(known) + 1


def test_documents_that_are_equal_in_all_have_keys_of_their_own(tmp_path: Path) -> None:
    one = Document("same", "r", "a.py", 1, 2, "python", "function", "f", "f", {"name": ("f",)}, "def f(): pass")
    with Index.of([one, one, one], tmp_path, config=BuildConfig(embeddings="lsa", deduplicate=False)) as index:
        assert len(np.unique(Keys.kept(index.data).of(np.arange(3)))) == 3


@pytest.mark.parametrize(
    "text", ["code", "milvus://host", "http://h/x", "milvus://h/a-b", "milvus://me:x@h/a", "milvus://h/a?x=1"]
)
def test_what_is_no_address_of_a_store_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        Target.of(text)
