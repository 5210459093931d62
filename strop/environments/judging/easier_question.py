"""Verification and multiple-choice questions about another environment's task.

The original task is stored in `Task.answer`, which the policy never sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import CLOSE, OPEN
from strop.environments.judging.derived import Derived
from strop.environments.single_turn import SingleCompletion, Solves
from strop.environments.wrappers.around import Unpaid
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Task

_TRIES = 1000  # tasks whose answers are looked at


@dataclass(frozen=True)
class Easier(Derived):
    """Single-turn environment of easier questions about `env`'s tasks; subclasses define the question and its
    answer.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.env.episode(), SingleCompletion | Unpaid):
            raise ConfigurationError(
                f"{self.env.name} is no environment of one completion: its answers cannot be shown"
            )

    def check(self, task: Task, completion: str) -> float:
        return float(self.answer(completion) == key_of(task))

    def solution(self, task: Task) -> str:
        return worked(self.env, task)


def asked(inner: Task, question: str, key: str, name: str) -> Task:
    """A task with a question behind its own, whose right completion is `key`."""
    *before, last = inner.messages
    secret = json.dumps({"key": key, "id": inner.id, "asked": last.content, "answer": inner.answer})
    return Task((*before, replace(last, content=f"{last.content} {question}")), secret, name, inner.level)


def key_of(task: Task) -> str:
    return str(json.loads(task.answer)["key"])


def behind(task: Task, source: str) -> Task:
    """The task that a question was put behind."""
    secret = json.loads(task.answer)
    *before, last = task.messages
    messages = (*before, replace(last, content=secret["asked"]))
    return Task(messages, secret["answer"], source, task.level, secret["id"], task.tools)


def worked(env: Environment, task: Task) -> str:
    """A completion with the working of the task behind, where its environment knows it, and the key as answer."""
    whole = env.solution(behind(task, env.name)) if isinstance(env, Solves) else ""
    working, closed, _ = whole.rpartition(CLOSE)
    return f"{working}{closed}{key_of(task)}" if working.startswith(OPEN) else key_of(task)


def wrong_answers(env: Environment, index: int, heldout: bool) -> Iterator[str]:
    """Answers of the tasks that follow, each once; the same question, or the same answer, is none."""
    task = env.task(index, heldout)
    seen = {task.answer}
    for other in (env.task(index + ahead, heldout) for ahead in range(1, _TRIES)):
        if other.answer not in seen and prompt_of(other) != prompt_of(task):
            seen.add(other.answer)
            yield other.answer
    raise ConfigurationError(f"{env.name}:{env.level} has only {len(seen)} different answers in {_TRIES} tasks")
