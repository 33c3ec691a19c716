"""One step of training: a batch into its loss, over the rows of the token tables that the batch needs.

The loss is that of the whole batch, whatever the number of parts and processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)
from torch.utils.checkpoint import checkpoint

from ncs.errors import BadInput
from unif.losses import find_twins, margin_loss, softmax_loss

if TYPE_CHECKING:
    from unif.config import TrainConfig
    from unif.data import Ids, Pairs, Texts
    from unif.networks import Towers

DEVICE_SHARE = 0.25
"""Share of a CUDA device's free memory for texts."""
BETAS, EPSILON = (0.9, 0.999), 1e-8
TABLE = "table.weight"


@dataclass(frozen=True, slots=True)
class World:
    """This process's rank and the number of processes; each encodes its share of every batch."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this one writes the files of the run."""
        return self.rank == 0

    def share(self, n: int) -> tuple[int, int, int]:
        """The first and last of n rows for this process, and the size of a full share."""
        each = -(-n // self.size)
        return min(n, self.rank * each), min(n, (self.rank + 1) * each), each

    def gather(self, vectors: Tensor, n: int, each: int) -> Tensor:
        """The vectors [n, d] of a batch from every process's share, with gradients to all."""
        if self.size == 1:
            return vectors
        padded = F.pad(vectors, (0, 0, 0, each - len(vectors)))
        every: Tensor = _Gather.apply(padded, self)  # type: ignore[no-untyped-call]
        return every[:n]  # shares are full up to the last one that has any

    def sum(self, tensors: list[Tensor]) -> None:
        """Each tensor replaced by its sum over all processes."""
        for tensor in tensors if self.size > 1 else []:
            dist.all_reduce(tensor)

    def agree(self, number: float) -> float:
        """The first process's number."""
        if self.size == 1:
            return number
        numbers: list[float] = [number]
        dist.broadcast_object_list(numbers, src=0)
        return numbers[0]

    def wait(self) -> None:
        """Wait for all processes."""
        if self.size > 1:
            dist.barrier()


class _Gather(torch.autograd.Function):
    """All-gather of rows; backward sums the gradients of this process's rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, world: World) -> Tensor:
        ctx.world = world
        every = [torch.empty_like(rows) for _ in range(world.size)]
        dist.all_gather(every, rows.contiguous())
        return torch.cat(every)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].contiguous()
        dist.all_reduce(total)
        return total.chunk(ctx.world.size)[ctx.world.rank], None


@contextmanager
def join_world(device: torch.device) -> Iterator[World]:
    """The world that torchrun's environment describes, over NCCL on CUDA, over gloo elsewhere; alone without it."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(dist.get_rank(), size)
    finally:
        dist.destroy_process_group()


def choose_device(device: str) -> torch.device:
    """The device of a name; auto: cuda, else mps, else cpu. Raises BadInput if it is not available.

    Of several CUDA devices each process of torchrun takes its own.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if device == "cuda" and "LOCAL_RANK" in os.environ:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        return torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"cannot train on {device!r} ({reason}); use --device auto or cpu") from None


class PaddedTexts:
    """Texts as tensors: on CUDA if they fit, else memory-mapped."""

    def __init__(self, texts: Texts, device: torch.device) -> None:
        size = texts.ids.nbytes + texts.offsets.nbytes
        fits = device.type == "cuda" and size < DEVICE_SHARE * torch.cuda.mem_get_info(device)[0]
        self.device, place = device, device if fits else torch.device("cpu")
        self.ids, self.offsets = (torch.from_numpy(each).to(place) for each in (texts.ids, texts.offsets))

    def __call__(self, rows: Ids, longest: int) -> Tensor:
        """The first `longest` words of these rows, int64 [n, l], zeros behind."""
        at = torch.from_numpy(np.ascontiguousarray(rows, np.int64)).to(self.offsets.device)
        begins = self.offsets[at]
        lengths = (self.offsets[at + 1] - begins).clamp(max=longest)
        places = torch.arange(int(lengths.max()) if len(at) else 0, device=at.device)  # [l]
        present = places < lengths[:, None]  # [n, l]
        ids = torch.zeros(present.shape, dtype=torch.int64, device=at.device)
        ids[present] = self.ids[(begins[:, None] + places)[present]].long()
        return ids.to(self.device)


@dataclass(frozen=True, slots=True)
class Batch:
    """Word ids [n, l] of questions, their codes, and a hard negative of each or None."""

    query: Tensor
    code: Tensor
    negatives: Tensor | None = None


class Batches:
    """Makes batches of pairs. hard: int32 [len(pairs), mined], rows of pairs, -1 where there are fewer."""

    def __init__(self, pairs: Pairs, config: TrainConfig, device: torch.device) -> None:
        self.config = config
        self.query, self.code = PaddedTexts(pairs.query, device), PaddedTexts(pairs.code, device)
        self.hard: Ids | None = None

    def batch(self, rows: Ids, draw: np.random.Generator | None = None) -> Batch:
        """These rows; with `draw` and after mining, one of the hard negatives of each, none as a row of zeros."""
        query = self.query(rows, self.config.query_words)
        code = self.code(rows, self.config.code_words)
        if draw is None or self.hard is None:
            return Batch(query, code)
        mined = np.asarray(self.hard[rows], np.int64)
        negative_rows = mined[np.arange(len(rows)), draw.integers(0, mined.shape[1], len(rows))]
        negatives = self.code(np.maximum(negative_rows, 0), self.config.code_words)
        negatives[torch.from_numpy(negative_rows < 0).to(negatives.device)] = 0
        return Batch(query, code, negatives)


def drop_words(ids: Tensor, share: float, random: torch.Generator) -> Tensor:
    """A share of the words replaced by padding at random."""
    if not share:
        return ids
    return ids.masked_fill(torch.rand(ids.shape, generator=random, device=ids.device) < share, 0)


def seeded(device: torch.device, *seed: int) -> torch.Generator:
    """A random generator on a device, seeded by these numbers."""
    number = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1)
    return torch.Generator(device).manual_seed(number)


def compact(size: int, *ids: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The distinct ids, ascending with 0 first, and all ids as indices into them."""
    present = torch.zeros(size, dtype=torch.bool, device=ids[0].device)
    present[0] = True
    for each in ids:
        present[each.reshape(-1)] = True
    rows = present.nonzero()[:, 0]
    place = torch.zeros(size, dtype=torch.int64, device=rows.device)
    place[rows] = torch.arange(len(rows), device=rows.device)
    return rows, [place[each] for each in ids]


class RowAdam:
    """Adam (Kingma and Ba 2015) over only those rows of a table that a step uses.

    A batch of 256 pairs has some 3,000 of 20,000 to 1,000,000 words; dense Adam would read and write all rows of the
    table, its gradient and both moments. The moments of a row that was not touched for k steps decay by beta^k when it
    is touched again, as in dense Adam; only the moves that momentum alone would have made meanwhile are left out.
    """

    def __init__(self, table: Tensor) -> None:
        self.table, self.steps = table, 0
        self.first, self.second = torch.zeros_like(table), torch.zeros_like(table)
        self.last = torch.zeros(len(table), dtype=torch.int64, device=table.device)
        self.rows = self.leaf = torch.empty(0)

    def take(self, rows: Tensor) -> Tensor:
        """These rows of the table, row 0 first, as a leaf to be trained."""
        self.rows, self.leaf = rows, self.table.index_select(0, rows).requires_grad_()
        return self.leaf

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update the rows in use by their gradient; row 0, the padding, stays zero."""
        self.steps += 1
        if (gradient := self.leaf.grad) is None:
            return
        gradient[0] = 0
        waited = (self.steps - self.last.index_select(0, self.rows)).unsqueeze(1)  # [rows, 1], at least 1
        first = self.first.index_select(0, self.rows).mul_(BETAS[0] ** waited).add_(gradient, alpha=1 - BETAS[0])
        second = self.second.index_select(0, self.rows).mul_(BETAS[1] ** waited)
        second.addcmul_(gradient, gradient, value=1 - BETAS[1])
        self.first.index_copy_(0, self.rows, first)
        self.second.index_copy_(0, self.rows, second)
        self.last.index_fill_(0, self.rows, self.steps)
        scale = second.div_(1 - BETAS[1] ** self.steps).sqrt_().add_(EPSILON)
        move = first.div_(1 - BETAS[0] ** self.steps).div_(scale)
        self.table.index_copy_(0, self.rows, self.leaf.detach().sub_(move, alpha=rate))

    def state_dict(self) -> dict[str, Any]:
        """Steps and moments."""
        return {"steps": self.steps, "first": self.first, "second": self.second, "last": self.last}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """What `state_dict` gave."""
        self.steps = int(state["steps"])
        for name in ("first", "second", "last"):
            getattr(self, name).copy_(state[name])


class Learner:
    """A network with its optimizers; `learn` is one step on a batch."""

    def __init__(self, towers: Towers, config: TrainConfig, world: World) -> None:
        self.towers, self.config, self.world, self.rate = towers, config, world, config.rate
        device = towers.log_scale.device
        self.rows = {"query": RowAdam(_table(towers.query)), "code": RowAdam(_table(towers.code))}
        self.parameters = towers.dense_parameters()
        self.dense = torch.optim.Adam(self.parameters, fused=device.type == "cuda")
        half = device.type == "cuda" and torch.cuda.is_bf16_supported()
        self.half = config.precision == "bfloat16" or (config.precision == "auto" and half)
        if self.half and device.type == "cuda":
            torch.set_float32_matmul_precision("high")

    def learn(self, batch: Batch, random: torch.Generator) -> Tensor:
        """One step; this process's part of the loss, a number on the device. random: drops words."""
        twins = find_twins(batch.query, batch.code, batch.negatives)
        texts = [batch.query, batch.code, *([] if batch.negatives is None else [batch.negatives])]
        query, *codes = (drop_words(ids, self.config.word_dropout, random) for ids in texts)
        query_rows, [query] = compact(len(self.rows["query"].table), query)
        code_rows, codes = compact(len(self.rows["code"].table), *codes)
        tables = {"query": self.rows["query"].take(query_rows), "code": self.rows["code"].take(code_rows)}
        loss = self._loss(tables, query, codes, twins)
        self.dense.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.world.size > 1:
            leaves = [*tables.values(), *self.parameters]
            for leaf in leaves:  # a process without a share of the batch has no gradients
                leaf.grad = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
            self.world.sum([leaf.grad for leaf in leaves if leaf.grad is not None])
        for rows in self.rows.values():
            rows.step(self.rate)
        self.dense.param_groups[0]["lr"] = self.rate
        self.dense.step()
        return loss.detach()

    def _loss(self, tables: Mapping[str, Tensor], query: Tensor, codes: list[Tensor], twins: Tensor) -> Tensor:
        """tables: rows of each tower's table; ids [n, l] are places among them."""
        n = len(query)
        begin, end, _ = self.world.share(n)
        with torch.autocast(query.device.type, torch.bfloat16, enabled=self.half):
            queries = self._encode("query", tables, query[begin:end])  # [m, d]
            vectors = torch.cat([self._encode_shared(tables, ids) for ids in codes]).float()  # [k, d]
        if self.config.centre:
            vectors = center(vectors)
        cosines, own = queries.float() @ vectors.T, torch.arange(begin, end, device=query.device)  # [m, k]
        if self.config.loss == "softmax":
            return softmax_loss(self.towers.scale * cosines, own, twins[own]).sum() / n
        every = torch.arange(n, device=own.device)
        negatives = every.roll(-1)  # the next code of the batch, whose order is random
        if twins.shape[1] > n:
            negatives = torch.where(twins[every, n + every], negatives, n + every)  # or the hard negative
        valid = ~twins[every, negatives]
        losses = margin_loss(cosines, own, negatives[own], self.config.margin) * valid[own]
        return losses.sum() / valid.sum().clamp(min=1)

    def _encode_shared(self, tables: Mapping[str, Tensor], ids: Tensor) -> Tensor:
        """Vectors [n, d] of codes, of which every process encodes its share."""
        begin, end, each = self.world.share(len(ids))
        return self.world.gather(self._encode("code", tables, ids[begin:end]), len(ids), each)

    def _encode(self, side: str, tables: Mapping[str, Tensor], ids: Tensor) -> Tensor:
        """Unit vectors [n, d]; with several parts, activations are recomputed in the backward pass."""
        tower = self.towers.get_submodule(side)
        table = tables[side].to(torch.bfloat16) if self.half else tables[side]  # trained and stored in float32

        def encode(part: Tensor) -> Tensor:
            vectors: Tensor = functional_call(tower, {TABLE: table}, (part,))
            return vectors

        if self.config.accumulate == 1:
            return encode(ids)
        parts = ids.tensor_split(self.config.accumulate)
        return torch.cat([checkpoint(encode, part, use_reentrant=False) for part in parts if len(part)])

    def state(self) -> dict[str, Any]:
        """The state of the optimizers."""
        return {"dense": self.dense.state_dict(), **{side: rows.state_dict() for side, rows in self.rows.items()}}

    def load(self, state: Mapping[str, Any]) -> None:
        """What `state` gave."""
        self.dense.load_state_dict(state["dense"])
        for side, rows in self.rows.items():
            rows.load_state_dict(state[side])


def _table(tower: torch.nn.Module) -> Tensor:
    return tower.get_parameter(TABLE).requires_grad_(False).detach()


def center(vectors: Tensor) -> Tensor:
    """Unit vectors of vectors [n, d] less their mean; zeros stay zeros."""
    centered = F.normalize(vectors - vectors.mean(dim=0), dim=1)
    return centered.masked_fill(~vectors.any(dim=1, keepdim=True), 0)
