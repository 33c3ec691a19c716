"""After an update all that a build would index is found, nothing that is gone, and old readers are undisturbed."""

from __future__ import annotations

import os
import random
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from ncs.answer import Answer, ask
from ncs.build import file_cache, pipeline
from ncs.build import update as updating
from ncs.build.file_cache import FileCache
from ncs.build.pipeline import PENDING_EMBEDDINGS
from ncs.build.request import request_of
from ncs.config import BuildConfig, FastTextConfig
from ncs.errors import BadInput, IndexNotFound, SourceError
from ncs.index import Index
from ncs.sources import Skipped
from ncs.storage.snapshot import PENDING, read_description
from ncs.types import Location
from tests import corpus, gitrepo
from tests.command import ncs

T = TypeVar("T")
QUICK = BuildConfig(fasttext=FastTextConfig(dim=8, epochs=1, least_words=1, min_count=1))
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


def edit(root: Path, rng: random.Random) -> Path:
    """One thing that people do to files; a path that it concerned."""
    files = sorted(path for path in root.rglob("*.py"))
    one, other = rng.choice(files), rng.choice(files)
    fresh = root / rng.choice(("app", "lib/deep", "zoo")) / f"{rng.choice('abcxyz')}{rng.randint(0, 99)}.py"
    action = rng.choice(("write", "write", "add", "add", "remove", "rename", "swap", "touch", "copy"))
    fresh.parent.mkdir(parents=True, exist_ok=True)
    if action == "write":
        one.write_bytes(source(rng))
    elif action == "add":
        fresh.write_bytes(source(rng))
        return fresh
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
    return root


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
        for key in ("files", "source_bytes", "broken", "broken_files", "repositories"):
            if key != "repositories":
                assert updated.description.counts[key] == built.description.counts[key], key
        assert sorted(updated.description.counts["repositories"]) == sorted(built.description.counts["repositories"])
        assert len(updated) + updated.description.counts["copies"] == len(built) + built.description.counts["copies"]
        words = {name for place in places(built) for name in [place.qualified_name]}
        for name in sorted(words)[:10]:
            hits = updated.search(name, 3)
            assert hits, name
            assert hits[0].document.qualified_name == name
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
    ("seed", "steps"), [(0, 2), *(pytest.param(seed, 6, marks=pytest.mark.slow) for seed in (1, 2, 3))]
)
def test_after_any_edits_an_update_holds_what_a_build_would_hold(
    tmp_path: Path, root: Path, seed: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "COMPACT_SHARE", 100.0)
    monkeypatch.setattr(updating, "MOST_SEGMENTS", 4)
    rng = random.Random(seed)
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    for step in range(steps):
        if rng.random() < 0.5:
            monkeypatch.setattr(file_cache, "RACY", BELIEVED)
        for _ in range(rng.randint(1, 4)):
            edit(root, rng)
        Index.update(tmp_path / "idx", workers=1)[0].close()
        assert_same_content(tmp_path / "idx", root, tmp_path / f"fresh{step}")
    assert 2 <= len(read_description(tmp_path / "idx").segments) <= 4


@pytest.mark.slow
def test_an_update_of_named_paths_holds_what_a_build_would_hold(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "COMPACT_SHARE", 100.0)
    rng = random.Random(5)
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    for step in range(4):
        before = {path: path.read_bytes() for path in root.rglob("*.py")}
        edit(root, rng)
        after = {path: path.read_bytes() for path in root.rglob("*.py")}
        paths = [path for path in {*before, *after} if before.get(path) != after.get(path)]
        Index.update(tmp_path / "idx", workers=1, paths=paths)[0].close()
        assert_same_content(tmp_path / "idx", root, tmp_path / f"fresh{step}")


def test_a_compaction_equals_a_build_byte_for_byte(tmp_path: Path, root: Path) -> None:
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    (root / "app" / "new.py").write_text("def brand_new(x):\n    return fresh(x)\n")
    Index.update(tmp_path / "idx", workers=1)[0].close()
    Index.update(tmp_path / "idx", workers=1, compact=True, retrain=True)[0].close()
    with Index.load(tmp_path / "idx") as compacted, Index.build(root, tmp_path / "fresh", config=QUICK) as built:
        assert_same_files(compacted, built)


def test_much_change_makes_one_segment_again(tmp_path: Path, root: Path) -> None:
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    rng = random.Random(3)
    for number in range(200):
        (root / "zoo" / f"more{number}.py").write_bytes(source(rng))
    Index.update(tmp_path / "idx", workers=1)[0].close()
    description = read_description(tmp_path / "idx")
    assert len(description.segments) == 1
    assert description.tombstones is None


def test_scores_of_old_documents_stay_as_they_are_until_compaction(tmp_path: Path, root: Path) -> None:
    with Index.build(root, tmp_path / "idx", config=QUICK, workers=1) as before:
        scores = {hit.document.id: hit.score for hit in before.search("certain", 5, ranker="bm25")}
    (root / "app" / "other.py").write_text("def other_one(x):\n    return certain(sure(x))\n")
    with Index.update(tmp_path / "idx", workers=1)[0] as updated:
        assert len(updated.snapshot.segments) == 2
        hits = {hit.document.id: hit.score for hit in updated.search("certain", 5, ranker="bm25")}
    assert len(hits) == len(scores) + 1
    assert {id: hits[id] for id in scores} == scores


def test_a_new_word_is_found_by_all_rankers_that_know_words(tmp_path: Path, root: Path) -> None:
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    (root / "app" / "quux.py").write_text("def frobnicate(x):\n    return zibble(x)\n")
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        for ranker in ("bm25", "hybrid", "rrf"):
            assert index.search("frobnicate zibble", 1, ranker=ranker)[0].document.name == "frobnicate", ranker
        assert index.unknown_words("frobnicate") == {}


def test_a_copy_survives_its_original(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src" / f"{name}.py").write_text("def shared_thing(x):\n    return go(x, 'far')\n")
    for number in range(30):
        (tmp_path / "src" / f"z{number}.py").write_text(f"def thing_{number}(x):\n    return y{number}(x)\n")
    Index.build(tmp_path / "src", tmp_path / "idx", config=QUICK, workers=1).close()
    (tmp_path / "src" / "a.py").unlink()
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert len(index.snapshot.segments) == 2
        (document,) = [hit.document for hit in index.search("shared_thing", 1)]
        assert {document.path, *(copy.path for copy in document.copies)} == {"b.py", "c.py"}
    (tmp_path / "src" / "c.py").write_text("def another_thing(x):\n    return x\n")
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        (document,) = [hit.document for hit in index.search("shared_thing", 1)]
        assert (document.path, document.copies) == ("b.py", ())


def test_the_same_function_in_an_old_and_a_new_segment_is_one_hit(tmp_path: Path) -> None:
    code = "def shared_thing(path, mode):\n    with open_file(path, mode) as handle:\n        return read_all(handle)\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(code)
    for number in range(30):
        (tmp_path / "src" / f"z{number}.py").write_text(f"def thing_{number}(x):\n    return y{number}(x)\n")
    Index.build(tmp_path / "src", tmp_path / "idx", config=QUICK, workers=1).close()
    (tmp_path / "src" / "b.py").write_text(code)
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert len(index.snapshot.segments) == 2
        names = [hit.document.name for hit in index.search("shared thing open file", 5)]
        assert names.count("shared_thing") == 1


def test_filters_see_new_documents_and_no_dead_ones(tmp_path: Path, root: Path) -> None:
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    (root / "app" / "sure.py").unlink()
    (root / "lib" / "late.py").write_text("def sure_thing(x):\n    return certain(x)\n")
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert [hit.document.path for hit in index.search("certain", path="late.py")] == ["lib/late.py"]
        assert index.search("certain", path="sure.py") == []
        assert index.documents.row_of("src/app/sure.py:1") is None


def test_an_update_that_finds_nothing_new_commits_nothing(tmp_path: Path, root: Path) -> None:
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    number = read_description(tmp_path / "idx").number
    index, changes = Index.update(tmp_path / "idx", workers=1)
    index.close()
    assert not changes
    assert changes.unchanged == index.description.counts["files"]
    assert read_description(tmp_path / "idx").number == number


def test_a_reader_keeps_its_snapshot_while_updates_commit(tmp_path: Path, root: Path) -> None:
    with Index.build(root, tmp_path / "idx", config=QUICK, workers=1) as reader:
        expected = places(reader)
        (root / "app" / "sure.py").unlink()
        Index.update(tmp_path / "idx", workers=1)[0].close()
        Index.update(tmp_path / "idx", workers=1, compact=True)[0].close()
        assert reader.search("certain", 1)[0].document.name == "sure"
        assert places(reader) == expected


def test_an_index_without_code_is_updated_by_a_build(tmp_path: Path, root: Path) -> None:
    config = BuildConfig(fasttext=QUICK.fasttext, store_code=False)
    Index.build(root, tmp_path / "idx", config=config, workers=1).close()
    (root / "app" / "late.py").write_text("def late_thing(x):\n    return certain(x)\n")
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert len(index.snapshot.segments) == 1
        assert index.search("late thing", 1)[0].document.name == "late_thing"


def test_what_cannot_be_updated_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match="ncs build"):
        Index.update(tmp_path / "none")
    root = corpus.write(tmp_path / "src")
    with Index.build(root, tmp_path / "idx", config=QUICK) as index:
        documents = index.documents.documents(range(len(index)))
    Index.of(documents, tmp_path / "of", config=QUICK).close()
    with pytest.raises(BadInput, match="does not name its source files"):
        Index.update(tmp_path / "of")
    shutil.rmtree(root)
    with pytest.raises(SourceError, match="there is no"):
        Index.update(tmp_path / "idx")
    Index.load(tmp_path / "idx").close()


@pytest.mark.parametrize("stamps", ["believed", "racy"])
def test_files_with_the_same_stamp_are_not_read_unless_it_is_from_just_before_the_build(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, stamps: str
) -> None:
    with Index.build(root, tmp_path / "idx", config=QUICK, workers=1) as index:
        if stamps == "believed":
            monkeypatch.setattr(file_cache, "RACY", BELIEVED)
        cache = FileCache(index.snapshot)
        files = list(request_of(index.description, index.folder).files(Skipped(), cache.is_unchanged))
        cache.close()
    unchanged = [file for file in files if file.unchanged]
    assert unchanged == (files if stamps == "believed" else [])
    os.utime(root / "app" / "sure.py", ns=(1, 1))  # another stamp, the same content
    number = read_description(tmp_path / "idx").number
    assert not Index.update(tmp_path / "idx", workers=1)[1]
    assert read_description(tmp_path / "idx").number == number


def test_a_file_that_changed_within_the_grain_of_the_clock_is_seen(tmp_path: Path) -> None:
    root = gitrepo.write(tmp_path / "src", {"a.py": "def early(x):\n    return go(x)\n"})
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    times = (root / "a.py").stat()
    (root / "a.py").write_text("def later(x):\n    return go(x)\n")
    os.utime(root / "a.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    updated, changes = Index.update(tmp_path / "idx")
    with updated:
        assert changes.changed == ("src/a.py",)
        assert [place.qualified_name for place in places(updated)] == ["later"]


def test_branches_commits_of_bare_repositories_and_archives_are_followed(tmp_path: Path) -> None:
    root = tmp_path / "repos"
    work = gitrepo.repository(
        root / "work", {"a.py": "def alpha(x):\n    return go(x)\n", "b.py": "def beta(): pass\n"}
    )
    gitrepo.git(work, "switch", "-q", "-c", "other")
    gitrepo.commit(work, {"a.py": "def gamma(x):\n    return stay(x)\n"})
    origin = gitrepo.repository(
        tmp_path / "origin",
        {"c.py": "def delta(x):\n    return leave(x)\n", "d.py": "def same(x):\n    return on(x)\n"},
    )
    gitrepo.git(root, "clone", "-q", "--bare", str(origin), str(root / "bare.git"))

    def pack(code: str) -> None:
        with zipfile.ZipFile(root / "old.zip", "w") as archive:
            archive.writestr("old/e.py", code)
            archive.writestr("old/f.py", "def zeta(x):\n    return rest(x)\n")

    pack("def eta(x):\n    return begin(x)\n")
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    gitrepo.git(work, "switch", "-q", "main")
    gitrepo.commit(origin, {"c.py": "def epsilon(x):\n    return arrive(x)\n"})
    gitrepo.git(root / "bare.git", "fetch", "-q", str(origin), "main:main")
    pack("def theta(x):\n    return end(x)\n")
    updated, changes = Index.update(tmp_path / "idx", workers=1)
    assert sorted(changes.changed) == ["bare/c.py", "old/e.py", "work/a.py"]
    assert (changes.added, changes.removed, changes.unchanged) == ((), (), 3)
    with updated:
        names = {place.qualified_name for place in places(updated)}
    assert names == {"alpha", "beta", "epsilon", "same", "theta", "zeta"}


@pytest.mark.slow
def test_a_build_takes_unchanged_files_over_and_equals_a_fresh_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_cache, "RACY", BELIEVED)
    root = corpus.write(tmp_path / "repos")
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    (root / "tools" / "files.py").write_text("def brand_new(x):\n    return lemon(x)\n")
    for config in (QUICK, replace(QUICK, deduplicate=False)):
        with (
            Index.build(root, tmp_path / "idx", config=config) as again,
            Index.build(root, tmp_path / f"fresh {config.deduplicate}", config=config) as fresh,
        ):
            assert_same_files(again, fresh)
            assert len(list((tmp_path / "idx" / "segments").iterdir())) == 1


def test_an_index_of_another_version_of_the_extractor_is_built_again_by_an_update(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    for module in (file_cache, pipeline):
        monkeypatch.setattr(module, "made_by", lambda: "a later version")
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert index.description.counts["sources"]["made_by"] == "a later version"
        number = index.description.number
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert index.description.number == number


def test_the_copy_takes_over_with_its_own_comment_when_the_original_goes(tmp_path: Path) -> None:
    body = "def same(x):\n    # {}\n    return go(x, 'there')\n"
    root = gitrepo.write(tmp_path / "src", {"a.py": body.format("first"), "b.py": body.format("second")})
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    (root / "a.py").unlink()
    with Index.update(tmp_path / "idx")[0] as index:
        (document,) = index.documents.documents(index.documents.rows().tolist())
        assert (document.path, document.words["comments"], document.copies) == ("b.py", ("second",), ())


@pytest.mark.slow
def test_new_words_have_no_vector_until_word_vectors_are_learned_again(tmp_path: Path, root: Path) -> None:
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    (root / "app" / "new.py").write_text("def zugzwang(x):\n    return zugzwang(zugzwang(x))\n")
    with Index.update(tmp_path / "idx", workers=1)[0] as updated:
        assert updated.neighbors("zugzwang") is None
    with Index.update(tmp_path / "idx", workers=1, compact=True)[0] as compacted:
        training = compacted.description.counts["training"]
        assert training["without_vector_now"] > training["without_vector"]
    with Index.update(tmp_path / "idx", workers=1, retrain=True)[0] as retrained:
        assert retrained.neighbors("zugzwang")


@pytest.mark.slow
def test_the_command_says_what_changed(tmp_path: Path) -> None:
    root = gitrepo.write(tmp_path / "src", {"a.py": "def alpha(x):\n    return go(x)\n", "b.py": "def beta(): pass\n"})
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    (root / "b.py").unlink()
    (root / "a.py").write_text("def gamma(x):\n    return leave(x)\n")
    (root / "c.py").write_text("def delta(x):\n    return arrive(x)\n")
    said = ncs("update", "-i", "idx", "-v", cwd=tmp_path).stderr
    assert "1 new, 1 changed, 1 removed, 0 files unchanged; 2 functions" in said
    assert {"new: src/c.py", "changed: src/a.py", "removed: src/b.py"} <= set(said.splitlines())
    assert "nothing changed, 2 files unchanged" in ncs("update", "-i", "idx", cwd=tmp_path).stderr


def test_a_first_build_answers_by_words_while_vectors_are_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "EARLY", 1)
    answers: list[Answer] = []

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        if stage == "training embeddings":
            with Index.load(tmp_path / "idx", verify=True) as unfinished:
                answers.append(ask(unfinished, "hide soft keyboard", ranker="hybrid"))
        yield from items

    root = corpus.write(tmp_path / "repos")
    with (
        Index.build(root, tmp_path / "idx", config=QUICK, track=track) as index,
        Index.build(root, tmp_path / "fresh", config=QUICK) as fresh,
    ):
        assert ask(index, "hide soft keyboard", ranker="hybrid")["notes"] == []
        assert len(list((tmp_path / "idx" / "segments").iterdir())) == 1
        assert_same_files(index, fresh)
    (answer,) = answers
    assert answer["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
    assert answer["notes"] == [PENDING_EMBEDDINGS]


@pytest.mark.parametrize("again", ["build", "update"])
@pytest.mark.slow
def test_a_first_build_that_ended_before_its_vectors_were_learned_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    monkeypatch.setattr(pipeline, "EARLY", 1)

    def stop(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        if stage == "training embeddings":
            raise KeyboardInterrupt
        yield from items

    root = corpus.write(tmp_path / "repos")
    with pytest.raises(KeyboardInterrupt):
        Index.build(root, tmp_path / "idx", config=QUICK, track=stop)
    Index.load(tmp_path / "idx", verify=True).close()  # it answers
    if again == "build":
        Index.build(root, tmp_path / "idx", config=QUICK).close()
    else:
        assert not Index.update(tmp_path / "idx")[1]
    with Index.load(tmp_path / "idx") as index, Index.build(root, tmp_path / "fresh", config=QUICK) as fresh:
        assert PENDING not in index.description.counts
        assert_same_files(index, fresh)
