"""Opening an index folder: what is whole opens, all else is named with its remedy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncs.errors import IndexDamaged, IndexFolderError, IndexNotFound, IndexVersion, NcsError
from ncs.storage import manifest as manifests
from ncs.storage.snapshot import DEFAULT_NAME, Hold, Manifest, find_index, new_generation, open_folder, reading


def build(folder: Path, text: str = "one") -> Manifest:
    with new_generation(folder) as generation:
        (generation.path / "bm25").mkdir()
        (generation.path / "bm25" / "idf.npy").write_text(text * 10)
        (generation.path / "documents.sqlite").write_text(text)
        return generation.commit(config={}, counts={"documents": 3}, versions={})


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "my index"
    build(folder)
    return folder


def rewrite(index: Path, **changes: Any) -> None:
    path = index / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_no_folder_is_no_index_and_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match=r"no index at .*/none; make one with: ncs build <sources> -i .*/none"):
        open_folder(tmp_path / "none")


def test_an_empty_folder_is_no_index(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match="make one with: ncs build"):
        open_folder(tmp_path)


def test_a_file_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexNotFound, match="file is not a folder; name an index folder with -i"):
        open_folder(tmp_path / "file")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(IndexDamaged, match=f"{tmp_path} has no manifest.json and is no ncs index; name another"):
        open_folder(tmp_path)


def test_an_index_whose_first_build_has_not_ended_says_so(tmp_path: Path) -> None:
    with (
        new_generation(tmp_path / "idx"),
        pytest.raises(IndexDamaged, match="its build has not ended; wait for it or build it again with: ncs build"),
    ):
        open_folder(tmp_path / "idx")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[1]",
        b"\xff\xfe",
        b'{"name": "a web page", "version": 3}',
        b'{"format": true, "generation": "data-1"}',
        b'{"format": 2, "generation": "data-1"}',
        b"[" * 100_000,
    ],
)
def test_a_garbled_manifest_is_named_with_the_remedy(index: Path, content: bytes) -> None:
    (index / "manifest.json").write_bytes(content)
    with pytest.raises(IndexDamaged, match=r"my index/manifest.json is damaged \(.*\); build it again with: ncs build"):
        open_folder(index)


def test_whatever_bytes_of_a_manifest_change_it_opens_or_is_one_of_our_errors(index: Path) -> None:
    whole = (index / "manifest.json").read_bytes()

    @settings(max_examples=300, deadline=None)
    @given(start=st.integers(0, len(whole) - 1), length=st.integers(0, 3), instead=st.binary(max_size=3))
    def opens_or_is_refused(start: int, length: int, instead: bytes) -> None:
        (index / "manifest.json").write_bytes(whole[:start] + instead + whole[start + length :])
        refused = ""
        try:
            assert open_folder(index, verify=True)[1].generation == "data-1"
        except IndexFolderError as error:
            refused = str(error)
        if refused:
            assert refused.startswith((str(index), f"index {index}"))
            assert "\n" not in refused
            assert "build it again with: ncs build" in refused

    opens_or_is_refused()


@pytest.mark.parametrize("key", ["generation", "created", "versions", "config", "counts", "notes", "files"])
def test_a_manifest_without_a_key_or_with_the_wrong_kind_is_damaged(index: Path, key: str) -> None:
    rewrite(index, **{key: 3})
    with pytest.raises(IndexDamaged, match=r"manifest.json is damaged"):
        open_folder(index)


def test_keys_of_a_later_program_with_the_same_format_are_passed_over(index: Path) -> None:
    before = open_folder(index)
    rewrite(index, shards=[1, 2])
    assert open_folder(index) == before


def test_another_format_is_refused_with_both_numbers_and_the_remedy(index: Path) -> None:
    (index / "manifest.json").write_text('{"format": 7, "generation": "v7/x", "files": "elsewhere"}')
    with pytest.raises(
        IndexVersion, match=r"index .*my index has format 7, this ncs reads 2; build it again with: ncs build <sources>"
    ):
        open_folder(index)


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "bm25/../../secret", "", "..", "C:\\x", "a\\..\\b", "a\0", "a\nb"]
)
def test_a_manifest_that_leads_outside_the_folder_is_refused(index: Path, path: str) -> None:
    (index / "secret").write_text("x")
    rewrite(index, files={path: manifests.checksum(index / "secret")})
    with pytest.raises(IndexDamaged, match="names a file outside the folder"):
        open_folder(index)


@pytest.mark.parametrize("name", ["..", ".", "../other/data-1", "data-1/..", "data-0", "data-01", "data-1.part", ""])
def test_a_generation_outside_the_folder_is_refused(index: Path, name: str) -> None:
    rewrite(index, generation=name)
    with pytest.raises(IndexDamaged, match="names a generation outside the folder"):
        open_folder(index)


def test_a_missing_file_is_named(index: Path) -> None:
    (index / "data-1" / "bm25" / "idf.npy").unlink()
    with pytest.raises(IndexDamaged, match=r"my index/data-1/bm25/idf.npy is missing; build it again with: ncs build"):
        open_folder(index)


def test_a_missing_generation_is_damage(index: Path) -> None:
    shutil.rmtree(index / "data-1")
    with pytest.raises(IndexDamaged, match="is missing; build it again"):
        open_folder(index)


def test_a_truncated_file_is_named_with_both_sizes(index: Path) -> None:
    (index / "data-1" / "bm25" / "idf.npy").write_text("one")
    with pytest.raises(IndexDamaged, match=r"idf.npy has 3 bytes instead of 30; build it again"):
        open_folder(index)


def test_an_altered_file_of_the_same_size_is_named(index: Path) -> None:
    (index / "data-1" / "documents.sqlite").write_text("two")
    with pytest.raises(IndexDamaged, match=r"documents.sqlite was altered; build it again"):
        open_folder(index)


def test_large_files_are_compared_by_size_when_opened_and_by_checksum_when_verified(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "QUICK_BYTES", 32)
    (index / "data-1" / "bm25" / "idf.npy").write_text("two" * 10)  # 30 bytes, and the 3 of documents.sqlite come first
    assert open_folder(index)[1].generation == "data-1"
    with pytest.raises(IndexDamaged, match=r"idf.npy was altered"):
        open_folder(index, verify=True)
    (index / "data-1" / "documents.sqlite").write_text("two")
    with pytest.raises(IndexDamaged, match=r"documents.sqlite was altered"):
        open_folder(index)


def test_a_folder_in_place_of_a_file_is_damage(index: Path) -> None:
    (index / "data-1" / "documents.sqlite").unlink()
    (index / "data-1" / "documents.sqlite").mkdir()
    with pytest.raises(IndexDamaged, match=r"documents.sqlite"):
        open_folder(index)


def test_a_moved_or_copied_index_opens(index: Path, tmp_path: Path) -> None:
    shutil.copytree(index, tmp_path / "copy")
    shutil.move(index, tmp_path / "moved")
    assert open_folder(tmp_path / "copy", verify=True)[0] == tmp_path / "copy" / "data-1"
    assert open_folder(tmp_path / "moved", verify=True)[0] == tmp_path / "moved" / "data-1"


def test_reading_takes_the_new_generation_where_a_build_came_between(index: Path) -> None:
    opened: list[str] = []

    def load(data: Path, manifest: Manifest) -> str:
        opened.append(manifest.generation)
        if len(opened) == 1:
            build(index, "two")
        return (data / "documents.sqlite").read_text()

    assert reading(index, load) == "two"
    assert opened == ["data-1", "data-2"]


def test_reading_takes_the_new_generation_where_the_old_one_cannot_be_held(index: Path) -> None:
    def load(data: Path, manifest: Manifest) -> str:
        if manifest.generation == "data-1":
            build(index, "two")
        Hold(data).close()
        return manifest.generation

    assert reading(index, load) == "data-2"


def test_reading_gives_up_on_an_index_that_is_replaced_again_and_again(index: Path) -> None:
    def load(data: Path, manifest: Manifest) -> str:
        build(index)
        return (data / "documents.sqlite").read_text()

    with pytest.raises(FileNotFoundError):
        reading(index, load)


def test_reading_does_not_repeat_what_fails_for_another_reason(index: Path) -> None:
    tries: list[Path] = []

    def load(data: Path, manifest: Manifest) -> None:
        tries.append(data)
        raise NcsError("no such ranker")

    with pytest.raises(NcsError, match="no such ranker"):
        reading(index, load)
    assert len(tries) == 1


def test_files_that_are_open_stay_readable_when_the_generation_is_replaced(index: Path) -> None:
    with (open_folder(index)[0] / "documents.sqlite").open() as file:
        build(index, "two")
        assert not (index / "data-1").exists()
        assert file.read() == "one"


def test_the_nearest_index_above_is_found(tmp_path: Path) -> None:
    build(tmp_path / DEFAULT_NAME)
    build(tmp_path / "a" / "b" / DEFAULT_NAME)
    (tmp_path / "a" / "b" / "c" / "d").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / DEFAULT_NAME).mkdir()  # what is not complete is passed by
    assert find_index(tmp_path / "a" / "b" / "c" / "d") == tmp_path / "a" / "b" / DEFAULT_NAME
    assert find_index(tmp_path / "a" / "b") == tmp_path / "a" / "b" / DEFAULT_NAME
    assert find_index(tmp_path / "a") == tmp_path / DEFAULT_NAME


def test_no_index_above_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match=f"no index in {tmp_path} or above; make one with: ncs build \\."):
        find_index(tmp_path)
