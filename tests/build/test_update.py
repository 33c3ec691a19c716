"""After an update all that a build would index is found, nothing that is gone, and old readers are undisturbed."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from ncs.build import update as updating
from ncs.config import BuildConfig, FastTextConfig
from ncs.errors import BadInput, IndexNotFound, SourceError
from ncs.index import Index
from ncs.storage.snapshot import read_description
from ncs.types import Location
from tests import corpus, gitrepo

QUICK = BuildConfig(fasttext=FastTextConfig(dim=8, epochs=1, least_words=1, min_count=1))
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
    rows = np.arange(len(index.snapshot)) if index.snapshot.live is None else np.flatnonzero(index.snapshot.live)
    documents = index.documents.documents(rows.tolist())
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


@pytest.mark.parametrize("seed", range(3))
def test_after_any_edits_an_update_holds_what_a_build_would_hold(
    tmp_path: Path, root: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "COMPACT_SHARE", 100.0)
    monkeypatch.setattr(updating, "MOST_SEGMENTS", 4)
    rng = random.Random(seed)
    Index.build(root, tmp_path / "idx", config=QUICK, workers=1).close()
    for step in range(6):
        for _ in range(rng.randint(1, 4)):
            edit(root, rng)
        Index.update(tmp_path / "idx", workers=1)[0].close()
        assert_same_content(tmp_path / "idx", root, tmp_path / f"fresh{step}")
    assert 2 <= len(read_description(tmp_path / "idx").segments) <= 4


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
        (segment,), (fresh,) = compacted.snapshot.segments, built.snapshot.segments
        for old, new in ((segment.path, fresh.path), (compacted.snapshot.statistics, built.snapshot.statistics)):
            files = sorted(path.relative_to(new) for path in new.rglob("*") if path.is_file())
            assert files == sorted(path.relative_to(old) for path in old.rglob("*") if path.is_file())
            for name in files:
                if name.parts[0] not in ("documents.sqlite", "files"):  # bytes depend on batches, and on the time
                    assert (old / name).read_bytes() == (new / name).read_bytes(), name
        assert places(compacted) == places(built)


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
    with pytest.raises(BadInput, match="does not say which files"):
        Index.update(tmp_path / "of")
    shutil.rmtree(root)
    with pytest.raises(SourceError, match="there is no"):
        Index.update(tmp_path / "idx")
    Index.load(tmp_path / "idx").close()
