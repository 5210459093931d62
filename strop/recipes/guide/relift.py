"""Reinforcement learning, and now and then a supervised step on demonstrations of what nobody solved.

Title: Learning What Reinforcement Learning Can't: Interleaved Online Fine-Tuning for Hardest Questions
Paper: arXiv 2506.07527 (2025)
Claim: 5.2 points above RL alone, averaged over six benchmarks, with 13 % of the demonstrations.
Reading: A task all of whose rollouts were paid 0 is shown once; demonstrations wait until there are enough for a step
    of their own, which follows the batch's others, newest first. Groups are compared with their mean, ratios are not
    clipped and tokens are summed over a constant; a supervised step is a mean over tokens with a bonus on entropy. Two
    optimizer steps per batch (64 of 128 tasks), gradients of a norm of at most 0.7. The paper collects 128
    demonstrations, one batch's worth of tasks; here 8 are. Later scripts of the release clip and collect 64. A task
    whose rollouts were all cut off at the token limit is not shown: that says nothing about how hard it is.
Left out: Adam moments of its own for the supervised steps: both kinds share one optimizer. The price of wrong formats,
    which no environment here has.
Acts: demonstrations > 0 and teacher/nll > 0 with collected=2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.control.budgets.waves import AgainWhenLost
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.interfaces import Player
from strop.recipes.setting import Setting
from strop.replay.fifo import Fifo
from strop.replay.interleaved import Interleaved
from strop.roles import Agent, Reduction, Strategy
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.aipo import Aipo
from strop.training.losses.among import Among
from strop.training.losses.entropy import Entropy
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.means import ConstantLength, TokenMean
from strop.training.trainers.torch import TorchTrainer
from strop.types import FloatArray, Group, Origin, Rollout, Start

# ReLIFT's demonstrations (2506.07527): where a whole wave failed, the next one is an expert's.

COMPARISON_GROUP = "shown"


@dataclass(frozen=True)
class ShownWhenLost(Strategy):
    """The first wave is the policy's own; every later one is played by `expert`, and is a comparison group of its
    own.
    """

    expert: Agent

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not group.rollouts:
            return await together(play(start) for start in starts)
        return await together(play(replace(start, comparison_group=COMPARISON_GROUP), self.expert) for start in starts)


# One reduction for steps of demonstrations, another for all others (ReLIFT, 2506.07527).


@dataclass(frozen=True)
class TaughtApart(Reduction):
    """`taught` where every rollout that counts is a teacher's, else `own`."""

    own: Reduction
    taught: Reduction

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        is_taught = all(rollout.origin is Origin.TEACHER for rollout in rollouts)
        return self.taught(groups) if is_taught else self.own(groups)


_NORM = 0.7  # of a step's gradient, at most
_UNBOUNDED = 1e9  # a ratio never gets there: its logarithm is held within 20


def relift(
    setting: Setting = Setting(),
    collected: int = 8,  # demonstrations of one supervised step
    entropy: float = 0.001,  # weight of the bonus in supervised steps
) -> Run:
    """One demonstration of each task that all rollouts failed at; trained on apart, once there are enough."""
    shown = (Origin.TEACHER,)
    return setting.run(
        "relift",
        GroupMean(),
        (
            Among(Aipo(_UNBOUNDED, is_detached=False), (Origin.POLICY,)),
            Among(Likelihood(), shown),
            Among(Entropy(entropy), shown),
        ),
        budget=AgainWhenLost(setting.group_size, 1),
        strategy=ShownWhenLost(Demonstrate()),
        buffer=Interleaved(Fifo(), collected),
        reduction=TaughtApart(ConstantLength(setting.max_tokens), TokenMean()),
        trainer=TorchTrainer(setting.learning_rate, clip_norm=_NORM, device=setting.device),
        minibatches=2,
    )
