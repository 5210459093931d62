"""Ring-1T: GRPO with IcePop, which masks tokens with an engine/trainer probability mismatch, and C3PO++ token budgets.

Title: Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale Thinking Model
Paper: arXiv 2510.18855 (2025)
Claim: A model of 1 trillion parameters trains stably to 93.4 on AIME 2025; C3PO++ makes the rollout phase 2.5 times and
    a whole step 1.5 times as fast at equal rewards.
Reading: The paper gives no size of the token budget and of the pool; 1600 tokens and 16 groups fit the pocket model.
    The paper purges rollouts that are too many versions old; here a step waits for them, so that none is lost. Where
    engine and trainer agree up to rounding, as here on a CPU, IcePop's bounds mask no token. An added KL loss would be
    masked, too; the paper's is not.
Left out: ASystem, the paper's framework for 1 trillion parameters.
Acts: lag > 0 and staleness > 0.001 with tokens=300
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from strop.control.admission.bounded_lag import BoundedLag
from strop.control.admission.support.admission_state import Standing
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Admission, Correction
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.ratios import FROZEN, check_policy, log_weights, needed
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import Need
from strop.training.trainers.torch import TorchTrainer


@dataclass
class TokenBudget(Admission):
    """`pool` groups are in flight until finished ones hold `tokens` new tokens; the step trains on all finished ones.

    From then until the new version is published nothing starts, so that a step trains on no more than what was finished
    or in flight when the budget was reached. If gates dropped all of it, more is started. At lag 0 a step waits for all
    groups in flight, and groups start together, a pool at a time: the batch does not depend on timing.
    """

    tokens: int  # of finished groups that make a step
    pool: int = 16  # groups in flight
    lag: int = 5  # versions
    _is_filling: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.pool < 1 or self.lag < 0:
            raise ConfigurationError(
                f"TokenBudget needs tokens >= 1, pool >= 1 and lag >= 0, got {self.tokens}, {self.pool} and {self.lag}"
            )

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool:
        has_room = running < self.pool and (tokens < self.tokens or waiting == 0)
        self._is_filling = has_room and (self._is_filling or running == 0)
        return has_room and (self._is_filling or self.lag > 0)

    def batch_size(self, standing: Standing) -> int:
        is_young = all(standing.step + 1 - version <= self.lag for version in standing.running)
        return len(standing.waiting) if is_young and standing.tokens >= self.tokens else 0


# IcePop (Ring-1T, 2510.18855): correction and masking of the mismatch between trainer and engine.


@dataclass(frozen=True)
class IcePop(Correction):
    """Token weight k * [low <= k <= high], k = trainer / engine probability under the weights that sampled the token.

    Tokens outside the band have no gradient and stay in the denominator. target=old is those weights at any lag;
    proximal, the weights before the step, is the same at lag 0 and otherwise includes staleness in k. Use it with a
    Clip of the same anchor. [0.5, 2] was unstable in the paper, [0.4, 5] was not.
    """

    low: float = 0.5  # tokens with a smaller k get no gradient
    high: float = 5.0  # tokens with a larger k get no gradient
    target: str = "old"  # the policy in the numerator of k

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
    low: float = 0.5,  # least trainer/engine probability ratio of a token with a gradient
    high: float = 5.0,  # largest trainer/engine probability ratio of a token with a gradient
    tokens: int = 1600,  # tokens of finished groups per step; 0: groups_per_step groups, which is IcePop alone
    pool: int = 16,  # groups in flight
) -> Run:
    """GRPO with IcePop; old weights are kept as long as rollouts of their version are in flight."""
    return setting.run(
        "ring_1t",
        GroupStandard(),
        (Clip(anchor="old"),),
        correction=IcePop(low, high),
        reduction=SequenceMean(),
        admission=TokenBudget(tokens, pool, setting.lag) if tokens else BoundedLag(setting.lag),
        trainer=TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, snapshots=setting.lag + 1),
    )
