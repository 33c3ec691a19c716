"""Archives, good ones and evil ones."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import random
import stat
import struct
import tarfile
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from ncs.errors import SourceError
from ncs.sources import SourceFile, count
from tests.gitrepo import repository, write
from tests.rights import make_pipe
from tests.sources.walked import is_java, walked

SLOW = [pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".tar.bz2", ".tar.xz")]
SUFFIXES = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".whl", ".crate", "-sources.jar"]


def pack(path: Path, files: Mapping[str, bytes] | list[tuple[str, bytes]]) -> Path:
    """An archive whose suffix says what kind it is, members in the order given."""
    members = list(files.items()) if isinstance(files, Mapping) else files
    if path.name.endswith((".zip", ".whl", ".jar")):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return path
    kind = {"gz": "w:gz", "tgz": "w:gz", "crate": "w:gz", "bz2": "w:bz2", "xz": "w:xz"}.get(path.suffix[1:], "w")
    with tarfile.open(path, kind) as archive:  # type: ignore[call-overload]
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_kind_gives_the_same_files_in_path_order(tmp_path: Path, suffix: str) -> None:
    choose = random.Random(1)
    files = {f"{choose.choice('ab')}/{choose.choice(['x', 'x-y'])}/F{n}.java": b"class F {}\n" * n for n in range(60)}
    path = pack(tmp_path / f"lib-1.0{suffix}", {**files, "vendor/V.java": b"", "R.java": b"", "README": b""})
    packed = walked(path)
    assert packed.files == [SourceFile("lib-1.0", name, files[name]) for name in sorted(files, key=str.encode)]
    assert packed.counts == {"vendored folders": 1, "generated": 1, "other language": 1}
    assert count([path], readable=is_java) == (60, {"lib-1.0": sum(map(len, files.values()))})


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tgz"])
def test_one_folder_around_everything_is_taken_off_and_of_two_members_of_one_path_the_last_counts(
    tmp_path: Path, suffix: str
) -> None:
    members = [("package/a/A.java", b"old"), ("package/package.json", b""), ("./package//a/B.java", b"")]
    if suffix != ".zip":
        members.append(("package/a/A.java", b"newer"))
    path = pack(tmp_path / f"one{suffix}", members)
    assert walked(path).data == {"one:a/A.java": members[-1][1] or b"old", "one:a/B.java": b""}
    path = pack(tmp_path / f"two{suffix}", [*members, ("LICENSE", b"")])
    assert walked(path).names == ["two:package/a/A.java", "two:package/a/B.java"]
    path = path.rename(tmp_path / ("a.tgz" if suffix == ".zip" else "a.zip"))  # read as what it is
    assert walked(path).names == ["a:package/a/A.java", "a:package/a/B.java"]


def test_archives_directly_in_a_folder_are_repositories_and_deeper_ones_are_not(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"Loose.java": "", "zz/Z.java": "", ".ncsignore": "C.java\n!vendor/\n"})
    pack(root / "b.zip", {"p/B.java": b"", "p/C.java": b"", "p/d/D.java": b"", "p/.ncsignore": b"/d/\n"})
    pack(root / "a.tgz", {"package/A.java": b"", "package/vendor/V.java": b""})
    pack(root / "zz" / "fixture.zip", {"F.java": b""})
    app = repository(root / "app", {"A.java": ""})
    pack(app / "asset.zip", {"D.java": b""})
    files = walked(root)
    assert files.names[:3] == ["root:Loose.java", "root:zz/Z.java", "a:A.java"]
    assert files.names[3:] == ["a:vendor/V.java", "app:A.java", "b:B.java"]
    assert walked(app).names == ["app:A.java"]
    pack(root / "app.zip", {"E.java": b""})
    assert walked(root).names[-3:] == ["app:A.java", "root/app:E.java", "b:B.java"]


EVIL = ["/etc/A.java", "../A.java", "a/../../A.java", "..", "C:\\A.java", "C:/B.java", "\\\\host\\A.java"]
ODD = "a/..\\..\\B.java"  # a name like any other, where a backslash is no separator


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_members_that_point_outside_are_counted_and_never_read(tmp_path: Path, suffix: str) -> None:
    files = walked(pack(tmp_path / f"evil{suffix}", {**dict.fromkeys([*EVIL, ODD], b"x"), "ok/A.java": b"a"}))
    assert all(".." not in file.path.split("/") and not file.path.startswith("/") for file in files.files)
    assert files.data["evil:ok/A.java"] == b"a"
    assert files.counts["unsafe archive members"] >= 6
    assert [path.name for path in tmp_path.iterdir()] == [f"evil{suffix}"]


def test_links_and_devices_are_counted(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE)
        for n, kind in enumerate(kinds):
            member = tarfile.TarInfo(f"x/L{n}.java")
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        link = zipfile.ZipInfo("L.java")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    for name, counts in (("a.tar", {"links": 2, "special files": 3}), ("a.zip", {"links": 1})):
        assert (walked(tmp_path / name).names, walked(tmp_path / name).counts) == ([], counts)


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", *SLOW])
def test_a_damaged_archive_is_refused_by_itself_and_noted_in_a_folder(tmp_path: Path, suffix: str) -> None:
    choose = random.Random(1)
    root = write(tmp_path / "root", {"Loose.java": ""})
    path = pack(root / f"a{suffix}", {f"F{n}.java": choose.randbytes(3000) for n in range(20)})
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2 + 300], whole[:100], b"", b"no archive at all" * 100):
        path.write_bytes(damaged)
        with pytest.raises(SourceError, match=r"a\..* is not a valid archive \(.*\); fetch or unpack it"):
            walked(path)
        files = walked(root)
        assert (files.names, files.counts) == (["root:Loose.java"], {"unreadable": 1})
        assert (files.skipped.unreadable, len(files.skipped.notes)) == ([path.name], 1)
    for _ in range(150):  # random damage never escapes as another error
        mutated = bytearray(whole)
        for _ in range(choose.randint(1, 4)):
            mutated[choose.randrange(len(mutated))] = choose.randrange(256)
        path.write_bytes(mutated)
        try:
            walked(path)
        except SourceError:
            continue


def edit(path: Path, local: int, central: int, form: str, change: int) -> None:
    """Set a field of the first member, in both of a zip's headers."""
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        struct.pack_into(form, data, data.index(signature) + offset, change)
    path.write_bytes(data)


def test_members_of_a_zip_that_cannot_be_read_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("A.java", "aaaa")
        archive.writestr("B.java", "bbbb")
    path.write_bytes(path.read_bytes().replace(b"aaaa", b"axaa"))
    assert (walked(path).names, walked(path).skipped.unreadable) == (["a:B.java"], ["A.java"])
    encrypted = pack(tmp_path / "e.zip", {"A.java": b"a"})
    edit(encrypted, 6, 8, "<H", 1)
    longer = pack(tmp_path / "l.zip", {"A.java": bytes(5 << 20)})  # than it says
    edit(longer, 22, 24, "<I", 100)
    for path in (encrypted, longer):
        assert (walked(path).names, walked(path).counts) == ([], {"unreadable": 1})


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_a_file_over_the_limit_is_counted_and_a_notebook_may_be_larger(tmp_path: Path, suffix: str) -> None:
    path = pack(tmp_path / f"a{suffix}", {"A.java": b"1234567", "B.java": b"12345678", "n.ipynb": b"12345678"})
    files = walked(path, readable=lambda path: True, file_bytes=7, notebook_bytes=8)
    assert (files.names, files.counts) == (["a:A.java", "a:n.ipynb"], {"too large": 1})


class _Zeros(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        return bytes(size)


@pytest.mark.parametrize("suffix", [".tar.gz", *SLOW])
def test_a_bomb_of_zeros_is_refused_long_before_its_end(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"bomb{suffix}"
    with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("zeros.bin")
        member.size = 70 << 20
        archive.addfile(member, _Zeros())
    assert path.stat().st_size < 100_000
    with pytest.raises(SourceError, match="unpacks to more than"):
        walked(path)


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_too_many_bytes_or_members_are_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(SourceError, match=r"unpacks to more than 67,108,864 bytes"):
        walked(pack(tmp_path / f"bomb{suffix}", {f"F{n}.java": bytes(1 << 20) for n in range(70)}))
    with pytest.raises(SourceError, match="unpacks to more than 1,000 bytes"):
        walked(pack(tmp_path / f"big{suffix}", {"A.java": os.urandom(2000)}), archive_bytes=1000)
    path = pack(tmp_path / f"a{suffix}", dict.fromkeys((f"F{n}" for n in range(50)), b""))
    assert walked(path, archive_members=50).names == []
    with pytest.raises(SourceError, match="has more than 49 members; if you trust it, unpack it"):
        walked(path, archive_members=49)


def test_long_names_count_as_several_members(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tar.gz", {f"{'a/' * 2_000}F{n}": b"" for n in range(100)})
    assert walked(path).names == []
    with pytest.raises(SourceError, match="has more than 1,000 members"):
        walked(path, archive_members=1_000)


def test_a_member_without_a_name_is_counted(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"A": b"a", "B.java": b"b"})
    data = path.read_bytes()
    at = data.index(b"PK\1\2")
    cut = data[:at] + data[at:].replace(b"\1\0\0\0\0\0", bytes(6), 1).replace(b"A", b"", 1)
    path.write_bytes(cut.replace(struct.pack("<I", len(data) - 22 - at), struct.pack("<I", len(data) - 23 - at)))
    assert walked(path).data == {"a:B.java": b"b"}


def peak_of(path: Path) -> tuple[int, Exception | None]:
    """The memory that a walk over this archive takes, and the error that it ends with."""
    error = None
    tracemalloc.start()
    try:
        assert walked(path).names == []
    except SourceError as raised:
        error = raised
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, error


def test_a_header_of_gigabytes_does_not_fill_the_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 2 << 30
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(40):
            file.write(bytes(1 << 20))
    peak, error = peak_of(path)
    assert "a header too long" in str(error)
    assert peak < 5 << 20


@pytest.mark.slow
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_that_claims_sixty_bytes_and_holds_millions_takes_little_memory(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive, archive.open("A.java", "w") as member:
        for _ in range(64):
            member.write(bytes(1 << 20))
    edit(tmp_path / "a.zip", 22, 24, "<I", 60)
    peak, error = peak_of(tmp_path / "a.zip")
    assert error is None
    assert peak < 20 << 20
    assert walked(tmp_path / "a.zip").counts == {"unreadable": 1}


def test_a_list_of_ten_million_members_is_not_read(tmp_path: Path) -> None:
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", *(0,) * 9, 1, *(0,) * 6) + b"A"
    for members in (600_000, 10_000_000):
        with (tmp_path / "a.zip").open("wb") as file:
            file.write(b"PK\3\4" + bytes(26))
            if members < 1_000_000:
                file.write(entry * members)
            else:
                file.seek(len(entry) * members, os.SEEK_CUR)  # a hole
            file.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(entry) * members, 30, 0))
        peak, error = peak_of(tmp_path / "a.zip")
        assert "has more than 500,000 members" in str(error)
        assert peak < 64 << 20


def test_an_xz_file_that_asks_for_gigabytes_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 16}]
    packed = bytearray(lzma.compress(bytes(1 << 20), lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=filters))
    assert packed[16] == 8  # the size of the dictionary, 2 ** 16
    packed[16] = 40  # 4 GiB
    packed[20:24] = zlib.crc32(packed[12:20]).to_bytes(4, "little")
    (tmp_path / "a.tar.xz").write_bytes(packed)
    peak, error = peak_of(tmp_path / "a.tar.xz")
    assert "Memory usage limit" in str(error)
    assert peak < 20 << 20


def test_xz_files_of_several_streams_and_padding_are_read(tmp_path: Path) -> None:
    whole = pack(tmp_path / "a.tar", {"A.java": b"a" * 700_000, "B.java": b"b\n"}).read_bytes()
    pieces = [lzma.compress(whole[at : at + 100_000]) for at in range(0, len(whole), 100_000)]
    (tmp_path / "a.tar.xz").write_bytes(b"".join(pieces) + bytes(8))
    assert walked(tmp_path / "a.tar.xz").data == walked(tmp_path / "a.tar").data
    (tmp_path / "a.tar.xz").write_bytes(b"".join(pieces)[:-20])
    with pytest.raises(SourceError, match="not a valid archive"):
        walked(tmp_path / "a.tar.xz")


def pax(records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    header = tarfile.TarInfo("pax")
    header.type, header.size = kind, len(records)
    return header.tobuf(tarfile.USTAR_FORMAT) + records + bytes(-len(records) % 512)


@pytest.mark.parametrize(
    "hostile",
    [
        b"1" * 60_000,
        b"".join(b"%d %d=" % (n % 10, n) for n in range(9_000)),
        b"30 GNU.sparse.major=1\n30 GNU.sparse.minor=0\n",
        b"1000000000000000000 path=A.java\n",
        b"11 size=-9\n",
    ],
)
def test_hostile_headers_of_a_tar_take_neither_time_nor_memory(tmp_path: Path, hostile: bytes) -> None:
    file = tarfile.TarInfo("A.txt").tobuf(tarfile.USTAR_FORMAT)
    for kind in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
        with gzip.open(tmp_path / "a.tar.gz", "wb", compresslevel=1) as archive:
            for _ in range(60):
                archive.write(pax(hostile, kind) + file)
        began = time.process_time()
        peak, _ = peak_of(tmp_path / "a.tar.gz")
        assert peak < 20 << 20
        assert time.process_time() - began < 10


def test_an_archive_that_is_a_pipe_or_cannot_be_opened_is_left_out(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"A.java": ""})
    make_pipe(root / "x.zip")
    (root / "y.zip").symlink_to("/dev/zero")
    assert (walked(root).names, walked(root).counts) == (["root:A.java"], {"other language": 2})
