"""Requirements of mechanisms on environments: worked solutions, tests, preferences and the like, with their sources.

A part declares `env_needs`; one check before the run compares them with the environments that it works on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from strop.capabilities import Demonstrates, Hints, Relates, parts
from strop.environments.data.rows import CHOSEN, REJECTED, columns_of
from strop.roles import Environment
from strop.types import Task

if TYPE_CHECKING:
    from strop.run import Run

_LOOKED_AT = 8  # train tasks whose rows are looked at


@dataclass(frozen=True)
class EnvNeed:
    """Feature of an environment that a mechanism requires."""

    name: str  # in words, after "has no"
    remedy: str  # what supplies it
    is_met: Callable[[Environment], bool] = field(compare=False)

    def unmet(self, envs: Iterable[Environment]) -> list[str]:
        """A sentence for each environment that lacks it."""
        lacking = dict.fromkeys(env.name for env in envs if not self.is_met(env))
        return [f"environment {name} has no {self.name}: {self.remedy}" for name in lacking]


def unmet(needs: Sequence[EnvNeed], envs: Sequence[Environment]) -> list[str]:
    """What is missing, as sentences."""
    return [sentence for need in needs for sentence in need.unmet(envs)]


@runtime_checkable
class NeedsOfEnvs(Protocol):
    """Part with requirements on its own `envs` if it has any, else on the run's environments."""

    @property
    def env_needs(self) -> tuple[EnvNeed, ...]: ...


@runtime_checkable
class HasEnvs(Protocol):
    """Part with environments of its own."""

    envs: tuple[Environment, ...]


def problems(run: Run) -> list[str]:
    """What parts of a run take from environments, and these have not."""
    asking = [part for _, part in parts(run) if isinstance(part, NeedsOfEnvs)]
    found = [
        (sentence, type(part).__name__)
        for part in asking
        for sentence in unmet(part.env_needs, part.envs if isinstance(part, HasEnvs) else run.envs)
    ]
    return [f"{sentence} (for {name})" for sentence, name in dict(found).items()]


def first_tasks(env: Environment) -> list[Task]:
    """The first few train tasks."""
    return [env.task(index) for index in range(min(env.num_tasks() or _LOOKED_AT, _LOOKED_AT))]


def _gives_hints(env: Environment) -> bool:
    return isinstance(env, Hints) and all(env.hint(task, 1).strip() for task in first_tasks(env))


def _demonstrates(env: Environment) -> bool:
    return isinstance(env.episode(), Demonstrates)


def _has_columns(*names: str) -> Callable[[Environment], bool]:
    def has(env: Environment) -> bool:
        return all(set(names) <= columns_of(task).keys() for task in first_tasks(env))

    return has


SOLUTIONS = EnvNeed(
    "worked solutions",
    "add a column `solution` or `completion` to each row, or a method hint(task, steps) to the environment",
    _gives_hints,
)
DEMONSTRATIONS = EnvNeed(
    "demonstrations",
    "add a column `completion` or `solution` to each row, or a method demonstrate() to the episode",
    _demonstrates,
)
RELATIVES = EnvNeed(
    "other tasks of one scenario",
    "it needs a method relative(task, key), as keyvalue and arithmetic have",
    lambda env: isinstance(env, Relates),
)
PREFERENCES = EnvNeed(
    "preferences",
    "each row needs the columns `chosen` and `rejected`; where a recipe has pairs=sampled, it takes its own rollouts",
    _has_columns(CHOSEN, REJECTED),
)
