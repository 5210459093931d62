"""Rollout of one task, with environment failures turned into data instead of errors.

Calls of the episode are guarded, each with a deadline, also where one blocks the event loop. An environment that
crashes its process or never looks for signals needs a process of its own: `environments/isolation/subprocess.py`. Every
other exception (engine, settings, a bug) stops the run, and a cancelled rollout stays cancelled.
"""

from __future__ import annotations

import asyncio
import numbers
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

from strop.backends import Stop
from strop.capabilities import inside
from strop.environments.format.demonstrations import demonstrating
from strop.environments.isolation.client import EndsHung
from strop.environments.wrappers.versioned import episode_at
from strop.errors import StropError
from strop.generate.bounded_work import Begun
from strop.generate.conversation import Talk
from strop.generate.guarded_episode import GuardedEpisode, Phase
from strop.generate.rollout_limits import Paused
from strop.generate.step_trial import Ask, Spent, StepTrial, Unanswered
from strop.observe.metrics.stage_tracker import Stages
from strop.roles import Agent, Environment, Episode
from strop.types import Message, Observation, Origin, Outcome, Rollout, Start, Task
from strop.workers.untrusted_answers import LARGEST, NoAnswer, shown

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
CONTROL_TEXT = "control_text"  # fact: number of control tokens that a rollout read as plain text
_LONGEST_ERROR = 500


class EnvironmentFailed(Exception):  # noqa: N818 (an event, never shown as an error)
    """Failure of an environment; the cause is its exception."""

    @property
    def is_spent(self) -> bool:
        """Whether time, memory or stack ran out."""
        cause = self.__cause__
        is_ours = isinstance(cause, TimeoutError | MemoryError | RecursionError)
        return is_ours or (isinstance(cause, NoAnswer) and cause.is_spent)


@dataclass
class Guarded:
    """Guarded episode: attributes exceptions to the environment and enforces a deadline of `seconds` per call.

    After `done` no step is accepted, so the reward is final. With `trial`, completions that exhaust time, memory or
    stack do not count as environment failures: they end the episode as wrong.
    """

    inner: Episode
    rollout: str = ""
    seconds: float = 60.0
    stages: Stages = field(default_factory=Stages)
    is_open: bool = False  # the environment's last answer did not end the episode
    episode: GuardedEpisode = field(default_factory=GuardedEpisode)
    trial: Callable[[], StepTrial | None] = lambda: None  # where steps can be tried again
    overrun: str = field(default="", init=False)  # what the completions exhausted
    _said: list[Message] = field(default_factory=list, init=False)
    _seen: list[Observation] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._name = f"rollout {self.rollout}"

    async def reset(self, task: Task) -> None:
        with self.episode.answering(Phase.NEW):
            await self._guard(self.inner.reset, task)

    async def step(self, completion: Message) -> Observation:
        with self.episode.answering(Phase.OPEN):
            observation = await self._answered(completion)
        self.is_open = not observation.done
        if observation.done:
            self.episode.end()
        return observation

    async def _answered(self, completion: Message) -> Observation:
        self._said.append(completion)
        try:
            observation = sound(await self._guard(self.inner.step, completion))
        except EnvironmentFailed as failure:
            trial = self.trial() if failure.is_spent else None
            if trial is None or (found := await trial.judged(self._said, self._seen)) is None:
                raise
            if isinstance(found, Observation):
                return found
            self.overrun = f"{failure}, twice, where other completions were answered: it counts as wrong"
            return Observation(done=True, reward=found.worth)
        self._seen.append(observation)
        return observation

    async def close(self) -> None:
        if self.episode.close():
            await self._guard(self.inner.close)

    def demonstrate(self) -> Message:
        shown = demonstrating(self.inner)
        try:
            return shown.demonstrate()
        except Exception as error:
            raise EnvironmentFailed(describe(error)) from error

    async def _guard(
        self, work: Callable[Arguments, Coroutine[Any, Any, Result]], *args: Arguments.args, **more: Arguments.kwargs
    ) -> Result:
        self.stages.enter(self._name, "its environment")
        try:
            begun = Begun(work(*args, **more), self.seconds)
            return begun.result if begun.is_done else await self._in_time(begun)
        except (StropError, EnvironmentFailed):
            raise
        except Exception as error:
            raise EnvironmentFailed(describe(error)) from error
        finally:
            self.stages.leave(self._name)

    async def _in_time(self, begun: Begun[Result]) -> Result:
        deadline = asyncio.timeout(self.seconds)
        try:
            async with deadline:
                return await begun
        except Exception as error:
            if not deadline.expired() or isinstance(error, StropError):
                raise
            raise EnvironmentFailed(f"no answer within {self.seconds:g} s") from error


def sound(answer: Any) -> Observation:
    """An environment's answer as the run may read and store it: texts, and a finite reward."""
    if not isinstance(answer, Observation):
        raise EnvironmentFailed(f"answered {shown(answer)}, need an Observation")
    if wrong := [m for m in answer.messages if not (isinstance(m, Message) and isinstance(m.content, str))]:
        raise EnvironmentFailed(f"answered {shown(wrong[0])}, need messages of text")
    if answer.reward is None:
        return answer
    paid: Any = answer.reward  # of whatever type: the environment may be anybody's
    is_number = isinstance(paid, numbers.Real)
    if not is_number or not -LARGEST <= paid <= LARGEST:
        raise EnvironmentFailed(f"paid {shown(paid)}, need a finite number of at most {LARGEST:g}")
    return replace(answer, reward=float(paid), done=bool(answer.done))


def describe(error: BaseException) -> str:
    """Type and message of an exception; a child process describes its failure itself."""
    told = str(error) if isinstance(error, NoAnswer) else f"{type(error).__name__}: {error}"
    return told[:_LONGEST_ERROR]


async def play(
    agent: Agent,
    env: Environment,
    dialogue: Talk,
    seconds: float = 60.0,
    stages: Stages | None = None,
) -> Rollout:
    """One rollout; a failure or timeout of the environment yields FAILED with the turns so far.

    A completion that alone brings its environment to the deadline ends the rollout, and counts as wrong.

    A paused rollout yields PRUNED and can be continued from its turns.
    """
    start, task, paid, error = dialogue.start, dialogue.task, tuple[float, ...](), ""
    try:
        stages = stages or Stages()
        trial = partial(_trial, env, start, task, seconds, stages)
        episode = Guarded(_build(env, start), start.id, seconds, stages, trial=trial)
        paid = await _rollout(agent, task, dialogue, episode)
        outcome = _outcome(dialogue, episode)
        error = f"environment {env.name}: {episode.overrun}" if episode.overrun else ""
    except Paused:
        outcome = Outcome.PRUNED
    except EnvironmentFailed as failure:
        outcome, error = Outcome.FAILED, f"environment {env.name}: {failure}"
    origin = agent.origin if start.origin is Origin.POLICY else start.origin
    rollout = Rollout(start.id, task, dialogue.turns, outcome, origin, error, turn_rewards=paid)
    rollout.parent, rollout.comparison_group = start.parent, start.comparison_group
    if dialogue.spelled:
        rollout.facts[CONTROL_TEXT] = float(dialogue.spelled)
    return rollout


def _trial(env: Environment, start: Start, task: Task, seconds: float, stages: Stages) -> StepTrial:
    bounds = [each.seconds for each in inside(env, EndsHung)]
    return StepTrial(partial(_fresh, env, start, task, seconds, stages), min([seconds, *bounds]))


@asynccontextmanager
async def _fresh(env: Environment, start: Start, task: Task, seconds: float, stages: Stages) -> AsyncIterator[Ask]:
    """Another episode of this task, for a trial."""
    guarded = Guarded(_build(env, start), start.id, seconds, stages)

    async def ask(message: Message, seconds: float) -> Observation:
        guarded.seconds = seconds
        return await guarded.step(message)

    try:
        await guarded.reset(task)
        yield ask
    except EnvironmentFailed as failure:
        raise (Spent if failure.is_spent else Unanswered)(str(failure)) from failure
    finally:
        guarded.seconds = seconds
        with suppress(EnvironmentFailed):
            await guarded.close()


def _build(env: Environment, start: Start) -> Episode:
    try:
        return episode_at(env, start)
    except StropError:
        raise
    except Exception as error:
        raise EnvironmentFailed(describe(error)) from error


async def _rollout(agent: Agent, task: Task, dialogue: Talk, episode: Guarded) -> tuple[float, ...]:
    try:
        paid = await agent.rollout(task, dialogue, episode)
    except BaseException:
        # keep the first failure; an error of close() must not replace a cancellation
        with suppress(EnvironmentFailed):
            await episode.close()
        raise
    await episode.close()
    return paid


def _outcome(dialogue: Talk, episode: Guarded) -> Outcome:
    if dialogue.stop is Stop.ABORTED:
        return Outcome.PRUNED
    # not is_cut: a completion that ends exactly at the context's end is finished
    is_ended = dialogue.stop is Stop.STOP and not episode.is_open
    return Outcome.FINISHED if is_ended else Outcome.TRUNCATED
