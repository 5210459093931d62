"""How near pass-rate estimators come to the truth: simulated tasks whose probabilities are known and move as the
learner learns.

    python benchmarks/prediction.py [--seeds 6] [--json] [--save NAME]

256 tasks, 8 of them tried at each of 512 steps with 8 rollouts, in turn; each pass-rate estimator is shown the same
groups, at once
or 8 versions late, and asked about all tasks before every step. A task's probability is the logistic of its kind's
skill and its own offset; skills move by the exact policy gradient of what was tried, p(1 - p). *Spread*: one kind,
offsets of deviation 1.5. *Broken*: the same, and half of all tasks impossible. *Ladder*: six kinds 1.5 apart, offsets
of deviation 1, half of all tasks impossible. Errors are of the
predicted against the true probability, over all tasks and steps from the 33rd on, when each was tried once; the Brier
score is that of one more rollout; rank correlation is within a step. The `ratio` is the error of offsets to that of the
last seen share, at its worst environment.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))

from strop.control.estimators.level_plus_offset import Offsets
from strop.control.estimators.pass_rate_counts import Counts
from strop.roles import PassRateEstimator
from strop.success import successes
from strop.types import SUCCESS, FloatArray, Group, Outcome, Rollout, Task

TASKS, TRIED, ROLLOUTS, STEPS, RATE = 256, 8, 8, 512, 0.015
DELAYS = (0, 8)
IMPOSSIBLE = -30.0  # logit
Doubles = NDArray[np.float64]


@dataclass
class LastSeen(PassRateEstimator):
    """The share of right rollouts when a task was last tried; the mean of all shares where it never was."""

    shares: dict[str, float] = field(default_factory=dict)

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        mean = float(np.mean(list(self.shares.values()))) if self.shares else 0.5
        means = np.array([self.shares.get(task.id, mean) for task in tasks], dtype=np.float32)
        return means, np.zeros_like(means)

    def observe(self, group: Group) -> None:
        right, count = successes(group)
        self.shares[group.task.id] = right / count


@dataclass
class GlobalMean(PassRateEstimator):
    """The same for all: the share of right rollouts of the last 256 tasks tried."""

    shares: list[float] = field(default_factory=list)

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        means = np.full(len(tasks), np.mean(self.shares[-TASKS:]) if self.shares else 0.5, dtype=np.float32)
        return means, np.zeros_like(means)

    def observe(self, group: Group) -> None:
        right, count = successes(group)
        self.shares.append(right / count)


@dataclass
class Learner:
    """Tasks with kinds and offsets, and a skill per kind that rises with what is tried."""

    kinds: NDArray[np.int64]  # [N]
    offsets: Doubles  # [N]
    skills: Doubles  # [K]

    @classmethod
    def spread(cls, stream: np.random.Generator) -> Learner:
        return cls(np.zeros(TASKS, np.int64), stream.normal(0, 1.5, TASKS), np.array([-1.5]))

    @classmethod
    def broken(cls, stream: np.random.Generator) -> Learner:
        offsets = np.where(stream.random(TASKS) < 0.5, IMPOSSIBLE, stream.normal(0, 1.5, TASKS))
        return cls(np.zeros(TASKS, np.int64), offsets, np.array([-1.5]))

    @classmethod
    def ladder(cls, stream: np.random.Generator) -> Learner:
        offsets = np.where(stream.random(TASKS) < 0.5, IMPOSSIBLE, stream.normal(0, 1, TASKS))
        return cls(np.arange(TASKS) % 6, offsets, 1.0 - 1.5 * np.arange(6, dtype=np.float64))

    @property
    def probabilities(self) -> Doubles:
        return np.asarray(1 / (1 + np.exp(-(self.skills[self.kinds] + self.offsets))))

    def learn(self, places: NDArray[np.int64]) -> None:
        """Each skill by the gradient at its own tasks, and by a third of it at the neighbouring kinds'."""
        probabilities = self.probabilities[places]
        signal = np.bincount(self.kinds[places], probabilities * (1 - probabilities), len(self.skills))
        shared = np.convolve(signal, [1 / 3, 1, 1 / 3])[1:-1]
        self.skills = self.skills + RATE * shared


ENVS = {"spread": Learner.spread, "broken": Learner.broken, "ladder": Learner.ladder}
ESTIMATORS = {"global mean": GlobalMean, "last seen": LastSeen, "counts": Counts, "offsets": Offsets}


def followed(env: str, delay: int, seed: int) -> dict[str, list[Doubles]]:
    """Squared error, Brier score and rank correlation of each pass-rate estimator, step by step."""
    stream = np.random.default_rng([seed, delay])
    learner, estimators = ENVS[env](stream), {name: each() for name, each in ESTIMATORS.items()}
    tasks = [Task((), "", env, int(learner.kinds[place]), id=f"{env} {place}") for place in range(TASKS)]
    order, late, found = np.array([], np.int64), list[list[Group]](), {name: list[Doubles]() for name in estimators}
    for step in range(STEPS):
        if not len(order):
            order = stream.permutation(TASKS)
        places, order = order[:TRIED], order[TRIED:]
        truth = learner.probabilities
        for name, estimator in estimators.items():
            means = estimator.predict(tasks, step)[0].astype(np.float64)
            error = float(np.square(means - truth).mean())
            brier = error + float((truth * (1 - truth)).mean())
            found[name].append(np.array([error, brier, rank_correlation(means, truth)]))
        late.append([_tried(tasks[place], truth[place], step, number, stream) for number, place in enumerate(places)])
        learner.learn(places)
        for group in late.pop(0) if len(late) > delay else ():
            for estimator in estimators.values():
                estimator.observe(group)
    return found


def _tried(task: Task, probability: float, step: int, number: int, stream: np.random.Generator) -> Group:
    right = stream.random(ROLLOUTS) < probability
    rollouts = [
        Rollout(str(place), task, (), Outcome.FINISHED, facts={SUCCESS: float(is_right)})
        for place, is_right in enumerate(right)
    ]
    return Group(TRIED * step + number, task, rollouts, step)


def rank_correlation(one: Doubles, two: Doubles) -> float:
    """Spearman's, with equal ranks for equals; 0 where one side says the same of all."""
    ranks = [_ranks(each) for each in (one, two)]
    if min(each.std() for each in ranks) == 0:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Doubles) -> Doubles:
    _, places, counts = np.unique(values.round(9), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[places], np.float64)


def measure(seeds: int) -> dict[str, Any]:
    rows = []
    for env in ENVS:
        for delay in DELAYS:
            runs = [followed(env, delay, seed) for seed in range(seeds)]
            for name in ESTIMATORS:
                steps = np.array([run[name][TASKS // TRIED :] for run in runs])  # [S, T, 3]
                error, brier, correlation = steps.mean((0, 1)).tolist()
                row = {"env": env, "delay": delay, "estimator": name, "rmse": error**0.5, "brier": brier}
                rows.append(row | {"rank_correlation": correlation})
    errors = {(row["env"], row["delay"], row["estimator"]): row["rmse"] for row in rows}
    worst = max(errors[env, delay, "offsets"] / errors[env, delay, "last seen"] for env, delay, _ in errors)
    return {"ratio": worst, "limit": 2 / 3, "seeds": seeds, "rows": rows}


def table(found: dict[str, Any]) -> str:
    lines = [
        "| environment | versions late | pass-rate estimator | RMSE | Brier | rank correlation |",
        "|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        figures = " | ".join(f"{row[name]:.3f}" for name in ("rmse", "brier", "rank_correlation"))
        lines.append(f"| {row['env']} | {row['delay']} | {row['estimator']} | {figures} |")
    lines.append(f"offsets / last seen at worst {found['ratio']:.2f}, wanted at most {found['limit']:.2f}")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> None:
    from machine import measure_seeds

    measure_seeds(__doc__, 6, measure, table, words)


if __name__ == "__main__":
    main()
