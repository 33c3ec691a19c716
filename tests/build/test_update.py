"""After an update all that a build would index is found, nothing that is gone, and old readers are undisturbed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar

import pytest

from ncs.answer import Answer, ask
from ncs.build import file_cache, pipeline
from ncs.build import update as updating
from ncs.build.file_cache import FileCache
from ncs.build.pipeline import PENDING_EMBEDDINGS
from ncs.build.request import request_of
from ncs.build.watch import watch
from ncs.errors import BadInput, IndexDamaged, IndexNotFound, SourceError
from ncs.index import Index
from ncs.sources import Skipped
from ncs.storage.commit import IndexWriter, open_writer
from ncs.storage.snapshot import PENDING, open_snapshot, read_description
from ncs.types import Location
from tests import corpus, gitrepo
from tests.command import invoke
from tests.corpus import FASTTEXT, QUICK

T = TypeVar("T")
BELIEVED = -(10**18)
"""For RACY: stamps are believed however young they are."""
VERBS = ("read", "write", "open", "close", "hide", "show", "parse", "encode", "fetch", "store")
THINGS = ("file", "keyboard", "socket", "image", "record", "cache", "token", "window", "header", "buffer")


def source(rng: random.Random) -> bytes:
    """A few Python functions; bodies come again in other files, under other comments."""
    parts = []
    for _ in range(rng.randint(0, 4)):
        verb, thing = rng.choice(VERBS), rng.choice(THINGS)
        comment = f"    # {rng.choice(THINGS)}\n" if rng.random() < 0.5 else ""
        parts.append(f"def {verb}_{thing}(x):\n{comment}    return {thing}.{verb}(x, '{verb}')\n")
    if rng.random() < 0.1:
        parts.append("def broken(:\n")
    return "\n\n".join(parts).encode()


def edit(root: Path, rng: random.Random) -> None:
    """One thing that people do to files."""
    files = sorted(path for path in root.rglob("*.py"))
    one, other = rng.choice(files), rng.choice(files)
    fresh = root / rng.choice(("app", "lib/deep", "zoo")) / f"{rng.choice('abcxyz')}{rng.randint(0, 99)}.py"
    action = rng.choice(("write", "write", "add", "add", "remove", "rename", "swap", "touch", "copy"))
    fresh.parent.mkdir(parents=True, exist_ok=True)
    if action == "write":
        one.write_bytes(source(rng))
    elif action == "add":
        fresh.write_bytes(source(rng))
    elif action == "remove" and len(files) > 3:
        one.unlink()
    elif action == "rename":
        one.rename(fresh)
    elif action == "swap":
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)
    elif action == "touch":
        os.utime(one)
    elif action == "copy":
        shutil.copy2(one, fresh)


def places(index: Index) -> dict[Location, str]:
    """Every place that some hit would name, with the code that stands there."""
    documents = index.documents.documents(index.documents.rows().tolist())
    return {place: _plain(d.code) for d in documents for place in (d.location, *d.copies)}


def _plain(code: str) -> str:
    """Copies may differ in comments."""
    return "\n".join(line for line in code.splitlines() if not line.strip().startswith("#"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rng, root = random.Random(7), tmp_path / "src"
    for number in range(40):
        path = root / rng.choice(("app", "lib/deep", "zoo")) / f"m{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source(rng))
    (root / "app" / "sure.py").write_bytes(b"def sure(x):\n    return certain(x)\n")
    gitrepo.git(root / "app", "init", "-q")
    return root


def assert_same_content(folder: Path, root: Path, fresh: Path) -> None:
    with Index.load(folder) as updated, Index.build(root, fresh, config=QUICK, workers=1) as built:
        assert places(updated) == places(built)
        counts, fresh_counts = updated.description.counts, built.description.counts
        for key in ("files", "source_bytes", "broken", "broken_files"):
            assert counts[key] == fresh_counts[key], key
        assert sorted(counts["repositories"]) == sorted(fresh_counts["repositories"])
        assert len(updated) + counts["copies"] == len(built) + fresh_counts["copies"]
        for name in sorted({place.qualified_name for place in places(built)})[:10]:
            assert updated.search(name, 3)[0].document.qualified_name == name
    shutil.rmtree(fresh)


def assert_same_files(one: Index, other: Index) -> None:
    """The same places and, byte for byte, all that does not tell the time or how rows were batched."""
    (segment,), (fresh,) = one.snapshot.segments, other.snapshot.segments
    for old, new in ((segment.path, fresh.path), (one.snapshot.statistics, other.snapshot.statistics)):
        files = sorted(path.relative_to(new) for path in new.rglob("*") if path.is_file())
        assert files == sorted(path.relative_to(old) for path in old.rglob("*") if path.is_file())
        for name in files:
            if name.parts[0] not in ("documents.sqlite", "files"):
                assert (old / name).read_bytes() == (new / name).read_bytes(), name
    assert places(one) == places(other)


@pytest.mark.parametrize(
    ("seed", "steps", "named"),
    [(0, 2, False), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 5, False), (5, 4, True)))],
)
def test_after_any_edits_an_update_of_all_or_of_named_paths_holds_what_a_build_would_hold(
    tmp_path: Path, root: Path, seed: int, steps: int, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "COMPACT_SHARE", 100.0)
    monkeypatch.setattr(updating, "MAX_SEGMENTS", 4)
    rng = random.Random(seed)
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    for step in range(steps):
        if rng.random() < 0.5 and not named:
            monkeypatch.setattr(file_cache, "RACY", BELIEVED)
        before = {path: path.read_bytes() for path in root.rglob("*.py")}
        for _ in range(1 if named else rng.randint(1, 4)):
            edit(root, rng)
        after = {path: path.read_bytes() for path in root.rglob("*.py")}
        paths = [path for path in {*before, *after} if before.get(path) != after.get(path)]
        Index.update(tmp_path / "idx", workers=1, paths=paths if named else None)[0].close()
        assert_same_content(tmp_path / "idx", root, tmp_path / f"fresh{step}")
    assert 2 <= len(read_description(tmp_path / "idx").segments) <= 4


def test_what_updates_have_added_is_merged_and_edited_again_and_once_it_is_much_a_build_is_due(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def segments() -> int:
        Index.update(folder, workers=1)[0].close()
        return len(read_description(folder).segments)

    folder = tmp_path / "idx"
    Index.build(root, folder, config=QUICK, workers=1).close()
    monkeypatch.setattr(updating, "COMPACT_SHARE", 0)
    monkeypatch.setattr(updating, "MAX_SEGMENTS", 2)
    for number in range(3):
        (root / "app" / "sure.py").write_text(f"def sure_{number}(x):\n    return certain(x)\n")
        assert segments() == 2
    assert_same_content(folder, root, tmp_path / "fresh")
    for number, expected in ((1, 2), (2, 1)):
        code = "".join(f"def more_{number}_{i}(x):\n    return certain(x) + {i}\n" for i in range(35))
        (root / "app" / f"more{number}.py").write_text(code)
        assert segments() == expected


def test_an_update_shows_new_documents_and_no_dead_ones_and_leaves_old_scores_and_old_readers(
    tmp_path: Path, root: Path
) -> None:
    (root / "app" / "late.py").write_text("def late_one(x):\n    return leave(x)\n")
    folder = tmp_path / "idx"
    with Index.build(root, folder, config=QUICK, workers=1) as reader:
        expected = places(reader)
        scores = {hit.document.id: hit.score for hit in reader.search("certain", 5, ranker="bm25")}
        (root / "app" / "late.py").unlink()
        (root / "lib" / "new.py").write_text("def frobnicate(x):\n    return certain(zibble(x))\n")
        with Index.update(folder, workers=1)[0] as updated:
            assert len(updated.snapshot.segments) == 2
            hits = {hit.document.id: hit.score for hit in updated.search("certain", 5, ranker="bm25")}
            assert len(hits) == len(scores) + 1
            assert {id: hits[id] for id in scores} == scores  # until compaction
            for ranker in ("bm25", "hybrid", "rrf"):
                assert updated.search("frobnicate zibble", 1, ranker=ranker)[0].document.name == "frobnicate", ranker
            assert updated.unknown_words("frobnicate") == {}
            assert [hit.document.path for hit in updated.search("certain", path="new.py")] == ["lib/new.py"]
            assert updated.search("leave", path="late.py") == []
            assert updated.documents.row_of("src/app/late.py:1") is None
        rng = random.Random(3)
        for number in range(200):  # so much that the update compacts
            (root / "zoo" / f"more{number}.py").write_bytes(source(rng))
        Index.update(folder, workers=1)[0].close()
        description = read_description(folder)
        assert (len(description.segments), description.tombstones) == (1, None)
        assert reader.search("leave", 1)[0].document.name == "late_one"
        assert places(reader) == expected


def test_a_snapshot_that_is_held_can_be_opened_again_whatever_was_committed(tmp_path: Path, root: Path) -> None:
    folder, late = tmp_path / "idx", root / "app" / "late.py"
    Index.build(root, folder, config=QUICK, workers=1).close()
    for number in range(2):
        late.write_text(f"def late_{number}(x):\n    return leave(x)\n")
        Index.update(folder, workers=1)[0].close()
    with Index.load(folder) as reader:
        held = reader.description
        reader.snapshot.keep_tombstones()
        assert held.tombstones
        late.unlink()
        Index.update(folder, workers=1)[0].close()
        with open_snapshot(folder, Index, held=held) as again:
            assert places(again) == places(reader)
            assert again.search("leave", 1)[0].document.name == "late_1"
    Index.update(folder, compact=True, workers=1)[0].close()
    with pytest.raises(IndexDamaged):
        open_snapshot(folder, Index, held=held)
    assert list((folder / "tombstones").iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limit")
def test_an_index_of_many_segments_opens_few_files(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "idx"
    Index.build(root, folder, config=QUICK, workers=1).close()
    while len(read_description(folder).segments) < updating.MAX_SEGMENTS:
        (root / "app" / f"late{read_description(folder).number}.py").write_text("def late(x):\n    return leave(x)\n")
        Index.update(folder, workers=1)[0].close()
    limit = "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (64, 64)); from ncs.cli.main import main; main()"
    command = [sys.executable, "-c", limit, "query", "-i", str(folder), "leave"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, "late" in run.stdout) == (0, True), run.stderr


def test_a_function_in_many_files_is_one_hit_with_the_comments_of_the_first_that_is_left(tmp_path: Path) -> None:
    code = "def shared_thing(path, mode):\n  # {}\n  with open_file(path, mode) as handle:\n    return handle.read()\n"
    root = gitrepo.write(tmp_path / "src", {f"{name}.py": code.format(f"xq{name}") for name in "abc"})
    gitrepo.write(root, {f"z{n}.py": f"def thing_{n}(x):\n    return y{n}(x)\n" for n in range(30)})
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    (root / "a.py").unlink()
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert len(index.snapshot.segments) == 2
        (document,) = [hit.document for hit in index.search("shared_thing", 1)]
        assert (document.path, [copy.path for copy in document.copies]) == ("b.py", ["c.py"])
        assert document.words["comments"] == ("xqb",)
    (root / "c.py").write_text("def another_thing(x):\n    return x\n")
    (root / "d.py").write_text(code.format("xqd"))
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert len(index.snapshot.segments) == 3
        hit, *others = index.search("shared thing open file", 5)
        assert (hit.document.path, hit.document.copies) == ("b.py", ())
        assert "shared_thing" not in [hit.document.name for hit in others]


@pytest.mark.parametrize("reason", ["no code is stored", "another version of the extractor"])
def test_an_update_builds_anew_where_unchanged_files_cannot_be_reused(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    config = replace(QUICK, store_code=reason != "no code is stored")
    Index.build(root, tmp_path / "idx", config=config, workers=1).close()
    if config.store_code:
        for module in (file_cache, pipeline):
            monkeypatch.setattr(module, "made_by", lambda: "a later version")
    (root / "app" / "late.py").write_text("def late_thing(x):\n    return certain(x)\n")
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert len(index.snapshot.segments) == 1
        assert index.search("late thing", 1)[0].document.name == "late_thing"
        assert (index.description.counts["sources"]["made_by"] == "a later version") == config.store_code
        number = index.description.number
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert (index.description.number == number) == config.store_code


def test_what_cannot_be_updated_is_refused_with_a_remedy(tmp_path: Path) -> None:
    root = corpus.write(tmp_path / "src")
    with Index.build(root, tmp_path / "idx", config=QUICK) as index:
        documents = index.documents.documents(range(len(index)))
    Index.of(documents, tmp_path / "of", config=QUICK).close()
    ended = Event()
    ended.set()
    for update in (Index.update, partial(watch, say=print, stop=ended)):
        with pytest.raises(IndexNotFound, match="ncs build"):
            update(tmp_path / "none")
        with pytest.raises(BadInput, match="does not name its source files"):
            update(tmp_path / "of")
    shutil.rmtree(root)
    with pytest.raises(SourceError, match="there is no"):
        Index.update(tmp_path / "idx")
    Index.load(tmp_path / "idx").close()


def test_files_with_the_same_stamp_are_not_read_and_an_update_that_finds_nothing_new_commits_nothing(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.build(root, tmp_path / "idx", config=QUICK, workers=1) as index:
        request, number = request_of(index.description, index.folder), index.description.number
        for racy, expected in ((file_cache.RACY, False), (BELIEVED, True)):
            monkeypatch.setattr(file_cache, "RACY", racy)
            cache = FileCache(index.snapshot)
            assert {file.unchanged for file in request.files(Skipped(), cache.is_unchanged)} == {expected}
            cache.close()
    os.utime(root / "app" / "sure.py", ns=(1, 1))  # another stamp, the same content
    updated, changes = Index.update(tmp_path / "idx", workers=1)
    with updated:
        assert not changes
        assert changes.unchanged == updated.description.counts["files"]
        assert updated.description.number == number


def test_branches_commits_of_bare_repositories_and_archives_are_followed(tmp_path: Path) -> None:
    root = tmp_path / "repos"

    def function(name: str) -> str:
        return f"def {name}(x):\n    return go(x, '{name}')\n"

    def pack(name: str) -> None:
        files = {"old/e.py": function(name), "old/f.py": function("zeta")}
        (root / "old.zip").write_bytes(gitrepo.zipped(files))

    work = gitrepo.repository(root / "work", {"a.py": function("alpha"), "b.py": function("beta")})
    gitrepo.git(work, "switch", "-q", "-c", "other")
    gitrepo.commit(work, {"a.py": function("gamma")})
    origin = gitrepo.repository(tmp_path / "origin", {"c.py": function("delta"), "d.py": function("same")})
    gitrepo.git(root, "clone", "-q", "--bare", str(origin), str(root / "bare.git"))
    pack("eta")
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    gitrepo.git(work, "switch", "-q", "main")
    gitrepo.commit(origin, {"c.py": function("epsilon")})
    gitrepo.git(root / "bare.git", "fetch", "-q", str(origin), "main:main")
    pack("theta")
    updated, changes = Index.update(tmp_path / "idx", workers=1)
    assert sorted(changes.changed) == ["bare/c.py", "old/e.py", "work/a.py"]
    assert (changes.added, changes.removed, changes.unchanged) == ((), (), 3)
    with updated:
        names = {place.qualified_name for place in places(updated)}
    assert names == {"alpha", "beta", "epsilon", "same", "theta", "zeta"}


def test_an_update_that_another_one_overtook_starts_again(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_later(folder: Path) -> AbstractContextManager[IndexWriter]:
        monkeypatch.setattr(updating, "open_writer", open_writer)
        (root / "zoo" / "second.py").write_text("def second_one(x):\n    return certain(x)\n")
        Index.update(folder, workers=1, paths=[root / "zoo" / "second.py"])[0].close()
        return open_writer(folder)

    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    (root / "zoo" / "first.py").write_text("def first_one(x):\n    return certain(x)\n")
    monkeypatch.setattr(updating, "open_writer", open_later)
    with Index.update(tmp_path / "idx", workers=1, paths=[root / "zoo" / "first.py"])[0] as index:
        assert {"first_one", "second_one"} <= {place.qualified_name for place in places(index)}


def test_a_repository_with_another_name_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_cache, "RACY", BELIEVED)
    roots = [
        gitrepo.write(tmp_path / name / "lib", {f"{name}.py": f"def {name}(x):\n    return go(x)\n"}) for name in "ab"
    ]
    with Index.build(roots, tmp_path / "idx", config=QUICK) as index:
        assert {place.repository for place in places(index)} == {"lib", "b/lib"}
    with Index.build(roots[1:], tmp_path / "idx", config=QUICK) as index:
        assert {place.repository for place in places(index)} == {"lib"}


def test_files_are_not_taken_over_from_an_index_of_other_settings(tmp_path: Path) -> None:
    root, config = corpus.write(tmp_path / "repos"), replace(QUICK, deduplicate=False)
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    with (
        Index.build(root, tmp_path / "idx", config=config) as again,
        Index.build(root, tmp_path / "fresh", config=config) as fresh,
    ):
        assert_same_files(again, fresh)


def test_words_have_vectors_once_they_are_learned_again_and_then_the_index_equals_a_build_byte_for_byte(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_cache, "RACY", BELIEVED)
    Index.build(root, tmp_path / "idx", config=FASTTEXT, workers=1).close()
    (root / "app" / "new.py").write_text("def zugzwang(x):\n    return zugzwang(zugzwang(x))\n")
    with Index.update(tmp_path / "idx", workers=1)[0] as updated:
        assert updated.neighbors("zugzwang") is None
    with Index.update(tmp_path / "idx", workers=1, compact=True)[0] as compacted:
        training = compacted.description.counts["training"]
        assert training["without_vector_now"] > training["without_vector"]
    for name in ("app/between.py", "zoo/last.py"):  # others are taken over between them
        (root / name).write_text(f"def {name[4:-3]}(x):\n    return lemon(x)\n")
    with (
        Index.update(tmp_path / "idx", workers=1, retrain=True)[0] as retrained,
        Index.build(root, tmp_path / "fresh", config=FASTTEXT) as built,
    ):
        assert retrained.neighbors("zugzwang")
        assert_same_files(retrained, built)


def test_the_command_says_what_changed(tmp_path: Path) -> None:
    root = gitrepo.write(tmp_path / "src", {"a.py": "def alpha(x):\n    return go(x)\n", "b.py": "def beta(): pass\n"})
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    (root / "b.py").unlink()
    (root / "a.py").write_text("def gamma(x):\n    return leave(x)\n")
    (root / "c.py").write_text("def delta(x):\n    return arrive(x)\n")
    said = invoke("update", "-i", "idx", "-v", cwd=tmp_path).stderr
    assert "1 new, 1 changed, 1 removed, 0 files unchanged; 2 functions" in said
    assert {"new: src/c.py", "changed: src/a.py", "removed: src/b.py"} <= set(said.splitlines())
    assert "nothing changed, 2 files unchanged" in invoke("update", "-i", "idx", cwd=tmp_path).stderr


@pytest.mark.parametrize("ends", [None, *(pytest.param(each, marks=pytest.mark.slow) for each in ("build", "update"))])
def test_a_first_build_answers_by_words_while_vectors_are_learned_and_is_finished_by_the_next_if_it_ends_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str | None
) -> None:
    monkeypatch.setattr(pipeline, "MIN_EARLY", 1)
    root, folder = corpus.write(tmp_path / "repos"), tmp_path / "idx"
    answers: list[Answer] = []

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        if stage == "training embeddings":
            with Index.load(folder, verify=True) as unfinished:
                answers.append(ask(unfinished, "hide soft keyboard", ranker="hybrid"))
                assert unfinished.search("online")[0].document.name == "isConnected"  # as public code says
            if ends:
                raise KeyboardInterrupt
        yield from items

    with pytest.raises(KeyboardInterrupt) if ends else nullcontext():
        Index.build(root, folder, config=FASTTEXT, track=track).close()
    (answer,) = answers
    assert answer["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
    assert answer["notes"] == [PENDING_EMBEDDINGS]
    if ends == "build":
        Index.build(root, folder, config=FASTTEXT).close()
    elif ends == "update":
        updated, changes = Index.update(folder)
        updated.close()
        assert not changes
    with Index.load(folder) as index, Index.build(root, tmp_path / "fresh", config=FASTTEXT) as fresh:
        assert ask(index, "hide soft keyboard", ranker="hybrid")["notes"] == []
        assert len(list((folder / "segments").iterdir())) == 1
        assert PENDING not in index.description.counts
        assert_same_files(index, fresh)
