"""The ablation of learnt heads: options of a row, and its table by hand."""

from __future__ import annotations

import argparse
from pathlib import Path

from evaluation.unif_ablation import ROWS, arguments_of, summary


def test_every_row_is_a_training_that_leaves_the_questions_out() -> None:
    options = argparse.Namespace(
        index=Path("i"), runs=Path("r"), data=Path("d"), leave_out=Path("l.jsonl"), asked=Path("r/teacher")
    )
    for name in ROWS:
        found = arguments_of(name, options)
        assert found[:2] == ["train", "unif"]
        assert found[found.index("--leave-out") + 1] == "l.jsonl"
        assert ("--teacher" in found) == name.startswith("teacher")
    taught = arguments_of("teacher", options)
    assert taught[taught.index("--teacher") + 1] == "r/teacher"
    assert [taught[at + 1] for at, each in enumerate(taught) if each == "--questions"] == [
        "d/java_so_threads.jsonl.gz", "d/java_so_docs.jsonl.gz", "own",
    ]  # fmt: skip
    assert arguments_of("centre", options)[-1] == "--centre"


def test_the_table_has_both_forms_and_what_a_head_changes() -> None:
    hybrid, head = {"strict": {"a": 1.0, "b": 0.5}}, {"strict": {"a": 0.5, "b": 0.5}}
    rows = {"one": {"one": head, "one, raw": hybrid, "hybrid with one": head}}
    lines = summary({"hybrid": hybrid}, rows).splitlines()
    assert lines[2] == "| hybrid | .750 | | | |"
    assert lines[3].startswith("| one | .750 | .500 | .500 | -0.250 [")
