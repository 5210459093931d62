"""Demonstrations with injected exploratory or exploitative steps (behaviour injection, 2505.18917).

A step uses values of earlier steps. Exploration is a later step with unknown values written as ?, then taken back;
exploitation repeats all known values that the next step needs. Nothing wrong is claimed, and the answer stays the same.
Reading: the paper's spans are written by a model; these are their simplest form, in a list of steps `left=value` as the
    bundled environments write them, and in prose, whose steps are sentences, lines and lines of LaTeX.
Papers: behavior-injection
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.environments.format.demonstrations import demonstration
from strop.environments.format.think_tags import CLOSE, OPEN
from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.errors import ConfigurationError
from strop.roles import Agent, Dialogue, Episode
from strop.types import Group, Metrics, Origin, Task

BACK = "no"  # takes a step back
TRIED, KNOWN = "Perhaps: {step} No, that is too early.", "So far: {known}."  # in prose
_WORD, _NUMBER = re.compile(r"\w+"), re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Injected(Agent):
    """Agent `inner` on demonstrations, with behaviours inserted before random steps: a premature step taken back, or
    known values repeated.
    """

    inner: Agent
    explore: float = 0.25  # probability of trying a step too early, before each step but the last
    exploit: float = 0.25  # probability of repeating what a step needs, before each step but the first
    seed: int = 0
    tried: str = TRIED  # a step of prose that comes too early
    known: str = KNOWN  # values that a step of prose needs

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
        """The completion with behaviours among its steps; unchanged if it has none."""
        before, opened, rest = completion.partition(OPEN)
        working, closed, answer = rest.partition(CLOSE)
        steps = working.split()
        if not opened or not closed or not all("=" in step for step in steps):
            return self._in_prose(completion, task)
        probabilities = self._drawn(task, len(steps))
        told = [
            word for place in range(len(steps)) for word in self._around(steps, place, probabilities[place].tolist())
        ]
        return f"{before}{OPEN}{' '.join(told)}{CLOSE}{answer}"

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Share of demonstrations in the batch that try a step too early."""
        shown = [turn.message.content for group in groups for rollout in group.scored for turn in rollout.turns]
        words = (f" {BACK} ", self.tried.partition("{step}")[2])
        explored = sum(any(word in completion for word in words) for completion in shown)
        return {"explored_share": explored / max(len(shown), 1)}

    def _drawn(self, task: Task, count: int) -> NDArray[np.float64]:
        """Two numbers from 0 to 1 for each step, by the task: [S, 2]."""
        key = hashlib.sha256(f"{self.seed}/{task.id}".encode()).digest()
        return np.random.default_rng(list(key)).random((count, 2))

    def _in_prose(self, completion: str, task: Task) -> str:
        """A worked text with sentences of its own before some of its steps."""
        worked = demonstration(completion, task.answer)
        steps, drawn = worked.steps, self._drawn(task, len(worked.steps))
        given = {number for message in task.messages for number in _NUMBER.findall(message.content)}
        text, at = "", 0
        for place, piece in enumerate(worked.pieces if len(steps) > 1 else ()):
            first = max(place, 1)
            between = worked.text[worked.pieces[first - 1].end : worked.pieces[first].start]
            added = self._said(steps, place, given, drawn[place].tolist())
            text += worked.text[at : piece.start] + "".join(f"{each}{between or ' '}" for each in added)
            at = piece.start
        return text + worked.text[at:] if at or text else completion

    def _said(self, steps: Sequence[str], place: int, given: set[str], probabilities: Sequence[float]) -> list[str]:
        before = given | {number for step in steps[:place] for number in _NUMBER.findall(step)}
        later = [step for step in steps[place + 1 :] if set(_NUMBER.findall(step)) - before]
        said = []
        if later and probabilities[0] < self.explore:
            masked = _NUMBER.sub(lambda number: number.group() if number.group() in before else "?", later[-1])
            said.append(self.tried.format(step=masked))
        known = [number for number in _NUMBER.findall(steps[place]) if number in before - given]
        if known and probabilities[1] < self.exploit:
            said.append(self.known.format(known=", ".join(dict.fromkeys(known))))
        return said

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
