"""Ranked lists of the default ranker judged by known answers, and the last training stage of a translation on them.

Questions with answers (a Stack Exchange dump) label the functions of any index: a function is relevant by the share it
holds of the answer's structural features (ncs.search.aroma; Cambronero et al. 2019). Each list has the default ranker's
scores s and the share h of an answer that each function holds. The head is trained as it is
used, added to s with its weight (ncs.search.hybrid); standing is its z-score:

    loss = cross entropy(gain(h), softmax((s + WEIGHT * standing / UNIT_Z_SCORE) / SOFT))
         + ALONE * cross entropy(gain(h), softmax(LOOSE * standing)), random functions of the index among them

so a list that is right already has no gradient, and the second term trains the head alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from corpora.jsonl import read_rows
from ncs.errors import BadInput
from ncs.extract.languages import is_installed
from ncs.learn.heads import token_counts
from ncs.learn.tokenization import StemTokenizer
from ncs.learn.translation import impacts_of
from ncs.progress import Track, silent
from ncs.search.aroma import Feature, Features, features, similarity
from ncs.search.baselines.enhanced import normalized
from ncs.search.hybrid import UNIT_Z_SCORE, HybridRanker
from ncs.text.tokens import content_words, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from ncs.storage.words import WordTable
    from ncs.text.vocabulary import Vocabulary
    from ncs.types import Mask

DEPTH, MIN_HITS = 200, 20
"""Most and least functions of a list."""
MIN_FEATURES = 25
"""Least features of an answer: shorter ones, as `finish();`, occur in all kinds of functions."""
MAX_ANSWERS = 3
"""Most answers per question; a function's share is that of its nearest answer."""
SHARE = 0.25
"""Least share of an answer that a relevant function holds; a list needs relevant and irrelevant functions."""
WEIGHT = 0.3
SOFT, LOOSE, ALONE = 0.1, 0.7, 0.3
NO_GAIN, FULL_GAIN = 0.15, 0.6
"""Shares with gain 0 (those of random functions) and gain 1."""
FIRST, DRAWN, RANDOM, BATCH = 16, 32, 512, 16
"""Per step: first hits of each list, sampled other hits, random functions of the index, lists."""
RATE, DROPOUT = 1e-3, 0.1


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question and the code of its answers, each with its language."""

    text: str
    answers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class JudgedList:
    """The default ranker's rows for a question, best first, their scores before saturation, and the share of an answer
    that each holds, all [n]."""

    text: str
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    shares: NDArray[np.float64]


def read_answers(files: Iterable[Path], exclude: frozenset[str] = frozenset()) -> list[AnsweredQuestion]:
    """The questions of JSON lines with query, code and language, in the order of the files.

    Answers of MIN_FEATURES only. exclude: normalized questions. Raises BadInput for a bad file or line.
    """
    texts: dict[str, str] = {}
    answers: dict[str, dict[tuple[str, str], None]] = {}
    for row in (row for path in files for row in read_rows(path)):
        text, code, language = row.text("query"), row.text("code"), row.text("language", "")
        key = normalized(text)
        if not key or key in exclude or not is_installed(language):
            continue
        if len(each := answers.setdefault(key, {})) < MAX_ANSWERS:
            texts.setdefault(key, text)
            if sum(features(code, language).values()) >= MIN_FEATURES:
                each[code, language] = None
    return [AnsweredQuestion(texts[key], tuple(each)) for key, each in answers.items() if each]


def judge_lists(index: Index, questions: Sequence[AnsweredQuestion], *, track: Track = silent) -> list[JudgedList]:
    """The judged lists of the default ranker without a head; lists without a difference are dropped.

    About 20 milliseconds per question. Raises BadInput for an index without code, and if no list is left.
    """
    if not index.description.config.get("store_code", True):
        raise BadInput(f"{index.folder} stores no code to judge; build it without --no-store-code")
    ranker, allowed = index.fitted("hybrid", head=0.0, fold=False), index.functions()
    assert isinstance(ranker, HybridRanker)
    judge = _Judge(index, questions)
    lists = (_judge(ranker, judge, each, allowed) for each in track(questions, "judging", unit="questions"))
    useful = [each for each in lists if each is not None]
    if not useful:
        raise BadInput(f"no list of {len(questions)} questions has both relevant and irrelevant functions; give others")
    return useful


def _judge(ranker: HybridRanker, judge: _Judge, question: AnsweredQuestion, allowed: Mask) -> JudgedList | None:
    ranking = ranker.rank(question.text, DEPTH, allowed=allowed)
    if len(ranking.rows) < MIN_HITS:
        return None
    shares = judge.shares(ranking.rows, question)
    if (shares >= SHARE).all() or not (shares >= SHARE).any():
        return None
    scores = np.array(ranking.scores) / np.maximum(ranking.factors["saturation"], 1e-9)
    return JudgedList(question.text, np.array(ranking.rows, np.int64), scores, shares)


class _Judge:
    """Computes shares; caches for each function its features that any answer has."""

    def __init__(self, index: Index, questions: Sequence[AnsweredQuestion]) -> None:
        self._documents = index.documents
        self._rows: dict[int, Features] = {}
        self._answers = {answer: features(*answer) for question in questions for answer in question.answers}
        self._features = set[Feature]().union(*self._answers.values())

    def shares(self, rows: Sequence[int], question: AnsweredQuestion) -> NDArray[np.float64]:
        """The share of the nearest answer that each function holds (ncs.search.aroma.similarity), [len(rows)]."""
        uncached = [row for row in rows if row not in self._rows]
        for row, document in zip(uncached, self._documents.documents(uncached), strict=True):
            own = features(document.code, document.language) if is_installed(document.language) else {}
            self._rows[row] = {feature: count for feature, count in own.items() if feature in self._features}
        answers = [self._answers[answer] for answer in question.answers]
        return np.array([max(similarity(self._rows[row], answer) for answer in answers) for row in rows])


@dataclass(frozen=True, slots=True)
class Material:
    """The training data. queries: the stems of each list's question, CSR [lists, V]; impacts: of all functions of the
    index, CSR [n, V]; functions: rows that are no classes and no top-level code."""

    lists: Sequence[JudgedList]
    queries: Any
    impacts: Any
    functions: NDArray[np.int64]

    @classmethod
    def of(
        cls, lists: Sequence[JudgedList], words: WordTable, stems: Vocabulary, functions: NDArray[np.int64]
    ) -> Material:
        """Lists without a known stem in their question are left out."""
        tokens = StemTokenizer(stems)
        impacts, _ = impacts_of(words, token_counts([tokens.ids([word]) for word in words.vocabulary], len(tokens)))
        stems_of = [sorted(set(tokens.ids(content_words(tokenize(each.text))))) for each in lists]
        usable = [at for at, ids in enumerate(stems_of) if ids]
        queries = token_counts([stems_of[at] for at in usable], len(tokens))
        return cls([lists[at] for at in usable], queries, impacts, functions)


def drop_entries(rows: Any, share: float, draw: np.random.Generator) -> Any:
    """CSR without a random share of its entries."""
    cells, mask = rows.tocoo(), draw.random(rows.nnz) >= share
    return csr_matrix((cells.data[mask].astype(np.float32), (cells.row[mask], cells.col[mask])), rows.shape)


def train_on_lists(
    networks: Sequence[nn.Module], material: Material, rounds: int, draw: np.random.Generator
) -> Iterator[dict[str, float]]:
    """Train for some rounds over the lists; yields the loss and speed of each.

    networks: each scores functions, CSR [b, V], for queries, CSR [a, V], as [a, b]; the head's score is the sum of
    their z-scores against random functions.
    """
    tables = [m.weight for network in networks for m in network.modules() if isinstance(m, nn.Embedding)]
    optimizer = torch.optim.SparseAdam(tables, lr=RATE)
    for _ in range(rounds):
        start, total, steps = time.perf_counter(), 0.0, 0
        order = draw.permutation(len(material.lists))
        for at in range(0, len(order), BATCH):
            loss = _loss(networks, material, order[at : at + BATCH], draw)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()  # type: ignore[no-untyped-call]
            total, steps = total + float(loss.detach()), steps + 1
        yield {"loss": total / max(1, steps), "lists_per_s": len(order) / (time.perf_counter() - start)}


def _loss(
    networks: Sequence[nn.Module], material: Material, batch: NDArray[np.int64], draw: np.random.Generator
) -> Tensor:
    lists = [material.lists[at] for at in batch]
    samples = [_pick(len(each.rows), draw) for each in lists]
    random_rows = draw.choice(material.functions, RANDOM)
    rows = np.concatenate([*(each.rows[at] for each, at in zip(lists, samples, strict=True)), random_rows])
    z_scores = _z_scores(networks, material.queries[batch], drop_entries(material.impacts[rows], DROPOUT, draw))
    total, start = z_scores.new_zeros(()), 0
    for place, (each, at) in enumerate(zip(lists, samples, strict=True)):
        own_scores, random_scores = z_scores[place, start : start + len(at)], z_scores[place, -RANDOM:]
        start += len(at)
        gains = torch.from_numpy(np.clip((each.shares[at] - NO_GAIN) / (FULL_GAIN - NO_GAIN), 0, 1)).float()
        if gains.sum() > 0:
            gains = gains / gains.sum()
            fused = (torch.from_numpy(each.scores[at]).float() + WEIGHT * own_scores / UNIT_Z_SCORE) / SOFT
            alone = F.log_softmax(torch.cat([own_scores, random_scores]) * LOOSE, 0)[: len(at)]
            total = total - (gains * F.log_softmax(fused, 0)).sum() - ALONE * (gains * alone).sum()
    return total / len(lists)


def _z_scores(networks: Sequence[nn.Module], queries: Any, impacts: Any) -> Tensor:
    """z-scores [lists, rows] against the last RANDOM rows."""
    total = torch.zeros(())
    for network in networks:
        scores = network(queries, impacts)
        random = scores[:, -RANDOM:].detach()
        total = total + (scores - random.mean(1, keepdim=True)) / random.std(1, keepdim=True).clamp(min=1e-6)
    return total


def _pick(n: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """Places in a list of n, ascending: the first FIRST, and DRAWN of the rest."""
    rest = np.arange(min(FIRST, n), n)
    return np.concatenate([np.arange(min(FIRST, n)), np.sort(draw.choice(rest, min(DRAWN, len(rest)), replace=False))])
