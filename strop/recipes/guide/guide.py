"""Guide-GRPO: failed groups are resampled with a hint and trained without it, by a shaped off-policy ratio.

Title: Adaptive Guidance Accelerates Reinforcement Learning of Reasoning Models
Paper: arXiv 2506.13923 (2025)
Claim: Up to 4 % better on average than GRPO at 7B and 32B, over mathematics benchmarks.
Reading: Hinted rollouts are sampled with the hinted prompt and trained with the plain one; their importance ratio is
    the new policy without the hint over the old one with it, shaped instead of clipped. Hints are the first steps of
    the environment's worked solution, in place of a larger model's hints. Two optimizer steps per batch and the mean
    over rollouts are the release's (64 of 128 tasks each, one rollout per micro-batch); its second clip range is set
    there and not used. A task whose rollouts were all truncated at the token limit gets no hint: truncation says
    nothing about difficulty.
Left out: Guide-PPO, and hints that differ between the rollouts of a group.
Acts: share/guided > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from strop.concurrency import together
from strop.control.budgets.waves import AgainWhenLost
from strop.environments.format.hints import hinted
from strop.environments.needs import HINTS, EnvNeed
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Environment, Gate, Loss, Player, Strategy
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.types import GateResult, Group, Message, Metrics, Origin, Rollout, Start

# Dynamic sampling per comparison group: only comparison groups with reward variance are kept.
#
# Guide (2506.13923) drops tasks that are all right, and hinted rollouts that are all right or all wrong.

_ROUNDING = 1e-9  # of weighted sums


@dataclass(frozen=True)
class ContrastInComparisonGroup(Gate):
    """Keeps comparison groups whose rewards differ, and drops a group that has none.

    With a single comparison group it equals ZeroVariance.
    """

    min_group: ClassVar[int] = 2

    def __call__(self, group: Group) -> GateResult:
        rewards: dict[str, list[float]] = {}
        for rollout in group.scored:
            rewards.setdefault(rollout.comparison_group, []).append(rollout.reward)
        flat = {comparison_group for comparison_group, paid in rewards.items() if max(paid) - min(paid) <= _ROUNDING}
        kept = [rollout for rollout in group.scored if rollout.comparison_group not in flat]
        if not kept:
            return GateResult(None, f"no reward variance in any of {len(rewards)} comparison groups")
        return GateResult(replace(group, rollouts=kept) if flat else group)


# Guide's rollouts (2506.13923): after a failed wave, the next wave reads a hint and is trained without it.
#
# Reading: the paper's hints are written by a larger model from a known solution; here they are the first steps of the
# environment's worked solution. Hinted rollouts are a comparison group of their own.

COMPARISON_GROUP = "hinted"


@dataclass(frozen=True)
class HintedWhenLost(Strategy):
    """A first wave without hints; later waves are sampled with a hint that is removed before training."""

    envs: tuple[Environment, ...]
    steps: int = 1  # steps of the worked solution in a hint

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if not group.rollouts:
            return await together(play(start) for start in starts)
        messages = hinted(self.envs, group.task, self.steps)
        return await together(_without_hint(start, messages, play) for start in starts)

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (HINTS,)


async def _without_hint(start: Start, messages: tuple[Message, ...], play: Player) -> Rollout:
    rollout = await play(replace(start, messages=messages, origin=Origin.GUIDED, comparison_group=COMPARISON_GROUP))
    return play.retold(rollout, rollout.task.messages) if rollout.turns else rollout


# Guide's loss on hinted rollouts (2506.13923): a bounded importance weight instead of clipping.
#
# The ratio is the policy without the hint over the policy with it, so it starts far from 1. Reading: g is the quantile
# over the rollout's own tokens, as in the release with one rollout per micro-batch, and does not depend on how a step
# is split.


@dataclass(frozen=True)
class ShapedRatio(Loss):
    """-A * r / (r + g): r is policy / behavior, g the `quantile` of r over the rollout's tokens, at least `least`.

    The gradient is that of -A * log policy, times r * g / (r + g)^2: at most 1/4, for tokens with r near g.
    """

    quantile: float = 0.9  # of a rollout's ratios; its value is g
    least: float = 1e-4  # lower bound of g
    weight: float = 1.0

    contains_ratio: ClassVar[bool] = True  # a correction would count the ratio twice
    corrects: ClassVar[bool] = True  # truncation would change the sampling distribution that it weights by

    def __post_init__(self) -> None:
        if not 0 <= self.quantile <= 1 or self.least <= 0:
            raise ConfigurationError(
                f"ShapedRatio needs 0 <= quantile <= 1 and least > 0, got {self.quantile} and {self.least}"
            )

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        ratio = batch.log_ratio(output.logprobs, batch.behavior_logprobs).exp()  # [T]
        bound = batch.on_tokens(self._bounds(ratio.detach(), batch))  # [T]
        shaped = ratio / (ratio + bound)
        loss = torch.where(batch.trainable, -batch.advantages * shaped, 0.0)
        return loss, {"ratio": batch.metric(ratio), "shaped": batch.metric(shaped)}

    def _bounds(self, ratio: Tensor, batch: Batch) -> Tensor:
        """g of each rollout; 1, and unused, for a rollout without tokens: [A]."""
        bounds = ratio.new_ones(batch.num_rollouts)
        for index in batch.rollouts[batch.trainable].unique().tolist():  # type: ignore[no-untyped-call]
            own = ratio[batch.trainable & (batch.rollouts == index)]
            bounds[index] = own.quantile(self.quantile).clamp(min=self.least)
        return bounds


def guide(
    setting: Setting = Setting(),
    steps_shown: int = 1,  # steps of the worked solution in a hint
    quantile: float = 0.9,  # of a hinted rollout's ratios; tokens at this ratio get weight 1/2
    clip: float = 0.2,  # PPO clip range for rollouts without a hint
) -> Run:
    """After a failed first wave, group_size rollouts with a hint; they are trained without it."""
    run = setting.run(
        "guide",
        GroupStandard(),
        (Among(Clip(clip, clip), (Origin.POLICY,)), Among(ShapedRatio(quantile), (Origin.GUIDED,))),
        budget=AgainWhenLost(setting.group_size, setting.group_size),
        gates=(ContrastInComparisonGroup(),),
        reduction=SequenceMean(),
        minibatches=2,
    )
    run.strategy = HintedWhenLost(run.envs, steps_shown)
    return run
