"""What a step makes smaller: the loss of a batch, whole, however many parts and processes encode it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)
from torch.utils.checkpoint import checkpoint

from unif.batches import Batch
from unif.losses import listwise_loss, margin_loss, softmax_loss
from unif.world import World

if TYPE_CHECKING:
    from unif.lessons import Lesson
    from unif.model import Towers
    from unif.settings import TrainConfig

HALF = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def precision(config: TrainConfig, device: torch.device) -> torch.dtype:
    """What networks compute in: auto is bfloat16 on CUDA devices that have it, float16 on older, else float32."""
    if config.precision != "auto":
        return HALF[config.precision]
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16


class Loss(nn.Module):
    """The loss of a batch, as a module, so that DistributedDataParallel sees its dense parameters."""

    def __init__(self, towers: Towers, config: TrainConfig, world: World, half: torch.dtype) -> None:
        super().__init__()
        self.towers, self.config, self.world, self.kind = towers, config, world, half

    def forward(
        self,
        tables: Mapping[str, Mapping[str, Tensor]],
        ids: Batch,
        twins: Tensor,
        shares: Tensor | None = None,
        strangers: int = 0,
    ) -> Tensor:
        """tables: a side's tensors by word, cut to the batch's rows; ids: places among these; twins: from `alike`.

        shares [n, k]: of all codes, the right one 1 or what a teacher says, where there are lists; the last `strangers`
        codes are draws of the index.
        """
        n = len(ids.query)
        begin, end, _ = self.world.share(n)
        with torch.autocast(ids.query.device.type, self.kind, enabled=self.kind != torch.float32):
            asked = self._encoded("query", tables, ids.query[begin:end])  # [m, d]
            every = (ids.code, ids.negatives, ids.listed)
            codes = torch.cat([self._shared(tables, each) for each in every if each is not None])  # [k, d]
        codes = codes.float()
        if self.config.centre:
            codes = centred(codes, codes[-strangers:])
        cosines = asked.float() @ codes.T  # [m, k]
        own = torch.arange(begin, end, device=asked.device)
        if shares is None:
            losses = self._losses(cosines, own, twins)
        else:
            losses = listwise_loss(self.towers.scale * cosines, shares[own], twins[own]).sum() / n
        return losses * self.world.size  # their gradients are averaged over the processes

    def _losses(self, cosines: Tensor, own: Tensor, twins: Tensor) -> Tensor:
        """This share's part of the mean over the batch."""
        n = len(twins)
        if self.config.loss == "softmax":
            return softmax_loss(self.towers.scale * cosines, own, twins[own]).sum() / n
        every = torch.arange(n, device=own.device)
        other = every.roll(-1)  # the next code of the batch, whose order is drawn
        if twins.shape[1] > n:
            other = torch.where(twins[every, n + every], other, n + every)  # or the hard negative
        good = ~twins[every, other]
        return (margin_loss(cosines, own, other[own], self.config.margin) * good[own]).sum() / good.sum().clamp(min=1)

    def _shared(self, tables: Mapping[str, Mapping[str, Tensor]], ids: Tensor) -> Tensor:
        """Vectors [n, d] of codes, of which every process encodes its share."""
        begin, end, each = self.world.share(len(ids))
        return self.world.gathered(self._encoded("code", tables, ids[begin:end]), len(ids), each)

    def _encoded(self, side: str, tables: Mapping[str, Mapping[str, Tensor]], ids: Tensor) -> Tensor:
        """Unit vectors [n, d]; in parts, one of them is in memory at a time and encoded once more going back."""
        tower = self.towers.get_submodule(side)
        cut = {name: tensor.to(self.kind) for name, tensor in tables[side].items()}  # learnt and kept in float32

        def encode(some: Tensor) -> Tensor:
            found: Tensor = functional_call(tower, cut, (some,))
            return found

        if self.config.accumulate == 1:
            return encode(ids)
        parts = ids.tensor_split(self.config.accumulate)
        return torch.cat([checkpoint(encode, part, use_reentrant=False) for part in parts if len(part)])


def centred(vectors: Tensor, all_of_them: Tensor) -> Tensor:
    """Unit vectors of vectors [n, d] without the mean of those [k, d] that stand for all; zeros stay zeros."""
    moved = F.normalize(vectors - all_of_them.mean(dim=0), dim=1)
    return moved.masked_fill(~vectors.any(dim=1, keepdim=True), 0)


def weighed(twins: Tensor, lesson: Lesson) -> tuple[Tensor, Tensor]:
    """Shares and what is no negative, [n, k] each, of the batch's codes and negatives and of the lesson's functions.

    A question without a lesson has all of its share in its own code; one with a lesson none there.
    """
    n, at = len(twins), torch.arange(len(twins), device=twins.device)
    untaught = (lesson.shares.sum(dim=1) == 0).float()
    shares = torch.cat([twins.new_zeros(twins.shape, dtype=torch.float32), lesson.shares], dim=1)
    shares[at, at] = untaught
    near = torch.cat([twins, lesson.near[:, n:]], dim=1)
    near[:, :n] |= lesson.near[:, :n]
    return shares, near
