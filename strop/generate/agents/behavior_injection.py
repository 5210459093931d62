"""Demonstrations with injected exploratory or exploitative steps (behaviour injection, 2505.18917).

The chain of thought is a list of steps `left=value`; a step uses values of earlier steps. Exploration is a later step
with unknown values written as ?, then taken back; exploitation repeats all known values that the next step needs.
Nothing wrong is claimed, and the answer stays the same.
Reading: the paper's spans are written by a model; these are their simplest form in the language of the bundled
    environments.
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

BACK = "no"  # takes a step back
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Injected(Agent):
    """Agent `inner` on demonstrations, with behaviours inserted before random steps: a premature step taken back, or
    known values repeated.
    """

    inner: Agent
    explore: float = 0.25  # probability of trying a step too early, before each step but the last
    exploit: float = 0.25  # probability of repeating what a step needs, before each step but the first
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
        """The completion with behaviours in its chain of thought; unchanged if it has none."""
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
        """Share of demonstrations in the batch that try a step too early."""
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
    """Values that a step uses and that later steps would compute."""
    return set(_WORD.findall(_left(step))) & {_value(other) for other in unsolved if other != step}


def _tried(step: str, unsolved: Sequence[str]) -> str:
    unknown = _unknown(step, unsolved)
    return _WORD.sub(lambda word: "?" if word.group() in unknown else word.group(), _left(step)) + "=?"
