"""The ablation: each signal is off once and alone once, and the table shows paired differences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluation.ablation import OFF, ON, WHOLE, WORDS, Ablation, Column, column, read, section, systems, table, write
from evaluation.readme import BEGIN, END, readme
from evaluation.record import Build, Experiment, Ranked
from ncs.errors import BadInput
from ncs.search.rankers import create_ranker, read_ranker

QUERIES = ["a", "b", "c", "d"]


def experiment(values: dict[str, list[float | None]]) -> Experiment:
    """Of every system by name; those not named get .5 for every query."""
    half: list[float | None] = [0.5] * 4
    ranked = [
        Ranked(each.name, None, 1.0, 1.0, {"mrr": 0.5}, {"mrr": values.get(label, half)})
        for label, each in systems().items()
    ]
    build = Build("", {}, {}, {}, 1.0, 1, 1, ranked)
    return Experiment("demo", "digest", 9, "commit", {"cores": 1, "system": "s"}, 10, ["mrr"], QUERIES, [build])


def test_every_signal_is_off_once_and_alone_once_and_can_be_typed() -> None:
    labels = systems()
    known = create_ranker("hybrid").config
    off = {key for settings in OFF.values() for key in settings}
    assert off <= known.keys()
    on = {key for settings in ON.values() for key in settings}
    assert known.keys() - off == {"parts", "calibrated", *on}
    assert {labels[f"with {name}"].config.keys() <= on for name in ON} == {True}
    for name, settings in OFF.items():
        assert labels[f"without {name}"].config == settings
        assert off - labels[f"words and {name}"].config.keys() == settings.keys()
    assert labels[WORDS].config.keys() == {*off, "calibrated"}
    for system in labels.values():
        assert read_ranker(system.name) == (system.ranker, dict(system.config))
        create_ranker(system.ranker, **system.config)


def test_differences_are_paired_and_bold_where_the_interval_leaves_out_nothing() -> None:
    values: dict[str, list[float | None]] = {WHOLE: [1.0, 1.0, 0.5, 1.0], "without meaning": [0.5, 0.5, 0.0, 0.5]}
    found = column(experiment({**values, "words and name": [None, 1.0, 0.0, 0.0]}), "mrr", "demo")
    assert found.mean(WHOLE) == pytest.approx(0.875)
    assert found.difference("without meaning", WHOLE) == pytest.approx((-0.5, -0.5, -0.5))
    shown = table(Ablation("commit", {}, [found]))
    cells = {row[1].strip(): row[2].strip() for row in (line.split("|") for line in shown.splitlines() if line)}
    assert cells["without meaning"] == "**-0.500 [-0.500, -0.500]**"
    assert cells["without saturation"].startswith("**-0.375")
    assert re.fullmatch(r"-0\.250 \[-0\.500, \+0\.\d+\]", cells["words and name"])
    assert cells["words and meaning"] == "equal"
    assert (cells[WHOLE], cells[WORDS]) == ("0.875", "0.500")


def test_what_is_written_is_read_again_and_other_files_are_refused(tmp_path: Path) -> None:
    found = Ablation("commit", {"cores": 2}, [column(experiment({}), "mrr", "demo")])
    write(found, tmp_path / "a.json")
    assert read(tmp_path / "a.json") == found
    assert "demo: 9 documents, 4 queries; commit commit." in section(found)
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(BadInput, match="bin/benchmark ablation"):
        read(tmp_path / "b.json")


def test_a_result_without_a_system_or_measure_is_refused() -> None:
    with pytest.raises(BadInput, match="has no ndcg of bm25"):
        column(experiment({}), "ndcg", "demo")


def test_columns_are_plain_values() -> None:
    one = Column("demo", "mrr", 1, ["q"], {WHOLE: [1.0], "without meaning": [1.0]})
    assert one.difference("without meaning", WHOLE) == (0.0, 0.0, 0.0)


def test_the_readme_shows_the_table_after_the_results(tmp_path: Path) -> None:
    write(Ablation("commit", {}, [column(experiment({}), "mrr", "demo")]), tmp_path / "ablation.json")
    text = readme(f"before\n{BEGIN}\n{END}\nafter\n", tmp_path)
    assert text == f"before\n{BEGIN}\n\n{section(read(tmp_path / 'ablation.json'))}{END}\nafter\n"
