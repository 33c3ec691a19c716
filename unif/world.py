"""The processes of a training: one, or several that `torchrun` started, each with its share of every batch."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ncs.errors import BadInput


@dataclass(frozen=True, slots=True)
class World:
    """Which of how many processes this is."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this one writes what all need."""
        return self.rank == 0

    def share(self, n: int) -> tuple[int, int, int]:
        """Of n rows this process's first and last, and how many a process has where there are enough."""
        each = -(-n // self.size)
        return min(n, self.rank * each), min(n, (self.rank + 1) * each), each

    def gathered(self, vectors: Tensor, n: int, each: int) -> Tensor:
        """The vectors [n, d] of a batch from everybody's share, with gradients to all."""
        if self.size == 1:
            return vectors
        padded = torch.nn.functional.pad(vectors, (0, 0, 0, each - len(vectors)))
        every: Tensor = _Gathered.apply(padded, self)  # type: ignore[no-untyped-call]
        return every[:n]  # shares are full up to the last one that has any

    def averaged(self, gradients: list[Tensor]) -> None:
        """Each gradient replaced by the mean over all processes."""
        for gradient in gradients if self.size > 1 else []:
            dist.all_reduce(gradient)
            gradient.div_(self.size)

    def agreed(self, number: float) -> float:
        """The first process's number."""
        if self.size == 1:
            return number
        told: list[float] = [number]
        dist.broadcast_object_list(told, src=0)
        return told[0]

    def wait(self) -> None:
        """Until all are here."""
        if self.size > 1:
            dist.barrier()


class _Gathered(torch.autograd.Function):
    """Everybody's rows one after the other; back goes the sum of what everybody makes of mine."""

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


def shared(module: nn.Module) -> nn.Module:
    """A module whose parameters learn from all processes; its buffers never change, and are not sent around."""
    known = inspect.signature(nn.parallel.DistributedDataParallel).parameters
    option = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    options: dict[str, Any] = {option: False, "find_unused_parameters": True}
    return nn.parallel.DistributedDataParallel(module, **options)


@contextmanager
def joined(device: torch.device) -> Iterator[World]:
    """The world that torchrun's environment tells of: over NCCL on CUDA, over gloo elsewhere; alone without it."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(dist.get_rank(), size)
    finally:
        dist.destroy_process_group()


def local(device: torch.device) -> torch.device:
    """Of several CUDA devices the one that is this process's."""
    if device.type == "cuda" and device.index in (None, 0) and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return device


def chosen(device: str) -> torch.device:
    """The device of a name; auto: cuda, else mps, else cpu. BadInput for one that is not here."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        return torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"cannot train on {device!r} ({reason}); take --device auto or cpu") from None
