"""Posts.xml into pairs: streamed, filtered as UNIF's were, split by question, nothing of the evaluation in them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from xml.sax.saxutils import quoteattr

import py7zr
import pytest

from corpora.pairs import Pair, split_of, write_pairs
from corpora.stackoverflow import Filters, is_training_code, is_wanted, read_dump, read_posts
from ncs.errors import BadInput
from ncs.types import Query

HIDE = '<p>Try <code>hide()</code>:</p>\n<pre class="lang-java"><code>view.hide(a &lt; b);\n</code></pre>'


def question(id: int, title: str, *, tags: str = "<java><android>", accepted: int | None = None) -> dict[str, str]:
    row = {"Id": str(id), "PostTypeId": "1", "Score": "3", "Title": title, "Tags": tags, "Body": HIDE}
    return row if accepted is None else {**row, "AcceptedAnswerId": str(accepted)}


def answer(id: int, parent: int, body: str = HIDE, *, score: int = 1) -> dict[str, str]:
    return {
        "Id": str(id), "PostTypeId": "2", "ParentId": str(parent), "Score": str(score), "Body": body,
        "ContentLicense": "CC BY-SA 3.0",
    }  # fmt: skip


def dump(path: Path, rows: Iterable[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.write('\ufeff<?xml version="1.0" encoding="utf-8"?>\n<posts>\n')
        for row in rows:
            attributes = " ".join(f"{key}={quoteattr(value, {chr(10): '&#xA;'})}" for key, value in row.items())
            file.write(f"  <row {attributes} />\n")
        file.write("</posts>")
    return path


ROWS = [
    answer(1, 10),  # before its question, as after a merge
    question(10, "How to hide a view", accepted=13),
    question(11, "Android Studio hides my view"),
    question(12, "Hide a view in Python", tags="<python>"),
    answer(13, 10, "<pre><code>a();\n</code></pre> or <pre><code>b();\n  c();</code></pre>", score=-2),
    answer(14, 10, score=0),
    answer(15, 11),
    answer(16, 12),
    {"Id": "17", "PostTypeId": "5", "Body": "a tag wiki", "Score": "0"},
    question(18, "Büro \N{RIGHT SINGLE QUOTATION MARK}öffnen\N{RIGHT SINGLE QUOTATION MARK}"),
    answer(19, 18),
]


def test_pairs_are_the_code_of_accepted_or_upvoted_answers(tmp_path: Path) -> None:
    pairs = list(read_dump(dump(tmp_path / "Posts.xml", ROWS)))
    assert [(pair.id, pair.code) for pair in pairs] == [
        ("10-1-0", "view.hide(a < b);"),
        ("10-13-0", "a();"),
        ("10-13-1", "b();\n  c();"),
        ("18-19-0", "view.hide(a < b);"),
    ]
    assert pairs[0] == Pair("How to hide a view", "view.hide(a < b);", "java", "Stack Overflow", "10-1-0", "10",
                            split_of("10"), "CC BY-SA 3.0")  # fmt: skip
    assert pairs[-1].query == "Büro ’öffnen’"


def test_a_7z_gives_the_same_rows_as_the_plain_file_and_may_be_left_early(tmp_path: Path) -> None:
    path = dump(tmp_path / "Posts.xml", ROWS * 500)
    with py7zr.SevenZipFile(tmp_path / "Posts.7z", "w") as archive:
        archive.write(path, "Posts.xml")
    assert list(read_posts(tmp_path / "Posts.7z")) == list(read_posts(path))
    assert next(iter(read_posts(tmp_path / "Posts.7z"))) == ROWS[0]


def test_evaluation_questions_are_left_out_by_title_and_the_seed_decides_the_split_of_a_question(
    tmp_path: Path,
) -> None:
    held_out = [Query("9", "how to HIDE a view?!")]
    pairs = list(read_dump(dump(tmp_path / "Posts.xml", ROWS), held_out=held_out, seed=5))
    assert {(pair.question_id, pair.split) for pair in pairs} == {("18", split_of("18", 5))}
    splits = [split_of(str(id)) for id in range(5_000)]
    counts = Counter(splits)
    assert counts["train"] == pytest.approx(4_500, abs=80)
    assert counts["valid"] == pytest.approx(250, abs=60)
    assert splits != [split_of(str(id), 1) for id in range(5_000)]


@pytest.mark.parametrize(
    ("title", "tags", "selected"),
    [
        ("Hide it", "|android|java|", True),
        ("Hide it", "<android-ndk>", False),
        ("Gradle: hide it", "<android>", False),
        ("Emulators hide it", "<android>", True),  # another word
    ],
)
def test_tags_and_words_of_the_title_decide_about_a_question(title: str, tags: str, selected: bool) -> None:
    assert is_wanted(question(1, title, tags=tags), Filters()) == selected


@pytest.mark.parametrize(
    ("code", "learnable"),
    [
        ("if (a) { b = c; }", False),
        ("super.onCreate(b);\nList<String> x = new ArrayList<String>();", True),
        ('<TextView\n android:id="@+id/a" />\nfindViewById(R.id.a);', False),
    ],
)
def test_code_must_call_something_and_hold_no_xml(code: str, learnable: bool) -> None:
    assert is_training_code(code, "java") == learnable


def test_a_wrong_or_missing_7z_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "Posts.7z"
    with pytest.raises(BadInput, match=r"there is no .*Posts\.7z"):
        list(read_posts(path))
    path.write_bytes(b"7z" * 100)
    with pytest.raises(BadInput, match=r"Posts\.7z is damaged or no \.7z"):
        list(read_posts(path))
    (tmp_path / "x").write_text("x")
    with py7zr.SevenZipFile(path, "w") as archive:
        archive.write(tmp_path / "x", "Comments.xml")
    with pytest.raises(BadInput, match=r"holds no Posts\.xml"):
        list(read_posts(path))


def test_pairs_are_written_without_empty_values(tmp_path: Path) -> None:
    pairs = [
        Pair("q", "c();", "java", "s", "1-2-0", "1", "train", "CC BY-SA 4.0"),
        Pair("q2", "d();", "python", "s", "x"),
        Pair("q3", "e();", "python", "s", "y", "docs/a", "test"),
    ]
    path = tmp_path / "pairs.jsonl.gz"
    assert write_pairs(pairs, path) == 3
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert rows[0] == {**asdict(pairs[0]), "question_id": 1}
    assert rows[1] == {"query": "q2", "code": "d();", "language": "python", "source": "s", "id": "x"}
    assert (rows[2]["question_id"], rows[2]["split"]) == ("docs/a", "test")


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    def broken() -> Iterable[Pair]:
        yield Pair("q", "c", "java", "s", "1")
        raise BadInput("the dump is damaged")

    with pytest.raises(BadInput):
        write_pairs(broken(), tmp_path / "pairs.jsonl")
    assert list(tmp_path.iterdir()) == []
