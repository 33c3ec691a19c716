"""The commands as a person types them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ncs.storage.freshness import SEEN
from tests.command import invoke, ncs, program
from tests.rights import without_rights
from tests.waiting import LONG

HIDE = "hide soft keyboard"


def test_a_folder_that_may_not_be_read_is_named_with_the_remedy() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        (folder / "secret").mkdir(mode=0)
        invoke("build", "nowhere", cwd=folder)  # imports what nobody may not read
        with without_rights():
            run = invoke("build", "secret", cwd=folder)
    line = f"ncs: cannot read {folder / 'secret'}: Permission denied; name a folder that you may read\n"
    assert (run.returncode, run.stderr) == (2, line)


def test_query_prints_the_function_its_place_and_its_code(demo: Path) -> None:
    run = ncs("query", HIDE, "-k", "2", cwd=demo / "repos" / "app" / "src")  # the index is found above
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0].startswith("1. Keyboards.hideSoftKeyboard  Keyboards.java:11  ")
    assert lines[1] == "   also at ../../copy/src/Keyboards.java:11"
    assert "    13      manager.hideSoftInputFromWindow(activity.getCurrentFocus().getWindowToken(), 0);" in lines
    assert "\x1b" not in run.stdout


def test_json_is_one_object_and_jsonl_one_hit_a_line(demo: Path) -> None:
    answer = json.loads(invoke("query", HIDE, "--json", cwd=demo).stdout)
    assert set(answer) == {"query", "ranker", "index", "kind", "unknown_words", "notes", "hits"}
    assert answer["kind"] == "keywords"
    first = answer["hits"][0]
    assert (first["rank"], first["qualified_name"], first["start_line"]) == (1, "Keyboards.hideSoftKeyboard", 11)
    assert first["matched"] == ["hide", "soft", "keyboard"]
    lines = invoke("query", HIDE, "--jsonl", cwd=demo).stdout.splitlines()
    assert [json.loads(line) for line in lines] == answer["hits"]
    (codeless,) = invoke("query", HIDE, "--no-code", "--jsonl", "-k", "1", cwd=demo).stdout.splitlines()
    assert json.loads(codeless) == {**first, "code": None, "excerpt": []}


def test_explain_says_what_the_score_is_the_sum_of(demo: Path) -> None:
    lines = invoke("query", "how to hide the soft keyboard", "-k", "1", "--explain", cwd=demo).stdout.splitlines()
    assert " ".join(map(str.strip, lines[:2])).startswith(
        "how-to query; words: hide, soft, keyboard; left out: how, to, the; "
        "candidates: 10 of 2 repositories; gates: consensus 0."
    )
    assert max(map(len, lines[: lines.index("    11  public static void hideSoftKeyboard(Activity activity) {")])) <= 80
    (hit,) = json.loads(invoke("query", "how to hide the soft keyboard", "-k", "1", "--json", cwd=demo).stdout)["hits"]
    assert next(line for line in lines if line.startswith("1. ")).split()[-1] == hit["likelihood"]
    assert any(line.startswith(f"   {hit['score']:.4f} = lexical ") for line in lines)
    assert any(line.split()[:3] == ["keyboard", "keyboard", "1.00"] for line in lines)


def test_a_question_needs_no_command_and_a_mistyped_command_is_none(demo: Path) -> None:
    assert invoke(HIDE, "-n", "1", cwd=demo).stdout == invoke("query", HIDE, "-k", "1", cwd=demo).stdout
    run = invoke("biuld", ".", cwd=demo)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "ncs: no command 'biuld'; did you mean build? to search for it: ncs query biuld .\n"


@pytest.mark.parametrize("arguments", [["build", ""], ["build", ".", "-i", ""], ["doctor", "-i", ""]])
def test_an_empty_path_is_not_the_working_folder(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "door.py").write_text("def open_door():\n    pass\n")
    run = invoke(*arguments, cwd=tmp_path)
    line = "ncs: an argument is empty; name a folder or a file, such as . for this folder\n"
    assert (run.returncode, run.stderr, [path.name for path in tmp_path.iterdir()]) == (2, line, ["door.py"])


def test_a_trace_is_read_from_stdin_without_notes_about_its_values(demo: Path) -> None:
    trace = b"java.lang.IllegalStateException: quagga 17\n\tat Keyboards.hideSoftKeyboard(Keyboards.java:13)\n"
    command = [sys.executable, "-m", "ncs.cli", "query", "-", "-n", "1", "--no-code"]
    run = subprocess.run(command, cwd=demo, input=trace, capture_output=True, check=False, timeout=LONG)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.startswith(b"1. Keyboards.hideSoftKeyboard  repos/app/src/Keyboards.java:13  frame, ")
    log = b"\xff line\n" * 10_000 + trace
    run = subprocess.run(command, cwd=demo, input=log, capture_output=True, check=False, timeout=LONG)
    assert run.stdout.startswith(b"1. Keyboards.hideSoftKeyboard  ")


@pytest.mark.parametrize(
    ("arguments", "status", "note"),
    [
        (["query", "how to"], 0, "only common words"),
        (["query", "2.31.0"], 1, "a regexp finds numbers and signs"),
        (["words", "keybord"], 1, "keyboard"),
        (["words", "keyboard"], 1, "too little was learned here to say: 'keyboard' is in 3 documents; it takes 5"),
    ],
)
def test_a_note_says_why_little_or_nothing_is_found(demo: Path, arguments: list[str], status: int, note: str) -> None:
    run = invoke(*arguments, cwd=demo)
    assert run.returncode == status
    assert note in run.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "x", "-i", "nowhere"], "no index at nowhere; make one with: ncs build"),
        (["query", "x", "--ranker", "two\nlines\x1b[2J"], "no ranker 'two\\nlines\\x1b[2J'; "),
        (["query", "x", "-n", "-1"], "ncs: -n/--limit/-k is -1; it must be at least 1\n"),
        (["query", "x", "-n", "1e9"], "Invalid value for '-n' / '--limit' / '-k': '1e9' is not a valid integer; see"),
        (["query", "x", "-C", "-1"], "ncs: -C/--context is -1; it must be at least 0\n"),
        (["query", "x", "--min-confidence", "1.5"], "ncs: --min-confidence is 1.5; it must be from 0 to 1\n"),
        (["locate", "nofile.md"], "cannot read nofile.md"),
        (["build", "nowhere"], "nowhere"),
        (["build", "repos", "--java-frontend", "antlr", "-i", "other"], "antlr"),
        (["build", "repos", "--pretrained", "none.vec", "-i", "other"], "none.vec"),
        (["query", "x", "--open", "0"], "ncs: --open is 0; it must be at least 1\n"),
        (["query", "--colour", "x"], "--colour"),
        (["map", "--seed", str(1 << 32)], "ncs: --seed is 4294967296; it must be from 0 to 4294967295\n"),
        (["serv"], "serv"),
        (["explain-attention", "word " * 20_000], "built without 'unif'"),
    ],
)
def test_a_mistake_is_status_2_and_one_line_with_its_remedy(demo: Path, arguments: list[str], message: str) -> None:
    run = invoke(*arguments, cwd=demo)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert message in run.stderr
    assert not (demo / "other").exists()


def test_info_says_what_is_in_the_index(demo: Path) -> None:
    description = json.loads(invoke("info", "--json", "--verify", cwd=demo).stdout)
    assert description["documents"] == 10
    assert description["repositories"] == {"app": 5, "copy": 0, "tools": 5}
    assert description["languages"] == {"java": 5, "python": 5}
    assert description["config"]["fasttext"]["window"] == 5
    text = invoke("info", cwd=demo).stdout
    assert "6 functions, 4 classes and top-level blocks, and 3 exact copies of them" in text
    assert "\ngeneral head\tused\n" in text


def test_a_build_says_what_it_has_read_and_a_quiet_one_nothing(demo: Path, tmp_path: Path) -> None:
    loud, quiet = (invoke("build", str(demo / "repos"), *more, cwd=tmp_path) for more in ([], ["--quiet"]))
    summary = "6 functions, 4 classes and top-level blocks (3 exact copies folded) from 4 files of 3 repositories"
    assert summary in loud.stderr
    assert [(run.returncode, run.stdout) for run in (loud, quiet)] == [(0, "")] * 2
    assert quiet.stderr == ""


def test_a_query_where_nothing_changed_imports_neither_build_nor_servers_nor_heavy_libraries_and_writes_nothing(
    demo: Path,
) -> None:
    program = (
        "import sys; sys.argv = ['ncs', 'query', 'hide soft keyboard', '--json']\n"
        "from ncs.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ['scipy', 'sklearn', 'torch', 'fasttext', 'javalang', 'tree_sitter', 'rich', 'rapidfuzz']\n"
        "heavy += ['numpy.ma', 'pymilvus', 'ncs.build', 'ncs.extract', 'ncs.sources', 'ncs.scale', 'ncs.serve.http']\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=demo, capture_output=True, text=True, check=True)
    assert run.stderr.strip() == "[]"
    assert not (demo / ".ncs" / SEEN).exists()


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("ncs doc", ["doctor"]),
        ("ncs query --ranker ncs_", ["ncs_centred", "ncs_enhanced", "ncs_postrank"]),
        ("ncs query --format ", ["table", "plain", "json", "jsonl", "vimgrep", "paths"]),
        ("ncs query --language j", ["java"]),
        ("ncs query --kind cl", ["class"]),
        ("ncs query --repository ", ["app", "copy", "tools"]),
        ("ncs eval x.tsv --ranker bm", ["bm25"]),
    ],
)
def test_shells_complete_commands_rankers_formats_and_what_the_index_holds(
    demo: Path, words: str, completions: list[str]
) -> None:
    at = {"_NCS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    assert invoke(cwd=demo, **at).stdout.split() == completions
    assert invoke(cwd=demo.parent, **at, NCS_INDEX=str(demo / ".ncs")).stdout.split() == completions


@pytest.mark.parametrize(("shell", "beginning"), [("bash", "_python_mncscli_completion() {"), ("zsh", "#compdef ")])
def test_the_completion_of_a_shell_that_is_named_is_shown_and_installed_only_when_asked(
    tmp_path: Path, shell: str, beginning: str
) -> None:
    run = ncs("--show-completion", shell, cwd=tmp_path, HOME=str(tmp_path))
    assert (run.returncode, run.stdout[: len(beginning)], list(tmp_path.iterdir())) == (0, beginning, [])


def test_completion_is_installed_for_the_shell_that_is_named_and_no_unknown_one(tmp_path: Path) -> None:
    assert ncs("--install-completion", "fish", cwd=tmp_path, HOME=str(tmp_path)).returncode == 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["python -m ncs.cli.fish"]
    run = ncs("--install-completion", "csh", cwd=tmp_path, HOME=str(tmp_path))
    assert (run.returncode, "'csh' is not one of" in run.stderr) == (2, True)


def test_output_that_an_encoding_cannot_hold_is_escaped(demo: Path) -> None:
    run = ncs("query", "keyboard …", "--json", cwd=demo, PYTHONIOENCODING="ascii")
    assert json.loads(run.stdout)["query"] == "keyboard …"


def test_an_editor_opens_a_hit_from_the_command_line(demo: Path, tmp_path: Path) -> None:
    editor = program(tmp_path, "vim", 'echo "$@"')
    run = ncs("query", HIDE, "--open", "1", cwd=demo, VISUAL=str(editor))
    assert (run.returncode, run.stdout, run.stderr) == (0, f"+11 {demo}/repos/app/src/Keyboards.java\n", "")
    none = invoke("query", HIDE, "--kind", "class", "--open", "9", cwd=demo, VISUAL=str(editor))
    assert (none.returncode, none.stderr) == (2, "ncs: no hit 9; the last one is 1\n")


@pytest.mark.parametrize("arguments", [["query", "keyboard", "-a", "--format", "table"], ["info"]])
def test_a_reader_that_exits_early_is_not_an_error(demo: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "ncs.cli", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    ours, theirs = os.pipe()
    os.close(ours)  # nobody reads
    run = subprocess.run(
        command, cwd=demo, env=environment, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=LONG
    )
    os.close(theirs)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="no shell closes a stream there")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_read_as_empty_and_written_to_as_nowhere(demo: Path, closed: str) -> None:
    for arguments, status in (["query", "keyboard", "-n1"], 0), (["query", "-"], 2), (["build", ".", "-i", "other"], 0):
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "ncs.cli", *arguments]
        run = subprocess.run(command, cwd=demo, input="", capture_output=True, text=True, timeout=LONG, check=False)
        assert (run.returncode, "Traceback" in run.stderr) == (status, False)
    shutil.rmtree(demo / "other")


@pytest.mark.skipif(sys.platform != "win32", reason="other systems look for programs on the PATH only")
def test_a_program_of_the_working_folder_is_not_run_as_git(tmp_path: Path) -> None:
    shutil.copy(sys.executable, tmp_path / "git.exe")
    code = "import ncs.cli.main, subprocess; subprocess.run(['git', '--version'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Python" not in done.stdout
