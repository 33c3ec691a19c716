"""Answers within their tokens whatever is shown, clean lines, and where the projects lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.errors import BadInput
from ncs.serve.mcp.pages import Row, escape, fill
from ncs.serve.mcp.projects import Projects
from ncs.serve.mcp.settings import MIN_TOKENS, TOKEN_BYTES, Settings
from ncs.serve.mcp.tools import answer

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=240)
ROWS = st.lists(
    st.builds(
        lambda header, code, lines: Row(header, {"name": header}, code, len(code) + lines, "a.py:1"),
        TEXT,
        st.lists(TEXT.map(escape), max_size=20),
        st.integers(0, 1000),
    ),
    max_size=12,
)


@pytest.mark.slow
@given(ROWS, st.lists(TEXT, max_size=8), st.integers(MIN_TOKENS, 2_000), st.booleans())
def test_no_answer_is_larger_than_its_tokens(rows: list[Row], notes: list[str], tokens: int, more: bool) -> None:
    head, envelope = [f"note: {note}" for note in notes], {"query": "x", "notes": notes}
    page = fill(head, envelope, rows, tokens, start=0, more=more)
    assert len(page.text.encode()) <= tokens * TOKEN_BYTES
    assert len(json.dumps(page.structured, ensure_ascii=False).encode()) <= tokens * TOKEN_BYTES
    shown = page.structured["hits"]
    assert [hit["name"] for hit in shown] == [row.header for row in rows[: len(shown)]]
    assert (page.structured["next_cursor"] is None) == (len(shown) == len(rows) and not more)
    if rows:
        assert shown  # one hit always fits into the least there may be


@given(st.text())
def test_clean_text_shows_no_control_and_no_bidi(text: str) -> None:
    found = escape(text)
    assert all(letter.isprintable() or letter in "\t\u3000" for letter in found)
    assert not set(found) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u2028\u2029")
    found.encode()  # no surrogates


def test_all_projects_of_the_command_line_are_served_and_no_others(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "same").mkdir(parents=True)
    roots = (tmp_path / "one" / "same", tmp_path / "two" / "same")
    projects = Projects(Settings(roots=roots))
    served = projects.of([(tmp_path / "one").as_uri()])
    assert [(project.name, project.root) for project in served] == [("same", roots[0]), ("same~2", roots[1])]
    assert not projects.uses_client_roots
    with pytest.raises(BadInput, match="is not a folder"):
        Projects(Settings(roots=(tmp_path / "none",)))


def test_an_index_elsewhere_answers_from_the_files_it_was_made_of_not_with_outlines(demo: Path) -> None:
    projects = Projects(Settings(indexes=(demo / ".ncs",)))
    try:
        page = answer(projects, None, "search_code", {"query": "hide soft keyboard", "k": 1})
        place = page.structured["hits"][0]["place"]
        assert (demo / "repos" / place.rpartition(":")[0]).is_file()
        whole = answer(projects, None, "get_function", {"place": place})
        assert "hideSoftInputFromWindow" in whole.text
        (hit,) = answer(projects, None, "find_definition", {"name": "Archive"}).structured["hits"]
        assert hit["kind"] == "class"
        whole = answer(projects, None, "get_function", {"place": hit["place"]})
        assert whole.structured["code"].startswith("class Archive:\n    def extract_all(self, target):\n")
        assert "member.extract(target)" in whole.structured["code"]
    finally:
        projects.close()


def test_a_home_folder_is_not_indexed_and_the_remedy_names_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    projects = Projects(Settings())
    with pytest.raises(BadInput, match=r"holds your home folder.*; start ncs mcp in a project, or with --root PROJECT"):
        answer(projects, None, "search_code", {"query": "x"})
    assert list(tmp_path.iterdir()) == []
