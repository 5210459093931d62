"""MAYE: critic-free policy gradient with PPO clipping and batch-standardized returns, plus reflection metrics.

Title: Rethinking RL Scaling for Vision Language Models: A Transparent, From-Scratch Framework and Comprehensive
    Evaluation Scheme
Paper: arXiv 2504.02587 (2025)
Claim: Lengths depend on the seed, reflection goes with length, and RL carries over further than supervised training.
Reading: The script's setting: reward 1 for a right answer, 1 for one closed chain of thought (with nothing before it
    and an answer after it, which the release does not require), a penalty for Chinese characters; a truncated
    completion gets -0.1 instead of all these. Returns per token without a KL penalty, standardized over the batch. The
    release adds the mean again after the division, so that its advantage is not centred, and divides by the sample
    std. The KL penalty to the reference policy is in the loss. 4 optimizer steps per batch are ours, 32 the release's.
    Learning rate and lengths are those of the bundled model. It never reflects by itself, so supervised steps on
    demonstrations with "wait" before one of their steps come first. Use `strop compare` for several seeds.
Left out: Images, and the frozen vision tower.
Acts: reward/whole_or_less > 0 and reference_kl != 0 and clipped_share > 0
    and warmup/nll > 0 with warmup_steps=8
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.filter.rewards.format import Formatted
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.agents.demonstrate_reflection import DemonstrateReflection
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Reward
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Metrics, Outcome, Rollout

# MAYE's language penalty (2504.02587): the share of Chinese characters.

_FIRST, _LAST = "\u4e00", "\u9fff"  # range of the CJK unified ideographs


@dataclass(frozen=True)
class ForeignScript(Reward):
    """Share of ideographs among the characters of a rollout's completions; 0 for empty completions."""

    weight: float = -0.1

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "foreign_script"

    def __call__(self, group: Group) -> list[float]:
        return [_share(rollout) for rollout in group.rollouts]


def _share(rollout: Rollout) -> float:
    text = "".join(turn.message.content for turn in rollout.turns)
    return sum(_FIRST <= letter <= _LAST for letter in text) / max(len(text), 1)


# MAYE's reflection metrics (2504.02587).
#
# Reading: the release finds its 15 words anywhere in a text, so that "yet" is in "poetry"; here they are whole
# words. A share of an empty set is missing; the release reports 0.

WORDS = (
    *("re-check", "re-evaluate", "re-examine", "re-think", "recheck", "reevaluate", "reexamine", "reevaluation"),
    *("rethink", "check again", "think again", "try again", "verify", "wait", "yet"),
)


@dataclass(frozen=True)
class Reflects(Reward):
    """1 if a completion of the rollout contains one of the words; a metric, with weight 0."""

    words: tuple[str, ...] = WORDS
    weight: float = 0.0

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "reflects"
    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.words or not all(word.strip() for word in self.words):
            raise ConfigurationError(f"Reflects needs at least 1 word and none that is empty, got {self.words}")

    def __call__(self, group: Group) -> list[float]:
        return [float(bool(self.found(rollout))) for rollout in group.rollouts]

    def found(self, rollout: Rollout) -> list[str]:
        """The words that occur in the rollout's completions."""
        text = "\n".join(turn.message.content for turn in rollout.turns).lower()
        # the substring test is much faster than the regular expression, and most words do not occur
        return [word for word in self.words if word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: counts of each word, and accuracy of rollouts with and without reflection."""
        rollouts = [rollout for group in groups for rollout in group.own]
        found = [self.found(rollout) for rollout in rollouts]
        reflects, right = [bool(each) for each in found], [is_right(rollout) for rollout in rollouts]
        shares = {
            "reflecting": _share_of_reflects(reflects, [True] * len(right)),
            "reflecting_of_right": _share_of_reflects(reflects, right),
            "reflecting_of_wrong": _share_of_reflects(reflects, [not each for each in right]),
            "right_of_reflecting": _share_of_reflects(right, reflects),
            "right_of_others": _share_of_reflects(right, [not each for each in reflects]),
        }
        known = {name: share for name, share in shares.items() if share is not None}
        return known | {f"says/{word}": _count(word, found) for word in self.words if _count(word, found)}


def _share_of_reflects(flags: Sequence[bool], among: Sequence[bool]) -> float | None:
    """Share of the flags where `among` is true; None for an empty set."""
    chosen = [flag for flag, is_among in zip(flags, among, strict=True) if is_among]
    return sum(chosen) / len(chosen) if chosen else None


def _count(word: str, found: Sequence[Sequence[str]]) -> float:
    return float(sum(word in each for each in found))


# MAYE's rule for truncated completions (2504.02587): a fixed reward, even with a right answer.


@dataclass(frozen=True)
class WholeOrLess(Reward):
    """The weighted sum of `parts`; `instead` for a truncated rollout or one with fewer tokens than `least`."""

    parts: tuple[Reward, ...]
    instead: float = -0.1
    least: int = 1  # minimum tokens of a rollout
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # if its parts are
    name: ClassVar[str] = "whole_or_less"

    def __post_init__(self) -> None:
        if not self.parts or self.least < 0:
            raise ConfigurationError(f"WholeOrLess needs parts and least >= 0, got {len(self.parts)} and {self.least}")

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, lambda *scores: self._sums(group, scores), *self.parts)

    def _sums(self, group: Group, scores: Sequence[Sequence[float]]) -> list[float]:
        paid = [[part.weight * score for score in each] for part, each in zip(self.parts, scores, strict=True)]
        sums = [sum(each) for each in zip(*paid, strict=True)]
        return [self._score(rollout, total) for rollout, total in zip(group.rollouts, sums, strict=True)]

    def _score(self, rollout: Rollout, total: float) -> float:
        is_whole = rollout.outcome is Outcome.FINISHED and rollout.num_tokens >= self.least
        return total if is_whole else self.instead


def rl_scaling_vlm(
    setting: Setting = Setting(),
    layout: float = 1.0,  # reward for exactly one closed chain of thought
    foreign: float = 0.1,  # penalty of a completion of Chinese characters only
    instead: float = -0.1,  # reward of a truncated completion
    least: int = 1,  # minimum tokens of a rollout that is scored
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 4,  # optimizer steps per training batch
    warmup_steps: int = BundledOnly(4),  # supervised steps on demonstrations with reflection before RL
) -> Run:
    """Rewards for correctness, format and completeness; reflection is a metric."""
    run = setting.run("rl_scaling_vlm", TokenReturns(kl=0.0), (Clip(clip, clip), Kl("k3", kl)), minibatches=minibatches)
    judged = as_one(run.rewards)
    parts = (judged, Formatted(weight=layout), ForeignScript(-foreign))
    run.rewards = (WholeOrLess(parts, instead, least), Reflects())
    if (examples := shown(setting, "rl_scaling_vlm", warmup_steps)) is not None:
        run.warmup = replace(examples, agent=DemonstrateReflection(examples.agent, "wait "))
    return run
