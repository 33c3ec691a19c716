"""Ignore files: git itself says what is right."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ncs.sources.ignore import MAX_BYTES, MAX_PATTERNS, Ignores, parse
from tests.gitrepo import bare, git, write, zipped
from tests.linear import GROWTH, TIMES, growth, within
from tests.sources.walked import walked
from tests.waiting import LONG

NAMES = ["a", "b", "ab", "a.b", "b.a", "x y", "#a", "!b", "a-", "\\w", "aXbXb"]
PARTS = (
    "a b ab a.b * ** ? a* *b *.b *a*b* a*b* *?* a?b **a a** *** "
    r"[ab] [!a] [^b] [a-b]* [b-a] [!b-a] [[:alpha:]] [[:nothing:]] [[:]* []ab] [ a[ \#a \!b \a \\w" + " \\"
).split()
SOUP = "aabbb**?[[]]!^-\\/:.w# "


def path_pattern(choose: random.Random) -> str:
    pattern = "/".join(choose.choice([*PARTS, "x y"]) for _ in range(choose.choice([1, 1, 1, 2, 2, 3])))
    return (
        ("!" if choose.random() < 0.3 else "")
        + ("/" if choose.random() < 0.25 else "")
        + pattern
        + ("/" if choose.random() < 0.3 else "")
        + (choose.choice([" ", "  ", "\\ ", "\t", "\r"]) if choose.random() < 0.1 else "")
    )


def any_line(choose: random.Random) -> str:
    kind = choose.random()
    if kind < 0.05:
        return choose.choice(["#x", "", "/", "!", "//", "  ", " a", "a//b", "\ufeff"])
    if kind < 0.4:
        return "".join(choose.choice(SOUP) for _ in range(choose.randint(1, 9)))
    return path_pattern(choose)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_ignored_in_a_random_tree_is_what_git_ignores(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    root = tmp_path / "root"
    folders = [root]
    for _ in range(12):
        folders.append(choose.choice(folders) / choose.choice(NAMES))
    folders = sorted(set(folders))
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for name in NAMES:
            if choose.random() < 0.5 and not (folder / name).exists() and folder / name not in folders:
                (folder / name).touch()
    git(root, "init", "-q")
    for _ in range(6):  # trees take time to make, rules do not
        for folder in folders:
            (folder / ".gitignore").unlink(missing_ok=True)
        for folder in choose.sample(folders, min(len(folders), 4)):
            (folder / ".gitignore").write_text("\n".join(any_line(choose) for _ in range(choose.randint(1, 4))))
        (root / ".git" / "info" / "exclude").write_text(any_line(choose))
        paths = [file.path for file in walked(root, readable=lambda path: True).files]
        assert paths == git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")[:-1]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a" * 20 + "b", "a" * 250),
        ("**/a/" * 20 + "b", "a/" * 100 + "c"),
        ("/" + "*a" * 30 + "/b", "a" * 250 + "/c"),
        ("**/*a*a*a*a*b/" * 3 + "x", ("a" * 50 + "/") * 40 + "c"),
    ],
)
def test_a_line_made_to_take_hours_takes_no_time(line: str, path: str) -> None:
    module = parse.__module__
    code = f"import sys; from {module} import parse; print(parse(sys.argv[1].encode()).decide(sys.argv[2]))"
    done = subprocess.run([sys.executable, "-c", code, line, path], stdout=subprocess.PIPE, check=True, timeout=LONG)
    assert done.stdout == b"None\n"


def test_ncsignore_goes_before_gitignore_and_before_all_rules_of_thumb(tmp_path: Path) -> None:
    rules = {".gitignore": "secret/\n*.log\n", ".ncsignore": "!secret/\n*Test.java\n!vendor/\n!Made.java\n!x.min.js\n"}
    others = ("secret/A.java", "a.log", "ATest.java", "b/BTest.java", "node_modules/x.js", "x.min.js", "y.min.js")
    made = {"Made.java": "// @generated\n", "Other.java": "// @generated\n", "vendor/V.java": "// @generated\n"}
    root = write(tmp_path / "root", {**rules, **dict.fromkeys(others, ""), **made})
    files = walked(root, readable=lambda path: path[0] != ".")
    assert files.names == ["root:Made.java", "root:secret/A.java", "root:x.min.js"]
    assert files.counts == {
        **{"ignored": 3, "vendored folders": 1, "minified": 1, "generated": 2},  # V.java is in a kept folder, not kept
        "other language": 2,
    }


def test_gitignore_ends_at_the_border_of_a_repository_and_ncsignore_does_not(tmp_path: Path) -> None:
    rules = {".gitignore": "A.java\nshut/\n", ".ncsignore": "B.java\n*.zip\nold.git/\n"}
    root = write(tmp_path / "root", {**rules, "A.java": "", "B.java": "", "x.zip": "no archive"})
    bare(root / "old.git", {"C.java": ""})
    for name in ("open", "shut"):
        write(root / name, {"A.java": "", "B.java": "", "C.java": ""})
        git(root / name, "init", "-q")
    files = walked(root)
    assert files.names == ["open:A.java", "open:C.java"]
    assert files.counts == {"ignored": 4, "ignored folders": 2, "other language": 2}


def test_an_ignore_file_that_is_a_link_or_not_text_is_no_rule(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"rules": "A.java\n", "A.java": "", "b/B.java": ""})
    write(root, {"b/.gitignore": b"\xff\xfe\x00*\n"})
    (root / ".gitignore").symlink_to("rules")
    assert walked(root).names == ["root:A.java", "root:b/B.java"]


@pytest.mark.slow
@pytest.mark.parametrize("line", ["{}/f{}\n", "!g{}h{}/\n", "*.x{}y{}\n", "**/a{}*b{}\n"])
def test_twice_as_many_rules_take_twice_as_long(line: str) -> None:
    paths = [f"src/a{n}/b{n}/Main{n}.java" for n in range(20)]

    def parsing_and_asking(rules: int) -> Callable[[], object]:
        data = "".join(line.format(n, "z" * 30) for n in range(rules)).encode()

        def run() -> object:
            file = parse(data)
            assert file is not None
            return [file.decide(path) for path in paths]

        return run

    assert growth(parsing_and_asking, MAX_PATTERNS // (4 if "*" in line else 1) // TIMES) < GROWTH


def test_a_long_path_below_very_many_rules_is_ignored_without_a_look_at_them() -> None:
    rules = [parse("".join(f"**/{level}/**/b{n}\n" for n in range(1_000)).encode()) for level in range(10)]
    few, many = Ignores().with_git(rules[0]), Ignores()
    for each in rules:
        many = many.with_git(each).with_ncs(each)
    assert not few.by_gitignore("src/main/java/com/example/Main.java")
    assert few.by_gitignore("x/0/y/b9")

    def look() -> None:
        for n in range(5):
            assert few.by_gitignore(f"{'a/' * 2_000}{n}.java")  # took a second a path
            assert many.by_gitignore(f"{'a/' * 20}{n}.java")
            assert many.by_ncsignore(f"{'a/' * 20}{n}.java")

    assert within(1, look)


@pytest.mark.parametrize(
    "data",
    [b"a" * (MAX_BYTES + 1), b"a\n" * (MAX_PATTERNS + 1), b"*a" * (MAX_PATTERNS + 1), b"a*\n" * (MAX_PATTERNS + 1)],
)
def test_an_ignore_file_over_the_limits_is_named_and_not_obeyed_wherever_it_lies(tmp_path: Path, data: bytes) -> None:
    files: dict[str, str | bytes] = {"A.java": "", "b/.ncsignore": data, "b/a": "", "b/B.java": ""}
    root = write(tmp_path / "root", files)
    bare(root / "c.git", {"A.java": "", ".ncsignore": data})
    (root / "d.zip").write_bytes(zipped({"A.java": "", ".ncsignore": data}))
    walk = walked(root)
    assert walk.names == ["root:A.java", "root:b/B.java", "c:A.java", "d:A.java"]
    assert walk.skipped.unreadable == ["b/.ncsignore", "c.git/.ncsignore", "d.zip/.ncsignore"]
    assert "more than 524,288 bytes or 10,000 patterns" in walk.skipped.notes[0]
