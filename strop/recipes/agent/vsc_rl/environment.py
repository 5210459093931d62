"""Subgoal environment (VSC-RL, 2502.07949): a goal is split once, and its parts are shown and rewarded in order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from strop.environments.bundled.keyvalue import call, parse
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.demonstrations import demonstrating
from strop.environments.wrappers.around import Around
from strop.roles import Episode
from strop.types import Message, Observation, Task

_NOW = " now: "
_ANSWER = "answer"


def subgoals(prompt: str) -> list[str]:
    """What a goal in a store of keys consists of; any other goal is its only part."""
    if not prompt.startswith("sum "):
        return [_ANSWER]
    keys, target = parse(prompt)
    return [*(f"get {key}" for key in keys), *([f"set {target}"] if target else []), _ANSWER]


@dataclass
class SubgoalsEpisode(Episode):
    """Episode whose observations end with the current subgoal; a reached subgoal is never current again."""

    inner: Episode
    _left: list[str] = field(default_factory=list, init=False, repr=False, compare=False)
    _count: int = field(default=1, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self._left = subgoals(prompt_of(task).rpartition(_NOW)[0])
        self._count = len(self._left)
        await self.inner.reset(plain(task))

    async def step(self, completion: Message) -> Observation:
        observed = await self.inner.step(completion)
        earned = (observed.reward or 0.0) / self._count
        if observed.done:
            earned *= len(self._left)  # the full goal: nothing is left of it
        elif self._is_met(completion.content, observed):
            self._left.pop(0)
            earned += 1 / self._count
        if observed.done or not observed.messages:
            return replace(observed, reward=earned)
        *before, last = observed.messages
        told = (*before, replace(last, content=f"{last.content}{_NOW}{self._left[0]}"))
        return replace(observed, messages=told, reward=earned)

    def _is_met(self, completion: str, observed: Observation) -> bool:
        """Whether the current part was asked for and carried out; the last one is the environment's to judge."""
        is_carried_out = bool(observed.messages) and not any(m.content.startswith("error") for m in observed.messages)
        return len(self._left) > 1 and is_carried_out and call(self._left[0]).removesuffix("</call>") in completion

    async def close(self) -> None:
        await self.inner.close()

    def demonstrate(self) -> Message:
        return demonstrating(self.inner).demonstrate()


@dataclass(frozen=True)
class Subgoals(Around):
    """Reward 1 / parts for each subgoal, in order; reaching the full goal brings the total to 1."""

    def task(self, index: int, heldout: bool = False) -> Task:
        task = self.inner.task(index, heldout)
        first = subgoals(prompt_of(task))[0]
        *before, last = task.messages
        return replace(task, messages=(*before, replace(last, content=f"{last.content}{_NOW}{first}")), id="")

    def episode(self) -> SubgoalsEpisode:
        return SubgoalsEpisode(self.inner.episode())

    def check(self, task: Task, completion: str) -> float:
        return self.inner.check(plain(task), completion)


def plain(task: Task) -> Task:
    """The task without its first subgoal."""
    *before, last = task.messages
    changes: dict[str, Any] = {"messages": (*before, replace(last, content=last.content.rpartition(_NOW)[0]))}
    return replace(task, **changes)
