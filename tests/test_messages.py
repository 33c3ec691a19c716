"""docs/messages.md has every message of ncs.messages, and each surface that it names says it so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient
from textual.widgets import Static

from ncs import messages
from ncs.answer import ask, definitions_of, references_to, similar_to
from ncs.config import BuildConfig
from ncs.errors import NcsError
from ncs.index import Index
from ncs.search.similar import function_at
from ncs.serve.http.app import create_app
from ncs.serve.http.settings import Settings
from ncs.serve.mcp.projects import Projects
from ncs.serve.mcp.projects import Settings as McpSettings
from ncs.serve.mcp.server import _call
from ncs.serve.tui.app import SearchApp, Searcher
from tests import gitrepo
from tests.browser import window
from tests.command import invoke
from tests.serving import served
from tests.snapshots import alter
from tests.waiting import LONG, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGE = Path(__file__).parent.parent / "docs/messages.md"
ROW = re.compile(
    r"^\| `(?P<message>[^`]+)` \| .* \| (?:`(?P<remedy>[^`]+)` )?\| (?P<surfaces>[\w, ]+) \|$", re.MULTILINE
)
TABLE = {
    "; ".join(filter(None, (message, remedy))): surfaces.split(", ")
    for message, remedy, surfaces in ROW.findall(PAGE.read_text("utf-8"))
}
MESSAGES = {re.sub(r"\{(\w+)[^}]*\}", r"{\1}", text): name for name, text in vars(messages).items() if name.isupper()}
REPORT = """Soft keyboard stays open when the activity ends

It began with the last release of the app, on every device that we have tried so far.
Closing the keyboard by hand before the activity ends helps, but nobody does that.
"""
SOURCE = "app/src/Keyboards.java"
Case = tuple[str, dict[str, Any]]
QUESTIONS: dict[str, Case] = {
    "NO_MATCH": ("search", {"query": "zzqx"}),
    "SIMILAR": ("references", {"name": "read_text_fil"}),
    "RESPELLED": ("search", {"query": "hide keybord"}),
    "NO_NUMBER": ("search", {"query": "0x1f"}),
    "NO_WORDS": ("search", {"query": "?!"}),
    "COMMON_WORDS": ("search", {"query": "how to"}),
    "NO_PHRASE": ("search", {"query": '"keyboard the hide"'}),
    "LINKED": ("search", {"query": "online"}),
    "REPORT": ("search", {"query": REPORT}),
    "NOTHING_FOUND": ("search", {"query": "zzqx"}),
    "NOTHING_PASSES": ("search", {"query": "keyboard", "path": "nowhere"}),
    "UNLIKELY": ("search", {"query": "activity of all"}),
    "TOO_UNLIKELY": ("search", {"query": "keyboard", "min_confidence": 0.999}),
    "NOTHING_LIKE": ("similar", {"path": "nowhere"}),
    "NO_USE": ("references", {"name": "showSoftKeyboard"}),
    "FIRST_PLACES": ("search", {"query": "", "regexp": "keyboard|path", "k": 1}),
    "FIRST_USES": ("references", {"name": "getSystemService", "k": 1}),
    "MORE_USES": ("references", {"name": "Nowhere.getSystemService"}),
    "USES_LEFT_OUT": ("references", {"name": "getSystemService", "language": "python"}),
    "LEFT_OUT": ("definitions", {"name": "count_lines", "path": "src"}),
    "ONLY_USED": ("definitions", {"name": "getSystemService"}),
    "ONLY_TEXT": ("references", {"name": "member"}),
    "ELSEWHERE": ("definitions", {"name": "Nowhere.count_lines"}),
    "EMPTY": ("search", {"query": " "}),
    "TOO_LONG": ("search", {"query": "x" * 40_000}),
    "OUT_OF_RANGE": ("search", {"query": "keyboard", "k": 0}),
    "UNKNOWN": ("search", {"query": "keyboard", "language": "klingon"}),
    "BAD_GLOB": ("search", {"query": "keyboard", "glob": ["!"]}),
    "MANY_GLOBS": ("search", {"query": "keyboard", "glob": ["{a,b}" * 12]}),
    "BAD_REGEXP": ("search", {"query": "keyboard", "regexp": "("}),
    "TIMEOUT": ("search", {"query": "keyboard", "regexp": r"(\w+\s*)+\$\$"}),
    "NO_CONFIDENCE": ("search", {"query": "keyboard", "ranker": "bm25", "min_confidence": 0.5}),
    "NOT_BUILT": ("search", {"query": "keyboard", "ranker": "two_field"}),
    "NO_NAME": ("definitions", {"name": "a/b"}),
    "NO_PLACE": ("similar", {"place": f"repos/{SOURCE}"}),
    "NO_FILE": ("definitions", {"name": "nowhere.java::hide"}),
    "NO_DOCUMENT": ("document", {"id": "nowhere"}),
    "NO_CODE": ("search", {"query": "tea", "regexp": "tea"}),
}
"""What provokes a message on every surface: what is asked for, and how."""
COMMANDS = {"search": "query", "similar": "similar", "definitions": "def", "references": "refs"}
OPTIONS = {"k": "-n", "language": "-t", "glob": "-g", "regexp": "-e", "min_confidence": "--min-confidence"}
TOOLS = {"search": "search_code", "similar": "find_similar", "definitions": "find_definition",
         "references": "find_references"}  # fmt: skip


class Places(NamedTuple):
    """The small corpus with its index, an index without code, and the servers of the first."""

    demo: Path
    bare: Path
    client: TestClient
    projects: Projects


@pytest.fixture(scope="module")
def places(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    bare = tmp_path_factory.mktemp("bare")
    (bare / "tea.py").write_text("def brew_tea(leaves):\n    return leaves\n")
    Index.build(bare, bare / ".ncs", config=BuildConfig(store_code=False)).close()
    app = create_app(Settings({"demo": demo / ".ncs", "bare": bare / ".ncs"}))
    mcp = Projects(McpSettings(indexes=(demo / ".ncs", bare / ".ncs")))
    with TestClient(app, "http://localhost") as client, closing(mcp) as projects:
        yield Places(demo, bare, client, projects)


def cli(places: Places, index: Path, kind: str, question: Mapping[str, Any]) -> list[str]:
    words = [f"{places.demo}/repos/{SOURCE}:12"] if kind == "similar" else []
    for name, value in question.items():
        if name in ("query", "name"):
            words.append(value)
        elif name == "place":
            words = [value]
        else:
            words += [OPTIONS.get(name, f"--{name}"), *(value if isinstance(value, list) else [str(value)])]
    run = invoke(COMMANDS[kind], *words, "-i", str(index), cwd=places.demo)
    assert run.returncode in (0, 1, 2)
    lines = run.stderr.splitlines()
    assert all(line.startswith("ncs: ") for line in lines), lines
    return [line.removeprefix("ncs: ") for line in lines]


def http(places: Places, index: Path, kind: str, question: Mapping[str, Any]) -> list[str]:
    file = {"path": question["file"]} if "file" in question else {}
    body = {name: value for name, value in question.items() if name != "file"} | file | {"index": index.parent.name}
    body["index"] = "demo" if index == places.demo / ".ncs" else "bare"
    if kind == "similar":
        body["id"] = f"{SOURCE}:11"
    if kind == "search":
        answer = places.client.post(f"/api/{kind}", json=body).json()
    else:
        answer = places.client.get(f"/api/{kind}", params=body).json()
    error = answer.get("error")
    return [f"{error['message']}; {error['remedy']}"] if error else answer["notes"]


def mcp(places: Places, index: Path, kind: str, question: Mapping[str, Any]) -> list[str]:
    place = {"place": f"{SOURCE}:12"} if kind == "similar" else {}
    project = next(each for each in places.projects.of(None) if each.folder == index)
    arguments = {**place, **question, "project": project.name}
    return said(_call(places.projects, None, TOOLS[kind], arguments))


def said(result: Any) -> list[str]:
    text: str = result.content[0].text
    return [text] if result.is_error else re.findall("^note: (.*)$", text, re.MULTILINE)


def python(places: Places, folder: Path, kind: str, question: Mapping[str, Any]) -> list[str]:
    filters = {name: value for name, value in question.items() if name not in ("query", "name", "ranker")}
    with Index.load(folder) as index:
        try:
            if kind == "search":
                ranker = question.get("ranker", "hybrid")
                answer = ask(index, question["query"], ranker=ranker, **filters)
            elif kind == "similar":
                function = function_at(places.demo / "repos" / SOURCE, 12)
                answer = similar_to(index, function, "it", **filters)
            else:
                asked = {"definitions": definitions_of, "references": references_to}[kind]
                answer = asked(index, question["name"], **filters)
        except NcsError as error:
            return [str(error)]
    return list(answer["notes"])


ASKED: dict[str, Callable[[Places, Path, str, Mapping[str, Any]], list[str]]] = {
    "CLI": cli, "HTTP": http, "MCP": mcp, "Python": python,
}  # fmt: skip


def pattern(text: str) -> re.Pattern[str]:
    """What a row of the table allows."""
    return re.compile(
        "".join(".*" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", text))
    )


def rows(*surfaces: str) -> list[Any]:
    named = [(text, each) for text, of in TABLE.items() for each in of if each in surfaces and text in MESSAGES]
    return [pytest.param(text, surface, id=f"{MESSAGES[text]}-{surface}") for text, surface in named]


def test_the_table_has_every_message_and_no_other() -> None:
    assert sorted(TABLE) == sorted(MESSAGES)


@pytest.mark.parametrize(("text", "surface"), [row for row in rows(*ASKED) if row.id.split("-")[0] in QUESTIONS])
def test_a_message_reads_as_the_table_has_it(
    places: Places, text: str, surface: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = MESSAGES[text]
    if name == "TIMEOUT":
        monkeypatch.setattr("ncs.workers.PARSE_SECONDS", 1.0)
    index = (places.bare if name == "NO_CODE" else places.demo) / ".ncs"
    if name == "TIMEOUT" and surface == "HTTP":
        with TestClient(create_app(Settings({"demo": index}, seconds=4)), "http://localhost") as hurried:
            found = http(places._replace(client=hurried), index, *QUESTIONS[name])
    else:
        found = ASKED[surface](places, index, *QUESTIONS[name])
    matches = pattern(text).search if name == "TIMEOUT" else pattern(text).fullmatch
    assert any(map(matches, found)), found


@pytest.mark.anyio
@pytest.mark.parametrize(("text", "surface"), rows("TUI"))
async def test_a_message_reads_so_while_one_types(places: Places, text: str, surface: str) -> None:
    searcher = Searcher(places.demo / ".ncs")
    with closing(searcher):
        async with SearchApp(searcher).run_test() as pilot:
            await pilot.pause()
            pilot.app.query_one("#prompt").value = QUESTIONS[MESSAGES[text]][1]["query"]  # type: ignore[attr-defined]
            status = pilot.app.query_one("#status", Static)
            for _ in range(50 * LONG):
                await pilot.pause(0.02)
                if pattern(text).search(str(status.content)):
                    return
            pytest.fail(str(status.content))


@pytest.mark.slow
def test_the_page_shows_messages_as_they_are(places: Places, browser: Browser) -> None:
    with served("-i", places.demo / ".ncs") as server, window(browser, server.url) as tab:
        tab.expected += ["404", "422"]
        for text, _ in (row.values for row in rows("page")):
            kind, question = QUESTIONS[MESSAGES[text]]
            state = {"query": "q", "id": "doc"}
            given = {state.get(name, name): value for name, value in question.items()}
            if kind == "similar":
                given["like"] = f"{SOURCE}:11"
            if kind == "references":
                given = {"view": "words", "word": "keybord"}
            shown = tab.open(f"#{urlencode(given)}").inner_text("main").replace("\n\n", "; ")
            assert pattern(text).search(shown), shown


def no_index(folder: Path) -> Mapping[str, list[str]]:
    (folder / "door.py").write_text(CODE)
    with pytest.raises(NcsError) as error:
        Index.load(folder / ".ncs")
    typed_first = typed(folder)  # then MCP begins to build one
    with closing(Projects(McpSettings((folder,), wait=0))) as projects:
        notes = said(_call(projects, None, "search_code", {"query": "open door"}))
        notes += said(_call(projects, None, "find_references", {"name": "open_door"}))
    return {"CLI": typed_first, "MCP": notes, "Python": [str(error.value)]}


def damaged(folder: Path) -> Mapping[str, list[str]]:
    (project(folder) / ".ncs/snapshot.json").write_text("{")
    with pytest.raises(NcsError) as error:
        Index.load(folder / ".ncs")
    return {"CLI": typed(folder), "Python": [str(error.value)]}


def untrusted(folder: Path) -> Mapping[str, list[str]]:
    alter(project(folder) / ".ncs", lambda content: content.update(signature=""))
    with Index.load(folder / ".ncs") as index:
        noted = ask(index, "open door", ranker="hybrid")["notes"]
    with closing(Projects(McpSettings((folder,), wait=0))) as projects:
        notes = said(_call(projects, None, "search_code", {"query": "open door"}))
    return {"CLI": typed(folder), "MCP": notes, "Python": noted}


def behind(folder: Path) -> Mapping[str, list[str]]:
    project(folder)
    with closing(Projects(McpSettings((folder,), wait=0, check=0.5))) as projects:
        _call(projects, None, "search_code", {"query": "open door"})
        for number in range(60):
            (folder / f"{number}.py").write_text(CODE)
        found, notes = typed(folder), list[str]()
        until(lambda: notes.__iadd__(said(_call(projects, None, "search_code", {"query": "open door"}))))
    return {"CLI": found, "MCP": notes}


def other_tree(folder: Path) -> Mapping[str, list[str]]:
    main = project(gitrepo.repository(folder / "main", {"door.py": CODE}))
    gitrepo.git(main, "worktree", "add", "-q", "-b", "w", "../w")
    return {"CLI": typed(folder / "w", "-i", str(main / ".ncs"))}


CODE = "def open_door(door):\n    return door.open()\n"
STATES = {"NO_INDEX": no_index, "UNUSABLE": damaged, "UNTRUSTED": untrusted, "BEHIND": behind, "OTHER_TREE": other_tree}
"""What provokes messages about the index, in an empty folder; what each surface says then."""


def project(folder: Path) -> Path:
    (folder / "door.py").write_text(CODE)
    Index.build(folder, folder / ".ncs").close()
    return folder


def typed(folder: Path, *options: str) -> list[str]:
    return [
        line.removeprefix("ncs: ") for line in invoke("query", "open door", *options, cwd=folder).stderr.splitlines()
    ]


@pytest.mark.parametrize("name", STATES)
def test_a_message_about_the_index_reads_as_the_table_has_it(name: str, tmp_path: Path) -> None:
    (text,) = (text for text, each in MESSAGES.items() if each == name)
    said = STATES[name](tmp_path)
    assert set(said) == set(TABLE[text])
    for surface, lines in said.items():
        assert any(map(pattern(text).fullmatch, lines)), (surface, lines)


def test_every_message_is_provoked() -> None:
    assert sorted([*QUESTIONS, *STATES]) == sorted(MESSAGES.values())
