"""TON (think or not): SFT with thought dropout on part of the tasks, then GRPO decides where a chain of thought pays.

Title: Think or Not? Selective Reasoning via Reinforcement Learning for Vision-Language Models
Paper: arXiv 2505.16854 (2025)
Claim: Completions get up to 90 % shorter than with GRPO, without loss of accuracy or even with a gain.
Reading: The answer has reward 1 and the format 1, which an empty chain of thought satisfies as well as a long one;
    there is no reward for brevity. The hash of a task's id decides whether its thought is dropped. GRPO as in its
    own recipe.
Left out: Vision, and the rewards for actions on screens.
Acts: warmup/dropped_share > 0 and reward/skipped > 0 and reward/formatted > 0 with shown=3
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN, final_answer
from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.errors import ConfigurationError
from strop.filter.rewards.format import Formatted
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.roles import Agent, Dialogue, Episode, Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Metrics, Origin, Task

# Metric of empty chains of thought (TON, 2505.16854).


@dataclass(frozen=True)
class Skipped(Reward):
    """1 if the last completion starts with an empty chain of thought, else 0; a metric, with weight 0."""

    weight: float = 0.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [float(_is_empty(rollout.completion)) for rollout in group.rollouts]


def _is_empty(completion: str) -> bool:
    before, opened, rest = completion.partition(OPEN)
    thought, closed, _ = rest.partition(CLOSE)
    return bool(opened and closed) and not before.strip() and not thought.strip()


# TON's thought dropout (2505.16854): some demonstrations have empty thinking tags.
#
# Reading: the task's id decides, so that each task has the same demonstration every time.

_PLACES = 2**32


@dataclass(frozen=True)
class ThoughtDropout(Agent):
    """Demonstrations of `inner`, without the chain of thought in a share of the tasks.

    All demonstrations have thinking tags, so that the policy learns that a chain of thought may be empty.
    """

    inner: Agent
    share: float = 0.5  # share of tasks without a chain of thought
    seed: int = 0  # for the choice of tasks

    origin: ClassVar[Origin] = Origin.TEACHER

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"ThoughtDropout needs 0 <= share <= 1, got {self.share}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        rewrite = _emptied if self.is_dropped(task) else _tagged
        return await self.inner.rollout(task, dialogue, Rewritten(episode, rewrite))

    def is_dropped(self, task: Task) -> bool:
        digest = hashlib.sha256(f"{self.seed}/{task.id}".encode()).digest()
        return int.from_bytes(digest[:4], "big") < self.share * _PLACES

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metric only: the share of the batch's tasks without a chain of thought."""
        dropped = [self.is_dropped(group.task) for group in groups]
        return {"dropped_share": sum(dropped) / max(len(dropped), 1)}


def _emptied(completion: str) -> str:
    return f"{OPEN}{CLOSE}{final_answer(completion)}"


def _tagged(completion: str) -> str:
    return completion if OPEN in completion else _emptied(completion)


def ton(
    setting: Setting = Setting(env="arithmetic:2"),
    shown: int = 20,  # supervised steps on demonstrations before RL
    dropped: float = 0.5,  # share of tasks whose demonstration has no chain of thought
    kl: float = 0.04,  # weight of the KL penalty to the reference policy
) -> Run:
    """SFT with thought dropout, then GRPO with rewards for the answer and the format."""
    run = setting.run("ton", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), reduction=SequenceMean())
    before = taught(setting, "ton", shown)
    if before is not None:
        before = replace(before, agent=ThoughtDropout(Demonstrate(least=1.0), dropped, setting.seed))
    return replace(run, rewards=(*run.rewards, Formatted(), Skipped()), warmup=before)
