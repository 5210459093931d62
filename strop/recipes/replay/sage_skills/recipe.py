"""SAGE: chains of two related tasks; skills saved by the first rollout help the second, both are rewarded for use.

Title: Reinforcement Learning for Self-Improving Agent with Skill Library
Paper: arXiv 2512.17102 (2025)
Claim: On AppWorld 8.9 % more scenarios completed, with 26 % fewer steps and 59 % fewer tokens.
Reading: The library is empty for the first task; the second rollout of a chain reads what the first one saved. Rewards
    minus the mean of their position in the chain, without division, no KL penalty, PPO clipping. A rollout without a
    skill gets -1, as a missing program does in the paper. Skills are steps of the chain of thought, in place of
    functions; a scenario is two sums with a common beginning, or rows of a table with the same `scenario`, in place of
    the tasks of an app.
Left out: Supervised fine-tuning before, and retrieval of skills of the same scenario at test time.
Acts: fact/used > 0
Break: most=0: no skill is passed on
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.capabilities import Relates
from strop.concurrency import together
from strop.environments.data.lookup import env_of
from strop.environments.needs import RELATIVES, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.rewards.weighted_sum import as_one
from strop.models.loading.model_names import BUNDLED
from strop.recipes.replay.sage_skills.reward import SkillUsed, skills_of
from strop.recipes.setting import Setting
from strop.roles import Environment, Player, Strategy
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Message, Origin, Rollout, Start, Task

# SAGE's sequential rollouts (2512.17102): a task, then one of the same scenario with the skills of the first.
#
# Reading: a skill is a step of the first chain of thought; it counts as used if the second contains it word for word.
# Skills follow the second question; of the bundled model, in the place where it was trained to read hints.

HINTED = "{question} hint: {skills}"
TOLD = "{question}\n\nFrom a similar task that was done before:\n{skills}\n\nUse what helps."


@dataclass(frozen=True)
class SkillChain(Strategy):
    """Each start is a chain of two rollouts, one per comparison group: `first` and `second`.

    The fact `used` of a second rollout is 1 if it used a skill of its first one, its parent.
    """

    envs: tuple[Environment, ...]
    most: int = 1  # skills kept of a first rollout
    asks: str = HINTED  # how the second rollout reads them: {question} and {skills}

    def __post_init__(self) -> None:
        if self.most < 0:
            raise ConfigurationError(f"SkillChain needs most >= 0, got {self.most}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        env = env_of(self.envs, group.task)
        if not isinstance(env, Relates):
            raise ConfigurationError(RELATIVES.unmet([env])[0])
        task = env.relative(group.task, starts[0].key)
        others = [play.another() for _ in starts]  # made here, so that ids do not depend on which rollout ends first
        pairs = zip(starts, others, strict=True)
        chains = await together(self._chain(start, other, task, play) for start, other in pairs)
        return [rollout for chain in chains for rollout in chain]

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (RELATIVES,)

    async def _chain(self, start: Start, other: Start, task: Task, play: Player) -> list[Rollout]:
        first = await play(replace(start, comparison_group="first"))
        if not first.is_scored:
            return [first]
        kept = skills_of(first.completion)[: self.most]
        follow_up = replace(
            other,
            messages=_shown(task, kept, self.asks),
            comparison_group="second",
            origin=Origin.GUIDED,
            parent=first.id,
        )
        second = await play(follow_up, task=task)
        second.facts["used"] = float(bool(set(kept) & set(skills_of(second.completion))))
        return [first, second]


def _shown(task: Task, skills: Sequence[str], asks: str) -> tuple[Message, ...]:
    if not skills:
        return task.messages
    *before, last = task.messages
    joined = (" " if asks == HINTED else "\n").join(skills)
    return (*before, replace(last, content=asks.format(question=last.content, skills=joined)))


def sage_skills(
    setting: Setting = Setting(),
    most: int = 1,  # skills of a first rollout that the second one reads
) -> Run:
    """Groups of group_size chains of two rollouts."""
    run = setting.run("sage_skills", GroupMean(), (Clip(0.2, 0.2),), reduction=SequenceMean())
    run.strategy = SkillChain(run.envs, most, HINTED if setting.model in BUNDLED else TOLD)
    judged = as_one(run.rewards)
    run.rewards = (SkillUsed(judged),)
    return run
