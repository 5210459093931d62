"""A price on the entropy of one role: turns that a strategy marked (Evolving-RL, 2605.10663: the extractor's).

Papers: evolving-rl
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.training.requirements import Aux, Need
from strop.types import Metrics


@dataclass(frozen=True)
class RoleEntropy(Loss):
    """The entropy at tokens of turns whose `aux` holds 1 under the role's name; a weight below 0 is a bonus."""

    role: str
    weight: float = 0.03

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Aux(self.role)})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        is_role = batch.aux[self.role].to(output.entropy.dtype)  # [T]
        loss = torch.where(batch.trainable, output.entropy * is_role, 0.0)
        return loss, {f"entropy_of/{self.role}": batch.figure(loss)}
