"""Heads with a translation: the ranker that serves them, training, lists judged by known answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from corpora import jsonl
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from ncs.learn.heads import Head, tokens_of_words
from ncs.learn.tokenization import StemTokenizer
from ncs.learn.translation import FIELD_WEIGHTS, K1, B, impacts_of
from ncs.progress import Track
from ncs.search.aroma import features, similarity
from ncs.search.bm25 import WEIGHTS
from ncs.search.unif import UnifRanker
from ncs.text.stems import stem_all
from ncs.text.tokens import tokenize
from ncs.types import Document
from tests import heads
from unif.config import TranslationConfig
from unif.data import PairFile, ReadStats, Sources
from unif.translation_data import SparsePairs, read_rows, write_rows

torch = pytest.importorskip("torch", reason="needs the extra unif")

from unif.judged_lists import MIN_HITS, AnsweredQuestion, drop_entries, judge_lists, read_answers  # noqa: E402
from unif.training import Trained  # noqa: E402
from unif.translation import Training, TranslationModel, VectorModel, export, start_vectors, train  # noqa: E402

STEMS = ("close", "file", "how", "keyboard", "open", "read", "socket", "word", "write")
TEXTS = {
    "openFile": "opens a file and reads all words",
    "closeSocket": "closes the socket; sockets are closed twice",
    "readWords": "reads words of a file, word by word",
    "hideKeyboard": "hides the keyboard",
    "writeFile": "writes words into an open file",
}
QUERY = "how to close sockets"
TRANSLATION = heads.translation(len(STEMS))


def head() -> Head:
    return replace(heads.head(3, words=STEMS, tokenizer=StemTokenizer), translation=TRANSLATION)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A training run with the head."""
    head().save(tmp_path / "run" / "head")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    documents = [
        Document(
            name, "", "", 1, 3, "java", "method", name, name, {"name": (name,), "doc": (doc,), "calls": (name[:4],)}
        )
        for name, doc in TEXTS.items()
    ]
    config = BuildConfig(deduplicate=False)
    with Index.of(documents, tmp_path_factory.mktemp("translation") / "index", config=config) as index:
        yield index


def fitted(index: Index, run: Path) -> UnifRanker:
    return cast(UnifRanker, index.fitted("unif", head=str(run)))


def test_a_word_of_a_query_counts_once_and_a_query_or_a_function_without_words_has_the_score_0() -> None:
    each, impacts = TRANSLATION, csr_matrix(np.eye(4, len(STEMS)))
    assert each.scores([2, 5, 2, 0, 8], impacts).tolist() == each.scores([2, 5, 8], impacts).tolist()
    assert not each.scores([], impacts).any()
    assert not each.scores([1], csr_matrix((2, len(STEMS)))).any()
    assert each.scores([1], impacts[:0]).shape == (0,)


def test_impacts_are_the_weights_of_bm25_without_idf(index: Index) -> None:
    words = index.word_table()
    impacts, _ = impacts_of(words, tokens_of_words(head().code, words.vocabulary))
    counts = np.zeros((len(TEXTS), len(STEMS)))
    for row, (name, doc) in enumerate(TEXTS.items()):
        for text, times in ((name, 3), (doc, 1), (name[:4], 1)):
            for stem in stem_all(tokenize(text)):
                if stem in STEMS:
                    counts[row, STEMS.index(stem)] += times
    lengths = counts.sum(axis=1, keepdims=True)
    expected = counts / np.maximum(counts + K1 * (1 - B + B * lengths / lengths.mean()), 1e-9)
    np.testing.assert_allclose(impacts.toarray(), expected, rtol=1e-6)
    assert FIELD_WEIGHTS == WEIGHTS


def test_the_ranker_orders_by_both_standings_and_reads_itself_back(index: Index, run: Path, tmp_path: Path) -> None:
    ranker, rows = fitted(index, run), np.arange(len(TEXTS))
    assert ranker.head.query_ids(f"{QUERY}, and close a file") == [1, 7, 2]  # no stop words, none twice
    cosines = (ranker.vectors.vectors(rows) @ ranker.query_vector(QUERY)).astype(np.float64)
    impacts, _ = impacts_of(index.word_table(), tokens_of_words(ranker.head.code, index.word_table().vocabulary))
    words = TRANSLATION.scores([1, 7], impacts)
    expected = sum((each - each.mean()) / each.std() for each in (cosines, words))
    hits = dict(ranker.search(QUERY, 5))
    np.testing.assert_allclose([hits[row] for row in rows.tolist()], expected, atol=1e-4)
    np.testing.assert_allclose(ranker.z_scores(ranker.query_vector(QUERY), rows, QUERY), expected, atol=1e-4)
    assert [row for row, _ in ranker.search(QUERY, 2)] == np.argsort(-expected)[:2].tolist()
    config = BuildConfig(deduplicate=False, rankers=(f"unif:head={run}",))
    with Index.of(index.documents.documents(rows.tolist()), tmp_path / "index", config=config) as again:
        assert dict(again.ranker("unif").search(QUERY, 5)) == pytest.approx(hits, abs=1e-5)


def test_an_update_encodes_new_functions_by_the_lengths_and_the_head_of_the_build(run: Path, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    code = "def {0}_{1}(path):\n    {1} = {0}(path)\n    return {1}.{0}()\n"
    for verb in ("open", "read", "write"):
        (tmp_path / "src" / f"{verb}.py").write_text("\n\n".join(code.format(verb, stem) for stem in STEMS))
    config = BuildConfig(deduplicate=False, rankers=(f"unif:head={run}",))
    Index.build(tmp_path / "src", tmp_path / "index", config=config).close()
    (tmp_path / "src" / "close.py").write_text(code.format("close", "socket"))

    def z_scores(index: Index, *rows: int) -> list[float]:
        ranker = cast(UnifRanker, index.ranker("unif"))
        assert ranker.translated
        scores = ranker.translated.z_scores(ranker.head.query_ids(QUERY), ranker.translated.rows(np.array(rows)))
        return [float(score) for score in scores]

    updated, _ = Index.update(tmp_path / "index")
    with updated as index:
        row = len(index) - 1
        assert len(index.snapshot.segments) == 2
        assert index.documents.document(row).name == "close_socket"
        assert row in [hit for hit, _ in cast(UnifRanker, index.ranker("unif")).search(QUERY, 3)]
        first, later = z_scores(index, row, 0)
        assert z_scores(index, 0) == pytest.approx([later])
    compacted, _ = Index.update(tmp_path / "index", compact=True)
    with compacted as index:
        names = [document.name for document in index.documents.documents(range(len(index)))]
        assert first == pytest.approx(z_scores(index, names.index("close_socket"))[0], rel=0.2)  # another sample


def test_a_function_without_a_field_stands_where_its_other_words_put_it(index: Index, run: Path) -> None:
    ranker = fitted(index, run)
    words, (third, first) = index.word_table(), index.documents.documents([3, 1])
    whole = ranker.z_scores(ranker.query_vector(QUERY), np.array([3, 1]), QUERY)
    without = ranker.ablated_z_score(QUERY, words, 3, third, "literals")
    assert without == pytest.approx(float(whole[0]), abs=1e-5)  # it has none
    assert ranker.ablated_z_score(QUERY, words, 1, first, "doc") != pytest.approx(float(whole[1]), abs=1e-3)


VERBS = {"open": "load", "close": "shut", "read": "fetch", "write": "store", "sort": "order", "count": "sum"}
NOUNS = ("file", "socket", "word", "list", "mail", "string", "table", "image")
CONFIG = TranslationConfig(dim=8, batch=64, epochs=4, passes=2, rate=0.01, valid=0.1)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question has another verb than the code; some functions have a doc comment."""
    lines: list[object] = []
    for query, said in VERBS.items():
        for noun in NOUNS:
            for turn in range(6):
                doc = f'    """Will {said} the {noun}."""\n' if turn % 3 == 0 else ""
                code = f"def {said}_{noun}(x{turn}):\n{doc}    return {said}{turn}({noun})\n"
                lines.append({"query": f"How to {query} the {noun}. More of it", "code": code, "language": "python"})
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    bad = ["{", json.dumps({"query": "asked", "code": "def f(): pass", "language": "python"})]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "\n".join(bad) + "\n")
    return path


@pytest.fixture(scope="module")
def pairs(file: Path, tmp_path_factory: pytest.TempPathFactory) -> SparsePairs:
    stats = ReadStats()
    return write_rows(read_rows(Sources((PairFile(file),)), stats), tmp_path_factory.mktemp("sparse") / "pairs", stats)


def test_a_question_is_its_first_sentence_and_names_are_numbered(file: Path, tmp_path: Path) -> None:
    (tmp_path / "left.jsonl").write_text('{"query": "How to open the file. More of it"}\n')
    stats = ReadStats()
    sources = Sources((PairFile(file),), leave_out=tmp_path / "left.jsonl")
    pairs = write_rows(read_rows(sources, stats), tmp_path / "pairs", stats)
    assert (stats.questions, stats.rows, stats.left_out, stats.bad, stats.wordless) == (47, 6 * 47, 6, 1, 1)
    spelled = list(pairs.stems)
    assert sorted(spelled[id] for id in pairs.query[0].indices) == ["open", "socket"]  # `More of it` is left out
    assert len(np.unique(pairs.name)) == 47
    assert pairs.documented.sum() == 2 * 47
    name = spelled.index("load")
    assert pairs.code[0, name] > pairs.nameless[0, name] > 0


def test_torch_and_numpy_give_one_score(pairs: SparsePairs) -> None:
    weights = torch.from_numpy(np.log(pairs.idf)).float()
    vectors = VectorModel(*start_vectors(pairs, np.arange(len(pairs)), CONFIG), weights)
    words = TranslationModel(vectors)
    words.code_weights.weight.data.normal_()
    served = export(vectors, words, pairs, {})
    query, code = pairs.query[:5], pairs.code[100:120]
    ids = [(query[row].indices + 1).tolist() for row in range(5)]
    assert served.translation is not None
    with torch.no_grad():
        cosines = vectors(query, code).numpy() / float(vectors.log_scale.exp())
        by_word = words(query, code).numpy() / float(words.log_scale.exp())
    np.testing.assert_allclose(served.query.vectors(ids) @ served.code.bags(code).T, cosines, atol=1e-5)
    np.testing.assert_allclose([served.translation.scores(each, code) for each in ids], by_word, atol=1e-5)


@pytest.fixture(scope="module")
def whole(file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained]:
    """A training that nothing stopped, and its folder."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return folder, train(folder, Sources((PairFile(file),)), CONFIG)


@pytest.mark.slow
def test_training_learns_which_verbs_stand_for_each_other(whole: tuple[Path, Trained]) -> None:
    folder, trained = whole
    first = trained.head.translation
    assert first is not None
    tokens = trained.head.query.tokens
    said = np.array([tokens.ids([word])[0] for word in VERBS.values()])
    for place, verb in enumerate(VERBS):
        near = first.table(np.array(tokens.ids([verb])), np.sort(said))[0]
        assert np.sort(said)[near.argmax()] == said[place], verb
    curve = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in curve] == list(range(1 + CONFIG.epochs + CONFIG.passes))
    assert curve[CONFIG.epochs]["loss"] < curve[1]["loss"]
    assert curve[-1]["mrr"] >= curve[0]["mrr"] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("epoch", [1, CONFIG.epochs])
def test_a_training_that_was_stopped_resumes_as_if_it_had_not_been(
    file: Path, whole: tuple[Path, Trained], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    folder, trained = whole
    run_epoch = Training._epoch

    def stopped(self: Training, number: int, track: Track) -> dict[str, float]:
        if number == epoch + 1:
            raise KeyboardInterrupt
        return run_epoch(self, number, track)

    with monkeypatch.context() as patched:
        patched.setattr(Training, "_epoch", stopped)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run", Sources((PairFile(file),)), CONFIG)
    again = train(tmp_path / "run", Sources((PairFile(file),)), CONFIG)
    assert again.best_epoch == trained.best_epoch
    for path in sorted(path for path in (folder / "head").rglob("*") if path.is_file()):
        assert (tmp_path / "run" / path.relative_to(folder)).read_bytes() == path.read_bytes(), path.name


def test_validation_shares_no_question_and_no_name_with_training(pairs: SparsePairs) -> None:
    learning, valid = pairs.split(0.1, 0)
    assert len(valid) == 6 * 5
    assert not set(pairs.question[learning]) & set(pairs.question[valid])
    assert not set(pairs.name[learning]) & set(pairs.name[valid])
    with pytest.raises(BadInput, match="nothing is left"):
        pairs.split(1.0, 0)


def test_no_row_of_an_epoch_comes_twice_and_dropped_entries_leave_the_others(pairs: SparsePairs) -> None:
    draw, every = np.random.default_rng(0), np.arange(len(pairs))
    rows = np.concatenate(list(pairs.batches(every, 16, 0.5, 1.0, draw)))
    assert len(rows) == len(np.unique(rows)) == len(pairs) // 16 * 16
    assert pairs.documented[np.concatenate(list(pairs.batches(every, 16, 0.5, 0.0, draw)))].all()
    fewer_than_a_batch = [rows.tolist() for rows in pairs.batches(every[:5], 16, 0.5, 1.0, draw)]
    assert list(map(sorted, fewer_than_a_batch)) == [[0, 1, 2, 3, 4]]
    assert list(pairs.batches(every[:0], 16, 0.5, 1.0, draw)) == []
    dropped, code = drop_entries(pairs.code, 0.25, np.random.default_rng(1)).toarray(), pairs.code.toarray()
    assert 0.7 < np.count_nonzero(dropped) / np.count_nonzero(code) < 0.8
    assert (dropped[dropped > 0] == code[dropped > 0]).all()


def test_what_cannot_be_trained_is_an_error_of_one_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from unif.__main__ import main

    options = ["--epochs", "1", "--batch", "64", "-q", "--out", str(tmp_path / "head")]
    assert main(["train", "translation", "--pairs", f"{file}:0", *options]) == 2
    assert "has the weight 0" in capsys.readouterr().err
    assert main(["train", "translation", "--pairs", str(file), *options]) == 2  # of fewer words than it has dimensions
    assert "more than 128" in capsys.readouterr().err


ANSWER = "imm.hideSoftInputFromWindow(view.getWindowToken(), 0); view.clearFocus(); done.set(true);"
GREEK = ("Alpha", "Beta", "Gamma", "Delta", "Kappa", "Sigma")


@pytest.fixture(scope="module")
def keyboards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """All names say keyboard; every fourth function does what the answer does."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "src").mkdir()
    for at in range(40):
        word = f"{GREEK[at % len(GREEK)]}{GREEK[at // len(GREEK) % len(GREEK)]}"
        body = ANSWER if at % 4 == 0 else f"keyboard.draw{word}(canvas, {at}); keyboard.show{word}();"
        code = f"class C{at} {{\n  void keyboardHide{word}() {{\n    {body}\n    log.write{word}({at});\n  }}\n}}\n"
        (folder / "src" / f"C{at}.java").write_text(code)
    with Index.build(folder / "src", folder / "index", config=BuildConfig(deduplicate=False)) as index:
        yield index


def lines(path: Path, *rows: tuple[str, str]) -> Path:
    jsonl.write_rows(path, ({"query": query, "code": code, "language": "java"} for query, code in rows))
    return path


def test_answers_of_one_question_come_together_and_short_ones_are_left_out(tmp_path: Path) -> None:
    other = ANSWER.replace("view", "field")
    rows = [("Hide keyboard", ANSWER), ("hide  Keyboard!", other), ("Exit", "finish();"), ("Left out", ANSWER)]
    answered = read_answers([lines(tmp_path / "a.jsonl", *rows)], frozenset({"left out"}))
    assert answered == [AnsweredQuestion("Hide keyboard", ((ANSWER, "java"), (other, "java")))]
    (tmp_path / "bad.jsonl").write_text('{"query": 1}\n')
    with pytest.raises(BadInput, match=r"bad\.jsonl:1"):
        read_answers([tmp_path / "bad.jsonl"])


UNLIKE = "long[] a = {1L, 2L}; do { a[0] <<= 1; } while (a[0] < a[1] ? a[1] > 7L : a.length == 2); assert a[0] != 3L;"


def test_functions_are_judged_by_what_they_hold_of_the_nearest_answer(keyboards: Index) -> None:
    answers = tuple((code, "java") for code in (UNLIKE, ANSWER))
    (judged,) = judge_lists(keyboards, [AnsweredQuestion("hide keyboard", answers)])
    assert len(judged.rows) == len(judged.scores) == len(judged.shares) >= MIN_HITS
    for document, share in zip(keyboards.documents.documents(judged.rows.tolist()), judged.shares, strict=True):
        function = features(document.code, "java")
        assert share == pytest.approx(max(similarity(function, features(*answer)) for answer in answers))
        assert (share > 0.8) == ("hideSoftInputFromWindow" in document.code)
    questions = [AnsweredQuestion("hide keyboard", answers[:1]), AnsweredQuestion("zzz", answers[1:])]
    with pytest.raises(BadInput, match="2 questions"):
        judge_lists(keyboards, questions)


@pytest.mark.slow
def test_a_head_learns_what_the_lists_lack(keyboards: Index, tmp_path: Path) -> None:
    pairs = [(f"how to {word.lower()} the thing", f"void make{word}() {{ thing.{word.lower()}(); }}") for word in GREEK]
    questions = [(f"{verb} keyboard {word.lower()}", ANSWER) for verb in ("hide", "show", "remove") for word in GREEK]
    files = [PairFile(lines(tmp_path / "pairs.jsonl", *pairs * 4, *questions))]
    config = TranslationConfig(dim=8, batch=8, epochs=1, rounds=20)
    right = {row for row in range(len(keyboards)) if "hideSoft" in keyboards.documents.document(row).code}
    hits = []
    for name, answers in (("plain", ()), ("lists", (lines(tmp_path / "answers.jsonl", *questions),))):
        train(tmp_path / name, Sources(files, answers=answers), config, index=keyboards)
        hits.append(sum(row in right for row, _ in fitted(keyboards, tmp_path / name).search("close keyboard", 10)))
    assert hits[1] > hits[0] + 2
    assert len((tmp_path / "lists" / "curve.jsonl").read_text().splitlines()) == 1 + 1 + config.passes + config.rounds
