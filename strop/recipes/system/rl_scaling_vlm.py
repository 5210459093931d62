"""Four plain steps, no critic, and metrics of how training goes: length, reflection, whether reflecting pays.

Title: Rethinking RL Scaling for Vision Language Models: A Transparent, From-Scratch Framework and Comprehensive
    Evaluation Scheme
Paper: arXiv 2504.02587 (2025)
Claim: Lengths depend on the seed, reflection goes with length, and RL carries over further than supervised training.
Reading: The script's setting: a right answer is worth 1, one closed thought 1 (with nothing before it and an answer
    behind it, which the release does not ask), foreign script costs; what has no end is worth -0.1, whatever it says.
    Returns of tokens without a KL, standardised over the batch: the release adds the mean again after it divided, so
    that its advantage is not centred, and divides by the spread of a sample. A penalty to the reference in the loss. 4
    optimizer steps per batch are ours, 32 the release's. Rate and lengths are those of the bundled model. It never
    reflects by itself, so demonstrations with "wait" before one of their steps are shown first. Several seeds are
    `strop compare`'s work.
Left out: Images, and the vision tower that does not learn.
Acts: reflecting > 0 and reward/whole_or_less > 0 and reference_kl != 0 and clipped_share > 0
    and warmup/nll > 0 with taught=8
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.reward_values import plain_scores
from strop.filter.rewards.format import Formatted
from strop.generate.agents.demonstrate_reflection import DemonstrateReflection
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Reward
from strop.run import Run
from strop.success import is_right, paid
from strop.training.advantages.token_returns import TokenReturns
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Metrics, Outcome, Rollout

# The share of Chinese characters in what was said (MAYE, 2504.02587), whose reward takes it off.

_FIRST, _LAST = "\u4e00", "\u9fff"  # of the common ideographs


@dataclass(frozen=True)
class ForeignScript(Reward):
    """Ideographs among all characters of a rollout's completions, from 0 to 1; nothing said is 0."""

    weight: float = -0.1

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "foreign_script"

    def __call__(self, group: Group) -> list[float]:
        return [_share(rollout) for rollout in group.rollouts]


def _share(rollout: Rollout) -> float:
    said = "".join(turn.message.content for turn in rollout.turns)
    return sum(_FIRST <= letter <= _LAST for letter in said) / max(len(said), 1)


# Signs of reflection, as a metric and not as pay (MAYE, 2504.02587): who looks again, and is it worth it?
#
# Reading: the release looks for its 15 words anywhere in a text, so that "yet" stands in "poetry"; here they are whole
# words. A share of nothing is missing, where the release says 0.

WORDS = (
    *("re-check", "re-evaluate", "re-examine", "re-think", "recheck", "reevaluate", "reexamine", "reevaluation"),
    *("rethink", "check again", "think again", "try again", "verify", "wait", "yet"),
)


@dataclass(frozen=True)
class Reflects(Reward):
    """1 where a completion of the rollout holds one of the words; without weight it is only counted."""

    words: tuple[str, ...] = WORDS
    weight: float = 0.0

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "reflects"

    def __post_init__(self) -> None:
        if not self.words or not all(word.strip() for word in self.words):
            raise ConfigurationError(f"Reflects needs at least 1 word and none that is empty, got {self.words}")

    def __call__(self, group: Group) -> list[float]:
        return [float(bool(self.found(rollout))) for rollout in group.rollouts]

    def found(self, rollout: Rollout) -> list[str]:
        """The words that occur in what the policy said."""
        said = "\n".join(turn.message.content for turn in rollout.turns).lower()
        # most words are nowhere, which is found out much sooner than where they stand alone
        return [word for word in self.words if word in said and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said)]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How common each word is, and whether rollouts that reflect are right more often; nothing is remembered."""
        rollouts = [rollout for group in groups for rollout in group.own]
        found = [self.found(rollout) for rollout in rollouts]
        reflects, right = [bool(each) for each in found], [is_right(paid(rollout)) for rollout in rollouts]
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
    """Of those that are `among`, how many have the flag; None where there is nobody."""
    chosen = [flag for flag, is_among in zip(flags, among, strict=True) if is_among]
    return sum(chosen) / len(chosen) if chosen else None


def _count(word: str, found: Sequence[Sequence[str]]) -> float:
    return float(sum(word in each for each in found))


# MAYE's rule for completions without an end (2504.02587): their whole score is replaced, a right answer in them or not.


@dataclass(frozen=True)
class WholeOrLess(Reward):
    """The weighted sum of `parts`; `instead` for a rollout that was cut off, or wrote fewer tokens than `least`."""

    parts: tuple[Reward, ...]
    instead: float = -0.1
    least: int = 1  # tokens of a rollout
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # where its parts are
    name: ClassVar[str] = "whole_or_less"

    def __post_init__(self) -> None:
        if not self.parts or self.least < 0:
            raise ConfigurationError(f"WholeOrLess needs parts and least >= 0, got {len(self.parts)} and {self.least}")

    def __call__(self, group: Group) -> list[float]:
        scores = [[part.weight * score for score in plain_scores(self, part, group)] for part in self.parts]
        sums = [sum(each) for each in zip(*scores, strict=True)]
        return [self._score(rollout, total) for rollout, total in zip(group.rollouts, sums, strict=True)]

    def _score(self, rollout: Rollout, total: float) -> float:
        is_whole = rollout.outcome is Outcome.FINISHED and rollout.num_tokens >= self.least
        return total if is_whole else self.instead


def rl_scaling_vlm(
    setting: Setting = Setting(),
    layout: float = 1.0,  # for exactly one closed thought
    foreign: float = 0.1,  # price of a completion that is Chinese throughout
    instead: float = -0.1,  # of a completion without an end
    least: int = 1,  # tokens of a rollout that is judged at all
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 4,  # optimizer steps per batch
    taught: int = 4,  # steps of supervised training on reflections first
) -> Run:
    """What is right, laid out and whole is paid; who reflects is counted."""
    run = setting.run("rl_scaling_vlm", TokenReturns(kl=0.0), (Clip(clip, clip), Kl("k3", kl)), minibatches=minibatches)
    (judged,) = run.rewards
    parts = (judged, Formatted(weight=layout), ForeignScript(-foreign))
    run.rewards = (WholeOrLess(parts, instead, least), replace(judged, weight=0.0), Reflects())  # type: ignore[type-var]
    if (examples := shown(setting, "rl_scaling_vlm", taught)) is not None:
        run.warmup = replace(examples, agent=DemonstrateReflection(examples.agent, "wait "))
    return run
