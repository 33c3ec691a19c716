"""`python -m corpora`: what a user types, against a server on loopback."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from pathlib import Path

import pytest

from corpora import load_corpora
from corpora.__main__ import main
from corpora.catalog import FETCHED, read_catalog
from corpora.coir import DATASETS
from corpora.download import place
from corpora.jsonl import read_rows
from ncs.errors import BadInput
from ncs.types import Query
from tests.corpora.test_coir import as_fetched
from tests.corpora.test_corpus import METHOD, nlp2api
from tests.corpora.test_ncs287 import SHEET, published
from tests.corpora.test_repo_search import FILES, IDS, row, write
from tests.corpora.test_stackoverflow import ROWS, dump
from tests.gitrepo import zipped
from tests.webserver import Answer, Site


def test_the_catalog_names_safe_places_pinned_contents_and_known_corpora() -> None:
    catalog = read_catalog()
    assert catalog.keys() == FETCHED.keys() - {"coir", "repo_search"}
    for name, file in ((name, file) for name, files in catalog.items() for file in files):
        assert place(Path("data"), file.path).is_relative_to("data")
        assert file.url.startswith("https://")
        assert name in ("stackoverflow", "nlp2api") or file.checksum or file.path.endswith(".zip")


def test_fetch_brings_files_to_where_they_are_read_and_resumes_later(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    functions = json.dumps({"def f():\n    pass": 3, "def g():\n    call()": 7}).encode()
    sha256 = hashlib.sha256(functions).hexdigest()
    catalog = tmp_path / "list.txt"
    catalog.write_text(
        f"cosqa code_idx_map.txt {len(functions)} sha256:{sha256} {site.put('/map', functions)}\n"
        f"cosqa cosqa-retrieval-dev-500.json - - {site.url}/dev\n"
        f"cosqa LICENSE - - {site.url}/license\n"
    )
    command = ["fetch", "cosqa", str(tmp_path / "data"), "--catalogue", str(catalog), "-q", "--only"]
    assert main([*command, "co*"]) == 1
    out, err = capsys.readouterr()
    assert out == "1 arrived, 0 were there, 1 failed\n"
    assert err == f"not fetched: cosqa-retrieval-dev-500.json: {site.url}/dev: 404 Not Found\n"
    query = {"idx": "q", "doc": "do f", "retrieval_idx": 3}
    site.put("/dev", json.dumps([query]).encode())
    assert main([*command, "co*", "--again"]) == 0
    assert capsys.readouterr().out == "1 arrived, 1 were there, 0 failed\n"
    [corpus] = load_corpora("cosqa", tmp_path / "data")
    assert (corpus.queries, corpus.qrels) == ((Query("q", "do f"),), {"q": {"cosqa-code-3": 1}})
    assert [(each.id, each.name) for each in corpus.documents()] == [("cosqa-code-3", "f"), ("cosqa-code-7", "g")]
    assert main([*command, "rust*"]) == 2
    assert capsys.readouterr().err == "corpora: no file of cosqa matches 'rust*'; choose another --only\n"
    (tmp_path / "data/cosqa/cosqa-retrieval-dev-500.json").write_text(json.dumps([{**query, "retrieval_idx": None}]))
    with pytest.raises(BadInput, match=r"500\.json: query 1: 'retrieval_idx' is not a whole number"):
        load_corpora("cosqa", tmp_path / "data")


def test_the_archive_of_nlp2api_is_reduced_to_what_is_read(site: Site, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "P-1/oracle-310.txt": "How do I hide?\r\nView Manager\r\nHow\u2019s that?\r\nList\r\n",
        "P-1/oracle-310-code/1.java": METHOD.replace("\n", "\r\n"),
        "P-1/oracle-310-code/2.java": 'f("\u2019");'.encode("cp1252"),
        "P-1/lib/big.jar": "x" * 9999,
    }
    (tmp_path / "list.txt").write_text(f"nlp2api NLP2API.zip - - {site.put('/zip', zipped(files))}\n")
    command = ["fetch", "nlp2api", str(tmp_path), "--catalogue", str(tmp_path / "list.txt"), "-q"]
    assert (main(command), main(command), len(site.asked)) == (0, 0, 1)  # the reduced archive counts as there
    archive = tmp_path / "nlp2api/NLP2API.zip"
    assert zipfile.ZipFile(archive).namelist() == list(files)[:3]
    [corpus] = load_corpora("nlp2api", tmp_path)
    assert corpus.queries == (Query("1", "How do I hide?"), Query("2", "How\u2019s that?"))
    assert [document.code for document in corpus.documents()] == [METHOD, 'f("\u2019");']
    archive.write_bytes(zipped({"P-1/oracle-310.txt": "How do I hide?\nView\n"}))
    with pytest.raises(BadInput, match=r"lacks 'oracle-310-code/1\.java'"):
        load_corpora("nlp2api", tmp_path)


def serve_cosqa(site: Site, tmp_path: Path) -> None:
    """The Hub's listings and files of CoIR's cosqa."""
    as_fetched(tmp_path)
    for folder in tmp_path.glob("cosqa-*"):
        listing: list[dict[str, object]] = [{"type": "file", "path": "README.md", "size": 3, "oid": "0" * 40}]
        for path in folder.rglob("*.parquet"):
            data, file = path.read_bytes(), path.relative_to(folder).as_posix()
            lfs = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            listing.append({"type": "file", "path": file, "size": len(data), "oid": "1" * 40, "lfs": lfs})
            site.put(f"/datasets/CoIR-Retrieval/{folder.name}/resolve/main/{file}", data)
        site.put(f"/api/datasets/CoIR-Retrieval/{folder.name}/tree/main?recursive=true", json.dumps(listing).encode())


def test_coir_comes_from_the_hub_by_its_listing(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    serve_cosqa(site, tmp_path)
    command = ["fetch", "coir", str(tmp_path / "data"), "--hub", site.url, "--only", "cosqa", "-q"]
    assert main(command) == 0
    assert capsys.readouterr().out == "6 arrived, 0 were there, 0 failed\n"
    assert load_corpora("coir", tmp_path / "data")[0].qrels == {"q2": {"d2": 1}}
    site.put("/api/datasets/CoIR-Retrieval/cosqa-qrels/tree/main?recursive=true", b'{"error": "busy"}')
    assert main(command) == 2
    assert "does not list the files of CoIR-Retrieval/cosqa-qrels" in capsys.readouterr().err
    assert main([*command[:-2], "none"]) == 2
    assert f"CoIR has no data set 'none'; choose from {next(iter(DATASETS))}" in capsys.readouterr().err


def test_pinned_repositories_come_as_archives(site: Site, tmp_path: Path) -> None:
    write(tmp_path, row("o/r", 0, "0" * 40, ["core.py"]))
    site.put(f"/o/r/archive/{'0' * 40}.zip", zipped({f"r-{'0' * 40}/{path}": text for path, text in FILES.items()}))
    assert main(["fetch", "repo_search", str(tmp_path), "--github", f"{site.url}/", "-q"]) == 0
    assert [document.id for document in load_corpora("repo_search", tmp_path)[0].documents()] == IDS


def test_listed_repositories_come_in_parallel_reduced_to_sources_and_only_once(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = []
    for number in range(6):
        path = f"/owner/app{number}/archive/{'0' * 39}{number}.zip"
        body = zipped({"app/A.java": f"class A{number} {{}}", "app/logo.png": "x" * 999})
        links.append(site.put(path, body, *([Answer(cut=40)] if number == 2 else [])))
    links.append(f"{site.url}/owner/gone/archive/{'0' * 40}.zip")
    links.append(site.put(f"/owner/page/archive/{'0' * 40}.zip", b"<html>"))
    (tmp_path / "links.txt").write_text("\n".join(links))
    command = ["repositories", str(tmp_path / "links.txt"), str(tmp_path / "apps"), "--jobs", "3", "-q"]
    assert main([*command, "--tries", "2"]) == 1
    out, err = capsys.readouterr()
    assert out == "6 arrived, 0 were there, 2 failed\n"
    assert "owner+gone.zip: " in err
    assert "owner+page.zip is damaged or no archive" in err
    archives = sorted((tmp_path / "apps").glob("*.zip"))
    assert [path.name for path in archives] == [f"owner+app{number}.zip" for number in range(6)]
    assert zipfile.ZipFile(archives[2]).namelist() == ["app/A.java"]
    requests = len(site.asked)
    assert main(command) == 1
    assert capsys.readouterr().out == "0 arrived, 6 were there, 2 failed\n"
    assert [path for path, _ in site.asked[requests:]] == [f"/owner/page/archive/{'0' * 40}.zip"]


def test_a_score_sheet_gives_the_figures_counted_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sheet.csv").write_text(SHEET)
    assert main(["ncs287", "score-sheet", str(tmp_path / "sheet.csv"), "--out", str(tmp_path / "out.json")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "NCS                  Answered@1/5/10 1/1/2        MRR 0.308"
    values = json.loads((tmp_path / "out.json").read_text())
    assert values["questions"] == 4
    assert values["systems"] == {
        "NCS": {"answered_1": 1, "answered_5": 1, "answered_10": 2, "mrr": math.fsum((1 / 7, 1, 1 / 11, 0)) / 4},
        "UNIF_android": {"answered_1": 1, "answered_5": 2, "answered_10": 2, "mrr": 0.375},
    }
    assert values["published"]["NCS"] == {"answered_1": 33, "answered_5": 74, "answered_10": 98, "mrr": 0.189}


def test_a_dump_becomes_pairs_without_the_evaluation_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    posts = dump(tmp_path / "Posts.xml", ROWS)
    (tmp_path / "held.json").write_text(json.dumps([published(18, "x", "a();"), published(18, "y", "b();")]))
    command = ["stackoverflow", str(posts), str(tmp_path / "pairs.jsonl.gz"), "-q"]
    assert main([*command, "--held-out", str(tmp_path / "held.json")]) == 0
    assert capsys.readouterr() == ("3 pairs\n", "")
    assert {row.values["question_id"] for row in read_rows(tmp_path / "pairs.jsonl.gz")} == {10}
    assert main([*command, "--exclude", "hide, Studio"]) == 0
    out, err = capsys.readouterr()
    assert out == "1 pairs\n"
    assert err.startswith("corpora: no --held-out questions")


def test_a_corpus_is_written_as_a_beir_folder(tmp_path: Path) -> None:
    nlp2api(tmp_path)
    assert main(["beir", "nlp2api", str(tmp_path / "out"), "--data", str(tmp_path)]) == 0
    [corpus], [again] = load_corpora("nlp2api", tmp_path), load_corpora(str(tmp_path / "out"))
    assert again.qrels == corpus.qrels


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fetch", "nothing", "data"], "no corpus to fetch is named 'nothing'; choose from ncs287"),
        (["fetch", "cosqa", "data", "--jobs", "0"], "jobs and tries must be at least 1"),
        (["repositories", "none.txt", "apps"], "there is no none.txt"),
        (["stackoverflow", "none.xml", "pairs.jsonl"], "cannot read none.xml"),
        (["beir", "nothing", "out", "--data", "."], "no corpus or BEIR folder called 'nothing'"),
    ],
)
def test_what_is_wrong_is_an_error_of_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("corpora: ")
    assert message in line
