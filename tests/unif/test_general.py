"""The recipe of the general head: from repositories to the files of the package, resumed, and what 8 bits lose."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from corpora.jsonl import read_rows
from corpora.ncs287 import read_links
from ncs.index import Index
from ncs.learn.general import GeneralHead, GeneralScorer
from ncs.learn.heads import Head, tokens_of_words
from ncs.learn.translation import impacts_of
from tests import corpus
from tests.corpora.test_codesearchnet_filters import MIT
from tests.gitrepo import repository

pytest.importorskip("torch", reason="needs the extra unif")

from unif.__main__ import main
from unif.general import frequent_stems, quantized
from unif.translation_data import SparsePairs

LIST = Path(__file__).parents[2] / "corpora" / "general.txt"
FUNCTION = '''def {verb}_{thing}(path, {thing}):
    """{what} the {thing} of a {other}, if it is {how}."""
    {other} = open_{other}(path)
    {other}.{call}({thing})
    return {other}.{how}({thing})
'''
VERBS = {"delete": "unlink", "create": "mkdir", "show": "render", "find": "lookup", "send": "emit", "wait": "sleep"}
THINGS = ("file", "folder", "socket", "window", "user", "image", "record", "color", "timer", "packet")
OTHERS = tuple(a + b + c for a in "bdfgk" for b in "aiou" for c in ("zam", "rex", "lop", "nud", "vix", "tek", "mop"))
"""Words of no language: the training needs more words than a vector has numbers."""


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("general") / "repos"
    for number in range(6):
        code = [
            FUNCTION.format(
                verb=call, call=call, what=verb.title(), thing=thing, other=OTHERS[(60 * number + n) % 140], how=how
            )
            for n, ((verb, call), (thing, how)) in enumerate(
                product(VERBS.items(), zip(THINGS, ("ready", "empty", "open", "broken", "known") * 2, strict=True))
            )
        ]
        repository(root / f"owner+r{number}", {"LICENSE": MIT, "a.py": "\n\n".join(code)})
    return root


@pytest.mark.slow
def test_the_recipe_makes_a_head_from_repositories_and_resumes(
    repositories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, apart = tmp_path / "run", tmp_path / "apart.jsonl"
    apart.touch()
    asked = {"query": "get rid of an entry", "repo": "owner/r0", "id": "1", "relevant": ["a.py::unlink_record"]}
    elsewhere = {**asked, "repo": "owner/none", "id": "2"}
    (tmp_path / "asked.jsonl").write_text(f"{json.dumps(asked)}\n{json.dumps(elsewhere)}\n")
    command = ["train", "general", "--repositories", str(repositories), "--apart", str(apart), "--out", str(run), "-q"]
    (tmp_path / "others.jsonl").write_text(f"{json.dumps(elsewhere)}\n")
    assert main([*command, "--questions", str(tmp_path / "others.jsonl")]) == 2
    assert "no pair is left of question and function in --questions" in capsys.readouterr().err
    command += ["--questions", str(tmp_path / "asked.jsonl")]
    settings = ["--epochs", "1", "--batch", "32", "--valid", "0.1"]
    assert main([*command, *settings]) == 0
    pairs = list(read_rows(run / "pairs.jsonl.gz"))
    assert {row.text("license") for row in pairs} == {"MIT"}
    assert len(pairs) > 100
    (written,) = read_rows(run / "asked.jsonl.gz")
    assert written.text("query") == asked["query"]
    assert "def unlink_record(" in written.text("code")
    first = {path.name: path.read_bytes() for path in (run / "general").iterdir()}
    (run / "general" / "tables.npy").unlink()
    (run / "general" / "context.npy").unlink()
    assert main([*command, *settings]) == 0
    assert {path.name: path.read_bytes() for path in (run / "general").iterdir()} == first

    apart.write_text(f"{json.dumps({'code': written.text('code'), 'language': 'python'})}\n")
    assert main([*command, *settings]) == 2
    assert capsys.readouterr().err == f"ncs: {run} was begun with other --apart or --questions; name another folder\n"

    trained, counts = Head.load(run / "translation"), SparsePairs.load(run / "translation" / "pairs")
    assert trained.translation is not None
    head = GeneralHead.load(run / "general")
    assert list(head.stems) == list(counts.stems)
    with Index.build(repositories, tmp_path / "index", config=corpus.QUICK) as index:
        words, rows = index.word_table(), np.arange(len(index))
        postings = index._bm25().postings
        tokens = tokens_of_words(trained.code, words.vocabulary)
        impacts, _ = impacts_of(words, tokens, float(postings.tables[0].lengths.mean()))
        query = "delete record"
        ids = trained.query_ids(query)
        cosines = trained.code.bags(impacts) @ trained.encode_queries([query])[0]
        expected = np.maximum(cosines, 0) + trained.translation.scores(ids, impacts)
        scorer = GeneralScorer(head, index.facts.words, postings.statistics.mean_length)
        scores = scorer.scores(query.split(), rows)
        assert np.abs(scores - expected).max() < 0.02  # of scores up to 2
        assert np.corrcoef(scores, expected)[0, 1] > 0.999

    fewer = quantized(trained, counts, frequent_stems(counts, 10), head.context)
    each = [np.bincount(rows.indices, minlength=len(counts.stems)) for rows in (counts.query, counts.code)]
    frequent = each[0] + each[1]
    assert len(fewer.stems) == 10
    least = min(frequent[counts.stems.id(stem)] for stem in fewer.stems)
    assert sum(frequent > least) < 10
    assert main(["train", "general", "--out", str(run), "-q"]) == 2


def test_the_list_of_repositories_is_one_of_archives_at_commits_with_their_licenses() -> None:
    lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    assert len(read_links(LIST)) == len(lines) == len(set(lines)) > 400
    assert all(len(line.partition(".zip")[0].rpartition("/")[2]) == 40 for line in lines)
    licenses = {part for line in lines for part in line.partition("# ")[2].split(" AND ")}
    licenses -= {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Unlicense", "Zlib", "CC0-1.0"}
    assert licenses == {"CC-BY-4.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0"}  # of guides, whose functions are not read
