"""Archives that a stranger made or a disk damaged, beside a good one and a source file.

A walk gives the good files, ends in time and in little memory, writes nothing, and gives no file or link from outside.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ncs.errors import SourceError
from ncs.sources import Limits
from tests.gitrepo import zipped
from tests.sources.walked import Walked, walked

SECONDS = 120.0
MEMORY = 512 << 20
CASES = 20

SECRET = b"c4n4ry-0f-4-s3cr3t-f1l3"
SUFFIXES = (
    *(".zip", ".whl", "-sources.jar", ".tar", ".tar.gz", ".tgz", ".crate", ".tar.bz2", ".tbz2", ".tar.xz", ".txz"),
)
NAMES = (
    *("A.java", "B.java", "a/C.java", "a/b/D.java", "package/E.java", "n.ipynb", "x.bin", ".ncsignore", "a/.ncsignore"),
    *("../secret.java", "/etc/passwd", "..", ".", "", "/", "a/../../secret.java", "C:\\A.java", "..\\secret.java"),
    *("a/" * 3000 + "A.java", "x" * 300 + ".java", "a\nb.java", "\x1b[31m.java", "caf\xe9.java", "vendor/V.java"),
    *("a//b.java", "./A.java", "A.java/", "A.java/B.java", "x.zip", "\u202e.java"),
)
LIMITS = Limits(archive_bytes=64 << 20, archive_members=2_000)
"""Lower ones, so that cases are small."""
NUMBERS = (0, 1, 60, 511, 512, 513, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62, (1 << 64) - 1)


def generate(random: Random) -> bytes:
    make = random.choice((make_zip, make_tar, make_tar))
    suffix = random.choice(SUFFIXES)
    data = make(random, random.choice((0, 0, 0, 0.01, 0.1)))
    if make is make_tar and random.random() < 0.7:
        data = random.choice(PACKERS)(data)
    if random.random() < 0.04:  # one in another
        data = random.choice((lambda data: zipped({"inner.tar": data, "A.java": "a"}), *PACKERS))(data)
    if random.random() < 0.25:
        data = damaged(data, random)
    return suffix.encode() + b"\n" + data


def check(case: bytes, room: Path) -> None:
    suffix, _, data = case.partition(b"\n")
    (room.parent / "secret.java").write_bytes(SECRET)
    (room / "A.java").write_bytes(b"class A {}\n")
    (room / "good.zip").write_bytes(zipped({"B.java": "class B {}\n"}))
    path = room / f"x{suffix.decode()}"
    path.write_bytes(data)
    (room.parent / "tmp").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(room.parent / "tmp"))
        walk = walk_over(room)
        assert walk.data.pop("good:B.java") == b"class B {}\n"
        assert walk.data.pop("room:A.java") == b"class A {}\n"
        check_files(walk, data)
        try:
            alone = walk_over(path)
        except SourceError as error:
            said = str(error)
            assert "; " in said
            assert SECRET.decode() not in said
            assert "\n" not in said
        else:
            check_files(alone, data)
            assert [(file.path, file.data) for file in alone.files] == [
                (file.path, file.data) for file in walk.files if file.repository == "x"
            ], "another walk reads other files"
    assert names(room) == sorted({"A.java", "good.zip", path.name}), "a file was written"
    assert names(room.parent) == ["room", "secret.java", "tmp"], "a file was written"
    assert not names(room.parent / "tmp"), "a temporary file was left"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def walk_over(path: Path) -> Walked:
    return walked(
        path,
        readable=lambda path: path.endswith((".java", ".ipynb", ".bin")),
        archive_bytes=LIMITS.archive_bytes,
        archive_members=LIMITS.archive_members,
    )


def check_files(walk: Walked, data: bytes) -> None:
    """AssertionError where a file has an odd path, is too large or comes from outside of the archive."""
    assert sum(map(len, walk.data.values())) <= max(64 << 20, 200 * len(data)), "more bytes than are allowed"
    assert len(walk.files) <= LIMITS.archive_members + 2
    for file in walk.files:
        assert not {"", ".", ".."}.intersection(file.path.split("/")), f"{file.path!r} leads elsewhere"
        assert "\0" not in file.path
        assert len(file.data) <= LIMITS.of(file.path), f"{file.path} has {len(file.data)} bytes"
        assert SECRET not in file.data, "a file outside is read"


def damaged(data: bytes, random: Random) -> bytes:
    content = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5, 50))):
        at = random.choice((random.randrange(len(content) + 1), max(0, len(content) - random.randrange(1, 100))))
        match random.randrange(7):
            case 0:
                del content[at:]
            case 1:
                content[at : at + random.randint(1, 8)] = random.randbytes(random.randint(0, 8))
            case 2:
                start = random.randrange(len(content) + 1)
                content[at:at] = content[start : start + random.choice((10, 512, 5_000))]
            case 3:
                content[at : at + 4] = random.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"))
            case _:
                content[at : at + 1] = bytes([random.randrange(256)])
    return bytes(content)


def body(random: Random) -> bytes:
    """What a member holds: code, rules of an ignore file, noise, or zeros over the limit of a file."""
    kind = random.random()
    if kind < 0.06:
        return bytes(random.choice((1 << 20, (1 << 20) + 1, 3 << 20)))
    if kind < 0.1:
        return random.choice((b"*a*b" * 6_000, b"a\n" * 11_000, b"\xff\xfe" * 100, b"!*\n*\n"))
    return random.choice((b"", b"class A {}\n" * random.randrange(90), random.randbytes(700), b"*.java\n", b"\0"))


def flate(data: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


# Compression.


def several(pack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Several streams one after another, with padding."""
    return lambda data: pack(data[:700]) + pack(data[700:]) + pack(b"") * 3 + bytes(512)


PACKERS: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: gzip.compress(data, 1, mtime=0),
    lambda data: bz2.compress(data, 1),
    lambda data: lzma.compress(data, preset=0),
    lambda data: lzma.compress(data, lzma.FORMAT_ALONE, preset=0),
    several(lambda data: gzip.compress(data, 1, mtime=0)),
    several(lambda data: lzma.compress(data, preset=0)),
    several(lambda data: bz2.compress(data, 1)),
    lambda data: b"\x1f\x8b\x08\x1e" + bytes(6) + b"\xff\xff" + b"x" * 70_000 + gzip.compress(data, 1, mtime=0)[10:],
)

# Tar: headers whose checksum is right and whose other fields may be wrong.

KINDS = (b"0", b"0", *(bytes([kind]) for kind in b"0\0001234567LKxgXSV\xff"))
RECORDS = (
    *("path=../secret.java", "path=/etc/passwd", "path=A.java", "linkpath=../secret.java", "size=60", "size=-1"),
    *("size=99999999999999999999", "size=1e9", "size=nan", "mtime=nan", "mtime=inf", "uid=" + "9" * 5_000, "path="),
    *("GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=../x", "GNU.sparse.size=1000000000000"),
    *("GNU.sparse.map=0,1,2,3", "GNU.sparse.map=x", "GNU.sparse.realsize=99999999999", "GNU.sparse.numblocks=99999"),
    *("hdrcharset=BINARY", "hdrcharset=x", "path=\0", "path=" + "a/" * 9_000, "SCHILY.xattr.x=\xff", "=", "x"),
)


def number(random: Random, wrong: float, value: int, width: int) -> bytes:
    """A number of a header, octal as usual; a wrong one in base 256, negative or no number."""
    match random.randrange(4) if random.random() < wrong else None:
        case 0:
            value = random.choice(NUMBERS)
        case 1:
            return b"\x80" + (random.choice(NUMBERS) % (1 << 8 * (width - 1))).to_bytes(width - 1, "big")
        case 2:
            return b"\xff" * width
        case 3:
            return random.choice((b"-1", b" 7 ", b"9", b"x", b"1_0", b"0x10", b"")).ljust(width, b"\0")
    return b"%0*o\0" % (width - 1, value % 8 ** (width - 1))


def record(random: Random, wrong: float) -> bytes:
    """A record of a pax header; its length may be wrong."""
    text = random.choice(RECORDS).encode("latin-1") + b"\n"
    size = len(text) + 2
    while size != len(b"%d " % size) + len(text):
        size += 1
    size = random.choice((0, 1, size + 1, 10**18)) if random.random() < wrong else size
    return b"%d " % size + text


def make_tar(random: Random, wrong: float) -> bytes:
    blocks: list[bytes] = []
    for _ in range(random.choice((0, 1, 3, 10, 10, 2_100))):
        kind, content = random.choice(KINDS), body(random)
        if kind in b"xgX":
            content = b"".join(record(random, wrong) for _ in range(random.choice((1, 3, 50))))
        elif kind in b"LK":
            content = (
                random.choice(NAMES).encode("utf-8", "surrogateescape")
                * random.choice((1, 1, 1, 900 if len(blocks) < 20 else 1))
                + b"\0"
            )
        elif len(blocks) > 20 or (kind in b"123456" and random.random() >= wrong):
            content = b""
        fields = [
            random.choice(NAMES).encode()[:100].ljust(100, b"\0"),
            *(
                number(random, wrong, value, width)
                for value, width in ((0o644, 8), (0, 8), (0, 8), (len(content), 12), (0, 12))
            ),
            b" " * 8,
            kind,
            random.choice((b"", b"../secret.java", b"/etc/passwd", b"A.java")).ljust(100, b"\0"),
            random.choice((b"ustar\x0000", b"ustar  \0", b"\0" * 8)),
            bytes(64) + number(random, wrong, 0, 8) * 2,
            random.choice((b"", b"", b"..", b"/etc", b"a/" * 70)).ljust(155, b"\0")[:155],
        ]
        if kind == b"S":
            fields[-1] = (
                bytes(41) + b"".join(number(random, wrong, n, 12) for n in range(8)) + random.choice((b"\0", b"\1"))
            )
        header = b"".join(fields).ljust(512, b"\0")[:512]
        header = header[:148] + b"%06o\0 " % sum(header) + header[156:]
        blocks.append(header + content + bytes(-len(content) % 512))
    return b"".join(blocks) + bytes(random.choice((0, 512, 1024, 1024, 10_240)))


# Zip: local headers, the list of members and its end, each of which may lie.


def field(random: Random, wrong: float, value: int, width: int) -> int:
    return (random.choice(NUMBERS) if random.random() < wrong else value) % (1 << 8 * width)


def make_zip(random: Random, wrong: float) -> bytes:
    stream, entries = io.BytesIO(), list[tuple[int, bytes]]()
    stream.write(random.randbytes(9) if random.random() < wrong else b"")
    for _ in range(random.choice((0, 1, 3, 10, 10, 2_100))):
        name, content = random.choice(NAMES).encode("utf-8", "surrogateescape"), body(random)
        if len(entries) > 20:
            name, content = name[:60], b""
        method = random.choice((0, 8, 8, 8, 12, 14, 93, 99))
        if method == 12:
            packed = bz2.compress(content, 1)
        elif method == 14:
            packed = lzma.compress(content, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, "preset": 0}])
            packed = b"\x09\x04\x05\x00\x5d\0\0\x04\0" + packed
        else:
            packed = flate(content) if method == 8 else content
        at = stream.tell() if not entries or random.random() >= wrong else entries[-1][0]
        flags = random.choice((0, 0, 0, 0, 0x800, 1, 8, 0x2000, 0x40))
        mode = random.choice((0o644, 0o644, stat.S_IFLNK | 0o777, stat.S_IFIFO, stat.S_IFDIR))
        far = random.random() < wrong  # more than 4 GiB, or says so
        said = [zlib.crc32(content), -1, -1] if far else [zlib.crc32(content), len(packed), len(content)]
        sizes = [field(random, wrong, value, 4) for value in said]
        extra = b""
        if far or random.random() < wrong:
            zip64 = b"\1\0\x18\0" + struct.pack("<3Q", *random.choices(NUMBERS, k=3))
            extra = random.choice((zip64, zip64, b"\1\0\xff\xff", b"x"))
        common = struct.pack("<5H", 20, flags, method, 0, 33) + struct.pack("<3I", *sizes)
        stream.write(b"PK\3\4" + common + struct.pack("<2H", field(random, wrong, len(name), 2), 0) + name + packed)
        entry = b"PK\1\2" + struct.pack("<H", 0x314) + common + struct.pack("<5H", len(name), len(extra), 0, 0, 0)
        entries.append(
            (
                at,
                entry
                + struct.pack("<2I", mode << 16 & 0xFFFFFFFF, field(random, wrong, -1 if far else at, 4))
                + name
                + extra,
            )
        )
    start, listing = stream.tell(), b"".join(entry for _, entry in entries)
    stream.write(listing)
    if random.random() < 2 * wrong:
        counts = [field(random, wrong, value, 8) for value in (len(entries), len(entries), len(listing), start)]
        stream.write(b"PK\6\6" + struct.pack("<Q2H2I4Q", 44, 45, 45, 0, 0, *counts))
        stream.write(b"PK\6\7" + struct.pack("<IQI", 0, field(random, wrong, start + len(listing), 8), 1))
    counts = [field(random, wrong, value, 2) for value in (0, 0, len(entries), len(entries))]
    places = [field(random, wrong, value, 4) for value in (len(listing), start)]
    comment = random.choice((b"", b"", b"PK\5\6" + bytes(18), random.randbytes(30)))
    stream.write(b"PK\5\6" + struct.pack("<4H2IH", *counts, *places, field(random, wrong, len(comment), 2)) + comment)
    return stream.getvalue()
