"""CodeSearchNet's pipeline from repositories to the corpus and back: counted by hand, any workers, killed."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from corpora import load_corpora
from corpora.__main__ import main as corpora_main
from corpora.codesearchnet.functions import CodeFunction, corpus_files, read_functions
from corpora.codesearchnet.pipeline import NO_LICENSE, NOT_ALLOWED, UNKNOWN_LICENSE, Rules, make_corpus, partition_of
from corpora.codesearchnet.repositories import commit_of, find_repositories
from corpora.jsonl import read_rows, write_rows
from evaluation.challenge import main as challenge_main
from ncs.errors import BadInput
from ncs.index import Index
from ncs.types import Query
from tests.command import invoke
from tests.corpora.test_codesearchnet_filters import MIT, NOTICE
from tests.gitrepo import bare, contents, git, repository, write, zipped

JAVA = """package a;
class Files {
    Files() { }
    /**
     * Reads the whole file.
     *
     * @param path where
     */
    String read(String path) {
        // open it
        Stream stream = open(path);
        return stream.all();
    }
    /** Writes. */
    void write(String path) {
        Stream stream = open(path);
        stream.put(1);
    }
    void close(Stream stream) {
        stream.flush();
        stream.close();
    }
    int size() { return 1; }
    public String toString() { return "files"; }
    void testRead() { read("a"); }
}
"""
"""Nine lines of names: one constructor, one pair, one with too short a comment, one without, one short, one standard
method, one test."""
PYTHON = '''def load(path):
    """Loads a table.

    :param path: where
    """
    table = open(path)
    return table


def save(path):
    table = open(path)
    return table.write()
'''
EVERYTHING = Rules(licenses=(), any_license=True)


def test_the_lock_of_the_work_is_free_when_its_folder_is_removed_as_windows_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rmtree(path: Path | str, *options: object, remove: Callable[..., None] = shutil.rmtree, **more: object) -> None:
        if Path(path).name == ".work":
            with FileLock(Path(path) / "lock", timeout=0):
                pass
        remove(path, *options, **more)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    make_corpus([repository(tmp_path / "app", {"A.java": JAVA})], tmp_path / "out", EVERYTHING, workers=1)
    assert not (tmp_path / "out" / ".work").exists()


def functions(folder: Path, language: str) -> list[CodeFunction]:
    return list(read_functions(corpus_files(folder, language, undocumented=True)))


def many(folder: Path, count: int, size: int) -> Path:
    """Repositories of two languages; some functions are in several of them."""
    for number in range(count):
        methods = "".join(
            f"  /** Counts the {n} of {n % 7 or number}. */\n"
            f"  int count{n}{'' if n % 3 else f'of{number}'}(int a) {{\n"
            f"    int b{n} = a + {n};\n    return b{n};\n  }}\n"
            for n in range(size)
        )
        files = {"src/A.java": f"class A {{\n{methods}}}\n", "b.py": PYTHON.replace("table", f"t{number}")}
        repository(folder / f"owner+name{number}", {"LICENSE": MIT, **files})
    return folder


def test_a_bare_repository_becomes_pairs_in_the_published_fields(tmp_path: Path) -> None:
    place = bare(tmp_path / "repositories" / "owner+name" / "repo", {"LICENSE": MIT, "a/Files.java": JAVA})
    commit = git(place, "rev-parse", "HEAD").strip()
    made = make_corpus([tmp_path / "repositories"], tmp_path / "out", Rules(), workers=1)
    read, *others = functions(tmp_path / "out", "java")
    assert read == CodeFunction(
        repo="owner/name",
        path="a/Files.java",
        func_name="Files.read",
        original_string="String read(String path) {\n    // open it\n    Stream stream = open(path);\n"
        "    return stream.all();\n}",
        language="java",
        code="String read(String path) {\n    Stream stream = open(path);\n    return stream.all();\n}",
        code_tokens=(
            "String", "read", "(", "String", "path", ")", "{", "Stream", "stream", "=", "open", "(", "path", ")", ";",
            "return", "stream", ".", "all", "(", ")", ";", "}",
        ),
        docstring="Reads the whole file.",
        docstring_tokens=("Reads", "the", "whole", "file", "."),
        sha=commit,
        url=f"https://github.com/owner/name/blob/{commit}/a/Files.java#L9-L13",
        partition=partition_of("owner/name"),
        license="MIT",
    )  # fmt: skip
    assert [(each.func_name, each.docstring) for each in others] == [("Files.write", ""), ("Files.close", "")]
    assert not (tmp_path / "out" / ".work").exists()
    java = made["languages"]["java"]
    assert (java["functions found"], java["all"], java["with documentation"]) == (7, 3, 1)
    assert {reason: n for reason, n in java["removed"].items() if n} == {
        "'test' in the name": 1, "constructor": 1, "standard method": 1, "under 3 lines of code": 1,
    }  # fmt: skip
    assert java["no pair"] == {"no documentation": 1, "under 3 tokens of documentation": 1}
    assert made["languages"]["All"] == java


def test_every_kind_of_repository_is_found_and_named(tmp_path: Path) -> None:
    root = tmp_path / "all"
    repository(root / "work", {"a.py": PYTHON})
    git(root / "work", "remote", "add", "origin", "git@example.org:someone/tools.git")
    archive = zipped({"lib-main/a.py": PYTHON})
    write(root, {"loose.py": PYTHON, "empty/readme": "", "other+lib.zip": archive})
    about = "Metadata-Version: 2.4\nName: Some.Package\nVersion: 1.2\nLicense-Expression: MIT\n"
    files = "pack/a.py,,\npack/_vendor/b.py,,\nsome_package-1.2.dist-info/METADATA,,\n"
    write(root / "lib" / "site", {
        "pack/a.py": PYTHON, "pack/_vendor/b.py": PYTHON, "left/over.py": PYTHON,
        "some_package-1.2.dist-info/METADATA": about, "some_package-1.2.dist-info/RECORD": files,
    })  # fmt: skip
    assert [(each.name, each.address) for each in find_repositories([root])] == [
        ("Some.Package", ""),
        ("all", ""),
        ("other/lib", "https://github.com/other/lib"),
        ("someone/tools", "https://example.org/someone/tools"),
    ]
    make_corpus([root], tmp_path / "out", EVERYTHING, workers=1)
    rows = {row.values["name"]: row.values for row in read_rows(tmp_path / "out" / "repositories.jsonl.gz")}
    assert {name: (row["files"], row["license"]) for name, row in rows.items()} == {
        "Some.Package": (1, "MIT"), "all": (1, ""), "other/lib": (1, ""), "someone/tools": (1, ""),
    }  # fmt: skip
    urls = [each.url for each in functions(tmp_path / "out", "python")]
    assert urls == [f"Some.Package@1.2/pack/a.py#{lines}" for lines in ("L1-L7", "L10-L12")]


def test_the_commit_of_an_archive_is_the_comment_that_git_writes(tmp_path: Path) -> None:
    made = repository(tmp_path / "made", {"a.py": PYTHON})
    head = git(made, "rev-parse", "HEAD").strip()
    folder = tmp_path / "o"
    folder.mkdir()
    git(made, "archive", "--format=zip", "--prefix=r-main/", f"--output={folder / 'o+r.zip'}", "HEAD")
    write(folder, {"o+plain.zip": zipped({"lib/a.py": PYTHON}), "o+short.zip": b"PK"})
    commits = {each.name: commit_of(each) for each in find_repositories([folder])}
    assert commits == {"o/r": head, "o/plain": "", "o/short": ""}


def test_repositories_without_an_allowed_licence_are_left_out_unless_any_will_do(tmp_path: Path) -> None:
    root = tmp_path / "repositories"
    for name, license in (("mit", MIT), ("apache", NOTICE), ("odd", "Ask us."), ("none", "")):
        source = {f"{name}.py": PYTHON.replace("load", f"load_{name}")}
        repository(root / name, {**source, "LICENSE": license} if license else source)
    made = make_corpus([root], tmp_path / "a", Rules(licenses=("MIT",)), workers=1)
    assert made["repositories"]["left out"] == {NOT_ALLOWED: 1, UNKNOWN_LICENSE: 1, NO_LICENSE: 1}
    assert {each.repo for each in functions(tmp_path / "a", "python")} == {"mit"}
    every = make_corpus([root], tmp_path / "b", EVERYTHING, workers=1)
    assert every["repositories"]["left out"] == {}
    assert every["repositories"]["licences"] == {"Apache-2.0": 1, "MIT": 1, "none": 1, "unknown": 1}
    with pytest.raises(BadInput, match=r"none of 4 repositories has an allowed license; take them all with --any"):
        make_corpus([root], tmp_path / "c", Rules(licenses=("ISC",)), workers=1)


@pytest.mark.slow
def test_a_folder_without_repositories_leaves_nothing_that_another_run_stumbles_over(tmp_path: Path) -> None:
    (tmp_path / "mistyped").mkdir()
    with pytest.raises(BadInput, match="no function of 0 repositories"):
        make_corpus([tmp_path / "mistyped"], tmp_path / "corpus", Rules())
    repository(tmp_path / "repos" / "owner+one", {"LICENSE": MIT, "a.py": PYTHON})
    corpus = make_corpus([tmp_path / "repos"], tmp_path / "corpus", Rules())
    assert corpus["repositories"]["read"] == 1


def test_the_corpus_is_the_same_for_any_number_of_workers(tmp_path: Path) -> None:
    root = many(tmp_path / "repositories", 5, 20)
    made = [make_corpus([root], tmp_path / f"{n}", EVERYTHING, workers=n) for n in (1, 3)]
    assert made[0] == made[1]
    assert contents(tmp_path / "1") == contents(tmp_path / "3")
    assert made[0]["languages"]["java"]["removed"]["exact duplicate"] > 0


KILLED_ONCE = """
import os, signal, sys
moment = sys.argv.pop(1)
def hook(event, arguments):
    if event.partition(".")[0] in ("open", "os", "shutil") and event != "os.kill" and os.path.exists(moment):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
from ncs.cli.main import main
main()
"""
"""Is killed before the first operation on files after one that is named is there."""


@pytest.mark.slow
@pytest.mark.parametrize("moment", [".work/000000/repository.json", "java/final"])
def test_a_killed_run_resumes_and_ends_with_the_same_bytes(tmp_path: Path, moment: str) -> None:
    root = many(tmp_path / "repositories", 3, 20)
    make_corpus([root], tmp_path / "whole", EVERYTHING, workers=1)
    out = tmp_path / "killed"
    arguments = ["corpus", "codesearchnet", str(root), "--any-licence", "--workers", "1", str(out)]
    killed = subprocess.run([sys.executable, "-c", KILLED_ONCE, str(out / moment), *arguments])
    assert killed.returncode == -signal.SIGKILL
    assert not (out / "statistics.json").exists()
    assert [*(out / ".work").glob("*/repository.json")]
    assert invoke(*arguments, cwd=tmp_path).returncode == 0
    assert contents(out) == contents(tmp_path / "whole")


def test_what_is_done_is_not_done_again_and_other_rules_or_places_are_refused(tmp_path: Path) -> None:
    root, out = many(tmp_path / "repositories", 1, 5), tmp_path / "out"
    made = make_corpus([root], out, EVERYTHING, workers=1)
    ages = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert make_corpus([root], out, EVERYTHING, workers=1) == made
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == ages
    with pytest.raises(BadInput, match="holds a corpus of other repositories or rules; name another folder"):
        make_corpus([root], out, Rules(any_license=True, seed=1), workers=1)
    with pytest.raises(BadInput, match="is there and is no corpus"):
        make_corpus([root], root, EVERYTHING, workers=1)
    with pytest.raises(BadInput, match="there is no language 'cobol'; choose from java, python"):
        make_corpus([root], tmp_path / "new", Rules(("cobol",)))
    (tmp_path / "busy" / ".work").mkdir(parents=True)
    with FileLock(tmp_path / "busy" / ".work" / "lock"), pytest.raises(BadInput, match="another process is making"):
        make_corpus([root], tmp_path / "busy", EVERYTHING, workers=1)


def test_the_command_prints_table_1_and_what_was_removed(tmp_path: Path) -> None:
    root = repository(tmp_path / "owner+name", {"LICENSE": MIT, "a.py": PYTHON, "Files.java": JAVA})
    command = ("corpus", "codesearchnet", str(root), "out", "--workers", "1")
    done = invoke(*command, cwd=tmp_path)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[:3] for line in lines[:3]] == [["java", "1", "3"], ["python", "1", "2"], ["All", "2", "5"]]
    assert lines[3] == ["found", "7", "2", "9"]
    assert lines[4] == ["'test' in the name", "1", "0", "1"]
    assert ["license MIT", "1"] in lines
    assert invoke(*command, "-q", cwd=tmp_path).stdout == ""


def test_a_corpus_read_back_gives_pairs_an_index_and_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"owner+name{n}" for n in range(60) if partition_of(f"owner/name{n}") == "test"][:2]
    for name in names:
        text = PYTHON.replace("table", f"table_{name[10:]}").replace("Loads", f"Loads {name}")
        repository(tmp_path / "repositories" / name, {"a.py": text})
    out = tmp_path / "out"
    made = make_corpus([tmp_path / "repositories"], out, EVERYTHING, workers=1)
    assert made["languages"]["python"]["with documentation"] == 2
    [corpus] = load_corpora(str(out))
    questions = [f"Loads {name} a table_{name[10:]}." for name in names]
    assert [query.text for query in corpus.queries] == questions
    assert all(corpus.qrels[query.id] == {query.id: 1} for query in corpus.queries)
    documents = list(corpus.documents())
    assert [document.id for document in documents] == [query.id for query in corpus.queries]
    assert not any("Loads" in document.code or "doc" in document.words for document in documents)
    assert corpora_main(["codesearchnet", "pairs", str(out), str(tmp_path / "pairs.jsonl.gz"), "-q"]) == 0
    read = [row for row in read_rows(tmp_path / "pairs.jsonl.gz") if row.text("split") == "test"]
    assert [(row.text("query"), row.text("id")) for row in read] == [(q.text, q.id) for q in corpus.queries]
    assert read[0].text("code").startswith("def load(path):\n    table_10 = open(path)")
    lua = out / "lua" / "undocumented" / "lua_undocumented_0.jsonl.gz"  # none of this language is a pair
    lua.parent.mkdir(parents=True)
    function = functions(out, "python")[0].row()
    write_rows(lua, [{**function, "language": "lua", "url": "https://example.org/a.lua#L1-L3"}])
    assert corpora_main(["codesearchnet", "index", str(out), str(tmp_path / "index"), "-q"]) == 0
    assert capsys.readouterr().out.endswith(f"5 functions -> {tmp_path / 'index'}\n")
    with Index.load(tmp_path / "index") as index:
        [hit] = index.search(f"loads {names[1]}", 1, ranker="bm25")
        assert (hit.document.id, hit.document.start_line) == (corpus.queries[1].id, 1)
        assert hit.document.repository == names[1].replace("+", "/")


def test_the_challenge_is_judged_from_the_csv_of_an_index_of_the_corpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path / "repositories" / "owner+name", {"a.py": PYTHON})
    out = tmp_path / "codesearchnet"
    make_corpus([tmp_path / "repositories"], out, EVERYTHING, workers=1)
    load, save = (each.url for each in functions(out, "python"))
    (out / "queries.csv").write_text("query\nload a table\nsave a table\n")
    annotations = f'Python,load a table,{load},3,\nPython,Load a table,{load},2,"good, but\nslow"\n'
    annotations += f"Python,load a table,{save},1,\nJava,load a table,x,1,\nPython,save a table,{load}9,2,\n"
    (out / "annotationStore.csv").write_text("Language,Query,GitHubUrl,Relevance,Notes\n" + annotations)
    [corpus] = load_corpora("codesearchnet", tmp_path)
    assert corpus.queries == (Query("1", "load a table"),)  # the other one's only function is not there
    assert (corpus.grades, corpus.qrels) == ({"1": {load: 2.5, save: 1.0}}, {"1": {load: 3, save: 1}})
    assert corpora_main(["codesearchnet", "index", str(out), str(tmp_path / "index"), "-q"]) == 0
    answers = tmp_path / "answers.csv"
    command = ["codesearchnet", "submission", str(out / "queries.csv"), str(answers)]
    assert corpora_main([*command, "--index", str(tmp_path / "index"), "--ranker", "bm25"]) == 0
    rows = list(csv.reader(answers.read_text().splitlines()))
    assert rows[:2] == [["language", "query", "GitHubUrl", "url"], ["python", "load a table", load, load]]
    judged = [str(out / "queries.csv"), str(out / "annotationStore.csv"), str(answers)]
    capsys.readouterr()
    assert challenge_main([*judged, "--json", str(tmp_path / "judged.json")]) == 0
    measures = json.loads((tmp_path / "judged.json").read_text())["python"]
    # query 1: both in the best order; query 2: its only function is not in the corpus
    assert measures == {"queries": 2, "ndcg_within": 0.5, "ndcg_all": 0.5, "covered": 2 / 3}
    assert "python\t2\t0.500\t0.500\t0.667" in capsys.readouterr().out.splitlines()
