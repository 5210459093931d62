"""Comparison of curricula: tokens that each needs to reach the result of uniform sampling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from strop.control.budgets.fixed import Fixed
from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.permuted_control import Permuted
from strop.control.samplers.uniform import Uniform
from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.observe.metrics.tokens_to_target import tokens_to
from strop.roles import PassRateEstimator, Sampler
from strop.simulate.learner import Learner
from strop.simulate.population import populate
from strop.simulate.reference_samplers import FixedTaste, Oracle
from strop.simulate.scenarios import Scenario
from strop.simulate.training_loop import Control, Course
from strop.simulate.transplant import moved
from strop.stats.intervals import Spread, over_seeds

Maker: TypeAlias = Callable[[Learner, int], Control]  # new parts for a learner and a seed

MOST = 2.0  # times uniform's tokens after which a course that has not come as far is ended


@dataclass(frozen=True)
class ArmStanding:
    """Result of one arm: tokens to uniform sampling's final accuracy as a share of uniform's, by seed, at most
    `MOST`.
    """

    shares: tuple[float, ...]
    finals: tuple[float, ...]  # held-out accuracy where its course ended

    @property
    def spread(self) -> Spread:
        return over_seeds(self.shares)

    @property
    def num_late(self) -> int:
        """Seeds in which it did not come as far."""
        return sum(share >= MOST for share in self.shares)

    @property
    def verdict(self) -> str:
        mean, low, high = self.spread
        if high is not None and high < 1:
            return f"gains: {mean:.2f} of uniform's tokens"
        if low is not None and low > 1:
            return "loses: needs more tokens than uniform"
        return "gains nothing that shows"

    def plain(self) -> dict[str, Any]:
        mean, low, high = self.spread
        found = {"mean": mean, "low": low, "high": high, "verdict": self.verdict, "not_reached": self.num_late}
        return found | {"shares": list(self.shares), "finals": list(self.finals)}


def contest(scenario: Scenario, arms: Mapping[str, Maker], seeds: int) -> dict[str, ArmStanding]:
    """Every arm over all seeds, each beside the uniform control of the same seed, which is the first."""
    if seeds < 2:
        raise ConfigurationError(f"an interval over seeds needs at least 2 seeds, got {seeds}")
    rows = [_of_seed(scenario, arms, seed) for seed in range(seeds)]
    return {
        name: ArmStanding(tuple(row[name][0] for row in rows), tuple(row[name][1] for row in rows)) for name in rows[0]
    }


def _of_seed(scenario: Scenario, arms: Mapping[str, Maker], seed: int) -> dict[str, tuple[float, float]]:
    tokens, heights = course_of(scenario, uniform, seed).curve(scenario.tokens)
    spent, goal = tokens[-1], heights[-1]
    found = {"uniform": (1.0, goal)}
    for name, make in arms.items():
        curve = course_of(scenario, make, seed).curve(round(MOST * spent), goal)
        needed = tokens_to(curve, goal)
        found[name] = MOST if needed is None else min(needed / spent, MOST), curve[1][-1]
    return found


def course_of(scenario: Scenario, make: Maker, seed: int) -> Course:
    learner = Learner(populate(scenario, seed))
    return Course(learner, make(learner, seed), seed)


# ---- arms


def uniform(learner: Learner, seed: int) -> Control:
    population = learner.population
    return Control(Uniform(population.envs), Counts(), Fixed(population.scenario.group_size))


def refilled(learner: Learner, seed: int) -> Control:
    """Uniform, but groups without contrast are dropped and replaced."""
    return replace(uniform(learner, seed), gates=(ZeroVariance(),))


def taste(learner: Learner, seed: int) -> Control:
    return replace(uniform(learner, seed), sampler=FixedTaste(learner, seed))


def oracle(learner: Learner, seed: int) -> Control:
    return replace(uniform(learner, seed), sampler=Oracle(learner, seed=seed))


def oracle_per_token(learner: Learner, seed: int) -> Control:
    return replace(uniform(learner, seed), sampler=Oracle(learner, per_token=True, seed=seed))


BOUNDS: dict[str, Maker] = {
    "uniform, refilled": refilled,
    "random weights": taste,
    "oracle p(1-p)": oracle,
    "oracle per token": oracle_per_token,
}


def of_parts(control: Control) -> Maker:
    """Parts that were made for other environments, as they were when new, in those of a learner."""
    return lambda learner, seed: moved(control, learner.population.envs, seed)


def permuted(make: Maker) -> Maker:
    """The same, its choices permuted over tasks."""

    def made(learner: Learner, seed: int) -> Control:
        control = make(learner, seed)
        envs = learner.population.envs
        most = max(len(env.members) for env in envs)
        return replace(control, sampler=Permuted(control.sampler, envs, most, seed))

    return made


def sampler_of(kind: type[Sampler], values: Mapping[str, Any], estimator: PassRateEstimator) -> Maker:
    """A sampler by its class, with some of its fields set, beside a pass-rate estimator."""

    def made(learner: Learner, seed: int) -> Control:
        named = {field.name for field in fields(kind) if field.init}  # type: ignore[arg-type]
        given = {"envs": learner.population.envs, "seed": seed}
        known = {name: value for name, value in given.items() if name in named}
        beside = moved(estimator, learner.population.envs, seed)
        return replace(uniform(learner, seed), sampler=kind(**known, **values), estimator=beside)

    return made
