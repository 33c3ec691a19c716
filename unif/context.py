"""Training of the encoder that reads words in context (`ncs.learn.context_encoder`), on the pairs of a translation.

Symmetric in-batch softmax; a batch is made of BLOCKs of pairs that stand near each other, mostly of one repository, as
the product ranks the functions of one project. A share of the functions loses its name, all lose words at random, and
NAMED of the functions are asked for by their own names, which they then do not have. Ten minutes on a GPU, hours on two
cores. Shapes are at line ends: n texts, l words a text, V stems, d dimensions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

from ncs.learn.context_encoder import (
    DIM,
    HEADS,
    LONGEST_FIELD,
    LONGEST_FUNCTION,
    LONGEST_QUERY,
    MAX_LOG_WEIGHT,
    READ_IN_CONTEXT,
    SIDES,
    WIDE,
    ContextEncoder,
    distinct_words,
    parameters,
)
from ncs.progress import Track, silent
from unif.data import MIN_NAME
from unif.networks import attention, encode_by_length
from unif.training import (
    CANDIDATES,
    choose_device,
    in_8_bits,
    load_checkpoint,
    open_run,
    reciprocal_ranks,
    save_checkpoint,
    softmax_loss,
)
from unif.translation_data import SparsePairs, Wordings, alike

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.text.vocabulary import Vocabulary
    from unif.data import Ids

EPOCHS, BATCH, BLOCK, NEAR = 20, 1_024, 8, 2_000
"""Epochs, pairs a batch, pairs a block, and among how many neighboring pairs a block is drawn."""
RATE, WORD_RATE, WARM_UP = 1e-3, 2e-3, 300
"""Learning rates of the parameters and of the words' vectors, falling to 0 after so many first steps."""
DROPOUT, WORD_DROPOUT, NAMELESS, NAMED, MIN_BODY = 0.1, 0.2, 0.2, 0.5, 5
GROUP = 256
"""Texts of like length that a CPU encodes at a time."""
VALID = 5_000
"""Most validation pairs."""
NAME = READ_IN_CONTEXT.index("name")


@dataclass(frozen=True, slots=True)
class ContextPairs:
    """Stems plus 1, padded with 0: queries [n, LONGEST_QUERY], functions and their fields [n, LONGEST_FUNCTION].

    name, question: numbers [n], name -1 for none; functions of one name or question are no negatives of each other.
    times: how often an epoch draws each, [n].
    """

    query: NDArray[np.int16]
    code: NDArray[np.int16]
    fields: NDArray[np.int8]
    name: Ids
    question: Ids
    times: NDArray[np.float64]

    @classmethod
    def of(cls, pairs: SparsePairs, wordings: Wordings, stems: Vocabulary) -> ContextPairs:
        """The pairs as stems of this vocabulary; of the others' nothing is read."""
        at = stems.ids_of(list(pairs.stems))
        rows = np.arange(len(pairs))
        ids, lengths = wordings.query.cut(rows, LONGEST_QUERY * 2)
        queries = _padded(*distinct_words(at[ids], lengths[:, None], len(stems)), LONGEST_QUERY)[0]
        code: NDArray[np.int16] = np.zeros((len(rows), LONGEST_FUNCTION), np.int16)
        fields = np.zeros(code.shape, np.int8)
        for start in range(0, len(rows), 50_000):
            part = rows[start : start + 50_000]
            cuts = [wordings.fields[field].cut(part, LONGEST_FIELD) for field in READ_IN_CONTEXT]
            sizes = np.stack([size for _, size in cuts], axis=1)  # [n, fields]
            owners = np.concatenate([np.repeat(np.arange(len(part)), size) for size in sizes.T])
            words = np.concatenate([ids for ids, _ in cuts])[np.argsort(owners, kind="stable")]
            code[part], fields[part] = _padded(*distinct_words(at[words], sizes, len(stems)), LONGEST_FUNCTION)
        return cls(queries, code, fields, pairs.name, pairs.question.astype(np.int64), pairs.times)

    def with_name_queries(self, rows: Ids) -> ContextPairs:
        """These rows, and those with a name of MIN_NAME words and enough else asked for by their names."""
        is_name = (self.fields == NAME) & (self.code > 0)
        enough = (is_name.sum(axis=1) >= MIN_NAME) & (((self.code > 0) & ~is_name).sum(axis=1) >= MIN_BODY)
        own = rows[enough[rows]]
        order = np.argsort(~is_name[own], axis=1, kind="stable")[:, :LONGEST_QUERY]
        query = np.take_along_axis(self.code[own], order, 1) * np.take_along_axis(is_name[own], order, 1)
        more = replace(
            self.at(own), query=query, code=self.code[own] * ~is_name[own], times=np.full(len(own), NAMED),
            question=self.question.max() + 1 + np.arange(len(own)),
        )  # fmt: skip
        both = (np.concatenate([getattr(part, each) for part in (self.at(rows), more)]) for each in self.__slots__)
        return ContextPairs(*both)

    def at(self, rows: Ids) -> ContextPairs:
        """Some of them."""
        return ContextPairs(*(getattr(self, each)[rows] for each in self.__slots__))

    def order(self, draw: np.random.Generator) -> Ids:
        """The rows of an epoch, block by block."""
        rows = np.repeat(np.arange(len(self.times)), np.floor(self.times + draw.random(len(self.times))).astype(int))
        rows = rows[np.argsort(rows // NEAR + draw.random(len(rows)), kind="stable")]
        blocks = rows[: len(rows) // BLOCK * BLOCK].reshape(-1, BLOCK)
        return draw.permutation(blocks).ravel()

    def not_negatives(self, rows: Ids) -> NDArray[np.bool_]:
        """Masks functions of a batch that share the name or the question, [n, n], false at i, i."""
        return alike(self.name[rows], self.question[rows])


def _padded(stems: Any, fields: Any, offsets: Any, longest: int) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """What `distinct_words` gives as rows [n, longest] of stems plus 1, and their fields."""
    lengths = np.minimum(np.diff(offsets), longest)
    present = np.arange(longest) < lengths[:, None]
    at = np.where(present, offsets[:-1, None] + np.arange(longest), 0)
    if not len(stems):
        at, stems, fields = at * 0, np.zeros(1, np.int64), np.zeros(1, np.int64)
    return ((stems[at] + 1) * present).astype(np.int16), (fields[at] * present).astype(np.int8)


class Side(nn.Module):
    """One of both encoders; its parameters have the names of `ncs.learn.context_encoder.parameters`."""

    def __init__(self, start: Tensor, longest: int, fields: int = 0) -> None:
        super().__init__()
        self.words = nn.Embedding(len(start), DIM, _weight=start.clone())
        self.word_weights = nn.Embedding(len(start), 1, _weight=torch.zeros(len(start), 1))
        self.positions = nn.Parameter(torch.randn(longest, DIM) * 0.02)
        self.inputs, self.output, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.wide, self.narrow, self.weight = nn.Linear(DIM, WIDE), nn.Linear(WIDE, DIM), nn.Linear(DIM, 1)
        self.norm1, self.norm2, self.norm = nn.LayerNorm(DIM), nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.dropout = nn.Dropout(DROPOUT)
        if fields:
            self.fields = nn.Parameter(torch.randn(fields, DIM) * 0.02)
            self.field_weights = nn.Parameter(torch.zeros(fields, 1))

    def forward(self, ids: Tensor, fields: Tensor | None = None) -> Tensor:
        """Unit vectors [n, d] of stems plus 1 [n, l] and their fields; zeros for an empty row."""
        present = ids > 0
        vectors, weights = self.words(ids), self.word_weights(ids)[..., 0]  # [n, l, d], [n, l]
        x = vectors + self.positions[: ids.shape[1]]
        if fields is not None:  # products, since the gradient of so few rows taken by index is slow on a GPU
            chosen = F.one_hot(fields, len(self.fields)).to(vectors.dtype)
            x, weights = (
                x + chosen @ self.fields.to(x.dtype),
                weights + (chosen @ self.field_weights.to(x.dtype))[..., 0],
            )
        mask = present.clone()
        mask[:, 0] = True  # an empty row sees its first zero; attending to nothing would be NaN
        mixed = attention(self.inputs(self.norm1(x)), HEADS, mask[:, None, None, :])
        x = x + self.dropout(self.output(mixed))
        x = x + self.dropout(self.narrow(F.gelu(self.wide(self.norm2(x)), approximate="tanh")))
        x = self.norm(x)
        weights = (weights + self.weight(x)[..., 0]).float().clamp(-MAX_LOG_WEIGHT, MAX_LOG_WEIGHT).exp() * present
        return F.normalize((weights[..., None] * (vectors + self.out(x)).float()).sum(dim=1), dim=1)


class ContextModel(nn.Module):
    """Both sides, whose words start from the same vectors, and the inverse temperature."""

    def __init__(self, stems: int) -> None:
        super().__init__()
        start = torch.randn(stems + 1, DIM) * DIM**-0.5
        self.query, self.code = Side(start, LONGEST_QUERY), Side(start, LONGEST_FUNCTION, len(READ_IN_CONTEXT))
        self.log_scale = nn.Parameter(torch.tensor(3.0))

    def functions(self, ids: Tensor, fields: Tensor) -> Tensor:
        """Unit vectors [n, d]; on a CPU texts of like length together."""
        order = (ids == 0).to(torch.uint8).argsort(dim=1, stable=True)
        ids, fields = ids.gather(1, order), fields.gather(1, order)
        return encode_by_length(self.code, GROUP, ids, fields)


class ContextTraining:
    """The epochs; random choices depend only on the seed and the epoch."""

    def __init__(self, out: Path, pairs: ContextPairs, split: tuple[Ids, Ids], stems: int, device: str) -> None:
        self.out, self.device, self.stems = out, choose_device(device), stems
        self.train = pairs.with_name_queries(split[0])
        self.valid = pairs.at(np.random.default_rng(1).permutation(split[1])[:VALID])
        torch.manual_seed(0)
        self.model = ContextModel(stems).to(self.device)
        words = [each for side in (self.model.query, self.model.code) for each in (side.words, side.word_weights)]
        tables = [table.weight for table in words]
        others = [each for each in self.model.parameters() if not any(each is table for table in tables)]
        groups = [{"params": tables, "lr": WORD_RATE, "weight_decay": 0.0}, {"params": others, "lr": RATE}]
        self.optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01)

    def run(self, epochs: int, track: Track = silent) -> list[dict[str, float]]:
        """Run the remaining epochs; the curve has one row for each."""
        parts = {"model": self.model, "optimizer": self.optimizer}
        state = load_checkpoint(self.out, self.device, lambda state: parts) or {"epoch": 0, "curve": []}
        while state["epoch"] < epochs:
            state["epoch"] += 1
            state["curve"] = [*state["curve"], self._epoch(state["epoch"], epochs, track)]
            save_checkpoint(self.out, state, parts)
        curve: list[dict[str, float]] = state["curve"]
        return curve

    def _epoch(self, epoch: int, epochs: int, track: Track) -> dict[str, float]:
        draw = np.random.default_rng((0, epoch))
        order = self.train.order(draw)
        size = min(BATCH, len(order))
        steps, started, losses = len(order) // size, time.perf_counter(), []
        self.model.train()
        with torch.random.fork_rng():
            torch.manual_seed(epoch)
            for step in track(range(steps), f"context, epoch {epoch}", total=steps, unit="batches"):
                done = (epoch - 1) * steps + step
                falling = min(1.0, (done + 1) / WARM_UP) * (1 - done / (epochs * steps))
                for group, rate in zip(self.optimizer.param_groups, (WORD_RATE, RATE), strict=True):
                    group["lr"] = rate * falling
                losses.append(self._learn(order[step * size : (step + 1) * size]))
        seconds = time.perf_counter() - started
        loss = float(torch.stack(losses).mean())
        speed = steps * size / seconds
        return {
            "epoch": epoch,
            "loss": loss,
            "mrr": self._validate(),
            "seconds": round(seconds, 3),
            "pairs_per_s": speed,
        }

    def _learn(self, rows: Ids) -> Tensor:
        query, code, fields = self._batch(self.train, rows)
        kept = torch.rand(query.shape, device=self.device) >= WORD_DROPOUT / 2
        kept |= ~(kept & (query > 0)).any(dim=1, keepdim=True)  # no query loses all its words
        nameless = torch.rand(len(rows), 1, device=self.device) < NAMELESS
        dropped = (torch.rand(code.shape, device=self.device) < WORD_DROPOUT) | (nameless & (fields == NAME))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            queries, codes = self.model.query(query * kept), self.model.functions(code * ~dropped, fields)
        scores = queries.float() @ codes.float().T * self.model.log_scale.clamp(max=float(np.log(100))).exp()
        same = torch.from_numpy(self.train.not_negatives(rows)).to(self.device)
        loss = (softmax_loss(scores, same).mean() + softmax_loss(scores.T, same).mean()) / 2
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()

    def _batch(self, pairs: ContextPairs, rows: Ids) -> tuple[Tensor, ...]:
        arrays = (pairs.query, pairs.code, pairs.fields)
        return tuple(torch.from_numpy(each[rows].astype(np.int64)).to(self.device) for each in arrays)

    @torch.no_grad()
    def _validate(self) -> float:
        """Mean reciprocal rank of a question's function among at most CANDIDATES."""
        self.model.eval()
        ranks = []
        for rows in np.array_split(np.arange(len(self.valid.name)), max(1, round(len(self.valid.name) / CANDIDATES))):
            query, code, fields = self._batch(self.valid, rows)
            scores = self.model.query(query) @ self.model.functions(code, fields).T
            same = torch.from_numpy(self.valid.not_negatives(rows)).to(self.device)
            ranks.append(reciprocal_ranks(scores, same))
        return float(torch.cat(ranks).mean())

    def export(self) -> ContextEncoder:
        """Plain arrays: words in 8 bits, each by the largest of its numbers, the rest in 16."""
        state = {name: each.detach().float().cpu().numpy() for name, each in self.model.state_dict().items()}
        words = np.stack([state[f"{side}.words.weight"][1:] for side in SIDES])
        return ContextEncoder(
            *in_8_bits(words),
            np.stack([state[f"{side}.word_weights.weight"][1:, 0] for side in SIDES]).astype(np.float16),
            {
                name: state[name].reshape(shape).astype(np.float16).astype(np.float32)
                for name, shape in parameters().items()
            },
        )


def train(
    out: Path, pairs: SparsePairs, wordings: Wordings, stems: Vocabulary, valid: float, *,
    epochs: int = EPOCHS, device: str = "auto", track: Track = silent,
) -> ContextEncoder:  # fmt: skip
    """Train into the folder `out`; the same call resumes a killed one. valid: the share of questions kept apart."""
    open_run(out, {"encoder": "context", "epochs": epochs, "stems": len(stems), "pairs": len(pairs)})
    own = ContextPairs.of(pairs, wordings, stems)
    training = ContextTraining(out, own, pairs.split(valid, 0), len(stems), device)
    training.run(epochs, track)
    return training.export()
