"""ReLIFT: RL interleaved with supervised steps on demonstrations of tasks that no rollout solved.

Title: Learning What Reinforcement Learning Can't: Interleaved Online Fine-Tuning for Hardest Questions
Paper: arXiv 2506.07527 (2025)
Claim: 5.2 points above RL alone, averaged over six benchmarks, with 13 % of the demonstrations.
Reading: A task whose rollouts all have reward 0 is demonstrated once. Demonstrations wait until there are enough for an
    optimizer step of their own, which follows those of the batch, newest first. Advantages are rewards minus the group
    mean, ratios are not clipped, and token sums are divided by a constant; a supervised step is a mean over tokens with
    an entropy bonus. Two optimizer steps per batch (64 of 128 tasks), gradient norm clipped at 0.7. The paper collects
    128 demonstrations, as many as the tasks of a batch; this recipe 8. Later scripts of the release clip ratios and
    collect 64. A task whose rollouts were all truncated at the token limit is not demonstrated: truncation says nothing
    about difficulty.
Left out: Separate Adam moments for supervised steps: both kinds of steps share one optimizer. The penalty for wrong
    formats, which no environment here has.
Acts: demonstrations > 0 and teacher/nll > 0 with collected=2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.control.budgets.waves import AgainWhenLost
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.replay.fifo import Fifo
from strop.replay.interleaved import Interleaved
from strop.roles import Agent, Player, Reduction, Strategy
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.aipo import Aipo
from strop.training.losses.among import Among
from strop.training.losses.entropy import Entropy
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.means import ConstantLength, TokenMean
from strop.training.trainers.torch import TorchTrainer
from strop.types import FloatArray, Group, Origin, Rollout, Start

# ReLIFT's demonstrations (2506.07527): after a failed wave, an expert solves the task.

COMPARISON_GROUP = "shown"


@dataclass(frozen=True)
class ShownWhenLost(Strategy):
    """A first wave of the policy; later waves of `expert`, in a comparison group of their own."""

    expert: Agent

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not group.rollouts:
            return await together(play(start) for start in starts)
        return await together(play(replace(start, comparison_group=COMPARISON_GROUP), self.expert) for start in starts)


# Separate reductions for supervised steps and for all others (ReLIFT, 2506.07527).


@dataclass(frozen=True)
class TaughtApart(Reduction):
    """`taught` for a step whose scored rollouts are all a teacher's, else `own`."""

    own: Reduction
    taught: Reduction

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        is_taught = all(rollout.origin is Origin.TEACHER for rollout in rollouts)
        return self.taught(groups) if is_taught else self.own(groups)


_NORM = 0.7  # gradient clipping
_UNBOUNDED = 1e9  # no ratio reaches it: log ratios are clamped to 20


def relift(
    setting: Setting = Setting(),
    collected: int = 8,  # demonstrations per supervised step
    entropy: float = 0.001,  # weight of the entropy bonus in supervised steps
) -> Run:
    """One demonstration of each failed task; a supervised step once there are `collected` of them."""
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
