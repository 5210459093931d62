"""Mismatch apart from staleness ("Missing Old Logits in Asynchronous Agentic RL", 2605.12070).

policy / behaviour = r_d * r_s. The mismatch r_d = old / behaviour, same weights in two engines, has no right direction:
its band is symmetric and it is a weight, so it is a correction. The staleness r_s = policy / old is what PPO's clip is
for, by the sign of the advantage: it belongs in a loss anchored at the same target, Clip(anchor=...).
Papers: missing-old-logits
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Correction
from strop.training.arithmetic.ratios import check_policy, log_weights, needed
from strop.training.batch import Batch
from strop.training.requirements import Need


@dataclass(frozen=True)
class Separated(Correction):
    """Weigh a token by r_d * [1 / limit <= r_d <= limit], r_d = target / behaviour, detached.

    The target is `old`, the exact weights behind each token, or its proxy `averaged`, a running average of weights.
    The paper's limit is not known; 2 is the plainest.
    """

    limit: float = 2.0  # mismatch beyond limit or 1 / limit masks a token
    target: str = "old"  # the policy that tokens are weighed to

    def __post_init__(self) -> None:
        check_policy(self.target, ("old", "averaged"), self)
        if self.limit < 1:
            raise ConfigurationError(f"Separated needs limit >= 1, or its band is empty, got {self.limit}")

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        mismatch = log_weights(self.target, batch, logprobs).exp()  # [T]
        kept = (mismatch >= 1 / self.limit) & (mismatch <= self.limit)
        return mismatch.where(kept, mismatch.new_zeros(()))
