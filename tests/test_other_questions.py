"""Questions in folds: what is asked, what is left out of training, and heads that are asked in folds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpora.corpus import Corpus
from corpora.jsonl import read_rows, write_rows
from corpora.ncs287 import read_questions
from corpora.program import read_program
from evaluation import heads_table, learnt_heads, reciprocal_ranks
from evaluation.other_questions import A_PAGE, folds, main
from evaluation.question_pairs import read
from evaluation.reciprocal_ranks import Ranks
from ncs.errors import BadInput
from ncs.types import Query

VERBS = ("hide", "draw", "send", "play", "scan", "sort", "copy", "move", "lock", "zoom", "drop", "fold")
THINGS = (
    "keyboard",
    "circle",
    "message",
    "song",
    "barcode",
    "list",
    "file",
    "window",
    "screen",
    "map",
    "item",
    "paper",
)


def code(at: int) -> str:
    verb, thing = VERBS[at % len(VERBS)], THINGS[at % len(THINGS)]
    return f"{thing}Manager.{verb}All({thing}, {at}); {thing}.{verb}Fast(this); log.{verb}(done{at}, {thing}View{at});"


def thread(at: int, **more: object) -> dict[str, object]:
    title = f"{VERBS[at]} the {THINGS[at]} number{at}"
    about = {"question_id": at, "answer_rank": 0, "accepted": True, "tags": ["java", "android"]}
    return {"query": title, "code": code(at), "language": "java", "id": f"{at}-0", **about, **more}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Threads (the first is like a question that is kept), pages, and the kept questions."""
    threads = [thread(at) for at in range(10)]
    worse = thread(1, answer_rank=1, accepted=False, id="1-1", code=code(1) + " again(here); and(there);")
    strange = thread(10, tags=["java"])
    copy = thread(11, tags=["java"], code=code(2))  # the second's answer, asked otherwise
    again = thread(3, question_id=99, id="99-0", tags=["java"])  # the third's title
    write_rows(tmp_path / "threads.jsonl.gz", [*threads, worse, strange, copy, again])
    page = {"language": "java", "platform": "android", "first": True}
    words = ("alpha beta", "gamma delta", "kappa sigma", "omega zeta", "theta iota")
    pages = [
        {"query": words[at], "code": code(at + 20).replace("All", "Page"), "id": f"p.md#{at}", **page}
        for at in range(5)
    ]
    write_rows(tmp_path / "pages.jsonl", pages)
    kept = [{"stackoverflow_id": "777", "question": "hide keyboard number0 now", "answer": code(0)}]
    (tmp_path / "kept.json").write_text(json.dumps(kept))
    return tmp_path / "threads.jsonl.gz", tmp_path / "pages.jsonl", tmp_path / "kept.json"


def made(files: tuple[Path, Path, Path], out: Path, *more: str) -> Path:
    threads, pages, kept = files
    assert main([str(threads), str(pages), str(out), "--apart", str(kept), *more]) == 0
    return out


def queries(path: Path) -> list[str]:
    return [row.text("query") for row in read_rows(path)]


def test_every_question_is_in_one_fold_and_no_fold_learns_its_own(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    out = made(files, tmp_path / "out")
    asked = [question.query for question in read_questions(out / "questions.json")]
    assert "so0" not in {query.id for query in asked}  # like the question that is kept
    assert {f"so{at}" for at in range(1, 10)} < {query.id for query in asked}
    assert sum(query.id.startswith("page-") for query in asked) == A_PAGE
    assert not {"so10", "so11", "so99"} & {query.id for query in asked}  # not about android, or in words of another
    by_fold = [read_questions(out / f"other-{fold}.json") for fold in range(3)]
    assert sorted(each.query.id for fold in by_fold for each in fold) == sorted(query.id for query in asked)
    assert len({fold for fold, some in enumerate(by_fold) for each in some if each.query.id.startswith("page-")}) == 1
    for fold, held in enumerate(by_fold):
        learnt = queries(out / f"other-{fold}" / "threads.jsonl.gz") + queries(out / f"other-{fold}" / "pages.jsonl")
        assert not {each.query.text for each in held} & set(learnt)
        assert {each.query.text for each in held} < set(queries(out / f"other-{fold}" / "leave_out.jsonl"))
        others = {each.query.text for other in by_fold if other is not held for each in other}
        assert others <= set(learnt)
        third = "so3" in {each.query.id for each in held}
        assert (thread(3)["query"] in learnt) == (not third)  # thread 99 says the same
        second = "so2" in {each.query.id for each in held}
        assert (thread(11)["query"] in learnt) == (not second)  # its code answers the second


def test_the_kept_are_apart_from_all_and_the_best_answer_is_asked(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    out = made(files, tmp_path / "out")
    answers = {each.query.id: each.answer for each in read_questions(out / "questions.json")}
    assert answers["so1"] == code(1)
    for folder in ("other-0", "other-1", "other-2", "kept"):
        assert thread(0)["query"] not in queries(out / folder / "threads.jsonl.gz")
    assert len(queries(out / "kept" / "threads.jsonl.gz")) == 13
    assert len(list(read_rows(out / "answers.jsonl.gz"))) == len(answers) + 1
    again = made(files, tmp_path / "again")
    assert [(again / path.relative_to(out)).read_bytes() == path.read_bytes() for path in out.rglob("*.json*")]
    few = made(files, tmp_path / "few", "--most", "4", "--folds", "2", "--seed", "1")
    assert [len(read_questions(few / f"other-{fold}.json")) for fold in range(2)] == [2, 2]


def test_what_cannot_be_asked_is_told(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads, pages, kept = map(str, files)
    assert main([threads, str(tmp_path / "out"), "--apart", kept, "--topic", "cobol"]) == 2
    assert "cobol" in capsys.readouterr().err
    assert main([pages, str(tmp_path / "out"), "--apart", kept, "--folds", "3", "--most", "2"]) == 2
    assert "--most 2" in capsys.readouterr().err


def test_folds_are_of_one_size(files: tuple[Path, Path, Path]) -> None:
    pairs = read([files[0]])
    assert sorted(map(len, folds(pairs[:10], 3))) == [3, 3, 4]


def test_folds_are_asked_of_their_own_heads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def rows(_index: object, heads: dict[str, Path], _weights: object, judged: object) -> dict[str, Ranks]:
        return {"hybrid with h": {"at 0.6": {f"{judged}-{heads['h'].name}": 1.0}}}

    monkeypatch.setattr(learnt_heads, "rows_of", rows)
    monkeypatch.setattr(learnt_heads, "by_similarity", lambda _index, file: file.stem)
    index: Any = None
    files, runs = [Path("a.json"), Path("b.json")], [Path("one"), Path("two")]
    found = learnt_heads.in_folds(index, files, {"h": runs}, [0.3])
    assert found == {"hybrid with h": {"at 0.6": {"a-one": 1.0, "b-two": 1.0}}}
    with pytest.raises(BadInput, match="has 2 runs for 1 files"):
        learnt_heads.in_folds(index, files[:1], {"h": runs}, [0.3])
    with pytest.raises(BadInput, match="in another file too"):
        learnt_heads.in_folds(index, [files[0], files[0]], {"h": runs[:1]}, [0.3])


def test_sets_are_shown_by_themselves_and_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = {str(at): 0.0 for at in range(20)}
    better, same = dict.fromkeys(base, 0.5), dict(base)

    def ranks(values: dict[str, float]) -> dict[str, object]:
        return {"reciprocal_ranks": {"hybrid": {"mrr": base}, "hybrid with h": {"mrr": values}}}

    file = tmp_path / "heads.json"
    file.write_text(json.dumps({"one": ranks(better), "two": ranks(same)}))
    assert heads_table.main([str(file), "one", "two"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| h | one | 20 | 0.500, +0.500 [+0.500, +0.500] * | 0, 0 |" in lines
    assert any(line.startswith("| h | together | 40 | 0.250, +0.250 [") for line in lines)
    assert heads_table.main([str(file), "three"]) == 2
    assert "has no 'three'" in capsys.readouterr().err


def test_a_corpus_gets_its_index_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [
        f"def {verb}_{thing}(path):\n    return {thing}.{verb}(path)" for verb, thing in zip(VERBS, THINGS, strict=True)
    ]
    documents = [read_program(text, "python", id=str(at)) for at, text in enumerate(texts)]
    queries = tuple(Query(f"q{at}", f"{VERBS[at]} a {THINGS[at]}") for at in range(3))
    corpus = Corpus("tiny", queries, {f"q{at}": {str(at): 1} for at in range(3)}, lambda: iter(documents))
    for module in (learnt_heads, reciprocal_ranks):
        monkeypatch.setattr(module, "load_corpus", lambda _name, _data: corpus)
    arguments = ["--index", str(tmp_path / "index"), "--corpus", "tiny", "--json", str(tmp_path / "found.json")]
    assert learnt_heads.main(arguments) == 0
    assert "| bm25 | 1.000 |" in capsys.readouterr().out
    (found,) = json.loads((tmp_path / "found.json").read_text()).values()
    assert found["documents"] == len(documents)
    assert found["reciprocal_ranks"]["hybrid"]["mrr"].keys() == {"q0", "q1", "q2"}
    assert learnt_heads.main(arguments) == 0  # the index stands
