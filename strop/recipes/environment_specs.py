"""Environments of recipes: their own reward as a metric, and wrappers around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from strop.capabilities import inside
from strop.control.samplers.uniform import Uniform
from strop.environments import bundled
from strop.environments.data.rows import also
from strop.environments.data.table import CATEGORIES, Table
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Checked, Earned, Unmeasured
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.scoring import grades
from strop.roles import Environment, Reward
from strop.run import Run

# The environments' own reward as a metric, for policies that learn from another reward.


def judged_by(envs: tuple[Environment, ...]) -> Reward:
    """The environments' own reward; of tasks without answers, one that no run can learn from."""
    for env in map(_plain, envs):
        if isinstance(env, Table) and not env.is_answered:
            return Unmeasured(f"{env.path} ({env.chosen[1]})")
    return Earned() if all(env.pays for env in envs) else Checked(envs)


def is_answered(envs: Sequence[Environment]) -> bool:
    """Whether all tasks have answers or tests."""
    return all(env.is_answered for env in map(_plain, envs) if isinstance(env, Table))


def _plain(env: Environment) -> Environment:
    """An environment without wrappers that leave its tasks as they are."""
    while isinstance(env, Around):
        env = env.inner
    return env


def rules_of(envs: Sequence[Environment]) -> tuple[tuple[str, str], ...]:
    """By table, the rule by which its answers are read, where that changes them."""
    tables = [env for env in envs if isinstance(env, Table)]
    return tuple((env.name, env.chosen[0]) for env in tables if env.chosen[0] not in ("text", "none"))


def measured(envs: tuple[Environment, ...]) -> Reward:
    """The environments' own reward with weight 0: it is logged and not trained on."""
    return replace(judged_by(envs), weight=0.0)  # type: ignore[type-var]


# Categories of tables, for recipes that choose among environments.


def categories(envs: tuple[Environment, ...], recipe: str) -> tuple[Environment, ...]:
    """Each table cut into its categories; a table that is alone and has none is refused."""
    found = tuple(part for env in envs for part in (env.by_category() if isinstance(env, Table) else (env,)))
    of_user = [env for env in found if not type(env).__module__.startswith(bundled.__name__)]
    if len(found) == 1 and of_user:
        columns = f"add a column `category` (or {also(CATEGORIES)}) with at least 2 values to its rows, or "
        raise ConfigurationError(
            f"{recipe} chooses among environments, and {found[0].name} is one: "
            f"{columns if isinstance(found[0], Table) else ''}join several environments by +"
        )
    return found


# Wrapped environments, for recipes that ask another question about the tasks of a setting.


def wrap_envs(run: Run, wrap: Callable[[Environment], Sequence[Environment]]) -> None:
    """Replace each environment by those that `wrap` returns, in the warm-up too; sampling is uniform over them.

    A user's own rewards stay where the tasks do; other questions are scored by their environments.
    """
    if run.warmup is not None:
        wrap_envs(run.warmup, wrap)
    run.envs = tuple(made for env in run.envs for made in wrap(env))
    run.sampler = Uniform(run.envs)
    has_answers, judged = is_answered(run.envs), judged_by(run.envs)
    own = own_of(run, has_answers) if all(isinstance(env, Around) for env in run.envs) else ()
    run.rewards = own or (judged,)
    run.evaluation = replace(run.evaluation, rewards=own if own and not has_answers else (judged,))


def own_of(run: Run, has_answers: bool) -> tuple[Reward, ...]:
    """The rewards of a user's own functions, and the environments' check with weight 0 where these do not grade."""
    own = tuple(reward for reward in run.rewards if inside(reward, PythonFunction))
    if not own or any(map(grades, own)) or not has_answers:
        return own
    return (*own, replace(judged_by(run.envs), weight=0.0))  # type: ignore[type-var]
