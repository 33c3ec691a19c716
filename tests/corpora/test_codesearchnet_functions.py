"""CodeSearchNet's functions: read as published, the Challenge joined by URL, training pairs."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from corpora.__main__ import main
from corpora.codesearchnet.challenge import challenges
from corpora.codesearchnet.functions import CodeFunction, read_functions
from corpora.codesearchnet.pairs import corpora_of, name_of, namesakes, pairs
from corpora.jsonl import read_rows, write_rows
from ncs.errors import BadInput
from ncs.types import Query


def function(number: int, partition: str = "train") -> CodeFunction:
    code = f'int read{number}(String path) {{\n  return open(path, "ü");\n}}'
    return CodeFunction(
        repo="owner/repo", path="src/A", func_name=f"A.read{number}", original_string=code, code=code,
        code_tokens=("int", f"read{number}"), docstring="Reads a\nfile.\n\n:param path: where",
        docstring_tokens=("Reads", "a", "file", "."), language="java", sha="0123", url=url(number),
        partition=partition,
    )  # fmt: skip


def url(number: int) -> str:
    return f"https://example.org/owner/repo/blob/0123/src/A#L{number}-L{number + 2}"


HEADER = "Language,Query,GitHubUrl,Relevance,Notes\n"


def release(folder: Path, annotations: str = HEADER, queries: str = "query\nread file\n") -> Path:
    """The three files in `folder`/codesearchnet: java.zip as published, two parts in folders by partition."""
    folder = folder / "codesearchnet"
    folder.mkdir()
    (folder / "queries.csv").write_text(queries)
    (folder / "annotationStore.csv").write_text(annotations)
    parts = {
        "train/java_train_0": [function(1), function(2), function(2)],
        "test/java_test_0": [function(4, partition="test")],
    }
    with zipfile.ZipFile(folder / "java.zip", "w") as archive:
        archive.writestr("java_dedupe_definitions_v2.pkl", b"not to be opened")
        for name, functions in parts.items():
            lines = "".join(json.dumps(asdict(each)) + "\n" for each in functions)
            archive.writestr(f"java/final/jsonl/{name}.jsonl.gz", gzip.compress(lines.encode()))
    return folder


def test_published_archives_give_pairs_that_ask_their_first_paragraph_by_partition(tmp_path: Path) -> None:
    folder, query = release(tmp_path), "Reads a file."
    rows = [(pair.query, pair.id, pair.split) for pair in pairs(folder)]
    assert rows == [(query, url(4), "test"), (query, url(1), "train"), (query, url(2), "train")]
    assert [pair.id for pair in pairs(folder, ["java"], "test")] == [url(4)]
    [corpus] = corpora_of(folder)
    assert corpus.queries == (Query(url(4), query),)
    with pytest.raises(BadInput, match="has no ruby/final/jsonl/"):
        list(pairs(folder, ["ruby"]))


def test_a_language_without_the_partition_is_passed_over_unless_it_is_named(tmp_path: Path) -> None:
    for language, partition in ("go", "train"), ("java", "test"):
        file = tmp_path / language / "final" / "jsonl" / partition / f"{language}_{partition}_0.jsonl.gz"
        file.parent.mkdir(parents=True)
        write_rows(file, [function(1, partition).row()])
    assert [pair.split for pair in pairs(tmp_path, partition="test")] == ["test"]
    for languages, partition, missing in (["go"], "test", "go"), ([], "valid", r"\*"):
        with pytest.raises(BadInput, match=f"has no {missing}/final/jsonl/{partition}/"):
            list(pairs(tmp_path, languages, partition))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((f"{HEADER}Java,write file,{url(1)},1,\n",), r"annotationStore\.csv:2: 'write file' is not among the queries"),
        ((f"{HEADER}Rust,read file,{url(1)},1,\n",), r":2: no language 'Rust'; choose from go, java"),
        ((f'{HEADER}Java,read file,{url(1)},2,"a\nb"\nJava,read file,{url(1)},4,\n',), ":4: the grade '4' is not 0, 1"),
        (("Language,Query\n",), r":1: the columns must be Language,Query,GitHubUrl,Relevance,Notes"),
        ((f"{HEADER}Java,read file,{url(7)},1,\n",), "none of the 1 functions annotated"),
        ((HEADER, "text\na\n"), ":1: the only column"),
    ],
)
def test_wrong_annotations_and_queries_are_an_error_of_one_line(
    tmp_path: Path, files: tuple[str, ...], message: str
) -> None:
    release(tmp_path, *files)
    with pytest.raises(BadInput, match=message) as caught:
        challenges(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_or_damaged_archive_and_a_wrong_function_are_reported(tmp_path: Path) -> None:
    archive, lines = tmp_path / "java.zip", tmp_path / "java.jsonl"
    with pytest.raises(BadInput, match=r"there is no .*java\.zip; fetch it with"):
        list(read_functions([archive]))
    archive.write_bytes(b"PK\x03\x04 no")
    with pytest.raises(BadInput, match=r"java\.zip is damaged"):
        list(read_functions([archive]))
    whole = function(1).row()
    incomplete = {key: value for key, value in whole.items() if key != "url"}
    for row, message in (incomplete, "no 'url'"), ({**whole, "code_tokens": "int"}, "'code_tokens' is not a list"):
        write_rows(lines, [whole, row])
        with pytest.raises(BadInput, match=rf"java\.jsonl:2: {message}"):
            list(read_functions([lines]))


SAID = {
    "a": ("load_file", "Reads a file from disk"),
    "b": ("Files.loadFile", "Get what a path holds"),
    "c": ("file_load", "Opens it and gives its text"),
    "d": ("load_file", "Get what a path holds"),
    "e": ("load", "One word is no name that says enough"),
    "f": ("load", "One word again"),
    "g": ("save_file", "Nobody else is called so"),
}


def named(key: str) -> CodeFunction:
    name, said = SAID[key]
    bare = name.rpartition(".")[2]
    code = f"def {bare}(path):\n    return {key}(path)"
    whole = f'def {bare}(path):\n    """{said}."""\n    return {key}(path)'
    url = f"https://example.org/{key}.py#L1-L3"
    return replace(
        function(1), func_name=name, original_string=whole, language="python", code=code, docstring=said, url=url
    )


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    folders = []
    for number, keys in enumerate(("abe", "cdfg")):
        path = tmp_path / str(number) / "python" / "final" / "jsonl" / "train"
        path.mkdir(parents=True)
        write_rows(path / "python_train_0.jsonl.gz", [named(key).row() for key in keys])
        folders.append(tmp_path / str(number))
    return folders


def test_each_function_of_a_shared_name_asks_once_and_answers_once_over_all_corpora(folders: list[Path]) -> None:
    assert name_of(named("a")) == ("python", ("file", "load")) == name_of(named("b")) == name_of(named("c"))
    assert name_of(named("e")) is None
    said = {text: key for key, (_, text) in SAID.items() if key != "d"}
    for seed in range(20):
        pairs = list(namesakes(folders, seed=seed))
        answers = [pair.id[-10] for pair in pairs]
        assert set(answers) <= set("abcd")
        assert max(Counter(answers).values()) == 1
        for pair in pairs:
            whole = named(pair.id[-10]).original_string
            assert pair.code == whole
            assert pair.query not in whole  # b and d say the same: neither answers the other
            assert said[pair.query] in "abc"
        assert 2 <= len(pairs) <= 4
    assert list(namesakes(folders, seed=1)) == list(namesakes(folders, seed=1))


@pytest.mark.parametrize("command", ["pairs", "namesakes"])
def test_the_command_leaves_out_what_is_like_held_out_functions_and_says_why(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    out, apart = tmp_path / "pairs.jsonl.gz", tmp_path / "apart.jsonl"
    sources = folders if command == "namesakes" else folders[1:]
    arguments = ["codesearchnet", command, *map(str, sources), str(out), "-q"]
    assert main(arguments) == 0
    every = {row.text("id"): row.text("query") for row in read_rows(out)}
    assert capsys.readouterr().out == f"{len(every)} pairs\n"
    query = "Get what a path holds"
    apart.write_text(json.dumps({"code": f'def f():\n    """{query}."""', "language": "python"}) + "\n")
    assert main([*arguments, "--apart", str(apart)]) == 0
    left = {id for id, asked in every.items() if asked != query}
    assert {row.text("id") for row in read_rows(out)} == left
    reason = f"; left out as like apart.jsonl: {len(every) - len(left)} documentation" if len(left) < len(every) else ""
    assert capsys.readouterr().out == f"{len(left)} pairs{reason}\n"
