"""Regular expressions as a filter: which documents match, and that none takes longer than its limit."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ncs import workers
from ncs.answer import ask
from ncs.errors import BadInput
from ncs.index import Index
from ncs.types import Document
from tests.waiting import LONG

CODES = {
    "b.py": 'def zip_all(x):\n    return sleep(3)\n\n\n    "a\x1fb"',
    "a.py": "def wait(x):\n    sleep(x)\n    return sleep(2)",
    "c.py": "def other(x):\n    return asleep or x  # " + "a" * 50,
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    documents = [
        Document(
            f"app/{path}:1", "app", path, 1, 3, "python", "function", code[4:7], code[4:7], {"name": ("dock",)}, code
        )
        for path, code in CODES.items()
    ]
    with Index.of(documents, tmp_path_factory.mktemp("regexp") / ".ncs") as opened:
        yield opened


def paths(index: Index, regexp: str, text: str = "", **options: object) -> list[str]:
    return [hit.document.path for hit in index.search(text, regexp=regexp, **options)]  # type: ignore[arg-type]


def test_alone_it_lists_what_matches_in_the_order_of_paths(index: Index) -> None:
    assert paths(index, r"\bsleep\(") == ["a.py", "b.py"]
    assert paths(index, r"\bsleep\(", k=1) == ["a.py"]
    assert paths(index, r"^def o") == ["c.py"]  # the beginning of a line
    assert paths(index, r"x\):$") == ["a.py", "b.py", "c.py"]
    assert paths(index, r"\x1f") == ["b.py"]  # stored as JSON
    assert paths(index, r"^zip$") == ["b.py"]  # its qualified name
    assert paths(index, "nothing") == []


def test_with_a_question_it_filters_and_the_answer_says_what_matched(index: Index) -> None:
    assert paths(index, "asleep", "dock") == ["c.py"]
    answer = ask(index, "dock", ranker="bm25", regexp=r"sleep\((x|2)\)")
    (hit,) = answer["hits"]
    assert (answer["ranker"], answer["regexp"]) == ("bm25", r"sleep\((x|2)\)")
    assert hit["regexp_matches"] == ["sleep(x)", "sleep(2)"]
    listing = ask(index, "", 1, ranker="hybrid", regexp="sleep")
    assert (listing["ranker"], listing["notes"]) == ("regexp", ["3 places match; not all are shown"])
    assert [(hit["rank"], hit["score"], hit["confidence"]) for hit in listing["hits"]] == [(1, 1.0, None)]
    assert ask(index, "", 1, ranker="hybrid", regexp="xyzzy")["notes"] == ["nothing found; use other words"]


@pytest.mark.parametrize("regexp", ["(", "a{99999999999}", "[[:", "x" * 2_000, "(" * 500 + ")" * 500])
def test_a_wrong_one_is_refused_in_one_line(index: Index, regexp: str, recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(BadInput) as error:
        paths(index, regexp)
    assert "\n" not in str(error.value)
    assert not recwarn


def test_a_hostile_one_ends_at_its_limit(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PARSE_SECONDS", 1.0)
    start = time.monotonic()
    with pytest.raises(BadInput, match=r"cannot be matched \(no answer within 1 seconds\); write a simpler one"):
        paths(index, "(a|a)+!")
    assert time.monotonic() - start < LONG
