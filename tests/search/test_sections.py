"""Sections of prose beside code: what is searched, what stands back, and that code does not notice them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ncs.cli.info import documents_text
from ncs.errors import BadInput
from ncs.index import Index
from ncs.learn.embeddings import Embeddings
from ncs.search.similar import function_at
from ncs.storage.file_roles import FOLDER, SECTIONS
from tests import gitrepo

CODE = {
    "forms.py": 'def check_input(form):\n    """Check the input of a form."""\n    return form.validate()\n',
    "files.py": "def read_settings(path):\n    with open(path) as file:\n        return parse(file)\n",
    "send.py": "def send_mail(address, text):\n    return connect(address).send(text)\n",
}
GUIDE = """# Guide

## Installation

To install the program, get the wheel and put it into an environment of your own.

## Checking input

The input of a form is checked, rule by rule, when somebody sends it; check the input of a form first.

```python
check_input(form)
```
"""
CHANGES = "# Changes\n\n## 2.0\n\nThe input of a form is checked, rule by rule, when somebody sends it to us.\n"


def build(folder: Path, files: dict[str, str]) -> Index:
    return Index.build(gitrepo.write(folder / "project", files), folder / "index", workers=1)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with build(tmp_path_factory.mktemp("both"), {**CODE, "docs/guide.md": GUIDE, "CHANGELOG.md": CHANGES}) as index:
        yield index


def names(index: Index, text: str, **options: object) -> list[str]:
    return [hit.document.qualified_name for hit in index.search(text, 10, **options)]  # type: ignore[arg-type]


def test_code_leads_and_sections_follow(index: Index) -> None:
    found = names(index, "check the input of a form")
    assert found[0] == "check_input"
    assert found.index("Guide > Checking input") < found.index("Changes > 2.0")


def test_sections_lead_where_the_question_is_about_documents(index: Index) -> None:
    assert names(index, "guide to checking input")[0] == "Guide > Checking input"
    assert names(index, "how do I install it")[0] == "Guide > Installation"
    assert names(index, "changelog rule by rule")[0].startswith("Changes")


FORMS = {f"forms{at}.py": CODE["forms.py"].replace("input(", f"input{at}(") for at in range(8)}
"""Functions that all have more of the question than the guide."""
QUESTION = "how do I check the input of a form"
ANSWER = "Guide > Checking input"


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with build(tmp_path_factory.mktemp("crowded"), {**FORMS, "docs/guide.md": GUIDE, "CHANGELOG.md": CHANGES}) as index:
        yield index


def test_the_section_that_answers_has_the_third_place_in_an_order_that_is_elsewise_that_of_code(crowded: Index) -> None:
    found, code = names(crowded, QUESTION, unfold=True), names(crowded, QUESTION, content="code", unfold=True)
    assert len(code) == 8
    assert [name for name in found if " > " not in name] == code
    assert found[2] == ANSWER
    for k in range(1, 8):
        hits = crowded.search(QUESTION, k, unfold=True)
        assert [hit.document.qualified_name for hit in hits] == found[:k]
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.parametrize("path", ["CHANGELOG.md", "docs/cn/guide.md"])
def test_neither_changelogs_nor_documents_in_another_language_answer(tmp_path: Path, path: str) -> None:
    with build(tmp_path, {**FORMS, path: GUIDE}) as index:
        assert ANSWER not in names(index, QUESTION, unfold=True)[:3]
        assert ANSWER in names(index, QUESTION, unfold=True)


def test_an_explanation_adds_up_to_the_score_of_a_section_that_was_raised(crowded: Index) -> None:
    results = crowded.results(QUESTION, 8, unfold=True, explain=True)
    explained = results.explanation.hits[2]  # type: ignore[union-attr]
    assert sum(explained["shares"].values()) == pytest.approx(results.hits[2].score)
    assert explained["factors"]["section"] > 0.3
    assert explained["factors"]["saturation"] == 1


@pytest.mark.parametrize(
    "question",
    ["where is the input of a form checked", "error: cannot check the input of a form", "check_input3",
     "check that the input of forms is no form of robots, viruses and spam"],
    ids=["where", "a message", "a name", "most of it elsewhere"],
)  # fmt: skip
def test_other_questions_reserve_no_place(crowded: Index, question: str) -> None:
    assert ANSWER not in names(crowded, question, unfold=True)[:3]


def test_a_message_with_a_path_does_not_ask_for_documents(index: Index) -> None:
    assert names(index, "error: docs/manual.pdf: cannot check input of form")[0] == "check_input"


def test_content_says_what_is_searched(index: Index) -> None:
    text = "check the input of a form"
    assert {hit.document.kind for hit in index.search(text, content="docs")} == {"section"}
    for options in ({"content": "code"}, {"functions_only": True}, {"ranker": "bm25"}):
        assert "check_input" in names(index, text, **options)
        assert "Guide > Checking input" not in names(index, text, **options), options
    for options in ({"kind": "section"}, {"language": "markdown"}, {"ranker": "bm25", "content": "all"}):
        assert "Guide > Checking input" in names(index, text, **options), options
    assert "Guide > Checking input" in names(index, text, ranker="bm25", kind="section")
    with pytest.raises(BadInput, match="choose from all, code, docs"):
        index.search(text, content="prose")


def test_code_is_ranked_as_if_there_were_no_sections(index: Index, tmp_path: Path) -> None:
    with build(tmp_path, CODE) as alone:
        for text in ("check the input of a form", "read settings", "send"):
            mine, its = index.search(text, content="code"), alone.search(text)
            assert [hit.document.name for hit in mine] == [hit.document.name for hit in its]
            assert np.allclose([hit.score for hit in mine], [hit.score for hit in its])
        words, others = alone.words().vocabulary, index.words().vocabulary
        ids = others.ids_of(list(words))
        vectors = Embeddings.load(index.snapshot.statistics).vectors
        assert np.allclose(vectors[ids], Embeddings.load(alone.snapshot.statistics).vectors, atol=1e-4)
        assert not (alone.snapshot.segments[0].path / FOLDER / SECTIONS).exists()


def test_a_heading_defines_nothing_and_is_not_similar_to_a_function(index: Index) -> None:
    assert "Guide > Installation" not in names(index, "Installation", content="code")
    function = function_at(index.snapshot.roots[0] / "forms.py", 2)
    assert "section" not in {hit.document.kind for hit in index.similar(function)}


def test_counts_name_sections(index: Index) -> None:
    assert documents_text(index.description.counts) == "3 functions, 3 sections of documentation"


def test_a_project_of_documents_alone_is_searched(tmp_path: Path) -> None:
    with build(tmp_path, {"guide.md": GUIDE, "more.rst": f"Mail\n====\n\n{CHANGES[20:]}"}) as alone:
        assert names(alone, "get the wheel")[0] == "Guide > Installation"


def test_updates_keep_sections(tmp_path: Path) -> None:
    build(tmp_path, {**CODE, "docs/guide.md": GUIDE}).close()
    (tmp_path / "project" / "new.md").write_text(
        "# Mail\n\nLetters are sent by pigeon, whatever the weather is like over the sea.\n"
    )
    with Index.update(tmp_path / "index", workers=1)[0] as updated:
        assert names(updated, "sent by pigeon", content="docs")[0] == "Mail"
        assert "Mail" not in names(updated, "sent by pigeon", content="code")
