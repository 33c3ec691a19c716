"""One step of training: a batch into its loss, over the rows of the tables that the batch needs.

The loss is that of the whole batch, however many parts it is encoded in and however many processes share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from unif.batches import Batch, dropped
from unif.losses import alike
from unif.objective import Loss, precision, weighed
from unif.touched import RowOptimiser, by_word, compact
from unif.world import World, shared

if TYPE_CHECKING:
    from unif.lessons import Lesson
    from unif.model import Towers
    from unif.settings import TrainConfig


class Learner:
    """A network with its optimisers: `learn` moves it by a batch."""

    def __init__(self, towers: Towers, config: TrainConfig, world: World) -> None:
        self.towers, self.config, self.world = towers, config, world
        device = self.device = towers.log_scale.device
        for module in towers.modules():
            if isinstance(module, nn.Embedding):
                module.sparse = False
        tables = towers.sparse_parameters()
        self.words = by_word(towers, tables)
        named = {name: p for name, p in towers.named_parameters() if any(p is table for table in tables)}
        self.shared = not {*filter(None, self.words["query"].names.values())}.isdisjoint(
            self.words["code"].names.values()
        )
        self.start = {name: table.detach().clone() for name, table in named.items()} if config.stay else {}
        self.plain = config.optimiser == "dense"
        rule: Any = "adagrad" if config.optimiser == "adagrad" else "adam"
        self.rows = RowOptimiser({n: p.detach() for n, p in named.items()}, rule, config.rate, config.weight_decay)
        dense = [p for p in towers.dense_parameters() if p is not towers.log_scale]
        groups = [{"params": [*dense, *(tables if self.plain else [])], "weight_decay": config.weight_decay}]
        groups.append({"params": [towers.log_scale], "weight_decay": 0.0})
        for table in tables:
            table.requires_grad_(self.plain)
        self.dense = torch.optim.AdamW(groups, lr=config.rate, fused=device.type == "cuda")
        half = precision(config, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=half == torch.float16)
        loss: nn.Module = Loss(towers, config, world, half)
        if half != torch.float32 and device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        if world.size > 1:
            loss = shared(loss)
        self.loss: Callable[..., Tensor] = torch.compile(loss, dynamic=True) if config.compile else loss

    @property
    def optimisers(self) -> list[torch.optim.Optimizer]:
        """Those that learn."""
        return [self.dense] if self.plain else [self.rows, self.dense]

    def learn(self, batch: Batch, random: torch.Generator, lesson: Lesson | None = None) -> Tensor:
        """One step; the loss, a number on the device. random: what drops words; lesson: what a teacher says of it."""
        twins, shares = alike(batch.query, batch.code, batch.negatives), None
        if lesson is not None:
            batch, (shares, twins) = replace(batch, listed=lesson.code), weighed(twins, lesson)
        given = {field.name: getattr(batch, field.name) for field in fields(batch)}
        given = {name: ids for name, ids in given.items() if ids is not None}
        words = [dropped(ids, self.config.word_dropout, random) for ids in given.values()]
        tables, places, taken = self._cut(words)
        loss = self.loss(
            tables, Batch(**dict(zip(given, places, strict=True))), twins, shares, lesson.strangers if lesson else 0
        )
        pull = self._pull(taken)
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        total = loss if pull is None else loss + pull
        self.scaler.scale(total).backward()  # type: ignore[no-untyped-call]
        leaves = [p for group in self.rows.param_groups for p in group["params"]]
        self.world.averaged([leaf.grad for leaf in leaves if leaf.grad is not None])
        for optimiser in self.optimisers:
            self.scaler.step(optimiser)
        self.scaler.update()
        return total.detach()

    def _cut(self, ids: list[Tensor]) -> tuple[dict[str, dict[str, Tensor]], list[Tensor], dict[str, Tensor]]:
        """The rows that these ids need of everything that goes by word; the ids as places there; the tables' rows."""
        sizes = {side: words.size for side, words in self.words.items()}
        if self.shared:
            rows, ids = compact(sizes["query"], *ids)
            sides = {"query": rows, "code": rows}
        else:
            asked, query = compact(sizes["query"], ids[0])
            answers, codes = compact(sizes["code"], *ids[1:])
            sides, ids = {"query": asked, "code": answers}, [*query, *codes]
        of = {name: sides[side] for side, words in self.words.items() for name in words.names.values() if name}
        if self.plain:
            parameters = dict(self.towers.named_parameters())
            taken = {name: parameters[name].index_select(0, rows) for name, rows in of.items()}
        else:
            taken = self.rows.take(of)
        self.of = of
        tables = {}
        for side, words in self.words.items():
            module = self.towers.get_submodule(side)
            tables[side] = {
                name: taken[whole] if whole else module.get_buffer(name).index_select(0, sides[side])
                for name, whole in words.names.items()
            }
        return tables, ids, taken

    def _pull(self, taken: Mapping[str, Tensor]) -> Tensor | None:
        """What being far from the start costs: the mean squared distance of the batch's words, of every table."""
        if not self.start:
            return None
        far = [
            (rows - self.start[name].index_select(0, self.of[name]))[1:].square().sum(dim=1).mean()
            for name, rows in taken.items()
            if len(rows) > 1
        ]
        return self.config.stay * torch.stack(far).sum() if far else None

    def set_rate(self, rate: float) -> None:
        """Of all optimisers."""
        for optimiser in (self.rows, self.dense):
            for group in optimiser.param_groups:
                group["lr"] = rate

    def settle(self) -> None:
        """Before a network is judged: decay that waits for its words is done."""
        if self.config.weight_decay and not self.plain:
            self.rows.settle()

    def state(self) -> dict[str, Any]:
        """Everything that learning depends on and that is not in the network."""
        return {
            "rows": {} if self.plain else self.rows.state_dict(),
            "dense": self.dense.state_dict(),
            "scaler": self.scaler.state_dict(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """What `state` gave."""
        if not self.plain:
            self.rows.load_state_dict(state["rows"])
        self.dense.load_state_dict(state["dense"])
        self.scaler.load_state_dict(state["scaler"])


def seeded(device: torch.device, *seed: int) -> torch.Generator:
    """A source of random numbers on a device that these numbers decide."""
    number = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1)
    return torch.Generator(device).manual_seed(number)
