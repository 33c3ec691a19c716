"""The page in a real browser, against a real server: what people type, click and see, and what hostile code does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from ncs.build.map import make_map
from ncs.extract import extract
from ncs.index import Index
from ncs.search.feedback import read_feedback
from tests import corpus
from tests.browser import Window, chromium, heard, until, window
from tests.serving import own_port, served
from tests.waiting import LONG

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.slow
pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `dev`)")
pytest.importorskip("openTSNE", reason="the extra `map` is not installed")

SCRIPT = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
EVIL = f'''
def show_banner(page):
    """Show the banner {SCRIPT}"""
    return page + "{SCRIPT}"


def check_admin(user):
    """Check whether the user is the admin"""
    if user != "admin\u202e\u2066# Check if admin\u2069\u2066":
        return "\u200bזהות"


def load_table(rows):
    """Load the table of rows"""
    return rows


def open_window(name):
    """Open the window"""
    return name
'''


@dataclass(frozen=True, slots=True)
class Site:
    """A server with three indexes: demo (a map, feedback), evil (neither), and where the votes go."""

    url: str
    demo: Path
    votes: Path


def evil(folder: Path) -> None:
    """An index of functions that try to break the page; one of their lines has a megabyte."""
    found = list(extract(EVIL.encode(), "python"))
    functions = []
    for number, document in enumerate(found):
        code = document.code
        if document.name == "load_table":
            code += "\n    # " + "wide " * 200_000 + "end"
        name = f"{SCRIPT}.{document.name}" if document.name == "show_banner" else document.qualified_name
        path = f"src/{SCRIPT}\u202e.py" if document.name == "show_banner" else "src/evil.py"
        functions.append(replace(document, code=code, qualified_name=name, path=path, id=f"e{number}<b>", digest=b""))
    Index.of(functions, folder).close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("page")
    demo, votes = root / "demo", root / "votes.tsv"
    Index.build(corpus.write(root / "repos"), demo).close()
    make_map(demo)
    evil(root / "evil")
    with served(
        "-i", f"demo={demo}", "-i", f"evil={root / 'evil'}", "--feedback", f"demo={votes}", "--workers", "1"
    ) as it:
        yield Site(it.url, demo, votes)


@pytest.fixture
def seen(browser: Browser, site: Site) -> Iterator[Window]:
    with window(browser, site.url) as found:
        yield found


def names(page: Page) -> list[str]:
    return page.locator("article.hit h2").all_inner_texts()


SHOWN = """(asked) => {
  const shown = JSON.parse(document.querySelector("main").dataset.shown || "{}");
  const all = Object.keys({...shown, ...asked});
  const typed = asked.q ?? document.querySelector("#q").value;
  return all.every((key) => shown[key] === asked[key]) && document.querySelector("#q").value === typed;
}"""


def settled(page: Page, q: str = "", task: str = "search", **asked: str) -> None:
    """Wait until what is shown answers just this, filters included, and nothing else is under way."""
    wanted = {"task": task, **({"q": q} if q else {}), **asked}
    until(page, SHOWN, wanted)


def state(page: Page) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).fragment).items()}


def api(page: Page, path: str, **body: Any) -> Any:
    return page.request.post(f"{page.url.partition('#')[0]}{path}", data=body, timeout=LONG * 1000).json()


def test_hits_come_while_typing_with_the_words_marked_and_their_number_announced(seen: Window) -> None:
    page = seen.open()
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("hiding the keyboard")
    settled(page, "hiding the keyboard")
    found = api(page, "api/search", query="hiding the keyboard", k=20)["hits"]
    assert names(page) == [hit["qualified_name"] for hit in found]
    assert page.locator("#status").get_attribute("aria-live") == "polite"
    assert page.locator("#status").inner_text().startswith(f"{len(found)} hits")
    assert {text.lower() for text in page.locator("article.hit").first.locator("mark").all_inner_texts()} == {
        "hide",
        "keyboard",
    }
    assert page.locator("article.hit .sure").first.inner_text().endswith("likely right")
    shown = page.locator("article.hit").first.locator(".row").all_inner_texts()
    assert "\n".join(line.rstrip("\n") for line in shown) == found[0]["code"]
    assert page.locator("article.hit").first.locator(".row").first.get_attribute("data-n") == str(
        found[0]["start_line"]
    )
    assert state(page)["q"] == "hiding the keyboard"


def test_an_answer_that_comes_too_late_is_given_up_and_never_shown(seen: Window) -> None:
    held: list[Route] = []

    def slow(route: Route) -> None:
        if json.loads(route.request.post_data or "{}")["query"] == "hide keyboard":
            held.append(route)
        else:
            route.continue_()

    page = seen.open()
    page.route("**/api/search", slow)
    given_up: list[str] = []
    page.on("requestfailed", lambda request: given_up.append(request.post_data or ""))
    page.fill("#q", "hide keyboard")
    heard(page, lambda: held)
    page.fill("#q", "read file lines")
    settled(page, "read file lines")
    heard(page, lambda: given_up)
    expected = [hit["qualified_name"] for hit in api(page, "api/search", query="read file lines", k=20)["hits"]]
    assert [json.loads(body)["query"] for body in given_up] == ["hide keyboard"]
    assert len(held) == 1
    assert names(page) == expected


def test_filters_narrow_the_hits_are_in_the_address_and_back_takes_them_away(seen: Window) -> None:
    asked = "check the network file"
    page = seen.open("#q=check+the+network+file")
    settled(page, asked)
    before = names(page)
    page.select_option("#f-language", "python")
    settled(page, asked, language="python")
    assert page.locator("#f-language.set").count() == 1
    assert state(page)["language"] == "python"
    found = api(page, "api/search", query="check the network file", language="python", k=20)["hits"]
    assert names(page) == [hit["qualified_name"] for hit in found] != before
    page.fill("#f-path", "nowhere")
    page.keyboard.press("Enter")
    settled(page, asked, language="python", path="nowhere")
    assert page.locator(".empty").count() == 1
    assert state(page)["path"] == "nowhere"
    page.click("text=Ask without filters")
    settled(page, asked)
    assert (names(page), page.input_value("#f-path")) == (before, "")
    page.go_back()
    settled(page, asked, language="python", path="nowhere")
    assert page.locator(".empty").count() == 1
    page.go_back()
    settled(page, asked, language="python")
    assert (page.input_value("#f-language"), names(page)) == ("python", [hit["qualified_name"] for hit in found])
    page.go_back()
    settled(page, asked)
    assert (page.input_value("#f-language"), names(page)) == ("", before)
    page.go_forward()
    settled(page, asked, language="python")
    assert names(page) == [hit["qualified_name"] for hit in found]


def test_a_link_brings_back_question_hit_and_explanation(seen: Window) -> None:
    page = seen.open("#q=hide+soft+keyboard")
    id = api(page, "api/search", query="hide soft keyboard", k=20)["hits"][1]["id"]
    page = seen.open(f"#q=hide+soft+keyboard&at={quote(id)}&why={quote(id)}")
    settled(page, "hide soft keyboard")
    page.wait_for_selector(".why table")
    explained = api(page, "api/explain", query="hide soft keyboard", k=20)["hits"][1]["explanation"]
    assert page.locator(".why").count() == 1
    assert (
        page.locator("article.hit")
        .nth(1)
        .locator(".why h3")
        .first.inner_text()
        .endswith(f"{explained['score']:.2f} is made of")
    )
    rows = page.locator(".why tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == [word["word"] for word in explained["words"]]
    parts = [share for share in explained["shares"].values() if share > 0]
    widths = page.eval_on_selector_all(".parts span", "(all) => all.map((one) => parseFloat(one.style.width))")
    assert sorted(widths) == pytest.approx(sorted(100 * share / sum(parts) for share in parts), abs=0.01)
    assert page.locator("article.hit").nth(1).get_attribute("aria-current") == "true"


CURRENT = "(rank) => document.activeElement.hit?.rank === rank"


def test_every_key_does_what_the_help_says(seen: Window) -> None:
    page = seen.open("#q=hide+soft+keyboard")
    settled(page, "hide soft keyboard")
    page.keyboard.press("j")
    until(page, CURRENT, 1)
    for key, rank in (("j", 2), ("j", 3), ("k", 2)):
        page.keyboard.press(key)
        until(page, CURRENT, rank)
    id = page.evaluate("document.activeElement.hit.id")
    page.keyboard.press("e")
    page.wait_for_selector(".why .parts")
    assert state(page)["why"] == id
    page.keyboard.press("e")
    page.wait_for_selector(".why", state="detached")
    page.keyboard.press("Enter")
    page.locator("article.hit .expand[aria-expanded=true]").wait_for(state="attached")
    assert state(page)["open"] == id
    page.keyboard.press("y")
    until(page, "document.querySelector('#status').textContent === 'Link copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert parse_qs(urlsplit(copied).fragment)["at"] == [id]
    page.keyboard.press("?")
    page.locator("#help").wait_for()
    page.keyboard.press("Escape")
    page.locator("#help").wait_for(state="hidden")
    page.keyboard.press("/")
    until(page, "document.activeElement.id === 'q'")
    page.keyboard.press("Escape")
    until(page, CURRENT, 2)
    page.keyboard.press("m")
    settled(page, task="like", like=id)
    assert "Functions like" in page.locator("#notice").inner_text()
    like = api(page, "api/similar", id=id, k=20)["hits"]
    assert names(page) == [hit["qualified_name"] for hit in like]
    assert {hit["kind"] for hit in like} == {"method"}
    page.locator("#f-kind").select_option("function")  # which filters these, too
    settled(page, task="like", like=id, kind="function")
    assert "that the filters let through" in page.locator("#search-view").inner_text()
    page.locator("#f-kind").select_option("method")
    settled(page, task="like", like=id, kind="method")
    assert names(page) == [hit["qualified_name"] for hit in like]


def test_thumbs_write_the_lines_that_tune_reads_and_are_hidden_where_nobody_does(seen: Window, site: Site) -> None:
    page = seen.open("#q=hide+soft+keyboard")
    settled(page, "hide soft keyboard")
    first, second = (page.locator("article.hit").nth(at) for at in (0, 1))
    ids = [hit["id"] for hit in api(page, "api/search", query="hide soft keyboard", k=20)["hits"]]
    first.get_by_role("button", name="This is right").click()
    second.get_by_role("button", name="This is wrong").click()
    first.get_by_text("noted", exact=True).wait_for()
    second.get_by_text("noted", exact=True).wait_for()
    lines = site.votes.read_text().splitlines()
    assert sorted(lines) == sorted([f"hide soft keyboard\t{ids[0]}", f"# down\thide soft keyboard\t{ids[1]}"])
    with Index.load(site.demo) as index:
        (vote,) = read_feedback(site.votes, index.documents)
        right, wrong = (index.documents.row_of(id) for id in ids[:2])
        assert (vote.text, vote.rows, vote.wrong) == ("hide soft keyboard", (right,), (wrong,))
    page = seen.open("#index=evil&q=open+window")
    settled(page, "open window", index="evil")
    assert page.locator("article.hit").count() > 0
    assert page.locator(".votes").count() == 0


def test_words_that_nothing_says_come_with_near_ones_as_links(seen: Window) -> None:
    page = seen.open("#q=hide+keybord")
    settled(page, "hide keybord")
    assert "No match for “keybord”" in page.locator("#notice").inner_text()
    page.locator("#notice a", has_text="keyboard").first.click()
    settled(page, "hide keyboard")
    assert page.locator("#notice").inner_text() == ""
    assert state(page)["q"] == page.input_value("#q") == "hide keyboard"
    page = seen.open("#view=words&word=keybord")
    seen.expected.append("404")
    page.get_by_role("link", name="keyboard", exact=True).click()
    settled(page, task="words", word="keyboard")
    found = page.request.get(f"{seen.url}/api/words?word=keyboard&n=30", timeout=LONG * 1000).json()["words"]
    assert page.locator(".near a").all_inner_texts() == [one["word"] for one in found]


def test_what_goes_wrong_is_said_with_its_remedy(seen: Window) -> None:
    page = seen.open(f"#q={'long+' * 500}")
    assert "2,500 characters, 500 more than fit" in page.locator("[role=alert]").inner_text()
    seen.expected += ["504", "404"]
    late = {"error": {"code": "too_slow", "message": "no answer within 10 s", "remedy": "ask again, with fewer words"}}
    page.route("**/api/search", lambda route: route.fulfill(status=504, json=late))
    page = seen.open("#q=slow")
    alert = page.locator("[role=alert]")
    alert.wait_for()
    assert "That took too long" in alert.inner_text()
    assert "with fewer words" in alert.inner_text()
    page.unroute("**/api/search")
    page.get_by_role("button", name="Try again").click()
    until(page, "document.querySelector('#status').textContent.startsWith('No hit')")
    settled(page, "slow")
    assert alert.count() == 0
    page = seen.open("#index=evil&view=map")
    alert.wait_for()
    assert "ncs map -i evil" in alert.inner_text()
    page = seen.open("#index=nobody&q=x")
    alert.wait_for()
    assert "choose from demo, evil" in alert.inner_text()


def test_a_token_is_asked_for_kept_in_the_tab_only_and_a_server_that_comes_back_is_noticed(
    browser: Browser, site: Site
) -> None:
    secret = "sesame-sesame-sesame"
    with ExitStack() as stack:
        port = own_port()
        server = stack.enter_context(served("-i", f"demo={site.demo}", "--workers", "0", port=port, token=secret))
        seen = stack.enter_context(window(browser, server.url))
        seen.expected += ["401", "net::ERR_"]  # of a server that is not there
        page = seen.open("#q=hide+keyboard")
        page.get_by_text("This server requires a token").wait_for()
        page.fill("#token", "wrong-wrong-wrong-wrong")
        page.keyboard.press("Enter")
        page.get_by_text("The token is wrong").wait_for()
        page.fill("#token", secret)
        page.keyboard.press("Enter")
        page.wait_for_selector("article.hit")
        settled(page, "hide keyboard")
        kept = page.evaluate("[{...sessionStorage}, {...localStorage}, document.cookie]")
        assert kept == [{"ncs-token": secret}, {}, ""]
        assert secret not in page.url
        server.process.kill()
        server.ended()
        page.fill("#q", "read file")
        page.get_by_role("heading", name="The server does not answer").wait_for()
        stack.enter_context(served("-i", f"demo={site.demo}", "--workers", "0", port=port, token=secret))
        page.wait_for_selector("article.hit")
        settled(page, "read file")
        assert page.locator("[role=alert]").count() == 0


def test_hostile_code_is_only_ever_text(seen: Window) -> None:
    page = seen.open("#index=evil&q=show+banner")
    settled(page, "show banner", index="evil")
    assert names(page)[0].startswith(SCRIPT)
    assert SCRIPT in page.locator("article.hit pre").first.inner_text()
    assert "U+202E" in page.locator("article.hit .place").first.inner_text()
    page.locator("article.hit .explain").first.click()
    page.wait_for_selector(".why .parts")
    page.locator("article.hit h2 a").first.click()
    page.wait_for_selector("article.whole")
    page = seen.open(f"#index=evil&q={quote(SCRIPT)}&repository={quote(SCRIPT)}&word={quote(SCRIPT)}")
    page.wait_for_selector(".empty, [role=alert]")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_letters_that_turn_the_order_around_are_shown_and_long_lines_cut(seen: Window) -> None:
    page = seen.open("#index=evil&q=check+admin+user")
    settled(page, "check admin user", index="evil")
    code = page.locator("article.hit pre").first
    assert set(code.locator(".odd").all_inner_texts()) == {"U+202E", "U+2066", "U+2069", "U+200B"}
    assert not set("\u202e\u2066\u2069\u200b") & set(code.inner_text())
    assert "זהות" in code.inner_text()
    page = seen.open("#index=evil&q=load+table+rows")
    settled(page, "load table rows", index="evil")
    wide = page.locator("article.hit .row", has_text="wide").first
    assert "more characters in this line" in wide.inner_text()
    assert len(wide.inner_text()) < 500


WIDE = "[document.documentElement.scrollWidth, innerWidth]"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_wider_than_360_pixels(browser: Browser, site: Site, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    states = {
        "": ".start",
        "#q=hide+soft+keyboard": "article.hit",
        "#q=hide+keybord&path=nowhere": ".empty",
        "#view=map&q=hide+keyboard": "#map-hits li",
        "#view=words&word=keyboard": ".near",
        "#index=evil&q=load+table+rows": "article.hit",
        "#q=" + "long+" * 500: "[role=alert]",
    }
    with window(browser, site.url, viewport={"width": 360, "height": 740}, color_scheme=scheme) as seen:
        for fragment, there in states.items():
            page = seen.open(fragment)
            page.wait_for_selector(there)
            if "soft" in fragment:
                page.keyboard.press("j")
                page.keyboard.press("e")
                page.wait_for_selector(".why .parts")
                page.click("#fold-filters")
                until(page, "document.querySelector('#fold-filters').getAttribute('aria-expanded') === 'true'")
            until(page, "document.getAnimations().length === 0")  # colours that fade
            found = axe.Axe().run(page).response["violations"]
            assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == [], fragment
            wide, window_width = page.evaluate(WIDE)
            assert wide <= window_width == 360, fragment
        page.keyboard.press("?")
        page.locator("#help").wait_for()
        page.set_viewport_size({"width": 1100, "height": 800})
        until(page, "innerWidth === 1100")
        assert axe.Axe().run(page).response["violations"] == []


def test_the_map_names_what_is_under_the_pointer_opens_it_and_lights_hits(seen: Window) -> None:
    page = seen.open("#view=map&q=hide+soft+keyboard")
    settled(page, "hide soft keyboard", task="map")
    hits = [hit["qualified_name"] for hit in api(page, "api/search", query="hide soft keyboard", k=20)["hits"]]
    listed = page.locator("#map-hits a").all_inner_texts()
    assert [name for name in hits if name in listed] == listed
    drawn = page.request.get(f"{seen.url}/api/map", timeout=LONG * 1000).json()
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    scale = (min(box["width"], box["height"]) - 30) / drawn["side"]
    at = drawn["names"].index("Keyboards") if "Keyboards" in drawn["names"] else 0
    x = box["x"] + box["width"] / 2 + (drawn["x"][at] - drawn["side"] / 2) * scale
    y = box["y"] + box["height"] / 2 + (drawn["y"][at] - drawn["side"] / 2) * scale
    page.mouse.move(x, y)
    tip = page.locator("#tip")
    tip.wait_for()
    shown = tip.locator("small").inner_text()
    near = {
        drawn["ids"][point]
        for point in range(drawn["points"])
        if abs(drawn["x"][point] - drawn["x"][at]) * scale < 11 and abs(drawn["y"][point] - drawn["y"][at]) * scale < 11
    }
    assert shown in near
    page.mouse.click(x, y)
    settled(page, task="doc", doc=shown)
    assert state(page)["doc"] == shown
    page.go_back()
    settled(page, "hide soft keyboard", task="map")
    assert page.locator("#map-hits a").all_inner_texts() == listed
    colours = "document.querySelector('#canvas').getContext('2d').getImageData(0, 0, 700, 500).data"
    assert page.evaluate(f"new Set({colours}).size") > 20
