"""Own successes come again with a rising weight, while pay for using tools fades; the surest tokens are not pushed.

Title: Learn the Ropes, Then Trust the Wins: Self-imitation with Progressive Exploration for Agentic Reinforcement
    Learning
Paper: arXiv 2509.22601 (2025)
Claim: Up to 16.1, 5.1 and 8.6 points more than GRPO, GiGPO and Dr.BoT on ALFWorld and up to 20.7 on WebShop.
Reading: GRPO without division, clip 0.2/0.28 to the policies that sampled, also of what is replayed. The memory is
    drawn whole when 128 rollouts wait; the release has 2,048, with steps 16 times as large. It is a mean of its own
    beside that of new rollouts, weighed by the schedule, in each of a batch's two optimizer steps (64 of 128 tasks);
    the release gives it steps of its own after the others, where Adam would undo most of its weight.
Left out: The release's own clip of the ratio for long answers, and its filter of answers that were cut.
Acts: replayed_share > 0 and replay_weight > 0 and credit_within > 0 and reward/tool_calls > 0
    with size=4, rise=3, covariance=0.2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.replay.memory.held_groups import Replaying
from strop.roles import Advantage, Reduction, Reward
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.constant_length import ConstantLength
from strop.training.requirements import LOGPROBS, PolicyStatistic
from strop.types import FloatArray, Group, Metrics, Rollout

# SPEAR's pay for exploring (2509.22601): a little for every use of a tool, less and less, and then nothing.
#
# Reading: uses that the environment answered count, failed ones too.

_EACH = 0.1  # for one use; ten of them are paid in full


@dataclass(frozen=True)
class ToolCalls(Reward):
    """fade * min(1, uses / 10), with fade = (1 + cos(pi t / fall)) / 2 at version t of the group, 0 from `fall` on."""

    fall: int = 200  # versions over which the pay goes from 1 to 0
    weight: float = 1.0  # of this reward beside others

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "tool_calls"

    def __post_init__(self) -> None:
        if self.fall < 1:
            raise ConfigurationError(f"ToolCalls needs fall >= 1, got {self.fall}")

    def fade(self, version: int) -> float:
        return (1 + math.cos(math.pi * min(version / self.fall, 1.0))) / 2

    def __call__(self, group: Group) -> list[float]:
        return [self.fade(group.version) * min(1.0, _EACH * uses(rollout)) for rollout in group.rollouts]


def uses(rollout: Rollout) -> int:
    """Answers of tools that were read."""
    return sum(message.role == "tool" for turn in rollout.turns for message in turn.told)


# SPEAR's memory (2509.22601): rollouts that were better than their siblings wait until they are many, then come again.
#
# Reading: better is a reward above the mean of the group, which is a positive advantage without division. All that wait
# are drawn at once, as groups of their own, and none a third time; before that they are forgotten when they grow too
# old. They are spread over the batch, so that each of its optimizer steps has its part of the new and of the old.


@dataclass
class OwnSuccesses(Replaying):
    """New groups once, the oldest first; on top, once `size` better rollouts wait, all of them."""

    size: int = 128  # rollouts that are drawn again together
    age: int = 10  # versions after which one that waits is forgotten

    def __post_init__(self) -> None:
        if self.size < 1 or self.age < 1:
            raise ConfigurationError(f"OwnSuccesses needs size >= 1 and age >= 1, got {self.size} and {self.age}")

    def sample(self, count: int, step: int) -> list[Group] | None:
        held = self._held
        if len(held) < count:
            return None
        held.old = {number: group for number, group in held.old.items() if step - group.version <= self.age}
        waiting = [held.old[number] for number in sorted(held.old)]
        again = waiting if sum(len(_better(group)) for group in waiting) >= self.size else []
        fresh = held.take(count, again)
        done = {group.number for group in again} | {group.number for group in fresh if not _better(group)}
        held.old = {number: group for number, group in held.old.items() if number not in done}
        return _spread(fresh, [replace(group, rollouts=_better(group)) for group in again])


def _spread(new: list[Group], again: list[Group]) -> list[Group]:
    """Both in their order, and any stretch of the batch has about the same share of each."""
    places = [(place / len(groups), group) for groups in (new, again) for place, group in enumerate(groups)]
    return [group for _, group in sorted(places, key=lambda each: each[0])]


def _better(group: Group) -> list[Rollout]:
    return [rollout for rollout in group.own if rollout.reward > group.rewards.mean()]


# SPEAR's advantage for what is replayed (2509.22601): the reward against the median of late groups, with a rising
# weight.
#
# Reading: the mean of its own group is out of date when a rollout comes again, so that the policy's late groups stand
# in for it; the median is over the last 10,240 new groups, those of this batch among them. What is below it has
# advantage 0
# and keeps its place in the mean. The step is that of the newest group of the batch.

_LATE = 10_240  # groups whose mean rewards are remembered


@dataclass
class Recalibrated(Advantage):
    """`inner` for groups that are new; for others weight * max(reward - median, 0).

    The weight is (1 - cos(pi t / rise)) / 2 at version t, 1 from `rise` on.
    """

    inner: Advantage
    rise: int = 200  # versions over which the weight of what is replayed goes from 0 to 1
    _means: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _weight: float = field(default=0.0, init=False, repr=False, compare=False)  # in the last batch

    def __post_init__(self) -> None:
        if self.rise < 1:
            raise ConfigurationError(f"Recalibrated needs rise >= 1, got {self.rise}")

    def weight(self, version: int) -> float:
        return (1 - math.cos(math.pi * min(version / self.rise, 1.0))) / 2

    def __call__(self, groups: Sequence[Group]) -> None:
        new = [group for group in groups if group.times_trained <= 1]
        self.inner(new)
        self._means = [*self._means, *(float(group.rewards.mean()) for group in new if group.scored)][-_LATE:]
        self._weight = self.weight(max((group.version for group in groups), default=0))
        for rollout in (each for group in groups if group.times_trained > 1 for each in group.scored):
            rollout.set_advantage(self._weight * max(rollout.reward - self.median, 0.0))

    @property
    def median(self) -> float:
        return float(np.median(self._means)) if self._means else 0.0

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Of the last batch."""
        return {"replay_weight": self._weight, "replay_baseline": self.median}

    def state(self) -> dict[str, Any]:
        return {"means": list(self._means)}

    def restore(self, state: dict[str, Any]) -> None:
        self._means = [float(mean) for mean in state["means"]]


# SPEAR's covariance clip (2509.22601): tokens that would make the policy surer of itself most are not pushed at all.
#
# cov = (A - mean A) * (log p - mean log p) over all tokens of the batch. Reading: chosen once per batch, from the
# policy
# before the step, so that no split of a step changes it; the release chooses anew in every micro-batch. A token without
# advantage has no loss, as there. What the ratio's clip holds already is not left out of the choice.

_HIGHEST = 40.0  # covariance beyond which a token is left alone, as released


@dataclass(frozen=True)
class WithoutCovariant(Advantage):
    """What `inner` says, and 0 at a share of the tokens, at least 1, drawn from those with a covariance above `low`."""

    inner: Advantage
    share: float = 0.02  # of all written tokens of the batch
    low: float = 1.0  # covariance above which a token may lose its advantage
    seed: int = 0  # of the choice

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({LOGPROBS})

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or not 0 <= self.low < _HIGHEST:
            raise ConfigurationError(
                f"WithoutCovariant needs 0 <= share <= 1 and 0 <= low < {_HIGHEST:g}, got {self.share} and {self.low}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        rollouts = [each for group in groups for each in group.scored if each.num_tokens]
        if not rollouts or not self.share:
            return
        advantage = np.concatenate([each.advantages for each in rollouts if each.advantages is not None])  # [N]
        logprobs = np.concatenate([LOGPROBS.of(each) for each in rollouts]).astype(np.float64)  # [N]
        covariance = (advantage - advantage.mean()) * (logprobs - logprobs.mean())  # [N]
        chosen = self._chosen(covariance, max(group.version for group in groups))
        ends = np.cumsum([each.num_tokens for each in rollouts])
        for rollout, end in zip(rollouts, ends.tolist(), strict=True):
            assert rollout.advantages is not None
            own = chosen[(chosen >= end - rollout.num_tokens) & (chosen < end)]
            rollout.advantages[own - (end - rollout.num_tokens)] = 0.0

    def _chosen(self, covariance: np.ndarray, version: int) -> np.ndarray:
        """Places of the tokens that lose their advantage."""
        able = np.flatnonzero((covariance > self.low) & (covariance < _HIGHEST))
        count = min(max(int(self.share * len(covariance)), 1), len(able))
        return np.random.default_rng([self.seed, version]).choice(able, count, replace=False)


# Groups that are trained on again are averaged apart from the new ones: L(new) + L(replayed) (SPEAR, 2509.22601).


@dataclass(frozen=True)
class ReplayedApart(Reduction):
    """`inner` over the groups that are new, and once more over the others: more of these do not thin out the new."""

    inner: Reduction

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        new = [group for group in groups if group.times_trained <= 1]
        again = [group for group in groups if group.times_trained > 1]
        return {**self.inner(new), **self.inner(again)}


def spear(
    setting: Setting = Setting(env="keyvalue:3"),
    size: int = 128,  # own successes that come again together
    age: int = 10,  # versions after which they are forgotten
    rise: int = 200,  # versions until they weigh as much as new rollouts
    fall: int = 200,  # versions until the use of tools is not paid any more
    share: float = 0.02,  # of tokens that are not pushed because they covary most with their advantage
    covariance: float = 1.0,  # above which that may happen
) -> Run:
    """Self-imitation grows as exploration fades."""
    run = setting.run(
        "spear",
        WithoutCovariant(Recalibrated(GroupMean(), rise), share, covariance, setting.seed),
        (Clip(0.2, 0.28),),
        buffer=OwnSuccesses(size, age),
        reduction=ReplayedApart(ConstantLength(setting.max_tokens)),
        minibatches=2,
    )
    run.rewards = (*run.rewards, ToolCalls(fall))
    return run
