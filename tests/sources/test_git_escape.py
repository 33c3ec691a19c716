"""Git directories that came as files of a clone or an archive: they lead nowhere, and take neither time nor memory."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ncs.errors import SourceError
from ncs.sources import git as git_module
from tests.gitrepo import ENVIRONMENT, bare, commit, git, repository, write
from tests.rights import make_pipe
from tests.sources.walked import Walked, walked

SECRET = b"class Secret {}"
Disguise = Callable[[Path, Path], None]


def pack_refs(git_dir: Path, private: Path) -> None:
    head = git(private, "rev-parse", "HEAD").strip()
    write(git_dir, {"HEAD": "ref: refs/heads/main\n", "packed-refs": f"{head} refs/heads/main\n"})


def links(at: Path, private: Path) -> None:
    write(at, {"HEAD": "ref: refs/heads/main\n"})
    for name in ("objects", "refs"):
        (at / name).symlink_to(private / ".git" / name)


def relative_links(at: Path, private: Path) -> None:
    write(at, {"HEAD": "ref: refs/heads/main\n"})
    for name in ("objects", "refs"):
        (at / name).symlink_to(os.path.relpath(private / ".git" / name, at))


def inner_links(at: Path, private: Path) -> None:
    shutil.copytree(private / ".git" / "refs", at / "refs")
    write(at, {"HEAD": "ref: refs/heads/main\n", "objects/x": ""})
    for path in (private / ".git" / "objects").iterdir():
        (at / "objects" / path.name).symlink_to(path)


def links_to_objects(at: Path, private: Path) -> None:
    inner_links(at, private)
    for path in (at / "objects").iterdir():
        if path.is_symlink():
            target = path.readlink()
            path.unlink()
            path.mkdir()
            for each in target.iterdir():
                (path / each.name).symlink_to(each)


def common(at: Path, private: Path) -> None:
    write(at, {"HEAD": "ref: refs/heads/main\n", "objects/x": "", "refs/x": "", "commondir": str(private / ".git")})


def alternates(at: Path, private: Path) -> None:
    write(at, {"objects/info/alternates": f"{private}/.git/objects\n", "refs/x": ""})
    pack_refs(at, private)


def quoted_alternates(at: Path, private: Path) -> None:
    write(at, {"objects/info/alternates": f'"{private}/.git/obj\\145cts"/decoy\n', "refs/x": ""})
    (at / "objects" / f'"{private}' / ".git" / 'obj\\145cts"' / "decoy").mkdir(parents=True)
    pack_refs(at, private)


def distant_alternates(at: Path, private: Path) -> None:
    write(at, {"objects/info/alternates": "../other\n", "other/info/alternates": f"{private}/.git/objects\n"})
    write(at, {"refs/x": ""})
    pack_refs(at, private)


def alternates_by_link(at: Path, private: Path) -> None:
    """Links are followed after `..` by some versions of git: this leads to private in those, to a folder in others."""
    (at / "deep" / "er").mkdir(parents=True)
    (at / "link").symlink_to("deep/er")
    (at / "deep" / os.path.relpath(private / ".git" / "objects", at)).resolve().mkdir(parents=True, exist_ok=True)
    entry = f"{at}/link/../{os.path.relpath(private, at)}/.git/objects"
    write(at, {"objects/info/alternates": f"{entry}\n", "refs/x": ""})
    pack_refs(at, private)


def no_path(at: Path, private: Path) -> None:
    write(at, {"objects/info/alternates": f"a\0b\n{'a' * 5000}\n{private}/.git/objects\0\n", "refs/x": ""})
    pack_refs(at, private)


def multi_pack_index(at: Path, private: Path) -> None:
    """A list of packs, one of which is that of the private repository."""
    git(private, "repack", "-a", "-d", "-q")
    (pack,) = (private / ".git" / "objects" / "pack").glob("*.idx")
    lines = subprocess.run(["git", "show-index"], input=pack.read_bytes(), capture_output=True, check=True).stdout
    objects = sorted(
        (bytes.fromhex(name), int(start)) for start, name, _ in map(str.split, lines.decode().split("\n")[:-1])
    )
    (at / "objects" / "pack").mkdir(parents=True)
    name = os.path.relpath(pack, at / "objects" / "pack").encode() + b"\0"
    chunks = {
        b"PNAM": name + bytes(-len(name) % 4),
        b"OIDF": b"".join(sum(each[0] <= byte for each, _ in objects).to_bytes(4, "big") for byte in range(256)),
        b"OIDL": b"".join(each for each, _ in objects),
        b"OOFF": b"".join(start.to_bytes(8, "big") for _, start in objects),
    }
    places, place = b"", 12 + 12 * (len(chunks) + 1)
    for kind, content in [*chunks.items(), (bytes(4), b"")]:
        places, place = places + kind + place.to_bytes(8, "big"), place + len(content)
    whole = b"MIDX\1\1\4\0" + (1).to_bytes(4, "big") + places + b"".join(chunks.values())
    write(at, {"objects/pack/multi-pack-index": whole + hashlib.sha1(whole).digest(), "refs/x": ""})
    pack_refs(at, private)


def all_inside(disguise: Disguise) -> Disguise:
    """A `.git` folder of this form."""
    return lambda at, private: disguise(write(at / ".git", {}), private)


def named(names: Callable[[Path, Path], str], disguise: Disguise | None = None) -> Disguise:
    """A `.git` file."""

    def make(at: Path, private: Path) -> None:
        write(at, {".git": f"gitdir: {names(at, private)}\n"})
        if disguise is not None:
            disguise(at / "real", private)

    return make


def link(at: Path, private: Path) -> None:
    (at / ".git").symlink_to(private / ".git")


def worktree_of_another(at: Path, private: Path) -> None:
    git(private, "worktree", "add", "-q", str(private.parent / "tree"))
    write(at, {".git": f"gitdir: {private}/.git/worktrees/tree\n"})


def forged_worktree(at: Path, private: Path) -> None:
    forged = write(
        at.parent.parent / "forged" / "worktrees" / "x", {"gitdir": f"{at}/.git", "HEAD": "ref: refs/heads/main"}
    )
    write(forged, {"commondir": f"{private}/.git"})
    write(at, {".git": f"gitdir: {forged}\n"})


BARE: dict[str, Disguise] = {
    "links": links,
    "relative links": relative_links,
    "inner links": inner_links,
    "links to objects": links_to_objects,
    "commondir": common,
    "alternates": alternates,
    "quoted alternates": quoted_alternates,
    "distant alternates": distant_alternates,
    "alternates by a link": alternates_by_link,
    "no path": no_path,
    "multi-pack index": multi_pack_index,
}
FORMS: dict[str, Disguise] = {
    **BARE,
    **{f".git with {name}": all_inside(disguise) for name, disguise in BARE.items()},
    "file": named(lambda at, private: f"{private}/.git"),
    "relative file": named(lambda at, private: os.path.relpath(private / ".git", at)),
    "file with commondir": named(lambda at, private: "real", common),
    "link": link,
    "worktree of another": worktree_of_another,
    "forged worktree": forged_worktree,
}


def secret_of(*roots: Path) -> tuple[list[Walked], list[str]]:
    """The walks that read something and the errors of others, with and without a revision."""
    walks, errors = [], []

    def walk(revision: str | None) -> None:
        try:
            walks.append(walked(*roots, readable=lambda path: True, revision=revision))
        except SourceError as error:
            errors.append(str(error))

    for revision in (None, "HEAD", "main"):
        walk(revision)
    return walks, errors


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_git_directory_that_leads_out_of_the_root_is_not_read(tmp_path: Path, form: str, beside: bool) -> None:
    private = repository(tmp_path / "private", {"Secret.java": SECRET})
    root = tmp_path / "root"
    repository(root / "control", {"A.java": "control"})
    evil = write(root / "evil", {"Own.java": "own"} if beside else {})
    FORMS[form](evil, private)
    walks, errors = secret_of(root)
    assert not errors
    for walk in walks:
        assert walk.data["control:A.java"] == b"control"
        assert SECRET not in walk.data.values()
    assert not beside or b"own" in walks[0].data.values() or form in BARE
    walks, errors = secret_of(evil)
    assert all(SECRET not in walk.data.values() for walk in walks)
    assert all("; " in error for error in errors)
    assert beside or walks[1:] == []


@pytest.mark.parametrize("form", BARE)
def test_a_bare_repository_that_a_clone_tracks_is_a_plain_folder(tmp_path: Path, form: str) -> None:
    private = repository(tmp_path / "private", {"Secret.java": SECRET})
    origin = write(tmp_path / "origin", {"A.java": "a", "evil/hooks/Hook.java": "plain"})
    BARE[form](origin / "evil", private)
    git(origin, "init", "-q", "-b", "main")
    commit(origin)
    clone = tmp_path / "root" / "clone"
    git(tmp_path, "clone", "-q", str(origin), str(clone))
    for root, names in (
        (tmp_path / "root", ["clone:A.java", "clone:evil/hooks/Hook.java"]),
        (clone, ["clone:A.java", "clone:evil/hooks/Hook.java"]),
    ):
        walk = walked(root)
        assert walk.names == names
        if form != "relative links":  # they lead nowhere in the clone
            assert "evil: read as a plain folder, since it lies in a work tree" in walk.skipped.notes[0]
        assert all(SECRET not in walk.data.values() for walk in secret_of(root)[0])


def test_a_folder_of_bare_clones_may_share_objects_and_one_in_a_work_tree_can_be_named(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    first = bare(root / "first.git", {"A.java": "a"})
    git(root, "clone", "-q", "--bare", "--shared", str(first), str(root / "second.git"))
    assert walked(root).names == ["first:A.java", "second:A.java"]
    app = repository(tmp_path / "app", {"B.java": "b"})
    shutil.copytree(first, app / "fixture.git")
    assert walked(app).names == ["app:B.java"]
    assert walked(app / "fixture.git").names == ["fixture:A.java"]
    with pytest.raises(SourceError, match=r"alternates.*; name one that holds both|leads out .*; name one that holds"):
        walked(root / "second.git")


WAIT = 240
"""Seconds after which a git that waits is given up."""
WAITS = ["HEAD", "config", "packed-refs", "commondir", "objects/info/alternates", "refs/heads/x", "objects/pack/x.idx"]


@pytest.mark.parametrize("name", [*WAITS, "logs/HEAD", "info/exclude", "info/grafts", "shallow"])
@pytest.mark.parametrize("make", [make_pipe, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_no_file_of_a_git_directory_is_waited_for(
    tmp_path: Path, name: str, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_module, "_SECONDS", WAIT)
    root = tmp_path / "root"
    repository(root / "control", {"A.java": "control"})
    app = repository(root / "app", {"A.java": "app"})
    git_dirs = [app / ".git", bare(root / "bare.git", {"A.java": "bare"})]
    for git_dir in git_dirs:
        path = git_dir / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)
    began = time.monotonic()
    for revision in (None, "HEAD"):
        walk = walked(root, revision=revision)
        assert walk.data["control:A.java"] == b"control"
        assert revision is not None or walk.data["app:A.java"] == b"app"
    secret_of(app)
    secret_of(git_dirs[1])
    assert time.monotonic() - began < WAIT


@pytest.mark.parametrize(
    "settings",
    [
        "[include]\n\tpath = /dev/stdin\n",
        '[include]\n\tpath = {pipe}\n[includeIf "gitdir:**"]\n\tpath = {pipe}\n',
        "[core]\n\tworktree = {pipe}\n\tattributesFile = {pipe}\n\texcludesFile = {pipe}\n\tfsmonitor = {pipe}\n",
        '[extensions]\n\tworktreeConfig = true\n\tpartialClone = x\n[remote "x"]\n\tpromisor = true\n\turl = {pipe}\n',
        "[core]\n\tbigFileThreshold = -1\n\tdeltaBaseCacheLimit = 99g\n\tpackedGitLimit = 0\n[no end",
    ],
)
def test_settings_of_a_repository_change_nothing(tmp_path: Path, settings: str) -> None:
    make_pipe(tmp_path / "pipe")
    app = bare(tmp_path / "app.git", {"A.java": "a"})
    write(app, {"config": settings.format(pipe=tmp_path / "pipe"), "config.worktree": "[include]\n\tpath=/dev/stdin"})
    assert walked(app).data == {"app:A.java": b"a"}


def put(app: Path, kind: str, content: bytes) -> str:
    """Add a loose object, whatever it holds."""
    whole = b"%s %d\0" % (kind.encode(), len(content)) + content
    name = hashlib.sha1(whole).hexdigest()
    write(app, {f"objects/{name[:2]}/{name[2:]}": zlib.compress(whole)})
    return name


def tree_of(app: Path, entries: list[tuple[str, str, str]]) -> str:
    return put(app, "tree", b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(of) for mode, name, of in entries))


def commit_tree(app: Path, tree: str) -> None:
    who = b"A <a@example.invalid> 0 +0000"
    head = put(app, "commit", b"tree %s\nauthor %s\ncommitter %s\n\nx\n" % (tree.encode(), who, who))
    write(app, {"HEAD": head + "\n"})


@pytest.mark.parametrize("levels", [4, 9])
def test_a_few_objects_that_list_a_hundred_thousand_files_or_more_are_refused(tmp_path: Path, levels: int) -> None:
    root = tmp_path / "root"
    repository(root / "control", {"A.java": "control"})
    app = bare(root / "bomb.git", {"A.java": "a"})
    blob = put(app, "blob", b"class A {}")
    tree = tree_of(app, [("100644", f"{n}.java", blob) for n in range(10)])
    for _ in range(levels):
        tree = tree_of(app, [("40000", str(n), tree) for n in range(10)])
    commit_tree(app, tree)
    with pytest.raises(SourceError, match=r"lists more than its [\d,]+ bytes can hold; leave it out"):
        walked(app)
    walk = walked(root)
    assert walk.data["control:A.java"] == b"control"
    assert walk.skipped.unreadable == ["bomb.git"]
    assert len(walk.files) < 20_000


def test_a_few_objects_that_hold_gigabytes_are_refused(tmp_path: Path) -> None:
    app = bare(tmp_path / "bomb.git", {"A.java": "a"})
    blob = put(app, "blob", b"class A {}\n" * 90_000)
    commit_tree(app, tree_of(app, [("100644", f"{n:04}.java", blob) for n in range(9_000)]))
    with pytest.raises(SourceError, match="lists more than"):
        walked(app)


def test_git_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = bare(tmp_path / "bomb.git", {"A.java": "a"})
    tree = put(app, "tree", b"")
    for _ in range(12):  # nothing is listed, for hours
        tree = tree_of(app, [("40000", str(n), tree) for n in range(10)])
    commit_tree(app, tree)
    monkeypatch.setattr(git_module, "_SECONDS", 1)
    with pytest.raises(SourceError, match=r"git takes too long over .*bomb\.git; see what is wrong with"):
        walked(app)


@pytest.mark.slow
@pytest.mark.parametrize("name", [".ncsignore", "commit", "tree", "A.java"])
def test_an_object_of_gigabytes_is_not_read(tmp_path: Path, name: str) -> None:
    app = bare(tmp_path / "bomb.git", {"A.java": "a", "B.java": "b"})
    small = put(app, "blob", b"class A {}")
    packer = zlib.compressobj(1)
    kind, size = {"commit": "commit", "tree": "tree"}.get(name, "blob"), 256 << 20
    pieces = [packer.compress(f"{kind} {size}\0".encode()), *(packer.compress(bytes(1 << 20)) for _ in range(256))]
    large = "a" * 40  # git cat-file does not check the name
    write(app, {f"objects/{large[:2]}/{large[2:]}": b"".join([*pieces, packer.flush()])})
    if name == "commit":
        write(app, {"HEAD": large + "\n"})
    else:
        entries = [("100644", name, large)] if name != "tree" else [("40000", "a", large)]
        commit_tree(app, tree_of(app, sorted([*entries, ("100644", "B.java", small)], key=lambda entry: entry[1])))
    tracemalloc.start()
    try:
        assert walked(app).names == ["bomb:B.java"]
    except SourceError as error:
        assert name in ("commit", "tree"), error  # noqa: PT017
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 << 20


def test_paths_that_lead_out_of_a_tree_are_counted_and_not_read(tmp_path: Path) -> None:
    app = bare(tmp_path / "app.git", {"A.java": "a"})
    blob = put(app, "blob", b"class A {}")
    inner = tree_of(app, [("100644", "B.java", blob)])
    deep = inner
    for _ in range(30):
        deep = tree_of(app, [("40000", "d" * 200, deep)])
    names = ["..", ".", "a/../../b", "/etc", "a//b"]
    commit_tree(app, tree_of(app, [("40000", name, inner) for name in [*names, "ok"]] + [("40000", "deep", deep)]))
    walk = walked(app)
    assert walk.names == ["app:ok/B.java"]
    assert walk.counts == {"unsafe paths": len(names) + 1}


def test_a_hundred_thousand_branches_without_a_head_take_seconds(tmp_path: Path) -> None:
    app = bare(tmp_path / "app.git", {"A.java": "a"})
    head = git(app, "rev-parse", "HEAD").strip()
    refs = "".join(f"{head} refs/heads/b{n:06}\n" for n in range(100_000))
    write(
        app, {"packed-refs": "# pack-refs with: peeled fully-peeled sorted \n" + refs, "HEAD": "ref: refs/heads/none\n"}
    )
    began = time.process_time()
    assert walked(app).data == {"app:A.java": b"a"}
    assert time.process_time() - began < 30


def test_objects_that_are_their_own_alternates_are_read_once(tmp_path: Path) -> None:
    app = bare(tmp_path / "app.git", {"A.java": "a"})
    write(app, {"objects/info/alternates": "../objects\n.\n" * 500})
    assert walked(app).data == {"app:A.java": b"a"}
    for n in range(200):
        write(app, {f"o/{n}/info/alternates": f"../{n + 1}\n"})
    write(app, {"objects/info/alternates": "../o/0\n"})
    with pytest.raises(SourceError, match="leads out of the folder"):
        walked(app)


def test_an_exclude_file_outside_is_no_rule(tmp_path: Path) -> None:
    write(tmp_path / "info", {"exclude": "A.java\n"})
    app = repository(tmp_path / "app", {"A.java": "a"})
    shutil.rmtree(app / ".git" / "info")
    (app / ".git" / "info").symlink_to(tmp_path / "info")
    assert walked(app).names == ["app:A.java"]


def test_git_directories_of_worktrees_and_submodules_may_lie_elsewhere(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", {"L.java": "l"})
    app = repository(tmp_path / "app", {"A.java": "a"})
    git(app, "submodule", "--quiet", "add", str(library), "lib")
    commit(app)
    git(app, "worktree", "add", "-q", str(tmp_path / "trees" / "tree"), "-b", "other")
    tree = tmp_path / "trees" / "tree"
    subprocess.run(
        ["git", "-C", str(tree), "-c", "protocol.file.allow=always", "submodule", "update", "--init", "-q"],
        check=True,
        env=ENVIRONMENT,
    )
    (app / ".git" / "info" / "exclude").write_text("B.java\n")
    write(tree, {"B.java": ""})
    for revision in (None, "HEAD"):
        assert walked(tree, revision=revision).names == ["tree:A.java"] + ["lib:L.java"] * (revision is None)
        assert walked(app / "lib", revision=revision).names == ["lib:L.java"]
        assert walked(tree / "lib", revision=revision).names == ["lib:L.java"]
