"""Completions for the pocket model's training corpus: mostly step by step, with deliberate mistakes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from strop.environments.bundled.arithmetic import Arithmetic, terms_of
from strop.environments.bundled.compose import Compose, parse, steps_of
from strop.environments.bundled.countdown import Countdown, Expression, random_expression
from strop.environments.bundled.next_state import store_of
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import sum_steps, think
from strop.pocket.target_accuracy import ACCURACY, QUICK_ACCURACY, slip_number, slip_text, step_error
from strop.types import Task

SINGLE_TURN: Mapping[str, type[Arithmetic] | type[Compose] | type[Countdown]] = {
    "arithmetic": Arithmetic,
    "compose": Compose,
    "countdown": Countdown,
}


@dataclass(frozen=True)
class Completions:
    """Generates completions from one stream of random numbers."""

    stream: random.Random

    def rollout(self, task: Task, mistakes: float = 1.0) -> str:
        """A rollout with the intended probability of a mistake times `mistakes`."""
        if task.source == "arithmetic":
            return self.sum_up(task, mistakes)
        error = mistakes * step_error(task.source, task.level, 1)
        if task.source == "compose":
            return think(*self.function(task, error))
        return self._expression(task, self.stream.random() < error)

    def sum_up(self, task: Task, mistakes: float = 1.0, right_steps: int = 0) -> str:
        """A chain sum whose first `right_steps` are free of mistakes."""
        terms = terms_of(task)
        error = mistakes * step_error(task.source, task.level, len(terms) - 1)
        given, total = sum_steps(terms[: right_steps + 1])
        steps, total = sum_steps([total, *terms[right_steps + 1 :]], slip_number(self.stream, error))
        return think([*given, *steps], str(total))

    def function(self, task: Task, error: float) -> tuple[list[str], str]:
        """The step and the result of one string function."""
        return steps_of(*parse(prompt_of(task)), slip_text(self.stream, error))

    def quick(self, task: Task) -> str:
        """The answer alone."""
        error = 1.0 - QUICK_ACCURACY * ACCURACY[task.source][task.level]
        if task.source == "arithmetic":
            return str(slip_number(self.stream, error)(int(task.answer)))
        return slip_text(self.stream, error)(task.answer)

    def searched(self, task: Task) -> str:
        """Tries in the open until one reaches the target."""
        right = Expression(task.answer)
        steps: list[str] = []
        for _ in range(self.stream.randint(0, 3)):
            tried = Expression(random_expression(right.numbers, self.stream))
            if tried.value != right.value:
                steps += [*tried.steps, "no"]
        return think([*steps, *right.steps], task.answer)

    def predicted(self, task: Task) -> str:
        """What an action changes, or another item of the store with any number."""
        if self.stream.random() < ACCURACY[task.source][task.level]:
            return task.answer
        store, _ = store_of(task)
        wrong = task.answer
        while wrong == task.answer:
            wrong = f"{self.stream.choice(list(store))}={self.stream.randrange(10)}"
        return wrong

    def wrong(self, task: Task) -> str:
        """A rollout that fails."""
        env = SINGLE_TURN[task.source](task.level)
        while True:
            is_countdown = task.source == "countdown"
            # where mistakes are rare, three times the usual probability finds one sooner
            completion = self._expression(task, True) if is_countdown else self.rollout(task, 3.0)
            if not env.check(task, completion):
                return completion

    def _expression(self, task: Task, is_wrong: bool) -> str:
        """The known solution, or an honest rollout that most likely misses the target."""
        answer = random_expression(Expression(task.answer).numbers, self.stream) if is_wrong else task.answer
        return think(Expression(answer).steps, answer)
