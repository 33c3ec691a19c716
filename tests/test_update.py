"""An index brought up to date equals one built anew with the same word vectors, whatever happened to the files."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from ncs.build.building import make
from ncs.learn.word_vectors import PENDING

from ncs.answer import Answer, ask
from ncs.build import file_cache as reuse
from ncs.build import first_segment as early
from ncs.build.request import Recipe
from ncs.config import BuildConfig, FastTextConfig
from ncs.errors import BadInput, SourceError
from ncs.index import Index
from ncs.storage.files import FileEntry, FileTable
from ncs.storage.snapshot import read_description
from ncs.types import NCS_FIELDS, Document
from tests import corpus, gitrepo
from tests.command import ncs

T = TypeVar("T")
QUICK = BuildConfig(fasttext=FastTextConfig(dim=8, epochs=1, least_words=1, min_count=1))
VERBS = ("read", "write", "open", "close", "hide", "show", "parse", "encode", "fetch", "store")
ALPHA = "def alpha(x):\n    return go(x)\n"
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
    action = rng.choice(("write", "write", "add", "add", "remove", "rename", "swap", "touch", "copy", "init"))
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
    elif action == "init" and not (root / "zoo" / ".git").exists() and (root / "zoo").is_dir():
        gitrepo.git(root / "zoo", "init", "-q")


def documents(index: Index) -> list[Document]:
    return index.documents.documents(range(len(index)))


def assert_equal(updated: Index, anew: Index) -> None:
    assert documents(updated) == documents(anew)
    left, right = FileTable.load(updated.data), FileTable.load(anew.data)
    assert left is not None
    assert right is not None
    assert _without_stamps(left) == _without_stamps(right)
    assert np.array_equal(left.rows, right.rows)
    assert np.array_equal(left.copies, right.copies)
    names, others = (sorted(manifest.files) for manifest in (anew.description, updated.description))
    assert names == others
    for name in names:
        if name != "documents.sqlite" and not name.startswith("files/"):  # bytes depend on how rows were batched
            assert (updated.data / name).read_bytes() == (anew.data / name).read_bytes(), name
    for key in ("documents", "copies", "files", "source_bytes", "broken", "broken_files", "repositories", "languages"):
        assert updated.description.counts[key] == anew.description.counts[key], key


def _without_stamps(table: FileTable) -> list[FileEntry]:
    """A file that was only touched keeps the stamp it was read with."""
    return [replace(entry, stamp="") for entry in table.entries]


def anew(index: Index, root: Path, folder: Path) -> Index:
    """A whole build with the word vectors of an index."""
    make(Recipe((root,), QUICK), folder, index.folder)
    return Index.load(folder)


@pytest.mark.parametrize("seed", range(3))
def test_after_any_edits_an_update_equals_a_build_with_the_same_word_vectors(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root = tmp_path / "src"
    for i in range(12):
        path = root / rng.choice(("app", "lib/deep", "zoo")) / f"m{i}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source(rng))
    (root / "app" / "sure.py").write_bytes(b"def sure(x):\n    return certain(x)\n")
    gitrepo.git(root / "app", "init", "-q") if (root / "app").exists() else None
    index = Index.build(root, tmp_path / "idx", config=QUICK)
    for step in range(6):
        for _ in range(rng.randint(1, 4)):
            edit(root, rng)
        if rng.random() < 0.5:  # long ago, so that times are believed
            _age(tmp_path / "idx")
        with index:
            updated, _ = Index.update(tmp_path / "idx", workers=1)
        with anew(updated, root, tmp_path / f"anew{step}") as whole:
            assert_equal(updated, whole)
        index = updated
    index.close()


def _age(folder: Path) -> None:
    """As if the build had begun long after the files were written: their times are not racy then."""
    manifest = folder / "manifest.json"
    text = manifest.read_text("utf-8")
    began = text.index('"began": ') + len('"began": ')
    manifest.write_text(text[:began] + "9" + text[began:], "utf-8")


def test_switching_branches_and_new_commits_of_a_bare_repository_are_followed(tmp_path: Path) -> None:
    root = tmp_path / "repos"
    work = gitrepo.repository(
        root / "work", {"a.py": "def alpha(x):\n    return go(x)\n", "b.py": "def beta(): pass\n"}
    )
    gitrepo.git(work, "switch", "-q", "-c", "other")
    gitrepo.commit(work, {"a.py": "def gamma(x):\n    return stay(x)\n"})
    origin = tmp_path / "origin"
    gitrepo.repository(
        origin, {"c.py": "def delta(x):\n    return leave(x)\n", "d.py": "def same(x):\n    return go(x)\n"}
    )
    gitrepo.git(root, "clone", "-q", "--bare", str(origin), str(root / "bare.git"))
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    gitrepo.git(work, "switch", "-q", "main")
    gitrepo.commit(origin, {"c.py": "def epsilon(x):\n    return arrive(x)\n"})
    gitrepo.git(root / "bare.git", "fetch", "-q", str(origin), "main:main")
    updated, changes = Index.update(tmp_path / "idx")
    assert changes.changed == ("bare/c.py", "work/a.py")
    assert (changes.added, changes.removed, changes.unchanged) == ((), (), 2)
    names = {document.name for document in documents(updated)}
    assert {"alpha", "beta", "epsilon"} <= names
    assert not {"gamma", "delta"} & names
    with updated, anew(updated, root, tmp_path / "anew") as whole:
        assert_equal(updated, whole)


def test_the_copy_takes_over_with_its_own_comment_when_the_original_goes(tmp_path: Path) -> None:
    body = "def same(x):\n    # {}\n    return go(x, 'there')\n"
    root = gitrepo.write(tmp_path / "src", {"a.py": body.format("first"), "b.py": body.format("second")})
    with Index.build(root, tmp_path / "idx", config=QUICK) as index:
        assert [copy.path for copy in documents(index)[0].copies] == ["b.py"]
    _age(tmp_path / "idx")
    (root / "a.py").unlink()
    updated, changes = Index.update(tmp_path / "idx")
    assert changes.removed == ("src/a.py",)
    (document,) = (each for each in documents(updated) if each.name == "same")
    assert (document.path, document.words["comments"], document.copies) == ("b.py", ("second",), ())


def test_where_nothing_changed_nothing_is_written(tmp_path: Path) -> None:
    root = corpus.write(tmp_path / "repos")
    with Index.build(root, tmp_path / "idx", config=QUICK) as index:
        before = index.description
    (root / "tools" / "notes.bin").write_bytes(b"\0")
    updated, changes = Index.update(tmp_path / "idx")
    assert not changes
    assert changes.unchanged == before.counts["files"]
    assert updated.description == before


def test_a_file_that_changed_within_the_grain_of_the_clock_is_seen(tmp_path: Path) -> None:
    root = gitrepo.write(tmp_path / "src", {"a.py": "def early(x):\n    return go(x)\n"})
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    times = (root / "a.py").stat()
    (root / "a.py").write_text("def later(x):\n    return go(x)\n")
    os.utime(root / "a.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    updated, changes = Index.update(tmp_path / "idx")
    assert changes.changed == ("src/a.py",)
    assert [document.name for document in documents(updated) if document.kind == "function"] == ["later"]


def test_a_build_takes_over_what_is_known_and_gives_what_a_fresh_one_gives(tmp_path: Path) -> None:
    root = corpus.write(tmp_path / "repos")
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    _age(tmp_path / "idx")
    (root / "tools" / "files.py").write_text("def brand_new(x):\n    return lemon(x)\n")
    with (
        Index.build(root, tmp_path / "idx", config=QUICK) as again,
        Index.build(root, tmp_path / "fresh", config=QUICK) as fresh,
    ):
        assert_equal(again, fresh)
        assert [path.name for path in sorted((tmp_path / "idx").glob("data-*"))] == ["data-2"]


def test_new_words_have_no_vector_until_a_retraining_and_the_share_is_told(tmp_path: Path) -> None:
    root = corpus.write(tmp_path / "repos")
    with Index.build(root, tmp_path / "idx", config=QUICK) as index:
        before = len(index.words().select(NCS_FIELDS)[0])
    (root / "tools" / "new.py").write_text("def zugzwang(x):\n    return zugzwang(zugzwang(x))\n")
    updated, _ = Index.update(tmp_path / "idx")
    with updated:
        assert updated.neighbours("zugzwang") is None
        ids, _ = updated.words().select(NCS_FIELDS)
        training = updated.description.counts["training"]
        assert isinstance(training, dict)
        new = np.count_nonzero(ids == updated.words().vocabulary.id("zugzwang"))
        assert new == 3
        missing = training["without_vector"] * before + new
        assert training["without_vector_now"] == pytest.approx(missing / len(ids), abs=1e-5)
    retrained, changes = Index.update(tmp_path / "idx", retrain=True)
    with retrained:
        assert not changes
        assert retrained.neighbours("zugzwang")


def test_an_index_of_documents_at_hand_says_how_to_renew_it(tmp_path: Path) -> None:
    with Index.build(corpus.write(tmp_path / "repos"), tmp_path / "idx", config=QUICK) as index:
        Index.of(documents(index), tmp_path / "of", config=QUICK).close()
    with pytest.raises(BadInput, match="build it again with: ncs build <sources>"):
        Index.update(tmp_path / "of")


def test_an_index_whose_sources_are_gone_stays_as_it_was(tmp_path: Path) -> None:
    root = corpus.write(tmp_path / "repos")
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    shutil.rmtree(root)
    with pytest.raises(SourceError, match="there is no"):
        Index.update(tmp_path / "idx")
    with Index.load(tmp_path / "idx", verify=True) as index:
        assert index.search("hide soft keyboard")


def test_the_command_says_what_changed_and_when_to_learn_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = gitrepo.write(tmp_path / "src", {"a.py": ALPHA, "b.py": "def beta(x):\n    return stay(x)\n"})
    Index.build(root, tmp_path / "idx", config=QUICK).close()
    (root / "b.py").unlink()
    (root / "a.py").write_text("def gamma(x):\n    return leave(x)\n")
    (root / "c.py").write_text("def delta(x):\n    return arrive(x)\n")
    said = ncs("update", "-i", "idx", "-v", cwd=tmp_path).stderr
    assert "1 new, 1 changed, 1 removed, 0 files as before; 2 functions" in said
    assert "newer than the word vectors; learn them with: ncs update --retrain" in said
    assert {"new: src/c.py", "changed: src/a.py", "removed: src/b.py"} <= set(said.splitlines())
    assert "nothing changed, 2 files as before" in ncs("update", "-i", "idx", cwd=tmp_path).stderr


def test_a_first_build_answers_by_words_while_vectors_are_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "EARLY", 1)
    seen: list[Answer] = []

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        if stage == "training embeddings":
            with Index.load(tmp_path / "idx", verify=True) as unfinished:
                seen.append(ask(unfinished, "hide soft keyboard", ranker="hybrid"))
        yield from items

    with Index.build(corpus.write(tmp_path / "repos"), tmp_path / "idx", config=QUICK, track=track) as index:
        assert ask(index, "hide soft keyboard", ranker="hybrid")["notes"] == []
        assert sorted(path.name for path in (tmp_path / "idx").glob("data-*")) == [index.data.name]
        index.load(tmp_path / "idx", verify=True).close()
    (answer,) = seen
    assert answer["hits"][0]["qualified_name"] == "Keyboards.hideSoftKeyboard"
    assert answer["notes"] == [PENDING]


@pytest.mark.parametrize("stamps", ["believed", "racy"])
def test_the_first_files_of_a_large_first_build_answer_while_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stamps: str
) -> None:
    if stamps == "believed":
        monkeypatch.setattr(reuse, "RACY", -(10**18))
    root = corpus.write(tmp_path / "repos")
    Index.build(root, one := tmp_path / "at once", config=QUICK).close()
    monkeypatch.setattr(early, "LARGE", 1)
    monkeypatch.setattr(early, "EARLY", 1)
    seen: list[tuple[str, int, Answer]] = []

    def track(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        if stage in ("reading functions", "training embeddings"):
            with Index.load(tmp_path / "idx", verify=True) as unfinished:
                seen.append((stage, len(unfinished), ask(unfinished, "hide soft keyboard", ranker="hybrid")))
        yield from items

    with (
        Index.build(root, tmp_path / "idx", config=QUICK, track=track) as index,
        Index.load(one) as at_once,
    ):
        assert_equal(index, at_once)
        assert_same_files(tmp_path / "idx", one)
        assert sorted(path.name for path in (tmp_path / "idx").glob("data-*")) == [index.data.name]
        whole = len(index)
    (first, some, early_answer), (second, everything, answer) = seen
    assert (first, second) == ("reading functions", "training embeddings")
    assert 0 < some < everything == whole
    assert early_answer["hits"]
    (note,) = early_answer["notes"]
    assert re.fullmatch(r"\d+ of \d+ files were read so far; they are found by their words only", note)
    assert answer["notes"] == [PENDING]


def build_stopped(root: Path, folder: Path, at: str) -> None:
    """A build that somebody ends at a stage."""

    def stopped(items: Iterable[T], stage: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
        if stage == at:
            raise KeyboardInterrupt
        yield from items

    with pytest.raises(KeyboardInterrupt):
        Index.build(root, folder, config=QUICK, track=stopped)


@pytest.mark.parametrize("again", ["build", "update"])
def test_a_build_that_ended_among_its_files_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    monkeypatch.setattr(early, "LARGE", 1)
    root = corpus.write(tmp_path / "repos")
    build_stopped(root, tmp_path / "idx", at="reading functions")
    Index.load(tmp_path / "idx", verify=True).close()  # what was read answers
    _age(tmp_path / "idx")
    if again == "build":
        Index.build(root, tmp_path / "idx", config=QUICK).close()
    else:
        Index.update(tmp_path / "idx")[0].close()
    with Index.load(tmp_path / "idx") as index, Index.build(root, tmp_path / "fresh", config=QUICK) as fresh:
        assert "pending" not in index.description.counts
        assert_equal(index, fresh)


def test_where_the_first_files_hold_no_function_all_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "LARGE", 1)
    root = gitrepo.write(tmp_path / "src", {"a.py": "# nothing\n" * 100, "b.py": ALPHA})
    with Index.build(root, tmp_path / "idx", config=QUICK) as index:
        assert len(index) >= 1


def assert_same_files(one: Path, other: Path) -> None:
    """Every file of both: the same bytes."""
    assert read_description(one).files == read_description(other).files


def test_an_update_goes_on_with_a_build_that_ended_before_its_vectors_were_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "EARLY", 1)
    root = corpus.write(tmp_path / "repos")
    build_stopped(root, tmp_path / "idx", at="training embeddings")
    _age(tmp_path / "idx")
    updated, changes = Index.update(tmp_path / "idx")
    with updated, Index.build(root, tmp_path / "fresh", config=QUICK) as fresh:
        assert not changes
        assert "pending" not in updated.description.counts
        assert_equal(updated, fresh)
    assert not Index.update(tmp_path / "idx")[1]
