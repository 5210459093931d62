"""PPO's clipped surrogate (Schulman et al., 1707.06347), with DAPO's two bounds and a dual clip (1912.09729).

Papers: ppo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from strop.roles import Loss
from strop.training.arithmetic.ratios import FROZEN, check_policy, clipped_loss, needed
from strop.training.batch import Batch, Output
from strop.training.requirements import Need
from strop.types import Metrics


@dataclass(frozen=True)
class Clip(Loss):
    """PPO clipping: no gradient once a token's ratio is past the bound in the direction of its advantage.

    The ratio is taken to the policy that sampled the token. It already is the importance weight, so do not add a
    correction. PPO and GRPO: 0.2 and 0.2; DAPO: 0.2 and 0.28.

    With another `anchor` (proximal, old, averaged) the ratio is taken to it, and a correction has to weigh from the
    sampling policy to that anchor: its target.
    """

    low: float = 0.2  # the lower bound of a ratio is 1 - low
    high: float = 0.2  # the upper bound of a ratio is 1 + high
    dual: float | None = None  # > 1: for A < 0 the loss is at most dual * |A|; without it that side is unbounded
    weight: float = 1.0  # weight of this loss among others
    anchor: str = "behavior"  # the denominator of the ratio

    scope: ClassVar[str] = "rollout"

    def __post_init__(self) -> None:
        check_policy(self.anchor, ("behavior", *FROZEN), self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.anchor)

    @property
    def contains_ratio(self) -> bool:
        """Whether a correction on top would count the ratio twice."""
        return self.anchor == "behavior"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        log_ratio = batch.log_ratio(output.logprobs, batch.logprobs_of(self.anchor))  # [T]
        ratio = log_ratio.exp()  # [T]
        loss, metrics = clipped_loss(ratio, batch, self.low, self.high, self.dual)
        return loss, metrics | {"kl": batch.metric(ratio - 1 - log_ratio)}  # k3 of KL(anchor || policy)
