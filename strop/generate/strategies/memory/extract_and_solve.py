"""Evolving-RL's two roles (2605.10663): one policy writes skills from an episode, and solves related tasks with each.

Reading: related tasks are those of the same world whose questions share most with the source's, in place of an
embedding model's. A skill stands before the question, as a system message.
Papers: evolving-rl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.concurrency import together
from strop.environments.data.heldout_split import prompt_of
from strop.environments.data.lookup import world_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.strategies.support.ask_policy import OneReply
from strop.roles import Strategy, World
from strop.text.rouge_l import rouge_l
from strop.types import Group, Message, Origin, Outcome, Start, Task, Trajectory

EXTRACTOR = "extractor"  # the family of skills, and what their turns are marked with
_LOOKED_AT = 8  # candidates for each related task
_LONGEST = 200  # characters of a skill
_ASKED = "Write down in one line what of this helps with other tasks of its kind."


@dataclass(frozen=True)
class ExtractAndSolve(Strategy):
    """An attempt at the task is the source; each start is a skill from it, tried on the same `related` tasks.

    Skills are compared with each other, and solvers with those of the same task. A skill is worth, as the fact `noted`,
    what its solvers earn on average, and 0 where it is empty or too long.
    """

    worlds: tuple[World, ...]
    related: int = 2  # tasks on which each skill is tried, never the source

    def __post_init__(self) -> None:
        if self.related < 1:
            raise ConfigurationError(f"ExtractAndSolve needs related >= 1, got {self.related}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        source = await play(play.another(family="source"))
        if not source.is_scored:
            return [source]
        asked = (Message("user", _question(source)),)
        written = [replace(start, messages=asked, family=EXTRACTOR) for start in starts]
        skills = [_marked(each) for each in await together(play(start, OneReply()) for start in written)]
        tasks = related(world_of(self.worlds, group.task), group.task, self.related, starts[0].key)
        formed = [skill for skill in skills if is_formed(skill)]
        begun = [(task, _begun(task, skill, play)) for task in tasks for skill in formed]
        solvers = await together(play(start, task=task) for task, start in begun)
        scores = await play.score(solvers)
        for place, skill in enumerate(formed):
            _worth(skill, [score for score in scores[place :: len(formed)] if score is not None])
        return [source, *skills, *solvers]


def related(world: World, task: Task, count: int, key: int) -> list[Task]:
    """Of some train tasks of the world, those whose questions share most with this one's, itself left out."""
    places = np.random.default_rng(key).choice(1_000_000, count * _LOOKED_AT, replace=False)
    drawn = {each.id: each for each in (world.task(int(place)) for place in places) if each.id != task.id}
    if not drawn:
        raise ConfigurationError(f"world {world.name} has no task beside {task.id}: nothing to try a skill on")
    ranked = sorted(drawn.values(), key=lambda each: -rouge_l(prompt_of(each), prompt_of(task)))
    return ranked[:count]


def is_formed(skill: Trajectory) -> bool:
    """Whether there is something to show, and not too much of it."""
    return skill.is_scored and 0 < len(final_answer(skill.reply)) <= _LONGEST


def _question(source: Trajectory) -> str:
    said = "\n".join(turn.message.content for turn in source.turns)
    return f"{prompt_of(source.task)}\n{said}\n{_ASKED}"


def _marked(skill: Trajectory) -> Trajectory:
    turns = tuple(replace(turn, aux={**turn.aux, EXTRACTOR: np.ones(1, np.float32)}) for turn in skill.turns)
    return replace(skill, turns=turns, facts={"noted": 0.0})


def _worth(skill: Trajectory, told: Sequence[float]) -> None:
    """The mean of its solvers; where the world failed them all, nobody knows it, and it is no 0."""
    if told:
        skill.facts["noted"] = sum(told) / len(told)
    else:
        skill.outcome, skill.error = Outcome.FAILED, "the world failed all attempts that tried this skill"


def _begun(task: Task, skill: Trajectory, play: Player) -> Start:
    messages = (Message("system", final_answer(skill.reply)), *task.messages)
    return play.another(messages=messages, family=f"solver {task.id}", parent=skill.id, origin=Origin.GUIDED)
