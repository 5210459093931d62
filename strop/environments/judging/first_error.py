"""First-error detection as a task (FAPO, 2510.22543): name the first wrong step of a worked solution.

The answer shown is always right, so that it says nothing: flawed solutions are those that reach it by a wrong step.
Reading: half of all solutions are clean; the others have one step whose result is off by 1 to 9.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import ClassVar

from strop.capabilities import Hints
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.demonstrations import Works
from strop.environments.format.think_tags import think
from strop.environments.judging.derived import Derived
from strop.environments.judging.first_error_question import CLEAN, located, question_about, steps_of
from strop.environments.needs import SOLUTIONS, EnvNeed
from strop.roles import Environment
from strop.types import Message, Task

_ALL = 1000  # steps: more than any working has
_LARGEST_SLIP = 9
_RESULT = re.compile(r"(?<![0-9.])[0-9]{1,9}(?=[^0-9]*$)")  # the last number of a step


@dataclass(frozen=True)
class FirstError(Derived):
    """Prompt of task, answer and numbered steps; the right completion is the number of the first wrong step, or -1."""

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (SOLUTIONS,)

    @property
    def envs(self) -> tuple[Environment, ...]:
        return (self.env,)

    @property
    def name(self) -> str:
        return f"first-error-{self.env.name}"

    def task(self, index: int, heldout: bool = False) -> Task:
        inner = self.env.task(index, heldout)
        steps, wrong = self._solution(inner)
        shown = think(steps, inner.answer) if all("=" in step for step in steps) else "\n\n".join(steps)
        asked = question_about(prompt_of(inner), inner.answer, shown)
        secret = json.dumps({"wrong": wrong, "steps": len(steps_of(shown))})
        return Task((Message("user", asked),), secret, self.name, inner.level)

    def check(self, task: Task, completion: str) -> float:
        wrong, steps = truth(task)
        return float(located(completion, steps) == wrong)

    def answer(self, completion: str) -> str:
        found = located(completion, _ALL)
        return "" if found is None else str(found)

    def solution(self, task: Task) -> str:
        return str(truth(task)[0])

    def _solution(self, inner: Task) -> tuple[list[str], int]:
        """The steps of a working, one of them perhaps wrong, and which."""
        stream = random.Random(f"first-error/{inner.id}")
        steps = self._steps(inner)
        places = [place for place, step in enumerate(steps) if _RESULT.search(step)]
        if stream.random() < 0.5 or not places:
            return steps, CLEAN
        place, slip = stream.choice(places), stream.randint(1, _LARGEST_SLIP)
        steps[place] = _RESULT.sub(lambda found: str(int(found.group()) + slip), steps[place])
        return steps, place

    def _steps(self, inner: Task) -> list[str]:
        if isinstance(self.env, Works):
            worked = self.env.demonstration(inner)
            return [" ".join(step.split()) for step in worked.steps] if worked else []
        return self.env.hint(inner, _ALL).split() if isinstance(self.env, Hints) else []


def truth(task: Task) -> tuple[int, int]:
    """The first wrong step, and how many there are."""
    secret = json.loads(task.answer)
    return int(secret["wrong"]), int(secret["steps"])
