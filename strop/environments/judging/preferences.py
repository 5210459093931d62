"""Preference dataset made from an environment's tasks, to train reward models.

Papers: axiomatic-preference
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import final_answer
from strop.environments.judging.axiomatic_pairs import AXIOMS
from strop.environments.judging.derived import Derived
from strop.environments.judging.verdict_questions import BAD, GOOD, about
from strop.environments.judging.wrong_completions import wrong_completions
from strop.environments.needs import COMPARISONS, EnvNeed
from strop.environments.single_turn import Solves
from strop.errors import ConfigurationError, nearest
from strop.roles import Environment
from strop.types import Message, Task

_TRIES = 100  # draws of an axiom before a task is said to have no pair


@dataclass(frozen=True)
class Preferences(Derived):
    """Single-completion yes/no questions from preference pairs; `Task.answer` holds all completions, the best first.

    Two completions differ by one of `axioms`, sampled by its share; with more completions they are the solution and
    increasingly wrong ones. No two completions of a task are equal. `noise` is the share of train tasks whose first two
    completions are swapped.
    """

    axioms: tuple[tuple[str, float], ...] = (("useful", 1.0),)  # names, and how often each is drawn
    completions: int = 2  # of a task
    noise: float = 0.0  # share of wrong labels among train tasks

    def __post_init__(self) -> None:
        if not isinstance(self.env, Solves):
            raise ConfigurationError(f"{self.env.name} knows no right completions, so there is nothing to prefer")
        for name, share in self.axioms:
            if name not in AXIOMS:
                raise ConfigurationError(f"there is no axiom {name!r}: {nearest(name, AXIOMS)}")
            if not share > 0:
                raise ConfigurationError(f"axiom {name} needs a share above 0, got {share}")
        if self.completions < 2 or not self.axioms or not 0 <= self.noise < 1:
            told = f"got {self.completions}, {len(self.axioms)} and {self.noise}"
            raise ConfigurationError(f"Preferences needs completions >= 2, an axiom and 0 <= noise < 1, {told}")

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (COMPARISONS,)

    @property
    def name(self) -> str:
        return f"preferences-{self.env.name}"

    @property
    def envs(self) -> tuple[Environment, ...]:
        return (self.env,)

    def task(self, index: int, heldout: bool = False) -> Task:
        inner = self.env.task(index, heldout)
        stream = random.Random(f"preferences/{index}/{inner.id}")
        axiom, completions = self._ranked(inner, stream)
        is_flipped = stream.random() < self.noise and not heldout
        if is_flipped:
            completions[:2] = completions[1::-1]
        shown = stream.randrange(2)
        secret = {
            "completions": completions,
            "shown": shown,
            "axiom": axiom,
            "flipped": is_flipped,
            "asked": len(inner.messages),
        }
        return Task(about(inner.messages, completions[shown]), json.dumps(secret), self.name, inner.level)

    def _ranked(self, inner: Task, stream: random.Random) -> tuple[str, list[str]]:
        assert isinstance(self.env, Solves)
        best = self.env.solution(inner)
        if self.completions > 2:
            return "useful", [best, *wrong_completions(self.env, inner, stream, self.completions - 1)]
        names, shares = zip(*self.axioms, strict=True)
        for _ in range(_TRIES):
            name = stream.choices(names, shares)[0]
            worse = AXIOMS[name](self.env, inner, stream)
            if worse != best:
                return name, [best, worse]
        raise ConfigurationError(f"axioms {', '.join(names)} make no pair of task {inner.id} of {inner.source}")

    def check(self, task: Task, completion: str) -> float:
        return float(final_answer(completion) == self.solution(task))

    def solution(self, task: Task) -> str:
        return BAD if json.loads(task.answer)["shown"] else GOOD


def completions_of(task: Task) -> list[str]:
    """The completions of such a task, the best first."""
    return [str(completion) for completion in json.loads(task.answer)["completions"]]


def shown_by(task: Task) -> str:
    """The completion that such a task asks about."""
    secret = json.loads(task.answer)
    return str(secret["completions"][secret["shown"]])


def asked_of(task: Task) -> tuple[Message, ...]:
    """What the completions are completions to."""
    return task.messages[: json.loads(task.answer)["asked"]]
