"""TRACE's curriculum (2604.05336): what failed rollouts lack and successful ones do not is practised in its own
environment.

Reading: a rollout lacks a skill if more than half of `passes` independent labels say so; labels are blind to whether
it succeeded. A skill ranks by the share of failed rollouts that lack it, less the share of successful ones. Of those
above 0 the `most` highest are practised, each where the first weights succeed within the `band`: an environment that is
too
easy or too hard is exchanged for the next level of it, until that would be a way back. Skills are ranked once, as soon
as `after` rollouts were labelled, in the order in which groups come; from then on a task follows from every group.
Papers: trace
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from strop.control.task_generators.support.probing import probed
from strop.control.task_generators.support.prompts import asked
from strop.environments.data.heldout_split import prompt_of
from strop.environments.multi_agent.skill_practice import Practice
from strop.environments.multi_agent.store_skills import described
from strop.errors import ConfigurationError
from strop.recipes.agent.trace.shortfalls import Shortfalls
from strop.roles import LLMClient, TaskGenerator
from strop.success import is_right, success
from strop.text.llm_prompt import question
from strop.types import Group, Metrics, Rollout, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player

_ASKED = "Which of the requirements did the rollout have occasion for and not meet? Write their names, one per line."
_ROUNDING = 1e-9


@dataclass
class Lacking(TaskGenerator):
    """Labels rollouts of all environments but those of practice, ranks what is lacking, probes, and writes tasks to
    practise.

    With the policy's own policy name the first weights speak: skills are practised by others (`PolicyPerEnvironment`).
    """

    llm_client: LLMClient | None  # who labels rollouts; None: the policy itself
    practice: tuple[Practice, ...]  # environments of each skill, one for each level
    passes: int = 10  # labels of each rollout
    after: int = 64  # rollouts that are labelled before skills are ranked
    most: int = 3  # skills that are practised
    band: tuple[float, float] = (0.2, 0.6)  # success of the first weights where a skill is practised
    probes: int = 16  # rollouts of theirs at each environment that is considered
    _known: Shortfalls = field(default_factory=Shortfalls, init=False, repr=False, compare=False)
    _taken: dict[str, tuple[int, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    # of groups that were not observed yet
    _labels: dict[int, list[tuple[bool, list[str]]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _found: dict[int, dict[str, tuple[int, float]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        low, high = self.band
        if not self.practice or min(self.passes, self.after, self.most, self.probes) < 1 or not 0 <= low <= high <= 1:
            raise ConfigurationError(
                "Lacking needs environments of practice, at least 1 of passes, after, most and probes, and a band "
                "within "
                f"0..1, the lower end first; got {len(self.practice)} environments, {self.passes}, {self.after}, "
                f"{self.most}, {self.probes} and {self.band}"
            )

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if self._taken:
            skill, (level, _) = sorted(self._taken.items())[group.number % len(self._taken)]
            return [self._env(skill, level).task(group.number)]
        own = [] if group.task.source in {env.name for env in self.practice} else group.own
        labels = [(is_right(success(rollout)), await self._lacks(rollout, play)) for rollout in own]
        self._labels[group.number] = labels
        known = self._known.joined(labels)
        if labels and sum(known.seen) >= self.after:
            self._found[group.number] = await self._chosen(known, group.task.level, play)
        return []

    async def _lacks(self, rollout: Rollout, play: Player) -> list[str]:
        """What most labels say."""
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

    async def _chosen(self, known: Shortfalls, level: int, play: Player) -> dict[str, tuple[int, float]]:
        """The skills to practise, each with a level and the first weights' success there."""
        ranked = known.ranked()[: self.most]
        found = {skill: await self._fitting(skill, level, play) for skill in ranked}
        if taken := {skill: each for skill, each in found.items() if each is not None}:
            return taken
        raise ConfigurationError(
            f"there is nothing to practise: of {sum(known.seen)} rollouts {known.seen[0]} failed, what they lack more "
            f"often than others is {ranked or 'nothing'}, and at no level of it do {self.probes} rollouts succeed in "
            f"{self.band[0]:.0%} to {self.band[1]:.0%}: take another level of the environment, or a wider band"
        )

    async def _fitting(self, skill: str, level: int, play: Player) -> tuple[int, float] | None:
        """The first level within the band, from this one on: up where it is too easy, down where it is too hard."""
        levels = sorted(env.level for env in self.practice if env.skill == skill)
        level, way = min(max(level, levels[0]), levels[-1]), 0
        while level in levels:
            share = await self._success(self._env(skill, level), play)
            step = (share > self.band[1] + _ROUNDING) - (share < self.band[0] - _ROUNDING)
            if step == 0:
                return level, share
            if step == -way:
                return None
            level, way = level + step, step
        return None

    async def _success(self, env: Practice, play: Player) -> float:
        marks = await asyncio.gather(*(probed(env.task(index), 1, play) for index in range(self.probes)))
        return sum(mark or 0.0 for mark in marks) / self.probes

    def observe(self, group: Group) -> None:
        """Keep what was found out about a group, once it counts."""
        labels, found = self._labels.pop(group.number, []), self._found.pop(group.number, {})
        if not self._taken:  # what comes later was asked for before that was known
            self._known, self._taken = self._known.joined(labels), found

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says what is lacking how much, where it is practised, and how the first weights do there."""
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
        self._known = Shortfalls(**state["known"])
        self._taken = {skill: (int(level), float(share)) for skill, (level, share) in state["taken"].items()}
