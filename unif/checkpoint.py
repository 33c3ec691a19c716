"""Everything that a killed training needs to go on bit by bit, replaced as a whole after every epoch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ncs.errors import BadInput


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Tensors, numbers and texts in dicts and lists."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        torch.save(dict(state), file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def load(path: Path, device: torch.device) -> dict[str, Any] | None:
    """What `save` wrote; None where there is nothing. Raises BadInput for a damaged one."""
    if not path.is_file():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch tells damage in a dozen ways
        raise damaged(path, error) from error
    return state


def copy_of(network: nn.Module) -> dict[str, Tensor]:
    """What a network has learnt so far, in the CPU's memory; what it learns later does not change it."""
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}


def damaged(path: Path, error: Exception) -> BadInput:
    """One line about a checkpoint that does not fit."""
    return BadInput(f"cannot go on from {path} ({type(error).__name__}); remove its folder and start again")
