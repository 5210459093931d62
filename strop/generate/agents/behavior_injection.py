"""Behaviour injection (2505.18917): demonstrations that try something too early and go back, or gather what is known.

The working is a chain of steps `left=value`; a step stands on those before it whose value it uses. Exploring is a later
step whose values are still unknown, written with ? and taken back; exploiting is all known values that the next step
needs, repeated before it. Nothing wrong is claimed, and the answer stays the same.
Reading: the spans of the paper are a model's text; these are their plainest form in the bundled environments' own
    language.
Papers: behavior-injection
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.errors import ConfigurationError
from strop.roles import Agent, Dialogue, Episode
from strop.types import Group, Metrics, Origin, Task

BACK = "no"  # what takes a rollout back
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Injected(Agent):
    """`inner` shows the environment's demonstrations, before each step of which either behaviour comes with a
    probability.
    """

    inner: Agent
    explore: float = 0.25  # of trying a step too early, before each step but the last
    exploit: float = 0.25  # of repeating what a step needs, before each step but the first
    seed: int = 0

    origin: ClassVar[Origin] = Origin.TEACHER

    def __post_init__(self) -> None:
        if not (0 <= self.explore <= 1 and 0 <= self.exploit <= 1):
            raise ConfigurationError(
                f"Injected needs probabilities from 0 to 1, got explore {self.explore} and exploit {self.exploit}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        rewritten = Rewritten(episode, lambda completion: self.injected(completion, task))
        return await self.inner.rollout(task, dialogue, rewritten)

    def injected(self, completion: str, task: Task) -> str:
        """The completion with behaviours in its working; one without working is left as it is."""
        before, opened, rest = completion.partition(OPEN)
        working, closed, answer = rest.partition(CLOSE)
        steps = working.split()
        if not opened or not closed or not all("=" in step for step in steps):
            return completion
        key = hashlib.sha256(f"{self.seed}/{task.id}".encode()).digest()
        probabilities = np.random.default_rng(list(key)).random((len(steps), 2))
        told = [
            word for place in range(len(steps)) for word in self._around(steps, place, probabilities[place].tolist())
        ]
        return f"{before}{OPEN}{' '.join(told)}{CLOSE}{answer}"

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How many demonstrations of the batch try something too early."""
        shown = [turn.message.content for group in groups for rollout in group.scored for turn in rollout.turns]
        return {"explored_share": sum(f" {BACK} " in completion for completion in shown) / max(len(shown), 1)}

    def _around(self, steps: Sequence[str], place: int, probabilities: Sequence[float]) -> list[str]:
        told = []
        later = [step for step in steps[place + 1 :] if _unknown(step, steps[place:])]
        if later and probabilities[0] < self.explore:
            told += [_tried(later[-1], steps[place:]), BACK]
        known = [_value(step) for step in steps[:place] if _value(step) in _WORD.findall(_left(steps[place]))]
        if known and probabilities[1] < self.exploit:
            told += dict.fromkeys(known)
        return [*told, steps[place]]


def _left(step: str) -> str:
    return step.rpartition("=")[0]


def _value(step: str) -> str:
    return step.rpartition("=")[2]


def _unknown(step: str, unsolved: Sequence[str]) -> set[str]:
    """Values that a step uses and that steps not yet made would give."""
    return set(_WORD.findall(_left(step))) & {_value(other) for other in unsolved if other != step}


def _tried(step: str, unsolved: Sequence[str]) -> str:
    unknown = _unknown(step, unsolved)
    return _WORD.sub(lambda word: "?" if word.group() in unknown else word.group(), _left(step)) + "=?"
