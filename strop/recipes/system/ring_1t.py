"""Steps of a fixed number of tokens, and only tokens on which training and inference engine agree (IcePop, C3PO++).

Title: Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale Thinking Model
Paper: arXiv 2510.18855 (2025)
Claim: A model of 1 trillion parameters trains stably to 93.4 on AIME 2025; C3PO++ makes the rollout phase 2.5 times and
    a whole step 1.5 times as fast at equal rewards.
Reading: The paper gives no size of the token budget and of the pool; 1600 tokens and 16 groups fit the pocket model.
    A rollout that survived too many updates is purged there; here a step waits for it, so that nothing is thrown away.
    Where engine and trainer agree to rounding, as here on a CPU, IcePop's bounds mask no token.
    A KL loss that is added would be masked like the rest; the paper's stands outside.
Left out: ASystem, the paper's framework for 1 trillion parameters.
Acts: lag > 0 and staleness > 0.001 with tokens=300
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.control.admission.bounded_lag import BoundedLag
from strop.control.admission.token_budget import TokenBudget
from strop.recipes.setting import Setting
from strop.roles import Correction
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.ratios import FROZEN, check_policy, log_weights, needed
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import Need
from strop.training.trainers.torch import TorchTrainer

# IcePop (Ring-1T, 2510.18855): calibrate the gap between training and inference engine, discard what leaves the band.


@dataclass(frozen=True)
class IcePop(Correction):
    """Weigh a token by k * [low <= k <= high], k = trainer's / engine's probability under the weights that sampled it.

    Both sides of the band get exactly no gradient, and keep their place in the denominator. `old` is those weights at
    any lag; `proximal`, the weights before the step, is the same at lag 0 and else takes staleness for a mismatch.
    It belongs with a Clip anchored at the same target. [0.5, 2] was unstable in the paper, [0.4, 5] was not.
    """

    low: float = 0.5  # a token below it gets no gradient
    high: float = 5.0  # a token above it gets no gradient
    target: str = "old"  # the policy that tokens are weighed to

    def __post_init__(self) -> None:
        check_policy(self.target, FROZEN, self)

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        gap = log_weights(self.target, batch, logprobs).exp()  # [T]
        return gap.where((gap >= self.low) & (gap <= self.high), gap.new_zeros(()))


def ring_1t(
    setting: Setting = Setting(lag=5),
    low: float = 0.5,  # of the trainer's to the engine's probability: a token below it gets no gradient
    high: float = 5.0,  # above it, too
    tokens: int = 1600,  # of finished groups make a step; 0: groups_per_step groups, which is IcePop alone
    pool: int = 16,  # groups in flight
) -> Run:
    """The gap is measured under the weights that sampled each token, which are kept while they are in flight."""
    return setting.run(
        "ring_1t",
        GroupStandard(),
        (Clip(anchor="old"),),
        correction=IcePop(low, high),
        reduction=SequenceMean(),
        admission=TokenBudget(tokens, pool, setting.lag) if tokens else BoundedLag(setting.lag),
        trainer=TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, snapshots=setting.lag + 1),
    )
