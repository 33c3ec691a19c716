"""Bug reports: what is read of them, and the files where they are mended."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ncs.answer import ask, locate
from ncs.errors import BadInput
from ncs.index import Index
from ncs.search.locate import MEAN_SHOWN, WEIGHTS
from ncs.search.question import MAX_QUERY
from ncs.search.report import CAPITAL, MARKED, PLAIN, read_report, report_title
from tests import gitrepo
from tests.command import invoke
from tests.waiting import LONG

REPORT = """Dates before 1970 are parsed as today

<!-- Please search for similar issues first, see CONTRIBUTING.md -->
**Describe the bug**
A clear and concise description of what the bug is.
`parse_date` forgets the year, see https://example.org/shop/blob/main/src/shop/dates.py#L3 for the code
- [x] I have searched

```python
from shop.dates import parse_date
parse_date("1969-07-20")
```
    >>> today()

### System details
Windows, tzdata 2021, `platform_name`
```
shop 1.2
```
### More
It was right in an old release.
"""
FILES = {
    "src/shop/dates.py": """
def parse_date(text):
    year, month, day = text.split("-")
    return make_date(today_year(), month, day)

def today_year():
    return clock.now().year
""",
    "src/shop/cart.py": """
def add_to_cart(cart, item):
    cart.items.append(item)
    return total_of(cart)

def total_of(cart):
    return sum(item.price for item in cart.items)
""",
    "src/shop/report.py": """
def monthly_report(orders):
    return [parse_date(order.day) for order in orders]
""",
    "tests/test_dates.py": """
def test_parse_date_before_1970():
    assert parse_date("1969-07-20").year == 1969
""",
    "README.md": "# Dates\n\nDates before 1970 are parsed as today: parse_date.\n",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = gitrepo.write(tmp_path_factory.mktemp("shop"), FILES)
    Index.build(root, root / ".ncs").close()
    return root


def test_the_parts_of_a_report_are_apart_and_what_every_report_says_is_left_out() -> None:
    report = read_report(REPORT)
    assert report.title == "Dates before 1970 are parsed as today"
    prose = "`parse_date` forgets the year, see for the code It was right in an old release."
    assert " ".join(report.prose.split()) == prose
    assert report.code.splitlines() == [
        "from shop.dates import parse_date", 'parse_date("1969-07-20")', "    >>> today()",
    ]  # fmt: skip
    assert {name: report.names[name] for name in ("parse_date", "Dates", "before")} == {
        "parse_date": MARKED, "Dates": CAPITAL, "before": PLAIN,
    }  # fmt: skip
    assert "platform_name" not in report.names
    assert "today" in report.names
    assert "shop" in report.used
    assert ("src", "shop", "dates.py") in report.paths


def test_a_trace_alone_has_its_message_as_title() -> None:
    report = read_report(
        'Traceback (most recent call last):\n  File "src/a.py", line 3, in run\n    go()\nOSError: full\n'
    )
    assert report.title == "OSError: full"
    assert [frame.path for frame in report.trace.frames] == [("src", "a.py")]


def test_each_signal_finds_the_file_it_is_about(project: Path) -> None:
    with Index.load(project / ".ncs") as index:
        files = {file.path: file.signals for file in index.locate(REPORT)}
        assert next(iter(files)) == "src/shop/dates.py"
        assert {"title", "report", "words", "names", "path", "called"} <= set(files["src/shop/dates.py"])
        assert files["src/shop/dates.py"]["path"] == WEIGHTS["path"]
        assert "names" not in files["src/shop/report.py"]
        assert files["src/shop/report.py"]["uses"] > 0
        trace = 'it fails\n  File "/usr/lib/shop/cart.py", line 7, in total_of\n'
        assert index.locate(trace, 1)[0].path == "src/shop/cart.py"
        assert index.locate(trace, 1)[0].signals["trace"] == WEIGHTS["trace"]
        assert {file.path for file in index.locate("wrong total in src\\shop\\cart.py", 1)} == {"src/shop/cart.py"}


def test_tests_stand_back_and_prose_is_left_out(project: Path) -> None:
    with Index.load(project / ".ncs") as index:
        found = index.locate(REPORT)
        assert found[-1].path == "tests/test_dates.py"
        assert "README.md" not in {file.path for file in found}
        about_tests = index.locate("test_parse_date_before_1970 fails in tests/test_dates.py", path="tests")
        assert [file.path for file in about_tests] == ["tests/test_dates.py"]
        assert about_tests[0].signals["role"] == -1


def test_files_come_with_reasons_and_their_best_functions(project: Path) -> None:
    with Index.load(project / ".ncs") as index:
        answer = locate(index, REPORT, 2)
        hit = answer["hits"][0]
        assert (hit["qualified_name"], hit["start_line"]) == ("parse_date", 2)
        assert hit["reasons"][0] == "named in the report"
        assert "defines parse_date" in hit["reasons"][1]
        assert [other["qualified_name"] for other in hit["more"]][:1] == ["today_year"]
        assert sum(hit["signals"].values()) == pytest.approx(hit["score"], abs=1e-3)
        assert [hit["rank"] for hit in answer["hits"]] == list(range(1, len(answer["hits"]) + 1))


def test_functions_of_a_stack_trace_are_at_the_lines_of_their_frames(project: Path) -> None:
    trace = "It fails" + "".join(
        f'\n  File "/x/shop/cart.py", line {line}, in {name}' for line, name in ((4, "add_to_cart"), (7, "total_of"))
    )
    with Index.load(project / ".ncs") as index:
        (first,), (unframed,) = (locate(index, report, 1)["hits"] for report in (trace, "`total_of` is wrong"))
    assert (first["qualified_name"], first["start_line"], first["line"]) == ("add_to_cart", 2, 4)
    assert [(other["qualified_name"], other["line"]) for other in first["more"]] == [("total_of", 7)]
    assert "line" not in unframed
    plain = invoke("locate", trace, cwd=project).stdout
    assert plain.startswith("1. add_to_cart  src/shop/cart.py:4  frame\n   in the stack trace; ")
    assert "also total_of:7\n" in plain


def test_functions_are_shown_where_the_report_says_most_and_classes_only_without_functions(tmp_path: Path) -> None:
    names = [
        f"{verb}_ledger_balance" for verb in ("open", "close", "read", "write", "lock", "move", "copy", "sum", "drop")
    ]
    bodies = "".join(f"    def {name}(self):\n        return self.ledger.balance\n\n" for name in names)
    files = {
        "ledger.py": f"class LedgerBalance:\n    limit = 3\n\n{bodies}",
        "errors.py": "class LedgerError(Exception):\n    balance = None\n",
        "web.py": "def show_ledger(page):\n    page.draw()\n\ndef send(page):\n    page.post()\n",
    }
    with Index.build(gitrepo.write(tmp_path / "bank", files), tmp_path / "index") as index:
        found = {file.path: file for file in index.locate("The balance of the ledger is wrong")}
        shown = {path: [each.name for each in index.documents.documents(file.rows)] for path, file in found.items()}
    assert next(iter(found)) == "ledger.py"
    assert len(shown["ledger.py"]) == MEAN_SHOWN * len(found), "the best of all files, and one of each in any case"
    assert set(shown["ledger.py"]) < set(names)
    assert (shown["errors.py"], shown["web.py"]) == (["LedgerError"], ["show_ledger"])
    for file in found.values():
        assert list(file.row_scores) == sorted(file.row_scores, reverse=True)


def test_an_update_finds_the_files_that_a_build_finds(project: Path, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    shutil.copytree(project, root)
    moved = root / "src/shop/cart.py"
    moved.rename(root / "src/shop/basket.py")
    with Index.update(root / ".ncs")[0] as updated, Index.build(root, tmp_path / "new") as built:
        report = "total_of(cart) is wrong"
        first, second = ([file.path for file in index.locate(report)] for index in (updated, built))
        assert first == second
        assert first[0] == "src/shop/basket.py"


@pytest.mark.parametrize("text", ["a", "a.", "/a", "`", "a1_", "<!--", "# ", "```\n", "/blob/a", "A b"])
def test_a_report_of_one_thing_repeated_is_read_at_once(text: str) -> None:
    report = read_report(text * (MAX_QUERY // len(text)))
    assert len(report.names) <= 300
    assert len(report.paths) <= 300


@pytest.mark.parametrize(("report", "message"), [(" \n", "nothing to search for"), ("x" * (MAX_QUERY + 1), "32,769")])
def test_a_report_that_cannot_be_read_is_refused(project: Path, report: str, message: str) -> None:
    with Index.load(project / ".ncs") as index, pytest.raises(BadInput, match=message):
        index.locate(report)


def test_the_command_reads_a_file_stdin_or_text(project: Path, tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text(REPORT)
    folder = ("-i", str(project / ".ncs"))
    from_file = invoke("locate", "issue.md", *folder, "--json", "-n", "1", cwd=tmp_path)
    piped = subprocess.run(
        [sys.executable, "-m", "ncs.cli", "locate", "-", *folder, "--json", "-n", "1"], input=REPORT, text=True,
        capture_output=True, check=True, timeout=LONG,
    )  # fmt: skip
    hits = json.loads(from_file.stdout)["hits"]
    assert hits[0]["path"] == "src/shop/dates.py"
    assert hits[0]["id"] == json.loads(piped.stdout)["hits"][0]["id"]
    (tmp_path / "an issue.md").write_text(REPORT)
    assert invoke("locate", "an issue.md", *folder, "--json", "-n", "1", cwd=tmp_path).stdout == from_file.stdout
    table = invoke("locate", "`total_of` is wrong", *folder, "-n", "1", cwd=tmp_path)
    assert "cart.py" in table.stdout
    assert "defines total_of" in table.stdout
    missing = invoke("locate", "no/such.md", *folder, cwd=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr.count("\n") == 1
    assert "quote its text" in missing.stderr
    assert invoke("locate", "qqqq zzzz", *folder, cwd=tmp_path).returncode == 1


LONG_REPORT = """Total of the cart ignores items

We have added dates to the shop, and now nobody pays what they should: the year, the month and the day are parsed
as they were before, and yet it is wrong on each of our machines.
"""


def test_a_report_as_a_query_is_asked_by_its_title(project: Path) -> None:
    with Index.load(project / ".ncs") as index:
        report, title = (ask(index, text, ranker="hybrid") for text in (LONG_REPORT, LONG_REPORT.partition("\n")[0]))
    assert [hit["id"] for hit in report["hits"]] == [hit["id"] for hit in title["hits"]]
    assert [hit["matched"] for hit in report["hits"]] == [hit["matched"] for hit in title["hits"]]
    assert report["notes"][-1].startswith("searched for the title of this report only")
    assert report["hits"][0]["path"] == "src/shop/cart.py"
    assert report["hits"][0]["name"] == "total_of"


@pytest.mark.parametrize(
    "text",
    [
        "how does the shop parse the dates\nof the cart that a user has",
        "Traceback (most recent call last):\n" + LONG_REPORT,
        "package org.shop;\n" + LONG_REPORT,
        "const total = sum(all, of, the, items);\n" * 20,
        "### Describe the bug\n" + LONG_REPORT,
    ],
    ids=["question", "trace", "java", "code", "form"],
)
def test_what_is_no_report_has_no_title(text: str) -> None:
    assert report_title(text) == ""


def test_a_long_question_to_functions_without_files_is_read_whole(project: Path, tmp_path: Path) -> None:
    with Index.load(project / ".ncs") as index:
        documents = [replace(each, path="") for each in index.documents.documents(range(len(index)))]
    with Index.of(documents, tmp_path / ".ncs") as bare:
        assert not any("title" in note for note in ask(bare, LONG_REPORT, ranker="hybrid")["notes"])
