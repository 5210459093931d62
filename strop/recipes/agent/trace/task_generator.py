"""TRACE's curriculum (2604.05336): practice tasks for the skills that failed rollouts lack and successful ones have.

Reading: a rollout lacks a skill if more than half of `passes` independent labels list it; the labelling prompt does not
contain the outcome. The score of a skill is the share of failed rollouts that lack it minus that of successful ones.
The `most` skills with the highest positive scores are practised, each at a level where the initial weights' success
rate is within `band`. The search moves one level up where the rate is too high and down where it is too low, and gives
up when it would turn back. Skills are ranked once, after `after` labelled rollouts in the order of groups; from then on
each group is followed by one practice task.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from strop.control.task_generators.support.probing import probed
from strop.control.task_generators.support.prompts import asked
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.recipes.agent.trace.skill_practice import Practice
from strop.recipes.agent.trace.store_skills import described
from strop.recipes.agent.trace.strategy import SkillGaps
from strop.roles import LLMClient, TaskGenerator
from strop.success import is_right
from strop.text.llm_prompt import question
from strop.types import Group, Metrics, Rollout, Task

if TYPE_CHECKING:
    from strop.roles import Player

_ASKED = "Which of the requirements did this try have occasion for and not meet? Write their names, one per line."
_ROUNDING = 1e-9


@dataclass
class SkillCurriculum(TaskGenerator):
    """Task generator that labels rollouts of the target environments, ranks skills, probes levels and adds tasks.

    The default policy name has the initial weights; skills are practised by others (`PolicyPerEnvironment`).
    """

    llm_client: LLMClient | None  # labels rollouts; None: the policy itself
    practice: tuple[Practice, ...]  # one environment per skill and level
    passes: int = 10  # labels per rollout
    after: int = 64  # labelled rollouts before skills are ranked
    most: int = 3  # maximum number of practised skills
    band: tuple[float, float] = (0.2, 0.6)  # success rate of the initial weights at a skill's level
    probes: int = 16  # rollouts of the initial weights at each candidate level
    _known: SkillGaps = field(default_factory=SkillGaps, init=False, repr=False, compare=False)
    _taken: dict[str, tuple[int, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    # by number of groups that were not observed yet
    _labels: dict[int, list[tuple[bool, list[str]]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _found: dict[int, dict[str, tuple[int, float]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        low, high = self.band
        if not self.practice or min(self.passes, self.after, self.most, self.probes) < 1 or not 0 <= low <= high <= 1:
            raise ConfigurationError(
                "SkillCurriculum needs practice environments, passes, after, most and probes >= 1, and a band "
                f"0 <= low <= high <= 1; got {len(self.practice)} environments, {self.passes}, {self.after}, "
                f"{self.most}, {self.probes} and {self.band}"
            )

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if self._taken:
            skill, (level, _) = sorted(self._taken.items())[group.number % len(self._taken)]
            return [self._env(skill, level).task(group.number)]
        own = [] if group.task.source in {env.name for env in self.practice} else group.own
        labels = [(is_right(rollout), await self._lacks(rollout, play)) for rollout in own]
        self._labels[group.number] = labels
        known = self._known.joined(labels)
        if labels and sum(known.seen) >= self.after:
            self._found[group.number] = await self._chosen(known, group.task.level, play)
        return []

    async def _lacks(self, rollout: Rollout, play: Player) -> list[str]:
        """The skills in more than half of the labels."""
        steps = [
            f"{turn.message.content} -> {' ; '.join(message.content for message in after.told)}"
            for turn, after in pairwise(rollout.turns)
        ]
        asked_about = question(
            _ASKED,
            wanted="lacking",
            task=prompt_of(rollout.task),
            requirements=described(self.skills),
            ideas="\n".join(" ".join(step.split()) for step in steps),
            completion=rollout.completion,
        )
        labels = await asyncio.gather(*(asked(self.llm_client, asked_about, play) for _ in range(self.passes)))
        votes = Counter(name for label in labels for name in {line.strip() for line in label.splitlines()})
        return [skill for skill in self.skills if 2 * votes[skill] > self.passes]

    async def _chosen(self, known: SkillGaps, level: int, play: Player) -> dict[str, tuple[int, float]]:
        """The skills to practise, each with a level and the initial weights' success rate there."""
        ranked = known.ranked()[: self.most]
        found = {skill: await self._fitting(skill, level, play) for skill in ranked}
        if taken := {skill: each for skill, each in found.items() if each is not None}:
            return taken
        raise ConfigurationError(
            f"no skill to practise: {known.seen[0]} of {sum(known.seen)} rollouts failed, they lack "
            f"{ranked or 'nothing'} more often than successful ones, and at no level is the success rate of "
            f"{self.probes} rollouts within {self.band[0]:.0%} to {self.band[1]:.0%}: set another level or a wider band"
        )

    async def _fitting(self, skill: str, level: int, play: Player) -> tuple[int, float] | None:
        """The first level within the band, going up where it is too easy and down where it is too hard."""
        levels = sorted(env.level for env in self.practice if env.skill == skill)
        level, direction = min(max(level, levels[0]), levels[-1]), 0
        while level in levels:
            share = await self._success(self._env(skill, level), play)
            step = (share > self.band[1] + _ROUNDING) - (share < self.band[0] - _ROUNDING)
            if step == 0:
                return level, share
            if step == -direction:
                return None
            level, direction = level + step, step
        return None

    async def _success(self, env: Practice, play: Player) -> float:
        scores = await asyncio.gather(*(probed(env.task(index), 1, play) for index in range(self.probes)))
        return sum(score or 0.0 for score in scores) / self.probes

    def observe(self, group: Group) -> None:
        """Add the labels of a group, in the order in which groups are observed."""
        labels, found = self._labels.pop(group.number, []), self._found.pop(group.number, {})
        if not self._taken:  # later groups started before the ranking
            self._known, self._taken = self._known.joined(labels), found

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: the gap of each skill, the practised levels, and the initial weights' success rates there."""
        metrics: Metrics = {"practised": float(len(self._taken))}
        for skill in self.skills:
            metrics[f"lacking/{skill}"] = self._known.gap(skill)
        for skill, (level, share) in self._taken.items():
            metrics |= {f"practice_level/{skill}": float(level), f"practice_before/{skill}": share}
        return metrics

    @property
    def skills(self) -> list[str]:
        return list(dict.fromkeys(env.skill for env in self.practice))

    def _env(self, skill: str, level: int) -> Practice:
        return next(env for env in self.practice if (env.skill, env.level) == (skill, level))

    def state(self) -> dict[str, Any]:
        return {"known": self._known.state(), "taken": {skill: list(each) for skill, each in self._taken.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._known = SkillGaps(**state["known"])
        self._taken = {skill: (int(level), float(share)) for skill, (level, share) in state["taken"].items()}
