"""SPEAR: self-imitation of own successes with a rising weight, a fading tool-call bonus, and a covariance clip.

Title: Learn the Ropes, Then Trust the Wins: Self-imitation with Progressive Exploration for Agentic Reinforcement
    Learning
Paper: arXiv 2509.22601 (2025)
Claim: Up to 16.1, 5.1 and 8.6 points more than GRPO, GiGPO and Dr.BoT on ALFWorld and up to 20.7 on WebShop.
Reading: GRPO without division by the standard deviation; clip 0.2/0.28 on the ratio to the sampling policy, also for
    replayed rollouts. The whole memory is replayed once it holds 128 rollouts; the release uses 2,048, with steps 16
    times as large. The replayed loss is a separate mean, weighted by the schedule and added to that of new rollouts in
    each of a batch's two optimizer steps (64 of 128 tasks). The release takes separate optimizer steps for it, where
    Adam would undo most of the weight.
Left out: The release's own ratio clip for long completions, and its filter of truncated completions.
Acts: replayed_share > 0 and replay_weight > 0 and advantage_within > 0 and reward/tool_calls > 0
    with size=4, rise=3, covariance=0.2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from strop.environments.needs import TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.replay.memory.held_groups import Replaying
from strop.roles import Advantage, Reduction, Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.means import ConstantLength
from strop.training.requirements import LOGPROBS, PolicyStatistic
from strop.types import FloatArray, Group, Metrics, Rollout

# SPEAR's exploration bonus (2509.22601): a reward per tool call that fades to 0.
#
# Reading: a call counts if the environment answered it, also with an error.

_EACH = 0.1  # reward per call, at most 1 in total


@dataclass(frozen=True)
class ToolCalls(Reward):
    """fade * min(1, uses / 10), with fade = (1 + cos(pi t / fall)) / 2 at version t of the group, 0 from `fall` on."""

    fall: int = 200  # versions until the bonus is 0
    weight: float = 1.0  # of this reward in the sum

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "tool_calls"
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)

    def __post_init__(self) -> None:
        if self.fall < 1:
            raise ConfigurationError(f"ToolCalls needs fall >= 1, got {self.fall}")

    def fade(self, version: int) -> float:
        return (1 + math.cos(math.pi * min(version / self.fall, 1.0))) / 2

    def __call__(self, group: Group) -> list[float]:
        return [self.fade(group.version) * min(1.0, _EACH * uses(rollout)) for rollout in group.rollouts]


def uses(rollout: Rollout) -> int:
    """Number of tool results in the rollout."""
    return sum(message.role == "tool" for turn in rollout.turns for message in turn.told)


# SPEAR's replay memory (2509.22601): rollouts better than their siblings, replayed together once there are enough.
#
# Reading: "better" is a reward above the group mean, that is a positive advantage. All waiting rollouts are replayed at
# once, in groups of their own, and only once; waiting rollouts that grow too old are dropped. They are spread over the
# batch, so that each of its optimizer steps has the same share of new and replayed groups.


@dataclass
class OwnSuccesses(Replaying):
    """New groups once, oldest first; plus all waiting better rollouts once there are `size` of them."""

    size: int = 128  # rollouts that are replayed together
    age: int = 10  # versions after which a waiting rollout is dropped

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
    """Both lists interleaved evenly, each in its own order."""
    places = [(place / len(groups), group) for groups in (new, again) for place, group in enumerate(groups)]
    return [group for _, group in sorted(places, key=lambda each: each[0])]


def _better(group: Group) -> list[Rollout]:
    return [rollout for rollout in group.own if rollout.reward > group.rewards.mean()]


# SPEAR's advantage of replayed rollouts (2509.22601): reward minus the median of recent group means, times a rising
# weight.
#
# Reading: the mean of a replayed rollout's own group is out of date. The baseline is therefore the median over the last
# 10,240 new groups, including this batch. Rollouts below it have advantage 0 and still count in the mean. The step is
# the newest version in the batch.

_LATE = 10_240  # recent groups whose mean rewards are kept


@dataclass
class Recalibrated(Advantage):
    """`inner` for new groups; weight * max(reward - median, 0) for replayed ones.

    The weight is (1 - cos(pi t / rise)) / 2 at version t, 1 from `rise` on.
    """

    inner: Advantage
    rise: int = 200  # versions over which the weight of replayed rollouts rises from 0 to 1
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
        """Weight and baseline of the last batch."""
        return {"replay_weight": self._weight, "replay_baseline": self.median}

    def state(self) -> dict[str, Any]:
        return {"means": list(self._means)}

    def restore(self, state: dict[str, Any]) -> None:
        self._means = [float(mean) for mean in state["means"]]


# SPEAR's covariance clip (2509.22601): no gradient for tokens that would reduce the entropy most.
#
# cov = (A - mean A) * (log p - mean log p) over all tokens of the batch. Reading: tokens are chosen once per batch,
# under the policy before the step, so the split into micro-batches does not matter; the release chooses in every
# micro-batch. A token with advantage 0 has no loss, as in the release. Tokens that PPO clipping already holds may be
# chosen, too.

_HIGHEST = 40.0  # covariance above which a token is never chosen, as in the release


@dataclass(frozen=True)
class CovarianceClip(Advantage):
    """The advantage of `inner`, set to 0 at a random share (at least 1) of the tokens with a covariance above `low`."""

    inner: Advantage
    share: float = 0.02  # of all sampled tokens of the batch
    low: float = 1.0  # covariance above which a token may lose its advantage
    seed: int = 0  # of the random choice

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({LOGPROBS})

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or not 0 <= self.low < _HIGHEST:
            raise ConfigurationError(
                f"CovarianceClip needs 0 <= share <= 1 and 0 <= low < {_HIGHEST:g}, got {self.share} and {self.low}"
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
        """Indices of the tokens that lose their advantage."""
        able = np.flatnonzero((covariance > self.low) & (covariance < _HIGHEST))
        count = min(max(int(self.share * len(covariance)), 1), len(able))
        return np.random.default_rng([self.seed, version]).choice(able, count, replace=False)


# New and replayed groups are averaged separately: L(new) + L(replayed) (SPEAR, 2509.22601).


@dataclass(frozen=True)
class SeparateReplayMean(Reduction):
    """`inner` over new groups plus `inner` over replayed ones: more replay does not shrink the weight of new groups."""

    inner: Reduction

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        new = [group for group in groups if group.times_trained <= 1]
        again = [group for group in groups if group.times_trained > 1]
        return {**self.inner(new), **self.inner(again)}


def spear(
    setting: Setting = Setting(env="keyvalue:3"),
    size: int = 128,  # own successes that are replayed together
    age: int = 10,  # versions after which a waiting success is dropped
    rise: int = 200,  # versions until replayed rollouts have the weight of new ones
    fall: int = 200,  # versions until the tool-call bonus is 0
    share: float = 0.02,  # share of tokens without gradient, chosen among those of high covariance
    covariance: float = 1.0,  # covariance above which a token may be chosen
) -> Run:
    """Self-imitation grows as the exploration bonus fades."""
    run = setting.run(
        "spear",
        CovarianceClip(Recalibrated(GroupMean(), rise), share, covariance, setting.seed),
        (Clip(0.2, 0.28),),
        buffer=OwnSuccesses(size, age),
        reduction=SeparateReplayMean(ConstantLength(setting.max_tokens)),
        minibatches=2,
    )
    run.rewards = (*run.rewards, ToolCalls(fall))
    return run
