"""Pairs too like what is kept for evaluation, against all comparisons and against cases written by hand."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from corpora.__main__ import main
from corpora.codesearchnet.apart import Apart
from corpora.codesearchnet.code import read_code
from corpora.codesearchnet.signatures import alike, identifiers
from corpora.pairs import Pair


def pair(query: str, code: str) -> Pair:
    return Pair(query, code, "python", "test", "id")


def function(names: list[str]) -> str:
    return "def f():\n" + "\n".join(f"    {name}()" for name in names)


KEPT = 'def add(a, b):\n    """Adds two numbers.\n\n    Slowly."""\n    # plus\n    return a + b'


@pytest.mark.parametrize(
    ("query", "code", "reason"),
    [
        ("something else", "def add(a, b):\n    return a + b", "code"),
        ("something else", "def add(a, b):\n    return b + a", None),
        ("Adds two numbers", "def plus(x, y):\n    return x + y", "documentation"),
        ("Adds two numbers quickly", "def plus(x, y):\n    return x + y", None),
        ("something else", function([f"n{at}" for at in range(29)] + ["other"]), "near duplicate"),
        ("something else", function([f"n{at}" for at in range(20)] + [f"o{at}" for at in range(10)]), None),
    ],
)
def test_a_pair_is_left_out_for_its_code_or_its_documentation(query: str, code: str, reason: str | None) -> None:
    apart = Apart([(KEPT, "python"), (function([f"n{at}" for at in range(30)]), "python")])
    assert apart.reason(pair(query, code)) == reason


def test_every_near_duplicate_is_found() -> None:
    draw = random.Random(4)
    common = [f"c{at}" for at in range(40)]
    kept = [draw.sample(common, draw.randint(12, 40)) for _ in range(60)]
    apart = Apart([(function(names), "python") for names in kept])
    every = [Counter(identifiers(read_code(function(names), "python").tokens, "python")) for names in kept]
    found = 0
    for _ in range(300):
        names = draw.choice(kept)
        names = [name for name in names if draw.random() > 0.1] + draw.sample(common, draw.randint(0, 4))
        own = Counter(identifiers(read_code(function(names), "python").tokens, "python"))
        expected = own.total() >= 20 and any(each.total() >= 20 and alike(own, each) for each in every)
        assert (apart.reason(pair("something else", function(names))) is not None) == expected or names in kept
        found += expected
    assert 30 < found < 270


def test_the_command_says_how_many_pairs_were_left_out_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "corpus" / "python" / "final" / "jsonl" / "train"
    folder.mkdir(parents=True)
    said = [("Adds two numbers.", "def x(a):\n    return a"), ("Takes b from a.", "def sub(a, b):\n    return a - b")]
    fields = {"repo": "r", "path": "p", "func_name": "f", "language": "python", "sha": "0", "partition": "train"}
    rows = [
        {
            **fields,
            "original_string": c,
            "code": c,
            "code_tokens": c.split(),
            "docstring": d,
            "docstring_tokens": d.split(),
            "url": d,
        }
        for d, c in said
    ]
    (folder / "python_train_0.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    (tmp_path / "kept.jsonl").write_text(json.dumps({"code": KEPT, "language": "python"}) + "\n")
    out = tmp_path / "pairs.jsonl"
    assert (
        main(["codesearchnet", "pairs", str(tmp_path / "corpus"), str(out), "--apart", str(tmp_path / "kept.jsonl")])
        == 0
    )
    assert capsys.readouterr().out == "1 pairs; left out as like kept.jsonl: 1 documentation\n"
    assert [json.loads(line)["query"] for line in out.read_text().splitlines()] == ["Takes b from a."]
