"""A head that learns what a ranker answers: questions, lists, shares and losses by hand; a head like its teacher."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from ncs.errors import BadInput
from ncs.index import BuildConfig, Index
from ncs.config import FastTextConfig
from ncs.types import Document
from unif.asked import OWN, asked, own
from unif.data import Texts, Writer
from unif.ranker import UnifRanker
from unif.settings import TrainConfig
from unif.sources import PairFile, Sources
from unif.teacher import DEPTH, Lists, ask

torch = pytest.importorskip("torch", reason="needs the extra unif")

from unif.lessons import Lesson, Lessons  # noqa: E402
from unif.losses import listwise_loss  # noqa: E402
from unif.objective import centred, weighed  # noqa: E402
from unif.train import train  # noqa: E402

torch.set_num_threads(1)
THINGS = ("file", "socket", "window", "queue", "image", "song", "mail", "photo", "map", "key")
VERBS = ("open", "close", "draw", "send")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Forty functions, a verb and a thing each, every fourth with a comment."""
    documents = [
        Document(
            f"{verb}{thing}", "r", f"{thing}.py", 1, 2, "python", "function", f"{verb}_{thing}", f"{verb}_{thing}",
            {"name": (f"{verb}_{thing}",), "calls": (f"{thing}_driver", f"do_{verb}"),
             **({"doc": (f"Will {verb} the {thing} now. And more.",)} if verb == "draw" else {})},
        )
        for verb in VERBS
        for thing in THINGS
    ]  # fmt: skip
    config = BuildConfig(fasttext=FastTextConfig(dim=8, min_count=1, epochs=1), embeddings="fasttext")
    with Index.of(documents, tmp_path_factory.mktemp("index"), config=config) as built:
        yield built


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "titles.jsonl"
    texts = [f"{verb} my {thing}" for verb in VERBS for thing in THINGS]
    path.write_text("".join(json.dumps({"query": text}) + "\n" for text in texts))
    return path


def test_own_questions_are_first_sentences_and_names_each_wording_once(index: Index) -> None:
    found = list(own(index, set()))
    assert sorted(found) == sorted(
        [f"Will draw the {thing} now." for thing in THINGS] + [f"{verb} {thing}" for verb in VERBS for thing in THINGS]
    )
    some = list(own(index, set(), most=3))
    assert [text.startswith("Will") for text in some] == [True] * 3 + [False] * 3
    assert some == list(own(index, set(), most=3)) != list(own(index, set(), most=3, seed=1))


def test_what_is_left_out_is_not_asked_and_a_wording_is_asked_once(index: Index, questions: Path) -> None:
    found = list(asked([questions, questions, OWN], index, frozenset({"open my file", "draw song"})))
    texts = [text for _, text in found]
    assert len(texts) == len(set(texts))
    assert "open my file" not in texts
    assert "draw song" not in texts
    assert [sum(place == each for place, _ in found) for each in range(3)] == [39, 0, 49]


def test_the_lists_are_the_teachers_first_functions_and_are_asked_for_once(
    index: Index, questions: Path, tmp_path: Path
) -> None:
    lists = ask(index, "bm25", [questions], frozenset(), tmp_path / "run" / "teacher")
    at = lists.texts.index("send my mail")
    expected = index.ranker("bm25").search("send my mail", DEPTH)
    assert lists.rows[at][: len(expected)].tolist() == [row for row, _ in expected]
    assert lists.scores[at][: len(expected)].tolist() == pytest.approx([score for _, score in expected], rel=1e-6)
    assert set(lists.rows[at][len(expected) :].tolist()) == {-1}
    assert "VERB" not in lists.texts
    again = ask(index, str(tmp_path / "run"), [questions], frozenset(), tmp_path / "other" / "teacher")
    assert np.array_equal(again.rows, lists.rows)
    with pytest.raises(BadInput, match="was asked other questions"):
        ask(index, str(tmp_path / "run"), [OWN], frozenset(), tmp_path / "third" / "teacher")
    (tmp_path / "run" / "teacher" / "texts.txt").write_text("one\n")
    with pytest.raises(BadInput, match="do not fit each other"):
        Lists.load(tmp_path / "run" / "teacher")


def test_a_list_without_candidates_enough_teaches_nothing(index: Index, tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    path.write_text(json.dumps({"query": "zebra crossing"}) + "\n")
    with pytest.raises(BadInput, match="finds 8 functions for none of 1 questions"):
        ask(index, "bm25", [path], frozenset(), tmp_path / "teacher")


def test_listwise_loss_is_the_cross_entropy_without_what_is_near() -> None:
    scores = torch.tensor([[2.0, 1.0, 0.0, 5.0]])
    shares = torch.tensor([[0.75, 0.25, 0.0, 0.0]])
    near = torch.tensor([[False, True, False, True]])  # the second is in the list and drawn: its share counts
    total = math.log(math.exp(2) + math.exp(1) + 1)
    expected = 0.75 * (total - 2) + 0.25 * (total - 1)
    assert listwise_loss(scores, shares, near).tolist() == pytest.approx([expected], abs=1e-6)


def test_a_question_without_a_lesson_has_its_share_in_its_own_code() -> None:
    lesson = Lesson(torch.zeros(2, 1), torch.tensor([[0.5, 0.5], [0.0, 0.0]]), torch.zeros(2, 4, dtype=torch.bool))
    lesson.near[0, 1] = lesson.near[1, 3] = True
    shares, near = weighed(torch.eye(2, dtype=torch.bool), lesson)
    assert shares.tolist() == [[0, 0, 0.5, 0.5], [0, 1, 0, 0]]
    assert near.tolist() == [[True, True, False, False], [False, True, False, True]]


def test_a_lesson_holds_the_teachers_shares_and_knows_what_its_list_holds(tmp_path: Path) -> None:
    from unif.data import Pair, Reading, prepare

    with Writer(tmp_path, "functions") as written:
        for row in range(6):
            written.add([row + 1])
    made = [Pair(["a"], ["c"], ["1"], row=4, taught=0), Pair(["b"], ["d"], ["2"], row=2), Pair(["e"], ["d"], ["3"])]
    pairs = prepare(made, tmp_path / "pairs", Reading(), lambda words: [1] * len(words), lambda words: [1] * len(words))
    rows = np.full((1, DEPTH), -1, np.int32)
    rows[0, :3], scores = [4, 2, 0], np.zeros((1, DEPTH), np.float32)
    scores[0, :3] = [2, 1, 0]
    lists = Lists(["a"], np.zeros(1, np.int16), rows, scores)
    config = TrainConfig(candidates=3, strangers=200, soft=0.5)
    lessons = Lessons(lists, Texts.load(tmp_path, "functions"), pairs, config, torch.device("cpu"))
    lesson = lessons.lesson(np.array([2, 0, 1]), np.random.default_rng(0))
    assert lesson is not None
    assert lesson.code.tolist() == [[1], [3], [5], [2], [4], [6]]  # the list's; the others, of which 200 are drawn
    assert lesson.strangers == 3
    total = sum(math.exp(2 * score) for score in (2, 1, 0))
    expected = [1 / total, math.exp(2) / total, math.exp(4) / total, 0, 0, 0]
    assert lesson.shares.tolist()[1] == pytest.approx(expected, abs=1e-6)
    assert not lesson.shares[[0, 2]].any()
    assert lesson.near[:, :3].tolist() == [[False] * 3, [False, True, True], [False] * 3]
    assert lesson.near[:, 3:].tolist() == [[False] * 6, [False] * 6, [False, True, False, False, False, False]]
    assert lessons.lesson(np.array([1, 2]), np.random.default_rng(0)) is None


def test_a_head_learns_what_its_teacher_answers(index: Index, questions: Path, tmp_path: Path) -> None:
    config = TrainConfig(
        epochs=24, batch=20, rate=0.02, patience=24, valid=0.4, candidates=16, strangers=20, soft=1.0, word_dropout=0.1
    )
    sources = Sources(teacher="bm25", questions=(PairFile(questions), PairFile(OWN)))
    assert sources.names == ["asked-titles", "asked-own"]
    trained = train(index, tmp_path / "run", sources, config, device="cpu")
    assert (trained.reading.rows, trained.curve[0]["mrr"] < trained.best_mrr) == (90, True)
    assert trained.head.about["teacher"] == "bm25"
    teacher, student = index.ranker("bm25"), index.fitted("unif", head=str(tmp_path / "run"))
    texts = [f"{verb} my {thing}" for verb in VERBS for thing in THINGS]
    same = [teacher.search(text, 1)[0][0] == student.search(text, 1)[0][0] for text in texts]
    assert sum(same) >= 0.8 * len(texts)


def test_a_teacher_without_questions_or_with_another_loss_is_refused(index: Index, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a teacher needs questions"):
        train(index, tmp_path / "one", Sources(teacher="hybrid"), TrainConfig(), device="cpu")
    sources = Sources(teacher="hybrid", questions=(PairFile(OWN),))
    with pytest.raises(BadInput, match="by the softmax loss"):
        train(index, tmp_path / "two", sources, TrainConfig(loss="margin"), device="cpu")


def test_a_head_trained_centred_serves_centred(index: Index, questions: Path, tmp_path: Path) -> None:
    config = TrainConfig(epochs=2, batch=20, rate=0.01, valid=0.4, candidates=16, strangers=20, centre=True)
    train(index, tmp_path / "run", Sources(teacher="bm25", questions=(PairFile(questions),)), config, device="cpu")
    run = str(tmp_path / "run")
    served, raw = index.fitted("unif", head=run), index.fitted("unif", head=run, centre=False)
    vectors = [
        cast(UnifRanker, each).vectors.vectors(np.arange(len(index))).astype(np.float64) for each in (served, raw)
    ]
    moved = vectors[1] - vectors[1].mean(axis=0)
    np.testing.assert_allclose(vectors[0], moved / np.linalg.norm(moved, axis=1, keepdims=True), atol=1e-5)


def test_centred_vectors_are_unit_vectors_without_the_mean_and_zeros_stay() -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    found = centred(vectors, torch.tensor([[0.5, 0.0], [0.0, 0.0]]))
    expected = torch.tensor([[1.0, 0.0], [-0.25 / math.hypot(0.25, 1), 1 / math.hypot(0.25, 1)], [0.0, 0.0]])
    torch.testing.assert_close(found, expected)
