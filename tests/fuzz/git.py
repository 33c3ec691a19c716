"""Repositories that a stranger made or a disk damaged, beside a good one and a private one outside of the root.

A walk gives the good one's files, ends in time and in little memory, and writes, starts and shows nothing else.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import socket
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from ncs.errors import SourceError
from ncs.sources import git as git_module
from tests import gitrepo
from tests.fuzz.archive import damaged
from tests.gitrepo import write
from tests.sources.walked import walked

SECONDS = 120.0
MEMORY = 1 << 30
CASES = 6

SECRET = "c4n4ry"
KINDS = ("tree", "blobs", "bare", "packed", "worktree", "submodule", "sha256")
PLACES = ("evil", "evil", "group/evil", "control/evil")
META = (
    "HEAD", "config", "config.worktree", "packed-refs", "commondir", "gitdir", "index", "shallow", "info/exclude",
    "info/grafts", "info/attributes", "info/sparse-checkout", "objects/info/alternates",
    "objects/info/http-alternates", "objects/info/packs", "objects/info/commit-graphs/commit-graph-chain",
    "objects/pack/multi-pack-index.d/x", "refs/heads/main", "refs/heads/x/y", "refs/tags/v1", "refs/replace/{head}",
    "logs/HEAD", "logs/refs/heads/main", "hooks/post-checkout", "hooks/fsmonitor", "reftable/tables.list",
    "worktrees/x/gitdir", "worktrees/x/commondir", "../.git", "../.gitmodules", "../.gitattributes", "../.gitignore",
    "../.ncsignore",
)  # fmt: skip
LINES = (
    "ref: refs/heads/main", "ref: HEAD", "ref: ../../private/.git/HEAD",
    "ref: refs/heads/../../../../private/.git/HEAD", "ref: refs/heads/x/y", "ref: refs/heads/main\0", "ref:", "{head}",
    "{secret}", "{head} refs/heads/main", "{secret} refs/heads/main", "{secret} refs/heads/../../x", "^{secret}",
    "# pack-refs with: peeled sorted", "0" * 40, "{private}/.git", "{private}/.git/objects", "{relative}/.git/objects",
    "../objects", "../../objects", "/", ".", "~", '"{private}/.git/obj\\145cts"', "objects/../{relative}/.git/objects",
    "gitdir: {private}/.git", "\0", "a\0b", "gitdir: {relative}/.git", "gitdir: .", "gitdir: ..", "gitdir: ../.git",
    "gitdir: /dev/zero", "gitdir: {pipe}", "[include]", "\tpath = /dev/stdin", "\tpath = {pipe}",
    '[includeIf "gitdir:/**"]', "[core", "[core]", "\tbare = true", "\tworktree = {private}", "\tworktree = {pipe}",
    "\tfsmonitor = {hook}", "\thooksPath = {hook}", "\tpager = {hook}", "\tsshCommand = {hook}", "\taskPass = {hook}",
    "\tgitProxy = {hook}", "\tattributesFile = {pipe}", "\texcludesFile = {pipe}", "\trepositoryformatversion = 1",
    "\trepositoryformatversion = 99", "\tlogAllRefUpdates = 1", "\talternateRefsCommand = {hook}",
    "\tbigFileThreshold = -1", "\tcompression = 99", "[extensions]", "\tobjectFormat = sha256",
    "\tobjectFormat = sha1", "\tobjectFormat = x", "\trefStorage = reftable", "\tworktreeConfig = true",
    "\tpartialClone = o", '[remote "o"]', "\turl = ext::{hook}", "\turl = {private}", "\tpromisor = true",
    "\tuploadpack = {hook}", "[credential]", "\thelper = {hook}", '[filter "x"]', "\tsmudge = {hook}",
    "\tprocess = {hook}", '[diff "x"]', "\ttextconv = {hook}", "* filter=x diff=x", '[alias]\n\tls-tree = "!{hook}"',
    "*", "!*", "A.java", "**/a/**/b", "*a*a*a*a*b", "[", "\\", "/" * 300, "a" * 5000,
    "[submodule \"x\"]\n\tpath = ../..", "#!/bin/sh\ntouch {trap}", "\xff\xfe", "%", "", " " * 100,
)  # fmt: skip
PLACES_TO_LINK = (
    "/dev/zero", "/dev/tty", "/dev/stdin", "/dev/full", "/dev/random", "/proc/self/environ", "/proc/self/mem",
    "{pipe}", "{private}", "{private}/.git", "{private}/.git/objects", "{relative}", ".", "..", "loop", "", "/",
    "config",
)  # fmt: skip
NAMES = (
    "A.java", "B.java", ".ncsignore", ".gitignore", ".gitmodules", ".git", ".GIT", "git~1", "..", ".", "", "a/b",
    "/etc", "../x", "a\nb.java", "\x1b[31m.java", "\udcff.java", "\u202e.java", "x" * 300, "con", "a\\..\\b.java",
    "HEAD", "-x",
)  # fmt: skip
MODES = ("100644", "100755", "40000", "40000", "120000", "160000", "0", "777777", "-1", "99999999999", "x", "")
REVISIONS = (
    "HEAD~1", "HEAD^{tree}", "HEAD:A.java", ":/x", "main@{1}", "@{-1}", "HEAD@{yesterday}", "main@{upstream}", "v1",
    "-h", "refs/heads/x/y", "HEAD^{/x}", "^HEAD", "HEAD...main", "worktrees/x/HEAD", "main-worktree/HEAD", "{secret}",
    "{head}", "x" * 5000, "HEAD^" * 1000, "*", "@",
)  # fmt: skip
VARIABLES = (
    "GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_TRACE", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_INDEX_FILE",
    "GIT_REPLACE_REF_BASE",
)  # fmt: skip


def generate(random: Random) -> bytes:
    edits = [
        [random.choice([*EDITS, *("text", "tree") * 2]), random.random(), random.randrange(1 << 32)]
        for _ in range(random.choice((1, 1, 2, 3, 6)))
    ]
    values = {
        "kind": random.choice(KINDS),
        "place": random.choice(PLACES),
        "edits": edits,
        "revision": random.choice(REVISIONS),
        "variables": random.sample(VARIABLES, random.choice((0, 0, 0, 3))),
    }
    return json.dumps(values).encode()


def check(case: bytes, room: Path) -> None:
    values = json.loads(case)
    above, root = room.parent, room / "root"
    evil = root / values["place"]
    shutil.copytree(base() / "private", above / "private", symlinks=True)
    shutil.copytree(base() / "control", root / "control", symlinks=True)
    shutil.copytree(base() / values["kind"], evil.parent, symlinks=True, dirs_exist_ok=True)
    if values["place"] != "evil":
        (evil.parent / "evil").rename(evil)
    for path in [*evil.rglob(".git"), *root.rglob("gitdir")]:
        if path.is_file():
            path.write_text(path.read_text().replace(str(base() / values["kind"]), str(evil.parent)))
    (above / "tmp").mkdir()
    os.mkfifo(above / "pipe")
    (above / "hook").write_text(f"#!/bin/sh\ntouch {above / 'trap'}\n")
    (above / "hook").chmod(0o755)
    git_dir = evil / ".git" if (evil / ".git").is_dir() else evil
    known = {
        "private": str(above / "private"),
        "relative": os.path.relpath(above / "private", git_dir),
        "secret": read_head(above / "private"),
        "head": read_head(root / "control"),
        "pipe": str(above / "pipe"),
        "hook": str(above / "hook"),
        "trap": str(above / "trap"),
    }
    for name, where, seed in values["edits"]:
        with suppress(OSError, ValueError):  # an earlier edit left no such place
            EDITS[name](git_dir, where, Random(seed), known)
    before = listing(above)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(git_module, "_SECONDS", 15)
        patch.setattr(tempfile, "tempdir", str(above / "tmp"))
        for name in values["variables"]:
            patch.setenv(name, f"{above}/private/.git")
        for revision in (None, "HEAD", filled(values["revision"], known)):
            for path in (root, evil):
                check_walk(path, revision, is_root=path == root)
    assert not psutil.Process().children(), "a process was left"
    assert not list((above / "tmp").iterdir()), "a temporary file was left"
    assert listing(above) == before, "something was written"


def check_walk(path: Path, revision: str | None, *, is_root: bool) -> None:
    """Walk; AssertionError unless the good repository's file is read, and nothing of the private one."""
    said = ""
    try:
        walk = walked(path, readable=lambda path: True, revision=revision)
    except SourceError as error:
        said = str(error)
    assert SECRET not in said, f"an error shows the private repository: {said}"
    assert not said or "; " in said, f"an error names no remedy: {said}"
    assert not (said and is_root), f"nothing is read: {said}"
    if said:
        return
    told = [*walk.skipped.notes, *walk.skipped.unreadable, *walk.names]
    assert not any(SECRET in text for text in told), "a path or a note shows the private repository"
    assert not any(SECRET.encode() in data for data in walk.data.values()), "the private repository is read"
    assert len(walk.files) < 50_000, f"{len(walk.files)} files are read"
    for file in walk.files:
        parts = file.path.split("/")
        assert not {"", ".", ".."}.intersection(parts), f"{file.path!r} leads elsewhere"
    if is_root and revision in (None, "HEAD"):
        assert walk.data.get("control:A.java") == b"class A {}\n", f"the good repository is not read: {told[:3]}"


def listing(folder: Path) -> list[tuple[str, int, int, int]]:
    """All files below a folder, as far as a change would show."""
    below = (f"{at}/{name}" for at, folders, names in os.walk(folder) for name in (*folders, *names))
    states = ((path, os.lstat(path)) for path in below if not path.startswith(f"{folder}/tmp"))
    return sorted((path, state.st_mode, state.st_size, state.st_mtime_ns) for path, state in states)


def filled(text: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def read_head(folder: Path) -> str:
    return (folder / "head").read_text()


@cache
def base() -> Path:
    """The repositories that are altered, each as `evil` in a folder of its kind."""
    at = Path(tempfile.mkdtemp(prefix="ncs-fuzz-git-")).resolve()
    atexit.register(shutil.rmtree, at, ignore_errors=True)
    many = {f"a/F{n}.java": f"class F{n} {{}}\n" * n for n in range(8)}
    private = gitrepo.repository(at / "private", {f"{SECRET}.java": f"class {SECRET} {{}}\n"})
    gitrepo.git(private, "repack", "-a", "-d", "-q")
    gitrepo.commit(private, {f"{SECRET}2.java": f"class {SECRET}2 {{}}\n"})
    gitrepo.git(private, "branch", "side")
    gitrepo.git(private, "config", f"{SECRET}.x", SECRET)
    gitrepo.repository(at / "control", {"A.java": "class A {}\n", "B.java": "class B {}\n"})
    for folder in (private, at / "control"):
        (folder / "head").write_text(gitrepo.git(folder, "rev-parse", "HEAD").strip())
    for kind in KINDS:
        evil = write(at / kind / "evil", {"A.java": "class A {}\n", **many})
        gitrepo.git(
            evil, "init", "-q", "--template=", "-b", "main", *(["--object-format=sha256"] if kind == "sha256" else [])
        )
        gitrepo.commit(evil)
        gitrepo.commit(evil, {"A.java": "class A { int a; }\n", ".ncsignore": "F1.java\n"})
        gitrepo.git(evil, "tag", "-a", "-m", "x", "v1")
        if kind == "packed":
            gitrepo.git(evil, "repack", "-a", "-d", "-q", "--write-midx")
            gitrepo.git(evil, "pack-refs", "--all")
            gitrepo.git(evil, "commit-graph", "write")
        if kind in ("bare", "packed"):
            evil.rename(at / "old")
            (at / "old" / ".git").rename(evil)
            shutil.rmtree(at / "old")
        elif kind == "blobs":
            for path in [each for each in evil.iterdir() if each.name != ".git"]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif kind == "worktree":
            evil.rename(at / kind / "main")
            gitrepo.git(at / kind / "main", "worktree", "add", "-q", str(evil), "-b", "other")
        elif kind == "submodule":
            gitrepo.git(evil, "submodule", "--quiet", "add", str(at / "control"), "lib")
            gitrepo.commit(evil)
        shutil.rmtree(evil / "hooks", ignore_errors=True)
    return at


# Edits of a git directory.


def some_file(git_dir: Path, where: float) -> Path:
    """One of the files of a git directory, none of which lies behind a link; OSError where it has none."""
    if git_dir.is_symlink():
        raise OSError(f"{git_dir} is a link")
    files = sorted(
        Path(at, name) for at, _, names in os.walk(git_dir) for name in names if not Path(at, name).is_symlink()
    )
    files = [path for path in files if path.is_file()]
    if not files:
        raise FileNotFoundError(git_dir)
    return files[int(where * len(files))]


def above_in(git_dir: Path, path: Path) -> list[Path]:
    """The folders above a file of a git directory, with that itself where it is a `.git`."""
    top = git_dir if git_dir.name == ".git" else git_dir / "x"
    return [above for above in path.parents if above.is_relative_to(top.parent) and above != top.parent]


def put(path: Path, content: bytes) -> None:
    """Write a file; what stands there is replaced, and links above it are not followed."""
    for above in path.parents:
        if above.is_symlink():
            raise OSError(f"{above} is a link")
    path.parent.mkdir(parents=True, exist_ok=True)
    clear(path)
    path.write_bytes(content)


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def damage(git_dir: Path, where: float, random: Random, known: dict[str, str]) -> None:
    path = some_file(git_dir, where)
    put(path, damaged(path.read_bytes(), random))


def unpacked(git_dir: Path, where: float, random: Random, known: dict[str, str]) -> None:
    """Damage inside of a loose object."""
    path = some_file(git_dir / "objects", where)
    with suppress(zlib.error):
        put(path, zlib.compress(damaged(zlib.decompress(path.read_bytes()), random)))


def swap(git_dir: Path, where: float, random: Random, known: dict[str, str]) -> None:
    put(some_file(git_dir, random.random()), some_file(git_dir, where).read_bytes())


def remove(git_dir: Path, where: float, random: Random, known: dict[str, str]) -> None:
    path = some_file(git_dir, where)
    clear(random.choice([path, path, *above_in(git_dir, path)]))


def link(git_dir: Path, where: float, random: Random, known: dict[str, str]) -> None:
    """A link instead of a file or a folder above it: to that of the private repository, to a device ..."""
    path = some_file(git_dir, where)
    path = random.choice([path, *above_in(git_dir, path)])
    below = path.relative_to(git_dir)
    target = f"{known['private']}/.git/{below}"
    if random.random() < 0.4:
        target = filled(random.choice(PLACES_TO_LINK), known)
    elif random.random() < 0.5:
        target = os.path.relpath(target, path.parent)
    clear(path)
    path.symlink_to(target or "x")


def special(git_dir: Path, where: float, random: Random, known: dict[str, str]) -> None:
    path = git_dir / random.choice(META).removeprefix("../") if random.random() < 0.5 else some_file(git_dir, where)
    put(path, b"")
    path.unlink()
    match random.randrange(4):
        case 0:
            path.mkdir()
        case 1:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(path))
        case _:
            os.mkfifo(path)


def text(git_dir: Path, where: float, random: Random, known: dict[str, str]) -> None:
    name = filled(random.choice(META), known)
    name = name if git_dir.name == ".git" else name.removeprefix("../")  # no file of the root
    lines = [filled(line, known) for line in random.choices(LINES, k=random.choice((1, 1, 2, 4, 30)))]
    put(git_dir / name, "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n" * random.randrange(2))


def graft(git_dir: Path, where: float, random: Random, known: dict[str, str]) -> None:
    """All of the private repository's folders as links inside a folder that is no link."""
    for name in random.sample(("objects", "refs"), random.choice((1, 2))):
        shutil.rmtree(git_dir / name)
        for at, folders, names in os.walk(f"{known['private']}/.git/{name}"):
            here = git_dir / name / os.path.relpath(at, f"{known['private']}/.git/{name}")
            here.mkdir(exist_ok=True, parents=True)
            for each in names if random.random() < 0.5 else [*names, *folders]:
                if not (here / each).exists():
                    (here / each).symlink_to(f"{at}/{each}")
    put(git_dir / "HEAD", known["secret"].encode() + b"\n")


def add_object(git_dir: Path, kind: str, content: bytes, random: Random, name: str | None = None) -> bytes:
    """Add a loose object, sometimes with a header that is wrong."""
    size = random.choice((len(content),) * 20 + (0, 1, len(content) + 1, 1 << 40, -1))
    whole = f"{kind} {size}\0".encode() + content
    name = name or hashlib.sha1(whole).hexdigest()
    put(git_dir / "objects" / name[:2] / name[2:], zlib.compress(whole, 1))
    return bytes.fromhex(name)


def tree(git_dir: Path, where: float, random: Random, known: dict[str, str]) -> None:
    """A commit of a tree with odd entries, or of many, or in itself, or with a large object."""
    itself = bytes([random.randrange(256)]) * 20
    targets = [
        itself,
        bytes.fromhex(known["secret"][:40]),
        bytes(20),
        add_object(git_dir, "blob", random.choice(LINES).encode("utf-8", "replace") * 100, random),
        add_object(git_dir, "blob", b"class B {}\n", random),
        add_object(git_dir, "blob", bytes(random.choice((0, 600_000, 48 << 20))), random),
        add_object(git_dir, random.choice(("tag", "commit", "x", "tree")), b"object x\n", random),
    ]
    targets.append(add_object(git_dir, "tree", b"100644 C.java\0" + targets[4], random))
    top = targets[-1]
    for level in range(random.choice((1, 1, 1, 2, 6))):
        entries = [
            (random.choice(MODES), random.choice(NAMES), random.choice([*targets, *[top] * 3]))
            for _ in range(random.choice((1, 3, 10)))
        ]
        content = b"".join(
            f"{mode} {name}\0".encode("utf-8", "surrogateescape") + target for mode, name, target in entries
        )
        if random.random() < 0.2:
            content = damaged(content, random)
        top = add_object(
            git_dir, "tree", content, random, itself.hex() if level == 0 and random.random() < 0.3 else None
        )
    who = b"A <a@example.invalid> 0 +0000"
    parents = b"parent %s\n" % itself.hex().encode() * random.choice((0, 1, 1000))
    content = b"tree %s\n%sauthor %s\ncommitter %s\n\nx\n" % (top.hex().encode(), parents, who, who)
    if random.random() < 0.1:
        content = damaged(content, random)
    kind = random.choice(("commit",) * 9 + ("tag",))
    put(git_dir / "HEAD", add_object(git_dir, kind, content, random).hex().encode() + b"\n")


EDITS: dict[str, Callable[[Path, float, Random, dict[str, str]], Any]] = {
    "damage": damage,
    "graft": graft,
    "link": link,
    "remove": remove,
    "special": special,
    "swap": swap,
    "text": text,
    "tree": tree,
    "unpacked": unpacked,
}
