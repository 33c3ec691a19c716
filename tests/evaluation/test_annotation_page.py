"""The annotation page in headless Chromium: keys, notes, undo, several people, hostile code, no outside request."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from evaluation.annotation.judgments import Answer, Judgments
from tests.annotating import QUERIES, SCRIPT, Annotating, Place, annotating
from tests.browser import AT_REST, Window, chromium, until, window
from tests.serving import own_port
from tests.waiting import LONG

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `dev`)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(standing: Place) -> Iterator[Annotating]:
    with annotating(standing, "-k", "4") as found:
        yield found


@pytest.fixture
def seen(browser: Browser, server: Annotating) -> Iterator[Window]:
    with window(browser, server.url) as found:
        yield found


def answers(at: Place, annotator: str) -> list[Answer]:
    with closing(Judgments(at.database)) as judgments:
        return [answer for answer in judgments.answers() if answer.annotator == annotator]


def press(page: Page, key: str, said: str = "") -> None:
    """A key, and the wait for what the page says then."""
    page.evaluate("document.getElementById('said').textContent = ''")
    page.keyboard.press(key)
    until(page, "(text) => (said => said !== '' && said.startsWith(text))"
                "(document.getElementById('said').textContent)", said)  # fmt: skip


def judge_until(page: Page, function: str) -> None:
    for _ in range(60):
        if page.locator("#function").inner_text() == function:
            return
        press(page, "0")
    raise AssertionError(f"{function} was not shown")


def pair_of(server: Annotating, annotator: str) -> dict[str, object]:
    found = httpx.get(f"{server.url}/api/next", params={"annotator": annotator}, timeout=LONG).json()["pair"]
    assert isinstance(found, dict)
    return found


def test_a_name_then_keys_are_all_it_takes(seen: Window, server: Annotating, standing: Place) -> None:
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
    given = []
    for key, said in (("3", "Kept: 3 Exact match"), ("0", "Kept: 0 Irrelevant"), ("s", "Skipped"), ("2", "Kept: 2")):
        pair = pair_of(server, "Ada Lovelace")
        assert page.locator("#query").inner_text() == pair["query"]
        assert page.locator("#function").inner_text() == pair["name"]
        press(page, key, said)
        given.append((pair["number"], None if key == "s" else int(key)))
    assert [(answer.pair, answer.grade) for answer in answers(standing, "Ada Lovelace")] == given
    assert page.locator("#count").inner_text().startswith("3 of ")
    assert page.locator("#count").inner_text().endswith(" judged, 1 skipped")
    page.reload()
    page.wait_for_selector("#judge")
    until(page, AT_REST)
    assert page.locator("#count").inner_text().startswith("3 of ")


def test_a_note_is_written_by_n_and_its_digits_are_no_grades(seen: Window, standing: Place) -> None:
    page = seen.open("?annotator=Noa")
    page.keyboard.press("n")
    page.keyboard.type("takes 3 s, u know")
    assert answers(standing, "Noa") == []
    page.keyboard.press("Escape")
    press(page, "1", "Kept: 1 Weak match")
    assert page.locator("#notes").input_value() == ""
    assert [(answer.grade, answer.notes) for answer in answers(standing, "Noa")] == [(1, "takes 3 s, u know")]
    press(page, "u", "Taken back")
    assert answers(standing, "Noa") == []
    assert page.locator("#notes").input_value() == "takes 3 s, u know"
    assert page.locator("#grades button.given b").all_inner_texts() == ["Weak match"]
    page.locator("#grades button", has_text="Exact match").click()
    until(page, "() => document.getElementById('said').textContent.startsWith('Kept: 3')")
    assert [(answer.grade, answer.notes) for answer in answers(standing, "Noa")] == [(3, "takes 3 s, u know")]


def test_a_key_that_is_held_down_judges_one_function(seen: Window, standing: Place) -> None:
    page = seen.open("?annotator=Held")
    page.keyboard.down("2")
    until(page, "() => document.getElementById('said').textContent.startsWith('Kept: 2')")
    for _ in range(5):
        page.keyboard.down("2")  # of a key that is down already Chromium says that it repeats
    page.keyboard.up("2")
    page.keyboard.press("Control+3")
    press(page, "s", "Skipped")
    assert [answer.grade for answer in answers(standing, "Held")] == [2, None]


def test_two_people_and_two_windows_have_their_own_progress(
    browser: Browser, server: Annotating, standing: Place
) -> None:
    with (
        window(browser, server.url) as ours,
        window(browser, server.url) as theirs,
        window(browser, server.url) as twin,
    ):
        first, second = ours.open("?annotator=One"), theirs.open("?annotator=Two")
        same = twin.open("?annotator=One")
        press(first, "1", "Kept: 1")
        press(first, "1", "Kept: 1")
        press(second, "3", "Kept: 3")
        assert first.locator("#count").inner_text().startswith("2 of ")
        assert second.locator("#count").inner_text().startswith("1 of ")
        twin.expected.append("409")
        same.keyboard.press("0")  # what this window still shows is judged already
        until(same, "() => document.getElementById('count').textContent.startsWith('2 of ')")
        assert "already, in another window" in same.locator("#wrong").inner_text()
    assert [answer.grade for answer in answers(standing, "One")] == [1, 1]


def test_hostile_code_is_text_and_what_hides_is_named(seen: Window, server: Annotating) -> None:
    page = seen.open("?annotator=Eve&language=python")
    judge_until(page, "hostile_banner")
    assert page.locator("#place").inner_text() == "evil/src/ba<b>ré.py:1"
    text = page.locator("#text").evaluate("(code) => code.textContent")
    assert text.count(SCRIPT) == 2
    assert page.locator("#text .hidden").all_inner_texts() == ["U+202E", "U+2066", "U+2069", "U+2066", "U+0007"]
    assert page.locator("#text img, #text script, #place b").count() == 0
    assert page.evaluate("window.hacked") is None
    assert page.locator("#lines").inner_text().split("\n") == ["1", "2", "3", "4"]
    assert "keyword" in page.locator("#text span", has_text="return").first.get_attribute("class").split()  # type: ignore[union-attr]


def test_the_origin_is_a_link_where_it_is_known_and_o_opens_it(seen: Window, server: Annotating) -> None:
    page = seen.open("?annotator=Lin&language=python")
    page.context.route("https://github.com/**", lambda route: route.fulfill(body="the origin"))
    judge_until(page, "read_text_lines")
    link = page.locator("#origin")
    href = str(link.get_attribute("href"))
    assert href.startswith("https://github.com/owner/known/blob/")
    assert href.endswith("/lib/a%231.py#L1-L2")
    assert link.get_attribute("rel") == "noopener noreferrer"
    with page.expect_popup() as popup:
        page.keyboard.press("o")
    assert popup.value.evaluate("window.opener") is None


def test_an_answer_that_was_not_kept_is_said_and_given_again(browser: Browser, standing: Place, tmp_path: Path) -> None:
    queries = tmp_path / "q.tsv"
    queries.write_text(f"7\t{QUERIES[0]}\n")
    at = Place(standing.index, queries)
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
        assert [answer.grade for answer in answers(at, "Kai")] == [2]
        with annotating(at, "--port", port):
            press(page, "3", "Kept: 3")
            assert not page.locator("#wrong").is_visible()
    assert [answer.grade for answer in answers(at, "Kai")] == [2, 3]
    command = [sys.executable, "-m", "ncs.cli", "annotate", str(at.index), str(at.queries), "--export", "a.csv"]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [row["Relevance"] for row in csv.DictReader(file)] == ["2", "3"]


def test_a_token_is_asked_for_or_taken_from_the_address(browser: Browser, standing: Place, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    with annotating(standing, "-k", "4", "--token-file", str(token)) as server:
        with window(browser, server.url) as found:
            found.expected.append("401")
            page = found.open("?annotator=Tom")
            page.locator("#token").wait_for()
            page.keyboard.type("0123456789abcdef")
            page.keyboard.press("Enter")
            page.locator("#judge").wait_for()
        with window(browser, server.url) as found:
            page = found.open("?annotator=Tom#token=0123456789abcdef")
            page.locator("#judge").wait_for()
            until(page, AT_REST)
            assert "0123456789abcdef" not in page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_wider_than_360_pixels(
    browser: Browser, server: Annotating, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    size = {"width": 360, "height": 740}
    with window(browser, server.url, viewport=size, color_scheme=scheme) as found:
        for state in ("", "?annotator=Axel"):
            page = found.open(state)
            assert axe.Axe().run(page).response["violations"] == []
            assert page.evaluate("document.documentElement.scrollWidth") == 360
