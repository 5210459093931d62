"""GRPO against a judge who reads the response alone, not the thought that led to it.

Title: Language Models that Think, Chat Better
Paper: arXiv 2509.20357 (2025)
Claim: Thinking before a chat response that a reward model judges brings 3 to 7 points on three chat benchmarks.
Reading: What is laid out otherwise is judged as the text "[NULL]", as released for models that know the layout. A rule
    that compares letters with the right answer stands for the reward model of preferences; it reads all that it is
    shown. What the environment would have paid is logged and weighs nothing. Numbers of the optimizer were not found:
    one step per batch, and no penalty to the reference.
Left out: Reward models that are trained, prompts of real users, warm-up on another model's thoughts, and the DPO and
    PPO versions.
Acts: hidden_share > 0 and reward/thought_blind > 0
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from strop.filter.rewards.thought_blind import ThoughtBlind
from strop.recipes.environment_specs import measured
from strop.recipes.setting import Setting
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group

# A stand-in for a model of preferences: it likes texts that say what the answer says, and nothing else.
#
# It reads the whole text that it is shown, as a reward model does, so one that says more than the answer is liked less.


@dataclass(frozen=True)
class LikeAnswer(Reward):
    """Twice the letters that the last completion and the task's answer have in common, by all letters of both: 0 to
    1.
    """

    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [likeness(rollout.completion, rollout.task.answer) for rollout in group.rollouts]


def likeness(one: str, other: str) -> float:
    """Order does not count, blanks at the ends neither."""
    first, second = Counter(one.strip()), Counter(other.strip())
    return 2 * (first & second).total() / max(first.total() + second.total(), 1)


def rlmt(
    setting: Setting = Setting(),
    strict: bool = True,  # what is not laid out is judged as "[NULL]"; or as it is, thought included
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """Thought and response are trained, the response is judged."""
    run = setting.run("rlmt", GroupStandard(), (Clip(clip, clip),))
    run.rewards = (ThoughtBlind(LikeAnswer(), strict), measured(run.envs))
    return run
