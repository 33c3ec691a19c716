"""CodeSearchNet's formats: functions there and back, the Challenge joined by URL, wrong lines told."""

from __future__ import annotations

import gzip
import json
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from corpora.codesearchnet import CodeFunction, challenges, read_challenge, read_functions, write_functions
from ncs.errors import BadInput
from ncs.types import Query


def function(number: int, language: str = "java", partition: str = "train") -> CodeFunction:
    code = f'int read{number}(String path) {{\n  return open(path, "ü");\n}}'
    if language == "python":
        code = f"def read{number}(path):\n    return open(path)"
    return CodeFunction(
        repo="owner/repo", path="src/A", func_name=f"A.read{number}", original_string=code, language=language,
        code=code, code_tokens=("int", f"read{number}"), docstring="Reads a file.", sha="0123", url=url(number),
        docstring_tokens=("Reads", "a", "file", "."), partition=partition,
    )  # fmt: skip


def url(number: int) -> str:
    return f"https://example.org/owner/repo/blob/0123/src/A#L{number}-L{number + 2}"


QUERIES = "query\nread file\nConvert int to string\n"
HEADER = "Language,Query,GitHubUrl,Relevance,Notes\n"
ANNOTATIONS = (
    HEADER + f"Java,read file,{url(1)},3,\n"
    f'Java,Read File,{url(1)},2,"good, but slow\nand old"\n'
    f"Java,read file,{url(2)},0,\n"
    f"Java,convert int to string,{url(9)},1,\n"
    f"Python,read file,{url(3)},1,\n"
)


def release(folder: Path, annotations: str = ANNOTATIONS, queries: str = QUERIES) -> Path:
    """The three files in `folder`/codesearchnet: java.zip as published, two parts in folders by partition."""
    folder = folder / "codesearchnet"
    folder.mkdir()
    (folder / "queries.csv").write_text(queries)
    (folder / "annotationStore.csv").write_text(annotations)
    parts = {"train/java_train_0": [function(1), function(2), function(2)], "test/java_test_0": [function(4)]}
    with zipfile.ZipFile(folder / "java.zip", "w") as archive:
        archive.writestr("java_dedupe_definitions_v2.pkl", b"not to be opened")
        for name, functions in parts.items():
            lines = "".join(json.dumps(asdict(each)) + "\n" for each in functions)
            archive.writestr(f"java/final/jsonl/{name}.jsonl.gz", gzip.compress(lines.encode()))
    return folder


@pytest.mark.parametrize("name", ["functions.jsonl", "functions.jsonl.gz"])
def test_functions_come_back_as_they_were_written(tmp_path: Path, name: str) -> None:
    functions = [function(1), function(2, "python"), replace(function(3), docstring="", docstring_tokens=())]
    assert write_functions(functions, tmp_path / name) == 3
    assert list(read_functions([tmp_path / name])) == functions
    text = (tmp_path / name).read_bytes()
    row = json.loads((gzip.decompress(text) if name.endswith(".gz") else text).splitlines()[0])
    assert list(row) == [
        "repo", "path", "func_name", "original_string", "language", "code", "code_tokens", "docstring",
        "docstring_tokens", "sha", "url", "partition",
    ]  # fmt: skip


def test_a_published_archive_is_read_without_unpacking_in_the_order_of_its_names(tmp_path: Path) -> None:
    folder = release(tmp_path)
    assert [each.url for each in read_functions([folder / "java.zip"])] == [url(4), url(1), url(2), url(2)]
    assert sorted(path.name for path in folder.iterdir()) == ["annotationStore.csv", "java.zip", "queries.csv"]


def test_the_challenge_is_joined_by_url_and_means_are_kept(tmp_path: Path) -> None:
    folder = release(tmp_path)
    challenge = read_challenge(folder / "queries.csv", folder / "annotationStore.csv", [folder / "java.zip"], "java")
    assert challenge.corpus.queries == (Query("1", "read file"),)  # the other one's only function is not there
    assert challenge.grades == {"1": {url(1): 2.5, url(2): 0.0}}
    assert challenge.corpus.qrels == {"1": {url(1): 3, url(2): 0}}
    assert challenge.absent == (url(9),)
    documents = list(challenge.corpus.documents())
    assert [document.id for document in documents] == [url(4), url(1), url(2)]
    assert documents[1].words["calls"] == ("open",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"annotations": ANNOTATIONS + f"Java,write file,{url(1)},1,\n"},
            r"annotationStore\.csv:8: 'write file' is not among the queries",
        ),
        (
            {"annotations": ANNOTATIONS + f"Rust,read file,{url(1)},1,\n"},
            r":8: no language 'Rust'; choose from go, java",
        ),
        ({"annotations": ANNOTATIONS + f"Java,read file,{url(1)},4,\n"}, r":8: the grade '4' is not 0, 1, 2 or 3"),
        ({"annotations": "Language,Query\n"}, r":1: the columns must be Language,Query,GitHubUrl,Relevance,Notes"),
        ({"annotations": HEADER + f"Java,read file,{url(7)},1,\n"}, "none of the 1 functions annotated"),
        ({"queries": "text\na\n"}, ":1: the only column"),
    ],
)
def test_wrong_annotations_and_queries_are_an_error_of_one_line(
    tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    release(tmp_path, **changes)
    with pytest.raises(BadInput, match=message) as caught:
        challenges(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"java\.jsonl:2: not JSON"),
        (json.dumps({**asdict(function(1)), "url": None}), r":2: no 'url'"),
        (json.dumps({**asdict(function(1)), "code_tokens": "int"}), r":2: 'code_tokens' is not a list of strings"),
    ],
)
def test_a_wrong_function_is_reported_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "java.jsonl").write_text(json.dumps(asdict(function(1))) + f"\n{line}\n")
    with pytest.raises(BadInput, match=message):
        list(read_functions([tmp_path / "java.jsonl"]))


def test_wrong_archives_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "java.zip"
    with pytest.raises(BadInput, match=r"there is no .*java\.zip; fetch it with"):
        list(read_functions([path]))
    path.write_bytes(b"PK\x03\x04 no")
    with pytest.raises(BadInput, match=r"java\.zip is damaged"):
        list(read_functions([path]))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme", "x")
    with pytest.raises(BadInput, match=r"holds no \.jsonl\.gz"):
        list(read_functions([path]))
