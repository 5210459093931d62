"""BroRL: many more rollouts per task once training has plateaued, with a learning rate scaled by their square root.

Title: BroRL: Scaling Reinforcement Learning via Broadened Exploration
Paper: arXiv 2510.01180 (2025)
Claim: A model that 3,000 steps had saturated improves again with 512 rollouts per task.
Reading: From 16 to 512 rollouts per task, a learning rate proportional to the square root of the rollouts in a step, as
    many optimizer steps per batch as before, only groups with both right and wrong rollouts, rewards minus the group's
    mean divided by the standard deviation over the batch. The bundled model goes from 8 to 64. Tokens of truncated
    completions are not masked.
Left out: The 3,000 steps of the run that it continues, and its KL penalty with a reference that is reset.
Acts: broadness > 1 and step_scale > 1 with after=1, broad=8
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.roles import Budget, StepScale
from strop.run import Run
from strop.training.advantages.batch_relative import BaselineStandard
from strop.training.losses.clip import Clip
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Metrics

# BroRL's wide groups (2510.01180): where more steps no longer help, more rollouts per task do.
#
# The one term of a step that can lower the probability mass of right answers is that of right answers that were not
# sampled: p^2 (1 - p)^N for an answer of probability p. It vanishes as N grows.


@dataclass(frozen=True)
class Broadened(Budget):
    """Budget of `size` rollouts for tasks admitted before version `after`, and `broad` from then on."""

    size: int = 16  # rollouts per task before `after`
    broad: int = 512  # rollouts per task from `after` on
    after: int = 100  # versions of the weights

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.broad or self.after < 0:
            raise ConfigurationError(
                f"Broadened needs 1 <= size <= broad and after >= 0, got {self.size}, {self.broad} and {self.after}"
            )

    def rollouts(self, group: Group) -> int:
        if group.rollouts:
            return 0
        return self.size if group.version < self.after else self.broad

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: rollouts per group, and the share of groups with both right and wrong rollouts."""
        count = max(len(groups), 1)
        mixed = [0 < sum(rollout.reward > 0 for rollout in group.scored) < len(group.scored) for group in groups]
        made = sum(len(group.rollouts) for group in groups)
        return {
            "rollouts_per_group": made / count,
            "broadness": made / count / self.size,
            "mixed_share": sum(mixed) / count,
        }


# Learning rate of BroRL (2510.01180): it grows as the square root of the rollouts in a step.


@dataclass(frozen=True)
class RootOfRollouts(StepScale):
    """Factor (N / usual)^0.5 of the learning rate for a step on N rollouts."""

    usual: int  # rollouts of a step to which the configured learning rate belongs

    def __post_init__(self) -> None:
        if self.usual < 1:
            raise ConfigurationError(f"RootOfRollouts needs usual >= 1, got {self.usual}")

    def __call__(self, log_weights: Tensor) -> float:
        return math.sqrt(len(log_weights) / self.usual)


def brorl(
    setting: Setting = Setting(env="countdown:4"),
    broad: int = 64,  # rollouts per task from `after` on
    after: int = 50,  # steps with `group_size` rollouts per task
    minibatches: int = 4,  # optimizer steps per batch
) -> Run:
    """`group_size` rollouts per task for `after` steps, `broad` from then on."""
    usual = max(setting.groups_per_step // minibatches, 1) * setting.group_size  # rollouts of an optimizer step
    return setting.run(
        "brorl",
        BaselineStandard(),
        (Clip(0.2, 0.28),),
        budget=Broadened(setting.group_size, broad, after),
        gates=(ZeroVariance(),),
        minibatches=minibatches,
        trainer=TorchTrainer(
            learning_rate=setting.learning_rate, device=setting.device, step_scale=RootOfRollouts(usual)
        ),
    )
