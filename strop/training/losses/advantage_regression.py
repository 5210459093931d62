"""WebRL's loss (2411.02337): beta * log(policy / reference) is regressed onto the advantage.

It is 0 at policy ~ reference * exp(A / beta), whoever wrote the attempt, so that old successes may be trained on again;
the reference is the policy of the phase before. An action is a turn, with an advantage of its own. Reading: the paper's
square with one beta; log-ratios are means over an action's tokens as in the release, which further weighs by how sure
the reference was, and drops what is negative.
Papers: webrl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.arithmetic.turns import over_turns
from strop.training.batch import Batch, Output
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics


@dataclass(frozen=True)
class AdvantageRegression(Loss):
    """(beta * mean log(policy / reference) - mean A)^2 of each turn; every token of it carries that."""

    beta: float = 1.0  # the policy goes to reference * exp(A / beta)
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    contains_ratio: ClassVar[bool] = True  # off-policy as it stands: a correction would bias it

    def __post_init__(self) -> None:
        if self.beta <= 0:
            raise ConfigurationError(f"AdvantageRegression needs beta > 0, got {self.beta}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        sizes = over_turns(torch.ones_like(output.logprobs), batch).clamp(min=1)  # [T], tokens of a token's turn
        moved = over_turns(batch.log_ratio(output.logprobs, batch.logprobs_of("reference")), batch) / sizes  # [T]
        wanted = over_turns(batch.advantages.to(moved.dtype), batch) / sizes  # [T]
        loss = torch.where(batch.trainable, (self.beta * moved - wanted).square(), 0.0)
        return loss, {"regression_error": batch.figure(loss), "moved": batch.figure(moved.abs())}
