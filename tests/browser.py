"""Chromium for tests: the page as people see it, with everything that it requests and complains about written down."""

from __future__ import annotations

import faulthandler
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.waiting import LONG

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WATCH = """window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));"""
AT_REST = """(() => {
  const main = document.querySelector("main");
  return main.getAttribute("aria-busy") === null && main.dataset.shown !== "";
})()"""
"""The page shows what its address names: the search page says so, the annotation page is busy until then."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless browser; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `dev`)")
    installed = next(filter(None, map(shutil.which, NAMES)), None)
    with playwright.sync_playwright() as driver:
        try:
            chromium = driver.chromium.launch(
                executable_path=installed, args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
        except playwright.Error as error:
            if installed:
                raise
            reason = f"no Chromium here: apt-get install chromium ({str(error).splitlines()[0]})"
            pytest.skip(reason)
        try:
            yield chromium
        finally:
            chromium.close()


class Window:
    """A page of a server. expected: parts of console errors that a test brings about."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.expected: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._log)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _log(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, state: str = "") -> Page:
        """Open a state, as a link does, and wait until all of it is there."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/{state}")
        until(self.page, AT_REST)
        return self.page

    def check(self) -> None:
        """Nothing was requested of anybody else, the policy forbade nothing, and the console stayed empty."""
        own = urlsplit(self.url).netloc
        requests = [url for url in self.requests if not url.startswith(("about:blank", "data:"))]
        assert requests
        assert [url for url in requests if urlsplit(url).netloc != own] == []
        assert self.page.evaluate("window.violations") == []
        assert [text for text in self.complaints if not any(part in text for part in self.expected)] == []


def until(page: Page, true: str, arg: object = None) -> None:
    """Wait for an expression to hold; Playwright's own way to wait needs eval, which the page's policy forbids."""
    until_here(page, lambda: page.evaluate(true, arg), f"{true} of {arg}")


def until_here(page: Page, true: Callable[[], object], what: str = "") -> None:
    """Wait for what the browser reports to this process: requests, answers that are held back."""
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, f"never came true: {what}; shown: {page.inner_text('main')}"
        page.wait_for_timeout(30)


def violations(axe: Any, page: Page) -> list[tuple[bool, str, list[str]]]:
    """Rules that axe finds broken, and where: all of them in the light; in the dark only colors are others."""
    found = []
    for dark in (False, True):
        page.emulate_media(color_scheme="dark" if dark else "light")
        rules = {"runOnly": ["color-contrast"]} if dark else {}
        until(page, "document.getAnimations().length === 0")  # colors that fade
        broken = axe.run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
        found += [(dark, one["id"], [node["html"][:120] for node in one["nodes"]]) for one in broken]
    page.emulate_media(color_scheme="light")
    return found


@contextmanager
def window(browser: Browser, url: str, **options: Any) -> Iterator[Window]:
    """A page with nothing remembered; checked at the end.

    What Playwright waits for without a limit (a script of the page, the end of the browser) ends the tests after twice
    LONG, with the lines where they stood.
    """
    settings = {
        "viewport": {"width": 1100, "height": 800},
        "permissions": ["clipboard-read", "clipboard-write"],
        **options,
    }
    faulthandler.dump_traceback_later(2 * LONG, exit=True)
    context = browser.new_context(**settings)
    context.set_default_timeout(LONG * 1000)
    try:
        page = context.new_page()
        page.add_init_script(WATCH)
        opened = Window(page, url)
        yield opened
        opened.check()
    finally:
        context.close()
        faulthandler.cancel_dump_traceback_later()
