"""`ncs serve` and `ncs mcp` over Milvus: what is published, killed or lost meanwhile never shows half an index."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from ncs.config import BuildConfig
from ncs.errors import StoreLost
from ncs.index import Index
from ncs.scale.milvus.collection import answering
from ncs.scale.milvus.index import MilvusIndex
from ncs.scale.milvus.publish import publish
from ncs.scale.milvus.target import Target, connected
from tests import gitrepo
from tests.agents import agent, ask
from tests.milvus_lite import server
from tests.serving import served
from tests.test_milvus import QUESTIONS, free_port, sources, there
from tests.waiting import LONG, until

LSA = BuildConfig(embeddings="lsa")
SMALL_BATCHES = """
import os, sys, time
from itertools import count
from pymilvus import MilvusClient
from ncs.cli import main
from ncs.milvus import publish

upsert, sent, held = MilvusClient.upsert, count(1), sys.argv.pop(1)
def stopping(self, *what, **more):
    seventh = next(sent) == 7
    while seventh and os.path.exists(held):
        time.sleep(0.05)
    return upsert(self, *what, **more)
publish.BATCH, MilvusClient.upsert = 10, stopping
main()
"""
"""`ncs` that sends ten documents at a time; having said twice what it begins, before the fifth it waits while a file is
there."""
Found = tuple[tuple[str, float], ...]


def found_by(index: Index) -> dict[str, Found]:
    """What an index finds for every question: ids and scores, rounded as answers are."""
    return {text: tuple((hit.document.id, round(hit.score, 6)) for hit in index.search(text)) for text in QUESTIONS}


def found_at(url: str, text: str) -> Found | str:
    """What a server finds; of a refusal its code."""
    answer = httpx.get(f"{url}/api/search", params={"query": text}, timeout=LONG)
    if answer.status_code != 200:
        return str(answer.json()["error"]["code"])
    return tuple((hit["id"], round(hit["score"], 6)) for hit in answer.json()["hits"])


@contextmanager
def asking(url: str) -> Iterator[dict[str, set[Found | str]]]:
    """Somebody asks all questions all the time meanwhile: what each of them got."""
    got: dict[str, set[Found | str]] = {text: set() for text in QUESTIONS}
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            for text in QUESTIONS:
                got[text].add(found_at(url, text))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield got
    finally:
        stop.set()
        thread.join()


def command(*arguments: str | Path, held: Path = Path("/nowhere")) -> subprocess.Popen[bytes]:
    """`ncs` with small batches; in the middle of them it waits while `held` is there."""
    return subprocess.Popen([sys.executable, "-c", SMALL_BATCHES, str(held), *map(str, arguments), "-q"])


def killed(process: subprocess.Popen[bytes], when: Callable[[], bool]) -> None:
    """End a process by kill -9, as soon as that is so."""
    until(lambda: when() or process.poll() is not None)
    assert process.poll() is None, "it ended before it could be killed"
    process.kill()
    process.wait()


@pytest.mark.slow
def test_updates_killed_while_they_read_and_while_they_publish_leave_the_index_that_answered(tmp_path: Path) -> None:
    """kill -9 in the middle of an update and of its publication, readers asking all the time."""
    port = free_port()
    store, index, src = f"milvus://127.0.0.1:{port}/code", tmp_path / "index", sources(tmp_path / "src", 1, 40)
    with server(tmp_path / "lite", port):
        Index.build(src, index, config=LSA).close()
        publish(index, Target.of(store))
        with Index.load(index) as standing:
            old = found_by(standing)
        gitrepo.write(src / "r1", {"new.py": "def open_a_file_anew(x):\n    return file.open(x)\n"})
        (src / "r2" / "A.java").unlink()
        for file in src.glob("r1[0-5]/pack/*.py"):  # the ids of its functions are others
            file.write_text("\n" + file.read_text())
        with served("-i", index, "--store", store, "--workers", "1") as site, asking(site.url) as got:
            killed(command("update", "-i", index, "--store", store), lambda: any(index.glob("data-*.part")))
            with connected(Target.of(store)) as client:
                before = answering(client, "code")
                assert before is not None
                documents = there(client, before)
                (tmp_path / "held").touch()
                update = command("update", "-i", index, "--store", store, held=tmp_path / "held")
                killed(update, lambda: there(client, before) >= documents + 40)
                assert answering(client, "code") == before
            count = {text: len(answers) for text, answers in got.items()}
            assert set(count.values()) == {1}, count
            assert command("update", "-i", index, "--store", store).wait() == 0
            with Index.load(index) as updated:
                new = found_by(updated)
            assert new["open a file"] != old["open a file"]
            until(lambda: all(new[text] in got[text] for text in QUESTIONS))
    for text in QUESTIONS:
        assert got[text] == {old[text], new[text]}


def begun(client: object, before: str | None) -> bool:
    """Whether another collection has some documents, not all."""
    names = [name for name in client.list_collections() if name.startswith("code_") and name != before]  # type: ignore[attr-defined]
    if not names:
        return False
    return there(client, names[0]) >= 40


@pytest.mark.slow
def test_where_milvus_is_lost_a_request_is_refused_in_one_line_and_answered_when_it_is_back(tmp_path: Path) -> None:
    port = free_port()
    store, index = f"milvus://127.0.0.1:{port}/code", tmp_path / "index"
    Index.build(sources(tmp_path / "src", 3, 5), index, config=LSA).close()
    with Index.load(index) as standing:
        old = found_by(standing)
    options = ("-i", index, "--store", store, "--workers", "0", "--time-limit", "4")
    with server(tmp_path / "lite", port) as first:
        publish(index, Target.of(store))
        with served(*options) as site:
            until(lambda: [found_at(site.url, text) for text in QUESTIONS[:3]] == [old[text] for text in QUESTIONS[:3]])
            first.kill()
            first.wait()
            assert {found_at(site.url, QUESTIONS[4]) for _ in range(3)} <= {"store_lost", "too_slow"}
            with server(tmp_path / "lite", port):
                until(lambda: found_at(site.url, QUESTIONS[5]) == old[QUESTIONS[5]])


@pytest.mark.slow
def test_a_publication_waits_for_a_milvus_that_comes_back_and_is_then_whole(tmp_path: Path) -> None:
    port = free_port()
    store, index = Target.of(f"milvus://127.0.0.1:{port}/code"), tmp_path / "index"
    Index.build(sources(tmp_path / "src", 4, 40), index, config=LSA).close()
    with server(tmp_path / "lite", port) as first:
        (tmp_path / "held").touch()
        process = command("build", "-i", index, "--store", store.shown, held=tmp_path / "held")
        with connected(store) as client:
            until(lambda: begun(client, None))
        first.kill()
        first.wait()
        assert process.poll() is None
        (tmp_path / "held").unlink()
    with server(tmp_path / "lite", port):
        assert process.wait() == 0
        with Index.load(index) as ours, MilvusIndex.open(index, store) as theirs:
            assert found_by(theirs) == found_by(ours)


@pytest.mark.slow
def test_agents_search_an_index_that_milvus_holds_and_another_build_of_it_is_refused(tmp_path: Path) -> None:
    port = free_port()
    store, index = f"milvus://127.0.0.1:{port}/code", tmp_path / "index"
    Index.build(sources(tmp_path / "src", 5, 5), index, config=LSA).close()
    shutil.copytree(index, tmp_path / "copy")

    async def run() -> list[str]:
        async with agent("-i", index, "--store", store, cwd=tmp_path) as client:
            return [(await ask(client, "search_code", query=text)).text for text in QUESTIONS[:3]]

    async def plain() -> list[str]:
        async with agent("-i", tmp_path / "copy", cwd=tmp_path) as client:
            return [(await ask(client, "search_code", query=text)).text for text in QUESTIONS[:3]]

    with server(tmp_path / "lite", port):
        publish(index, Target.of(store))
        assert asyncio.run(run()) == asyncio.run(plain())
        Index.build(sources(tmp_path / "other", 6, 5), index, config=LSA).close()
        assert "holds another build than this folder; put the index there with" in asyncio.run(run())[0]


def test_a_store_goes_with_one_index_only(tmp_path: Path) -> None:
    for name in ("a", "b"):
        Index.build(sources(tmp_path / name / "src", 1, 1), tmp_path / name / ".ncs", config=LSA).close()
    for arguments in (("serve", "-i", "a/.ncs", "-i", "b/.ncs"), ("mcp", "--root", "a"), ("mcp",)):
        process = subprocess.run(
            [sys.executable, "-m", "ncs.cli", *arguments, "--store", "./code.db"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )  # fmt: skip
        assert process.returncode == 2
        assert "a store holds one index" in process.stderr


def test_what_cannot_be_reached_is_told_by_its_address(tmp_path: Path) -> None:
    Index.build(sources(tmp_path / "src", 1, 1), tmp_path / "index", config=LSA).close()
    with pytest.raises(StoreLost, match=r"no Milvus answers at milvus://127\.0\.0\.1:9/code; is it running"):
        MilvusIndex.open(tmp_path / "index", Target.of("milvus://127.0.0.1:9/code"))
