"""MSRL: staged RL of a pairwise judge with group-mean advantages: first texts, then captions of images and videos.

Title: MSRL: Scaling Generative Multimodal Reward Modeling via Multi-Stage Reinforcement Learning
Paper: arXiv 2603.25108 (2026)
Claim: An 8B judge of images and videos gains 9.3 points on VL-RewardBench and 5.5 on GenAI-Bench.
Reading: As released: 1 for the right label, 0.2 for its tags, from the second stage on 0.2 for the type of task (0.04
    in the release, which multiplies twice); groups of 8, clip bounds of 0.2 and 0.28, no KL penalty, and advantages not
    divided by the standard deviation. The share of text in the second stage was not found: a quarter. Pairs are worked
    solutions and mistakes that rules make. The supervised warm-up also shows captions: the bundled model follows no
    instructions and would never name a type unprompted.
Left out: Images and videos themselves; with them the third stage and the distillation from captions to media.
Acts: fact/typed > 0 and reward/tagged_verdict > 0 with warmup_steps=24, textual=1, env=arithmetic:1, temperature=0.1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.control.samplers.fixed_mixture import Mixture
from strop.environments.judging.preferences import Preferences
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.reward.msrl.environment import CAPTIONS, TEXT, BetterOfTwo, PairVerdict, told, truth_of
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Environment, Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Rollout

# MSRL's reward for a judge (2603.25108): a right label, tags in order, and the right type of task.
#
# The release accepts a bare label without tags and tags in any order and number, and multiplies the 0.2 for a type by
# 0.2 again. Here a label counts only between its tags, each tag once and in order, and the type is worth 0.2.


@dataclass(frozen=True)
class TaggedVerdict(Reward):
    """1 for the label of the better completion, `layout` for tags in order, `kind` for the type of captioned media.

    The last two are also facts of a rollout: `laid_out` and, for captions, `typed`.
    """

    layout: float = 0.2
    kind: float = 0.0
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if min(self.layout, self.kind) < 0 or not self.layout + self.kind < 1:
            raise ConfigurationError(
                "TaggedVerdict needs layout >= 0, kind >= 0 and layout + kind < 1, the reward of a right label; "
                f"got {self.layout} and {self.kind}"
            )

    def __call__(self, group: Group) -> list[float]:
        truth = truth_of(group.task)
        return [self._score(rollout, truth) for rollout in group.rollouts]

    def _score(self, rollout: Rollout, truth: PairVerdict) -> float:
        verdict = told(rollout.completion)
        rollout.facts["laid_out"] = float(verdict.is_laid_out)
        score = (verdict.label == truth.label) + self.layout * verdict.is_laid_out
        if truth.kind == TEXT:
            return score
        rollout.facts["typed"] = float(verdict.kind == truth.kind)
        return score + self.kind * rollout.facts["typed"]


def msrl(
    setting: Setting = Setting(env="arithmetic:3", max_tokens=80),
    warmup_steps: int = BundledOnly(40),  # supervised warm-up steps before RL
    textual: int = 50,  # steps of the first stage, on texts alone
    replayed: float = 0.25,  # share of texts in the second stage
    layout: float = 0.2,  # reward of tags in order
    kind: float = 0.2,  # reward of the right type of task, in the second stage
) -> Run:
    """`textual` steps of the first stage come before `steps` of the second."""
    if not 0 <= replayed < 1:
        raise ConfigurationError(f"msrl needs 0 <= replayed < 1, got {replayed}")
    start = shown(setting, "msrl", warmup_steps)
    if start is not None:
        wrap_envs(start, _every_kind)
    if textual:
        first = _stage(replace(setting, steps=textual, heldout_every=0), _texts, TaggedVerdict(layout))
        first.warmup, start = start, first
    run = _stage(setting, _every_kind, TaggedVerdict(layout, kind))
    shares = (replayed, *((1 - replayed) / len(CAPTIONS) for _ in CAPTIONS))
    run.sampler = Mixture(run.envs, shares * (len(run.envs) // len(shares)), setting.seed)
    run.warmup = start
    return run


def _stage(setting: Setting, kinds: Callable[[Environment], Sequence[Environment]], reward: TaggedVerdict) -> Run:
    run = setting.run("msrl", GroupMean(), (Clip(0.2, 0.28),), reduction=SequenceMean())
    wrap_envs(run, kinds)
    run.rewards = (reward, Earned(weight=0.0))
    return run


def _texts(env: Environment) -> Sequence[Environment]:
    return (BetterOfTwo(Preferences(env)),)


def _every_kind(env: Environment) -> Sequence[Environment]:
    return tuple(BetterOfTwo(Preferences(env), each) for each in (TEXT, *CAPTIONS))
