"""Play hostile replies in a world, and ask its rewards about each of them as a run would."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.abilities import Closes, Demonstrates, inside, outermost
from strop.attack.replies import Hostile, Target, hostile_replies
from strop.attack.standing import TriedReply, WorldStanding
from strop.environments.apart import Apart
from strop.environments.trials import Trials
from strop.errors import ConfigurationError, StropError
from strop.filter.paid import Paid
from strop.filter.score import Scorer, is_relative, reward_names
from strop.generate.play import Guarded, WorldFailed
from strop.roles import Reward, World
from strop.types import Group, IntArray, Message, Outcome, Task, Trajectory, Turn

_TASKS = 20  # at which replies are tried
_PATIENCE = 60.0  # seconds for what is not attacked
_TURNS = 8  # in which a reply is said again, where the world goes on


@dataclass(frozen=True)
class InWorker(Reward):
    """A reward that runs in a worker process, also where it calls itself inline: nobody knows yet what it does."""

    inner: Reward

    is_inline: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return reward_names([self.inner])[0]

    @property
    def weight(self) -> float:
        return self.inner.weight

    def __call__(self, group: Group) -> Sequence[float | Paid] | Awaitable[Sequence[float | Paid]]:
        return self.inner(group)


@dataclass(frozen=True)
class KnownTask:
    """A task, and what a right answer to it and a wrong one earn."""

    task: Task
    target: Target
    siblings: tuple[Trajectory, ...]  # beside a hostile one, where a reward compares
    right: float
    wrong: float


async def attacked(rewards: Sequence[Reward], world: World, count: int, seed: int, seconds: float) -> WorldStanding:
    """What `count` hostile replies earn in a world; each has `seconds`, and what takes longer fails."""
    # a worker may leave no process behind, and what a box runs is held by its walls already
    scorer = Scorer([each if _has_box(each) else InWorker(each) for each in rewards], seconds, workers=1)
    apart = world if _has_box(world) else Apart(world)
    scorer.places = _places
    name = f"{world.name}:{world.level}"
    try:
        known = await _known(scorer, world, apart, any(map(is_relative, rewards)))
        tried = []
        for place, hostile in hostile_replies([each.target for each in known], count, seed):
            tried.append(await _tried(scorer, apart, known[place], hostile, seconds))
        return WorldStanding(name, tried)
    except StropError as error:
        return WorldStanding(name, problem=str(error))
    finally:
        await scorer.close()
        for _, each in outermost((rewards, apart), Closes):
            await each.close()


def _has_box(part: Reward | World) -> bool:
    return bool(inside(part, Trials))


async def _tried(scorer: Scorer, apart: World, known: KnownTask, hostile: Hostile, seconds: float) -> TriedReply:
    begun = time.monotonic()
    attempt = await _said(apart, known.task, hostile.text, seconds)
    beside = [replace(each, rewards={}) for each in known.siblings]  # a comparison that fails makes all of them fail
    await scorer(Group(0, known.task, [*beside, attempt]))
    spent = time.monotonic() - begun
    earned, fault = (attempt.reward, "") if attempt.is_scored else (None, attempt.error)
    return TriedReply(hostile.family, hostile.text, earned, known.right, known.wrong, spent, fault)


async def _known(scorer: Scorer, world: World, apart: World, is_compared: bool) -> list[KnownTask]:
    """Tasks of the world with what is right there; the answer to the next task that has another one is wrong."""
    tasks = [world.task(index) for index in range(min(_TASKS, world.num_tasks() or _TASKS))]
    shown = [await _played(world, task, _demonstration(task)) for task in tasks]
    answers = [_answer(world, right) for right in shown]
    found = []
    for place, task in enumerate(tasks):
        others = [other for other, answer in enumerate(answers) if answer != answers[place]]
        if not others:
            raise ConfigurationError(f"{world.name} has one answer only: nothing can be wrong there")
        other = next((each for each in others if each > place), others[0])
        asked = "\n".join(message.content for message in task.messages)
        target = Target(asked, answers[place], answers[other])
        bare = await _said(apart, task, target.right)
        wrong = await _said(apart, task, shown[other].reply)
        found.append(await _marked(scorer, target, [shown[place], bare, wrong], is_compared))
    return found


async def _marked(scorer: Scorer, target: Target, attempts: list[Trajectory], is_compared: bool) -> KnownTask:
    """What answers earn: a right one worked out or bare, whichever is better understood, and last a wrong one."""
    task = attempts[0].task
    for number, attempt in enumerate(attempts):
        attempt.id = f"sibling/{number}"
    await scorer(Group(0, task, attempts))
    *rights, wrong = attempts
    if not any(each.is_scored for each in rights) or not wrong.is_scored:
        raise ConfigurationError(f"it fails an ordinary answer: {wrong.error or rights[0].error}")
    right = max(each.reward for each in rights if each.is_scored)
    return KnownTask(task, target, tuple(attempts) if is_compared else (), right, wrong.reward)


def _demonstration(task: Task) -> Callable[[object], Message]:
    """What a right attempt says next; the task's own answer where the world cannot say."""

    def say(environment: object) -> Message:
        return environment.demonstrate() if isinstance(environment, Demonstrates) else Message("assistant", task.answer)

    return say


def _answer(world: World, right: Trajectory) -> str:
    """In one spelling; a world that is not ours is not asked in this process, and what it shows stands as it is."""
    return world.answer(right.reply) if world.is_inline else right.reply


async def _said(apart: World, task: Task, text: str, seconds: float = _PATIENCE) -> Trajectory:
    """An attempt that says this and nothing else, in a process of its own."""
    return await _played(apart, task, lambda _: Message("assistant", text), seconds)


async def _played(world: World, task: Task, say: Callable[[object], Message], seconds: float = _PATIENCE) -> Trajectory:
    """An attempt in which `say` answers every time, until the world ends it or it has said enough."""
    turns, paid, outcome, error = list[Turn](), list[float](), Outcome.FINISHED, ""
    environment = Guarded(inner := world.environment(), seconds=_PATIENCE)
    try:
        await environment.reset(task)  # where a process may have to start first
        environment.seconds = seconds
        while len(turns) < _TURNS:
            message = say(inner)
            answer = await environment.step(message)
            turns.append(_turn(message))
            paid += [] if answer.reward is None else [answer.reward]
            if answer.done:
                break
        await environment.close()
    except WorldFailed as failure:
        outcome, error = Outcome.FAILED, f"world {world.name}: {failure}"
    return Trajectory("attempt", task, tuple(turns), outcome, error=error, turn_rewards=tuple(paid))


def _turn(message: Message) -> Turn:
    """A token for each character and one for the end: whoever pays places finds them."""
    count = len(message.content) + 1
    tokens, nothing = np.zeros(count, np.int64), np.zeros(0, np.int64)
    return Turn(nothing, tokens, np.zeros(count, np.float32), tokens, message)


def _places(tokens: IntArray) -> IntArray:
    return np.minimum(np.arange(1, len(tokens) + 1), len(tokens) - 1)
