"""Answers with and without thoughts are shown, then GRPO finds out where thinking pays.

Title: Think or Not? Selective Reasoning via Reinforcement Learning for Vision-Language Models
Paper: arXiv 2505.16854 (2025)
Claim: Completions get up to 90 % shorter than with GRPO, without loss of accuracy or even with a gain.
Reading: The task's answer pays 1 and the format 1, which an empty thought satisfies as well as a long one; there is no
    reward for brevity. A task's thought is left out by the hash of its name. GRPO as in its own recipe.
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
from strop.generate.interfaces import Dialogue
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.roles import Agent, Episode, Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Metrics, Origin, Task

# Whether the policy left its thought empty (TON, 2505.16854): by itself worth nothing, a metric to watch.


@dataclass(frozen=True)
class Skipped(Reward):
    """1 where the last completion begins with tags around nothing, else 0; skipping spreads without pay, or not at
    all.
    """

    weight: float = 0.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [float(_is_empty(rollout.completion)) for rollout in group.rollouts]


def _is_empty(completion: str) -> bool:
    before, opened, rest = completion.partition(OPEN)
    thought, closed, _ = rest.partition(CLOSE)
    return bool(opened and closed) and not before.strip() and not thought.strip()


# TON's dropout of thoughts (2505.16854): of some demonstrations the working is left out and its tags stay, empty.
#
# Reading: which ones, the task's name decides, so that a task is shown the same way each time.

_PLACES = 2**32


@dataclass(frozen=True)
class ThoughtDropout(Agent):
    """`inner` shows what the environment demonstrates, without working at a share of the tasks.

    Every answer has tags, or nobody could learn to leave a thought empty.
    """

    inner: Agent
    share: float = 0.5  # of tasks whose working is left out
    seed: int = 0  # of the choice

    origin: ClassVar[Origin] = Origin.TEACHER

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"ThoughtDropout needs 0 <= share <= 1, got {self.share}")

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        rewrite = _emptied if self.is_dropped(task) else _tagged
        return await self.inner.rollout(task, dialogue, Rewritten(episode, rewrite))

    def is_dropped(self, task: Task) -> bool:
        name = hashlib.sha256(f"{self.seed}/{task.id}".encode()).digest()
        return int.from_bytes(name[:4], "big") < self.share * _PLACES

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How many tasks of the batch were shown without a thought."""
        dropped = [self.is_dropped(group.task) for group in groups]
        return {"dropped_share": sum(dropped) / max(len(dropped), 1)}


def _emptied(completion: str) -> str:
    return f"{OPEN}{CLOSE}{final_answer(completion)}"


def _tagged(completion: str) -> str:
    return completion if OPEN in completion else _emptied(completion)


def ton(
    setting: Setting = Setting(env="arithmetic:2"),
    shown: int = 20,  # supervised steps on demonstrations before RL
    dropped: float = 0.5,  # share of tasks that are shown without a thought
    kl: float = 0.04,  # weight of the KL penalty to the reference policy
) -> Run:
    """Thoughts are dropped in demonstrations; whether to think is left to the rewards."""
    run = setting.run("ton", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), reduction=SequenceMean())
    before = taught(setting, "ton", shown)
    if before is not None:
        before = replace(before, agent=ThoughtDropout(Demonstrate(least=1.0), dropped, setting.seed))
    return replace(run, rewards=(*run.rewards, Formatted(), Skipped()), warmup=before)
