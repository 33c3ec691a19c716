"""The page in a real browser, against a real server: what people type, click and see, and what hostile code does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from ncs.build.map import make_map
from ncs.extract import extract
from ncs.index import Index
from ncs.search.feedback import read_feedback
from tests import corpus
from tests.browser import Window, until, until_here, violations, window
from tests.serving import own_port, served
from tests.waiting import LONG

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

    from ncs.types import Field

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("openTSNE"), reason="the extra `map` is not installed"),
]

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
    """Open the window 👨\u200d👩\u200d👧"""
    return name
'''


@dataclass(frozen=True, slots=True)
class Site:
    """A server with two indexes: demo (a map, feedback), evil (neither); and the file of votes."""

    url: str
    demo: Path
    votes: Path


PROSE = f"# The table guide\n\nRows of the guide go {'on and on ' * 100}to **bold** {SCRIPT}\n"


def evil(folder: Path) -> None:
    """An index of functions and prose that try to break the page; one of their lines has a megabyte."""
    functions = []
    for number, document in enumerate(extract(EVIL.encode(), "python")):
        code, name, path = document.code, document.qualified_name, "src/evil.py"
        if document.name == "load_table":
            code += "\n    # " + "wide " * 200_000 + "end"
        if document.name == "show_banner":
            name, path = f"{SCRIPT}.{name}", f"src/{SCRIPT}\u202e.py"
        functions.append(replace(document, code=code, qualified_name=name, path=path, id=f"e{number}<b>", digest=b""))
    words: dict[Field, tuple[str, ...]] = {"comments": ("table", "guide", "rows")}
    guide = replace(
        functions[0], code=PROSE, kind="section", qualified_name="Guide", id="guide", end_line=4, words=words
    )
    functions.append(replace(guide, start_line=1, path="guide.md", language="markdown"))
    Index.of(functions, folder).close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("page")
    demo, votes = root / "demo", root / "votes.tsv"
    Index.build(corpus.write(root / "repos"), demo).close()
    make_map(demo)
    evil(root / "evil")
    Index.build(corpus.write_pairs(root / "words"), root / "pairs").close()
    indexes = ("-i", f"demo={demo}", "-i", f"evil={root / 'evil'}", "-i", f"pairs={root / 'pairs'}")
    with served(*indexes, "--feedback", f"demo={votes}") as server:
        yield Site(server.url, demo, votes)


@pytest.fixture
def tab(browser: Browser, site: Site) -> Iterator[Window]:
    with window(browser, site.url) as tab:
        yield tab


def names(page: Page) -> list[str]:
    return page.locator("article.hit h2").all_inner_texts()


SHOWN = """(state) => {
  const shown = JSON.parse(document.querySelector("main").dataset.shown || "{}");
  const all = Object.keys({...shown, ...state});
  const typed = state.q ?? document.querySelector("#q").value;
  return all.every((key) => shown[key] === state[key]) && document.querySelector("#q").value === typed;
}"""
CURRENT = "(rank) => document.activeElement.hit?.rank === rank"
CLIPBOARD = """Promise.race([navigator.clipboard.readText(),
  new Promise((_, reject) => setTimeout(() => reject("the clipboard is silent"), 60000))])"""
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"


def settled(page: Page, q: str = "", task: str = "search", **state: str) -> None:
    """Wait until the page shows just this, filters included, and nothing else is under way."""
    until(page, SHOWN, {"task": task, **({"q": q} if q else {}), **state})


def ask(tab: Window, q: str, **state: str) -> Page:
    """Open the hits of a query, as a link does."""
    page = tab.open(f"#{urlencode({'q': q, **state})}")
    settled(page, q, **state)
    return page


def state_of(page: Page) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).fragment).items()}


def api(tab: Window, path: str, **parameters: str | float | bool) -> Any:
    return tab.page.request.get(f"{tab.url}/api/{path}", params=parameters, timeout=LONG * 1000).json()


def hits_of(tab: Window, query: str, **filters: str) -> list[dict[str, Any]]:
    return list(api(tab, "search", query=query, k=20, **filters)["hits"])


def names_of(hits: list[dict[str, Any]]) -> list[str]:
    return [hit["qualified_name"] for hit in hits]


def test_hits_come_while_typing_with_the_words_marked_and_their_number_announced(tab: Window) -> None:
    page = tab.open()
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("hiding the keyboard")
    settled(page, "hiding the keyboard")
    hits, first = hits_of(tab, "hiding the keyboard"), page.locator("article.hit").first
    assert names(page) == names_of(hits)
    assert page.locator("#status").get_attribute("aria-live") == "polite"
    assert page.locator("#status").inner_text().startswith(f"{len(hits)} hits")
    assert {text.lower() for text in first.locator("mark").all_inner_texts()} == {"hide", "keyboard"}
    assert first.locator(".sure").inner_text() in ("strong", "likely")
    rows = first.locator(".row").all_inner_texts()
    assert "\n".join(line.rstrip("\n") for line in rows) == hits[0]["code"]
    assert first.locator(".row").first.get_attribute("data-n") == str(hits[0]["start_line"])
    assert state_of(page)["q"] == "hiding the keyboard"


def test_a_frame_of_a_stack_trace_is_named_by_its_line(tab: Window) -> None:
    page = ask(tab, "at Keyboards.hideSoftKeyboard(Keyboards.java:13)")
    first = page.locator("article.hit").first
    assert first.locator(".path").inner_text() == "src/Keyboards.java:13 (11–14)"
    assert first.locator(".row[data-n='13']").count() == 1
    assert page.locator("article.hit").last.locator(".path").inner_text().count("(") == 0


def test_a_pasted_stack_trace_keeps_its_lines_and_enter_asks_for_it_as_it_is(tab: Window) -> None:
    trace = "Exception: gone\n    at Keyboards.hideSoftKeyboard(Keyboards.java:13)\n    at Main.run(Main.java:1)"
    page = tab.open()
    page.evaluate("(text) => navigator.clipboard.writeText(text)", trace)
    page.keyboard.press("ControlOrMeta+v")
    page.keyboard.press("Enter")
    settled(page, trace)
    assert state_of(page)["q"] == page.input_value("#q") == trace
    assert names(page) == names_of(hits_of(tab, trace))
    page.keyboard.press("ControlOrMeta+Home")
    page.keyboard.press("ArrowDown")  # to its second line
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("ControlOrMeta+End")
    page.keyboard.press("ArrowDown")
    until(page, CURRENT, 1)


def test_an_answer_that_comes_too_late_is_given_up_and_never_shown(tab: Window) -> None:
    held: list[Route] = []
    failed: list[str] = []

    def slow(route: Route) -> None:
        if json.loads(route.request.post_data or "{}")["query"] == "hide keyboard":
            held.append(route)
        else:
            route.continue_()

    page = tab.open()
    page.route("**/api/search", slow)
    page.on("requestfailed", lambda request: failed.append(request.post_data or ""))
    page.fill("#q", "hide keyboard")
    until_here(page, lambda: held)
    page.fill("#q", "read file lines")
    settled(page, "read file lines")
    until_here(page, lambda: failed)
    assert [json.loads(body)["query"] for body in failed] == ["hide keyboard"]
    assert len(held) == 1
    assert names(page) == names_of(hits_of(tab, "read file lines"))


def test_filters_narrow_the_hits_are_in_the_address_and_back_takes_them_away(tab: Window) -> None:
    query, python, nowhere = "check the network file", {"language": "python"}, {"language": "python", "path": "nowhere"}
    page = ask(tab, query)
    before, filtered = names(page), names_of(hits_of(tab, query, **python))
    page.select_option("#f-language", "python")
    settled(page, query, **python)
    assert page.locator("#f-language.set").count() == 1
    assert names(page) == filtered != before
    page.fill("#f-path", "nowhere")
    page.keyboard.press("Enter")
    settled(page, query, **nowhere)
    assert page.locator(".empty").count() == 1
    assert state_of(page) == {"q": query, **nowhere}
    page.click("text=Ask without filters")
    settled(page, query)
    assert (names(page), page.input_value("#f-path")) == (before, "")
    page.go_back()
    settled(page, query, **nowhere)
    page.go_back()
    settled(page, query, **python)
    assert (page.input_value("#f-language"), names(page)) == ("python", filtered)
    page.go_back()
    settled(page, query)
    assert (page.input_value("#f-language"), names(page)) == ("", before)
    page.go_forward()
    settled(page, query, **python)
    assert names(page) == filtered


def test_code_or_documents_are_chosen_in_the_address_and_a_function_is_like_code_only(tab: Window) -> None:
    query, at = "table guide rows", {"index": "evil"}
    page = ask(tab, query, **at)
    everything = names(page)
    page.select_option("#f-content", "docs")
    settled(page, query, content="docs", **at)
    assert state_of(page) == {"q": query, "content": "docs", **at}
    assert (names(page), page.locator("#f-content.set").count()) == (["Guide"], 1)
    page = ask(tab, query, content="code", **at)
    assert (page.input_value("#f-content"), names(page)) == ("code", [name for name in everything if name != "Guide"])
    page.locator("article.hit").first.get_by_role("link", name="More like this").click()
    settled(page, task="like", like=state_of(page)["like"], **at)
    assert page.locator(".empty").count() == 1  # and no error: /api/similar takes no content
    assert page.locator("#f-content").is_disabled()
    page.go_back()
    settled(page, query, content="code", **at)
    assert page.locator("#f-content").is_enabled()


def test_a_link_brings_back_query_hit_and_explanation(tab: Window) -> None:
    id = quote(hits_of(tab, "hide soft keyboard")[1]["id"])
    page = tab.open(f"#q=hide+soft+keyboard&at={id}&why={id}")
    settled(page, "hide soft keyboard")
    page.wait_for_selector(".why table")
    explained = api(tab, "explain", query="hide soft keyboard", k=20)["hits"][1]["explanation"]
    second = page.locator("article.hit").nth(1)
    assert page.locator(".why").count() == 1
    assert second.locator(".why h3").first.inner_text().endswith(f"{explained['score']:.2f} is made of")
    rows = page.locator(".why tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == [word["word"] for word in explained["words"]]
    shares = [share for share in explained["shares"].values() if share > 0]
    widths = page.eval_on_selector_all(".parts span", "(all) => all.map((one) => parseFloat(one.style.width))")
    assert sorted(widths) == pytest.approx(sorted(100 * share / sum(shares) for share in shares), abs=0.01)
    assert second.get_attribute("aria-current") == "true"


def test_a_question_after_a_question_mark_is_asked_and_every_question_has_an_address_to_go_back_to(tab: Window) -> None:
    page = tab.open("?q=hide+soft+keyboard&language=java")
    settled(page, "hide soft keyboard", language="java")
    assert names(page) == names_of(hits_of(tab, "hide soft keyboard", language="java"))
    assert (urlsplit(page.url).query, state_of(page)) == ("", {"q": "hide soft keyboard", "language": "java"})
    page.fill("#q", "check the network")
    settled(page, "check the network", language="java")
    link = page.url
    page.go_back()
    settled(page, "hide soft keyboard", language="java")
    page.go_forward()
    settled(page, "check the network", language="java")
    assert page.url == link
    page.goto("about:blank")
    page.goto(link)
    settled(page, "check the network", language="java")


USE = {"id": "x", "repository": "app", "path": "src/A.java", "start_line": 5, "end_line": 7, "language": "java",
       "kind": "method", "name": "go", "qualified_name": f"A.{SCRIPT}", "lines": [6],
       "code": f"void go() {{\n    hideSoftKeyboard({SCRIPT});\n}}"}  # fmt: skip


def test_references_are_shown_below_their_hit_as_text_and_where_there_are_none_a_line_says_so(tab: Window) -> None:
    asked: list[dict[str, list[str]]] = []
    found = [USE, {**USE, "code": None}]
    answers = [
        (200, {"name": "hideSoftKeyboard", "references": found, "notes": ["one file is missing"]}),
        (200, {"name": "hideSoftKeyboard", "references": [], "notes": ["nothing found that uses hideSoftKeyboard"]}),
    ]

    def answer(route: Route) -> None:
        asked.append(parse_qs(urlsplit(route.request.url).query))
        status, body = answers.pop(0)
        route.fulfill(status=status, json=body)

    page = tab.page
    page.route("**/api/references*", answer)
    for said in ("2 places that use hideSoftKeyboard", "nothing found that uses hideSoftKeyboard"):
        ask(tab, "hide soft keyboard")
        button = page.locator("article.hit").first.get_by_role("button", name="References")
        button.click()
        shown = page.locator("article.hit").first.locator("section.references")
        shown.get_by_text(said).wait_for()
        if "2 places" in said:
            text = shown.inner_text()
            assert all(part in text for part in ("one file is missing", f"A.{SCRIPT}", "src/A.java:5–7", "line 6"))
            assert shown.locator(".row").all_inner_texts() == [f"    hideSoftKeyboard({SCRIPT});\n"]
            assert shown.locator(".row").get_attribute("data-n") == "6"
            assert shown.locator("mark").all_inner_texts() == ["hideSoftKeyboard"]
        assert button.get_attribute("aria-expanded") == "true"
        button.click()
        shown.wait_for(state="detached")
    first = hits_of(tab, "hide soft keyboard")[0]
    assert asked == 2 * [{"name": [first["qualified_name"]], "path": [first["path"]]}]
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("uses", [1, 50])
def test_references_that_open_are_in_view_below_the_head(browser: Browser, site: Site, width: int, uses: int) -> None:
    found = {"name": "f", "references": uses * [USE], "notes": []}
    with window(browser, site.url, viewport={"width": width, "height": 700}) as tab:
        tab.page.route("**/api/references*", lambda route: route.fulfill(json=found))
        hit = ask(tab, "hide soft\nkeyboard").locator("article.hit").last  # a head of one line more
        button = hit.get_by_role("button", name="References")
        button.evaluate("at => { scrollBy(0, at.getBoundingClientRect().bottom - innerHeight); at.click(); }")
        until(tab.page, "document.querySelectorAll('.use').length > 0")
        place = "(at => at.getBoundingClientRect())(document.querySelector('section.references'))"
        until(tab.page, f"{place}.top >= document.querySelector('#top').getBoundingClientRect().bottom")
        until(tab.page, f"{place}.top < 200 || {place}.bottom < innerHeight + 1")


def test_in_a_window_as_low_as_a_magnified_one_the_head_scrolls_away(browser: Browser, site: Site) -> None:
    with window(browser, site.url, viewport={"width": 320, "height": 256}) as tab:
        page = ask(tab, "hide soft keyboard")
        page.keyboard.press("j")
        page.keyboard.press("j")
        until(page, CURRENT, 2)
        assert page.evaluate("document.querySelector('#top').getBoundingClientRect().bottom") < 0


def test_a_word_that_adds_next_to_nothing_has_no_number(tab: Window) -> None:
    explained = api(tab, "explain", query="hide soft keyboard", k=20)
    for word, share in zip(explained["hits"][0]["explanation"]["words"], (-0.001, -0.1, 0.1), strict=True):
        word["shares"] = {"lexical": share}
    tab.page.route("**/api/explain", lambda route: route.fulfill(json=explained))
    page = ask(tab, "hide soft keyboard")
    page.locator("article.hit .explain").first.click()
    page.wait_for_selector(".why tbody")
    assert page.locator(".why tbody td:last-child").all_inner_texts() == ["", "-0.10", "0.10"]


def test_prose_is_text_that_wraps_and_has_no_references(browser: Browser, site: Site) -> None:
    with window(browser, site.url, viewport={"width": 390, "height": 844}) as tab:
        page = ask(tab, "table guide rows", index="evil")
        hit = page.locator("article.hit", has=page.locator(".prose"))
        assert "".join(hit.locator(".row").all_inner_texts()).split() == PROSE.split()
        assert {text.lower() for text in hit.locator("mark").all_inner_texts()} == {"table", "guide", "rows"}
        assert page.evaluate(
            "[...document.querySelectorAll('.prose')].every((one) => one.scrollWidth <= one.clientWidth)"
        )
        assert page.evaluate(WIDTHS) == [390, 390]
        assert hit.get_by_role("button", name="References").count() == 0
        assert page.evaluate("window.hacked") is None


def test_hits_below_weak_have_no_word_of_likelihood(tab: Window) -> None:
    page = ask(tab, "keyboard")
    likelihoods = [hit["likelihood"] for hit in hits_of(tab, "keyboard")]
    assert set(likelihoods) <= {"strong", "likely", "weak", ""}
    assert page.locator("article.hit .sure").all_inner_texts() == likelihoods
    assert "" in likelihoods


def test_every_key_does_what_the_help_says(tab: Window) -> None:
    page = ask(tab, "hide soft keyboard")
    page.keyboard.press("e")  # with none selected, the first
    page.wait_for_selector(".why .parts")
    assert page.locator("article.hit").first.locator(".why").count() == 1
    page.keyboard.press("e")
    page.wait_for_selector(".why", state="detached")
    for key, rank in (("j", 2), ("j", 3), ("k", 2)):
        page.keyboard.press(key)
        until(page, CURRENT, rank)
    id = page.evaluate("document.activeElement.hit.id")
    page.keyboard.press("e")
    page.wait_for_selector(".why .parts")
    assert state_of(page)["why"] == id
    page.keyboard.press("e")
    page.wait_for_selector(".why", state="detached")
    page.keyboard.press("Enter")
    page.locator("article.hit .expand[aria-expanded=true]").wait_for(state="attached")
    assert state_of(page)["open"] == id
    page.keyboard.press("y")
    until(page, "document.querySelector('#status').textContent === 'Link copied'")
    assert parse_qs(urlsplit(page.evaluate(CLIPBOARD)).fragment)["at"] == [id]
    page.keyboard.press("?")
    page.locator("#help").wait_for()
    page.keyboard.press("Escape")
    page.locator("#help").wait_for(state="hidden")
    page.keyboard.press("/")
    until(page, "document.activeElement.id === 'q'")
    page.keyboard.press("Escape")
    until(page, CURRENT, 2)
    assert page.input_value("#q") == "hide soft keyboard"
    page.keyboard.press("r")
    page.wait_for_selector("section.references")
    page.keyboard.press("r")
    page.wait_for_selector("section.references", state="detached")
    page.keyboard.press("m")
    settled(page, task="like", like=id)
    assert "Functions like" in page.locator("#notice").inner_text()
    like = api(tab, "similar", id=id, k=20)["hits"]
    assert names(page) == names_of(like)
    assert {hit["kind"] for hit in like} == {"method"}
    page.locator("#f-kind").select_option("function")  # which filters these, too
    settled(page, task="like", like=id, kind="function")
    assert "Ask without filters" in page.locator("#search-view").inner_text()
    page.locator("#f-kind").select_option("method")
    settled(page, task="like", like=id, kind="method")
    assert names(page) == names_of(like)


def test_thumbs_write_the_lines_that_tune_reads_and_are_hidden_where_nobody_does(tab: Window, site: Site) -> None:
    page = ask(tab, "hide soft keyboard")
    ids = [hit["id"] for hit in hits_of(tab, "hide soft keyboard")]
    for at, label in enumerate(("This is right", "This is wrong")):
        hit = page.locator("article.hit").nth(at)
        hit.get_by_role("button", name=label).click()
        hit.get_by_text("noted", exact=True).wait_for()
    with Index.load(site.demo) as index:
        (vote,) = read_feedback(site.votes, index.documents)
        right, wrong = (index.documents.row_of(id) for id in ids[:2])
    assert (vote.text, vote.rows, vote.wrong) == ("hide soft keyboard", (right,), (wrong,))
    page = ask(tab, "open window", index="evil")
    assert page.locator("article.hit").count() > 0
    assert page.locator(".votes").count() == 0


def test_unknown_words_come_with_near_ones_as_links(tab: Window) -> None:
    page = ask(tab, "hide keybord")
    assert "no match for 'keybord'" in page.locator("#notice").inner_text()
    page.locator("#notice a", has_text="keyboard").first.click()
    settled(page, "hide keyboard")
    assert page.locator("#notice").inner_text() == ""
    assert state_of(page)["q"] == page.input_value("#q") == "hide keyboard"
    page = tab.open("#view=words&word=keybord")
    tab.expected.append("404")
    page.get_by_role("link", name="keyboard", exact=True).click()
    settled(page, task="words", word="keyboard")
    assert "too little was learned here to say: 'keyboard' is in 3 documents" in page.locator("#near").inner_text()
    page = tab.open("#view=words&word=baba&index=pairs")
    settled(page, task="words", word="baba", index="pairs")
    assert page.locator(".near a").all_inner_texts() == ["bori"]


def test_errors_are_shown_with_their_remedy(tab: Window) -> None:
    tab.expected.append("422")
    page = tab.open(f"#q={'long+' * 8000}")
    alert = page.locator("[role=alert]")
    assert "the query has 40,000 characters" in alert.inner_text()
    tab.expected += ["504", "404"]
    late = {
        "error": {"code": "too_slow", "message": "no answer within 10 seconds", "remedy": "ask again, with fewer words"}
    }
    page.route("**/api/search", lambda route: route.fulfill(status=504, json=late))
    tab.open("#q=slow")
    alert.wait_for()
    assert "no answer within 10 seconds" in alert.inner_text()
    assert "with fewer words" in alert.inner_text()
    page.unroute("**/api/search")
    page.get_by_role("button", name="Try again").click()
    until(page, "document.querySelector('#status').textContent.startsWith('No hit')")
    settled(page, "slow")
    assert alert.count() == 0
    for state, remedy in (
        ("#index=evil&view=map", "ncs map -i evil"),
        ("#index=nobody&q=x", "choose from demo, evil, pairs"),
    ):
        tab.open(state)
        alert.wait_for()
        assert remedy in alert.inner_text()
    page.select_option("#f-index", "pairs")  # of the others one can be chosen
    settled(page, "x", index="pairs")


def test_a_token_stays_in_the_tab_only_and_a_server_that_comes_back_is_noticed(browser: Browser, site: Site) -> None:
    secret, port = "sesame-sesame-sesame", own_port()
    options = ("-i", f"demo={site.demo}")
    with ExitStack() as stack:
        server = stack.enter_context(served(*options, port=port, token=secret))
        tab = stack.enter_context(window(browser, server.url))
        tab.expected += ["401", "net::ERR_"]  # of a server that is not there
        page = tab.open("#q=hide+keyboard")
        page.get_by_text("This server requires a token").wait_for()
        page.fill("#token", "wrong-wrong-wrong-wrong")
        page.keyboard.press("Enter")
        page.get_by_text("The token is wrong").wait_for()
        page.fill("#token", secret)
        page.keyboard.press("Enter")
        page.wait_for_selector("article.hit")
        settled(page, "hide keyboard")
        storage = page.evaluate("[{...sessionStorage}, {...localStorage}, document.cookie]")
        assert storage == [{"ncs-token": secret}, {}, ""]
        assert secret not in page.url
        server.process.kill()
        server.wait()
        page.fill("#q", "read file")
        page.get_by_role("heading", name="The server does not answer").wait_for()
        stack.enter_context(served(*options, port=port, token=secret))
        page.wait_for_selector("article.hit")
        settled(page, "read file")
        assert page.locator("[role=alert]").count() == 0


def test_hostile_code_is_only_ever_text(tab: Window) -> None:
    page = ask(tab, "show banner", index="evil")
    first = page.locator("article.hit").first
    assert names(page)[0].startswith(SCRIPT)
    assert SCRIPT in first.locator("pre").inner_text()
    assert "U+202E" in first.locator(".place").inner_text()
    first.locator(".explain").click()
    page.wait_for_selector(".why .parts")
    first.locator("h2 a").click()
    page.wait_for_selector("article.whole")
    tab.open(f"#index=evil&q={quote(SCRIPT)}&repository={quote(SCRIPT)}&word={quote(SCRIPT)}")
    page.wait_for_selector(".empty, [role=alert]")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_letters_that_turn_the_order_around_are_shown_and_long_lines_cut(tab: Window) -> None:
    page = ask(tab, "check admin user", index="evil")
    code = page.locator("article.hit pre").first
    assert set(code.locator(".odd").all_inner_texts()) == {"U+202E", "U+2066", "U+2069", "U+200B"}
    assert not set("\u202e\u2066\u2069\u200b") & set(code.inner_text())
    assert "זהות" in code.inner_text()
    family = "👨\u200d👩\u200d👧"  # one picture
    assert family in ask(tab, "open window", index="evil").locator("article.hit pre").first.inner_text()
    page = ask(tab, "load table rows", index="evil")
    wide = page.locator("article.hit .row", has_text="wide").first.inner_text()
    assert "more characters in this line" in wide
    assert len(wide) < 500


def test_axe_reports_nothing_and_nothing_is_wider_than_360_pixels(browser: Browser, site: Site) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    states = {
        "": ".start",
        "#q=hide+soft+keyboard": "article.hit",
        "#q=hide+keybord&path=nowhere": ".empty",
        "#view=map&q=hide+keyboard": "#map-hits li",
        "#view=words&word=baba&index=pairs": ".near",
        "#index=evil&q=load+table+rows": "article.hit",
        "#index=evil&q=table+guide+rows": ".prose",
        "#q=" + "long+" * 7_000: "[role=alert]",
    }
    with window(browser, site.url, viewport={"width": 360, "height": 740}) as tab:
        tab.expected.append("422")  # of the question that is too long
        for fragment, there in states.items():
            page = tab.open(fragment)
            page.wait_for_selector(there)
            if "soft" in fragment:
                page.keyboard.press("j")
                page.keyboard.press("e")
                page.wait_for_selector(".why .parts")
                page.click("#fold-filters")
                until(page, "document.querySelector('#fold-filters').getAttribute('aria-expanded') === 'true'")
            assert violations(axe.Axe(), page) == [], fragment
            content, screen = page.evaluate(WIDTHS)
            assert content <= screen == 360, fragment
        page.keyboard.press("?")
        page.locator("#help").wait_for()
        page.set_viewport_size({"width": 1100, "height": 800})
        until(page, "innerWidth === 1100")
        assert violations(axe.Axe(), page) == []


def test_the_map_names_what_is_under_the_pointer_opens_it_and_lights_hits(tab: Window) -> None:
    page = tab.open("#view=map&q=hide+soft+keyboard")
    settled(page, "hide soft keyboard", task="map")
    listed = page.locator("#map-hits a").all_inner_texts()
    assert [name for name in names_of(hits_of(tab, "hide soft keyboard")) if name in listed] == listed
    points = api(tab, "map")
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    scale = (min(box["width"], box["height"]) - 30) / points["side"]
    x, y = ([(place - points["side"] / 2) * scale for place in points[axis]] for axis in "xy")
    pointer = (box["x"] + box["width"] / 2 + x[0], box["y"] + box["height"] / 2 + y[0])
    page.mouse.move(*pointer)
    page.locator("#tip").wait_for()
    id = page.locator("#tip small").inner_text()
    assert id in [points["ids"][at] for at in range(len(x)) if abs(x[at] - x[0]) < 11 and abs(y[at] - y[0]) < 11]
    page.mouse.click(*pointer)
    settled(page, task="doc", doc=id)
    assert state_of(page)["doc"] == id
    page.go_back()
    settled(page, "hide soft keyboard", task="map")
    assert page.locator("#map-hits a").all_inner_texts() == listed
    pixels = "document.querySelector('#canvas').getContext('2d').getImageData(0, 0, 700, 500).data"
    assert page.evaluate(f"new Set({pixels}).size") > 20
