"""The annotation page in headless Chromium: keys, notes, undo, several people, hostile code, no outside request."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evaluation.annotation.command import Request
from evaluation.annotation.judgments import Judgments
from tests.browser import AT_REST, Window, until, violations, window
from tests.evaluation.annotating import QUERIES, SCRIPT, annotating
from tests.serving import Served, own_port, plain_get

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
SAID = "(text) => (said => said !== '' && said.startsWith(text))(document.getElementById('said').textContent)"


@pytest.fixture(scope="module")
def server(standing: Request) -> Iterator[Served]:
    with annotating(standing, "-k", "4") as each:
        yield each


@pytest.fixture
def seen(browser: Browser, server: Served) -> Iterator[Window]:
    with window(browser, server.url) as each:
        yield each


def answers(at: Request, annotator: str) -> list[tuple[int | None, str]]:
    """Grades and notes."""
    with closing(Judgments(at.file)) as judgments:
        return [(answer.grade, answer.notes) for answer in judgments.answers() if answer.annotator == annotator]


def press(page: Page, key: str, said: str = "") -> None:
    """A key, and the wait for what the page says then."""
    page.evaluate("document.getElementById('said').textContent = ''")
    page.keyboard.press(key)
    until(page, SAID, said)


def judge_until(page: Page, function: str) -> None:
    for _ in range(60):
        if page.locator("#function").inner_text() == function:
            return
        press(page, "0")
    raise AssertionError(f"{function} was not shown")


def test_a_name_then_keys_are_all_it_takes(seen: Window, server: Served, standing: Request) -> None:
    page = seen.open()
    assert page.locator("#start").is_visible()
    for grade in ("3 Exact match", "2 Strong match", "1 Weak match", "0 Irrelevant"):
        assert page.locator("dt", has_text=grade).is_visible()
    assert page.evaluate("document.activeElement.id") == "name"
    page.keyboard.type("  Ada   Lovelace ")
    page.keyboard.press("Enter")
    page.wait_for_selector("#judge")
    until(page, AT_REST)
    assert page.url.endswith("/?annotator=Ada+Lovelace")
    url = f"{server.url}/api/next?annotator=Ada+Lovelace"
    for key, said in (("3", "Kept: 3 Exact match"), ("0", "Kept: 0 Irrelevant"), ("s", "Skipped"), ("2", "Kept: 2")):
        pair = plain_get(url).json()["pair"]
        assert page.locator("#query").inner_text() == pair["query"]
        assert page.locator("#function").inner_text() == pair["name"]
        press(page, key, said)
    assert answers(standing, "Ada Lovelace") == [(3, ""), (0, ""), (None, ""), (2, "")]
    assert re.fullmatch(r"3 of \d+ judged, 1 skipped", page.locator("#count").inner_text())


def test_a_note_is_written_by_n_and_its_digits_are_no_grades(seen: Window, standing: Request) -> None:
    page, note = seen.open("?annotator=Noa"), "takes 3 s, u know"
    page.keyboard.press("n")
    page.keyboard.type(note)
    assert answers(standing, "Noa") == []
    page.keyboard.press("Escape")
    press(page, "1", "Kept: 1 Weak match")
    assert page.locator("#notes").input_value() == ""
    assert answers(standing, "Noa") == [(1, note)]
    press(page, "u", "Taken back")
    assert answers(standing, "Noa") == []
    assert page.locator("#notes").input_value() == note
    assert page.locator("#grades button.given b").all_inner_texts() == ["Weak match"]
    page.locator("#grades button", has_text="Exact match").click()
    until(page, SAID, "Kept: 3")
    assert answers(standing, "Noa") == [(3, note)]


def test_a_key_that_is_held_down_judges_one_function(seen: Window, standing: Request) -> None:
    page = seen.open("?annotator=Held")
    page.keyboard.down("2")
    until(page, SAID, "Kept: 2")
    for _ in range(5):
        page.keyboard.down("2")  # of a key that is down already Chromium says that it repeats
    page.keyboard.up("2")
    page.keyboard.press("Control+3")
    press(page, "s", "Skipped")
    assert answers(standing, "Held") == [(2, ""), (None, "")]


def test_hostile_code_is_text_and_what_hides_is_named(seen: Window, server: Served) -> None:
    page = seen.open("?annotator=Eve&language=python")
    judge_until(page, "hostile_banner")
    assert page.locator("#place").inner_text() == "my evil/src/ba<b>ré.py:1"
    text = page.locator("#text").evaluate("(code) => code.textContent")
    assert text.count(SCRIPT) == 2
    assert page.locator("#text .hidden").all_inner_texts() == ["U+202E", "U+2066", "U+2069", "U+2066", "U+0007"]
    assert page.locator("#text img, #text script, #place b").count() == 0
    assert page.evaluate("window.hacked") is None
    assert page.locator("#lines").inner_text().split("\n") == ["1", "2", "3", "4"]
    assert "keyword" in page.locator("#text span", has_text="return").first.get_attribute("class").split()  # type: ignore[union-attr]


def test_the_origin_is_a_link_where_it_is_known_and_o_opens_it(seen: Window, server: Served) -> None:
    page = seen.open("?annotator=Lin&language=python")
    page.context.route("https://github.com/**", lambda route: route.fulfill(body="the origin"))
    judge_until(page, "read_text_lines")
    link = page.locator("#origin")
    href = str(link.get_attribute("href"))
    assert re.fullmatch(r"https://github.com/owner/known/blob/\w+/lib/a%231.py#L1-L2", href)
    assert link.get_attribute("rel") == "noopener noreferrer"
    with page.expect_popup() as popup:
        page.keyboard.press("o")
    assert popup.value.evaluate("window.opener") is None


def test_an_answer_that_was_not_stored_can_be_given_again(browser: Browser, standing: Request, tmp_path: Path) -> None:
    queries = tmp_path / "q.tsv"
    queries.write_text(f"7\t{QUERIES[0]}\n")
    at = Request(standing.index, queries)
    port = str(own_port())
    with annotating(at, "-k", "2", "--port", port) as server, window(browser, server.url) as found:
        page = found.open("?annotator=Kai")
        press(page, "2", "Kept: 2")
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        found.expected.append("net::ERR_")  # of a server that is not there
        page.keyboard.press("3")
        page.locator("#wrong").wait_for()
        assert page.locator("#wrong").inner_text().startswith("Not kept: the server does not answer")
        assert page.locator("#judge").is_visible()
        assert answers(at, "Kai") == [(2, "")]
        with annotating(at, "--port", port):
            press(page, "3", "Kept: 3")
            assert not page.locator("#wrong").is_visible()
    assert answers(at, "Kai") == [(2, ""), (3, "")]


def test_a_token_is_typed_or_taken_from_the_address(browser: Browser, standing: Request, tmp_path: Path) -> None:
    secret, token = "0123456789abcdef", tmp_path / "token"
    token.write_text(secret)
    with annotating(standing, "-k", "4", "--token-file", str(token)) as server:
        with window(browser, server.url) as typed:
            typed.expected.append("401")
            page = typed.open("?annotator=Tom")
            page.locator("#token").wait_for()
            page.keyboard.type(secret)
            page.keyboard.press("Enter")
            page.locator("#judge").wait_for()
        with window(browser, server.url) as linked:
            page = linked.open(f"?annotator=Tom#token={secret}")
            page.locator("#judge").wait_for()
            until(page, AT_REST)
            assert secret not in page.url


def test_axe_finds_nothing_and_nothing_is_wider_than_360_pixels(browser: Browser, server: Served) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    with window(browser, server.url, viewport={"width": 360, "height": 740}) as found:
        for state in ("", "?annotator=Axel"):
            page = found.open(state)
            assert violations(axe.Axe(), page) == []
            assert page.evaluate("document.documentElement.scrollWidth") == 360
