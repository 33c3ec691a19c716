"""The commands as a person types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import corpus
from tests.command import ncs
from tests.waiting import LONG


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    corpus.write(folder / "repos")
    done = ncs("build", "repos", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    says = "6 functions, 4 classes and top-level blocks (3 exact copies folded) from 4 files of 3 repositories"
    assert says in done.stderr
    return folder


def test_query_prints_the_function_its_place_and_its_code(home: Path) -> None:
    done = ncs("query", "hide soft keyboard", "-k", "2", cwd=home)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("1. Keyboards.hideSoftKeyboard  app/src/Keyboards.java:11  ")
    assert lines[1] == "   also at copy/src/Keyboards.java:11"
    assert "    13      manager.hideSoftInputFromWindow(activity.getCurrentFocus().getWindowToken(), 0);" in lines
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_json_is_one_object_and_jsonl_one_hit_a_line(home: Path) -> None:
    answer = json.loads(ncs("query", "hide soft keyboard", "--json", cwd=home).stdout)
    assert set(answer) == {"query", "ranker", "index", "kind", "unknown_words", "notes", "hits"}
    assert answer["kind"] == "keywords"
    first = answer["hits"][0]
    assert (first["rank"], first["qualified_name"], first["start_line"]) == (1, "Keyboards.hideSoftKeyboard", 11)
    assert first["matched"] == ["hide", "soft", "keyboard"]
    lines = ncs("query", "hide soft keyboard", "--jsonl", cwd=home).stdout.splitlines()
    assert [json.loads(line) for line in lines] == answer["hits"]


def test_explain_says_what_the_score_is_the_sum_of(home: Path) -> None:
    done = ncs("query", "how to hide the soft keyboard", "-k", "1", "--explain", cwd=home)
    lines = done.stdout.splitlines()
    assert " ".join(map(str.strip, lines[:2])).startswith(
        "how-to query; words: hide, soft, keyboard; left out: how, to, the; "
        "candidates: 10 of 2 repositories; gates: consensus 0."
    )
    assert max(map(len, lines[: lines.index("    11  public static void hideSoftKeyboard(Activity activity) {")])) <= 80
    score = next(line for line in lines if line.startswith("1. ")).split()[-1]
    assert any(line.startswith(f"   {score} = lexical ") for line in lines)
    assert any(line.split()[:3] == ["keyboard", "keyboard", "1.00"] for line in lines)


def test_no_code_leaves_the_code_out_everywhere(home: Path) -> None:
    assert "hideSoftInputFromWindow" not in ncs("query", "hide soft keyboard", "--no-code", cwd=home).stdout
    answer = json.loads(ncs("query", "hide soft keyboard", "--no-code", "--json", cwd=home).stdout)
    assert {hit["code"] for hit in answer["hits"]} == {None}


def test_the_index_is_found_from_a_folder_below(home: Path) -> None:
    assert ncs("query", "hide soft keyboard", cwd=home / "repos" / "app" / "src").returncode == 0


def test_an_unknown_word_is_read_as_the_nearest_known_one_and_the_note_says_so(home: Path) -> None:
    done = ncs("query", "the keybord", "-k", "1", cwd=home)
    assert done.returncode == 0
    assert done.stdout.startswith("1. class Keyboards  app/src/Keyboards.java:7  ")
    assert done.stderr == "ncs: no match for 'keybord'; searching for 'keyboard'\n"


def test_a_ranker_without_other_spellings_finds_nothing_and_names_near_words(home: Path) -> None:
    done = ncs("query", "the keybord", "--ranker", "bm25", cwd=home)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "ncs: no match for 'keybord' (similar words: keyboard, keyboards)\n"
        "ncs: no results; use other words, or see what is indexed: ncs info\n"
    )


@pytest.mark.parametrize(("question", "says"), [("how to", "only common words"), ("?!", "no words in the query")])
def test_a_question_without_content_is_told_so(home: Path, question: str, says: str) -> None:
    assert says in ncs("query", question, cwd=home).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "x", "-i", "nowhere"], "no index at nowhere"),
        (["query", "x", "--ranker", "magic"], "'magic'"),
        (["query", "x", "--ranker", "two_field"], "built without 'two_field'"),
        (["query", "x", "-k", "0"], "-k"),
        (["build", "nowhere"], "nowhere"),
        (["build", "repos", "--java-frontend", "antlr", "-i", "other"], "antlr"),
        (["build", "repos", "--pretrained", "none.vec", "-i", "other"], "none.vec"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_a_mistake_is_status_2_with_its_remedy_and_no_traceback(home: Path, arguments: list[str], message: str) -> None:
    done = ncs(*arguments, cwd=home)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (home / "other").exists()


def test_without_an_index_the_remedy_is_named(tmp_path: Path) -> None:
    done = ncs("query", "anything", cwd=tmp_path)
    assert done.returncode == 2
    assert "ncs build" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_info_tells_what_is_in_the_index(home: Path) -> None:
    described = json.loads(ncs("info", "--json", "--verify", cwd=home).stdout)
    assert described["documents"] == 10
    assert described["repositories"] == {"app": 5, "copy": 0, "tools": 5}
    assert described["languages"] == {"java": 5, "python": 5}
    assert described["config"]["fasttext"]["window"] == 5
    text = ncs("info", cwd=home).stdout
    assert "6 functions, 4 classes and top-level blocks, and 3 exact copies of them" in text


def test_words_lists_neighbours_and_knows_what_it_does_not_know(home: Path) -> None:
    done = ncs("words", "keyboard", "-n", "3", "--json", cwd=home)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["words"]) == 3
    unknown = ncs("words", "keybord", cwd=home)
    assert unknown.returncode == 1
    assert "keyboard" in unknown.stderr


@pytest.mark.slow
def test_quiet_says_nothing(home: Path, tmp_path: Path) -> None:
    done = ncs("build", str(home / "repos"), "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("snapshot.json", "{", "snapshot.json"),
        ("snapshot.json", '{"format": 7}', "has format 7, this ncs reads"),
        ("manifest.json", '{"format": 2}', "has an older format, this ncs reads"),
    ],
)
def test_an_index_that_is_damaged_or_of_an_older_format_is_refused_in_one_line_with_the_remedy(
    tmp_path: Path, file: str, content: str, message: str
) -> None:
    (tmp_path / ".ncs").mkdir()
    (tmp_path / ".ncs" / file).write_text(content)
    done = ncs("query", "keyboard", cwd=tmp_path)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert message in done.stderr
    assert "ncs build" in done.stderr


def test_a_query_imports_neither_the_build_nor_servers_nor_heavy_libraries(home: Path) -> None:
    program = (
        "import sys; sys.argv = ['ncs', 'query', 'hide soft keyboard', '--json']\n"
        "from ncs.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ['scipy', 'sklearn', 'torch', 'fasttext', 'javalang', 'tree_sitter', 'rich', 'rapidfuzz']\n"
        "heavy += ['fastapi', 'pymilvus', 'ncs.build', 'ncs.extract', 'ncs.sources', 'ncs.scale', 'ncs.serve.http']\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=home, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def complete(words: str, cwd: Path) -> list[str]:
    """What bash is offered for the last word of a line."""
    at = {"_NCS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    program = "import sys; sys.argv = ['ncs']; from ncs.cli.main import main; main()"
    env = {k: v for k, v in os.environ.items() if not k.startswith("NCS_")} | at
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=LONG)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ncs doc", ["doctor"]),
        ("ncs query --ranker ncs_", ["ncs_centred", "ncs_enhanced", "ncs_postrank"]),
        ("ncs query --format ", ["table", "plain", "json", "jsonl", "vimgrep"]),
        ("ncs query --language j", ["java"]),
        ("ncs query --kind cl", ["class"]),
        ("ncs query --repository ", ["app", "copy", "tools"]),
        ("ncs eval x.tsv --ranker bm", ["bm25"]),
    ],
)
def test_shells_complete_commands_rankers_formats_and_what_the_index_holds(
    home: Path, words: str, offered: list[str]
) -> None:
    assert complete(words, home) == offered


def test_an_error_with_line_ends_is_one_line(home: Path) -> None:
    done = ncs("query", "x", "--ranker", "two\nlines\x1b[2J", cwd=home)
    assert done.returncode == 2
    assert done.stderr.startswith("ncs: no ranker called 'two\\nlines\\x1b[2J'; ")
    assert done.stderr.count("\n") == 1


def test_output_that_an_encoding_cannot_hold_is_escaped(home: Path) -> None:
    done = ncs("query", "?!…", cwd=home, PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert "Traceback" not in done.stderr
    asked = ncs("query", "keyboard …", "--json", cwd=home, PYTHONIOENCODING="ascii")
    assert json.loads(asked.stdout)["query"] == "keyboard …"


def test_an_editor_opens_a_hit_from_the_command_line(home: Path, tmp_path: Path) -> None:
    editor = tmp_path / "vim"
    editor.write_text('#!/bin/sh\necho "$@"\n')
    editor.chmod(0o755)
    done = ncs("query", "hide soft keyboard", "--open", "1", cwd=home, VISUAL=str(editor))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"+11 {home}/repos/app/src/Keyboards.java\n", "")
    none = ncs("query", "hide soft keyboard", "--kind", "class", "--open", "9", cwd=home, VISUAL=str(editor))
    assert none.returncode == 2
    assert none.stderr == "ncs: no hit 9; the last one is 1\n"


@pytest.mark.parametrize("form", ["plain", "table", "jsonl"])
def test_a_reader_that_exits_early_is_not_an_error(home: Path, form: str) -> None:
    command = [sys.executable, "-m", "ncs.cli", "query", "keyboard", "-A", "--format", form]
    ours, theirs = os.pipe()
    os.close(ours)  # nobody reads
    done = subprocess.run(
        command, cwd=home, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False, timeout=LONG
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, "")
