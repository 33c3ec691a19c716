"""Pairs of documentation and callers, from corpora written here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from corpora.__main__ import main
from corpora.codesearchnet.callers import A_NAME, MEANINGS, callers
from corpora.codesearchnet.functions import CodeFunction, write_functions
from corpora.codesearchnet.namesakes import MOST
from corpora.pairs import read_pairs


def function(name: str, path: str, calls: str, said: str = "") -> CodeFunction:
    code = f"def {name} ( self ):\n    {calls} ( self )"
    return CodeFunction(
        repo="r/r", path=path, func_name=f"Class.{name}", original_string=code, language="python", code=code,
        code_tokens=tuple(code.split()), docstring=said, docstring_tokens=tuple(said.split()), sha="1",
        url=f"https://example.org/{path}#{name}", partition="train",
    )  # fmt: skip


def written(folder: Path, *made: CodeFunction) -> Path:
    final, rest = folder / "python" / "final" / "jsonl" / "train", folder / "python" / "undocumented"
    final.mkdir(parents=True)
    rest.mkdir()
    write_functions([each for each in made if each.docstring], final / "python_train_0.jsonl.gz")
    write_functions([each for each in made if not each.docstring], rest / "python_train_0.jsonl.gz")
    return folder


def test_callers_elsewhere_answer_what_the_called_function_is_documented_to_do(tmp_path: Path) -> None:
    library = written(
        tmp_path / "library",
        function("hide_keyboard", "lib.py", "native", "Puts the keyboard away"),
        function("close_all", "lib.py", "hide_keyboard", "Closes all"),  # of the same file
        function("hide", "lib.py", "native", "One word says too little"),
    )
    used = written(
        tmp_path / "used",
        function("on_click", "a.py", "hide_keyboard"),
        function("hide_keyboard", "b.py", "hide_keyboard"),  # called so itself
        function("on_stop", "c.py", "hide", "Stops"),
    )
    (pair,) = callers([library, used])
    assert (pair.query, pair.id, pair.split) == ("Puts the keyboard away", "https://example.org/a.py#on_click", "train")
    assert "hide_keyboard ( self )" in pair.code


def test_names_of_many_meanings_or_callers_are_none_and_of_others_some_are_drawn(tmp_path: Path) -> None:
    told = [function("get_item", f"m{at}.py", "native", f"Meaning {at}") for at in range(MEANINGS + 1)]
    told += [function("set_text", "t.py", "native", "Sets text"), function("log_it", "l.py", "native", "Logs it")]
    calls = [function(f"f{at}", "u.py", "get_item") for at in range(3)]
    calls += [function(f"g{at}", "u.py", "log_it") for at in range(MOST + 1)]
    calls += [function(f"h{at}", "u.py", "set_text") for at in range(50)]
    folder = written(tmp_path / "corpus", *told, *calls)
    drawn = set()
    for seed in range(3):
        pairs = list(callers([folder], seed=seed))
        assert Counter(pair.query for pair in pairs) == {"Sets text": A_NAME}
        assert len({pair.id for pair in pairs}) == A_NAME
        drawn |= {pair.id for pair in pairs}
    assert len(drawn) > A_NAME
    assert list(callers([folder], seed=1)) == list(callers([folder], seed=1))


def test_the_command_writes_what_training_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = function("hide_keyboard", "lib.py", "native", "Hides"), function("on_click", "a.py", "hide_keyboard")
    out = tmp_path / "pairs.jsonl.gz"
    assert main(["codesearchnet", "callers", str(written(tmp_path / "corpus", *made)), str(out), "-q"]) == 0
    assert capsys.readouterr().out == "1 pairs\n"
    assert [pair.query for pair in read_pairs(out)] == ["Hides"]
