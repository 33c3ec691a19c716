"""Archives, good ones and evil ones."""

from __future__ import annotations

import gzip
import io
import os
import random
import stat
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from ncs.errors import SourceError
from ncs.sources import Limits, Skipped, SourceFile, count, walk
from tests.gitrepo import git, repository, write

SUFFIXES = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".whl", ".crate", "-sources.jar"]


def is_java(path: str) -> bool:
    return path.endswith(".java")


def read(root: Path, *, skipped: Skipped | None = None, limits: Limits | None = None) -> list[SourceFile]:
    return list(walk([root], wanted=is_java, skipped=skipped, limits=limits or Limits()))


def names(root: Path, *, skipped: Skipped | None = None, limits: Limits | None = None) -> list[str]:
    return [f"{file.repository}:{file.path}" for file in read(root, skipped=skipped, limits=limits)]


def pack(path: Path, files: Mapping[str, bytes]) -> Path:
    """An archive whose suffix says what kind it is, members in the order given."""
    if path.name.endswith((".zip", ".whl", ".jar")):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    kind = {"gz": "w:gz", "tgz": "w:gz", "crate": "w:gz", "bz2": "w:bz2", "xz": "w:xz"}.get(path.suffix[1:], "w")
    with tarfile.open(path, kind) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_kind_gives_the_same_files_in_path_order(tmp_path: Path, suffix: str) -> None:
    choose = random.Random(1)
    files = {f"{choose.choice('ab')}/{choose.choice(['x', 'x-y'])}/F{n}.java": b"class F {}\n" * n for n in range(60)}
    path = pack(tmp_path / f"lib-1.0{suffix}", {**files, "vendor/V.java": b"", "R.java": b"", "README": b""})
    skipped = Skipped()
    assert read(path, skipped=skipped) == [
        SourceFile("lib-1.0", name, files[name]) for name in sorted(files, key=str.encode)
    ]
    assert skipped.counts == {"vendored folders": 1, "generated": 1, "other language": 1}
    assert count([path], wanted=is_java) == (60, sum(map(len, files.values())))


@pytest.mark.parametrize("suffix", [".zip", ".tgz"])
def test_one_folder_around_everything_is_taken_off(tmp_path: Path, suffix: str) -> None:
    packed = {"package/a/A.java": b"", "package/package.json": b"", "./package//a/B.java": b""}
    assert names(pack(tmp_path / f"one{suffix}", packed)) == ["one:a/A.java", "one:a/B.java"]
    packed["LICENSE"] = b""
    assert names(pack(tmp_path / f"two{suffix}", packed)) == ["two:package/a/A.java", "two:package/a/B.java"]


def test_an_archive_of_git_gives_what_the_repository_gives(tmp_path: Path) -> None:
    app = repository(tmp_path / "app", {"src/A.java": "a", "src-x/B.java": "b", "README": ""})
    git(app, "archive", "--prefix=app-main/", "-o", str(tmp_path / "a.tar.gz"), "HEAD")
    git(app, "archive", "-o", str(tmp_path / "b.zip"), "HEAD")
    expected = [(file.path, file.data) for file in read(app)]
    for name in ("a.tar.gz", "b.zip"):
        assert [(file.path, file.data) for file in read(tmp_path / name)] == expected


def test_archives_directly_in_a_folder_are_repositories_and_deeper_ones_are_not(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"Loose.java": "", "zz/Z.java": ""})
    pack(root / "b.zip", {"B.java": b""})
    pack(root / "a.tgz", {"package/A.java": b""})
    pack(root / "zz" / "fixture.zip", {"F.java": b""})
    app = repository(root / "app", {"C.java": ""})
    pack(app / "asset.zip", {"D.java": b""})
    skipped = Skipped()
    assert names(root, skipped=skipped) == ["root:Loose.java", "root:zz/Z.java", "a:A.java", "app:C.java", "b:B.java"]
    assert skipped.counts == {"other language": 2}
    assert names(app) == ["app:C.java"]
    pack(root / "app.zip", {"E.java": b""})
    assert names(root)[-3:] == ["app:C.java", "root/app:E.java", "b:B.java"]


EVIL = [
    "/etc/A.java",
    "../A.java",
    "a/../../A.java",
    "..",
    "C:\\A.java",
    "C:/A.java",
    "\\\\host\\A.java",
    "a/..\\..\\B.java",
]


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_members_that_point_outside_are_counted_and_never_read(tmp_path: Path, suffix: str) -> None:
    skipped = Skipped()
    path = pack(tmp_path / f"evil{suffix}", {**dict.fromkeys(EVIL, b"x"), "ok/A.java": b"a"})
    files = read(path, skipped=skipped)
    assert all(".." not in file.path.split("/") and not file.path.startswith("/") for file in files)
    assert SourceFile("evil", "ok/A.java", b"a") in files
    assert skipped.counts["unsafe archive members"] >= 6
    assert [path.name for path in tmp_path.iterdir()] == [f"evil{suffix}"]


def test_links_and_devices_in_a_tar_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE)
        for n, kind in enumerate(kinds):
            member = tarfile.TarInfo(f"x/L{n}.java")
            member.type = kind
            member.linkname = "/etc/passwd"
            archive.addfile(member)
    skipped = Skipped()
    assert names(path, skipped=skipped) == []
    assert skipped.counts == {"links": 2, "special files": 3}


def test_links_in_a_zip_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("L.java")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    skipped = Skipped()
    assert names(path, skipped=skipped) == []
    assert skipped.counts == {"links": 1}


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz"])
def test_of_two_members_of_one_path_the_last_counts(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    with tarfile.open(path, "w:gz" if suffix.endswith("gz") else "w") as archive:
        for content in (b"old", b"newer"):
            member = tarfile.TarInfo("A.java")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    assert read(path) == [SourceFile("a", "A.java", b"newer")]


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz"])
def test_a_broken_archive_is_refused_by_itself_and_noted_in_a_folder(tmp_path: Path, suffix: str) -> None:
    choose = random.Random(1)
    root = write(tmp_path / "root", {"Loose.java": ""})
    path = pack(root / f"a{suffix}", {f"F{n}.java": choose.randbytes(3000) for n in range(20)})
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2 + 300], whole[:100], b"", b"no archive at all" * 100):
        path.write_bytes(damaged)
        with pytest.raises(SourceError, match=r"a\..* is not a valid archive \(.*\); fetch or unpack it"):
            read(path)
        skipped = Skipped()
        assert names(root, skipped=skipped) == ["root:Loose.java"]
        assert skipped.counts == {"unreadable": 1}
        assert skipped.unreadable == [path.name]
        assert len(skipped.notes) == 1


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tar.xz", ".tar.bz2"])
def test_random_damage_never_escapes_as_another_error(tmp_path: Path, suffix: str) -> None:
    choose = random.Random(2)
    path = pack(tmp_path / f"a{suffix}", {f"F{n}.java": b"class F {}" * n for n in range(30)})
    whole = path.read_bytes()
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(choose.randint(1, 4)):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        path.write_bytes(damaged)
        try:
            read(path)
        except SourceError:
            continue


def test_a_damaged_member_of_a_zip_is_unreadable_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("A.java", "aaaa")
        archive.writestr("B.java", "bbbb")
    path.write_bytes(path.read_bytes().replace(b"aaaa", b"axaa"))
    skipped = Skipped()
    assert names(path, skipped=skipped) == ["a:B.java"]
    assert skipped.unreadable == ["A.java"]


def test_an_encrypted_member_is_unreadable(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"A.java": b"a"})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    skipped = Skipped()
    assert names(path, skipped=skipped) == []
    assert skipped.counts == {"unreadable": 1}


def test_a_file_over_the_limit_is_counted_and_not_unpacked(tmp_path: Path) -> None:
    for suffix in (".zip", ".tar.gz"):
        path = pack(tmp_path / f"a{suffix}", {"A.java": b"1234567", "B.java": b"12345678"})
        skipped = Skipped()
        assert names(path, skipped=skipped, limits=Limits(file_bytes=7)) == ["a:A.java"]
        assert skipped.counts == {"too large": 1}


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.bz2", ".tar.xz"])
def test_a_bomb_of_zeros_is_refused_long_before_its_end(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"bomb{suffix}"
    with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("zeros.bin")
        member.size = 70 << 20
        archive.addfile(member, _Zeros())
    assert path.stat().st_size < 100_000
    with pytest.raises(SourceError, match="unpacks to more than"):
        read(path)


class _Zeros(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        return bytes(size)


def test_a_bomb_of_many_files_is_refused(tmp_path: Path) -> None:
    files = {f"F{n}.java": bytes(1 << 20) for n in range(70)}
    for suffix in (".zip", ".tar.gz"):
        with pytest.raises(SourceError, match=r"unpacks to more than 67,108,864 bytes"):
            read(pack(tmp_path / f"bomb{suffix}", files))
    with pytest.raises(SourceError, match="unpacks to more than 1,000 bytes"):
        read(pack(tmp_path / "big.zip", {"A.java": os.urandom(2000)}), limits=Limits(archive_bytes=1000))


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    files = dict.fromkeys((f"F{n}" for n in range(50)), b"")
    for suffix in (".zip", ".tar"):
        path = pack(tmp_path / f"a{suffix}", files)
        assert names(path, limits=Limits(archive_members=50)) == []
        with pytest.raises(SourceError, match="has more than 49 members; if you trust it, unpack it"):
            read(path, limits=Limits(archive_members=49))


def test_a_zip_that_lies_about_a_size_gives_no_more_than_it_says(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"A.java": bytes(5 << 20)})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(signature) + offset, 100)
    path.write_bytes(data)
    skipped = Skipped()
    assert names(path, skipped=skipped) == []
    assert skipped.counts == {"unreadable": 1}


def test_a_header_of_gigabytes_does_not_fill_the_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 2 << 30
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(40):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(SourceError, match="a header too long"):
        read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 << 20


def test_an_ncsignore_in_an_archive_and_beside_it_holds(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {".ncsignore": "B.java\n!vendor/\n"})
    files = {"p/A.java": b"", "p/B.java": b"", "p/c/C.java": b"", "p/vendor/V.java": b"", "p/.ncsignore": b"/c/\n"}
    for suffix in (".zip", ".tgz"):
        pack(root / f"x{suffix}", files)
        assert names(root) == ["x:A.java", "x:vendor/V.java"]
        (root / f"x{suffix}").unlink()


def test_a_zip_under_a_tars_name_is_read_as_what_it_is(tmp_path: Path) -> None:
    pack(tmp_path / "a.zip", {"A.java": b"a"}).rename(tmp_path / "a.tgz")
    assert names(tmp_path / "a.tgz") == ["a:A.java"]
