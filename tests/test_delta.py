"""An update made beside the base: the same documents, ranks and scores as a whole build that learnt the same."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ncs.build import building
from ncs.build import file_cache as reuse
from ncs.build.building import make
from ncs.build.delta import files, making, quick, room_of, seen_files
from ncs.build.delta.deciding import Held, decide
from ncs.build.request import Recipe, recipe_of
from ncs.index import Index
from ncs.search.locate_source import Originals
from ncs.sources import Skipped, SourceFile
from ncs.sources.seen import RACY
from ncs.sources.stamps import joined, stamps_of
from ncs.storage.duplicates import NearDuplicates
from ncs.storage.file_roles import Places
from ncs.storage.files import FileTable
from ncs.storage.manifest import read_manifest
from tests import gitrepo
from tests.test_update import QUICK, documents

VERBS = ("read", "write", "open", "close", "hide", "show", "parse", "encode")
THINGS = ("file", "keyboard", "socket", "image", "record", "cache", "token", "window")
QUESTIONS = (
    "read file", "how to hide the soft keyboard", "write_record", "parse token header", "close", "Window.open",
    "recrod cache", "encode image to file", "show windows", "novel word", "test of socket",
    "how to convert file to image",
)  # fmt: skip
RANKERS = ("bm25", "ncs", "ncs_centred", "rrf", "hybrid")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deltas of small indexes, too, and of whatever share."""
    monkeypatch.setattr(making, "WHOLE", 0)
    monkeypatch.setattr(making, "SHARE", 1e9)


@pytest.fixture
def _believing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of files are believed, as if all had been written long before they were read."""
    for module in (files, quick, seen_files, reuse):
        monkeypatch.setattr(module, "RACY", -(10**15))


def body(rng: random.Random, verb: str, thing: str) -> str:
    """A function with words enough to have near duplicates; few of which there are."""
    lines = [f"    {name} = {verb}_{name}(x, '{verb}')" for name in THINGS[: rng.choice((3, 8, 8))]]
    if rng.random() < 0.4:
        lines[rng.randrange(len(lines))] = f"    {rng.choice(THINGS)} = {rng.choice(VERBS)}(x)"
    if rng.random() < 0.3:
        lines.insert(0, f"    # {rng.choice(THINGS)} of {rng.choice(('novel', 'word', 'plain'))}{rng.randint(0, 9)}")
    return "\n".join([f"def {verb}_{thing}(x):", *lines, "    return x"])


def source(rng: random.Random) -> bytes:
    functions = [body(rng, rng.choice(VERBS), rng.choice(THINGS)) for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.2:
        functions.append(f"class {rng.choice(THINGS).title()}:\n    size = {rng.randint(0, 3)}\n")
    if rng.random() < 0.1:
        functions.append("def broken(:\n")
    return "\n\n\n".join(functions).encode()


def tree(root: Path, rng: random.Random, files: int = 14) -> Path:
    for i in range(files):
        path = root / rng.choice(("app", "lib/deep", "tests")) / f"{rng.choice(THINGS)}{i}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source(rng))
    (root / "app").mkdir(exist_ok=True)
    (root / "app" / "sure.py").write_text("def sure(x):\n    return certain(x)\n")
    gitrepo.git(root / "app", "init", "-q")
    return root


def edit(root: Path, rng: random.Random) -> None:
    """One thing that people do to files."""
    files = sorted(path for path in root.rglob("*.py"))
    one, other = rng.choice(files), rng.choice(files)
    fresh = root / rng.choice(("app", "lib/deep", "aaa")) / f"{rng.choice(THINGS)}{rng.randint(0, 99)}.py"
    fresh.parent.mkdir(parents=True, exist_ok=True)
    action = rng.choice(("write", "line", "add", "remove", "rename", "swap", "touch", "copy", "function"))
    if action == "write":
        one.write_bytes(source(rng))
    elif action == "line":
        one.write_bytes(b"\n# one more line\n" + one.read_bytes())
    elif action == "add":
        fresh.write_bytes(source(rng))
    elif action == "remove" and len(files) > 4:
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
    elif action == "function":
        one.write_bytes(one.read_bytes() + b"\n\n\n" + source(rng))


def whole(index: Index, root: Path, folder: Path) -> Index:
    """A build of all files that takes over what the index learnt."""
    make(Recipe((root,), QUICK), folder, index.folder, kept=True)
    return Index.load(folder)


def assert_same(updated: Index, anew: Index) -> None:
    assert documents(updated) == documents(anew)
    for ranker in RANKERS:
        for question in QUESTIONS:
            assert hits(updated, question, ranker) == hits(anew, question, ranker), (ranker, question)
    assert_same_stores(updated, anew)
    left, right = (FileTable.load(index.data) for index in (updated, anew))
    assert left is not None
    assert right is not None
    assert [(e.repository, e.path, e.digest, e.state) for e in left.entries] == [
        (e.repository, e.path, e.digest, e.state) for e in right.entries
    ]
    assert left.rows.tolist() == right.rows.tolist()
    assert left.copies.tolist() == right.copies.tolist()
    one, other = (Places.load(index.data) for index in (updated, anew))
    for name in ("file", "repository", "role", "named", "outline"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    near = [NearDuplicates.load(index.data, len(index)) for index in (updated, anew)]
    assert near[0].clusters.tolist() == near[1].clusters.tolist()
    assert near[0].members.tolist() == near[1].members.tolist()
    for key in (
        "documents",
        "copies",
        "files",
        "source_bytes",
        "broken_files",
        "repositories",
        "languages",
        "kinds",
        "words",
    ):
        assert updated.manifest.counts[key] == anew.manifest.counts[key], key
    assert updated.manifest.counts["text_files"] == anew.manifest.counts["text_files"]
    now = [index.manifest.counts["training"]["without_vector_now"] for index in (updated, anew)]  # type: ignore[index]
    assert now[0] == pytest.approx(now[1], abs=2e-6)


def hits(index: Index, question: str, ranker: str) -> list[tuple[object, ...]]:
    found = index.search(question, 15, ranker=ranker)
    return [(hit.document.id, hit.score, hit.confidence, hit.near_copies) for hit in found]


def assert_same_stores(updated: Index, anew: Index) -> None:
    one, other = updated.store, anew.store
    assert list(one.names()) == list(other.names())
    assert one.packed(0, len(one)) == other.packed(0, len(other))
    assert one.ids(range(len(one))) == other.ids(range(len(other)))
    assert one.locations(range(len(one))) == other.locations(range(len(other)))
    assert one.headings(range(len(one))) == other.headings(range(len(other)))
    assert one.counts == other.counts
    every = np.ones(len(one), np.bool_)
    assert one.tallied("kind", every) == other.tallied("kind", every) == one.counts["kinds"]
    assert one.files()[0].tolist() == other.files()[0].tolist()
    assert one.files()[1] == other.files()[1]
    assert sorted(map(repr, one.copies(0, one.counts["copies"]))) == sorted(
        map(repr, other.copies(0, one.counts["copies"]))
    )
    for filters in (
        {"path": "*file*"},
        {"repository": "app"},
        {"kind": "class"},
        {"language": "python", "path": "lib/*"},
    ):
        left, right = one.mask(**filters), other.mask(**filters)
        assert left is not None
        assert right is not None
        assert left.tolist() == right.tolist()
    assert [one.row_of(id) for id in other.ids(range(len(other)))] == list(range(len(other)))
    assert one.row_of("nowhere.py:1") is None


@pytest.mark.parametrize("seed", range(3))
def test_after_any_edits_an_update_beside_the_base_ranks_as_a_whole_build(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root = tree(tmp_path / "src", rng)
    index = Index.build(root, tmp_path / "idx", config=QUICK)
    beside = 0
    for step in range(4):
        for _ in range(rng.randint(1, 4)):
            edit(root, rng)
        index.close()
        index, _ = Index.update(tmp_path / "idx", workers=1)
        beside += room_of(index.data) is not None
        with whole(index, root, tmp_path / f"anew{step}") as anew:
            assert_same(index, anew)
    assert beside >= 3
    index.close()


@pytest.mark.usefixtures("_believing")
@pytest.mark.parametrize("seed", range(10, 13))
def test_so_it_does_where_only_folders_that_changed_are_walked(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root = tree(tmp_path / "src", rng)
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    for step in range(4):
        for _ in range(rng.randint(1, 3)):
            edit(root, rng)
        index, _ = Index.update(tmp_path / "idx", workers=1)
        with index, whole(index, root, tmp_path / f"anew{step}") as anew:
            assert_same(index, anew)
        assert not Index.update(tmp_path / "idx")[1]


def test_switching_branches_there_and_back_is_followed(tmp_path: Path) -> None:
    rng = random.Random(2)
    root = tree(tmp_path / "src", rng)
    work = gitrepo.repository(
        root / "work", {"a.py": "def alpha(x):\n    return go(x)\n", "b.py": body(rng, "read", "file")}
    )
    gitrepo.git(work, "switch", "-q", "-c", "other")
    gitrepo.commit(work, {"a.py": "def gamma(x):\n    return stay(x)\n", "c.py": body(rng, "hide", "token")})
    gitrepo.git(work, "switch", "-q", "main")
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    for branch in ("other", "main"):
        gitrepo.git(work, "switch", "-q", branch)
        index, _ = Index.update(tmp_path / "idx", workers=1)
        with index, whole(index, root, tmp_path / branch) as anew:
            assert_same(index, anew)
            assert room_of(index.data)


def looked_at(folder: Path) -> tuple[files.Walked | None, files.Walked | None]:
    """What looking at some folders finds to differ from the index, and what a walk over all does."""
    manifest = read_manifest(folder)
    data, recipe = folder / manifest.generation, recipe_of(manifest, folder)
    filed = files.Filed.load(data)
    assert filed is not None
    began = time.time_ns()
    looking = files.Looking(filed, began)
    walked = looking.over(recipe.files(Skipped(), looking), 1 << 30)
    return quick.quick_look(data, filed, recipe, began, 1 << 30), walked


def names(found: Sequence[int | SourceFile]) -> list[int | str]:
    return [file if isinstance(file, int) else f"{file.repository}/{file.path}" for file in found]


@pytest.mark.usefixtures("_believing")
def test_looking_at_some_folders_finds_what_a_walk_over_all_finds(tmp_path: Path) -> None:
    rng = random.Random(5)
    root = tree(tmp_path / "src", rng)
    (root / "lib" / "data.py").write_bytes(b"\0\0")
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    for step in range(25):
        edit(root, rng)
        if step == 12:  # what was left out for what it held
            (root / "lib" / "data.py").write_bytes(b"def held(x):\n    return x\n")
        found, walked = looked_at(tmp_path / "idx")
        assert walked is not None
        assert found is not None
        assert names(found.found) == names(walked.found), step
        for one, other in (
            (found.added, walked.added),
            (found.changed, walked.changed),
            (found.removed, walked.removed),
        ):
            assert sorted(map(str, one)) == sorted(map(str, other)), step


@pytest.mark.usefixtures("_believing")
@pytest.mark.parametrize("what", ["ignore", "ignore more", "repository", "environment", "new repository"])
def test_what_changes_the_list_of_files_is_left_to_a_walk_over_all(tmp_path: Path, what: str) -> None:
    root = tree(tmp_path / "src", random.Random(3))
    (root / "lib" / "deep" / "kept.py").write_text("def kept(x):\n    return x\n")
    (root / "lib" / ".gitignore").write_text("nothing\n")
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    if what == "ignore":
        (root / "lib" / ".gitignore").write_text("deep/\n")
    elif what == "ignore more":
        (root / "tests" / ".ncsignore").write_text("*.py\n")
    elif what == "repository":
        gitrepo.git(root / "lib", "init", "-q")
    elif what == "environment":
        (root / "lib" / "pyvenv.cfg").write_text("")
    else:
        gitrepo.write(root / "new", {"a.py": "def alpha(x):\n    return x\n"})
        gitrepo.git(root / "new", "init", "-q")
    assert looked_at(tmp_path / "idx")[0] is None
    index, _ = Index.update(tmp_path / "idx", workers=1)
    with index, whole(index, root, tmp_path / "anew") as anew:
        assert documents(index) == documents(anew)
    assert_looks_quickly(tmp_path / "idx", root)


def assert_looks_quickly(folder: Path, root: Path) -> None:
    """What the last update that changed something saw is remembered: nobody walks over all to find what a walk does."""
    for step in range(2):
        (root / "app" / "sure.py").write_text(f"def sure(x):\n    return doubtful(x, {step})\n")
        Index.update(folder, workers=1)[0].close()
        found, walked = looked_at(folder)
        assert found is not None
        assert walked is not None
        assert not found.differs
        assert called(folder, found.found) == called(folder, walked.found)


def called(folder: Path, found: Sequence[int | SourceFile]) -> list[str]:
    filed = files.Filed.load(folder / read_manifest(folder).generation)
    assert filed is not None
    all_files = (filed.entry(file) if isinstance(file, int) else file for file in found)
    return [f"{file.repository}/{file.path}" for file in all_files]


def beside(root: Path) -> None:
    """An archive and a bare repository in a tree."""
    with zipfile.ZipFile(root / "old.zip", "w") as archive:
        archive.writestr("old/zipped.py", "def zipped(x):\n    return unpack(x)\n")
    gitrepo.bare(root / "mirror.git", {"deep/held.py": "def held(x):\n    return hold(x)\n"})


@pytest.mark.usefixtures("_believing")
def test_archives_and_bare_repositories_that_stay_as_they_were_are_not_walked_over(tmp_path: Path) -> None:
    rng = random.Random(7)
    root = tree(tmp_path / "src", rng)
    beside(root)
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    for step in range(12):
        found, walked = looked_at(tmp_path / "idx")
        assert found is not None
        assert walked is not None
        assert names(found.found) == names(walked.found), step
        edit(root, rng)
    index, _ = Index.update(tmp_path / "idx", workers=1)
    with index, whole(index, root, tmp_path / "anew") as anew:
        assert_same(index, anew)
        assert {"old", "mirror"} <= set(index.manifest.counts["repositories"])  # type: ignore[call-overload]


@pytest.mark.usefixtures("_believing")
@pytest.mark.parametrize("what", ["archive", "commit", "branch", "gone", "another archive", "another repository"])
def test_archives_and_bare_repositories_that_change_are_seen(tmp_path: Path, what: str) -> None:
    root = tree(tmp_path / "src", random.Random(7))
    beside(root)
    gitrepo.git(root / "mirror.git", "branch", "other")
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    before = looked_at(tmp_path / "idx")[0]
    assert before is not None
    assert not before.differs
    if what == "archive":
        with zipfile.ZipFile(root / "old.zip", "a") as archive:
            archive.writestr("old/more.py", "def more(x):\n    return unpack(x, x)\n")
    elif what == "commit":
        clone = tmp_path / "clone"
        gitrepo.git(tmp_path, "clone", "-q", str(root / "mirror.git"), str(clone))
        gitrepo.commit(clone, {"deep/held.py": "def held(x):\n    return release(x)\n"})
        gitrepo.git(clone, "push", "-q", "origin", "HEAD")
    elif what == "branch":
        gitrepo.git(root / "mirror.git", "symbolic-ref", "HEAD", "refs/heads/other")
    elif what == "gone":
        shutil.rmtree(root / "mirror.git")
    elif what == "another archive":
        shutil.copy(root / "old.zip", root / "new.zip")
    else:
        shutil.copytree(root / "mirror.git", root / "lib" / "second.git")
    assert looked_at(tmp_path / "idx")[0] is None
    index, _ = Index.update(tmp_path / "idx", workers=1)
    with index, whole(index, root, tmp_path / "anew") as anew:
        assert documents(index) == documents(anew)
    assert_looks_quickly(tmp_path / "idx", root)


@pytest.mark.usefixtures("_believing")
@pytest.mark.parametrize("seed", range(20, 23))
def test_what_the_last_walk_saw_is_remembered_whoever_walked(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root = tree(tmp_path / "src", rng)
    beside(root)
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    walks = False
    for step in range(8):
        for _ in range(rng.randint(1, 3)):
            edit(root, rng)
        if step % 3 == 1:  # what is left to a walk over all
            (root / rng.choice(("lib", "app")) / ".ncsignore").write_text(
                rng.choice(("*7.py\n", "*8.py\n", "nothing\n"))
            )
        quick_enough, walked = looked_at(tmp_path / "idx")
        walks |= step % 3 == 1
        assert walks or quick_enough is not None
        assert walked is not None
        index, changes = Index.update(tmp_path / "idx", workers=1)
        with index, whole(index, root, tmp_path / f"anew{step}") as anew:
            assert documents(index) == documents(anew)
        if changes:
            found, walked = looked_at(tmp_path / "idx")
            assert found is not None
            assert walked is not None
            assert called(tmp_path / "idx", found.found) == called(tmp_path / "idx", walked.found), step
            assert not found.differs
            walks = False


@pytest.mark.usefixtures("_believing")
def test_a_base_whose_walk_nobody_saw_is_looked_at_quickly_after_an_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(9)
    root = tree(tmp_path / "src", rng)
    beside(root)
    with monkeypatch.context() as patched:
        patched.setattr(building, "save_seen", lambda *_: None)  # as after a cluster's build
        Index.build(root, tmp_path / "idx", config=QUICK).close()
    assert looked_at(tmp_path / "idx")[0] is None
    (root / "app" / "sure.py").write_text("def sure(x):\n    return doubtful(x)\n")
    Index.update(tmp_path / "idx", workers=1)[0].close()
    for step in range(6):
        found, walked = looked_at(tmp_path / "idx")
        assert found is not None
        assert walked is not None
        assert called(tmp_path / "idx", found.found) == called(tmp_path / "idx", walked.found), step
        edit(root, rng)


def test_stamps_of_the_time_of_the_last_look_are_not_believed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    paths = joined([str(tmp_path / "a"), str(tmp_path / "none")])
    kept = seen_files.Stamped(paths, stamps_of(paths))
    written = int(kept.stamps[0, 1])
    assert kept.differing(written).tolist() == [0]
    assert kept.differing(written + RACY + 1).tolist() == []
    (tmp_path / "none").write_text("")
    assert kept.differing(written + RACY + 1).tolist() == [1]


@pytest.mark.usefixtures("_believing")
def test_files_that_were_linked_or_touched_decide_as_before_while_they_say_the_same(tmp_path: Path) -> None:
    root = tree(tmp_path / "src", random.Random(3))
    (root / "lib" / ".gitignore").write_text("nothing\n")
    beside(root)
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    shutil.copytree(root, tmp_path / "linked", copy_function=os.link)  # another time of every file's entry
    os.utime(root / "lib" / ".gitignore")
    found, walked = looked_at(tmp_path / "idx")
    assert found is not None
    assert walked is not None
    assert names(found.found) == names(walked.found)
    (root / "lib" / ".gitignore").write_text("notable\n")
    assert looked_at(tmp_path / "idx")[0] is None


@pytest.mark.usefixtures("_believing")
def test_an_ignore_file_that_changed_to_no_effect_makes_one_update_walk_over_everything(tmp_path: Path) -> None:
    root = tree(tmp_path / "src", random.Random(3))
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    for number in range(2):
        (root / "lib" / ".gitignore").write_text(f"nothing{number}\n")
        assert looked_at(tmp_path / "idx")[0] is None
        index, changes = Index.update(tmp_path / "idx", workers=1)
        with index:
            assert not changes
            assert hits(index, "read file", "hybrid")
        found, walked = looked_at(tmp_path / "idx")
        assert found is not None
        assert walked is not None
        assert names(found.found) == names(walked.found)
        before = (tmp_path / "idx" / "manifest.json").read_bytes()
        Index.update(tmp_path / "idx", workers=1)[0].close()
        assert (tmp_path / "idx" / "manifest.json").read_bytes() == before


@pytest.mark.usefixtures("_believing")
def test_a_bare_repository_alone_is_asked_for_its_references_only(tmp_path: Path) -> None:
    origin = gitrepo.bare(tmp_path / "app.git", {"a.py": "def alpha(x):\n    return go(x)\n"})
    Index.build(origin, tmp_path / "idx", config=QUICK).close()
    found, walked = looked_at(tmp_path / "idx")
    assert found is not None
    assert walked is not None
    assert names(found.found) == names(walked.found) == [0]


BASE = Held(np.array([0, 0, 1, 2]), np.array([5, 6, 7, 8], np.uint64), np.array([1, 2]), np.array([0, 0]))
"""Files 0, 1 and 2; document 0 has copies in files 1 and 2."""


def held(*digests: int) -> Held:
    nothing = np.zeros(0, np.int64)
    return Held(np.zeros(len(digests), np.int64), np.array(digests, np.uint64), nothing, nothing)


def test_an_original_that_is_gone_asks_for_the_file_of_its_first_copy() -> None:
    decided = decide(BASE, held(9), np.array([-1, 1, 2]), np.array([0]))
    assert decided is not None
    assert decided.missing.tolist() == [1]


def test_an_original_that_stays_in_a_file_that_changed_keeps_its_copies() -> None:
    decided = decide(BASE, held(9, 5), np.array([-1, 1, 2]), np.array([0]))
    assert decided is not None
    assert decided.missing.tolist() == []
    assert decided.held.tolist() == [4, 5, 2, 3]  # the delta's first, which are numbers 4 and 5
    assert decided.copies.tolist() == [[5, 4], [5, 5]]  # of document 5, in the places of the base's copies


def test_the_first_of_equal_documents_is_the_original_wherever_it_is_held() -> None:
    decided = decide(BASE, held(7), np.array([1, 2, 3]), np.array([0]))
    assert decided is not None
    assert decided.held.tolist() == [4, 0, 1, 3]
    assert [4, 2] in decided.copies.tolist()  # the base's document 2 is a copy now


def test_a_delta_grown_too_large_becomes_part_of_a_new_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(8)
    root = tree(tmp_path / "src", rng)
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    edit(root, rng)
    (root / "app" / "sure.py").write_text("def sure(x):\n    return doubtful(x)\n")
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert room_of(index.data)
    monkeypatch.setattr(making, "SHARE", 0)
    monkeypatch.setattr(making, "LEAST", 0)
    (root / "app" / "sure.py").write_text("def sure(x):\n    return novel(x)\n")
    index, _ = Index.update(tmp_path / "idx", workers=1)
    make(Recipe((root,), QUICK), tmp_path / "anew", tmp_path / "idx")
    with index, Index.load(tmp_path / "anew") as anew:
        assert room_of(index.data) is None
        assert_same(index, anew)
        for name in (
            "bm25/impacts.npy",
            "bm25/rows.npy",
            "ncs_centred/vectors.npy",
            "words.ids.npy",
            "calibration.json",
        ):
            assert (index.data / name).read_bytes() == (anew.data / name).read_bytes(), name


def test_an_index_beside_its_base_answers_all_that_an_index_is_asked(tmp_path: Path) -> None:
    root = tree(tmp_path / "src", random.Random(4))
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    (root / "app" / "sure.py").write_text('def sure(x):\n    """Zugzwang of keyboards."""\n    return zugzwang(x)\n')
    (root / "lib" / "more.py").write_text(
        "class Deep:\n    def dive(self, x):\n        return self.plunge(x, 'water')\n"
    )
    index, _ = Index.update(tmp_path / "idx", workers=1)
    with index, whole(index, root, tmp_path / "anew") as anew:
        for question in QUESTIONS:
            one, other = (each.results(question, 5).ranking for each in (index, anew))
            assert one.hits == other.hits
        sure = documents(index)[0]
        assert [hit.score for hit in index.similar(sure, 5)] == [hit.score for hit in anew.similar(sure, 5)]
        assert index.unknown_words("certain zugzwang") == anew.unknown_words("certain zugzwang")
        assert list(index.unknown_words("certain zugzwang")) == ["certain"]  # nobody says it any more
        assert index.neighbours("zugzwang") is anew.neighbours("zugzwang") is None
        assert index.neighbours("keyboard") == anew.neighbours("keyboard")
        assert index.functions().tolist() == anew.functions().tolist()
        assert index.near_spellings("zugzwan") == anew.near_spellings("zugzwan") == ["zugzwang"]
        Index.load(tmp_path / "idx", verify=True).close()
        originals = Originals(index.data)
        assert originals.of("src", "lib/more.py") == root / "lib" / "more.py"
        assert originals.name_of(root / "lib" / "more.py") == "src/lib/more.py"
        assert originals.of("app", "sure.py") == root / "app" / "sure.py"


def test_who_reads_an_index_is_not_disturbed_by_updates_beside_it(tmp_path: Path) -> None:
    root = tree(tmp_path / "src", random.Random(6))
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    with Index.load(tmp_path / "idx") as early:
        for step in range(3):
            (root / "app" / "sure.py").write_text(f"def sure{step}(x):\n    return certain(x)\n")
            Index.update(tmp_path / "idx", workers=1)[0].close()
        assert [hit.document.name for hit in early.search("sure certain", 1)] == ["sure"]
        assert hits(early, "read file", "hybrid")
    with Index.load(tmp_path / "idx") as late:
        assert [hit.document.name for hit in late.search("sure certain", 1)] == ["sure2"]


def update_killed(folder: Path, rng: random.Random) -> None:
    """Begin an update in a process of its own and kill it within half a second; it may have ended before."""
    child = os.fork()
    if not child:
        Index.update(folder, workers=1)[0].close()
        os._exit(0)
    time.sleep(rng.uniform(0, 0.5))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="updates are killed in forked processes")
def test_killed_at_any_moment_an_update_leaves_the_old_index_or_the_new_one(tmp_path: Path) -> None:
    root = tree(tmp_path / "src", random.Random(7))
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    rng, last = random.Random(1), "sure"
    for number in range(25):
        (root / "app" / "sure.py").write_text(f"def sure{number}(x):\n    return certain(x)\n")
        update_killed(tmp_path / "idx", rng)
        with Index.load(tmp_path / "idx", verify=True) as index:
            name = next(document.name for document in documents(index) if document.path == "sure.py")
            assert name in (last, f"sure{number}")
        last = name
    (root / "app" / "sure.py").write_text("def sure25(x):\n    return certain(x)\n")  # who writes clears up
    with Index.update(tmp_path / "idx", workers=1)[0] as index:
        assert "sure25" in {document.name for document in documents(index)}
    assert [path.name for path in (tmp_path / "idx").glob("data-*")] == [index.data.name]


@pytest.mark.slow
@pytest.mark.usefixtures("_believing")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="updates are killed in forked processes")
def test_killed_after_another_ignore_file_an_update_remembers_what_its_index_saw(tmp_path: Path) -> None:
    root = tree(tmp_path / "src", random.Random(7))
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    rng = random.Random(2)
    with Index.load(tmp_path / "idx") as early:
        for number in range(12):
            (root / "app" / "sure.py").write_text(f"def sure{number}(x):\n    return certain(x)\n")
            (root / "lib" / ".ncsignore").write_text(f"# {number}\n" + ("deep/\n", "nothing\n")[number % 2])
            update_killed(tmp_path / "idx", rng)
            with Index.load(tmp_path / "idx", verify=True) as index:
                updated = f"sure{number}" in {document.name for document in documents(index)}
            found, walked = looked_at(tmp_path / "idx")
            assert walked is not None
            assert (found is not None) == updated
            assert found is None or names(found.found) == names(walked.found)
            assert walked.differs != updated
        assert hits(early, "read file", "hybrid")
    (root / "app" / "sure.py").write_text("def sure12(x):\n    return certain(x)\n")
    Index.update(tmp_path / "idx", workers=1)[0].close()
    assert looked_at(tmp_path / "idx")[0] is not None
