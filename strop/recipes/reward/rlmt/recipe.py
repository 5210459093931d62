"""RLMT: GRPO with chain of thought against a reward model that reads the final response alone.

Title: Language Models that Think, Chat Better
Paper: arXiv 2509.20357 (2025)
Claim: Thinking before a chat response that a reward model judges brings 3 to 7 points on three chat benchmarks.
Reading: A completion without the required layout is judged as the text "[NULL]", as released for models that know the
    layout. A rule that compares letters with the right answer stands in for the preference reward model; it reads the
    whole text that it gets. The environment's own reward is logged with weight 0. The optimizer's hyperparameters were
    not found: one optimizer step per batch, and no KL penalty.
Left out: Reward models that are trained, prompts of real users, warm-up on another model's thoughts, and the DPO and
    PPO versions.
Acts: hidden_share > 0 and reward/thought_blind > 0
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from strop.recipes.environment_specs import measured
from strop.recipes.reward.rlmt.reward import ThoughtBlind
from strop.recipes.setting import Setting
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group

# Stand-in for a preference reward model: it prefers texts that contain the answer's letters and nothing else.
#
# It reads the whole text, as a reward model does, so longer texts than the answer score less.


@dataclass(frozen=True)
class LikeAnswer(Reward):
    """Twice the shared letters of the last completion and the task's answer, over all letters of both: 0 to 1."""

    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [likeness(rollout.completion, rollout.task.answer) for rollout in group.rollouts]


def likeness(one: str, other: str) -> float:
    """Letter overlap, regardless of order and of blanks at the ends."""
    first, second = Counter(one.strip()), Counter(other.strip())
    return 2 * (first & second).total() / max(first.total() + second.total(), 1)


def rlmt(
    setting: Setting = Setting(),
    strict: bool = True,  # judge completions without the layout as "[NULL]"; false: as they are, thought included
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """Thought and response are trained, only the response is judged."""
    run = setting.run("rlmt", GroupStandard(), (Clip(clip, clip),))
    run.rewards = (ThoughtBlind(LikeAnswer(), strict), measured(run.envs))
    return run
