"""Training moves only the words of a batch: their rows taken out of the tables, learnt as small ones, put back.

A batch of 256 pairs has some 3,000 of 20,000 to 1,000,000 words. Dense Adam would read and write all rows of a table,
of its gradient and of both moments; here a step costs what its own words cost, on every device and without sparse
tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

Rule = Literal["adam", "adagrad"]
Rows = Mapping[str, Tensor]
"""Name of a table -> the rows of it that a batch needs, ascending, 0 first."""


@dataclass(frozen=True, slots=True)
class WordTensors:
    """What of one side goes by word: its tensors' names there -> the table's name in the whole network, or None for a
    buffer; and how many rows they have."""

    names: Mapping[str, str | None]
    size: int


def by_word(towers: nn.Module, tables: list[nn.Parameter]) -> dict[str, WordTensors]:
    """For the sides `query` and `code`: tables, and buffers as long as these, but for those called `start`."""
    whole: dict[int, str] = {}
    for name, parameter in towers.named_parameters():
        whole.setdefault(id(parameter), name)
    wanted = {id(table) for table in tables}
    found = {}
    for side in ("query", "code"):
        module = towers.get_submodule(side)
        own = {name: parameter for name, parameter in module.named_parameters() if id(parameter) in wanted}
        size = len(next(iter(own.values())))
        buffers = [
            name
            for name, buffer in module.named_buffers()
            if buffer.shape[:1] == (size,) and not name.endswith("start")
        ]
        found[side] = WordTensors({**{n: whole[id(p)] for n, p in own.items()}, **dict.fromkeys(buffers)}, size)
    return found


def compact(size: int, *ids: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The distinct ids of all, ascending, 0 first whether it stands there or not; and all ids as places among them."""
    there = torch.zeros(size, dtype=torch.bool, device=ids[0].device)
    there[0] = True
    for each in ids:
        there[each.reshape(-1)] = True
    rows = there.nonzero()[:, 0]
    place = torch.zeros(size, dtype=torch.int64, device=rows.device)
    place[rows] = torch.arange(len(rows), device=rows.device)
    return rows, [place[each] for each in ids]


class RowOptimiser(torch.optim.Optimizer):
    """Adam (Kingma and Ba 2015) or row-wise Adagrad over the rows that a step touched.

    adam: the moments of a row that was not touched for k steps decay by beta^k when it is touched again: they are those
    of dense Adam. Only the moves that momentum alone would have made meanwhile are left out. adagrad: one number a row,
    the sum of its mean squared gradients. decay: as AdamW's, of untouched rows when they are touched, or by `settle`.
    Use: `take` rows, make a loss of them, backward, `step`.
    """

    def __init__(self, tables: Mapping[str, Tensor], rule: Rule, rate: float, decay: float = 0.0) -> None:
        super().__init__([torch.empty(0, requires_grad=True)], {"lr": rate})  # the rows of a step take its place
        self.tables, self.rule, self.decay = tables, rule, decay
        self.steps, self._rows, self._taken = 0, {}, {}  # type: ignore[var-annotated]
        self.memory = {name: _memory(table, rule) for name, table in tables.items()}

    @torch.no_grad()
    def take(self, rows: Rows) -> dict[str, Tensor]:
        """These rows of the tables, to be learnt."""
        self._rows = dict(rows)
        self._taken = {name: table.index_select(0, rows[name]).requires_grad_() for name, table in self.tables.items()}
        self.param_groups[0]["params"] = list(self._taken.values())
        return self._taken

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Learn from the gradients of what was taken, and put it back; rows without a gradient stay."""
        self.steps += 1
        rate = self.param_groups[0]["lr"]
        for name, taken in self._taken.items():
            if taken.grad is None:
                continue
            taken.grad[0] = 0  # no word learns nothing
            rows, memory = self._rows[name], self.memory[name]
            waited = (self.steps - memory["last"].index_select(0, rows)).unsqueeze(1)  # [rows, 1], 1 and above
            if self.decay:
                taken.mul_((1 - rate * self.decay) ** waited)
            learn = _adam if self.rule == "adam" else _adagrad
            self.tables[name].index_copy_(
                0, rows, taken.sub_(learn(memory, rows, taken.grad, waited, self.steps), alpha=rate)
            )
            memory["last"].index_fill_(0, rows, self.steps)
        self.zero_grad()

    @torch.no_grad()
    def settle(self) -> None:
        """Decay what was not touched since, as if it had been touched now without a gradient."""
        rate = self.param_groups[0]["lr"]
        for name, table in self.tables.items():
            memory = self.memory[name]
            waited = (self.steps - memory["last"]).unsqueeze(1)
            if self.decay:
                table.mul_((1 - rate * self.decay) ** waited)
            if self.rule == "adam":
                memory["first"].mul_(BETAS[0] ** waited)
                memory["second"].mul_(BETAS[1] ** waited)
            memory["last"].fill_(self.steps)

    def state_dict(self) -> dict[str, Any]:
        """Steps and what is remembered of every row."""
        return {"steps": self.steps, "memory": self.memory}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """What `state_dict` gave."""
        self.steps = int(state_dict["steps"])
        for name, memory in self.memory.items():
            for key, value in memory.items():
                value.copy_(state_dict["memory"][name][key])


BETAS, EPSILON = (0.9, 0.999), 1e-8


def _memory(table: Tensor, rule: Rule) -> dict[str, Tensor]:
    last = torch.zeros(len(table), dtype=torch.int64, device=table.device)
    if rule == "adagrad":
        return {"last": last, "sum": table.new_zeros(len(table), 1)}
    return {"last": last, "first": torch.zeros_like(table), "second": torch.zeros_like(table)}


def _adam(memory: dict[str, Tensor], rows: Tensor, gradient: Tensor, waited: Tensor, steps: int) -> Tensor:
    first = memory["first"].index_select(0, rows).mul_(BETAS[0] ** waited).add_(gradient, alpha=1 - BETAS[0])
    second = memory["second"].index_select(0, rows).mul_(BETAS[1] ** waited)
    second.addcmul_(gradient, gradient, value=1 - BETAS[1])
    memory["first"].index_copy_(0, rows, first)
    memory["second"].index_copy_(0, rows, second)
    scale = second.div_(1 - BETAS[1] ** steps).sqrt_().add_(EPSILON)
    return first.div_(1 - BETAS[0] ** steps).div_(scale)


def _adagrad(memory: dict[str, Tensor], rows: Tensor, gradient: Tensor, waited: Tensor, steps: int) -> Tensor:
    total = memory["sum"].index_select(0, rows).add_(gradient.square().mean(dim=1, keepdim=True))
    memory["sum"].index_copy_(0, rows, total)
    return gradient / total.sqrt().add_(EPSILON)
