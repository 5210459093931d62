"""Play hostile replies in a world, and ask its rewards about each of them as a run would."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from strop.attack.asked import AskedRewards, pay_of
from strop.attack.episodes import said, shown
from strop.attack.hostile_replies import Hostile, Target, hostile_replies
from strop.attack.results import TriedReply, WorldStanding
from strop.errors import ConfigurationError, StropError
from strop.roles import Reward, World
from strop.types import Task, Trajectory

_TASKS = 20  # at which replies are tried


@dataclass(frozen=True)
class KnownTask:
    """A task, and what a right answer to it and a wrong one earn."""

    task: Task
    target: Target
    siblings: tuple[Trajectory, ...]  # beside a hostile one, where a reward compares
    right: float
    wrong: float
    shown: str = ""  # a right completion


async def attacked(rewards: Sequence[Reward], world: World, count: int, seed: int, seconds: float) -> WorldStanding:
    """What `count` hostile replies earn in a world; each has `seconds`, and what takes longer fails."""
    asked, name = AskedRewards(rewards, world, seconds), f"{world.name}:{world.level}"
    try:
        return WorldStanding(name, await hostile_standing(asked, await known_tasks(asked), count, seed))
    except StropError as error:
        return WorldStanding(name, problem=str(error))
    finally:
        await asked.close()


async def hostile_standing(asked: AskedRewards, known: Sequence[KnownTask], count: int, seed: int) -> list[TriedReply]:
    """What came of each hostile reply."""
    replies = hostile_replies([each.target for each in known], count, seed)
    return [await _tried(asked, known[place], hostile) for place, hostile in replies]


async def _tried(asked: AskedRewards, known: KnownTask, hostile: Hostile) -> TriedReply:
    begun = time.monotonic()
    attempt = await said(asked.apart, known.task, hostile.text, asked.seconds)
    paid = (await asked.paid(known.task, [*known.siblings, attempt]))[-1]
    spent = time.monotonic() - begun
    return TriedReply(hostile.family, hostile.text, pay_of(paid), known.right, known.wrong, spent, paid.error)


async def known_tasks(asked: AskedRewards, most: int = _TASKS) -> list[KnownTask]:
    """Tasks of the world with what is right there; the answer to the next task that has another one is wrong."""
    world = asked.world
    tasks = [world.task(index) for index in range(min(most, world.num_tasks() or most))]
    right = [await shown(asked.apart, task, asked.seconds) for task in tasks]
    answers = [asked.answer(each.reply) for each in right]
    found = []
    for place, task in enumerate(tasks):
        others = [other for other, answer in enumerate(answers) if answer != answers[place]]
        if not others:
            raise ConfigurationError(f"{world.name} has one answer only: nothing can be wrong there")
        other = next((each for each in others if each > place), others[0])
        target = Target(prompt_text(task), answers[place], answers[other])
        bare, wrong = await asked.episodes(task, [target.right, right[other].reply])
        found.append(await _marked(asked, target, [right[place], bare, wrong]))
    return found


def prompt_text(task: Task) -> str:
    return "\n".join(message.content for message in task.messages)


async def _marked(asked: AskedRewards, target: Target, attempts: list[Trajectory]) -> KnownTask:
    """What answers earn: a right one worked out or bare, whichever is better understood, and last a wrong one."""
    task = attempts[0].task
    *rights, wrong = await asked.paid(task, attempts)
    known = [each.reward for each in rights if each.is_scored]
    if not known or not wrong.is_scored:
        raise ConfigurationError(f"it fails an ordinary answer: {wrong.error or rights[0].error}")
    return KnownTask(
        task, target, tuple(attempts) if asked.is_compared else (), max(known), wrong.reward, attempts[0].reply
    )
