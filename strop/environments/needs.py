"""Requirements of mechanisms on environments: worked solutions, tests, preferences and the like, with their sources.

A part declares `env_needs`; one check before the run compares them with the environments that it works on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from strop.capabilities import Hints, Relates, inside, parts
from strop.environments.code.cases import Cases, cases_of
from strop.environments.data.rows import CHOSEN, REJECTED, columns_of, ranked_by
from strop.environments.format.demonstrations import Works, demonstrates
from strop.environments.single_turn import SingleCompletion
from strop.errors import DataError
from strop.roles import Environment, Reward
from strop.types import Task

if TYPE_CHECKING:
    from strop.run import Run

_LOOKED_AT = 8  # train tasks of an environment that is no table
_MOST_ROWS = 4096  # of a table
SCENARIOS = {"scenario", "category", "subject", "level", "difficulty"}  # columns that rows of one scenario share
_LONGEST = 60  # characters of a prompt in a sentence


@dataclass(frozen=True)
class EnvNeed:
    """Feature of an environment that a mechanism requires, of the whole environment or of each of its tasks."""

    name: str  # in words, after "has no"
    remedy: str  # what supplies it
    is_met: Callable[[Environment], bool] | None = field(default=None, compare=False)
    is_met_by: Callable[[Environment, Task], bool] | None = field(default=None, compare=False)

    def unmet(self, envs: Iterable[Environment]) -> list[str]:
        """A sentence for each environment that lacks it."""
        return list(dict.fromkeys(sentence for env in envs if (sentence := self._sentence(env))))

    def _sentence(self, env: Environment) -> str:
        if self.is_met and not self.is_met(env):
            return f"environment {env.name} has no {self.name}: {self.remedy}"
        looked_at = first_tasks(env) if self.is_met_by else []
        lacking = [task for task in looked_at if self.is_met_by and not self.is_met_by(env, task)]
        if not lacking:
            return ""
        part = (
            ""
            if len(lacking) == len(looked_at)
            else f" in {len(lacking)} of {len(looked_at)} tasks, as {_named(lacking[0])}"
        )
        return f"environment {env.name} has no {self.name}{part}: {self.remedy}"


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
    """Part with environments of its own; none: those of the run."""

    envs: tuple[Environment, ...]


def problems(run: Run) -> list[str]:
    """What parts of a run take from environments, and these have not."""
    asking = [part for _, part in parts(run) if isinstance(part, NeedsOfEnvs)]
    found = [
        (sentence, type(part).__name__)
        for part in asking
        for sentence in unmet(part.env_needs, (isinstance(part, HasEnvs) and part.envs) or run.envs)
    ]
    return [f"{sentence} (for {name})" for sentence, name in dict(found).items()] + _unchecked(run)


def _unchecked(run: Run) -> list[str]:
    """Environments that rewards ask to check completions, and that have nothing to check them by."""
    checking = [part for part in inside(run.rewards, Reward) if not part.is_relative]  # a vote of siblings checks none
    asked = [env for part in checking if isinstance(part, HasEnvs) for env in part.envs]
    return list(dict.fromkeys(said for env in asked if env.is_inline and (said := _unable(env))))


def _unable(env: Environment) -> str:
    try:
        env.check(env.task(0), "")
    except DataError as error:
        return str(error)
    except Exception:  # of a user's own check: the rehearsal of rewards names it with its file and line
        return ""
    return ""


def first_tasks(env: Environment) -> list[Task]:
    """The train tasks that are looked at: rows of a table, or the first few of another environment."""
    most = _MOST_ROWS if isinstance(env, Works) else _LOOKED_AT
    return [env.task(index) for index in range(min(env.num_tasks() or _LOOKED_AT, most))]


def _named(task: Task) -> str:
    """A task by the beginning of its prompt."""
    words = " ".join(task.messages[-1].content.split())
    return repr(words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ...")


def _gives_hint(env: Environment, task: Task) -> bool:
    return isinstance(env, Hints) and bool(env.hint(task, 1).strip())


def worked_by(env: Environment, task: Task) -> bool:
    """Whether an environment knows steps to a task's answer."""
    if isinstance(env, Works):
        worked = env.demonstration(task)
        return worked is not None and worked.is_worked
    return _gives_hint(env, task)


def _demonstrates(env: Environment, task: Task) -> bool:
    return env.demonstration(task) is not None if isinstance(env, Works) else demonstrates(env.episode())


def _tests_of(task: Task) -> Cases | None:
    try:
        return cases_of(task)
    except DataError:
        return None


def _has_turns(env: Environment) -> bool:
    return not isinstance(env.episode(), SingleCompletion)


def _has_columns(*names: str) -> Callable[[Environment, Task], bool]:
    return lambda env, task: set(names) <= columns_of(task).keys()


HINTS = EnvNeed(
    "hints",
    "add a column `hint`, or `solution` or `completion` with steps, to each row, or a method hint(task, steps) to the "
    "environment",
    is_met_by=_gives_hint,
)
SOLUTIONS = EnvNeed(
    "worked solutions",
    "add a column `solution` or `completion` with the steps before the answer to each row, or a method "
    "hint(task, steps) to the environment",
    is_met_by=worked_by,
)
DEMONSTRATIONS = EnvNeed(
    "demonstrations",
    "add a column `completion` or `solution` to each row (a bare answer shows nothing), or a method demonstrate() to "
    "the episode",
    is_met_by=_demonstrates,
)
TESTS = EnvNeed(
    "tests",
    "add a column `tests` to each row (assert lines, or inputs and outputs), or use env=programs:LEVEL",
    is_met_by=lambda env, task: _tests_of(task) is not None,
)
PROGRAMS = EnvNeed(
    "right programs",
    "add a column `solution` with a program that passes its `tests` to each row, or use env=programs:LEVEL",
    is_met_by=lambda env, task: bool((found := _tests_of(task)) and found.solution),
)
RELATIVES = EnvNeed(
    "other tasks of one scenario",
    "add a column `scenario` (or `category`) with what several rows have in common, or a method relative(task, key) to "
    "the environment",
    lambda env: isinstance(env, Relates),
    is_met_by=lambda env, task: not isinstance(env, Works) or bool(SCENARIOS & columns_of(task).keys()),
)
PREFERENCES = EnvNeed(
    "preferences",
    "each row needs the columns `chosen` and `rejected`; where a recipe has pairs=sampled, it takes its own rollouts",
    is_met_by=_has_columns(CHOSEN, REJECTED),
)
COMPARISONS = EnvNeed(
    "preferences",
    "each row needs the columns `chosen` and `rejected`, or `ranking` with completions, the best first",
    is_met_by=lambda env, task: bool(ranked_by(task)) or not isinstance(env, Works),
)
TURNS = EnvNeed(
    "second turn: its first completion ends the rollout",
    "take an environment that answers, such as guess:2, keyvalue:3 or your own (env=FILE.py:NAME)",
    _has_turns,
)


GAME = EnvNeed(
    "game: its first completion ends the rollout",
    "take an environment of several turns, such as guess:2 or your own (env=FILE.py:NAME)",
    _has_turns,
)
CLOSER_LOOK = EnvNeed(
    "closer look: its first completion ends the rollout",
    "take env=crop:1, or your own environment that answers a box with what it holds (env=FILE.py:NAME)",
    _has_turns,
)
TOOLS = EnvNeed(
    "tools",
    "take env=notebook:1, or your own environment with tools around it (Toolbox, env=FILE.py:NAME)",
    is_met_by=lambda env, task: bool(task.tools),
)


def bundled_need(name: str, kind: type) -> EnvNeed:
    """Need of tasks that only one bundled environment makes."""
    example = f"{vars(kind).get('name', kind.__name__)}:1"
    return EnvNeed(name, f"take env={example}", lambda env: bool(inside(env, kind)))
