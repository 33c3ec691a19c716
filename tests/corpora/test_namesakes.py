"""Pairs of two functions of one name, from corpora written here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from corpora.__main__ import main
from corpora.codesearchnet.functions import CodeFunction, write_functions
from corpora.codesearchnet.pairs import name_of, namesakes
from corpora.pairs import read_pairs

SAID = {
    "a": ("load_file", "Reads a file from disk"),
    "b": ("Files.loadFile", "Get what a path holds"),
    "c": ("file_load", "Opens it and gives its text"),
    "d": ("load_file", "Get what a path holds"),
    "e": ("load", "One word is no name that says enough"),
    "f": ("load", "One word again"),
    "g": ("save_file", "Nobody else is called so"),
}


def function(key: str) -> CodeFunction:
    name, said = SAID[key]
    bare = name.rpartition(".")[2]
    code = f"def {bare}(path):\n    return {key}(path)"
    whole = f'def {bare}(path):\n    """{said}."""\n    return {key}(path)'
    return CodeFunction(
        repo=f"r/{key}", path=f"{key}.py", func_name=name, original_string=whole, language="python", code=code,
        code_tokens=tuple(code.split()), docstring=said, docstring_tokens=tuple(said.split()), sha="1",
        url=f"https://example.org/{key}.py#L1-L3", partition="train",
    )  # fmt: skip


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    found = []
    for number, keys in enumerate(("abe", "cdfg")):
        path = tmp_path / str(number) / "python" / "final" / "jsonl" / "train"
        path.mkdir(parents=True)
        write_functions(map(function, keys), path / "python_train_0.jsonl.gz")
        found.append(tmp_path / str(number))
    return found


def test_a_name_is_its_words_whatever_their_order_and_class() -> None:
    assert name_of(function("a")) == ("python", ("file", "load")) == name_of(function("b")) == name_of(function("c"))
    assert name_of(function("e")) is None


def test_each_function_of_a_shared_name_asks_once_and_answers_once_over_all_corpora(folders: list[Path]) -> None:
    said = {text: key for key, (_, text) in SAID.items() if key != "d"}
    for seed in range(20):
        pairs = list(namesakes(folders, seed=seed))
        answers = [pair.id[-10] for pair in pairs]
        assert set(answers) <= set("abcd")
        assert max(Counter(answers).values()) == 1
        for pair in pairs:
            whole = function(pair.id[-10]).original_string
            assert pair.code == whole
            assert pair.query not in whole  # b and d say the same: neither answers the other
            assert said[pair.query] in "abc"
        assert 2 <= len(pairs) <= 4
    assert list(namesakes(folders, seed=1)) == list(namesakes(folders, seed=1))


def test_the_command_writes_what_training_reads_and_keeps_apart(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, apart = tmp_path / "pairs.jsonl.gz", tmp_path / "apart.jsonl"
    assert main(["codesearchnet", "namesakes", *map(str, folders), str(out), "-q"]) == 0
    every = list(read_pairs(out))
    assert capsys.readouterr().out == f"{len(every)} pairs\n"
    apart.write_text('{"code": "def f(path):\\n    return a(path)", "language": "python"}\n')
    assert main(["codesearchnet", "namesakes", *map(str, folders), str(out), "-q", "--apart", str(apart)]) == 0
    assert {pair.id for pair in read_pairs(out)} <= {pair.id for pair in every}
