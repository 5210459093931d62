"""Experiments on curricula: four sets of tasks, one fast learner, two controls.

The learner is POISE's with groups of eight. The mechanism is the sampler of a recipe with the pass-rate estimator and
budget it comes with; control is uniform sampling with a fixed budget, negative control the same mechanism with its
choices permuted. The measure is `heldout_area`, mean accuracy over sampled tokens, which rewards early gains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from strop.control.samplers.permuted_control import Permuted
from strop.effects import Experiment
from strop.environments.bundled.countdown import Countdown
from strop.environments.wrappers.wrong_controls import Miskeyed, lying
from strop.recipes.environments import parse_envs
from strop.recipes.setting import Setting
from strop.recipes.value.poise import poise
from strop.roles import Environment
from strop.run import Run
from strop.simulate.transplant import moved

POOL = 256  # tasks of the one environment there is, for those who remember single tasks
FEW = 48  # of each of five environments: 880 groups are tried in all, and who remembers tasks must meet them again
_MIXED = "arithmetic:1+countdown:4+compose:3+arithmetic:8+countdown:5"
_BETTER = "higher mean held-out accuracy over the same sampled tokens than uniform choice, or its own choices permuted"


@dataclass(frozen=True)
class Field:
    """Tasks to choose from, and held-out tasks."""

    name: str
    claim: str
    tokens: int
    envs: Callable[[int], tuple[Environment, ...]]  # by seed
    target: Callable[[int], tuple[Environment, ...]]


def _countdown(seed: int) -> tuple[Environment, ...]:
    return (Countdown(4, seed),)


HAYSTACK = Field(
    "haystack",
    f"Of five levels one can be learned, one is solved and three are out of reach: {{name}} reaches {_BETTER}.",
    250_000,
    lambda seed: parse_envs(_MIXED, seed),
    _countdown,
)
BROKEN_KEYS = Field(
    "broken-keys",
    f"Half of {POOL} tasks of one level have a wrong key: {{name}} reaches {_BETTER}.",
    450_000,
    lambda seed: (Miskeyed(Countdown(4, seed), POOL),),
    _countdown,
)
LYING_LEVELS = Field(
    "lying-levels",
    f"The haystack with levels that say nothing: {{name}} still reaches {_BETTER}; a rule by level must not.",
    250_000,
    lambda seed: lying(parse_envs(_MIXED, seed)),
    _countdown,
)
GUESS = Field(
    "guess",
    f"Where success hangs on a hidden number and nothing can be chosen, {{name}} reaches {_BETTER}; it should not.",
    250_000,
    lambda seed: parse_envs("guess:4", seed),
    lambda seed: parse_envs("guess:4", seed),
)


def _first(tasks: int, env: Environment) -> Environment:
    """So many tasks of an endless environment, over and over, with their true keys."""
    return Miskeyed(env, tasks, share=0.0) if tasks and env.num_tasks() is None else env


def curriculum(key: str, field: Field, recipe: Callable[[Setting], Run], pool: int = 0, name: str = "") -> Experiment:
    """The experiment of one recipe's control parts in one field.

    `pool`: tasks of each environment that there are, for the controls as well; 0: it chooses among environments, which
    are endless.
    """

    def control(setting: Setting) -> Run:
        """Uniform choice, eight rollouts of every task."""
        setting = replace(setting, group_size=8, groups_per_step=8, heldout_tasks=384, heldout_every=5)
        run, envs = poise(setting), tuple(_first(pool, each) for each in field.envs(setting.seed))
        evaluation = replace(run.evaluation, envs=field.target(setting.seed))
        return replace(run, envs=envs, sampler=moved(run.sampler, envs, setting.seed), evaluation=evaluation)

    def treatment(setting: Setting) -> Run:
        """The same learner; the recipe chooses."""
        run = control(setting)
        chosen = recipe(replace(setting, group_size=8, groups_per_step=8))
        parts = moved((chosen.sampler, chosen.estimator, chosen.budget), run.envs, setting.seed)
        return replace(run, sampler=parts[0], estimator=parts[1], budget=parts[2])

    def negative(setting: Setting) -> Run:
        """Each choice stands for another task, or another environment."""
        run = treatment(setting)
        return replace(run, sampler=Permuted(run.sampler, run.envs, pool, setting.seed))

    claim = field.claim.format(name=name or key)
    return Experiment(key, claim, treatment, control, negative, field.tokens, metric="heldout_area")
