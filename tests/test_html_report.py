"""The page: whole in itself, escaped, every figure a true one."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from evaluation.html_report import page, write_page
from evaluation.plots import Point, curves, differences, intervals, speed
from evaluation.record import Experiment, Ranked
from evaluation.significance import compare
from ncs.errors import BadInput, MissingExtra
from tests.results import experiment, ranked

QUERIES = ["q1", "q2", "q3", "q4"]
TEXTS = ["hide <b>keyboard</b> & co", "read a file", "unzip", "send mail"]
EVIL = '<script>alert("$x$ $")</script>'


def small(name: str = "small", system: str = "ncs") -> Experiment:
    bm25 = ranked("bm25", {"mrr": [1.0, 0.5, 0.0, 0.25], "answered@1": [1.0, 0.0, 0.0, 0.0]})
    ours = ranked(system, {"mrr": [0.5, 1.0, 0.2, 0.25], "answered@1": [0.0, 1.0, 0.0, 0.0]}, [10.0, 20.0, 30.0])
    return experiment(name, [bm25, ours], queries=QUERIES, texts=TEXTS)


class Page(HTMLParser):
    """What a browser would see: text, links, ids, and the cells of each table."""

    VOID = frozenset({"meta", "br", "img", "input", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        if values.get("id"):
            self.ids.append(str(values["id"]))
        self.links += [str(values[name]) for name in ("href", "src", "xlink:href") if values.get(name)]
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += f" {data.strip()}" if "small" in self._open else data.strip()


def test_the_page_is_well_formed_has_every_id_once_and_refers_to_nothing_outside_itself() -> None:
    text = page([small(), small("other"), small()])
    found = Page(text)
    assert len(found.ids) == len(set(found.ids))
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)
    assert "http" not in text.replace("http-equiv", "")
    assert not {"link", "img", "iframe", "object", "embed"} & set(found.tags)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(found.ids)
    assert found.tags.count("script") == 1


def test_the_table_shows_means_with_intervals_and_the_difference_to_bm25() -> None:
    (head, bm25, ncs), *_ = Page(page([small()])).tables
    assert head == ["ranker", "mrr", "to bm25", "answered@1", "p50 ms", "p95 ms"]
    assert bm25[0] == "bm25"
    assert bm25[1].startswith("0.438 ")
    found = compare(
        dict(zip(QUERIES, [0.5, 1.0, 0.2, 0.25], strict=True)), dict(zip(QUERIES, [1, 0.5, 0, 0.25], strict=True))
    )
    assert ncs[2] == f"{found.difference:+.3f} {found.low:+.3f} to {found.high:+.3f}"
    assert ncs[3:] == ["1 25.0%", "20.0", "30.0"]


def test_the_questions_on_which_two_systems_differ_are_named_with_the_ranks_of_both() -> None:
    text = page([small()])
    _, gains, losses = Page(text).tables
    assert gains[1:] == [["read a file", "+0.500", "1", "2"], ["unzip", "+0.200", "5", "–"]]
    assert losses[1:] == [["hide <b>keyboard</b> & co", "-0.500", "2", "1"]]
    assert "2 questions are better, 1 worse, 1 equal" in text
    assert "send mail" not in text  # no difference, no line


def test_without_texts_the_ids_name_the_questions() -> None:
    found = small()
    without = experiment("small", found.builds[0].systems, queries=QUERIES)
    assert Page(page([without])).tables[1][1][0] == "q2"


def test_another_pair_is_compared_where_it_is_wanted_and_an_unknown_one_refused() -> None:
    assert "<h3>bm25 beside ncs: mrr</h3>" in page([small()], pair=("bm25", "ncs"))
    with pytest.raises(BadInput, match="'what' was not asked; there are: bm25, ncs"):
        page([small()], pair=("what", "ncs"))


def test_names_from_a_file_are_text_and_never_markup() -> None:
    text = page([small(EVIL, EVIL)])
    assert EVIL not in text
    assert Page(text).tags.count("script") == 1
    assert Page(text).tables[0][2][0] == EVIL


def test_two_indexes_have_their_own_curves_and_a_sweep_one_plot_of_all_settings() -> None:
    bm25 = ranked("bm25", {"mrr@10 at 0.6": [1.0, 0.0], "mrr@10 at 0.25": [1.0, 0.5]})
    ours = ranked("ncs", {"mrr@10 at 0.6": [0.5, 0.5], "mrr@10 at 0.25": [1.0, 1.0]})
    swept = experiment("sweep", [bm25, ours], queries=["a", "b"], settings=["x=1", "x=2", "x=3", "x=4"])
    text = page([swept])
    assert text.count("<figcaption>Answered@k at 0.6") == 1
    assert text.count("<figcaption>Every setting") == 1
    assert [row[0] for row in Page(text).tables[0]] == [
        "settings",
        "x=1",
        "x=1",
        "x=2",
        "x=2",
        "x=3",
        "x=3",
        "x=4",
        "x=4",
    ]


def test_the_plots_are_svg_in_the_colours_of_the_page() -> None:
    point = Point("bm25", 1.5, 0.4, 0.3, 0.5)
    drawings = [
        curves({"bm25": [0.1, 0.2], "a&b": [0.2, 0.4]}, title="Answered <k>"),
        speed([point, Point("ncs", 150, 0.5, 0.4, 0.6)], measure="mrr", title="Speed"),
        differences([0.5, 0.0, -1.0], ours="a", theirs="b", measure="mrr", title="Differences"),
        intervals([("x=1", [point]), ("x=2", [point])], measure="mrr", title="Settings"),
    ]
    for svg in drawings:
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        assert root.get("aria-label")
        assert "var(--ink)" in svg
        assert not re.findall(r"#0[1-9a]0[1-9b][0-9a-f]{2}", svg)
    assert "1 better, 1 equal, 1 worse" in drawings[2]
    assert drawings[0] == curves({"bm25": [0.1, 0.2], "a&b": [0.2, 0.4]}, title="Answered <k>")
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(drawings[0]).iter("text")]
    assert "a&b" in texts


def test_without_the_libraries_the_command_to_install_them_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'neural-code-search\[evaluation\]'"):
        write_page([small()], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_system_that_found_nothing_at_all_is_shown_as_well() -> None:
    nothing = Ranked("none", None, 1.0, 1.0, {"mrr": 0.0}, {"mrr": [0.0, 0.0]}, [1.0, 1.0])
    bm25 = ranked("bm25", {"mrr": [0.0, 0.0]})
    assert Page(page([experiment("x", [bm25, nothing], queries=["a", "b"])])).tables[0][2][1] == "0.000 0.000 to 0.000"
