"""Execution of an attack: hostile completions are played in an environment and scored by its rewards as in a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from strop.attack.ask_rewards import AskedRewards, pay_of
from strop.attack.hostile_completions import Hostile, Target, hostile_completions
from strop.attack.results import EnvironmentStanding, TriedCompletion
from strop.attack.untrusted_tasks import said, shown
from strop.errors import ConfigurationError, StropError
from strop.roles import Environment, Reward
from strop.types import Rollout, Task

_TASKS = 20  # at which completions are tried


@dataclass(frozen=True)
class KnownTask:
    """Task with the rewards of a correct and of a wrong answer."""

    task: Task
    target: Target
    siblings: tuple[Rollout, ...]  # beside a hostile one, where a reward compares
    right: float
    wrong: float
    shown: str = ""  # a right completion


async def attacked(
    rewards: Sequence[Reward], env: Environment, count: int, seed: int, seconds: float
) -> EnvironmentStanding:
    """What `count` hostile completions earn in an environment; each has `seconds`, and what takes longer fails."""
    asked, name = AskedRewards(rewards, env, seconds), f"{env.name}:{env.level}"
    try:
        return EnvironmentStanding(name, await hostile_standing(asked, await known_tasks(asked), count, seed))
    except StropError as error:
        return EnvironmentStanding(name, problem=str(error))
    finally:
        await asked.close()


async def hostile_standing(
    asked: AskedRewards, known: Sequence[KnownTask], count: int, seed: int
) -> list[TriedCompletion]:
    """What came of each hostile completion."""
    completions = hostile_completions([each.target for each in known], count, seed)
    return [await _tried(asked, known[place], hostile) for place, hostile in completions]


async def _tried(asked: AskedRewards, known: KnownTask, hostile: Hostile) -> TriedCompletion:
    begun = time.monotonic()
    rollout = await said(asked.apart, known.task, hostile.text, asked.seconds)
    paid = (await asked.paid(known.task, [*known.siblings, rollout]))[-1]
    spent = time.monotonic() - begun
    return TriedCompletion(hostile.family, hostile.text, pay_of(paid), known.right, known.wrong, spent, paid.error)


async def known_tasks(asked: AskedRewards, most: int = _TASKS) -> list[KnownTask]:
    """Tasks of the environment with what is right there; the answer to the next task that has another one is wrong."""
    env = asked.env
    tasks = [env.task(index) for index in range(min(most, env.num_tasks() or most))]
    right = [await shown(asked.apart, task, asked.seconds) for task in tasks]
    answers = [asked.answer(each.completion) for each in right]
    found = []
    for place, task in enumerate(tasks):
        others = [other for other, answer in enumerate(answers) if answer != answers[place]]
        if not others:
            raise ConfigurationError(f"{env.name} has one answer only: nothing can be wrong there")
        other = next((each for each in others if each > place), others[0])
        target = Target(prompt_text(task), answers[place], answers[other])
        bare, wrong = await asked.episodes(task, [target.right, right[other].completion])
        found.append(await _scored(asked, target, [right[place], bare, wrong]))
    return found


def prompt_text(task: Task) -> str:
    return "\n".join(message.content for message in task.messages)


async def _scored(asked: AskedRewards, target: Target, rollouts: list[Rollout]) -> KnownTask:
    """What answers earn: a right one worked out or bare, whichever is better understood, and last a wrong one."""
    task = rollouts[0].task
    *rights, wrong = await asked.paid(task, rollouts)
    known = [each.reward for each in rights if each.is_scored]
    if not known or not wrong.is_scored:
        raise ConfigurationError(f"it fails an ordinary answer: {wrong.error or rights[0].error}")
    return KnownTask(
        task, target, tuple(rollouts) if asked.is_compared else (), max(known), wrong.reward, rollouts[0].completion
    )
