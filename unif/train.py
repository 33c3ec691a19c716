"""Training, read from top to bottom: open the run, read the pairs, repeat epochs, keep the best, export it."""

from __future__ import annotations

import io
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ncs import __version__
from ncs.errors import BadInput
from ncs.progress import Track, silent
from unif.head import Head
from unif.losses import margin_loss, same, softmax_loss
from unif.model import Towers, create
from unif.run import CHECKPOINT, Sources, Start, open_run, run_pairs, write_curve, write_whole
from unif.settings import TrainConfig

if TYPE_CHECKING:
    from ncs.index import Index
    from unif.data import Ids, Pairs, Reading

POOL = 1_000
"""Codes among which a validation question has to find its own, as in CodeSearchNet."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of it; `curve` has an epoch a row, epoch 0 being the network before training."""

    head: Head
    curve: list[dict[str, float]]
    best_epoch: int
    best_mrr: float
    reading: Reading


def train(
    index: Index, out: Path, sources: Sources, config: TrainConfig, *, device: str = "auto", track: Track = silent
) -> Trained:
    """Train a head over the words of an index into the folder `out`; the same call goes on where a killed one was.

    What is learnt does not depend on where it was killed, bit by bit, on one machine and device.
    Raises BadInput for pairs that are none, and a folder that holds something else.
    """
    start = Start.of(index, rare_words=config.model.rare_words == "random", seed=config.seed)
    open_run(out, {"version": __version__, "index": start.digest(), **sources.about(), **asdict(config)})
    pairs = run_pairs(out / "pairs", sources, start, track=track)
    learning, valid = pairs.split(config.valid, config.seed)
    towers = create(config.model, start.vectors, start.idf, seed=config.seed).to(chosen(device))
    steps = optimisers(towers, config.rate)
    state = _resume(out / CHECKPOINT, towers, steps) or _first(towers, pairs, valid, config)
    while state["epoch"] < config.epochs and state["epoch"] - state["best_epoch"] < config.patience:
        epoch, began = state["epoch"] + 1, time.perf_counter()
        loss, seen = _epoch(towers, steps, pairs, learning, config, epoch, track)
        seconds = time.perf_counter() - began
        mrr = validation_mrr(towers, pairs, valid, config)
        if mrr > state["best_mrr"]:
            state |= {"best_epoch": epoch, "best_mrr": mrr, "best": _copy(towers)}
        row = {"epoch": epoch, "loss": loss, "mrr": mrr, "seconds": round(seconds, 3), "pairs_per_s": seen / seconds}
        state |= {"epoch": epoch, "curve": [*state["curve"], row]}
        _save(out, state, towers, steps)
    write_curve(out, state["curve"])  # once more: what killed the last epoch may have come before
    towers.load_state_dict(state["best"])
    head = Head(
        start.vocabulary, towers.query.side(), towers.code.side(), {**_about(config), "epoch": state["best_epoch"]}
    )
    head.save(out / "head")
    return Trained(head, state["curve"], state["best_epoch"], state["best_mrr"], pairs.reading)


def chosen(device: str) -> torch.device:
    """The device of a name; auto: cuda, else mps, else cpu. BadInput for one that is not here."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        return torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"cannot train on {device!r} ({reason}); take --device auto or cpu") from None


def optimisers(towers: Towers, rate: float) -> list[torch.optim.Optimizer]:
    """Adam; of the tables only the rows of a batch's words, where the device can."""
    sparse, dense = towers.sparse_parameters(), towers.dense_parameters()
    if towers.log_scale.device.type == "mps":
        for module in towers.modules():
            if isinstance(module, torch.nn.Embedding):
                module.sparse = False
        return [torch.optim.Adam([*sparse, *dense], lr=rate)]
    return [torch.optim.SparseAdam(sparse, lr=rate), torch.optim.Adam(dense, lr=rate)]


def _epoch(
    towers: Towers,
    steps: list[torch.optim.Optimizer],
    pairs: Pairs,
    rows: Ids,
    config: TrainConfig,
    epoch: int,
    track: Track,
) -> tuple[float, int]:
    """Every question once; the mean loss and how many pairs. What is drawn depends on seed and epoch alone."""
    draw = np.random.default_rng((config.seed, epoch))
    total, seen = 0.0, 0
    batches = track(pairs.batches(rows, config.batch, draw), f"epoch {epoch}", unit="batches")
    for batch in batches:
        query, code = _words(pairs, batch, config)
        loss = batch_loss(
            towers, _dropped(query, config, draw), _dropped(code, config, draw), same(query, code), config
        )
        for step in steps:
            step.zero_grad()
        torch.autograd.backward(loss)
        for step in steps:
            step.step()
        total, seen = total + float(loss.detach()) * len(batch), seen + len(batch)
    return total / max(1, seen), seen


def _words(pairs: Pairs, rows: Ids, config: TrainConfig) -> tuple[Ids, Ids]:
    code = pairs.code.padded(rows, config.code_words, unique=config.unique)
    return pairs.query.padded(rows, config.query_words), code


def _dropped(ids: Ids, config: TrainConfig, draw: np.random.Generator) -> Ids:
    return np.where(draw.random(ids.shape) < config.word_dropout, 0, ids) if config.word_dropout else ids


def batch_loss(towers: Towers, query: Ids, code: Ids, same: Ids, config: TrainConfig) -> Tensor:
    """The loss of a batch of ids [n, l]; same: [n, n], from `same`."""
    device = towers.log_scale.device
    asked, answers = torch.from_numpy(query).to(device), torch.from_numpy(code).to(device)
    twins = torch.from_numpy(same).to(device)
    questions, codes = towers.query(asked), towers.code(answers)  # [n, d] each
    if config.loss == "softmax":
        loss = softmax_loss(towers.scale * questions @ codes.T, twins)
    else:
        loss = margin_loss(questions @ codes.T, twins, config.margin)
    if config.stay:
        loss = loss + config.stay * (towers.query.moved(asked) + towers.code.moved(answers))
    return loss


@torch.no_grad()
def validation_mrr(towers: Towers, pairs: Pairs, rows: Ids, config: TrainConfig) -> float:
    """The mean reciprocal rank of a question's code among POOL others' at most; ties count against it, twins do not."""
    ranks, order = [np.zeros(0)], pairs.one_a_question(rows, np.random.default_rng(config.seed))
    device = towers.log_scale.device
    for batch in np.array_split(order, max(1, round(len(order) / POOL))):
        query, code = _words(pairs, batch, config)
        asked, answers = (torch.from_numpy(ids).to(device) for ids in (query, code))
        cosines = (towers.query(asked) @ towers.code(answers).T).cpu().numpy()  # [n, n]
        others = ~same(query, code)
        ranks.append(1 + ((cosines >= np.diag(cosines)[:, None]) & others).sum(axis=1))
    return float((1 / np.concatenate(ranks)).mean())


def _first(towers: Towers, pairs: Pairs, valid: Ids, config: TrainConfig) -> dict[str, Any]:
    """Before the first epoch: what the network is worth untrained is the first to beat."""
    mrr = validation_mrr(towers, pairs, valid, config)
    row = {"epoch": 0, "mrr": mrr}
    return {"epoch": 0, "curve": [row], "best_epoch": 0, "best_mrr": mrr, "best": _copy(towers)}


def _copy(towers: Towers) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in towers.state_dict().items()}


def _save(out: Path, state: dict[str, Any], towers: Towers, steps: list[torch.optim.Optimizer]) -> None:
    """Replace the checkpoint, then the curve, which can be made of it."""
    buffer = io.BytesIO()
    torch.save({**state, "towers": towers.state_dict(), "steps": [step.state_dict() for step in steps]}, buffer)
    write_whole(out / CHECKPOINT, buffer.getvalue())
    write_curve(out, state["curve"])


def _resume(path: Path, towers: Towers, steps: list[torch.optim.Optimizer]) -> dict[str, Any] | None:
    """Put networks and optimisers where the checkpoint was; None where there is none. BadInput for a damaged one."""
    if not path.is_file():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location=towers.log_scale.device, weights_only=True)
        towers.load_state_dict(state.pop("towers"))
        for step, saved in zip(steps, state.pop("steps"), strict=True):
            step.load_state_dict(saved)
    except Exception as error:  # torch tells damage in a dozen ways
        raise BadInput(
            f"cannot go on from {path} ({type(error).__name__}); remove its folder and start again"
        ) from error
    return state


def _about(config: TrainConfig) -> dict[str, object]:
    return {"version": __version__, "unique": config.unique, **asdict(config)}
