"""The HTML page: complete in itself, escaped, every figure true."""

from __future__ import annotations

import base64
from html.parser import HTMLParser

import pytest

from evaluation.experiments import Experiment
from evaluation.measures import compare
from evaluation.page import page
from evaluation.reports import tables
from ncs.errors import BadInput
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
            self.tables[-1][-1][-1] += data.strip()


@pytest.fixture(scope="module")
def shown() -> str:
    return page([small()])


def test_the_page_is_well_formed_and_refers_to_nothing_outside_itself() -> None:
    text = page([small(), small("other"), small()])
    parsed = Page(text)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert parsed.links
    assert all(link.startswith("data:image/svg+xml;base64,") for link in parsed.links)
    assert "http" not in text.replace("http-equiv", "")
    assert not {"link", "script", "iframe", "object", "embed"} & set(parsed.tags)


def test_a_plot_is_svg_that_names_the_systems_and_is_the_same_again() -> None:
    links = Page(page([small(system="a&b")])).links
    svg = [base64.b64decode(link.partition(",")[2]).decode() for link in links]
    assert "a&amp;b" in svg[0]
    assert "mathdefault" not in "".join(svg)
    assert "http://www.w3.org/2000/svg" in svg[0]
    assert links == Page(page([small(system="a&b")])).links


def test_the_table_is_that_of_the_markdown_report(shown: str) -> None:
    (head, rows), (shown_head, *shown_rows) = tables(small())[0], Page(shown).tables[0]
    assert shown_head == head
    assert shown_rows == rows
    expected = compare(
        dict(zip(QUERIES, [0.5, 1.0, 0.2, 0.25], strict=True)), dict(zip(QUERIES, [1, 0.5, 0, 0.25], strict=True))
    )
    assert shown_rows[1][2] == f"{expected.difference:+.3f} [{expected.low:+.3f}, {expected.high:+.3f}]"


def test_the_queries_on_which_two_systems_differ_are_named_with_the_ranks_of_both(shown: str) -> None:
    rows = Page(shown).tables[1]
    assert rows[1:] == [
        ["read a file", "+0.500", "1", "2"],
        ["unzip", "+0.200", "5", "–"],
        ["hide <b>keyboard</b> & co", "-0.500", "2", "1"],
    ]
    assert "2 queries are better, 1 worse, 1 equal" in shown
    assert "send mail" not in shown  # no difference, no row


def test_another_pair_is_compared_on_request_and_an_unknown_one_refused() -> None:
    assert "<h3>bm25 beside ncs: mrr</h3>" in page([small()], pair=("bm25", "ncs"))
    with pytest.raises(BadInput, match="no system 'what' in this result; there are: bm25, ncs"):
        page([small()], pair=("what", "ncs"))


def test_names_from_a_file_are_text_and_never_markup() -> None:
    text = page([small(EVIL, EVIL)])
    assert EVIL not in text
    assert "script" not in Page(text).tags
    assert Page(text).tables[0][2][0] == EVIL
