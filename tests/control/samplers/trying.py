"""Draw from samplers and show them what came of it, in plain numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from strop.control.estimators.pass_rate_counts import Counts
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.types import FloatArray, Group, Message, Task
from tests.building import make_group


def draws(sampler: Sampler, count: int, step: int = 0, estimator: PassRateEstimator | None = None) -> list[Task]:
    return [sampler.next(step, estimator or Counts()) for _ in range(count)]


def group_of(task: Task, rewards: Sequence[float], version: int = 0, number: int = 0, **ends: Any) -> Group:
    """A group with these rewards; `failed` and `pruned` are places."""
    return replace(make_group(rewards, number=number, **ends), task=task, version=version)


def restored(fresh: Any, used: Any) -> Any:
    """A new part with the memory of another, which went through a file."""
    fresh.restore(json.loads(json.dumps(used.state())))
    return fresh


class Told(PassRateEstimator):
    """Believes what it is told, by the first word of a prompt."""

    def __init__(self, means: dict[str, float]) -> None:
        self.means = means

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        means = [self.means.get(task.messages[0].content, 0.5) for task in tasks]
        return np.array(means, dtype=np.float32), np.zeros(len(tasks), dtype=np.float32)

    def observe(self, group: Group) -> None:
        return None


@dataclass
class Noting(Sampler):
    """Task after task of an environment, and what it was asked with."""

    env: Environment
    asked: list[tuple[int, PassRateEstimator]] = field(default_factory=list)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        self.asked.append((step, estimator))
        return self.env.task(len(self.asked) - 1)


def prompt(task: Task) -> str:
    return task.messages[0].content


def asks(text: str, source: str = "numbered", level: int = 0) -> Task:
    return Task((Message("user", text),), text, source, level)
